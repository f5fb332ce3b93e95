"""FMUs of the four-bar, exported once with each backend."""

from __future__ import annotations

from pathlib import Path

import pytest

import mbsfmu
from mbsfmu.exporting import BACKENDS


@pytest.fixture(scope="session", params=BACKENDS)
def four_bar_fmus(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp(f"four-bar-{request.param}")
    paths = mbsfmu.export(mbsfmu.models.four_bar(), folder, backend=request.param)
    return {path.stem: path for path in paths if path.suffix == ".fmu"}
