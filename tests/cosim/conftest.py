"""Units for the master: a hand-written oscillator, and our four-bar."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cosim.both_ways import Failures, Run, check_same
from cosim.joined_mechanisms import (
    STOP,
    TIGHT,
    chain_halves,
    export_half,
    four_bar_halves,
    four_bar_whole,
    sliding_pair,
)
from cosim.linear_units import export_linear, halves
from cosim.ssp_documents import HEAD, TAIL
from foreign_fmus import C_FMUS, build_c_unit, build_python_unit, compiler
from model_exchange_fmus import build_jumper
from model_exchange_fmus.runs import Jumper
from pythonfmu import FmuBuilder

import mbsfmu
from mbsfmu import CosimulationError, cosimulate
from mbsfmu.compiling.compiler import SWITCH
from mbsfmu.cosim.runs.recorded_steps import RecordedSteps
from mbsfmu.simulation.run_result import Result


@pytest.fixture(scope="session")
def oscillators(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("oscillator")
    script = shutil.copy(Path(__file__).with_name("oscillator.py"), folder)
    built = Path(FmuBuilder.build_FMU(script, dest=folder))
    return [Path(shutil.copy(built, folder / f"{name}.fmu")) for name in ("one", "two")]


@pytest.fixture(scope="session")
def four_bar_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("four-bar-package")
    return mbsfmu.export(mbsfmu.models.four_bar(), folder, layout="separate", kind=("cs", "me"))[-1]


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that builds an FMU that is not ours, once."""
    folder = tmp_path_factory.mktemp("foreign")
    made: dict[str, Path] = {}

    def unit(name: str) -> Path:
        if name in C_FMUS and compiler() is None:
            pytest.skip("needs a C compiler")
        if name not in made:
            made[name] = build_c_unit(name, folder) if name in C_FMUS else build_python_unit(name, folder)
        return made[name]

    return unit


@pytest.fixture(scope="session")
def halves_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("halves")


@pytest.fixture(scope="session")
def halves_exact(halves_folder: Path) -> list[Path]:
    """The oscillator's halves, whose steps of 1 ms inside are exact beside what coupling does."""
    (halves_folder / "exact").mkdir()
    return [export_linear(system, halves_folder / "exact", "rk4", 1e-3) for system in halves()]


@pytest.fixture(scope="session")
def halves_3(halves_folder: Path) -> list[Path]:
    """The halves of the oscillator as FMUs of FMI 3.0."""
    (halves_folder / "three").mkdir()
    return [export_linear(system, halves_folder / "three", "rk4", 1e-3, fmi=3) for system in halves()]


@pytest.fixture(scope="session")
def halves_poor(halves_folder: Path) -> list[Path]:
    """The same, but saying that they neither save states nor interpolate inputs."""
    (halves_folder / "poor").mkdir()
    flags = {"canGetAndSetFMUstate": False, "canInterpolateInputs": False}
    return [export_linear(system, halves_folder / "poor", "rk4", 1e-3, **flags) for system in halves()]


@pytest.fixture
def make(foreign: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """Write a package of a system, with the units of `tests/foreign_fmus` and other files."""

    def package(body: str, name: str = "package", tail: str = TAIL, **files: str) -> Path:
        path = tmp_path / f"{name}.ssp"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("SystemStructure.ssd", HEAD + body + tail)
            for unit in ("source", "feed_through", "dahlquist"):
                archive.write(foreign(unit), f"resources/{unit}.fmu")
            for file, text in files.items():
                archive.writestr(f"resources/{file.replace('__', '.')}", text)
        return path

    return package


@pytest.fixture(scope="session")
def jumper_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jumper")


@pytest.fixture
def jumper(jumper_folder: Path) -> Jumper:
    """Return a function that builds the FMU for a version of FMI."""
    if compiler() is None:
        pytest.skip("needs a C compiler")

    def unit(version: int, **how: Any) -> Path:
        folder = jumper_folder / f"{version}-{'-'.join(map(str, how.values()))}"
        folder.mkdir(exist_ok=True)
        return build_jumper(version, folder, **how)

    return unit


@pytest.fixture(scope="session")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with halves of mechanisms."""
    return tmp_path_factory.mktemp("joined")


@pytest.fixture(scope="session")
def pinned(joined: Path) -> list[Path]:
    """The halves of the four-bar, with moments as well."""
    return [export_half(half, joined, kind=("cs", "me")) for half in four_bar_halves(turns=True)]


@pytest.fixture(scope="session")
def chained(joined: Path) -> list[Path]:
    """The rod and the free body."""
    return [export_half(half, joined, kind=("cs", "me")) for half in chain_halves()]


@pytest.fixture(scope="session")
def sliding(joined: Path) -> list[Path]:
    """Masses of 2 and 3 kg on one guide."""
    return [export_half(half, joined, kind=("cs", "me")) for half in sliding_pair(2.0, 3.0)]


@pytest.fixture(scope="session")
def tight() -> Result:
    """The four-bar in one piece by a solver of order 5."""
    return four_bar_whole().simulation(**TIGHT).run(STOP)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of steps that compiled code has made."""
    advance, numbers = RecordedSteps.advance, []

    def noting(self: RecordedSteps, index: int, end: int) -> int:
        try:
            return advance(self, index, end)
        finally:
            numbers.append(self.tables.exchange.made if self.is_compiled else 0)

    monkeypatch.setattr(RecordedSteps, "advance", noting)
    return numbers


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch, made: list[int]) -> Run:
    """Return a function that runs in both ways, and gives the result of compiled code if there is no difference."""

    def run(*arguments: Any, **options: Any) -> mbsfmu.CosimulationResult:
        results = []
        for way in ("0", "1"):
            monkeypatch.setenv(SWITCH, way)
            made.clear()
            results.append(cosimulate(*arguments, **options))
        check_same(*results)
        return results[1]

    return run


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch, made: list[int]) -> Failures:
    """Return a function that runs in both ways and returns what was raised, with the same results."""

    def run(*arguments: Any, **options: Any) -> list[CosimulationError]:
        errors = []
        for way in ("0", "1"):
            monkeypatch.setenv(SWITCH, way)
            made.clear()
            with pytest.raises(CosimulationError) as caught:
                cosimulate(*arguments, **options)
            errors.append(caught.value)
        check_same(*(error.result for error in errors))
        return errors

    return run
