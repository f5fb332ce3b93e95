"""Steps that are differentiated, chosen by the error of derivatives, and where the equations bend inside them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from mbsfmu.analysis.recorded_run import RecordedRun
from mbsfmu.analysis.state_equations import Indices
from mbsfmu.base.errors import SimulationError
from mbsfmu.base.repeated_warnings import muted
from mbsfmu.integration.error_measure import LARGE_ERROR
from mbsfmu.modelling.parameters import LEFT_OUT, percent
from mbsfmu.simulation.error_check import LEAST_TOLERANCE, TIGHTER
from mbsfmu.simulation.run_loop import Recording
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats

_LOGGER = logging.getLogger(__name__)
_SLIGHT, _NOTHING, _ROUND_OFF = 1e-3, 1e-9, 1e-12
"""Effects of parameters below this share of the largest one, and of the value itself, are as good as none, and so are
those below the last one in SI units, which is round-off of what is zero."""
_BEGUN = 0.1
"""Share of its largest error from which on a derivative counts as inexact."""


@dataclass(frozen=True)
class DerivativeErrors:
    """Estimated errors of derivatives, and of what is differentiated, that come of the steps of the run.

    Attributes
    ----------
    of, by
        What is differentiated, and by what.
    shares
        Largest error over the run as a share of the largest derivative, shape (of, by).
    values
        Largest error over the run of what is differentiated, in its SI unit, shape (of,); not-a-number where a
        tolerance controls it, and nothing estimates it.
    time
        When the derivative with the largest error becomes inexact, in s; not-a-number of scalars.
    steps
        The steps in words.
    causes
        Where equations bend between ends of steps, in words.
    """

    of: tuple[str, ...]
    by: tuple[str, ...]
    shares: Floats = field(repr=False)
    values: Floats = field(repr=False)
    time: float = np.nan
    steps: str = ""
    causes: tuple[str, ...] = ()

    @property
    def largest(self) -> float:
        """The largest share; 0 of nothing."""
        return float(self.shares.max(initial=0.0))

    @property
    def worst(self) -> tuple[str, str]:
        """What has the largest share, and by what it is differentiated."""
        row, column = divmod(int(np.argmax(self.shares)), len(self.by))
        return self.of[row], self.by[column]

    def joined(self, other: DerivativeErrors) -> DerivativeErrors:
        """Return the larger ones of these errors and of others of the same derivatives."""
        time = self.time if self.largest >= other.largest else other.time
        values = np.fmax(self.values, other.values)
        return replace(self, shares=np.maximum(self.shares, other.shares), values=values, time=time)

    def sentence(self, remedy: str) -> str:
        """Return a sentence on derivatives that are inexact, with advice; empty where all are exact enough."""
        if self.largest <= LARGE_ERROR:
            return ""
        of, by = self.worst
        size = percent(self.largest) if self.largest < 1.0 else "as much as it is"
        causes = f", for {' and '.join(self.causes)}" if self.causes else ""
        since = f" from t = {self.time:.6g} s on" if np.isfinite(self.time) else ""
        return f"the derivative of {of} by {by} is uncertain by {size}{since} with {self.steps}{causes}: {remedy}"

    def warn(self, remedy: str) -> None:
        """Log a warning where derivatives are inexact."""
        if told := self.sentence(remedy):
            _LOGGER.warning("%s", told)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "steps": self.steps,
            "derivatives": {
                of: dict(zip(self.by, row, strict=True)) for of, row in zip(self.of, self.shares.tolist(), strict=True)
            },
            "values": {
                of: None if np.isnan(error) else error for of, error in zip(self.of, self.values.tolist(), strict=True)
            },
            "causes": list(self.causes),
        }


def derivative_errors(
    of: Sequence[str],
    by: Sequence[str],
    given: Floats,
    derivatives: tuple[Floats, Floats],
    values: tuple[Floats, Floats],
    *,
    times: Floats | None = None,
    factor: float = 1.0,
) -> DerivativeErrors:
    """Return the errors of derivatives from those of other steps, or of an embedded formula.

    Parameters
    ----------
    of, by
        What is differentiated, and by what; what is an error itself is left out.
    given
        Values of the latter, shape (by,); effects are compared for a change by as much, or by one where it is zero.
    derivatives
        The derivatives and the others, each of shape (times, of, by).
    values
        What is differentiated, and the same with the others, each of shape (times, of).
    times
        In s.
    factor
        Error over the difference.
    """
    scale = np.where(given == 0.0, 1.0, np.abs(given))
    differences = factor * np.abs(derivatives[1] - derivatives[0])
    # Of the two the smaller one: coarser steps may make derivatives of anything.
    effect = np.minimum(*(np.max(np.abs(each), axis=0, initial=0.0) for each in derivatives)) * scale
    off = np.max(differences, axis=0, initial=0.0) * scale
    least = np.maximum(_SLIGHT * effect.max(axis=1, initial=0.0), _NOTHING * np.abs(values[0]).max(axis=0, initial=0.0))
    least = np.maximum(least, _ROUND_OFF)
    shares = off / np.maximum(effect, least[:, None])
    shares[[place for place, name in enumerate(of) if name.rpartition(".")[2] in LEFT_OUT]] = 0.0
    time = np.nan
    if times is not None and shares.size:
        course = differences[(slice(None), *np.unravel_index(int(np.argmax(shares)), shares.shape))]
        time = float(times[int(np.argmax(course > _BEGUN * course.max(initial=0.0)))])
    largest = factor * np.max(np.abs(values[1] - values[0]), axis=0, initial=0.0)
    return DerivativeErrors(tuple(of), tuple(by), shares, largest, time)


_NAMED = 2
"""How many are named."""


class Bend(NamedTuple):
    """A passage of an event indicator through zero, as where a stop is reached: its name, and the time in s."""

    name: str
    time: float


def bends(run: RecordedRun) -> list[Bend]:
    """Return where event indicators of parts pass zero inside steps, by time."""
    functions, points = run.functions, run.points
    variables = functions.system.event_indicators
    if not variables:
        return []
    values = run.equations.at.evaluate(functions.event_indicators)[0][:, :, 0]
    begin, end = values[points.begins], values[points.ends]
    steps, places = np.nonzero(begin * end < 0.0)
    shares = begin[steps, places] / (begin[steps, places] - end[steps, places])
    times = points.times[steps] + shares * points.steps[steps]
    found = [Bend(variables[place].name, time) for place, time in zip(places.tolist(), times.tolist(), strict=True)]
    return sorted(found, key=lambda bend: bend.time)


def bends_in_words(found: Sequence[Bend], before: float) -> tuple[str, ...]:
    """Return where the last bends before a time in s are, or the first ones where there is none, in words."""
    earlier = [bend for bend in found if bend.time <= before]
    named = earlier[-_NAMED:] if earlier else list(found[:_NAMED])
    times: dict[str, list[str]] = {}
    for bend in named:
        times.setdefault(bend.name, []).append(f"{bend.time:.6g} s")
    return tuple(f"{name} passes zero inside steps, at t = {' and '.join(at)}" for name, at in times.items())


ASKED = 1e-4
"""Error of derivatives, as a share of the largest one over the run, for which steps are chosen."""
_DEAR = 100.0
"""Equal steps that are differentiated in the time of a step of a Rosenbrock method."""
_FEWEST = 4
"""Equal steps of a run at least: twice as long ones must be possible."""
_MOST_HALVED, _ROUNDS = 3, 5
"""How often steps are halved at once, as differences of far too long ones say little, and how often they are."""
_MOST_STEPS = 1e5
"""Equal steps at most where there is no Rosenbrock method."""
_CONVERGES = 2.0
"""Factor by which shorter steps reduce the error at least, where it is worth while to make them shorter still."""
LONGER, SHORTER = 0.5, 4.0 / 3.0
"""Error over the difference to steps of twice the size, and to those of half of it: 1/3 and 4/3 of second order, 1 and
2 of first order, as where the equations bend within a step."""
_BENT, _LOOSER = 1e-3, 10.0
"""Factors of the tolerance: of steps that are tried where the equations bend, which take a third more of them, and of
those that others are compared with there."""
_SAME = 1e-11
"""Difference of times relative to the end of a run, at least to 1 s, that is round-off."""


class Differentiated(Protocol):
    """What is found of a run that is differentiated."""

    @property
    def recorded(self) -> RecordedRun:
        """The run."""
        ...

    @property
    def interpolated(self) -> bool:
        """Whether it depends on the output step, as sums over what is read do."""
        ...


T = TypeVar("T", bound=Differentiated)


@dataclass(frozen=True)
class Steps:
    """Steps of a simulation.

    Attributes
    ----------
    simulation
        By the trapezoidal rule or a Rosenbrock method.
    size
        In s: of equal steps, or the interval of the output.
    tolerance
        Relative tolerance of adaptive steps; 0 of equal ones.
    """

    simulation: Simulation
    size: float
    tolerance: float

    @classmethod
    def of(cls, simulation: Simulation) -> Self:
        """Return the steps that a simulation makes."""
        return cls(simulation, simulation.step_size, float(simulation.solver.tolerances[0]))

    @property
    def words(self) -> str:
        """The steps in words."""
        if self.tolerance:
            return f"steps of {self.simulation.solver.name} with a tolerance of {self.tolerance:.3g}"
        return f"equal steps of {1e3 * self.size:.4g} ms"

    def finer(self) -> tuple[Steps, float]:
        """Return shorter steps, and the error of a run over the difference to one with them."""
        if self.tolerance:
            return replace(self, tolerance=max(TIGHTER * self.tolerance, LEAST_TOLERANCE)), 1.0
        return replace(self, size=0.5 * self.size), SHORTER

    def begun(self, chosen: Sequence[int] = (), values: Sequence[float] = ()) -> Simulation:
        """Return the simulation before the start, with values of some of the system's parameters."""
        simulation = self.simulation
        simulation.reset()
        parameters = simulation.functions.system.parameters
        for index, value in zip(chosen, values, strict=True):
            simulation.set(parameters[index].name, value)
        simulation.solver.step = self.size
        if self.tolerance:
            simulation.set_tolerance(self.tolerance)
        return simulation


