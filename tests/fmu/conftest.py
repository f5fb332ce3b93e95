"""FMUs of the four-bar, exported once with each backend, and natively of FMI 3.0 for modules that want these too."""

from __future__ import annotations

from pathlib import Path

import pytest

import mbsfmu
from mbsfmu.exporting.fmu_export import BACKENDS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Take the kinds of FMUs that a module names in `UNITS`; those of FMI 2.0 where it names none."""
    if "four_bar_fmus" in metafunc.fixturenames:
        kinds = getattr(metafunc.module, "UNITS", BACKENDS)
        metafunc.parametrize("four_bar_fmus", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def four_bar_fmus(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp(f"four-bar-{request.param}")
    options = {"backend": "native", "fmi": 3} if request.param == "native-3" else {"backend": request.param}
    paths = mbsfmu.export(mbsfmu.models.four_bar(), folder, **options)
    return {path.stem: path for path in paths if path.suffix == ".fmu"}
