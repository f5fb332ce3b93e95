"""Coupled runs that are saved and gone on with elsewhere are those that were never left, to the last bit."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS
from started import run_python

from mbsfmu import Cosimulation, CosimulationError, InputError, StepSignal, cosimulate
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmu_instance import FmuCalls
from mbsfmu.cosim.fmus.instantiation import make_instance
from mbsfmu.cosim.fmus.library_instance import LibraryInstance
from mbsfmu.io.trajectory import Trajectory

Foreign = Callable[[str], Path]
EQUAL = {"step": 5e-3, "stop": 0.4}
CONTROLLED = {**EQUAL, "tolerance": 1e-3}


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "jacobi", **EQUAL},
        {"algorithm": "jacobi", "extrapolation": "quadratic", "energy_correction": True, **EQUAL},
        {"algorithm": "gauss-seidel", "extrapolation": "derivatives", "rates": {"two": 3}, **EQUAL},
        {"algorithm": "gauss-seidel", "extrapolation": "linear", "threads": 1, "record_every": 7, **EQUAL},
        {"algorithm": "fixed-point", "extrapolation": "linear", **EQUAL},
        {"algorithm": "newton", "extrapolation": "quadratic", **EQUAL},
        {"algorithm": "newton", "extrapolation": "derivatives", "jacobian": "directional", **EQUAL},
        {"algorithm": "gauss-seidel", "extrapolation": "quadratic", "control": "error", **CONTROLLED},
        {"algorithm": "newton", "extrapolation": "linear", "control": "error", **CONTROLLED},
        {"algorithm": "gauss-seidel", "extrapolation": "linear", "control": "energy", **CONTROLLED},
    ],
    ids=lambda options: f"{options['algorithm']}-{options.get('extrapolation')}-{options.get('control')}",
)
def test_every_algorithm_goes_on(halves_exact: list[Path], tmp_path: Path, options: dict[str, Any]) -> None:
    call: dict[str, Any] = {"connections": CONNECTIONS, "bonds": ["two.force,one.velocity"], **options}
    whole = cosimulate(halves_exact, **call)
    left = cosimulate(halves_exact, until=0.11, save=tmp_path / "run.zip", **call)
    assert 0.11 <= left.time[-1] < 0.2
    rest = cosimulate(halves_exact, resume=tmp_path / "run.zip", **call)
    same = whole.time >= left.time[-1] if "record_every" not in call else whole.time > left.time[-1]
    np.testing.assert_array_equal(rest.time[-same.sum() :], whole.time[same])
    np.testing.assert_array_equal(rest.values_by_column[-same.sum() :], whole.values_by_column[same])
    for fact in ("steps", "iterations", "rollbacks", "rejected_steps", "unit_steps", "smallest_step", "largest_step"):
        assert getattr(rest, fact) == getattr(whole, fact), fact
    for fact in ("energy_residual", "energy_exchanged", "energy_residual_largest", "notes"):
        assert getattr(rest, fact) == getattr(whole, fact), fact


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel", "fixed-point"])
@pytest.mark.parametrize("extrapolation", ["linear", "quadratic"])
@pytest.mark.parametrize("mixed", [False, True])
def test_inputs_that_units_ask_for_within_steps_go_on(
    halves_exact: list[Path], halves_3: list[Path], tmp_path: Path, algorithm: str, extrapolation: str, mixed: bool
) -> None:
    """The first step after a return is compiled: nothing but the tables says what is set inside of it."""
    units = [halves_3[0], (halves_exact if mixed else halves_3)[1]]
    call: dict[str, Any] = {"connections": CONNECTIONS, "algorithm": algorithm, "extrapolation": extrapolation, **EQUAL}
    whole = cosimulate(units, **call)
    cosimulate(units, until=0.11, save=tmp_path / "run.zip", **call)
    rest = cosimulate(units, resume=tmp_path / "run.zip", **call)
    np.testing.assert_array_equal(rest.values_by_column, whole.values_by_column[whole.time >= rest.time[0]])
    with Cosimulation(units, **call) as run:
        for until in (0.0, 0.01, 0.1, 0.25):
            run.run(until)
        np.testing.assert_array_equal(run.run().values_by_column, whole.values_by_column)


def test_tables_of_a_port_stay_when_others_are_made(halves_3: list[Path]) -> None:
    """Compiled code reads the places of values where the first table says, whatever else is made after it."""
    with closing(Archive(halves_3[0])) as archive, closing(make_instance("one", archive)) as one:
        assert isinstance(one, LibraryInstance)
        port = one.port(["velocity", "position", "speed"])
        first = port.table(FmuCalls())
        port.table(FmuCalls())
        others = [np.full(3, 77) for _ in range(64)]  # take whatever memory was given back
        assert first.groups[0].places[: len(others[0])] == [0, 1, 2]


@pytest.mark.parametrize("suffix", ["csv", "mat", "parquet"])
def test_the_file_goes_on_in_another_process(halves_exact: list[Path], tmp_path: Path, suffix: str) -> None:
    """By the command: rows, steps in pieces of a grid, and a last row that is recorded in any case and then is not."""
    whole, parts, saved = (tmp_path / name for name in (f"whole.{suffix}", f"parts.{suffix}", "run.zip"))
    call = ["-m", "mbsfmu", "cosim", *map(str, halves_exact), "--quiet", "--step", "1e-3"]
    call += ["--stop", "0.5", "--extrapolation", "linear", "--record-every", "7"]
    for connection in CONNECTIONS:
        call += ["--connect", connection]
    for more in (["-o", str(whole)], ["-o", str(parts), "--until", "0.2", "--save", str(saved)]):
        done = run_python(*call, *more)
        assert done.returncode == 0, done.stderr
    first = Trajectory.from_file(parts)
    assert first.time[-1] == pytest.approx(0.2)
    done = run_python(*call, "-o", str(parts), "--resume", str(saved))
    assert done.returncode == 0, done.stderr
    if suffix == "csv":
        assert parts.read_bytes() == whole.read_bytes()
    read, expected = Trajectory.from_file(parts), Trajectory.from_file(whole)
    np.testing.assert_array_equal(read.time, expected.time)
    np.testing.assert_array_equal(read.values_by_column, expected.values_by_column)


def test_isolated_units_go_on_in_this_process(halves_exact: list[Path], tmp_path: Path) -> None:
    call = {"connections": CONNECTIONS, "step": 5e-3, "stop": 0.3, "extrapolation": "linear"}
    whole = cosimulate(halves_exact, **call)
    cosimulate(halves_exact, isolate=["all"], until=0.1, save=tmp_path / "run.zip", **call)
    rest = cosimulate(halves_exact, resume=tmp_path / "run.zip", **call)
    np.testing.assert_array_equal(rest.values_by_column, whole.values_by_column[-len(rest.time) :])


def test_signals_scenarios_and_values_set_by_hand(halves_exact: list[Path], tmp_path: Path) -> None:
    """Events beside the grid; one of them is behind where the run is left."""
    call: dict[str, Any] = {"connections": CONNECTIONS[:1], "step": 0.01, "stop": 1.0, "extrapolation": "linear"}
    call["scenario"] = {0.123: {"two.velocity": 0.1}, 0.678: {"two.velocity": -0.1}}
    results = []
    for path in (None, tmp_path / "run.zip"):
        with Cosimulation(halves_exact, **call) as run:
            run.run(0.5)
            run["two.velocity"] = 0.3
            if path is None:
                results.append(run.run())
                continue
            run.run(0.55)
            run.save(path)
            left = run.time
    rest = cosimulate(halves_exact, resume=tmp_path / "run.zip", **call)
    same = results[0].time >= left
    np.testing.assert_array_equal(rest.time, results[0].time[same])
    np.testing.assert_array_equal(rest.values_by_column, results[0].values_by_column[same])
    with pytest.raises(InputError, match="was saved by a run with the scenario"):
        cosimulate(halves_exact, resume=tmp_path / "run.zip", **{**call, "scenario": {0.9: {"two.velocity": 1.0}}})


def test_grids_in_pieces_go_on(halves_exact: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mbsfmu.cosim.runs.coupled_run_loop._PIECE", 7)
    signal = {"one.force": StepSignal(times=(0.05, 0.123, 0.21), values=(1.0, -1.0, 0.5))}
    call = {"step": 0.01, "stop": 0.3, "inputs": signal, "connections": CONNECTIONS[1:]}
    whole = cosimulate(halves_exact, **call)
    for until in (0.0, 0.05, 0.07, 0.123, 0.125, 0.29):
        cosimulate(halves_exact, until=until, save=tmp_path / "run.zip", **call)
        rest = cosimulate(halves_exact, resume=tmp_path / "run.zip", **call)
        np.testing.assert_array_equal(rest.time, whole.time[-len(rest.time) :])
        np.testing.assert_array_equal(rest.values_by_column, whole.values_by_column[-len(rest.time) :])


def test_what_is_not_gone_on_with(halves_exact: list[Path], foreign: Foreign, tmp_path: Path) -> None:
    path, call = tmp_path / "run.zip", {"connections": CONNECTIONS, "step": 0.01, "stop": 0.5}
    cosimulate(halves_exact, until=0.1, save=path, output=tmp_path / "run.csv", **call)
    for changes, sentence in (
        ({"algorithm": "jacobi"}, "saved by a run with the algorithm gauss-seidel; this one has jacobi"),
        ({"stop": 0.6}, r"saved by a run with the stop time 0\.5 s; this one has 0\.6 s"),
        ({"step": 0.02}, r"saved by a run with the step 0\.01 s; this one has 0\.02 s"),
        ({"connections": CONNECTIONS[:1]}, "saved by a run with the connections one.velocity=two.velocity, two.force="),
        ({"parameters": {"one.force": 2.0}, "connections": CONNECTIONS[1:]}, "saved by a run with the connections"),
        ({"output": tmp_path / "none.csv"}, r"there is no file .*none\.csv that could be continued"),
    ):
        with pytest.raises(InputError, match=sentence):
            cosimulate(halves_exact, resume=path, **{**call, **changes})
    other = tmp_path / "one.fmu"
    other.write_bytes(halves_exact[0].read_bytes())
    with zipfile.ZipFile(other, "a") as archive:
        archive.writestr("resources/more.txt", "more")
    with pytest.raises(InputError, match="saved by a run with the file of one "):
        cosimulate([other, halves_exact[1]], resume=path, **call)
    (tmp_path / "run.csv").write_bytes((tmp_path / "run.csv").read_bytes()[:600])
    with pytest.raises(InputError, match=r"run\.csv has \d rows; it must have the 11 that were recorded"):
        cosimulate(halves_exact, resume=path, output=tmp_path / "run.csv", **call)
    for content in (b"nothing", path.read_bytes()[:500]):
        (tmp_path / "damaged.zip").write_bytes(content)
        with pytest.raises(InputError, match=r"damaged\.zip is no saved run"):
            cosimulate(halves_exact, resume=tmp_path / "damaged.zip", **call)
    with pytest.raises(InputError, match="there is no file"):
        cosimulate(halves_exact, resume=tmp_path / "none.zip", **call)
    with pytest.raises(InputError, match="dahlquist cannot save the state for another process"):
        cosimulate(foreign("dahlquist"), step=0.1, stop=1.0, save=path)


def test_runs_that_have_failed_are_not_saved(foreign: Foreign, tmp_path: Path) -> None:
    with Cosimulation(foreign("failing"), step=0.1, stop=1.0) as run:
        with pytest.raises(CosimulationError):
            run.run()
        with pytest.raises(InputError, match=r"the run has ended at t = 0\.5 s before its time; it cannot be saved"):
            run.save(tmp_path / "run.zip")


def test_nothing_in_a_saved_run_is_executed(halves_exact: list[Path], tmp_path: Path) -> None:
    path, call = tmp_path / "run.zip", {"connections": CONNECTIONS, "step": 0.01, "stop": 0.5}
    cosimulate(halves_exact, until=0.1, save=path, **call)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert json.loads(archive.read("run.json"))["version"] == 1
        for name in names[1:]:
            assert name.endswith((".npy", ".bin"))
            assert not name.endswith(".npy") or b"|O" not in archive.read(name)[:128]
