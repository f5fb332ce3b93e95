"""Dependencies between variables, for the model structure of an FMU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.initialization.initialization import Initialization
from mbsfmu.modelling.variables import Causality, Variable, rated_names
from mbsfmu.simulation.variable_table import UNCONVERGED, VIOLATIONS, VariableTable
from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.systems.functions import SystemFunctions

Pattern = NDArray[np.bool_]


class Dependencies:
    """Dependencies from the sparsity of the traced functions.

    Parameters
    ----------
    functions
        Functions of the system.
    initialization
        What finds its start: parameters that it feeds to other parts depend on parameters in turn.
    table
        Its variables.
    """

    def __init__(self, functions: SystemFunctions, initialization: Initialization, table: VariableTable) -> None:
        self._expressions = functions.expressions
        self._initialization = initialization
        self._table = table
        self._system = functions.system

    @cached_property
    def while_stepping(self) -> dict[str, tuple[str, ...]]:
        """Return the inputs on which each continuous variable depends directly, at given states.

        Accelerations depend on every input that enters the equations of motion.
        """
        inputs = self._system.inputs
        given = self._expressions
        forcing = _any(given.depends(given.residual, "inputs"), 0) | _any(given.depends(given.quadratic, "inputs"), 0)
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
        """Return the parameters and inputs on which each other variable depends after initialization.

        With closed loops, coordinates depend on all variables of the loop equations.
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
        rows["discrete"], discrete_by_inputs = self._updated(rows, accelerated)
        accelerated = accelerated | _any(through(given.depends(given.residual, "discrete"), rows["discrete"]), 0)
        outputs = given.depends(given.outputs, "parameters")
        outputs = outputs | through(given.depends(given.outputs, "discrete"), rows["discrete"])
        for part, source in (("coordinates", rows["coordinates"]), ("velocities", rows["velocities"])):
            outputs = outputs | through(given.depends(given.outputs, part), source)
        outputs = outputs | through(given.depends(given.outputs, "states"), rows["states"])
        outputs = outputs | np.outer(_any(given.depends(given.outputs, "accelerations"), 1), accelerated)
        outputs = outputs | np.outer(_any(given.depends(given.outputs, "integrals"), 1), moving | placed)
        result: dict[str, tuple[str, ...]] = {}
        for what in ("coordinates", "velocities", "states", "discrete"):
            for variable, row in zip(getattr(system, what), rows[what], strict=True):
                result[variable.name] = self._own(row)
        for variable in (*system.accelerations, *system.integrals, *system.reactions):
            result[variable.name] = self._own(accelerated)
        for variable, row in zip(system.outputs, outputs, strict=True):
            result[variable.name] = self._own(row)
        for variable in VIOLATIONS if system.constraints else ():
            result[variable.name] = self._own(placed | closing)
        present = {variable.name for variable in self._table.continuous}
        result |= {variable.name: () for variable in UNCONVERGED if variable.name in present}
        for variable, row in zip(self._table.calculated, self._calculated, strict=True):
            result[variable.name] = self._own(row)
        inputs = self._inputs_at_start(discrete_by_inputs)
        return {name: tuple(dict.fromkeys((*names, *inputs.get(name, ())))) for name, names in result.items()}

    def _updated(self, rows: Mapping[str, Pattern], accelerated: Pattern) -> tuple[Pattern, Pattern]:
        """Return the parameters and inputs on which discrete states depend after an update at the start."""
        given = self._expressions
        by_parameters = given.depends(given.initial_discrete, "parameters")
        if not len(by_parameters):
            return by_parameters, np.zeros((0, len(self._system.inputs)), dtype=bool)
        by_discrete = given.depends(given.updates, "discrete")
        on_accelerations = _any(given.depends(given.updates, "accelerations"), 1)
        by_parameters = by_parameters | given.depends(given.updates, "parameters")
        for part in ("coordinates", "velocities", "states"):
            by_parameters = by_parameters | through(given.depends(given.updates, part), rows[part])
        integrated = on_accelerations | _any(given.depends(given.updates, "integrals"), 1)
        by_parameters = by_parameters | np.outer(integrated, accelerated)
        forcing = _any(given.depends(given.residual, "inputs"), 0)
        by_inputs = given.depends(given.updates, "inputs") | np.outer(on_accelerations, forcing)
        for _ in self._system.samplings:  # those before may count for those behind
            by_parameters = by_parameters | through(by_discrete, by_parameters)
            by_inputs = by_inputs | through(by_discrete, by_inputs)
        return by_parameters, by_inputs

    def _inputs_at_start(self, discrete_by_inputs: Pattern) -> dict[str, tuple[str, ...]]:
        """Return the inputs on which variables depend after initialization.

        Directly, by an update at the start, and by prescribed motion.
        """
        given, system = self._expressions, self._system
        prescribed = sorted(rated_names(system.inputs))
        everything = [*self.while_stepping, *(each.name for each in self._table.calculated)]
        stepping = {name: (*self.while_stepping.get(name, ()), *prescribed) for name in everything}
        stepping = {name: tuple(dict.fromkeys(inputs)) for name, inputs in stepping.items()}
        if not system.discrete:
            return stepping
        through_motion = _any(through(given.depends(given.residual, "discrete"), discrete_by_inputs), 0)
        by_discrete = dict(zip((variable.name for variable in system.discrete), discrete_by_inputs, strict=True))
        for variable in (*system.accelerations, *system.reactions):
            by_discrete[variable.name] = through_motion
        on_accelerations = _any(given.depends(given.outputs, "accelerations"), 1)
        outputs = through(given.depends(given.outputs, "discrete"), discrete_by_inputs)
        outputs = outputs | np.outer(on_accelerations, through_motion)
        by_discrete |= dict(zip((variable.name for variable in system.outputs), outputs, strict=True))
        names = [variable.name for variable in system.inputs]
        result = dict(stepping)
        for name, row in by_discrete.items():
            result[name] = tuple(each for each, by in zip(names, row, strict=True) if by or each in stepping[name])
        return result

    @cached_property
    def _calculated(self) -> list[Pattern]:
        """Parameters and inputs on which each calculated parameter depends.

        They are those of its own part, and those that parameters fed to it depend on.
        """
        count = len(self._system.parameters)
        result: list[Pattern] = []
        for part in self._initialization.balanced_parts:
            own, by_inputs = _balancing(part.functions.expressions)
            row = np.zeros(count + len(self._system.inputs), dtype=bool)
            row[part.first_parameter : part.first_parameter + len(own)] = own
            for index, used in zip(part.inputs, by_inputs, strict=True):
                if index >= 0:
                    row[count + index] = used
            row = _followed(row, self._initialization.feeds, result)
            result += [row] * len(part.functions.system.balances)
        return result

    def _own(self, row: Pattern) -> tuple[str, ...]:
        """Return the settable parameters of a row, and the sources of connected ones.

        The row is one of parameters, or one of parameters and inputs.
        """
        named = (*self._system.parameters, *self._system.inputs)
        row = _followed(np.pad(row, (0, len(named) - len(row))), self._initialization.feeds, self._calculated)
        settable = (Causality.PARAMETER, Causality.INPUT)
        return tuple(
            variable.name for variable, used in zip(named, row, strict=True) if used and variable.causality in settable
        )


