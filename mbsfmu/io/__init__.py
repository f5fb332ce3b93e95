"""Input and output: trajectories, signals, tables, row files, part files."""
