"""Rosenbrock methods: their coefficients, what is solved in a step, and runs of stiff machines."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from oscillator_in_closed_form import DAMPING, MASS, SPEED, START, STIFFNESS, oscillator
from scipy.linalg import expm

import mbsfmu
from mbsfmu import InputError, LinearSignal
from mbsfmu.formulations.formulation import FORMULATIONS, Formulation, IterationMatrixForm
from mbsfmu.integration.explicit import CountedRates
from mbsfmu.integration.rosenbrock import METHODS, Linearization, Rosenbrock, RosenbrockMethod, _Machine
from mbsfmu.simulation.run_options import RunOptions
from mbsfmu.simulation.run_result import Result
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.stepping.adaptive import Attempt
from mbsfmu.stepping.rosenbrock import find_between, find_end
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

EACH = pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))


# -- coefficients ------------------------------------------------------------------------------------------------------

Tree = tuple["Tree", ...]


class Steps(_Machine):
    """Steps of a method for so many elements of y, of a solver whose error nobody asks for."""

    def __init__(self, method: RosenbrockMethod, size: int) -> None:
        formulation = SimpleNamespace(explicit_scale=np.ones(size), functions=SimpleNamespace(driven=()))
        super().__init__(Rosenbrock(cast("Formulation", formulation), 1.0, method=method))


def trees(order: int) -> set[Tree]:
    """All rooted trees of so many nodes; a tree is what its root carries, sorted."""

    def forests(count: int) -> set[Tree]:
        first = {
            (tree, *rest) for size in range(1, count + 1) for tree in trees(size) for rest in forests(count - size)
        }
        return {tuple(sorted(forest)) for forest in first} if count else {()}

    return forests(order - 1)


def density(tree: Tree) -> int:
    """The denominator of the tree's derivative in the exact solution."""

    def size(tree: Tree) -> int:
        return 1 + sum(map(size, tree))

    return size(tree) * int(np.prod([density(branch) for branch in tree], dtype=int))


class Classical:
    """A method in its classical form: α, β = α + Γ and the weights of the stages [Hairer1996, sect. IV.7]."""

    def __init__(self, method: RosenbrockMethod) -> None:
        def square(rows: tuple[tuple[float, ...], ...]) -> Floats:
            return np.array([(*row, *np.zeros(method.stages - len(row))) for row in rows])

        self.gamma = np.linalg.inv(np.eye(method.stages) / method.diagonal - square(method.rate_couplings))
        self.alpha = square(method.couplings) @ self.gamma
        self.beta = self.alpha + self.gamma
        last = np.eye(method.stages)[-1]
        self.embedded = square(method.couplings)[-1] @ self.gamma
        self.weights = self.embedded + last @ self.gamma

    def elementary(self, tree: Tree) -> Floats:
        """What the stages make of a tree: β where a node carries one branch, α where it carries several."""
        matrix = self.beta if len(tree) == 1 else self.alpha
        return np.prod([np.ones(len(matrix)), *(matrix @ self.elementary(branch) for branch in tree)], axis=0)


def between(method: RosenbrockMethod, share: float, start: Floats, end: Floats, increments: Floats) -> Floats:
    """Return y inside a step."""
    machine = Steps(METHODS[method.name], len(start))
    attempt = Attempt(start.tolist(), [], [], end.tolist(), [], increments.ravel().tolist(), [], [])
    values = start.tolist()
    find_between(machine, attempt, share, values)
    return np.array(values)


@EACH
def test_conditions_of_order(method: RosenbrockMethod) -> None:
    """[Hairer1996, theorem IV.7.4]; one order more must fail, for solution, embedded method and interpolant."""
    classical, shares = Classical(method), (0.0, 0.3, 0.8, 1.0)
    inside = [between(method, share, np.zeros(1), np.ones(1), np.zeros((method.stages, 1))) for share in shares]
    np.testing.assert_allclose(np.ravel(inside), shares)

    def misses(weights: Floats, order: int, share: float = 1.0) -> float:
        """The largest error of a condition of this order."""
        return max(abs(weights @ classical.elementary(tree) - share**order / density(tree)) for tree in trees(order))

    def interpolated(share: float) -> Floats:
        unit = np.eye(method.stages)
        ends = np.linalg.solve(classical.gamma.T, classical.weights)
        return between(method, share, np.zeros(method.stages), ends, unit) @ classical.gamma

    for order in range(1, method.order + 2):
        assert (misses(classical.weights, order) < 1e-13) == (order <= method.order)
        assert (misses(classical.embedded, order) < 1e-13) == (order < method.order)
        for share in shares[1:3]:
            assert (misses(interpolated(share), order, share) < 1e-13) == (order < method.order)
    np.testing.assert_allclose(classical.alpha.sum(axis=1), method.nodes, atol=1e-13)
    np.testing.assert_allclose(classical.gamma.sum(axis=1), method.slopes, atol=1e-13)


