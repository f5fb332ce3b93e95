"""Values of machines by name: read, checked and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.base.errors import InputError
from mbsfmu.modelling.variables import Variable, with_unit
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variable_table import check_value
from mbsfmu.tracing.workspace import Floats

Values = float | str | Sequence[float | str] | np.ndarray[Any, Any]
"""A number for all machines, or one for each."""


def value_array(simulation: Simulation, name: str, value: Any) -> Floats:
    """Return the values of all machines, shape (n,), or the one that all have, shape (); texts have units."""
    if isinstance(value, str | bool):
        value = simulation.variable(name).number(value, name)
    elif isinstance(value, Sequence) and any(isinstance(each, str | bool) for each in value):
        value = simulation.variable(name).numbers(value, name)
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim > 1 or not array.size:
        raise InputError(f"{name} must be a number, or an array with a number for each machine, of one dimension")
    return array


def start_parameters(simulation: Simulation, starts: Mapping[str, Values]) -> dict[str, Values]:
    """Return the parameters that are start values of variables."""
    known = {each.name for each in simulation.functions.system.parameters}
    found = {}
    for name, value in starts.items():
        own = simulation.variable(name).name
        if f"{own}_start" not in known:
            there = ", ".join(sorted(each.removesuffix("_start") for each in known if each.endswith("_start")))
            raise InputError(
                f"{name} has no start value that could be given; those that have one are {there or 'none'}"
            )
        found[f"{own}_start"] = value
    return found


def named_values(
    simulation: Simulation, parameters: Mapping[str, Values], starts: Mapping[str, Values]
) -> dict[str, Values]:
    """Return the values of parameters, with those that are start values.

    Raises
    ------
    InputError
        When a variable has no start value, or one is named twice.
    """
    named = {**parameters, **start_parameters(simulation, starts)}
    if len(named) < len(parameters) + len(starts):
        raise InputError("a start value is named among the parameters and the starts; name it once")
    return named


def input_place(name: str, simulation: Simulation) -> int:
    """Return the index of the one input that a name means.

    Raises
    ------
    InputError
        When there is none, or several.
    """
    found = chosen_places((name,), simulation.functions.system.inputs, "input", simulation)
    if len(found) > 1:
        raise InputError(f"the input '{name}' is ambiguous; name one input")
    return found[0]


def check_values(variable: Variable, values: Floats, machines: NDArray[np.int_]) -> None:
    """Refuse values that a variable may not have, with the first machine that has one.

    Parameters
    ----------
    variable
        The variable.
    values
        Its values, shape (n,).
    machines
        The numbers of their machines, shape (n,).

    Raises
    ------
    InputError
        When one is not finite, too large to compute with, or out of the variable's range.
    """
    try:
        for extreme in (np.argmin(values), np.argmax(values)):  # which are the first NaN where there is one
            check_value(variable, float(values[extreme]))
    except InputError:
        for machine, value in zip(machines.tolist(), values.tolist(), strict=True):
            try:
                check_value(variable, value)
            except InputError as error:
                raise InputError(f"machine {machine}: {error}") from None


def machine_name(simulation: Simulation, numbers: Mapping[str, Floats], machine: int) -> str:
    """Return how messages name a machine: its number, and the values by name that it has of its own."""
    told = (
        f"{name} = {with_unit(float(values[machine]), simulation.variable(name))}" for name, values in numbers.items()
    )
    listed = ", ".join(told)
    return f"machine {machine}" + (f" ({listed})" if listed else "")
