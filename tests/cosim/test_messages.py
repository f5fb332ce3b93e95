"""What units say reaches the run that they belong to, whatever their names are."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

import mbsfmu
from mbsfmu.base.errors import SimulationError
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmi2_instance import Fmi2Instance


def test_two_units_of_one_name_keep_their_reasons(tmp_path: Path) -> None:
    """Both refuse a mass within the bounds of its description, each another one, and each tells its own."""
    (path,) = mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="monolithic")
    with ExitStack() as stack:
        archive = Archive(path)
        stack.callback(archive.close)
        pair = [Fmi2Instance("pendulum", archive) for _ in range(2)]
        for instance in pair:
            stack.callback(instance.close)
            instance.setup(0.0, 1.0)
        for instance, mass in (*zip(pair, (1e200, 2e200), strict=True), (pair[0], 3e200)):
            with pytest.raises(SimulationError) as caught:
                instance.set_start("link_1.mass", mass)
            assert f"link_1.mass = {mass:g} kg is refused" in str(caught.value)
