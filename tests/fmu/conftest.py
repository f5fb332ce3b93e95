"""FMUs of the four-bar, exported once."""

from __future__ import annotations

from pathlib import Path

import pytest

import mbsfmu


@pytest.fixture(scope="session")
def four_bar_fmus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("four-bar")
    return {path.stem: path for path in mbsfmu.export(mbsfmu.models.four_bar(), folder) if path.suffix == ".fmu"}
