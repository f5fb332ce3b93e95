"""The traced functions that a unit's derivatives need: by inputs while it steps, by time, and at the start.

In unrolled code these are matrices and changes along directions, from which linear equations find the rest. In loops,
accelerations follow without such equations, and so do their changes; loops are closed by linear equations all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.systems.expressions import PARTS
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.tracing.workspace import RecordedFunction, TracedFunction

_VARIED = PARTS[: PARTS.index("references")]
"""Parts that change with what is set: references of orientations and momenta do not, these follow, those stay."""
_BY_TIME = {
    "coordinates": "velocities",
    "velocities": "accelerations",
    "states": "rates",
    "integrals": "integral_rates",
    "inputs": "input_rates",
}
"""The derivatives of parts by time."""


def derivatives(functions: SystemFunctions, *, steps: bool) -> Iterable[TracedFunction]:
    """Return those of unrolled code; those of outputs by time where a unit makes steps."""
    given = functions.expressions
    direct = [given.derivative(given.outputs, part) for part in ("inputs", "accelerations")]
    direct.append(given.derivative(given.quadratic, "inputs"))
    yield functions.traced("feedthrough", direct, matrices=[0, 1, 2])
    if steps:
        rates = ca.SX.zeros(len(functions.system.outputs))
        for part, rate in _BY_TIME.items():
            rates += ca.jtimes(given.outputs, functions.symbol(part), functions.symbol(rate))
        yield functions.traced("output_rates", [rates])
    yield variation(functions)
    if is_placed(functions):
        yield _placement_variation(functions)


_MOVED = tuple(f"d_{part}" for part in ("coordinates", "velocities", "states", "parameters", "inputs"))
"""Directions of what the start depends on."""


def changes(functions: SystemFunctions, *, steps: bool) -> Iterable[RecordedFunction]:
    """Return those of kernel loops: changes of everything along directions of inputs, of the start, and by time.

    The last are there where a unit makes steps.
    """
    _add_directions(functions)

    def direct(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
        along = [(given.instant.inputs, beside["d_inputs"])]
        return given.changes([given.moving.outputs, given.moving.instant.accelerations], along)

    def start(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
        along = _along_start(given, beside)
        (integrals,) = given.changes([given.initial_integrals], along)
        along.append((given.instant.integrals, integrals))
        return [*given.changes([given.moving.outputs, given.moving.instant.accelerations], along), integrals]

    def by_time(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
        rates = {rate: beside.get(rate, getattr(given.instant, rate, None)) for rate in _BY_TIME.values()}
        along = [(getattr(given.instant, part), rates[rate]) for part, rate in _BY_TIME.items()]
        return given.changes([given.outputs], along)

    yield functions.recorded("direct_change", direct, ["d_inputs"], into=["d_accelerations"])
    yield functions.recorded("start_change", start, _MOVED, into=["d_accelerations", "d_integrals"])
    yield _recorded_placement(functions) if is_placed(functions) else recorded_variation(functions)
    if steps:
        yield functions.recorded("output_rates", by_time, ["rates", "integral_rates", "input_rates"])


def is_placed(functions: SystemFunctions) -> bool:
    """Return whether the start is given in other coordinates."""
    return functions.system.start_system is not functions.system


def _add_directions(functions: SystemFunctions) -> None:
    for part in _VARIED:
        functions.add_part(f"d_{part}", functions.symbol(part).numel())


def _along_start(given: RecordedSystem, beside: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(getattr(given.instant, part.removeprefix("d_")), direction) for part, direction in beside.items()]


def recorded_variation(functions: SystemFunctions) -> RecordedFunction:
    """Return the result of `variation` in loops, without accelerations, which `start_change` has."""
    _add_directions(functions)

    def varied(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
        closing = [given.all_closure, given.all_closure_rate] if functions.system.constraints else [np.zeros(0)] * 2
        values = [*closing, *[np.zeros(0)] * 4, *given.start.values()]
        return given.changes(values, _along_start(given, beside))

    return functions.recorded("variation", varied, _MOVED)


def recorded_standing_change(functions: SystemFunctions) -> RecordedFunction:
    """Return how −Q + Φ_zᵀ λ changes without motion along directions of what the start depends on, in loops."""
    _add_directions(functions)

    def changed(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
        return given.changes([given.standing_balance], _along_start(given, beside))

    directions = [each for each in _MOVED if each != "d_velocities"]
    return functions.recorded("standing_change", changed, directions)


def _recorded_placement(functions: SystemFunctions) -> RecordedFunction:
    """Return the result of `_placement_variation` in loops."""
    for part in ("d_start_coordinates", "d_start_velocities"):
        functions.add_part(part, functions.symbol(part.removeprefix("d_")).numel())
    given_by = ("start_coordinates", "start_velocities")
    beside_it = (*given_by, "d_start_coordinates", "d_start_velocities", "d_parameters")

    def placed(given: RecordedSystem, own: dict[str, Any]) -> list[Any]:
        along = [(own[part], own[f"d_{part}"]) for part in given_by]
        along.append((given.instant.parameters, own["d_parameters"]))
        return given.changes(given.placed(*(own[part] for part in given_by)), along)

    return functions.recorded("placement_variation", placed, beside_it)


def variation(functions: SystemFunctions) -> TracedFunction:
    """Trace how everything that initialization solves changes along directions of the instant's parts."""
    given, system = functions.expressions, functions.system
    placed = is_placed(functions)
    directions = {part: functions.add_part(f"d_{part}", given.symbol_by_part[part].numel())[0] for part in _VARIED}

    def along(value: ca.SX) -> ca.SX:
        result = ca.SX.zeros(value.numel())
        for part, direction in directions.items():
            result += ca.jtimes(value, given.symbol_by_part[part], direction)
        return result

    values = [given.all_closure, given.all_closure_rate, given.closure_acceleration, given.balance]
    if not system.constraints:
        values[:3] = [ca.SX(0, 1)] * 3
    values += [given.outputs, given.initial_integrals, *((ca.SX(0, 1),) * 3 if placed else given.start.values())]
    return functions.traced("variation", [along(value) for value in values])


def _placement_variation(functions: SystemFunctions) -> TracedFunction:
    """Trace how z and ż at the start change with those of the start system and with parameters."""
    parts = ("start_coordinates", "start_velocities", "parameters")
    directions = [functions.add_part(f"d_{part}", functions.symbol(part).numel())[0] for part in parts[:2]]
    directions.append(functions.symbol("d_parameters"))
    placed = functions.expressions.placed(*(functions.symbol(part) for part in parts[:2]))
    along = ca.vertcat(*(functions.symbol(part) for part in parts)), ca.vertcat(*directions)
    return functions.traced("placement_variation", [ca.jtimes(value, *along) for value in placed])
