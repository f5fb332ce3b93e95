"""Several systems as one: connections, algebraic loops, the order of updates."""
