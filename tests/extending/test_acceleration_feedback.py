"""Forces that follow accelerations at once: they are inertia, in all formulations; what is not linear is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from importer import Importer
from looping import Feeling
from mechanisms import slider_crank
from oscillator_in_closed_form import DAMPING, MASS, START, STIFFNESS, oscillator
from scipy.linalg import expm

import mbsfmu
from mbsfmu import CoupledModel, DataError
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.parts import JointDrive

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
ADDED, LAG = 1.5, 0.01
ALL = [
    *((each, "trapezoidal") for each in ("double-step", "penalty", "dca-alm")),
    *((each, "rk4") for each in ("double-step", "dca", "hdca", "dca-alm")),
    *((each, "rodas5p") for each in ("double-step", "hdca")),
]


def felt(**changed: float | str) -> CoupledModel:
    lines = (("mechanism.slider.acceleration", "feeling.acceleration"), ("feeling.force", "mechanism.motor.force"))
    systems = {"mechanism": oscillator(driven=False).systems["mechanism"], "feeling": Feeling(**changed)}
    return CoupledModel(name="felt", systems=systems, connections=lines)


def closed_form(times: np.ndarray, added: float = ADDED, lag: float = LAG) -> np.ndarray:
    """x, v, a and what follows a, which the force is not taken from, shape (4, number of times)."""
    mass = MASS + added
    acceleration = np.array([-STIFFNESS / mass, -DAMPING / mass, 0.0])
    matrix = np.array([[0.0, 1.0, 0.0], acceleration, (acceleration - [0.0, 0.0, 1.0]) / lag])
    states = np.array([expm(matrix * time) @ [START, 1.0, 0.0] for time in times]).T
    return np.vstack([states[:2], acceleration @ states, states[2]])


def lagging(times: np.ndarray) -> np.ndarray:
    """x, v and what follows a, which the force is taken from."""
    acceleration = np.array([-STIFFNESS, -DAMPING, -ADDED]) / MASS
    matrix = np.array([[0.0, 1.0, 0.0], acceleration, (acceleration - [0.0, 0.0, 1.0]) / LAG])
    return np.array([expm(matrix * time) @ [START, 1.0, 0.0] for time in times]).T


@pytest.mark.parametrize(("formulation", "solver"), ALL)
def test_a_force_against_the_acceleration_is_a_mass(formulation: str, solver: str) -> None:
    """In the equations of motion, in rates that depend on the acceleration, and in the work that is done."""
    result = felt().simulation(formulation=formulation, solver=solver, step=1e-3).run(0.3, output_step=0.1)
    x, v, a, followed = closed_form(result.time)
    # One that follows it within 10 ms, by steps of 1 ms.
    tolerance, coarse = {"trapezoidal": (1e-5, 2e-2), "rk4": (1e-9, 1e-4), "rodas5p": (1e-5, 1e-4)}[solver]
    np.testing.assert_allclose(result["slider.displacement"], x, atol=tolerance)
    np.testing.assert_allclose(result["slider.velocity"], v, atol=10 * tolerance)
    np.testing.assert_allclose(result["slider.acceleration"], a, atol=100 * tolerance)
    np.testing.assert_allclose(result["force"], -ADDED * result["slider.acceleration"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(result["followed"], followed, atol=coarse)
    work = -0.5 * ADDED * (v**2 - 1.0)
    np.testing.assert_allclose(result["energy.work"], work, atol=20 * tolerance)
    assert np.max(np.abs(result["energy.drift"])) < 20 * tolerance


@pytest.mark.parametrize(
    ("formulation", "solver"), [("double-step", "rk4"), ("double-step", "rodas5p"), ("hdca", "trapezoidal")]
)
def test_a_lag_between_acceleration_and_force(formulation: str, solver: str) -> None:
    result = felt(how="lagging").simulation(formulation=formulation, solver=solver, step=1e-3).run(0.3, output_step=0.1)
    x, v, followed = lagging(result.time)
    tolerance = {"trapezoidal": 1e-4, "rk4": 1e-7, "rodas5p": 1e-5}[solver]
    np.testing.assert_allclose(result["slider.displacement"], x, atol=tolerance)
    np.testing.assert_allclose(result["slider.velocity"], v, atol=10 * tolerance)
    np.testing.assert_allclose(result["followed"], followed, atol=1000 * tolerance)


@pytest.mark.parametrize("formulation", ["double-step", "penalty", "hdca", "dca-alm"])
@needs_compiler
def test_compiled_runs_are_those_of_the_interpreter(formulation: str) -> None:
    for solver in {"penalty": ["trapezoidal"], "double-step": ["rodas5p", "rk4"]}.get(formulation, ["rk4"]):
        one, other = (
            felt().simulation(formulation=formulation, solver=solver, compiled=compiled).run(0.05, output_step=0.01)
            for compiled in (False, True)
        )
        for name in ("slider.displacement", "slider.acceleration", "followed", "energy.work"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-10, atol=1e-12)


@needs_compiler
def test_a_unit_feels_it_from_its_start_on(tmp_path: Path) -> None:
    (path,) = mbsfmu.export(felt(), tmp_path, layout="monolithic", solver="rk4", step=1e-3)
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running(**{"feeling.inertia": 3.0})
    assert importer.get(slave, "slider.acceleration") == pytest.approx(closed_form(np.zeros(1), 3.0)[2, 0], rel=1e-12)
    slave.doStep(0.0, 0.1)
    assert importer.get(slave, "slider.displacement") == pytest.approx(
        closed_form(np.array([0.1]), 3.0)[0, 0], rel=1e-10
    )


def test_what_is_not_linear_is_refused_by_name() -> None:
    told = (
        r"what drives 'feeling.acceleration' depends on accelerations, and forces depend on it at once in a way that "
        "is not linear; let it follow from a state, as of a lag of first order"
    )
    with pytest.raises(DataError, match=told):
        felt(how="bent").system()


@pytest.mark.parametrize("inertia", [-MASS, -1.1 * MASS])
def test_forces_that_take_all_inertia_away_are_refused(inertia: float) -> None:
    with pytest.raises(DataError, match=r"feeling.acceleration.* leave no inertia"):
        felt(inertia=inertia).simulation()


def test_a_loop_whose_slider_brakes_its_crank() -> None:
    """M is not symmetric, and changes with the motion: formulations that have nothing in common but the model agree."""
    plain = slider_crank()
    mechanism = plain.systems["mechanism"]
    driven = mechanism.model_copy(update={"forces": (*mechanism.forces, JointDrive(name="motor", joint="A"))})
    lines = (("mechanism.slider.acceleration", "feeling.acceleration"), ("feeling.torque", "mechanism.motor.torque"))
    systems = {"mechanism": driven, "feeling": Feeling(turning=True, inertia=0.02)}
    model = CoupledModel(name="braked", systems=systems, connections=lines)
    ends, free = [], plain.simulation(solver="rk4", step=1e-3).run(0.2)["crank.angle"][-1]
    runs = [(each, "rk4", 1e-3) for each in ("double-step", "dca", "hdca", "dca-alm")]
    for formulation, solver, step in (*runs, ("penalty", "trapezoidal", 5e-4)):
        result = model.simulation(formulation=formulation, solver=solver, step=step).run(0.2)
        ends.append(result["crank.angle"][-1])
        assert np.max(np.abs(result["energy.drift"])) < 1e-3 * np.max(result["energy.kinetic"])
        np.testing.assert_allclose(result["torque"], -0.02 * result["slider.acceleration"], rtol=1e-8, atol=1e-8)
    assert abs(ends[0] - free) > 1e-2
    np.testing.assert_allclose(ends[1:4], ends[0], atol=1e-7)
    np.testing.assert_allclose(ends[4], ends[0], atol=1e-4)
