"""Parameters that minimise a scalar of a run under constraints, with exact gradients."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mbsfmu.analysis.derivative_steps import ASKED, DerivativeErrors, DerivativeSteps, Steps, derivative_errors
from mbsfmu.analysis.fitted_machines import at_bounds, checked_bounds, first_values
from mbsfmu.analysis.gradient import Adjoint, EndValue, Measure, measure, measured_outputs
from mbsfmu.analysis.recorded_run import RecordedRun
from mbsfmu.analysis.sensitivities import computed_variables, parameter_places
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.repeated_warnings import muted
from mbsfmu.integration.error_measure import LARGE_ERROR
from mbsfmu.io.trajectory import full_name
from mbsfmu.modelling.measurement_units import Bounds, begins_with_number, is_plain, number_in, plain_number
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

_WRITTEN = re.compile(r"([^<>=]+?)\s*(<=|>=)\s*([^<>=]+)")
_VIOLATED = 1e-6
"""Share of a limit by which the found constraint may miss it: the search ends at its own tolerance."""
_FLAT = 1e-14
"""Change of the objective over the range of a parameter, relative to its value, below which it is round-off."""
_INEXACT, _CHOICES = 10.0, 3
"""Multiple of the error that is asked of gradients from which on steps are chosen anew where a search ends, and how
often they are chosen at most."""
_FAILED = 1e6
"""Objective of a run that fails, in magnitudes of the first one: the line search then goes back to a tenth of its step.
"""


@dataclass(frozen=True)
class Limit:
    """A scalar of a run that has to stay below or above a value.

    Attributes
    ----------
    text
        As it was written.
    measure
        The scalar.
    value
        The limit, in the SI unit.
    sign
        1 where it is at most that, −1 where it is at least.
    """

    text: str
    measure: Measure
    value: float
    sign: float

    @classmethod
    def of(cls, text: str, simulation: Simulation) -> Limit:
        """Read `max(cylinder.pressure_piston)<=200 bar` of runs of a simulation.

        Raises
        ------
        InputError
            When it does not read so.
        """
        found = _WRITTEN.fullmatch(text.strip())
        if found is None:
            raise InputError(f"'{text}' is no constraint; write measure<=value or measure>=value")
        scalar = measure(found[1])
        if is_plain(found[3]):
            value = plain_number(found[3])
        elif not begins_with_number(found[3]):
            raise InputError(f"'{text}' is no constraint: '{found[3].strip()}' is no number")
        else:
            output = computed_variables(simulation)[measured_outputs(simulation, [scalar])[0]]
            try:
                value = number_in(found[3], scalar.unit(output.unit))
            except InputError as error:
                raise InputError(f"'{text}' is no constraint: {error}") from None
        if not math.isfinite(value):
            raise InputError(f"'{text}' is no constraint: its value must be finite")
        return cls(text, scalar, value, 1.0 if found[2] == "<=" else -1.0)


@dataclass(frozen=True)
class OptimumErrors:
    """What the error of the steps of runs does to an optimum, from where a search with shorter steps goes from there.

    Attributes
    ----------
    names, shifts
        Parameters, and how far they are off, in the units of these, shape (p,).
    value
        Error of the objective there.
    limits
        Errors of the constraints' scalars there, by their texts.
    gradients
        Errors of the gradients there.
    """

    names: tuple[str, ...]
    shifts: Floats
    value: float
    limits: dict[str, float]
    gradients: DerivativeErrors

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "parameters": dict(zip(self.names, self.shifts.tolist(), strict=True)),
            "value": self.value,
            "limits": self.limits,
            "gradients": self.gradients.to_dict(),
        }


@dataclass(frozen=True)
class OptimizationResult:
    """Parameters that were found.

    Attributes
    ----------
    names, units
        Of the parameters.
    values
        Shape (p,).
    first, value
        The objective at the first values, and at those that were found.
    limits
        Value of each constraint there, by its text.
    converged
        Whether the search ended where no feasible direction makes the objective less.
    message
        What SciPy says of the end of the search, after the constraints that do not hold there.
    runs
        Number of runs.
    sentences
        Parameters that lie at a bound.
    failures
        Runs that failed, in words: values, and why; the search went back from there.
    step_errors
        What the error of the steps does to parameters, objective and constraints; None where it was not found.
    model
        The model with these values.
    by_system
        Names by `system.variable`, which finds values too.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats
    first: float
    value: float
    limits: dict[str, float]
    converged: bool
    message: str
    runs: int
    sentences: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    step_errors: OptimumErrors | None = None
    model: Any = field(repr=False, default=None)
    by_system: Mapping[str, str] = field(repr=False, default_factory=dict)

    def __getitem__(self, name: str) -> float:
        """Return the value of a parameter by its name, `system.variable` or a unique ending.

        Raises
        ------
        UnknownNameError
            When there is no such parameter, or several.
        """
        meant = full_name(name, self.names, "free parameter", by_system=self.by_system)
        return float(self.values[self.names.index(meant)])

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        values = dict(zip(self.names, self.values.tolist(), strict=True))
        parts = ("first", "value", "limits", "converged", "message", "runs")
        rest = {part: getattr(self, part) for part in parts}
        units = dict(zip(self.names, self.units, strict=True))
        lists = {"notes": list(self.sentences), "failures": list(self.failures)}
        errors = None if self.step_errors is None else self.step_errors.to_dict()
        return {"parameters": values, "units": units, **rest, **lists, "step_errors": errors}


