"""Command line, the only part that prints."""

from __future__ import annotations

import os

from mbsfmu.cli.loading import interrupted_at_once


def main() -> None:
    """Run the command line; see `mbsfmu.cli.commands`."""
    # NumPy's library for linear algebra starts a thread for each processor, which spins while it waits: a tenth of
    # what a short command takes. Matrices here are too small to share.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with interrupted_at_once():
        from mbsfmu.cli.commands import main as run  # noqa: PLC0415 - what comes before cannot be interrupted cleanly
    run()


__all__ = ["main"]
