"""States that a host sets off the loops are moved back onto them at an event."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from exchange import Host

import mbsfmu
from mbsfmu.compiling.compiler import has_compiler

pytestmark = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
OFF = np.array([1.0, -1.0, 1.0])
"""Direction of angles that opens the loop."""


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
def test_a_host_puts_states_off_a_loop(tmp_path: Path, formulation: str) -> None:
    """The four-bar's loop is closed again, in positions and velocities, by little; what a solver leaves stays."""
    options = {"layout": "separate", "kind": "me", "formulation": formulation}
    paths = mbsfmu.export(mbsfmu.models.four_bar(), tmp_path, **options)
    path = next(each for each in paths if each.stem == "mechanism")
    host = Host(path, tmp_path / "unpacked")
    host.begin()
    closed, violations = host.point, ("constraint.position", "constraint.velocity")
    assert np.max(np.abs(host.get(*violations))) < 1e-9
    for off, event in ((1e-7, False), (1e-2, True)):
        point = closed.copy()
        point[:3] += off * OFF
        point[3:6] += 3.0 * off * OFF
        host.go(0.0, point)
        assert np.max(host.get(*violations)) > 0.1 * off
        assert host.complete() == event
        if event:
            assert host.events().values_changed
            assert np.max(np.abs(host.get(*violations))) < 1e-9
            assert 0.0 < np.max(np.abs(host.point[:3] - point[:3])) < 2.0 * off
            assert not host.complete()
        else:
            assert host.point.tolist() == point.tolist()
