"""Interactive machines in a page, with compiled code."""
