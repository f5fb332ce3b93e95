"""The GUID: FMUs that compute something else have another one, FMUs that compute the same have the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fmpy
import pytest

import mbsfmu
from mbsfmu import CoupledModel, StepSignal
from mbsfmu.fmu import fmu_package
from mbsfmu.native import c_sources as native_sources
from mbsfmu.native.native_package import export_native
from mbsfmu.stepping.iteration import NewtonTolerances


def guid_of(path: Path) -> str:
    return str(fmpy.read_model_description(str(path)).guid)


def native_guid(folder: Path, model: CoupledModel | None = None, *, sources: bool = True, **options: Any) -> str:
    """The GUID of a native FMU of sources alone: nothing is compiled."""
    simulation = (model or mbsfmu.models.four_bar()).simulation(compiled=False, **options)
    return guid_of(export_native(simulation, folder / "unit.fmu", platforms=[], sources=sources, force=True))


def changed(change: Callable[[dict[str, Any]], None]) -> CoupledModel:
    data = mbsfmu.models.four_bar().to_dict()
    change(data)
    return CoupledModel.from_dict(data)


def later_command(data: dict[str, Any]) -> None:
    data["signals"] = {"circuit.valve.command": StepSignal(times=(1.1,), values=(5.0,)).to_dict()}


def heavier_boom(data: dict[str, Any]) -> None:
    data["systems"]["mechanism"]["bodies"][0]["mass"] = 226.0


def test_guids_differ_in_whatever_changes_results(tmp_path: Path) -> None:
    explicit = {"solver": "rk45"}
    variants: dict[str, dict[str, Any]] = {
        "as it is": {},
        **{name: {"formulation": name} for name in ("penalty", "dca", "hdca")},
        "stabilised": {"formulation": "dca", "stabilisation": 5.0},
        "stiffer": {"formulation": "penalty", "penalty": 1e10},
        "step": {"step": 5e-4},
        "newton": {"tolerances": NewtonTolerances(coordinates=1e-6)},
        "rk4": {"solver": "rk4"},
        "rk45": explicit,
        "relative": {**explicit, "relative_tolerance": 1e-8},
        "absolute": {**explicit, "absolute_tolerance": 1e-8},
        "signals": {"model": changed(later_command)},
        "data": {"model": changed(heavier_boom)},
    }
    guids = {name: native_guid(tmp_path, **options) for name, options in variants.items()}
    assert len(set(guids.values())) == len(variants), guids


def test_guid_changes_with_the_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = mbsfmu.models.pendulum(1)
    before = native_guid(tmp_path, model)
    runtime = tmp_path / "runtime"
    shutil.copytree(native_sources._RUNTIME, runtime)
    steps = runtime / "core" / "steps.c"
    steps.write_text(steps.read_text().replace("halvings == HALVINGS", "halvings >= HALVINGS"))
    monkeypatch.setattr(native_sources, "_RUNTIME", runtime)
    assert native_guid(tmp_path, model) != before


def test_guid_of_a_python_unit_changes_with_what_it_is_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def guid(**options: Any) -> str:
        given = {"layout": "monolithic", "backend": "python", "force": True, **options}
        return guid_of(mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, **given)[0])

    first = guid()
    assert guid() == first
    assert len({first, guid(formulation="dca"), guid(solver="rk45"), guid(solver="rk45", relative_tolerance=1e-9)}) == 4
    folder = tmp_path / "hydraulics"
    shutil.copytree(fmu_package.package_folder("hydraulics"), folder)
    real = fmu_package.package_folder
    monkeypatch.setattr(fmu_package, "package_folder", lambda name: folder if name == "hydraulics" else real(name))
    assert guid() == first
    (folder / "flow.py").write_text((folder / "flow.py").read_text() + "\n# another law\n")
    assert guid() != first


def test_guid_is_the_same_where_nothing_differs(tmp_path: Path) -> None:
    """In another process, with another order of sets, with and without sources."""
    script = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); from test_identity import native_guid;"
        "print(native_guid(pathlib.Path(sys.argv[2])))"
    )
    here, root = Path(__file__).parent, Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", script, str(here), str(tmp_path)]
    other = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    assert native_guid(tmp_path) == native_guid(tmp_path, sources=False) == other
