"""One suite for all solvers: closed forms at their tolerances, orders, jumps of inputs, steps that cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oscillator_in_closed_form import DAMPING, JUMPS, MASS, SPEED, START, STIFFNESS, displacement, motion, oscillator
from scipy.linalg import expm

from mbsfmu import CoupledModel, SimulationError, SineSignal
from mbsfmu.formulations.double_step import DoubleStepForm
from mbsfmu.formulations.formulation import StepProblem
from mbsfmu.integration import explicit, implicit
from mbsfmu.integration.explicit import CountedRates, StageError
from mbsfmu.integration.implicit import NewtonSolution, solve
from mbsfmu.integration.rosenbrock import CHOSEN
from mbsfmu.integration.solvers import solver_names
from mbsfmu.models import built_in, pendulum
from mbsfmu.parts import Integrator
from mbsfmu.rules import rule_names
from mbsfmu.simulation.run_result import Result
from mbsfmu.tracing.workspace import Floats

RULES = ("trapezoidal", "generalized-alpha", "bdf2")
FIXED = {**dict.fromkeys(RULES, 2), "rk4": 4}
"""Orders of the solvers of equal steps."""
SOLVERS = (*RULES, *(name for name in solver_names() if name not in (*rule_names(), CHOSEN)))
ADAPTIVE = tuple(name for name in SOLVERS if name not in FIXED)
STOP = 1.5


DRIVEN = [False, True]


def tolerances(solver: str, tolerance: float) -> dict[str, float]:
    """Options of solvers that have them."""
    return {} if solver in FIXED else {"relative_tolerance": tolerance, "absolute_tolerance": tolerance}


def run(
    driven: bool, solver: str, tolerance: float = 1e-6, step: float = 0.05, formulation: str = "double-step"
) -> float:
    """The largest error of a run against the closed form in m."""
    options: dict[str, Any] = {"solver": solver, "step": step, "formulation": formulation}
    options |= tolerances(solver, tolerance)
    result = oscillator(driven=driven).simulation(compiled=False, **options).run(STOP, output_step=0.05)
    return float(np.max(np.abs(result["slider.displacement"] - displacement(result.time, driven=driven))))


@pytest.mark.parametrize("driven", DRIVEN)
@pytest.mark.parametrize("formulation", ["double-step", "dca"])
@pytest.mark.parametrize("solver", FIXED)
def test_order(solver: str, formulation: str, driven: bool) -> None:
    """Jumps off the grid leave the order as it is: steps end there."""
    errors = [run(driven, solver, step=step, formulation=formulation) for step in (0.01, 0.005, 0.0025)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, FIXED[solver], atol=0.1)


@pytest.mark.parametrize("driven", DRIVEN)
@pytest.mark.parametrize("solver", ADAPTIVE)
def test_error_follows_the_tolerance(solver: str, driven: bool) -> None:
    """Local errors at their tolerances add up to a small multiple of it: two to four decades less for three less."""
    coarse, fine = run(driven, solver, 1e-5), run(driven, solver, 1e-8)
    assert coarse < 30 * 1e-5
    assert fine < 60 * 1e-8
    assert 2.0 < np.log10(coarse / fine) < 4.5


@pytest.mark.parametrize(("solver", "order"), [("rk23", 3), ("rk45", 5), ("dop853", 8), ("rodas4", 4), ("rodas5p", 5)])
def test_work_follows_the_order(solver: str, order: int) -> None:
    """Steps of a method of order p grow as the (p + 1)-th root of the tolerance; jumps apart, where all begin anew."""
    steps, stop = [], 5.0 if order == 3 else 20.0
    for tolerance in (1e-8, 1e-11):
        options = {"solver": solver, "relative_tolerance": tolerance, "absolute_tolerance": tolerance, "step": stop}
        steps.append(oscillator(driven=False).simulation(**options).run(stop).statistics.steps)
    # An error per step is of order p, of the embedded method, or p + 1.
    assert 1e3 ** (1.0 / (order + 1)) * 0.85 < steps[1] / steps[0] < 1e3 ** (1.0 / order) * 1.15


@pytest.mark.parametrize("solver", SOLVERS)
def test_inputs_are_read_inside_the_interval_alone(solver: str) -> None:
    """Beyond it they may jump: a method that looks further than its interval takes what is to come for now."""
    simulation = oscillator().simulation(solver=solver, compiled=False, step=0.01)
    simulation.initialize()
    state = simulation._started()
    read: list[float] = []

    class Waves:
        def __call__(self, time: float) -> Floats:
            read.append(time)
            return np.full(1, np.sin(time))

        def slopes(self, time: float) -> Floats:
            read.append(time)
            return np.full(1, np.cos(time))

    times = np.array([0.0, 0.1, 0.15, JUMPS[0]])
    assert len(list(simulation.solver.advance(state, times, Waves()))) == 3
    assert min(read) >= 0.0
    assert max(read) == pytest.approx(JUMPS[0], rel=1e-14)


# -- steps that cannot be made -------------------------------------------------------------------------------------


def swinging(solver: str, monkeypatch: pytest.MonkeyPatch, reach: float, wall: float) -> Result:
    """Run a pendulum whose equations can be evaluated near the last accepted state, and before a wall, alone.

    Parameters
    ----------
    reach
        How far from the last accepted angle in rad.
    wall
        Angle in rad beyond which never; it is passed downwards.
    """
    rates = DoubleStepForm.rates

    def limited(self: DoubleStepForm, values: Floats, inputs: Floats) -> Floats:
        if abs(values[0] - self.state.coordinates[0]) > reach or values[0] < wall:
            raise SimulationError("the loops cannot be closed")
        return rates(self, values, inputs)

    monkeypatch.setattr(DoubleStepForm, "rates", limited)
    options: dict[str, Any] = {"solver": solver, "step": 0.02, **tolerances(solver, 1e-6)}
    return pendulum(1).simulation(compiled=False, **options).run(0.6)


EXPLICIT = [name for name in SOLVERS if name not in RULES]


@pytest.fixture(scope="module")
def expected() -> Floats:
    result = pendulum(1).simulation(solver="dop853", relative_tolerance=1e-11, absolute_tolerance=1e-12, step=0.02)
    return result.run(0.6)["link_1.angle"]


@pytest.mark.parametrize("solver", EXPLICIT)
def test_stage_that_cannot_be_evaluated_shortens_the_step(
    solver: str, monkeypatch: pytest.MonkeyPatch, expected: Floats
) -> None:
    # A method that reports at outputs alone must reach these from one another.
    reach = {"adams": 0.09, "rk4": 0.01}.get(solver, 0.03)
    result = swinging(solver, monkeypatch, reach=reach, wall=-np.inf)
    assert result.statistics.retries > 0
    np.testing.assert_allclose(result["link_1.angle"], expected, atol=2e-4)


@pytest.mark.parametrize("solver", EXPLICIT)
def test_run_ends_where_no_step_is_short_enough(solver: str, monkeypatch: pytest.MonkeyPatch, expected: Floats) -> None:
    wall = -0.5
    passed = 0.02 * np.flatnonzero(expected > wall)[-1]
    with pytest.raises(SimulationError, match=rf"{solver} .*the loops cannot be closed") as failure:
        swinging(solver, monkeypatch, reach=np.inf, wall=wall)
    told = float(str(failure.value).partition("t = ")[2].split()[0])
    assert passed - 0.021 < told < passed + 0.021


def test_equations_that_are_not_finite_shorten_the_step(monkeypatch: pytest.MonkeyPatch, expected: Floats) -> None:
    rates = DoubleStepForm.rates

    def limited(self: DoubleStepForm, values: Floats, inputs: Floats) -> Floats:
        near = abs(values[0] - self.state.coordinates[0]) < 0.03
        return rates(self, values, inputs) if near else np.full(len(values), np.nan)

    monkeypatch.setattr(DoubleStepForm, "rates", limited)
    for solver in ("dop853", "radau"):
        options = {"solver": solver, "relative_tolerance": 1e-6, "absolute_tolerance": 1e-6, "step": 0.02}
        result = pendulum(1).simulation(compiled=False, **options).run(0.6)
        assert result.statistics.retries > 0
        np.testing.assert_allclose(result["link_1.angle"], expected, atol=2e-4)


PULL = SineSignal(amplitude=50.0, frequency=2.5)


@pytest.mark.parametrize(("halvings", "made"), [(5, True), (8, True), (9, False)])
@pytest.mark.parametrize("solver", FIXED)
def test_steps_are_halved_up_to_eight_times(
    solver: str, halvings: int, made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that must be shorter by a power of two is made of that many, each with the inputs of its own time."""
    longest = 1.001 * 0.2 / 2**halvings
    model = oscillator(driven=False).model_copy(update={"signals": {"mechanism.motor.force": PULL}})
    simulation = model.simulation(solver=solver, compiled=False, step=0.2)
    simulation.initialize()
    if solver in RULES:

        def solved(begin: Callable[[], StepProblem], *arguments: Any) -> NewtonSolution:
            if begin().step > longest:
                raise SimulationError("too long")
            return solve(begin, *arguments)

        monkeypatch.setattr(implicit, "solve", solved)
    else:
        end = explicit._end

        def reached(flow: CountedRates, start: Floats, time: float, step: float) -> tuple[Floats, Floats, Floats]:
            if step > longest:
                raise StageError("too long")
            return end(flow, start, time, step)

        monkeypatch.setattr(explicit, "_end", reached)
    if made:
        simulation.step(0.0, 0.2)
        assert simulation.statistics.steps == 2**halvings
        matrix = np.zeros((4, 4))  # of x, ẋ, F and Ḟ
        matrix[0, 1] = matrix[2, 3] = 1.0
        matrix[1, :3], matrix[3, 2] = (
            np.array([-STIFFNESS, -DAMPING, 1.0]) / MASS,
            -((2.0 * np.pi * PULL.frequency) ** 2),
        )
        expected = expm(0.2 * matrix) @ [START, SPEED, 0.0, 2.0 * np.pi * PULL.frequency * PULL.amplitude]
        assert simulation.get("slider.displacement") == pytest.approx(expected[0], abs=30.0 * longest ** FIXED[solver])
    else:
        with pytest.raises(SimulationError, match=r"fails even with 0\.000781 s: too long"):
            simulation.step(0.0, 0.2)


