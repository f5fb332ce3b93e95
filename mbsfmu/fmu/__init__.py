"""FMI 2.0 co-simulation units of simulations: description, packaging, validation."""
