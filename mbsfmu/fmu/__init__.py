"""FMUs of simulations for FMI 2.0 and 3.0: description, packaging, validation."""
