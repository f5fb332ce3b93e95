"""Blocks of a user's file, continuous and sampled, go wherever systems go, and do what linear algebra says."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import fmpy
import numpy as np
import pytest
from extending.controllers import Pid
from oscillator_in_closed_form import DAMPING, MASS, SPEED, START, STIFFNESS, oscillator
from scipy.linalg import expm
from started import run_python

import mbsfmu
from mbsfmu import CoupledModel, DataError, StepSignal
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.tracing.workspace import Floats

FILE = Path(__file__).with_name("controllers.py")
PROPORTIONAL, INTEGRAL, DERIVATIVE, FILTER = 40.0, 60.0, 8.0, 0.02
WANTED, JUMP = 0.5, 0.3171
"""Setpoint in m from a time in s on that is off every grid; zero before."""
LOOP = (("mechanism.slider.displacement", "controller.measured"), ("controller.command", "mechanism.motor.force"))

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


def controlled() -> CoupledModel:
    """The oscillator whose position a PID controller brings to a setpoint."""
    pid = Pid(proportional=PROPORTIONAL, integral=INTEGRAL, derivative=DERIVATIVE, filter_time=FILTER)
    return CoupledModel(
        name="controlled",
        systems={"mechanism": oscillator(driven=False).systems["mechanism"], "controller": pid},
        connections=LOOP,
        signals={"controller.setpoint": StepSignal(times=(JUMP,), values=(WANTED,))},
        step=1e-3,
    )


def closed_loop(times: Floats) -> tuple[Floats, Floats]:
    """Displacement and command over time, from the matrix exponential of the closed loop.

    The states are displacement, velocity, integral and filtered error, and the setpoint, which stays.
    """
    error, filtered = np.array([-1.0, 0.0, 0.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    slope = (error - filtered) / FILTER
    command = PROPORTIONAL * error + INTEGRAL * np.eye(5)[2] + DERIVATIVE * slope
    force = command - STIFFNESS * np.eye(5)[0] - DAMPING * np.eye(5)[1]
    matrix = np.array([np.eye(5)[1], force / MASS, error, slope, np.zeros(5)])
    start = np.array([START, SPEED, 0.0, 0.0, 0.0])
    after = expm(matrix * JUMP) @ start
    after[4] = WANTED
    states = np.array([expm(matrix * t) @ start if t < JUMP else expm(matrix * (t - JUMP)) @ after for t in times])
    return states[:, 0], states @ command


# -- physics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        ({"solver": "rk45", "relative_tolerance": 1e-10, "absolute_tolerance": 1e-10}, 1e-8),
        ({"solver": "rk4", "step": 1e-3}, 1e-6),
        ({"solver": "trapezoidal", "step": 2e-3}, 1e-4),
        ({"solver": "trapezoidal", "step": 5e-4}, 6.5e-6),
        ({"solver": "trapezoidal", "step": 2e-3, "formulation": "penalty"}, 1e-4),
        ({"solver": "trapezoidal", "step": 2e-3, "formulation": "dca"}, 1e-4),
        ({"solver": "trapezoidal", "step": 2e-3, "formulation": "hdca"}, 1e-4),
        ({"solver": "trapezoidal", "step": 2e-3, "formulation": "dca-alm"}, 1e-4),
    ],
)
def test_continuous_control_is_the_closed_loop_of_linear_algebra(
    options: dict[str, float | str], tolerance: float
) -> None:
    result = controlled().simulation(compiled=False, **options).run(1.5, output_step=0.01)
    displacement, command = closed_loop(result.time)
    assert np.max(np.abs(result["slider.displacement"] - displacement)) < tolerance
    assert np.max(np.abs(result["command"] - command)) < 1e3 * tolerance


# -- every path ---------------------------------------------------------------------------------------------


@needs_compiler
def test_compiled_runs_are_those_of_the_interpreter() -> None:
    one, other = (controlled().simulation(compiled=compiled).run(1.0) for compiled in (True, False))
    for name in one.names:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-11, atol=1e-11)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("controlled") / "controlled.json"
    controlled().to_file(path)
    return path


def test_json_tells_blocks_by_their_type(file: Path, tmp_path: Path) -> None:
    data = json.loads(file.read_text())
    assert data["systems"]["controller"] == {
        "type": "pid",
        "proportional": PROPORTIONAL,
        "integral": INTEGRAL,
        "derivative": DERIVATIVE,
        "filter_time": FILTER,
    }
    assert CoupledModel.from_file(file) == controlled()
    data["systems"]["controller"]["type"] = "other-pid"
    path = tmp_path / "other.json"
    path.write_text(json.dumps(data))
    with pytest.raises(DataError, match=r"systems\.controller\.type is 'other-pid'; .*--parts FILE"):
        CoupledModel.from_file(path)
    other = tmp_path / "other_pid.py"
    other.write_text(FILE.read_text().replace('"pid"', '"other-pid"'))
    assert CoupledModel.from_file(path, parts=[other]).systems["controller"].type == "other-pid"


def test_command_line_runs_blocks_of_a_file(file: Path, tmp_path: Path) -> None:
    def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_python("-m", "mbsfmu", "simulate", str(file), *arguments)

    refused = simulate("--stop", "0.1")
    assert refused.returncode == 2
    assert "systems.controller.type is 'pid'" in refused.stderr
    done = simulate("--parts", str(FILE), "--stop", "1.0", "--step", "1e-3", "-o", str(tmp_path / "out.csv"))
    assert done.returncode == 0, done.stderr
    table = mbsfmu.Trajectory.from_file(tmp_path / "out.csv")
    assert np.max(np.abs(table["slider.displacement"] - closed_loop(table.time)[0])) < 3e-5


@pytest.mark.parametrize("backend", [pytest.param("native", marks=needs_compiler), "python"])
@pytest.mark.parametrize("solver", ["trapezoidal", "rk45", "rodas5p"])
def test_units_are_the_closed_loop(tmp_path: Path, backend: str, solver: str) -> None:
    (path,) = mbsfmu.export(controlled(), tmp_path, layout="monolithic", backend=backend, solver=solver)
    with zipfile.ZipFile(path) as archive:
        assert ("resources/parts/controllers.py" in archive.namelist()) == (backend == "python")
    result = fmpy.simulate_fmu(str(path), stop_time=1.0, step_size=1e-2, output_interval=1e-2)
    displacement, command = closed_loop(result["time"])
    assert np.max(np.abs(result["slider.displacement"] - displacement)) < 3e-5
    assert np.max(np.abs(result["controller.command"] - command)) < 3e-2
    description = fmpy.read_model_description(str(path))
    given = {variable.name: variable for variable in description.modelVariables}
    assert (given["controller.command"].causality, given["controller.command"].unit) == ("output", "N")
    gain = given["controller.proportional"]
    assert (gain.causality, gain.variability) == ("parameter", "tunable")
    assert (given["controller.filter_time"].variability, given["controller.filter_time"].unit) == ("fixed", "s")


def test_dependencies_are_true() -> None:
    """Of the controller alone: the command has direct feed-through, states have none."""
    alone = controlled().simulation_of("controller")
    assert set(alone.dependencies["command"]) == {"setpoint", "measured"}
    assert alone.dependencies["sum"] == ()
    assert alone.dependencies["error"] == ("setpoint", "measured")
    assert set(alone.initial_dependencies["command"]) == {
        "proportional", "integral", "derivative", "filter_time", "setpoint", "measured",
    }  # fmt: skip
    whole = controlled().simulation(compiled=False)
    assert whole.dependencies["controller.command"] == ("controller.setpoint",)


@needs_compiler
def test_coupled_units_come_near_the_closed_loop(tmp_path: Path) -> None:
    paths = mbsfmu.export(controlled(), tmp_path, layout="separate")
    package = next(path for path in paths if path.suffix == ".ssp")
    assert {path.name for path in paths} == {"mechanism.fmu", "controller.fmu", "controlled.ssp"}
    result = mbsfmu.cosimulate(package, algorithm="fixed-point", step=1e-4, stop=0.6)
    displacement, command = closed_loop(result.time)
    assert np.max(np.abs(result["mechanism.slider.displacement"] - displacement)) < 1e-3
    assert np.max(np.abs(result["controller.command"] - command)) < 0.1


# -- refusals -----------------------------------------------------------------------------------------------


def test_what_is_no_system_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"'type' \(a system or block\), 'components' \(a circuit\) or 'bodies' \(a mechanism\)"
    ):
        CoupledModel.from_dict({"name": "m", "systems": {"a": {"gain": 1.0}}})


def test_blocks_that_trace_wrongly_are_refused(tmp_path: Path) -> None:
    line = 'error = now["setpoint"] - now["measured"]'
    (tmp_path / "branching.py").write_text(FILE.read_text().replace(line, f"{line}\n        if error > 0.0: pass", 1))
    data = controlled().to_dict()
    path = tmp_path / "model.json"
    path.write_text(json.dumps(data))
    with pytest.raises(DataError, match=r"pid 'controller' is refused: .*branching.py, line \d+ \(`if error > 0\.0"):
        CoupledModel.from_file(path, parts=[tmp_path / "branching.py"])
