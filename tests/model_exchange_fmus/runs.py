"""Runs of the FMU for model exchange alone, and what they are parametrized by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mbsfmu import cosimulate

Jumper = Callable[..., Path]
"""A function that builds the FMU for a version of FMI."""
VERSIONS = pytest.mark.parametrize("version", [2, 3])
SOLVERS = pytest.mark.parametrize("solver", ["radau", "dop853"])


def alone(
    unit: Path, stop: float = 3.0, step: float = 0.01, options: dict[str, Any] | None = None, **values: float
) -> Any:
    """Run the FMU with parameters and start values."""
    given = {f"jumper.{name}": value for name, value in values.items()}
    return cosimulate([unit], parameters=given, stop=stop, step=step, **(options or {}))