@dataclass(frozen=True)
class _Scalars:
    """Scalars of a run, shape (m,), and their gradients, shape (m, p)."""

    recorded: RecordedRun
    interpolated: bool
    values: Floats
    gradients: Floats


class _Runs:
    """Scalars of runs and their gradients with respect to parameters scaled by their ranges.

    Parameters
    ----------
    steps
        Steps of the model's runs.
    measures, limits
        The objective and the scalars of constraints, and the constraints.
    chosen, low, high
        Indices of the parameters, and their bounds.
    stop
        End of the runs in s.
    """

    def __init__(
        self, steps: DerivativeSteps, measures: Sequence[Measure], chosen: Sequence[int], low: Floats, high: Floats,
        limits: Sequence[Limit], stop: float,
    ) -> None:  # fmt: skip
        self._steps, self._measures, self._chosen = steps, list(measures), list(chosen)
        self._limits, self._stop = list(limits), stop
        self._best: tuple[tuple[float, float], Floats] | None = None
        self._low, self._width = low, high - low
        self._known: tuple[Floats, Floats, Floats] | None = None
        self._failed: Floats | None = None
        self._first: Floats | None = None
        self.steps = steps.named or steps.equal
        self.count = 0
        self.failures: list[str] = []

    def choose(self, shares: Floats) -> bool:
        """Choose the steps for runs with parameters, and return whether they are others."""
        before = self.steps
        made = self._steps.choose(
            self._evaluate(shares), self._compare, self._stop, values=(self._chosen, self._values(shares))
        )
        self.steps = made.steps
        if self._first is None:
            self._first = np.abs(made.found.gradients)
        if self.steps != before:
            self._known = self._best = None
        return self.steps != before

    def errors(self, shares: Floats) -> DerivativeErrors:
        """Return the errors of the gradients with parameters, as shares of those where the search began at least."""
        return self._steps.judged(self.steps, self._evaluate(shares), self._compare, self._stop).errors

    def finer(self) -> tuple[_Runs, float]:
        """Return runs with shorter steps, and the error of a scalar over the difference to them."""
        finer, factor = self.steps.finer()
        runs = _Runs(
            self._steps, self._measures, self._chosen, self._low, self._low + self._width, self._limits, self._stop
        )
        runs.steps = finer
        return runs, factor

    def _values(self, shares: Floats) -> list[float]:
        return (self._low + self._width * shares).tolist()

    def _evaluate(self, shares: Floats) -> Callable[[Steps], list[_Scalars]]:
        """Return what evaluates steps with parameters: gradients, and those by the embedded formula."""

        def evaluate(steps: Steps) -> list[_Scalars]:
            adjoint = Adjoint(steps.begun(self._chosen, self._values(shares)), self._measures, self._stop)
            rows = [
                [each[0] for each in adjoint.gradient_by_formulas(index, self._chosen, ())]
                for index in range(len(self._measures))
            ]
            values, read = np.array(adjoint.values), not all(isinstance(each, EndValue) for each in self._measures)
            return [_Scalars(adjoint.run, read, values, np.array(each)) for each in zip(*rows, strict=True)]

        return evaluate

    def _compare(self, found: _Scalars, other: _Scalars, factor: float) -> DerivativeErrors:
        variables = self._steps.any.functions.system.parameters
        texts = [f"the objective {self._measures[0].output}", *(each.text for each in self._limits)]
        first = np.abs(found.gradients) if self._first is None else self._first  # at a minimum gradients are none
        return derivative_errors(
            texts, [variables[each].name for each in self._chosen], self._width,
            (np.stack([first, found.gradients]), np.stack([first, other.gradients])),
            (found.values[None], other.values[None]), factor=factor,
        )  # fmt: skip

    def tried(self, shares: Floats) -> Floats | None:
        """Return the scalars, shape (m,); None where the run fails, after one that did not."""
        if self._failed is not None and np.array_equal(self._failed, shares):
            return None
        try:
            return self.at(shares)[0]
        except (InputError, SimulationError) as error:
            if self._known is None:
                raise
            self._failed = shares.copy()
            pairs = zip(self._chosen, (self._low + self._width * shares).tolist(), strict=True)
            variables = self._steps.any.functions.system.parameters
            told = ", ".join(f"{variables[index].name} = {value:.6g}" for index, value in pairs)
            self.failures.append(f"the run with {told} fails: {error}")
            logger.info("%s; the search goes back from there", self.failures[-1])
            return None

    def at(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the scalars, shape (m,), and their gradients, shape (m, p)."""
        if self._known is None or not np.array_equal(self._known[0], shares):
            adjoint = Adjoint(self.steps.begun(self._chosen, self._values(shares)), self._measures, self._stop)
            self.count += 1
            rows = [adjoint.gradient(index, self._chosen, ())[0] for index in range(len(self._measures))]
            self._known = shares.copy(), np.array(adjoint.values), np.array(rows) * self._width
            self._note(shares, self._known[1])
        return self._known[1], self._known[2]

    def _note(self, shares: Floats, values: Floats) -> None:
        """Log a run, and keep it where none before was better: first by the constraints, then by the objective."""
        broken = max((-room for room in self.rooms(values)), default=0.0)
        told = ", ".join(f"{each.text} is {value:.6g}" for each, value in zip(self._limits, values[1:], strict=True))
        logger.info("run %d: %.6g%s", self.count, values[0], f", {told}" if told else "")
        rank = max(broken, _VIOLATED), float(values[0])
        if self._best is None or rank < self._best[0]:
            self._best = rank, shares.copy()

    def rooms(self, values: Floats) -> list[float]:
        """Return how far scalars are inside the constraints, relative to these; negative where one is violated."""
        pairs = zip(self._limits, values[1:].tolist(), strict=True)
        return [limit.sign * (limit.value - value) / _size(limit) for limit, value in pairs]

    @property
    def best(self) -> Floats:
        """The parameters of the best run so far, by their shares of the ranges, shape (p,)."""
        if self._best is None:
            raise SimulationError("no run was made")
        return self._best[1]


class _Search:
    """Search for the minimum by sequential quadratic programming.

    Parameters
    ----------
    limits
        The constraints.
    size
        Magnitude of the objective.
    """

    def __init__(self, limits: Sequence[Limit], size: float) -> None:
        self._limits, self._size = list(limits), size

    def ended(self, runs: _Runs, start: Floats) -> tuple[Floats, bool, str]:
        """Return where the search ends, whether that is a minimum, and what SciPy says; an interrupt ends it too."""
        from scipy.optimize import minimize  # noqa: PLC0415 - takes long to load

        def objective(shares: Floats) -> float:
            values = runs.tried(shares)
            return _FAILED if values is None else float(values[0]) / self._size

        def constraint(index: int) -> Callable[[Floats], float]:
            def room(shares: Floats) -> float:
                values = runs.tried(shares)
                return 0.0 if values is None else runs.rooms(values)[index]

            return room

        def slope(index: int) -> Callable[[Floats], Floats]:
            limit = self._limits[index]
            return lambda shares: -limit.sign * runs.at(shares)[1][index + 1] / _size(limit)

        try:
            found = minimize(
                objective,
                start,
                jac=lambda shares: runs.at(shares)[1][0] / self._size,
                method="SLSQP",
                bounds=[(0.0, 1.0)] * len(start),
                constraints=[
                    {"type": "ineq", "fun": constraint(each), "jac": slope(each)} for each in range(len(self._limits))
                ],
                options={"ftol": 1e-10, "maxiter": 200},
            )
            shares, success, message = np.asarray(found.x, dtype=np.float64), bool(found.success), str(found.message)
        except KeyboardInterrupt:
            shares, success = runs.best, False
            message = f"interrupted after {runs.count} runs, of which the best is kept"
        shares = np.clip(shares, 0.0, 1.0)
        if runs.tried(shares) is None:
            shares, success = runs.best, False
        return shares, success, message


def optimize(
    steps: DerivativeSteps,
    minimize: str | Measure,
    free: Mapping[str, Bounds],
    subject_to: Sequence[str],
    stop: float,
) -> OptimizationResult:
    """Minimise a scalar of a run by parameters.

    Each run is logged; an interrupt ends the search with the best of them. Where a run fails, as lengths do not close a
    loop, the search goes back.

    By sequential quadratic programming, `scipy.optimize.minimize(method="SLSQP")` [Kraft 1988], with the gradients of
    the discrete adjoint: a local minimum. Steps are chosen where the search begins, and anew where it ends if gradients
    are not exact there. From the end a search with shorter steps tells how far these would have moved it.

    Parameters
    ----------
    steps
        Steps of the model's runs.
    minimize
        The scalar: a measure or its text.
    free
        Bounds of the parameters by their names.
    subject_to
        Constraints such as `max(cylinder.pressure_piston)<=200 bar`.
    stop
        End of the runs in s.

    Raises
    ------
    InputError
        When a name means nothing, or bounds are none.
    SimulationError
        When the run with the first values fails.
    """
    simulation = steps.any
    chosen = parameter_places(simulation, list(free))
    freed = [simulation.functions.system.parameters[each] for each in chosen]
    bounds = [checked_bounds(variable, each) for variable, each in zip(freed, free.values(), strict=True)]
    low, high = np.array(bounds, dtype=float).T
    limits = [Limit.of(each, simulation) for each in subject_to]
    objective = measure(minimize) if isinstance(minimize, str) else minimize
    measures = [objective, *(each.measure for each in limits)]
    measured_outputs(simulation, measures)  # a wrong name is refused as such, and is no run that fails
    begin = first_values(freed, simulation.run_loop.parameters[chosen], low, high)
    start = np.clip((begin - low) / (high - low), 0.0, 1.0)
    runs = _Runs(steps, measures, chosen, low, high, limits, stop)
    runs.choose(start)
    values, slopes = runs.at(start)
    first = float(values[0])
    size = max(abs(first), float(np.max(np.abs(slopes[0])))) or 1.0  # one that is zero at first has only its slopes
    for index, flat in zip(chosen, np.abs(slopes[0]) <= _FLAT * (abs(first) or 1.0), strict=True):
        if flat:
            logger.warning(
                "%s does not change with %s where the search begins, and the search may leave it there: set another "
                "first value, or take another objective",
                *(minimize if isinstance(minimize, str) else f"the measure of {minimize.output}",),
                simulation.functions.system.parameters[index].name,
            )
    search, shares = _Search(limits, size), start
    choices = 1
    while True:
        shares, success, message = search.ended(runs, shares)
        interrupted = message.startswith("interrupted")
        if interrupted or choices == _CHOICES or steps.named is not None:
            break
        if runs.errors(shares).largest <= _INEXACT * ASKED or not runs.choose(shares):
            break
        choices += 1
    names = tuple(simulation.functions.system.parameters[each].name for each in chosen)
    values = runs.at(shares)[0]
    broken = [
        f"{limit.text} is {value:.6g}"
        for limit, value, room in zip(limits, values[1:].tolist(), runs.rooms(values), strict=True)
        if room < -_VIOLATED
    ]
    if broken:
        message = f"{', '.join(broken)} where the search ends ({message}); widen the bounds, or begin elsewhere"
    errors = None if interrupted else _errors(search, runs, shares, names, limits, high - low)
    units, found_values = tuple(variable.unit for variable in freed), low + (high - low) * shares
    if errors is not None:
        _warn(errors, steps.remedy(runs.steps), units, high - low)
    return OptimizationResult(
        names,
        units,
        found_values,
        first,
        float(values[0]),
        {each.text: float(value) for each, value in zip(limits, values[1:], strict=True)},
        success and not broken,
        message,
        runs.count,
        at_bounds(names, found_values, shares),
        tuple(runs.failures),
        errors,
        by_system=simulation.exposed.by_system,
    )


def _errors(
    search: _Search, runs: _Runs, shares: Floats, names: tuple[str, ...], limits: Sequence[Limit], width: Floats
) -> OptimumErrors | None:
    """Return what the error of the steps does to an optimum; None where runs with shorter steps fail."""
    finer, factor = runs.finer()
    with muted():
        try:
            exact = finer.at(shares)[0]
            moved = search.ended(finer, shares)[0]
            gradients = runs.errors(shares)
        except SimulationError:
            return None
    off = (factor * (runs.at(shares)[0] - exact)).tolist()
    of_limits = {each.text: error for each, error in zip(limits, off[1:], strict=True)}
    return OptimumErrors(names, factor * width * (shares - moved), off[0], of_limits, gradients)


def _warn(errors: OptimumErrors, remedy: str, units: Sequence[str], width: Floats) -> None:
    """Warn of parameters that the error of the steps shifts by much of their ranges, or of inexact gradients."""
    told = [
        f"{name} by {shift:.3g} {unit}".removesuffix(" 1")
        for name, unit, shift, extent in zip(errors.names, units, errors.shifts.tolist(), width.tolist(), strict=True)
        if abs(shift) > LARGE_ERROR * extent
    ]
    if told:
        logger.warning(
            "the error of %s shifts the optimum: %s; a search with shorter steps ends there: %s",
            *(errors.gradients.steps, ", ".join(told), remedy),
        )
    errors.gradients.warn(remedy)


def _size(limit: Limit) -> float:
    return abs(limit.value) or 1.0