@dataclass(frozen=True)
class Chosen(Generic[T]):
    """What was found with the steps that were chosen.

    Attributes
    ----------
    steps, found, errors
        The steps, what was found, and its errors.
    """

    steps: Steps
    found: T
    errors: DerivativeErrors


Evaluate = Callable[[Steps], Sequence[T]]
"""Returns what steps give, then what their embedded formula gives where there is one."""
Compare = Callable[[T, T, float], DerivativeErrors]
"""Returns the errors of the first from another, and from the ratio of error and difference."""


class DerivativeSteps:
    """Steps of a model's runs that can be differentiated.

    Where the user names none, steps are chosen by the estimated error of derivatives: equal ones are halved until it is
    as small as asked, or those of a Rosenbrock method are taken where these are cheaper.

    Parameters
    ----------
    named
        The simulation whose steps a user names; None where they are chosen.
    equal, adaptive
        Make the simulations that they are chosen from.
    """

    def __init__(
        self,
        named: Simulation | None,
        equal: Callable[[], Simulation] | None = None,
        adaptive: Callable[[], Simulation] | None = None,
    ) -> None:
        self._make_equal, self._make_adaptive, self._named = equal, adaptive, named

    @cached_property
    def named(self) -> Steps | None:
        """The steps that a user names."""
        return None if self._named is None else Steps.of(self._named)

    @cached_property
    def equal(self) -> Steps:
        """Equal steps of the model's size."""
        assert self._make_equal is not None
        return Steps.of(self._make_equal())

    @cached_property
    def adaptive(self) -> Steps:
        """Steps by a tolerance."""
        assert self._make_adaptive is not None
        return Steps.of(self._make_adaptive())

    @property
    def any(self) -> Simulation:
        """A simulation of the model, for its names."""
        return self.equal.simulation if self._named is None else self._named

    def remedy(self, steps: Steps) -> str:
        """Return what makes derivatives more exact than those of steps."""
        if self._named is None:
            return "none of the steps that were tried are more exact; end the run before, or take differences of runs"
        if steps.tolerance:
            return (
                "take a smaller tolerance or, above all where the machine is at rest, name neither solver nor "
                "tolerance: steps are then chosen for derivatives"
            )
        return "take smaller steps, or name none: they are then chosen by this error"

    def choose(
        self,
        evaluate: Evaluate[T],
        compare: Compare[T],
        stop: float,
        *,
        asked: float = ASKED,
        values: tuple[Sequence[int], Sequence[float]] = ((), ()),
    ) -> Chosen[T]:
        """Return what the chosen steps give.

        Parameters
        ----------
        evaluate, compare
            Find what is differentiated, and compare.
        stop
            End of the runs in s.
        asked
            Largest error of derivatives.
        values
            Indices and values of parameters that runs have.

        Raises
        ------
        InputError, SimulationError
            As `evaluate`, of the steps that are named, or of all that can be taken.
        """
        if (named := self.named) is not None:
            return self.judged(named, evaluate, compare, stop)
        found: list[Chosen[T]] = []
        failures: list[SimulationError] = []

        def error_of(steps: Steps) -> float:
            try:
                found.append(self.judged(steps, evaluate, compare, stop))
            except SimulationError as failure:
                failures.append(failure)
                return math.inf
            return found[-1].errors.largest

        equal = self.equal
        # A run shorter than a step is refused when it is tried.
        size = min(equal.size, stop / _FEWEST) if stop >= equal.size else equal.size
        steps, before = replace(equal, size=size), math.inf
        # Second derivatives of loops that are solved by iteration are not known.
        adaptive = None if len(equal.simulation.functions.loop_iterates) else self.adaptive
        most = max(_MOST_STEPS, stop / steps.size)
        for _ in range(_ROUNDS):
            error = error_of(steps)
            if error <= asked:
                return found[-1]
            halvings = min(max(math.ceil(0.5 * math.log2(min(error, 1.0) / asked)), 1), _MOST_HALVED)
            count = stop / steps.size * 2.0**halvings
            slow = error * _CONVERGES > before
            if adaptive is not None and (slow or count > _DEAR * self._count(adaptive, stop, values)):
                if error_of(adaptive) <= asked:
                    return found[-1]
                tighter = replace(adaptive, tolerance=max(_BENT * adaptive.tolerance, LEAST_TOLERANCE))
                if any(each.found.interpolated for each in found):
                    tighter = replace(tighter, size=adaptive.size / 2.0**_MOST_HALVED)
                if error_of(tighter) <= asked:
                    return found[-1]
                adaptive = None
            if slow or count > most:
                break
            before, steps = error, replace(steps, size=steps.size / 2.0**halvings)
        if not found:
            raise failures[0]
        return _best(found, compare)

    def judged(self, steps: Steps, evaluate: Evaluate[T], compare: Compare[T], stop: float) -> Chosen[T]:
        """Return what steps give, with its errors; parameters and errors as for `choose`."""
        first, *embedded = evaluate(steps)
        bent = bends(first.recorded)
        if not steps.tolerance:
            errors = self._of_equal(first, steps, evaluate, compare, stop)
        else:
            errors = compare(first, embedded[0], 1.0)
            errors = replace(errors, values=np.full(len(errors.values), np.nan))
            if bent:  # which the embedded formula passes in the same steps
                other = self._found(replace(steps, tolerance=_LOOSER * steps.tolerance), evaluate)
                errors = errors if other is None else errors.joined(compare(first, other, LONGER))
            if first.interpolated:
                other = self._found(replace(steps, size=0.25 * steps.size), evaluate)
                errors = errors if other is None else errors.joined(compare(first, other, 1.0))
        causes = bends_in_words(bent, errors.time) if errors.largest > LARGE_ERROR else ()
        return Chosen(steps, first, replace(errors, steps=steps.words, causes=causes))

    def _of_equal(
        self, first: T, steps: Steps, evaluate: Evaluate[T], compare: Compare[T], stop: float
    ) -> DerivativeErrors:
        """Return the errors of equal steps, from steps of twice the size, or of half of it where these say little."""
        longer = self._found(replace(steps, size=2.0 * steps.size), evaluate) if 2.0 * steps.size <= stop else None
        errors = None if longer is None else compare(first, longer, LONGER)
        if errors is not None and (errors.largest <= LARGE_ERROR or self._named is None):
            return errors
        shorter = self._found(replace(steps, size=0.5 * steps.size), evaluate)
        if shorter is not None:
            return compare(first, shorter, SHORTER)
        if errors is None:
            raise SimulationError(f"{steps.words} make a run, but neither twice nor half as long ones do; name others")
        return errors

    @staticmethod
    def _found(steps: Steps, evaluate: Evaluate[T]) -> T | None:
        """Return what further steps give; None where their run fails, which says nothing of others."""
        with muted():
            try:
                return evaluate(steps)[0]
            except SimulationError:
                return None

    @staticmethod
    def _count(steps: Steps, stop: float, values: tuple[Sequence[int], Sequence[float]]) -> float:
        """Return the number of steps by a tolerance of a run; infinite where it fails."""
        with muted():
            try:
                recorded_rows(steps.begun(*values), np.array([0.0, stop]))
            except SimulationError:
                return math.inf
        return float(steps.simulation.statistics.steps)


