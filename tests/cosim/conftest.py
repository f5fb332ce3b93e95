"""Units for the master: a hand-written oscillator, and our four-bar."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pythonfmu import FmuBuilder

import mbsfmu


@pytest.fixture(scope="session")
def oscillators(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("oscillator")
    script = shutil.copy(Path(__file__).with_name("oscillator.py"), folder)
    built = Path(FmuBuilder.build_FMU(script, dest=folder))
    return [Path(shutil.copy(built, folder / f"{name}.fmu")) for name in ("one", "two")]


@pytest.fixture(scope="session")
def four_bar_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("four-bar-package")
    return mbsfmu.export(mbsfmu.models.four_bar(), folder, layout="separate")[-1]
