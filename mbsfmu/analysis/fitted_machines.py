"""What a fit needs of a machine: runs with parameters, and the derivatives of these runs."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mbsfmu.analysis.derivative_steps import DerivativeErrors, DerivativeSteps, recorded_rows
from mbsfmu.analysis.sensitivities import DifferentiableRun, DifferentiatedOutputs, computed_variables
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.modelling.measurement_units import Bounds, is_plain
from mbsfmu.modelling.variables import Variable, out_of_range, with_unit
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

_ON_BOUND = 1e-6
"""Fraction of the range between bounds within which a value lies on one: searches within bounds end next to them."""


INEXACT = 1e-2
"""Error of derivatives, as a share of the largest one, up to which their steps are taken: intervals are as uncertain,
but not the fitted values, which follow from the runs."""
_SAME = 1e-11
"""Difference of times relative to the end of a run that is round-off."""
_RATE = 0.1
"""Of the output step: time after a measured value within which its rate is found."""


@dataclass(frozen=True)
class RunSlopes:
    """Derivatives of a run by parameters.

    Attributes
    ----------
    times
        Ends of steps in s, shape (N + 1,).
    begin, end
        Where steps begin and end, each of shape (N, rows, parameters).
    """

    times: Floats
    begin: Floats
    end: Floats


class FittedRun(Protocol):
    """A run of a machine.

    Attributes
    ----------
    times
        Ends of steps in s, shape (N + 1,).
    begin, end
        What is read where steps begin and end, shape (N, rows).
    """

    times: Floats
    begin: Floats
    end: Floats

    def slopes(self, chosen: Sequence[int]) -> RunSlopes:
        """Return derivatives by parameters; they are asked for before the machine runs with other parameters."""
        ...


@dataclass(frozen=True)
class Request:
    """What is asked of a run.

    Attributes
    ----------
    chosen, values
        Indices of parameters, and their values.
    stop
        End of the run in s at least.
    rows
        Indices of the outputs that are read.
    times
        When, in s, ascending.
    """

    chosen: Sequence[int]
    values: Floats
    stop: float
    rows: Sequence[int]
    times: Floats


class FittedMachine(ABC):
    """A machine whose parameters are fitted; without more its runs and derivatives are exact.

    Attributes
    ----------
    parameters, outputs
        What can be fitted, and what can be measured.
    given
        Values of all parameters before the fit, in the units of the parameters.
    derivatives
        How its runs are differentiated, in words; empty where they are so along their steps.
    """

    parameters: Sequence[Variable]
    outputs: Sequence[Variable]
    given: Floats
    derivatives: str = ""

    @property
    def steps(self) -> str:
        """The steps of its runs in words."""
        return "exact steps"

    @abstractmethod
    def run(self, request: Request) -> FittedRun:
        """Run the machine.

        Raises
        ------
        SimulationError
            When the run fails.
        InputError
            When a value is refused.
        """

    def prepare(self, request: Request) -> None:  # noqa: B027 - some have no choice
        """Choose the steps that are differentiated for such runs."""

    def finer(self) -> tuple[FittedMachine, float]:
        """Return the machine with shorter steps, and the error of a run over the difference to it."""
        return self, 1.0

    def errors(self, request: Request) -> DerivativeErrors | None:  # noqa: ARG002
        """Return the errors of the derivatives of such runs; None where nothing is known of them."""
        return None

    def improved(self, request: Request, errors: DerivativeErrors | None) -> bool:  # noqa: ARG002
        """Take shorter steps where the errors of derivatives with the fitted values ask for them.

        Returns
        -------
        bool
            Whether they are others.
        """
        return False


@dataclass
class _ControlledRun:
    """Values of a run by a tolerance, recorded at the times that are asked for; derivatives along other steps."""

    times: Floats
    begin: Floats
    end: Floats
    differentiated: Callable[[Sequence[int]], RunSlopes]

    def slopes(self, chosen: Sequence[int]) -> RunSlopes:
        """Return derivatives by parameters; see `FittedRun`."""
        return self.differentiated(chosen)


class _EqualRun:
    """A run in equal steps, and its derivatives."""

    def __init__(self, run: DifferentiableRun) -> None:
        self.times, self.begin, self.end = run.times, run.begin, run.end
        self._run = run

    def slopes(self, chosen: Sequence[int]) -> RunSlopes:
        """Return derivatives by parameters; see `FittedRun`."""
        return RunSlopes(self.times, *self._run.slopes(chosen))


class ModelMachine(FittedMachine):
    """A model that is fitted, with the derivatives of its steps.

    Where a tolerance controls the steps, runs are recorded at the very times of measured values, and fitted values are
    as exact as these runs: derivatives only say where the search goes on and how wide intervals are. So they are those
    of equal steps where these are cheaper.

    Parameters
    ----------
    steps
        Steps of the model's runs.
    """

    def __init__(self, steps: DerivativeSteps) -> None:
        self._steps, simulation = steps, steps.any
        self._step = simulation.step_size
        self._differentiated = steps.named or steps.equal
        named = steps.named if steps.named is not None and steps.named.tolerance else None
        self._controlled = named if steps.named is not None else steps.adaptive
        self.parameters = simulation.functions.system.parameters
        self.outputs = computed_variables(simulation)
        self.given = simulation.run_loop.parameters.copy()

    @property
    def steps(self) -> str:
        """The steps of its runs in words."""
        return (self._controlled or self._differentiated).words

    def run(self, request: Request) -> FittedRun:
        """Run the model; see `FittedMachine`."""
        if self._controlled is None:
            return _EqualRun(self._wanted(request).run(self._differentiated))
        steps, stop = self._controlled, max(request.stop, self._controlled.size)
        simulation = steps.begun(request.chosen, request.values.tolist())
        asked = np.concatenate([request.times, request.times + _RATE * steps.size])
        inner = asked[(asked > 0.0) & (asked < stop)]
        times = np.unique(np.concatenate([[0.0], inner, [stop]]))
        apart = np.append(np.diff(times) > _SAME * stop, True)
        times = times[apart]
        rows = recorded_rows(simulation, times)
        names = [variable.name for variable in simulation.continuous]
        read = rows[:, [names.index(self.outputs[row].name) for row in request.rows]]

        def slopes(chosen: Sequence[int]) -> RunSlopes:
            run = self._wanted(request).run(self._differentiated)
            return RunSlopes(run.times, *run.slopes(chosen))

        return _ControlledRun(times, read[:-1], read[1:], slopes)

    def prepare(self, request: Request) -> None:
        """Choose the steps that are differentiated; see `FittedMachine`."""
        if self._steps.named is None:
            wanted = self._wanted(request)
            made = self._steps.choose(
                wanted.evaluate, wanted.compare, wanted.stop, asked=INEXACT, values=wanted.set
            )  # fmt: skip
            self._differentiated = made.steps

    def finer(self) -> tuple[ModelMachine, float]:
        """Return the machine with shorter steps; see `FittedMachine`."""
        machine = copy(self)
        finer, factor = (self._controlled or self._differentiated).finer()
        if self._controlled is None:
            machine._differentiated = finer
        else:
            machine._controlled = finer
        return machine, factor

    def errors(self, request: Request) -> DerivativeErrors | None:
        """Return the errors of derivatives; see `FittedMachine`."""
        wanted = self._wanted(request)
        try:
            return self._steps.judged(self._differentiated, wanted.evaluate, wanted.compare, wanted.stop).errors
        except SimulationError:
            return None

    def improved(self, request: Request, errors: DerivativeErrors | None) -> bool:
        """Take shorter steps where these are needed; see `FittedMachine`."""
        if self._steps.named is not None:
            return False
        before = self._differentiated
        if errors is None or errors.largest > 2.0 * INEXACT:
            self.prepare(request)
        return self._differentiated != before

    def _wanted(self, request: Request) -> DifferentiatedOutputs:
        values, times = request.values.tolist(), request.times
        readings = np.unique(times[(times > 0.0) & (times <= request.stop)])
        stop = max(request.stop, self._step)  # a run lasts a step at least
        return DifferentiatedOutputs(request.rows, request.chosen, stop, values, readings)


def checked_bounds(variable: Variable, given: Bounds) -> tuple[float, float]:
    """Return the bounds of a free parameter in its unit.

    Raises
    ------
    InputError
        When they are no interval, or reach beyond the values that the parameter may have: the search would go there.
    """
    low, high = checked_interval(variable, given)
    for bound in (low, high):
        if refused := out_of_range(variable.name, variable, bound):
            raise InputError(f"{refused}; give bounds of the search within that")
    return low, high


def checked_interval(variable: Variable, given: Bounds) -> tuple[float, float]:
    """Return two numbers that are an interval, in the unit of a variable; refuse others.

    Of `140:220 bar` the first is in the unit of the variable by the rule for numbers, and meant otherwise.
    """
    name = variable.name
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise InputError(f"{name} is to lie within {given!r}; give a least and a greatest value, as (1e7, 2e7)")
    if all(isinstance(each, str) for each in given) and len({is_plain(str(each)) for each in given}) > 1:
        raise InputError(f"{name} is to lie between '{given[0]}' and '{given[1]}'; write the unit with both")
    low, high = (variable.number(each) for each in given)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        ends = " and ".join(with_unit(each, variable) for each in (low, high))
        raise InputError(f"{name} is to lie between {ends}; give a smaller and a greater finite number")
    return low, high


def at_bounds(names: Sequence[str], values: Floats, fractions: Floats) -> tuple[str, ...]:
    """Return a sentence for each value on a bound: beyond it there may be a better one.

    Parameters
    ----------
    names, values
        Of the parameters.
    fractions
        Values as fractions of the ranges between the bounds, shape (p,).
    """
    return tuple(
        f"{name} lies at its bound, {value:.6g}: widen it, and see whether it moves on"
        for name, value, fraction in zip(names, values.tolist(), fractions.tolist(), strict=True)
        if min(fraction, 1.0 - fraction) < _ON_BOUND
    )


def first_values(variables: Sequence[Variable], given: Floats, low: Floats, high: Floats) -> Floats:
    """Return where a search within bounds begins: at the given values, those on a bound included.

    A value outside of its bounds is replaced by their middle, with a warning: bounds in another unit than that of the
    variable, as pressures in bar, show here.
    """
    inside = (low <= given) & (given <= high)
    for place in np.flatnonzero(~inside).tolist():
        logger.warning(
            "%s is %.6g %s in the model, which is not between %.6g and %.6g: the search begins in their middle",
            *(variables[place].name, given[place], variables[place].unit, low[place], high[place]),
        )
    return np.where(inside, given, 0.5 * (low + high))
