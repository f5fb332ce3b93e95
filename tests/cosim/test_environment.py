"""The floating-point environment: an FMU that leaves another one does not change what others compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mbsfmu import cosimulate
from mbsfmu.cosim.fmus.fmu_instance import environment

_TO_NEAREST = 0  # FE_TONEAREST of C on all platforms that are known


@pytest.mark.parametrize("compiled", ["0", "1"])
@pytest.mark.parametrize("options", [{}, {"algorithm": "jacobi"}, {"control": "error"}])
def test_rounding_is_put_back_after_each_unit(
    foreign: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, compiled: str, options: dict[str, str]
) -> None:
    """Each of two FMUs shows how it was told to round by the one before it: to the nearest number, ever."""
    monkeypatch.setenv("MBSFMU_COMPILED", compiled)
    before, unit = environment(), foreign("rounding")
    result = cosimulate([f"a={unit}", f"b={unit}"], step=0.1, stop=1.0, **options)
    for name in ("a", "b"):
        np.testing.assert_array_equal(result[f"{name}.found"], _TO_NEAREST)
        np.testing.assert_array_equal(result[f"{name}.third"][1:], 1.0 / 3.0)  # upward it is the next number
    (note,) = result.notes
    assert note.startswith("a and b changed how numbers are rounded")
    assert environment() == before


def test_nothing_is_said_of_units_that_leave_it(foreign: Callable[[str], Path]) -> None:
    assert cosimulate(foreign("halting"), step=0.1, stop=1.0).notes == []
