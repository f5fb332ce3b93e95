"""The skeleton of pages, and the elements that stand in them."""
