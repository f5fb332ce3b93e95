"""A user's own kind of systems goes wherever mechanisms and circuits go: electric circuits against closed forms."""

from __future__ import annotations

import io
import logging
import re
import zipfile
from pathlib import Path
from typing import Any, Literal, cast

import fmpy
import matplotlib.pyplot as plt
import numpy as np
import pytest
from click.testing import CliRunner
from electric_circuit import DcMotor, ElectricCircuit, Inductor, Resistor, VoltageSource
from numpy.typing import NDArray

import mbsfmu
from mbsfmu import CoupledModel, DataError, InputError, JointActuator, Mechanism, Revolute, RigidBody
from mbsfmu.cli.commands import cli
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.model.system_kinds import SystemData

FILE = Path(__file__).with_name("electric_circuit.py")
Floats = NDArray[np.float64]
VOLTAGE, WIRE, WINDING, INDUCTANCE, CONSTANT, INERTIA = 12.0, 0.7, 1.3, 0.05, 0.4, 0.02
STOP = 0.4
needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


def coil() -> CoupledModel:
    """Two resistors in parallel, with a coil behind one more: a node between them."""
    circuit = ElectricCircuit(
        sources=(VoltageSource(name="battery", node="plus", voltage=VOLTAGE),),
        resistors=(
            Resistor(name="one", nodes=("plus", "a"), resistance=2.0),
            Resistor(name="leak", nodes=("ground", "a"), resistance=6.0),
            Resistor(name="two", nodes=("a", "b"), resistance=0.5),
        ),
        inductors=(Inductor(name="coil", nodes=("b", "ground"), inductance=0.1),),
    )
    return CoupledModel(name="coil", systems={"circuit": circuit}, stop_time=0.2)