@EACH
def test_methods_are_l_stable(method: RosenbrockMethod) -> None:
    """R(z) = 1 + z bᵀ (1 − z β)⁻¹ 1 is at most one on the imaginary axis, and zero at infinity, embedded too."""
    classical, ones = Classical(method), np.ones(method.stages)
    for weights in (classical.weights, classical.embedded):
        infinite = 1.0 - weights @ np.linalg.lstsq(classical.beta, ones)[0]
        assert abs(infinite) < 1e-13
    for frequency in np.geomspace(1e-2, 1e6, 200):
        z = 1j * frequency
        grown = 1.0 + z * classical.weights @ np.linalg.solve(np.eye(method.stages) - z * classical.beta, ones)
        assert abs(grown) < 1.0 + 1e-12


# -- a step ------------------------------------------------------------------------------------------------------------


class Fading(IterationMatrixForm):
    """z̈ = 2 z²/u with the input u = 1 + t, so that z = 1/(1 + t); ∫ ż² dt = (1 − z³)/3 is an integral.

    Parameters
    ----------
    values
        z, ż and the integral where a step begins.
    chained
        Whether it says that z is a position.
    """

    def __init__(self, values: Floats, *, chained: bool) -> None:
        super().__init__(cast("State", None))
        self._values = values
        self._chained = int(chained)

    @property
    def start(self) -> Floats:
        return self._values

    @property
    def end_rates(self) -> Floats:
        raise NotImplementedError

    @property
    def chained(self) -> int:
        return self._chained

    def rates(self, values: Floats, inputs: Floats) -> Floats:
        self._at = values, inputs
        return np.array([values[1], 2.0 * values[0] ** 2 / inputs[0], values[1] ** 2])

    def jacobian(self) -> Floats:
        (z, v, _), (u,) = self._at
        return np.array([[0.0, 1.0], [4.0 * z / u, 0.0], [0.0, 2.0 * v]])[self._chained :]

    def drift(self, slopes: Floats) -> Floats:
        (z, _, _), (u,) = self._at
        return np.array([0.0, -2.0 * z**2 / u**2 * slopes[0], 0.0])

    def state_at(self, values: Floats, inputs: Floats) -> State:
        raise NotImplementedError

    def accept(self, state: State) -> State:
        raise NotImplementedError


def faded(time: float) -> Floats:
    """The closed form."""
    z = 1.0 / (1.0 + time)
    return np.array([z, -(z**2), (1.0 - z**3) / 3.0])


def fading_errors(method: RosenbrockMethod, step: float, *, chained: bool = True) -> tuple[Floats, Floats]:
    """Errors after one second of equal steps, and in the middle of the last one."""
    machine, values, middle = Steps(method, 3), faded(0.0), np.zeros(3)
    for time in np.arange(round(1.0 / step)) * step:
        flow = CountedRates(Fading(values, chained=chained), lambda at: np.array([1.0 + at]))
        attempt = machine.begin(Linearization(flow, time, np.ones(1)), [])
        attempt.step = step
        assert find_end(machine, attempt)
        middle = machine.between(attempt, 0.5 * step)
        values = np.array(attempt.end)
    return values - faded(1.0), middle - faded(1.0 - 0.5 * step)


@EACH
def test_observed_order(method: RosenbrockMethod) -> None:
    """Positions, velocities and integrals alike, with rates that depend on time; the interpolant, too."""
    sizes = np.array([np.linalg.norm(fading_errors(method, step), axis=1) for step in (0.05, 0.025, 0.0125)])
    np.testing.assert_allclose(np.log2(sizes[:-1] / sizes[1:]), method.order, atol=0.25)
    assert sizes[0].max() < 2e-7


