"""What all tests share: a folder of their own for compiled code."""

from __future__ import annotations

import os

import pytest

from mbsfmu.native.kept import FOLDER


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled code among what pytest keeps; the workers of a parallel run inherit it and share it."""
    if hasattr(config, "cache") and config.cache is not None and not hasattr(config, "workerinput"):
        os.environ[FOLDER] = str(config.cache.mkdir("compiled"))
