"""The C compiler of this machine, or one for others, and the libraries that are kept for the next time."""