def driven() -> CoupledModel:
    """A flywheel on a hinge that a motor turns from rest, a wire before the motor."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            RigidBody(name="wheel", mass=1.0, inertia=(INERTIA, INERTIA, INERTIA), points={"hub": (0.0, 0.0, 0.0)}),
        ),
        joints=(Revolute(name="hinge", parent="ground.O", child="wheel.hub"),),
        forces=(JointActuator(name="shaft", joint="hinge"),),
    )
    circuit = ElectricCircuit(
        sources=(VoltageSource(name="battery", node="plus", voltage=VOLTAGE),),
        resistors=(Resistor(name="wire", nodes=("plus", "brush"), resistance=WIRE),),
        motors=(
            DcMotor(
                name="motor", nodes=("brush", "ground"), resistance=WINDING, inductance=INDUCTANCE, constant=CONSTANT
            ),
        ),
    )
    return CoupledModel(
        name="driven",
        systems={"mechanism": mechanism, "circuit": circuit},
        connections=(
            ("circuit.motor.torque", "mechanism.shaft.torque"),
            ("mechanism.shaft.angular_velocity", "circuit.motor.angular_velocity"),
        ),
        stop_time=STOP,
    )


def speed(times: Floats) -> Floats:
    """Angular velocity in rad/s from the roots of s² + (R/L) s + k²/(J L), a voltage applied at rest."""
    s, t = np.roots([1.0, (WIRE + WINDING) / INDUCTANCE, CONSTANT**2 / (INERTIA * INDUCTANCE)]).astype(complex)
    return (VOLTAGE / CONSTANT * (1.0 + (t * np.exp(s * times) - s * np.exp(t * times)) / (s - t))).real


TOP = VOLTAGE / CONSTANT


def test_coil_follows_the_step() -> None:
    """Thévenin: 9 V behind 1.5 + 0.5 Ohm, so i = 4.5 A (1 − exp(−20 t))."""
    result = coil().simulation(compiled=False, solver="rodas5p").run(0.2)
    current = 4.5 * (1.0 - np.exp(-20.0 * result.time))
    np.testing.assert_allclose(result["coil.current"], current, atol=1e-7)
    np.testing.assert_allclose(result["a.voltage"], 9.0 - 1.5 * current, atol=1e-6)
    np.testing.assert_allclose(result["b.voltage"], 9.0 - 2.0 * current, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("formulation", ["double-step", "dca", "hdca", "penalty", "dca-alm"])
def test_motor_and_wheel_run_in_all_formulations(formulation: str) -> None:
    """By the trapezoidal rule of 1 ms, whose error is of second order."""
    result = driven().simulation(formulation=formulation, solver="trapezoidal", step=1e-3).run()
    np.testing.assert_allclose(result["shaft.angular_velocity"], speed(result.time), atol=1e-3 * TOP)
    assert np.ptp(result["shaft.angular_velocity"]) > 0.7 * TOP


def test_motor_and_wheel_have_the_eigenvalues_of_the_motor() -> None:
    """Complex for these numbers: a wheel that overshoots."""
    result = driven().simulation(compiled=False, solver="rodas5p").run()
    np.testing.assert_allclose(result["shaft.angular_velocity"], speed(result.time), atol=1e-7 * TOP)
    steady = coil().simulation(compiled=False, solver="rodas5p").run(2.0)
    assert steady["coil.current"][-1] == pytest.approx(4.5)


@needs_compiler
@pytest.mark.parametrize("fmi", [2, 3])
def test_monolithic_fmu(fmi: int, tmp_path: Path) -> None:
    path = mbsfmu.export(driven(), tmp_path, layout="monolithic", backend="native", solver="rodas5p", fmi=fmi)[0]
    found = cast(Any, fmpy.simulate_fmu(str(path), stop_time=STOP, step_size=1e-2, output_interval=1e-2))
    np.testing.assert_allclose(found["shaft.angular_velocity"], speed(found["time"]), atol=1e-6 * TOP)


@needs_compiler
def test_parameter_of_an_element_is_set(tmp_path: Path) -> None:
    path = mbsfmu.export(coil(), tmp_path, layout="monolithic", backend="native", solver="rodas5p")[0]
    given = {"one.resistance": 3.0, "battery.voltage": 24.0}
    found = cast(
        Any, fmpy.simulate_fmu(str(path), stop_time=0.2, step_size=1e-2, output_interval=1e-2, start_values=given)
    )
    rate = (2.0 + 0.5) / 0.1  # 16 V behind 2 + 0.5 Ohm
    current = 6.4 * (1.0 - np.exp(-rate * found["time"]))
    np.testing.assert_allclose(found["b.voltage"], 16.0 - 2.5 * current, atol=1e-5)


@needs_compiler
def test_coupled_fmus_converge_to_the_closed_form(tmp_path: Path) -> None:
    package = mbsfmu.export(driven(), tmp_path, layout="separate", backend="native")[-1]
    assert sorted(path.name for path in tmp_path.glob("*.fmu")) == ["circuit.fmu", "mechanism.fmu"]
    steps, errors = (4e-3, 2e-3, 1e-3), []
    for step in steps:
        run = mbsfmu.cosimulate(package, algorithm="gauss-seidel", extrapolation="linear", step=step, stop=STOP)
        errors.append(np.max(np.abs(run["mechanism.shaft.angular_velocity"] - speed(run.time))) / TOP)
    assert errors[-1] < 1e-3
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] > 1.7


def test_python_fmu_takes_the_file_along(tmp_path: Path) -> None:
    path = mbsfmu.export(driven(), tmp_path, layout="monolithic", backend="python", solver="rodas5p")[0]
    found = cast(Any, fmpy.simulate_fmu(str(path), stop_time=0.1, step_size=1e-2, output_interval=1e-2))
    np.testing.assert_allclose(found["shaft.angular_velocity"], speed(found["time"]), atol=1e-6 * TOP)


def test_files_and_commands_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    driven().to_file("driven.json")
    assert CoupledModel.from_file("driven.json", parts=[FILE]) == driven()
    for command in (["show", "driven.json"], ["simulate", "driven.json", "--stop", "0.1", "-o", "run.csv"]):
        done = CliRunner().invoke(cli, [*command, "--parts", str(FILE), "--quiet"])
        assert done.exit_code == 0, done.output
    found = mbsfmu.Trajectory.from_file("run.csv")
    np.testing.assert_allclose(found["shaft.angular_velocity"], speed(found.time), atol=1e-6 * TOP)


def test_overview_has_its_nodes() -> None:
    assert mbsfmu.overview(coil())["topology"]["circuit"] == {
        "nodes": {
            "plus": {"voltage": "held", "branches": ["one"]},
            "a": {"voltage": "follows", "branches": ["one", "leak", "two"]},
            "b": {"voltage": "follows", "branches": ["two", "coil"]},
        }
    }


def test_command_shows_its_nodes(tmp_path: Path) -> None:
    coil().to_file(tmp_path / "coil.json")
    done = CliRunner().invoke(cli, ["show", str(tmp_path / "coil.json"), "--contents", "--parts", str(FILE), "--quiet"])
    table = done.output.partition("nodes of circuit")[2]
    rows = [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in table.splitlines()]
    assert ["node", "voltage", "branches"] in rows
    assert ["a", "follows", "one, leak, two"] in rows


def test_icon_is_its_own(tmp_path: Path) -> None:
    """Motors are red: that of a circuit alone has red in it, that of a coil has none, and neither is a box."""
    red = []
    for model, system in ((driven(), "circuit"), (coil(), "circuit")):
        mbsfmu.export(model, tmp_path, layout="separate", backend="python", force=True)
        with zipfile.ZipFile(tmp_path / f"{system}.fmu") as archive:
            pixels = plt.imread(io.BytesIO(archive.read("model.png")), format="png")
        seen = pixels[..., 3] > 0.5
        red.append(np.sum(seen & (pixels[..., 0] > 0.6) & (pixels[..., 1] < 0.4)))
        assert np.sum(seen & (pixels[..., 2] > 0.6)) > 100  # branches without motors
    assert red[0] > 100
    assert red[1] == 0


def test_motor_that_turns_something_needs_its_speed() -> None:
    model = driven()
    with pytest.raises(DataError, match=r"nothing drives 'circuit\.motor\.angular_velocity', though motor"):
        CoupledModel.from_dict({**model.to_dict(), "connections": [model.connections[0]]})
    turning = {"circuit.motor.angular_velocity": {"type": "steps", "times": [0.0], "values": [1.0]}}
    CoupledModel.from_dict({**model.to_dict(), "connections": [model.connections[0]], "signals": turning})


def test_wrong_circuits_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataError, match=r"node 'b' is joined to no source and no ground by resistors"):
        ElectricCircuit(inductors=(Inductor(name="coil", nodes=("b", "ground"), inductance=0.1),))
    with pytest.raises(DataError, match="electric-circuits"):
        CoupledModel.from_dict({"name": "x", "systems": {"c": {"type": "electric-circuits"}}})
    model = coil().to_dict()
    model["systems"]["circuit"]["resistors"][1]["resistance"] = 1e13
    with caplog.at_level(logging.WARNING):
        CoupledModel.from_dict(model).simulation(compiled=False)
    assert "circuit: resistor 'leak' has 1e+13 Ohm, more than insulators" in caplog.text
    with pytest.raises((DataError, InputError), match=r"there is no output 'circuit\.motor\.torqu'"):
        CoupledModel.from_dict(
            {**driven().to_dict(), "connections": [["circuit.motor.torqu", "mechanism.shaft.torque"]]}
        ).system()


def test_class_without_equations_is_refused() -> None:
    with pytest.raises(DataError, match="class Nothing: a system has a function make_system"):

        class Nothing(SystemData):  # pyright: ignore[reportUnusedClass]
            type: Literal["nothing"] = "nothing"