def _balancing(given: SystemExpressions) -> tuple[Pattern, Pattern]:
    """Return the parameters and inputs of a part on which its static equilibrium depends."""
    at_rest = {part: ca.SX.zeros(given.symbol_by_part[part].shape) for part in ("velocities", "accelerations")}
    loads = given.at([given.residual], at_rest)[0]
    balancing = {name for _, name in given.system.balances}
    others = np.array([each.name not in balancing for each in given.system.inputs], dtype=bool)
    by_inputs = _any(given.depends(loads, "inputs"), 0) & others
    row = _any(given.depends(loads, "parameters"), 0)
    if given.system.constraints:
        row = row | _any(given.depends(given.all_closure, "parameters"), 0)
    for part in ("coordinates", "states"):
        row = row | _any(given.depends(given.start[part], "parameters"), 0)
    return row, by_inputs


def _followed(row: Pattern, feeds: Sequence[tuple[int, int]], calculated: Sequence[Pattern]) -> Pattern:
    """Return a row with the sources of its connected parameters."""
    for source, parameter in feeds:
        if row[parameter] and source < len(calculated):
            row = row | calculated[source]
    return row


def _names(variables: Sequence[Variable], selected: Pattern | None = None) -> tuple[str, ...]:
    chosen = [True] * len(variables) if selected is None else selected
    return tuple(variable.name for variable, used in zip(variables, chosen, strict=True) if used)


def through(outer: Pattern, inner: Pattern) -> Pattern:
    """Return the composition of two dependency patterns, shape (rows of the outer, columns of the inner)."""
    return (outer.astype(int) @ inner.astype(int)).astype(bool)


def _any(pattern: Pattern, axis: int) -> Pattern:
    return np.asarray(pattern.any(axis=axis))