# -- steps that are too long ---------------------------------------------------------------------------------------


def error_of_magnitudes(result: Result, *, driven: bool) -> float:
    """The largest error of the oscillator's displacement and velocity, relative to their magnitudes and to one."""
    exact = motion(result.time, driven=driven)
    found = np.array([result["slider.displacement"], result["slider.velocity"]])
    return float(np.max(np.abs(found - exact) / np.maximum(np.abs(exact), 1.0)))


@pytest.mark.parametrize("formulation", ["double-step", "dca", "hdca", "dca-alm"])
def test_equal_steps_that_are_too_long_are_told(formulation: str, caplog: pytest.LogCaptureFixture) -> None:
    """The estimate is of the size of the error, and falls with the fourth power of the step, as that does."""
    estimates = []
    for step in (0.2, 0.01, 0.005):
        caplog.clear()
        options = {"solver": "rk4", "step": step, "formulation": formulation, "compiled": False}
        result = oscillator(driven=False).simulation(**options).run(STOP)
        off = error_of_magnitudes(result, driven=False)
        estimates.append(result.statistics.embedded_distance)
        assert off / 3.0 < estimates[-1] < 3.0 * off
        assert ("is inaccurate: at t = " in caplog.text) == (step > 0.1)
        assert result.summary()["embedded_distance"] == estimates[-1]
    assert np.log2(estimates[1] / estimates[2]) == pytest.approx(4.0, abs=0.1)


