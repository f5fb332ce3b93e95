"""What docs/reference/mechanics.md says works as it is written there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mbsfmu.parts
from mbsfmu import Constraint, CoupledModel, Force, Sensor

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "mechanics.md").read_text(encoding="utf-8")
FIRST, *BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.partition("\n")[0].removeprefix("from mbsfmu "))
def test_lines_of_the_page_make_a_crane_that_keeps_its_energy(block: str) -> None:
    named: dict[str, Any] = {}
    exec(FIRST + block, named)  # the page is ours
    model = named["model"]
    assert isinstance(model, CoupledModel)
    result = model.simulation(compiled=False).run()
    energies = [np.ptp(result[f"energy.{name}"]) for name in ("kinetic", "potential", "work")]
    assert np.max(np.abs(result["energy.drift"])) < 1e-3 * max(energies)


def test_page_names_every_force_constraint_and_sensor() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE))
    kinds = Force | Constraint | Sensor
    parts = {name for name in mbsfmu.parts.__all__ if issubclass(getattr(mbsfmu.parts, name), kinds)}
    assert parts - named == set()
