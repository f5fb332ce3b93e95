"""SSP packages of ours: written so that others read them, run by the master, and refused where wrong."""

from __future__ import annotations

import io
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fmpy.ssp.ssd import read_ssd

import mbsfmu
from mbsfmu import CosimulationError, InputError, cosimulate
from mbsfmu.cosim import Connection, read_ssp
from mbsfmu.model.machine import Carried, Machine, followed_inside


def test_package_is_valid_and_complete(four_bar_package: Path, tmp_path: Path) -> None:
    description = read_ssd(str(four_bar_package), validate=True)
    assert [element.name for element in description.system.elements] == ["mechanism", "circuit"]
    graph = read_ssp(four_bar_package, tmp_path)
    assert {str(connection) for connection in graph.connections} == {
        "circuit.cylinder.force=mechanism.cylinder.force",
        "mechanism.cylinder.length=circuit.cylinder.length",
        "mechanism.cylinder.velocity=circuit.cylinder.velocity",
        "mechanism.cylinder.static_force=circuit.cylinder.initial_load",
    }
    assert graph.stop == 10.0


def test_connected_parameter_is_passed_on(four_bar_package: Path) -> None:
    """A heavier boom needs more pressure: the circuit learns it through the connection alone."""
    result = cosimulate(four_bar_package, step=1e-3, stop=0.05, parameters={"mechanism.boom.mass": 400.0})
    expected = np.sqrt(2.0) * 9.81 * (3 * 400.0 + 2 * 35.0 + 50.0)
    assert result["cylinder.force"][0] == pytest.approx(expected, rel=1e-12)
    assert np.ptp(result["cylinder.length"]) < 1e-12


def test_residual_energy_falls_with_the_step(four_bar_package: Path) -> None:
    signal = {"circuit.valve.command": lambda _: 10.0}
    residuals = [
        cosimulate(four_bar_package, step=step, stop=0.2, inputs=signal).energy_residual_max for step in (4e-3, 2e-3)
    ]
    assert residuals[0] is not None
    assert residuals[1] is not None
    assert 0.0 < residuals[1] < 0.7 * residuals[0]


def test_divergence_is_told_and_the_record_kept(four_bar_package: Path) -> None:
    with pytest.raises(CosimulationError, match=r"at t = \d.* fmi2DoStep gives discard: the step at t = ") as caught:
        cosimulate(
            four_bar_package,
            step=0.1,
            stop=20.0,
            inputs={"circuit.valve.command": lambda _: 10.0},
            algorithm="jacobi",
        )
    assert 0.0 < caught.value.result.time[-1] < 20.0