def test_positions_that_are_left_out_are_as_if_they_were_not() -> None:
    whole, less = (fading_errors(METHODS["rodas5p"], 0.1, chained=chained) for chained in (False, True))
    np.testing.assert_allclose(less, whole, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("formulation", ["double-step", "dca", "hdca"])
@pytest.mark.parametrize("name", ["four-bar", "bennett", "pendulum-3"])
def test_jacobian_is_the_derivative_of_the_rates(name: str, formulation: str) -> None:
    """By central differences, in motion; also along the inputs."""
    simulation = mbsfmu.models.built_in(name).simulation(formulation=formulation, solver="rodas5p", compiled=False)
    simulation.run(1.3, output_step=1.3)
    form, inputs = simulation.formulation.explicit_form(simulation._started()), simulation.run_loop.effective.copy()
    assert isinstance(form, IterationMatrixForm)
    values, slopes = form.start, np.ones(len(inputs))
    rates, jacobian, drift = form.rates(values, inputs), form.jacobian(), form.drift(slopes)
    chained, columns = form.chained, jacobian.shape[1]
    np.testing.assert_array_equal(rates[:chained], values[chained : 2 * chained])
    scales = np.maximum(np.abs(values), simulation.formulation.explicit_scale)

    def difference(value: Floats, given: Floats) -> Floats:
        return (form.rates(values + value, inputs + given) - form.rates(values - value, inputs - given)) / 2e-7

    still = np.zeros_like(inputs)
    found = np.stack([difference(1e-7 * row, still) for row in np.diag(scales)[:columns]], axis=1)[chained:]
    largest = np.abs(found).max(axis=1, keepdims=True) + 1e-9
    np.testing.assert_allclose(jacobian * scales[:columns] / largest, found / largest, atol=2e-7)
    along = difference(np.zeros_like(values), 1e-7 * slopes)
    np.testing.assert_allclose(drift, along, atol=1e-6 * np.abs(along).max(initial=0.0))


@pytest.mark.parametrize("name", ["four-bar", "bennett"])
def test_predictor_of_the_loops_saves_an_iteration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton's error is squared by every iteration, and by starting on the iteration matrix: 1e-5, 1e-10, nothing."""
    simulation = mbsfmu.models.built_in(name).simulation(solver="rodas5p", compiled=False)
    simulation.run(0.7, output_step=0.7)
    form, inputs = simulation.formulation.explicit_form(simulation._started()), simulation.run_loop.effective.copy()
    assert isinstance(form, IterationMatrixForm)
    values, closure, calls = form.start + 1e-5, simulation.functions.closure, list[int]()
    monkeypatch.setattr(simulation.functions, "closure", lambda: (calls.append(1), closure())[1])
    without = form.rates(values, inputs)
    first = len(calls)
    form.rates(form.start, inputs)
    form.jacobian()
    calls.clear()
    np.testing.assert_allclose(form.rates(values, inputs), without, rtol=1e-9, atol=1e-9)
    assert (len(calls), first) == (2, 3)


# -- runs --------------------------------------------------------------------------------------------------------------


def oscillating(formulation: str, **options: object) -> Result:
    """The four-bar on its oil spring without friction, values between steps."""
    model = mbsfmu.models.built_in("four-bar-frictionless")
    return model.simulation(formulation=formulation, compiled=False, step=0.01, **options).run(3.0)


@pytest.fixture(scope="module")
def expected() -> Result:
    return oscillating("double-step", solver="radau", relative_tolerance=1e-9, absolute_tolerance=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("formulation", ["double-step", "dca", "hdca"])
def test_stiff_machine_by_another_solver(formulation: str, expected: Result) -> None:
    """Pressures in oil lines that are a thousand times faster than the motion: few steps, and values between them."""
    result = oscillating(formulation, solver="rodas5p", relative_tolerance=1e-6, absolute_tolerance=1e-6)
    for name in ("cylinder.force", "boom.angular_velocity", "energy.work"):
        span = np.ptp(expected[name])
        np.testing.assert_allclose(result[name], expected[name], atol=3e-5 * span)
    assert result.statistics.steps < 300
    assert result.statistics.steps < len(result.time)


def test_ramps_of_inputs_cost_no_steps() -> None:
    """The rates depend on time then; without their derivative by it, the order would be lost."""
    signal = LinearSignal(times=(0.0, 1.0, 2.0), values=(0.0, 60.0, -20.0))
    signals = {"mechanism.motor.force": signal}
    options = {"solver": "rodas5p", "relative_tolerance": 1e-9, "absolute_tolerance": 1e-9, "step": 0.1}
    driven, free = (
        oscillator(driven=False).model_copy(update={"signals": each}).simulation(**options).run(2.0)
        for each in (signals, {})
    )
    matrix = np.zeros((4, 4))  # of x, v, force and its slope
    matrix[0, 1], matrix[1, :3], matrix[2, 3] = 1.0, (-STIFFNESS / MASS, -DAMPING / MASS, 1.0 / MASS), 1.0
    at_peak = expm(matrix) @ (START, SPEED, 0.0, 60.0)
    at_end = expm(matrix) @ (*at_peak[:3], -80.0)
    found = driven["slider.displacement"]
    np.testing.assert_allclose((found[10], found[20]), (at_peak[0], at_end[0]), atol=3e-8)
    assert driven.statistics.steps < 1.2 * free.statistics.steps


@pytest.mark.parametrize("compiled", [True, False])
def test_evaluations_are_those_of_stages_and_of_the_first_step(compiled: bool) -> None:
    """Eight stages, the first of which has the rates of the state; attempts that fail count as well."""
    simulation = mbsfmu.models.four_bar().simulation(solver="rodas5p", compiled=compiled)
    cost = simulation.run(2.0).statistics
    halts = 1 + len(next(iter(simulation.signals.values())).times)
    attempts = cost.steps + cost.retries
    assert cost.retries > 0
    assert 7 * attempts < cost.rhs_evaluations <= 7 * attempts + halts


def test_saved_state_has_the_step_to_try_next() -> None:
    """What follows is the same to the last bit, and takes no small first step."""
    simulation = mbsfmu.models.built_in("four-bar").simulation(solver="rodas5p", formulation="dca", compiled=False)
    simulation.step(0.0, 1.2)
    saved = simulation.save()

    def goes_on(simulation: Simulation) -> tuple[bytes, int]:
        before = simulation.statistics.steps
        simulation.step(1.2, 0.3)
        return simulation.save(), simulation.statistics.steps - before

    first = goes_on(simulation)
    simulation.restore(saved)
    assert goes_on(simulation) == first
    other = mbsfmu.models.built_in("four-bar").simulation(solver="rodas5p", formulation="dca", compiled=False)
    other.restore(saved)
    assert goes_on(other) == first


def test_step_that_is_cut_off_does_not_shorten_the_next() -> None:
    """A short communication step says little about how long steps may be."""
    simulation = mbsfmu.models.pendulum(2).simulation(solver="rodas5p", compiled=False)
    simulation.step(0.0, 0.5)
    suggested = float(simulation._started().suggested_step[0])
    assert suggested > 1e-3
    simulation.step(0.5, 1e-6)
    assert simulation._started().suggested_step[0] == suggested


def test_formulation_without_derivatives_is_refused() -> None:
    """Every formulation that the sentence names is taken, and every other one is refused."""
    with pytest.raises(InputError) as caught:
        RunOptions(solver="rodas5p", formulation="penalty")
    named = re.search(r"take .*the formulation ([a-z0-9-]+(?:, (?!or )[a-z0-9-]+)*)", str(caught.value))
    assert named is not None
    for each in FORMULATIONS.names():
        if each in named[1].split(", "):
            assert RunOptions(solver="rodas5p", formulation=each).formulation == each
        else:
            with pytest.raises(InputError, match="needs"):
                RunOptions(solver="rodas5p", formulation=each)


def test_name_of_the_kind_means_the_chosen_method() -> None:
    """Saved states of one are those of the other: they are the same."""
    named = oscillator().simulation(compiled=False, solver="rosenbrock")
    assert named.solver.name == "rodas5p"
    result = named.run(0.5)
    assert result.solver == "rodas5p"
    same = oscillator().simulation(compiled=False, solver="rodas5p")
    same.restore(named.save())
    assert same.get("slider.displacement") == result["slider.displacement"][-1]
