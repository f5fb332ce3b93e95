"""What a fit needs of a machine: runs with parameters, and the derivatives of these runs."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mbsfmu.analysis.sensitivities import DifferentiableRun, computed_variables
from mbsfmu.base.errors import InputError
from mbsfmu.modelling.variables import Variable, out_of_range
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

_ON_BOUND = 1e-6
"""Fraction of the range between bounds within which a value lies on one: searches within bounds end next to them."""


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

    def slopes(self, chosen: Sequence[int]) -> tuple[Floats, Floats]:
        """Return derivatives by parameters where steps begin and end, each of shape (N, rows, parameters).

        They are asked for before the machine runs with other parameters.
        """
        ...


class FittedMachine(Protocol):
    """A machine whose parameters are fitted.

    Attributes
    ----------
    parameters, outputs
        What can be fitted, and what can be measured.
    given
        Values of all parameters before the fit, in the units of the parameters.
    derivatives
        How its runs are differentiated, in words; empty where derivatives are exact.
    """

    parameters: Sequence[Variable]
    outputs: Sequence[Variable]
    given: Floats
    derivatives: str

    def run(self, chosen: Sequence[int], values: Floats, stop: float, rows: Sequence[int]) -> FittedRun:
        """Run the machine.

        Parameters
        ----------
        chosen, values
            Indices of parameters, and their values.
        stop
            End of the run in s at least.
        rows
            Indices of the outputs that are read.

        Raises
        ------
        SimulationError
            When the run fails.
        InputError
            When a value is refused.
        """
        ...


class ModelMachine:
    """A model that is fitted, with the exact derivatives of its steps.

    Parameters
    ----------
    simulation
        By a formulation of `DIFFERENTIATED`, and the trapezoidal rule or a Rosenbrock method.
    """

    derivatives = ""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.parameters: Sequence[Variable] = simulation.functions.system.parameters
        self.outputs: Sequence[Variable] = computed_variables(simulation)
        self.given: Floats = simulation.run_loop.parameters.copy()

    def run(self, chosen: Sequence[int], values: Floats, stop: float, rows: Sequence[int]) -> DifferentiableRun:
        """Run the model; see `FittedMachine`."""
        simulation = self._simulation
        simulation.reset()
        for index, value in zip(chosen, values.tolist(), strict=True):
            simulation.set(self.parameters[index].name, value)
        return DifferentiableRun(simulation, max(stop, simulation.step_size), rows)


def checked_bounds(variable: Variable, low: float, high: float) -> tuple[float, float]:
    """Return the bounds of a free parameter.

    Raises
    ------
    InputError
        When they are no interval, or reach beyond the values that the parameter may have: the search would go there.
    """
    checked_interval(variable.name, low, high)
    for bound in (low, high):
        if refused := out_of_range(variable.name, variable, bound):
            raise InputError(f"{refused}; give bounds of the search within that")
    return low, high


def checked_interval(name: str, low: float, high: float) -> tuple[float, float]:
    """Return two numbers that are an interval; refuse others."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"{name} is to lie between {low:g} and {high:g}; give a smaller and a greater finite number")
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
