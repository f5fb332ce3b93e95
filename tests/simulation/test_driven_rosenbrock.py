"""Steps of machines that prescribed motion moves: closed forms, tight runs of others, C as Python."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from driven_crank import START, driven_crank, in_closed_form
from numpy.typing import NDArray

from mbsfmu import Beam, CoupledModel, Mechanism, Result, Revolute, SineSignal
from mbsfmu.formulations.formulation import IterationMatrixForm

Floats = NDArray[np.float64]
FORMULATIONS = ("double-step", "dca", "hdca")
LOOK = ("weight.angle", "weight.angular_acceleration", "slider.acceleration", "motor.torque", "energy.work")


def crank_with_a_weight() -> CoupledModel:
    """A slider-crank whose crank swings as it is told, with a bar that hangs from the slider: one degree of freedom."""
    crank = cast("Mechanism", driven_crank().systems["mechanism"])
    mechanism = Mechanism(
        ground=crank.ground,
        bodies=(*crank.bodies, Beam(name="weight", length=0.5, mass=4.0)),
        joints=(*crank.joints, Revolute(name="D", parent="slider.centre", child="weight.start", angle=-1.0)),
        constraints=crank.constraints,
    )
    swing = SineSignal(amplitude=0.6, frequency=0.9, phase=0.7, offset=START)
    return CoupledModel(
        name="crank-with-a-weight", systems={"mechanism": mechanism}, signals={"mechanism.motor.position": swing}
    )


def far_from(expected: Result, result: Result) -> Floats:
    """Return the largest errors as shares of the ranges."""
    return np.array([np.max(np.abs(result[name] - expected[name])) / np.ptp(expected[name]) for name in LOOK])


@pytest.fixture(scope="module")
def expected() -> Result:
    """By an explicit method of order eight on the reduced equations."""
    model, tight = crank_with_a_weight(), 1e-11
    return model.simulation(solver="dop853", relative_tolerance=tight, absolute_tolerance=tight, step=0.02).run(1.0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_errors_fall_with_the_tolerance(formulation: str, expected: Result) -> None:
    """Where the time derivative of the prescribed motion is missing, methods of order five are of order two."""
    errors, steps = list[Floats](), list[int]()
    for tolerance in (1e-5, 1e-7, 1e-9):
        simulation = crank_with_a_weight().simulation(
            formulation=formulation,
            solver="rodas5p",
            relative_tolerance=tolerance,
            absolute_tolerance=tolerance,
            step=0.02,
            **({"stabilisation": 20.0} if formulation in ("dca", "hdca") else {}),
        )
        result = simulation.run(1.0)
        errors.append(far_from(expected, result))
        steps.append(result.statistics.steps)
    assert (errors[2] < 1e-7).all()
    order = np.log(errors[0].max() / errors[2].max()) / np.log(steps[2] / steps[0])
    assert order > 3.5


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_crank_at_a_constant_speed(formulation: str) -> None:
    """All motion is prescribed: only the work of the drive has an error to choose steps by."""
    simulation = driven_crank().simulation(
        formulation=formulation,
        solver="rodas5p",
        relative_tolerance=1e-8,
        absolute_tolerance=1e-8,
        step=0.05,
        compiled=False,
    )
    result = simulation.run(0.5)
    closed = in_closed_form(result.time)
    for name in ("slider.displacement", "slider.acceleration", "motor.torque"):
        np.testing.assert_allclose(result[name], closed[name], rtol=0, atol=1e-7 * np.max(np.abs(closed[name])))
    work = closed["energy.kinetic"] - closed["energy.kinetic"][0]
    np.testing.assert_allclose(result["energy.work"], work, rtol=0, atol=2e-7 * np.ptp(work))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("formulation", [*FORMULATIONS, "dca-alm"])
def test_compiled_steps_are_those_of_python(formulation: str, expected: Result) -> None:
    """And both are right, with dca-alm, too, whose code takes long to trace."""
    runs = []
    for compiled in (True, False):
        chosen = {"stabilisation": 20.0} if formulation in ("dca", "hdca") else {}
        simulation = crank_with_a_weight().simulation(
            formulation=formulation, solver="rodas5p", step=0.02, compiled=compiled, **chosen
        )
        runs.append(simulation.run(1.0))
    assert (far_from(expected, runs[0]) < 1e-5).all()
    assert runs[0].statistics.steps == runs[1].statistics.steps
    for name in LOOK:
        np.testing.assert_allclose(runs[0][name], runs[1][name], rtol=0, atol=1e-10 * np.ptp(runs[1][name]))


def test_penalty_of_compiled_runs_is_of_second_order(expected: Result) -> None:
    """The work of the drive too: what a projection leaves unbalanced, multipliers take up."""
    errors = []
    for step in (1e-2, 5e-3):
        simulation = crank_with_a_weight().simulation(formulation="penalty", step=step)
        errors.append(far_from(expected, simulation.run(1.0, output_step=0.02)))
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), 2.0, atol=0.1)


def test_drift_is_the_derivative_of_the_rates_by_time() -> None:
    """By central differences along the prescribed motion, the work of the drive included; independent rates stay."""
    simulation = crank_with_a_weight().simulation(formulation="double-step", solver="rodas5p", compiled=False)
    simulation.run(0.3, output_step=0.3)
    form = simulation.formulation.explicit_form(simulation._started())
    assert isinstance(form, IterationMatrixForm)
    run_loop, values, small = simulation.run_loop.inputs.over(0.0), form.start, 1e-5
    form.rates(values, run_loop(0.3))
    drift = form.drift(run_loop.slopes(0.3))
    ends = [form.rates(values, run_loop(0.3 + step)) for step in (-small, small)]
    found = (ends[1] - ends[0]) / (2.0 * small)
    assert np.abs(found[2:]).max() > 1.0  # behind one coordinate and its rate: work
    np.testing.assert_allclose(drift, found, rtol=1e-6, atol=1e-7 * np.abs(found).max())


def test_slopes_of_the_work_of_the_drive() -> None:
    """Work depends on the multipliers, and these on the free coordinates, which the derivatives have to know."""
    simulation = crank_with_a_weight().simulation(formulation="double-step", solver="rodas5p", compiled=False)
    simulation.run(0.3, output_step=0.3)
    form, inputs = simulation.formulation.explicit_form(simulation._started()), simulation.run_loop.effective.copy()
    assert isinstance(form, IterationMatrixForm)
    values = form.start
    form.rates(values, inputs)
    jacobian = form.jacobian()
    for column in range(jacobian.shape[1]):
        move = 1e-6 * np.eye(len(values))[column]
        found = (form.rates(values + move, inputs) - form.rates(values - move, inputs))[form.chained :] / 2e-6
        np.testing.assert_allclose(jacobian[:, column], found, atol=1e-7 * (1.0 + np.abs(found).max()))
