"""The command line; the only part that prints."""

from mbsfmu.cli.main import main

__all__ = ["main"]
