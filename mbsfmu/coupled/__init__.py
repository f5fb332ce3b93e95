"""The root object that users make, with its simulations and its overview."""
