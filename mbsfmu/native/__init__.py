"""Native FMUs: the model in generated C with a hand-written runtime."""
