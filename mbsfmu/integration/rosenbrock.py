"""Rosenbrock methods of high order with step control, for stiff systems: coefficients and steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np

from mbsfmu.base.errors import LoopsOpenError, SimulationError
from mbsfmu.formulations.formulation import DifferentiableForm, ExplicitForm, Formulation, StepKind
from mbsfmu.integration.explicit import CountedRates, StageError
from mbsfmu.integration.solver import AdaptiveSolver, Ahead, Inputs, StepError, room, without
from mbsfmu.stepping.adaptive import Attempt, Machine, Motion, Way, make_step, size_of
from mbsfmu.stepping.language import Reals
from mbsfmu.stepping.rosenbrock import UNSOLVED, find_between, find_end
from mbsfmu.stepping.rosenbrock import Machine as StageMachine
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats


class Linearization:
    """Rates at the start of a step, their derivatives, and the solver of the stages.

    Parameters
    ----------
    flow
        The right-hand side.
    time
        In s, where the step begins.
    slopes
        Rates of the inputs, shape (number of inputs,).

    Attributes
    ----------
    flow, time
        As given.
    start, rates
        y and ẏ there, shape (number of elements,).
    drift
        ∂f/∂t of the same shape.
    """

    def __init__(self, flow: CountedRates, time: float, slopes: Floats) -> None:
        assert isinstance(flow.form, DifferentiableForm)
        self.flow = flow
        self.time = time
        self.start = flow.form.start
        self.rates = flow.rates(time, self.start)
        self.drift = flow.form.drift(slopes) if slopes.any() else np.zeros_like(self.rates)
        self._stages = flow.form.stages()

    @property
    def controlled(self) -> int:
        """Number of elements of y whose error is controlled: all but the integrals."""
        return self._stages.controlled

    def factorize(self, share: float) -> bool:
        """Compute the factors for h γ in s; return whether the matrix is regular."""
        return self._stages.factorize(share)

    def solve(self, right: Floats) -> Floats:
        """Return u."""
        return self._stages.solve(right)

    def missing(self, right: Floats, solution: Floats) -> Floats | None:
        """Return the residual of a solution, without integrals; None at round-off."""
        return self._stages.missing(right, solution)


MOST_FACTOR = 8.0
"""How much larger than the last one a step may be."""


@dataclass(frozen=True)
class RosenbrockMethod:
    """A method of s stages, in the form without matrix-vector products [Hairer1996, sect. IV.7].

    (1/(h γ) − J) uᵢ = f(t + αᵢ h, y + Σⱼ aᵢⱼ uⱼ) + Σⱼ cᵢⱼ uⱼ / h + γᵢ h ∂f/∂t, with j < i and J = ∂f/∂y at the
    beginning of the step. The last stage is evaluated at the solution of the embedded method, and adding its increment
    gives the solution: that increment is the estimate of the error.

    Attributes
    ----------
    name
        Its own.
    order
        Of the solution; that of the embedded one is less by one.
    diagonal
        γ.
    couplings, rate_couplings
        Rows of aᵢⱼ and cᵢⱼ for j < i, the first of them empty.
    nodes, slopes
        αᵢ and γᵢ.
    interpolation
        Rows d₁, d₂ … of shape (s,) for y(t + θ h) = (1 − θ) y₀ + θ (y₁ + (1 − θ) (d₁ + θ (d₂ + θ …)) u).
    """

    name: str
    order: int
    diagonal: float
    couplings: tuple[tuple[float, ...], ...]
    rate_couplings: tuple[tuple[float, ...], ...]
    nodes: tuple[float, ...]
    slopes: tuple[float, ...]
    interpolation: tuple[tuple[float, ...], ...]

    @property
    def stages(self) -> int:
        """Their number s."""
        return len(self.nodes)


RODAS4 = RosenbrockMethod(
    name="rodas4",
    order=4,
    diagonal=0.25,
    couplings=(
        (),
        (1.544,),
        (0.9466785280815826, 0.2557011698983284),
        (3.314825187068521, 2.896124015972201, 0.9986419139977817),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950, 1.0),
    ),
    rate_couplings=(
        (),
        (-5.6688,),
        (-2.430093356833875, -0.2063599157091915),
        (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
        (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
        (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
    ),
    nodes=(0.0, 0.386, 0.21, 0.63, 1.0, 1.0),
    slopes=(0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0),
    interpolation=(
        (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662, 0.0),
        (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872, 0.0),
    ),
)
"""RODAS of order 4 with 3 embedded [Hairer1996, sect. VI.4]; interpolation of order 3."""

RODAS5P = RosenbrockMethod(
    name="rodas5p",
    order=5,
    diagonal=0.21193756319429014,
    couplings=(
        (),
        (3.0,),
        (2.849394379747939, 0.45842242204463923),
        (-6.954028509809101, 2.489845061869568, -10.358996098473584),
        (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
        (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946),
        (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946, 1.0),
        (
            *(-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946),
            *(1.0, 1.0),
        ),
    ),
    rate_couplings=(
        (),
        (-14.155112264123755,),
        (-17.97296035885952, -2.859693295451294),
        (147.12150275711716, -1.41221402718213, 71.68940251302358),
        (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
        (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471),
        (
            *(30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623),
            -28.087943162872662,
        ),
        (
            *(37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002),
            *(-54.66780262877968, -9.48861652309627),
        ),
    ),
    nodes=(0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0),
    slopes=(
        *(0.21193756319429014, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069),
        *(0.0, 0.0, 0.0),
    ),
    interpolation=(
        (
            *(25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204, 0.524948541321073),
            *(1.1241088310450404, 0.4272876194431874, -0.17202221070155493),
        ),
        (
            *(-9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796, 20.176138334709044),
            *(15.98066361424651, -6.789040303419874, -6.710236069923372),
        ),
        (
            *(11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643, -52.072871366152654),
            *(-59.78993625266729, -0.15582684282751913, 4.883087185713722),
        ),
    ),
)
"""Rodas5P of order 5 with 4 embedded [Steinebach2023]; interpolation of order 4. It keeps its order for stiff systems,
unlike other Rosenbrock methods.
"""

METHODS = {method.name: method for method in (RODAS4, RODAS5P)}
"""All methods by name."""

CHOSEN = "rosenbrock"
"""Generic name, which means rodas5p, the most efficient method at all measured tolerances."""


@dataclass
class Rosenbrock(AdaptiveSolver):
    """Step-controlled Rosenbrock method; each step takes one Jacobian, one factorization and some evaluations.

    Steps end at discontinuities of inputs and at updates of discrete states, and pass over output times, whose values
    come from the interpolant. The error of integrals is not controlled, because nothing depends on them; with
    prescribed motion the work integral may be the only variable, and is controlled.

    Attributes
    ----------
    method
        Its coefficients.
    """

    names: ClassVar[tuple[str, ...]] = (*METHODS, CHOSEN)
    kind: ClassVar[StepKind] = StepKind.LINEARLY_IMPLICIT
    tolerance: ClassVar[float] = 1e-9
    """Default tolerance: errors of states accumulate over a run, and those of accelerations and reactions are several
    times as large. On the built-in models and the examples 1e-9 gives less than 1e-3 of the range of any variable, 1e-8
    up to 4e-3, 1e-6 6e-2.
    """

    method: RosenbrockMethod = RODAS5P

    @classmethod
    def of(cls, name: str, formulation: Formulation, step: float, **options: Any) -> Self:
        """Return the solver of a method's name; states have room for a step past the stop."""
        method = METHODS[cls.closest_match(name)]
        formulation.functions.ahead = np.zeros(room(len(formulation.explicit_scale), method.stages))
        return cls(formulation, step, method=method, **options)

    @classmethod
    def closest_match(cls, name: str) -> str:
        """Return the name of the method that a generic name means."""
        return RODAS5P.name if name == CHOSEN else name

    @property
    def name(self) -> str:
        """Name of the method."""
        return self.method.name

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`, within steps from the method's interpolant."""
        origin, whole = float(times[0]), float(times[-1] - times[0])
        waiting = (times[1:] - origin).tolist()
        machine, way = _Machine(self), Way(origin, whole, whole, most=MOST_FACTOR)
        while waiting:
            form, reached, state = self._advanced(machine, way, state, inputs, waiting)
            self._count(form, state)
            if self.step_ends is not None:
                self.step_ends.append(origin + way.elapsed)
            del waiting[: len(reached)]
            yield from reached
            if waiting and waiting[0] == way.elapsed:  # the state to go on from, where that is one that was asked for
                del waiting[0]
                yield state

    def advance_past(self, state: State, begin: float, end: float, horizon: float, inputs: Inputs) -> State:
        """Return the state at an end; the last step may pass it, and is then stored."""
        machine, origin, elapsed = _Machine(self), begin, 0.0
        if (ahead := Ahead.of(state, self.method.stages)) is not None:
            target = end - ahead.origin
            try:
                moved = self._along(machine, ahead, state, begin - ahead.origin, target, inputs)
            except StageError:  # the solution has not converged: the run continues from the present state
                state = without(state)
            else:
                if target <= ahead.end:
                    return moved
                origin, elapsed, state = ahead.origin, ahead.end, moved
        way = Way(origin, horizon - origin, end - origin, elapsed, most=MOST_FACTOR)
        while way.elapsed < way.target:
            began = way.elapsed
            form, reached, following = self._advanced(machine, way, state, inputs, [way.target])
            if reached:
                suggested = float(following.suggested_step[0])
                passing = Ahead(origin, began, way.elapsed, suggested, machine.attempt)
                return passing.kept_by(replace(reached[0], ahead=state.ahead))
            self._count(form, following)
            state = following
        return state

    def _along(
        self, machine: _Machine, ahead: Ahead, state: State, here: float, target: float, inputs: Inputs
    ) -> State:
        """Return the state at a target within a step past the stop, or at its end; times count from its origin."""
        form = self.formulation.explicit_form(state)
        flow, attempt = CountedRates(form, inputs, ahead.origin), ahead.attempt
        if target < ahead.end:
            values = machine.between(attempt, target - ahead.begin)
            moved = flow.state_at(target, values, target - here)
            return replace(moved, suggested_step=state.suggested_step, ahead=state.ahead)
        moved = flow.accept(ahead.end, np.array(attempt.end), ahead.end - here)
        self._count(form, moved)
        return replace(moved, suggested_step=np.array([ahead.following]), ahead=without(state).ahead)

    def _count(self, form: ExplicitForm, end: State) -> None:
        """Count a change of coordinates at the end of a step, for a step past the stop when the run reaches its end."""
        self.statistics.repartitions += not form.lasts(end)

    def _advanced(
        self, machine: _Machine, way: Way, state: State, inputs: Inputs, waiting: list[float]
    ) -> tuple[ExplicitForm, list[State], State]:
        """Make a step from a state; return its form, the states at times within, and the state at its end.

        Raises
        ------
        StepError
            When steps fail.
        """
        form = self.formulation.explicit_form(state)
        flow = CountedRates(form, inputs)
        way.suggested = float(state.suggested_step[0])
        time = way.origin + way.elapsed
        try:
            attempt = machine.begin(Linearization(flow, time, inputs.slopes(time)), waiting)
            if not make_step(machine, way, attempt):
                raise StepError(machine.reason, state)
        except StageError as error:
            raise StepError(f"{self.name} fails at t = {time:.9g} s: {error}", state) from None
        except (LoopsOpenError, StepError):
            raise
        except SimulationError as error:
            raise StepError(str(error), state) from None
        finally:
            self.statistics.rhs_evaluations += flow.evaluations
        self.statistics.steps += 1
        return form, machine.inside, replace(machine.end, suggested_step=np.array([way.suggested]))


@dataclass
class _Motion(Motion):
    tolerance_factor: float = 1.0


class _Machine(Machine, StageMachine):
    """What steps ask of a machine, by its equations in NumPy.

    Attributes
    ----------
    attempt
        The step that is tried.
    inside, end
        States at times within the last step that was made, and at its end.
    """

    attempt: Attempt
    inside: list[State]
    end: State

    def __init__(self, solver: Rosenbrock) -> None:
        method, self._solver = solver.method, solver
        self.STAGES, self.INTERPOLANTS = method.stages, len(method.interpolation)
        self.ORDER, self.MOST_FACTOR, self.FOLLOWS_SLIGHT = method.order, MOST_FACTOR, True
        self.SOLVER_NAME = method.name
        self.ABSOLUTE_TOLERANCE, self.RELATIVE_TOLERANCE = solver.absolute_tolerance, solver.relative_tolerance
        self.couplings, self.rate_couplings = (
            tuple(chain(*rows)) for rows in (method.couplings, method.rate_couplings)
        )
        self.stage_nodes, self.stage_slopes = method.nodes, method.slopes
        self.interpolation = tuple(chain(*method.interpolation))
        self.explicit_scales = solver.formulation.explicit_scale.tolist()
        self.SIZE, self.state = len(self.explicit_scales), _Motion()
        self.refusal = self.reason = ""

    def begin(self, linearization: Linearization, waiting: list[float]) -> Attempt:
        """Return the attempt of a step from there, with times in s at which states are wanted, since its origin."""
        self._begin, self._waiting = linearization, waiting
        self.WATCHED = self.SIZE if self._solver.formulation.functions.driven else linearization.controlled
        begin = (each.tolist() for each in (linearization.start, linearization.rates, linearization.drift))
        sizes = (self.SIZE, self.SIZE, self.STAGES * self.SIZE, self.STAGES, self.STAGES)
        self.attempt = Attempt(*begin, *([0.0] * size for size in sizes), time=linearization.time)
        return self.attempt

    def find_rates(self, time: float, values: Reals, rates: Reals) -> bool:
        try:
            rates[:] = self._begin.flow(time, np.array(values)).tolist()
        except StageError as error:
            self.reason = str(error)
            return False
        return True

    def find_end(self, attempt: Attempt) -> bool:
        return find_end(self, attempt)

    def factorize_step(self, attempt: Attempt) -> bool:
        self._share = attempt.step * self._solver.method.diagonal
        if not self._begin.factorize(self._share):
            self.reason = "the matrix of the step is singular"
            return False
        return True

    def solve_stage(self, attempt: Attempt, stage: int) -> bool:
        place = slice(stage * self.SIZE, (stage + 1) * self.SIZE)
        right = np.array(attempt.increments[place])
        increment = self._begin.solve(right)
        attempt.increments[place] = increment.tolist()
        missing = None if stage else self._begin.missing(right, increment)
        if missing is None:
            return True
        left, start = (self._share * missing).tolist(), attempt.start
        if not size_of(self, self._begin.controlled, start, start, left) <= UNSOLVED:
            self.reason = "the equations of the step are not solved: pivots are small"
            return False
        return True

    def take_end(self, way: Way, attempt: Attempt) -> bool:
        flow, suggested = self._begin.flow, np.array([way.suggested])
        try:
            inside = [
                flow.state_at(way.origin + time, self.between(attempt, elapsed), elapsed)
                for time in self._waiting
                if time < attempt.reached
                for elapsed in [time - way.elapsed]
            ]
            self.end = flow.accept(way.origin + attempt.reached, np.array(attempt.end), attempt.step)
        except StageError as error:
            self.reason = str(error)
            return False
        self.inside = [replace(state, suggested_step=suggested) for state in inside]
        return True

    def between(self, attempt: Attempt, elapsed: float) -> Floats:
        """Return y some time in s after the beginning of a step, within it."""
        values = [0.0] * self.SIZE
        find_between(self, attempt, elapsed / attempt.step, values)
        return np.array(values)

    def count_refusal(self) -> None:
        self._solver.statistics.retries += 1
        self.refusal = self.reason or self.refusal

    def begin_try(self) -> None:
        self.reason = ""

    def is_stopped(self) -> bool:
        return False

    def fail(self, sentence: str, *values: object) -> None:
        self.reason = sentence % values

    def fail_because(self, sentence: str, *values: object) -> None:
        self.reason = sentence % values + (f": {self.reason}" if self.reason else "")