def _best(found: Sequence[Chosen[T]], compare: Compare[T]) -> Chosen[T]:
    """Return what is most exact; of equal steps only the shortest count, as longer ones may seem so by chance."""
    equal = [each for each in found if not each.steps.tolerance]
    candidates = [each for each in found if each.steps.tolerance]
    if equal:
        shortest = equal[-1]
        for each in equal[:-1]:  # of first order at least, whatever steps next to each other say
            factor = 1.0 / (each.steps.size / shortest.steps.size - 1.0)
            errors = shortest.errors.joined(compare(shortest.found, each.found, factor))
            shortest = replace(shortest, errors=errors)
        candidates.append(shortest)
    return min(candidates, key=lambda each: each.errors.largest)


def recorded_rows(simulation: Simulation, times: Floats) -> Floats:
    """Run a simulation, and return what varies at times in s from the start on, shape (times, variables)."""
    simulation.initialize()
    recording = Recording(times, len(simulation.continuous))
    recording.take_first(simulation.run_loop.readings())
    simulation.run_loop.stepped = True
    simulation.runner.run(simulation.run_loop, recording)
    return recording.recorded[1]


def common_times(times: Floats, others: Floats) -> tuple[Indices, Indices]:
    """Return the indices of times that two runs have in common, ascending."""
    after = np.minimum(np.searchsorted(others, times), len(others) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(np.abs(others[before] - times) < np.abs(others[after] - times), before, after)
    same = np.abs(others[nearest] - times) <= _SAME * max(float(times[-1]), 1.0)
    return np.flatnonzero(same), nearest[same]
