"""The folder that FMUs of a model go to."""

from __future__ import annotations

from pathlib import Path

import pytest

import mbsfmu
from mbsfmu import InputError


def test_a_file_name_of_an_fmu_is_no_folder(tmp_path: Path) -> None:
    """It made a folder of this name, with the FMU in it, which no importer opens."""
    with pytest.raises(InputError, match=r"one\.fmu would be a folder: name a folder for the FMUs of a model"):
        mbsfmu.export(mbsfmu.models.pendulum(2), tmp_path / "one.fmu")
    assert not list(tmp_path.iterdir())
