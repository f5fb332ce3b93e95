"""The variables of a simulation by name: where each one's value stands, and what it depends on."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mbsfmu.data import DataError
from mbsfmu.errors import InputError
from mbsfmu.formulations.functions import Floats, SystemFunctions
from mbsfmu.formulations.initialization import Initialization
from mbsfmu.formulations.reactions import least_reactions
from mbsfmu.formulations.state import State
from mbsfmu.variables import Causality, Variability, Variable

logger = logging.getLogger(__name__)

Pattern = NDArray[np.bool_]

VIOLATIONS = (
    Variable("constraint.position", unit="1", description="magnitude of the loop equations' violation, m and rad"),
    Variable("constraint.velocity", unit="1", description="magnitude of their rate, m/s and rad/s"),
)

STEP = Variable(
    "solver.step",
    Causality.PARAMETER,
    Variability.FIXED,
    "s",
    start=1e-3,
    minimum=1e-9,
    description="largest internal step of fixed-step solvers; longer communication steps are divided",
)

NO_EVENT = sys.float_info.max
"""Where no signal jumps or bends any more; the FMI has no infinite numbers."""

NEXT_EVENT = Variable(
    "next_event",
    Causality.LOCAL,
    Variability.DISCRETE,
    "s",
    description="time at which a signal of the unit's own jumps or bends next; 1.8e308 where none does any more",
)


@dataclass(frozen=True)
class VariableTable:
    """All variables of a system.

    Attributes
    ----------
    continuous
        Variables in the order of `readings`: inputs, z, ż, z̈, x, integrals, outputs, reactions, violations.
    parameters, calculated
        Parameters and calculated parameters.
    settings
        The parameters of the solver.
    timing
        The time of the next event, where inputs follow signals.
    """

    continuous: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    calculated: tuple[Variable, ...]
    settings: tuple[Variable, ...]
    timing: tuple[Variable, ...]

    @classmethod
    def of(
        cls, functions: SystemFunctions, initialization: Initialization, step: float, has_events: bool
    ) -> VariableTable:
        """Collect the variables of a system."""
        system = functions.system
        continuous = (
            *system.inputs,
            *system.coordinates,
            *system.velocities,
            *system.accelerations,
            *system.states,
            *system.integrals,
            *system.outputs,
            *system.reactions,
            *(VIOLATIONS if system.constraints else ()),
        )
        calculated = tuple(replace(variable, variability=Variability.FIXED) for variable in initialization.calculated)
        timing = (NEXT_EVENT,) if has_events else ()
        table = cls(continuous, system.parameters, calculated, (replace(STEP, start=step),), timing)
        _refuse_doubles(table.ordered)
        return table

    @property
    def ordered(self) -> tuple[Variable, ...]:
        """Inputs and outputs first, then parameters, then the rest."""
        rank = (Causality.INPUT, Causality.OUTPUT, Causality.PARAMETER, Causality.CALCULATED_PARAMETER)
        everything = [*self.continuous, *self.parameters, *self.settings, *self.calculated, *self.timing]
        order = {causality: index for index, causality in enumerate((*rank, Causality.LOCAL))}
        return tuple(sorted(everything, key=lambda variable: order[variable.causality]))


def _refuse_doubles(variables: Sequence[Variable]) -> None:
    """Check that every name means one variable.

    Raises
    ------
    DataError
        When two variables have one name; the sentence tells what both are.
    """
    first: dict[str, Variable] = {}
    for variable in variables:
        if variable.name in first:
            raise DataError(
                f"the name '{variable.name}' is given to two variables, '{first[variable.name].description}' and "
                f"'{variable.description}'; rename one of the parts or points that it is made of"
            )
        first[variable.name] = variable


def readings(functions: SystemFunctions, state: State, inputs: Floats) -> Floats:
    """Return the values of all continuous variables; the functions must hold the state."""
    functions.inputs[:] = inputs
    outputs, violations = functions.outputs()
    parts = [
        inputs,
        state.coordinates,
        state.velocities,
        state.accelerations,
        state.states,
        state.integrals,
        outputs,
        least_reactions(functions),
    ]
    if functions.system.constraints:
        parts.append(violations)
    return np.concatenate(parts)


def warn_below_minimum(variables: Sequence[Variable], times: Floats, rows: Floats) -> None:
    """Say in the log which variables fell below what they can be, how far, and when first.

    Parameters
    ----------
    variables
        Variables, one for each column.
    times, rows
        Times in s, shape (k,), and values, shape (k, number of variables).
    """
    for variable, values in zip(variables, rows.T, strict=True):
        if variable.causality is Causality.INPUT or variable.minimum is None:
            continue
        below = np.flatnonzero(values < variable.minimum)
        if len(below):
            logger.warning(
                "%s falls to %.4g %s, below %g %s first at t = %.6g s; it is the %s",
                variable.name,
                values.min(),
                variable.unit,
                variable.minimum,
                variable.unit,
                times[below[0]],
                variable.description,
            )


class Dependencies:
    """Which variables depend on which, from the sparsity of the traced functions.

    Parameters
    ----------
    functions
        Functions of the system.
    table
        Its variables.
    """

    def __init__(self, functions: SystemFunctions, table: VariableTable) -> None:
        self._expressions = functions.expressions
        self._table = table
        self._system = functions.system

    @cached_property
    def while_stepping(self) -> dict[str, tuple[str, ...]]:
        """Return the inputs that each continuous variable depends on directly, states being given.

        Accelerations depend on every input that enters the equations of motion.
        """
        inputs = self._system.inputs
        given = self._expressions
        forcing = _any(given.depends(given.residual, "inputs"), 0)
        on_inputs = given.depends(given.outputs, "inputs")
        on_accelerations = _any(given.depends(given.outputs, "accelerations"), 1)
        result: dict[str, tuple[str, ...]] = {variable.name: () for variable in self._table.continuous}
        for variable in self._system.accelerations:
            result[variable.name] = _names(inputs, forcing)
        on_reactions = given.depends(given.reactions, "inputs")
        for variable, direct in zip(self._system.reactions, on_reactions, strict=True):
            result[variable.name] = _names(inputs, direct | forcing)
        for variable, direct, through in zip(self._system.outputs, on_inputs, on_accelerations, strict=True):
            result[variable.name] = _names(inputs, direct | (forcing & through))
        return {name: depends for name, depends in result.items() if name not in _names(inputs)}

    @cached_property
    def at_start(self) -> dict[str, tuple[str, ...]]:
        """Return the parameters and inputs that each other variable depends on after initialization.

        Where loops are closed, coordinates depend on all that the loop equations depend on.
        """
        given, system = self._expressions, self._system
        closing = _any(given.depends(given.all_closure, "parameters"), 0)
        moving = _any(given.depends(given.residual, "parameters"), 0)
        rows: dict[str, Pattern] = {}
        start = given.start
        placed = given.placed(start["coordinates"], start["velocities"])
        for what, value in (("coordinates", placed[0]), ("velocities", placed[1]), ("states", start["states"])):
            own = given.depends(value, "parameters")
            if what != "states" and system.constraints:
                own = np.tile(_any(own, 0) | closing, (len(own), 1))
            rows[what] = own
        located = _any(rows["coordinates"], 0)
        placed = located | _any(rows["velocities"], 0)
        accelerated = moving | placed | _any(rows["states"], 0)
        outputs = given.depends(given.outputs, "parameters")
        for part, source in (("coordinates", rows["coordinates"]), ("velocities", rows["velocities"])):
            outputs = outputs | _through(given.depends(given.outputs, part), source)
        outputs = outputs | _through(given.depends(given.outputs, "states"), rows["states"])
        outputs = outputs | np.outer(_any(given.depends(given.outputs, "accelerations"), 1), accelerated)
        outputs = outputs | np.outer(_any(given.depends(given.outputs, "integrals"), 1), moving | placed)
        result: dict[str, tuple[str, ...]] = {}
        for what in ("coordinates", "velocities", "states"):
            for variable, row in zip(getattr(system, what), rows[what], strict=True):
                result[variable.name] = self._own(row)
        for variable in (*system.accelerations, *system.integrals, *system.reactions):
            result[variable.name] = self._own(accelerated)
        for variable, row in zip(system.outputs, outputs, strict=True):
            result[variable.name] = self._own(row)
        for variable in VIOLATIONS if system.constraints else ():
            result[variable.name] = self._own(placed | closing)
        for variable in self._table.calculated:
            result[variable.name] = self._own(moving | located)
        stepping = self.while_stepping
        return {name: (*names, *stepping.get(name, ())) for name, names in result.items()}

    def _own(self, row: Pattern) -> tuple[str, ...]:
        """Name the parameters of a row that a user can set."""
        return tuple(
            variable.name
            for variable, used in zip(self._system.parameters, row, strict=True)
            if used and variable.causality is Causality.PARAMETER
        )


def _names(variables: Sequence[Variable], selected: Pattern | None = None) -> tuple[str, ...]:
    chosen = [True] * len(variables) if selected is None else selected
    return tuple(variable.name for variable, used in zip(variables, chosen, strict=True) if used)


def _through(outer: Pattern, inner: Pattern) -> Pattern:
    return (outer.astype(int) @ inner.astype(int)).astype(bool)


def _any(pattern: Pattern, axis: int) -> Pattern:
    return np.asarray(pattern.any(axis=axis))


def check_value(variable: Variable, value: float) -> float:
    """Return the value as a float if the variable may take it.

    Raises
    ------
    InputError
        When it is not finite or out of the variable's range.
    """
    number = float(value)
    if not np.isfinite(number):
        raise InputError(f"{variable.name} = {number} is refused: it must be a finite number")
    low, high = variable.minimum, variable.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        allowed = f"at least {low:g}" if high is None else f"at most {high:g}"
        if low is not None and high is not None:
            allowed = f"between {low:g} and {high:g}"
        raise InputError(f"{variable.name} = {number:g} {variable.unit} is refused: it must be {allowed}")
    return number
