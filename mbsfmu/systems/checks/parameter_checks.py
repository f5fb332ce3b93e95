"""Checks of relations between parameters."""

from __future__ import annotations

from mbsfmu.base.errors import InputError
from mbsfmu.model.inertia import missing_in
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.variables import with_unit
from mbsfmu.systems.capabilities import InertiaTensors, require_capability
from mbsfmu.systems.system import System


def check_parameters(system: System, parameters: Array) -> None:
    """Check the relations between parameters of a system.

    Raises
    ------
    InputError
        When they contradict each other.
    """
    if contradiction := contradiction_of(system, parameters):
        raise InputError(contradiction)


def contradiction_of(system: System, parameters: Array) -> str | None:
    """Return why parameters of a system are inconsistent, or None.

    They are inconsistent if one does not exceed another as `orderings` demands, or an inertia tensor is impossible.
    """
    for smaller, greater in system.orderings:
        if not parameters[greater] > parameters[smaller]:
            variable = system.parameters[greater]
            return (
                f"{variable.name} is {with_unit(parameters[greater], variable)}; "
                f"it must be greater than {system.parameters[smaller].name}, {parameters[smaller]:g}"
            )
    tensors = require_capability(system, InertiaTensors).inertia_tensors(parameters).reshape(-1, 6)
    for tensor, values in zip(system.tensors, tensors.tolist(), strict=True):
        if missing := missing_in(values, rod=tensor.rod):
            moments, products = (", ".join(f"{each:g}" for each in part) for part in (values[:3], values[3:]))
            return (
                f"the moments of inertia of body '{tensor.body}' are ({moments}), the products of inertia "
                f"({products}) kg.m2; {missing}"
            )
    return None
