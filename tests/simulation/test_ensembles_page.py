"""Python of docs/guides/ensembles.md runs as it is printed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from documented import ROOT

from mbsfmu.compiling.compiler import has_compiler


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_the_guide_runs() -> None:
    """docs/guides/ensembles.md: a later command moves the boom later, and the thick rod fails as it is told."""
    page = (ROOT / "docs" / "guides" / "ensembles.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(code, names)  # the page is ours
    result, valves, rods, machines = (names[name] for name in ("result", "valves", "rods", "machines"))
    np.testing.assert_allclose(machines.time, [0.0, 0.2, 0.2, 0.0, *[0.2] * 8])  # type: ignore[attr-defined]
    assert machines["cylinder.length"][1] > machines["cylinder.length"][0]  # type: ignore[index]
    assert result["boom.angle"].shape == (12, 21)  # type: ignore[index]
    moved = np.abs(np.diff(valves["cylinder.length"], axis=1)) > 1e-7  # type: ignore[index]
    assert np.all(np.diff(np.argmax(moved, axis=1)) > 0)
    assert rods.completed.tolist() == [True, False]  # type: ignore[attr-defined]
    assert rods.failures[1].startswith(
        "machine 1 (cylinder.rod_diameter = 0.09 m): cylinder.piston_diameter is 0.08 m; it must be greater than"
    )  # type: ignore[attr-defined]