@pytest.mark.parametrize("compiled", [False, True])
def test_estimate_of_equal_steps_begins_anew_behind_jumps(compiled: bool) -> None:
    """Three steps have one law; the first two count by a method of lower order only until there is a third."""
    result = oscillator().simulation(solver="rk4", step=0.01, compiled=compiled).run(STOP)
    off = error_of_magnitudes(result, driven=True)
    assert off / 3.0 < result.statistics.embedded_distance < 3.0 * off


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("name", "formulation", "stop"), [("pendulum-4", "double-step", 1.0), ("five-bar", "dca-alm", 0.4)]
)
def test_estimate_of_equal_steps_of_machines(name: str, formulation: str, stop: float, compiled: bool) -> None:
    """That of a method of order three was 30 to 200 times the error."""
    step, tight = 4e-3, {"relative_tolerance": 1e-12, "absolute_tolerance": 1e-12}
    run = {"formulation": formulation, "compiled": compiled}
    simulation = built_in(name).simulation(solver="rk4", step=step, **run)
    result = simulation.run(stop)
    exact = built_in(name).simulation(solver="dop853", formulation=formulation, **tight).run(stop, output_step=step)
    system = simulation.functions.system
    moving = [variable.name for variable in (*system.coordinates, *system.velocities)]
    off = max(np.max(np.abs(result[each] - exact[each]) / np.maximum(np.abs(exact[each]), 1.0)) for each in moving)
    assert off / 3.0 < result.statistics.embedded_distance < 3.0 * off


@pytest.mark.parametrize("compiled", [False, True])
def test_estimate_is_that_of_a_motion_that_grows(compiled: bool) -> None:
    """Two integrators that feed each other: both grow as e^t, of which four steps of 0.75 s miss 0.4 %."""
    block = Integrator(output_unit="1", initial_output=1.0)
    model = CoupledModel(
        name="growing",
        systems={"one": block, "other": block},
        connections=(("one.output", "other.input"), ("other.output", "one.input")),
    )
    result = model.simulation(solver="rk4", step=0.75, compiled=compiled).run(3.0)
    off = 1.0 - result["one.output"][-1] / np.exp(3.0)
    assert off == pytest.approx(1.0 - np.polyval([1 / 24, 1 / 6, 1 / 2, 1.0, 1.0], 0.75) ** 4 / np.exp(3.0), rel=1e-9)
    assert off / 1.5 < result.statistics.embedded_distance < 1.5 * off
