"""Watch of the conditions on a run that its user should know of: end stops, cavitation, values below their minimum."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mbsfmu.model.machine import Machine
from mbsfmu.model.remarks import conditions_of
from mbsfmu.modelling import Array, Condition, Remark, remarks
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

APART = 1.0
"""Time in s without a condition after which it happens anew: what rebounds from an end stop has not left it."""
_ROUND_OFF = 1e-9  # by which a value may be below the least one, in its unit


class ConditionWatch:
    """Watches conditions on the variables of a run.

    Parameters
    ----------
    name
        Name of the model.
    machine
        What runs; None where nobody said.
    variables, parameters
        Its varying variables, in the order of rows, and its parameters.
    by_system
        Names of both by `system.variable`, those of connected inputs included.

    Attributes
    ----------
    conditions
        The conditions, by the names of the variables and parameters.
    """

    def __init__(
        self,
        name: str,
        machine: Machine | None,
        variables: Sequence[Variable],
        parameters: Sequence[Variable],
        by_system: Mapping[str, str],
    ) -> None:
        self._name = name
        self._column = {each.name: place for place, each in enumerate(variables)}
        self._parameter = {each.name: place for place, each in enumerate(parameters)}
        known = {**self._column, **self._parameter}
        own = () if machine is None else conditions_of(machine)
        named = (each.renamed(lambda reference: by_system.get(reference, reference)) for each in own)
        computed = (each for each in variables if each.causality is not Causality.INPUT and each.minimum is not None)
        self.conditions = (
            *(_in_variables(each, known) for each in named if {*each.weights} <= {*known, *each.numbers}),
            *map(_below_minimum, computed),
        )
        self.begin()

    @property
    def columns(self) -> set[int]:
        """Where in a row the variables stand that it looks at."""
        return {self._column[name] for each in self.conditions for name in each.weights if name in self._column}

    def begin(self) -> None:
        """Start a new run, in which nothing has happened."""
        self._seen: dict[int, float] = {}

    def remarks(
        self, times: Array, rows: Floats, parameters: Floats, columns: Sequence[int] | None = None
    ) -> Iterator[Remark]:
        """Yield a remark on each condition that held at a point of a run.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and values, shape (k, number of variables).
        parameters
            Values of the parameters.
        columns
            Which variables the rows have; all by default.
        """
        place = {name: index for index, name in enumerate(self._column)}
        if columns is not None:
            names = list(self._column)
            place = {names[column]: index for index, column in enumerate(columns)}

        def values_of(name: str) -> Array | float | None:
            if name in self._parameter:
                return float(parameters[self._parameter[name]])
            return rows[:, place[name]] if name in place else None

        return remarks(self.conditions, times, values_of)

    def follow(self, times: Array, rows: Floats, parameters: Floats) -> None:
        """Log the `remarks` on a run."""
        for remark in self.remarks(times, rows, parameters):
            self._log(remark)

    def follow_step(self, time: float, row: Floats, parameters: Floats) -> None:
        """Log what happens at the end of a step, with its time in s, and has not lasted since less than `APART`."""
        for index, condition in enumerate(self.conditions):
            if self._sum(condition, row, parameters) > condition.bound:
                if not abs(time - self._seen.get(index, -np.inf)) <= APART:
                    self._log(replace(condition, extent="").remark(time, np.zeros(1), np.zeros(1)))
                self._seen[index] = time

    def _sum(self, condition: Condition, row: Floats, parameters: Floats) -> float:
        return sum(
            factor * float(row[self._column[name]] if name in self._column else parameters[self._parameter[name]])
            for name, factor in condition.weights.items()
        )

    def _log(self, remark: Remark) -> None:
        logger.log(logging.WARNING if remark.doubtful else logging.INFO, "%s: %s", self._name, remark.sentence)


def _in_variables(condition: Condition, known: Iterable[str]) -> Condition:
    """Return a condition in variables and parameters that a run has; what data alone have is added to the bound."""
    there = set(known)
    fixed = sum(factor * condition.numbers[name] for name, factor in condition.weights.items() if name not in there)
    weights = {name: factor for name, factor in condition.weights.items() if name in there}
    return replace(condition, weights=weights, bound=condition.bound - fixed, numbers={})


def _below_minimum(variable: Variable) -> Condition:
    """Return the condition that a variable is below what it can be."""
    minimum = float(variable.minimum or 0.0)
    return Condition(
        f"{variable.name} is below {minimum:g} {variable.unit}",
        {variable.name: -1.0},
        _ROUND_OFF - minimum,
        lasts=True,
        extent=f": it falls to {{value:.4g}} {variable.unit}",
        advice=f"; it is the {variable.description}",
        doubtful=True,
    )
