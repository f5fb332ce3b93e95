"""The command line; the only part that prints."""

from __future__ import annotations

from mbsfmu.cli.loading import interrupted_at_once


def main() -> None:
    """Run the command line; see `mbsfmu.cli.commands`."""
    with interrupted_at_once():
        from mbsfmu.cli.commands import main as run  # noqa: PLC0415 - what comes before cannot be interrupted cleanly
    run()


__all__ = ["main"]