def test_coupled_run_nears_the_monolithic_one(four_bar_package: Path) -> None:
    reference = mbsfmu.models.four_bar().simulation().run(1.2)
    result = cosimulate(four_bar_package, step=1e-3, stop=1.2, algorithm="gauss-seidel", extrapolation="linear")
    error = np.max(np.abs(result["cylinder.length"] - reference["cylinder.length"]))
    assert error < 1e-3 * np.ptp(reference["cylinder.length"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"algorithm": "euler"}, "there is no algorithm 'euler'"),
        ({"extrapolation": "cubic"}, "there is no extrapolation 'cubic'"),
        ({"order": ["circuit"]}, "it must name each FMU once"),
        ({"step": 0.0}, "the step is 0 s; it must be greater than 0 s"),
        ({"stop": -1.0}, "the stop time is -1 s"),
        ({"connections": ["circuit.cylinder.force"]}, "it must read a.y=b.u"),
        ({"connections": ["pump.flow=circuit.valve.command"]}, "there is no FMU 'pump'"),
        ({"connections": ["circuit.nothing=mechanism.cylinder.force"]}, "circuit has no variable 'nothing'"),
        (
            {"connections": ["mechanism.boom.angle=circuit.valve.command"]},
            "is in rad, but valve.command is in V",
        ),
        ({"connections": ["circuit.cylinder.force=mechanism.cylinder.force"]}, "is driven twice"),
        ({"inputs": {"circuit.cylinder.length": float}}, "driven by a connection and by a signal"),
        ({"inputs": {"circuit.cylinder.force": float}}, "is no input; a signal cannot drive it"),
        ({"parameters": {"circuit.weight": 1.0}}, "circuit has no variable 'weight'"),
    ],
)
def test_refusals(four_bar_package: Path, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        cosimulate(four_bar_package, **options)


def test_an_input_that_follows_a_signal_inside_its_unit_was_not_forgotten(four_bar_package: Path) -> None:
    assert list(mbsfmu.models.four_bar().signals) == ["circuit.valve.command"]
    assert cosimulate(four_bar_package, step=1e-3, stop=2e-3).undriven == []


def test_signals_inside_units_are_found_by_the_names_of_their_inputs() -> None:
    """Of the whole, variables have their system in the name where another system has one of that name."""
    text = Carried(Machine.of(mbsfmu.models.four_bar())).text()
    assert followed_inside(text, ["valve.command", "valve.other"]) == {"valve.command"}
    names = ["circuit.valve.command", "mechanism.valve.command", "valve.command"]
    assert followed_inside(text, names) == {"circuit.valve.command"}
    assert followed_inside("of somebody else", names) == followed_inside("[]", names) == set()


def test_a_unit_that_is_damaged_is_called_by_its_file_in_the_package(four_bar_package: Path, tmp_path: Path) -> None:
    package = tmp_path / "damaged.ssp"
    with zipfile.ZipFile(four_bar_package) as whole, zipfile.ZipFile(package, "w") as damaged:
        for name in whole.namelist():
            content = whole.read(name)
            damaged.writestr(name, without_libraries(content) if name.endswith("circuit.fmu") else content)
    with pytest.raises(InputError) as caught:
        cosimulate(package, step=1e-3, stop=2e-3)
    assert str(caught.value).startswith(f"{package}/resources/circuit.fmu has no binary for ")


@pytest.mark.skipif(sys.platform != "linux", reason="Wine is for Linux here")
def test_a_unit_for_windows_alone_says_how_it_runs(
    four_bar_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(four_bar_package) as package:
        content = without_libraries(package.read("resources/circuit.fmu"))
    for_windows, newer = tmp_path / "windows.fmu", tmp_path / "newer.fmu"
    for path in (for_windows, newer):
        path.write_bytes(content)
    with zipfile.ZipFile(for_windows, "a") as archive:
        archive.writestr("binaries/win64/circuit.dll", b"")
    with zipfile.ZipFile(newer, "a") as archive:
        archive.writestr("binaries/win32/circuit.dll", b"")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"has no binary for linux64; it has win64; with Wine .* it runs here$"):
        cosimulate(for_windows)
    with pytest.raises(InputError, match=r"it has win32; of FMUs for Windows, those of FMI 2\.0 .* win64 run"):
        cosimulate(newer)


def without_libraries(unit: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(unit)) as whole, zipfile.ZipFile(made, "w") as left:
        for name in whole.namelist():
            if not name.startswith("binaries/"):
                left.writestr(name, whole.read(name))
    return made.getvalue()


def test_files_that_are_none(tmp_path: Path) -> None:
    text = tmp_path / "text.ssp"
    text.write_text("no archive")
    with pytest.raises(InputError, match=r"is no SSP package"):
        cosimulate(text)
    with pytest.raises(InputError, match="there is no file"):
        cosimulate(tmp_path / "nothing.fmu", step=1.0, stop=1.0)
    text.unlink()
    with pytest.raises(InputError, match="holds 0 SSP files"):
        cosimulate(tmp_path)


def test_connection_reads_as_written() -> None:
    assert Connection.parse("a.x.y = b.u") == Connection(("a", "x.y"), ("b", "u"))
    assert Connection.of(("a.x.y", "b.u")) == Connection.of("a.x.y=b.u") == Connection(("a", "x.y"), ("b", "u"))
    for wrong in (("a.y", "b.u", "c"), ("a.y", 1), None):
        with pytest.raises(InputError, match=r"must read a\.y=b\.u, or be a pair"):
            Connection.of(wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"^source = 'a\.y' of a connection must be \(element, variable\)$"):
        Connection(source="a.y", target="b.u")  # pyright: ignore[reportArgumentType] - two letters of it were taken
