"""What all tests share: a folder of their own for compiled code, and that they can be interrupted."""

from __future__ import annotations

import os
import signal

import pytest

from mbsfmu.compiling.kept import FOLDER


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled code among what pytest keeps; the workers of a parallel run inherit it and share it.

    A shell lets what it runs in the background ignore interruptions, which some tests are about.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "cache") and config.cache is not None and not hasattr(config, "workerinput"):
        os.environ[FOLDER] = str(config.cache.mkdir("compiled"))
