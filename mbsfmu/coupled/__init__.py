"""`CoupledModel`, the root object of users, with its simulations and overview."""
