"""Models exported as FMUs and packages, with their icons."""
