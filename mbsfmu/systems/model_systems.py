"""Systems of a model from its data."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mbsfmu.model.coupled import ModelData
from mbsfmu.modelling import DataError, closest_match, structure_of
from mbsfmu.modelling.variables import Variable, with_unit
from mbsfmu.systems import block_system, circuit_system  # noqa: F401 - they register how their systems are made
from mbsfmu.systems.coupled.coupled_system import CoupledSystem
from mbsfmu.systems.coupled.wiring import Wiring
from mbsfmu.systems.making import make_system
from mbsfmu.systems.mechanism import coordinates_choice  # noqa: F401 - the same
from mbsfmu.systems.system import System
from mbsfmu.tracing.kept_traces import Traces


def coupled_system(
    model: ModelData, *, absolute: bool, keeps_traces: bool = False, for_others: bool = False
) -> tuple[CoupledSystem, Traces]:
    """Return the equations of a whole model, and the cache of what is traced of them.

    Parameters
    ----------
    model, absolute
        The model, and whether mechanisms are in absolute coordinates, as in `make_system`.
    keeps_traces, for_others
        Whether traces are kept, and for other processes too; not where users' code is part of the equations.

    Raises
    ------
    DataError
        When nothing determines an algebraic loop of connections, or forces follow accelerations at once in a way
        that is not linear.
    """
    parts = systems_of(model, absolute=absolute)
    traces = Traces((traced_content(model, parts), absolute) if keeps_traces else None, for_others=for_others)
    return CoupledSystem(model.name, parts, model.connections, traces), traces


def systems_of(model: ModelData, *, absolute: bool) -> dict[str, System]:
    """Return the equations of each system of a model by name; `absolute` as in `make_system`."""
    return {
        name: make_system(data, name, absolute=absolute, start_values=model.start_of(name))
        for name, data in model.systems.items()
    }


def traced_content(model: ModelData, parts: Mapping[str, System]) -> object:
    """Return what the traced functions of a model follow from, which numbers of parameters are no part of.

    Parameters
    ----------
    model, parts
        The model, and its systems by name: the names of their parameters tell the zeros that are left out.
    """
    structures = {name: structure_of(data) for name, data in model.systems.items()}
    interfaces = {name: _interface(part) for name, part in parts.items()}
    held = {name: value for name, value in model.start.items() if _is_in_code(parts, name)}
    return model.name, structures, model.connections, interfaces, held


def _interface(part: System) -> object:
    """Return the names of a system's variables, and what else stands in code of it."""
    groups = (
        *(part.coordinates, part.velocities, part.accelerations, part.states, part.discrete, part.integrals),
        *(part.inputs, part.parameters, part.outputs, part.reactions, part.limited, part.loop_iterates),
    )
    variables = [[(each.name, each.unit, each.nominal, each.rated) for each in group] for group in groups]
    balances = [(variable.name, name) for variable, name in part.balances]
    return variables, balances, part.constraints, part.samplings, part.orderings, part.tensors, part.references


def _is_in_code(parts: Mapping[str, System], reference: str) -> bool:
    """Return whether a start value is a constant of the traced functions: that of a state."""
    name, _, variable = reference.partition(".")
    return any(each.name == variable for each in (*parts[name].states, *parts[name].discrete))


def check_variables(model: ModelData) -> None:
    """Check that connections and signals of a model refer to existing, compatible variables.

    Raises
    ------
    DataError
        When one does not.
    """
    if model.connections or model.signals or model.start:
        parts = systems_of(model, absolute=False)
        wiring = Wiring(parts, model.connections)
        for reference in model.signals:
            wiring.free_input(reference)
        for reference in model.start:
            _check_start(model, starting_variables(parts), reference)


def starting_variables(parts: Mapping[str, System]) -> dict[str, Variable]:
    """Return what may have a start value, by `system.variable`: parameters, inputs and states."""
    return {
        f"{name}.{each.name}": each
        for name, part in parts.items()
        for each in (*part.parameters, *part.inputs, *part.states)
    }


def _check_start(model: ModelData, known: Mapping[str, Variable], reference: str) -> None:
    """Refuse a start value of an unknown or connected variable, or outside its limits."""
    (name, _, variable), value = reference.partition("."), model.start[reference]
    if reference not in known:
        names = [each.removeprefix(f"{name}.") for each in known if each.startswith(f"{name}.")]
        raise DataError(
            f"start: there is no '{variable}' in '{name}' that starts anywhere; {closest_match(variable, names)}"
        )
    if any(target == reference for _, target in model.connections):
        raise DataError(f"start: '{reference}' is driven by a connection")
    low, high = known[reference].accepted
    if not (-math.inf if low is None else low) <= value <= (math.inf if high is None else high):
        allowed = " and ".join(
            f"{word} {each:g}" for word, each in (("at least", low), ("at most", high)) if each is not None
        )
        raise DataError(f"start: {reference} is {with_unit(value, known[reference])}; it must be {allowed}")
