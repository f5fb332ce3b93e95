"""Dependencies between variables in kernel loops, from the recorded calls."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.variable_table import VariableTable
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.tape.recorded_program import depends


class RecordedDependencies:
    """The same as `Dependencies`, for systems without balanced start values.

    Parameters
    ----------
    functions
        Functions of the system.
    table
        Its variables.
    """

    def __init__(self, functions: SystemFunctions, table: VariableTable) -> None:
        self._functions = functions
        self._table = table

    @cached_property
    def while_stepping(self) -> dict[str, tuple[str, ...]]:
        """Return the inputs on which each continuous variable depends directly, at given states."""
        functions, system = self._functions, self._functions.system
        program = functions.recorded(
            "direct", lambda given, _: [given.residual, given.all_drift_rates, given.outputs, given.reactions]
        ).program
        residual, drifts, outputs, reactions = (depends(program, index, "inputs") for index in range(4))
        forcing = np.asarray(residual.any(axis=0) | drifts.any(axis=0))
        result: dict[str, tuple[str, ...]] = {variable.name: () for variable in self._table.continuous}
        for variable in system.accelerations:
            result[variable.name] = _names(system.inputs, forcing)
        for variable, direct in zip(system.reactions, reactions, strict=True):
            result[variable.name] = _names(system.inputs, direct | forcing)
        through = functions.outputs_by_accelerations
        for variable, direct, accelerated in zip(system.outputs, outputs, through, strict=True):
            result[variable.name] = _names(system.inputs, direct | (forcing & accelerated))
        given = {variable.name for variable in system.inputs}
        return {name: needed for name, needed in result.items() if name not in given}

    @cached_property
    def at_start(self) -> dict[str, tuple[str, ...] | None]:
        """Return None for each other variable: it may depend on all parameters and inputs after initialization.

        The exact list would be too long for a description.
        """
        given = {variable.name for variable in self._functions.system.inputs}
        return {each.name: None for each in self._table.continuous if each.name not in given}


def _names(variables: tuple[Variable, ...], selected: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(variable.name for variable, used in zip(variables, selected, strict=True) if used)
