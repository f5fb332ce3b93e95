"""What goes in and out: trajectories, signals, tables, files of rows, files of parts."""
