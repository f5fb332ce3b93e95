"""Lumped-fluid hydraulics: components joined at nodes, and the equations of the circuit."""
