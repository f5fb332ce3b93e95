"""`CoupledModel`, the root object of users, with its simulations, ensembles and overview."""
