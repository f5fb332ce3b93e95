"""The length of communication steps, and what counts of them."""
