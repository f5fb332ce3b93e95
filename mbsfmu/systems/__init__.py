"""A model's equations in one form: mechanisms, circuits, blocks, and several of them coupled."""
