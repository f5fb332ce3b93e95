"""Systems of a model from its data."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mbsfmu.model.coupled import ModelData
from mbsfmu.modelling import DataError, closest_match
from mbsfmu.modelling.variables import with_unit
from mbsfmu.systems import block_system, circuit_system  # noqa: F401 - they register how their systems are made
from mbsfmu.systems.coupled.coupled_system import CoupledSystem
from mbsfmu.systems.coupled.wiring import Wiring
from mbsfmu.systems.making import make_system
from mbsfmu.systems.mechanism import coordinates_choice  # noqa: F401 - the same
from mbsfmu.systems.system import System
from mbsfmu.tracing.kept_traces import Traces


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
    """Check that connections and signals of a model refer to existing, compatible variables.

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
    """Refuse a start value of an unknown or connected variable, or outside its limits."""
    name, _, variable = reference.partition(".")
    part, value = parts[name], model.start[reference]
    known = {each.name: each for each in (*part.parameters, *part.inputs, *part.states)}
    if variable not in known:
        raise DataError(
            f"start: there is no '{variable}' in '{name}' that starts anywhere; {closest_match(variable, known)}"
        )
    if any(target == reference for _, target in model.connections):
        raise DataError(f"start: '{reference}' is driven by a connection")
    low, high = known[variable].accepted
    if not (-math.inf if low is None else low) <= value <= (math.inf if high is None else high):
        allowed = " and ".join(
            f"{word} {each:g}" for word, each in (("at least", low), ("at most", high)) if each is not None
        )
        raise DataError(f"start: {reference} is {with_unit(value, known[variable])}; it must be {allowed}")


def _parts(model: ModelData, *, absolute: bool) -> dict[str, System]:
    return {
        name: make_system(data, name, absolute=absolute, start_values=model.start_of(name))
        for name, data in model.systems.items()
    }
