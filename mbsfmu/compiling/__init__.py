"""C compilation for this machine or others, and the cache of compiled libraries."""
