"""What all rooms use and no model knows: errors, options, registries, files, times."""
