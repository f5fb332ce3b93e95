"""The systems that a model's data mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from hydraulics import Circuit
from mbsfmu.model.block import Block
from mbsfmu.model.coupled import ModelData
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling import DataError, meant
from mbsfmu.modelling.variables import with_unit
from mbsfmu.systems.block_system import BlockSystem
from mbsfmu.systems.circuit_system import CircuitSystem
from mbsfmu.systems.coupled.coupled_system import CoupledSystem
from mbsfmu.systems.coupled.wiring import Wiring
from mbsfmu.systems.mechanism.absolute_system import AbsoluteSystem
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import System
from mbsfmu.tracing.kept_traces import Traces


def system_of(
    data: Mechanism | Circuit | Block,
    name: str,
    *,
    absolute: bool,
    start_values: Mapping[str, float] = MappingProxyType({}),
) -> System:
    """Return the equations of one system of a model.

    Parameters
    ----------
    data, name
        The system, and its name in the model.
    absolute
        Whether a mechanism is in absolute coordinates, as `dca-alm` takes it.
    start_values
        Start values of inputs, parameters and states by name, where they are not those of the data.

    Raises
    ------
    InputError
        When a user's part is refused.
    """
    if isinstance(data, Block):
        return BlockSystem(data, name, start_values)
    if isinstance(data, Circuit):
        return CircuitSystem(data, name, start_values)
    return (AbsoluteSystem if absolute else MechanismSystem)(data, name, start_values)


def coupled_system(model: ModelData, *, absolute: bool, traces: Traces | None = None) -> CoupledSystem:
    """Return the equations of a whole model; `absolute` as there, `traces` as in `CoupledSystem`.

    Raises
    ------
    DataError
        When nothing determines an algebraic loop of connections, or forces follow accelerations at once in a way
        that is not linear.
    """
    return CoupledSystem(model.name, _parts(model, absolute=absolute), model.connections, traces)


def check_variables(model: ModelData) -> None:
    """Check that connections and signals of a model name variables that are there, and fit.

    Raises
    ------
    DataError
        When one does not.
    """
    if model.connections or model.signals or model.start:
        parts = _parts(model, absolute=False)
        wiring = Wiring(parts, model.connections)
        for reference in model.signals:
            wiring.free_input(reference)
        for reference in model.start:
            _check_start(model, parts, reference)


def _check_start(model: ModelData, parts: Mapping[str, System], reference: str) -> None:
    """Refuse a value at the start of what is not there, or driven, or beyond its limits."""
    name, _, variable = reference.partition(".")
    part, value = parts[name], model.start[reference]
    known = {each.name: each for each in (*part.parameters, *part.inputs, *part.states)}
    if variable not in known:
        raise DataError(f"start: there is no '{variable}' in '{name}' that starts anywhere; {meant(variable, known)}")
    if any(target == reference for _, target in model.connections):
        raise DataError(f"start: '{reference}' is driven by a connection")
    low, high = known[variable].minimum, known[variable].maximum
    if not (-math.inf if low is None else low) <= value <= (math.inf if high is None else high):
        allowed = " and ".join(
            f"{word} {each:g}" for word, each in (("at least", low), ("at most", high)) if each is not None
        )
        raise DataError(f"start: {reference} is {with_unit(value, known[variable])}; it must be {allowed}")


def _parts(model: ModelData, *, absolute: bool) -> dict[str, System]:
    return {
        name: system_of(data, name, absolute=absolute, start_values=model.start_of(name))
        for name, data in model.systems.items()
    }
