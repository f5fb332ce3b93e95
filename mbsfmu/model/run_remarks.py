"""Remarks on a run of a machine: what happened to its parts that a user should know of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from mbsfmu.model.machine import Machine
from mbsfmu.model.system_kinds import kind_of
from mbsfmu.modelling import Array, Course, Remark

_LOGGER = logging.getLogger(__name__)


def log_remarks(machine: Machine, times: Array, values_of: Callable[[str], Array | None]) -> None:
    """Log the remarks of all systems, those on doubtful things as warnings; arguments as for `remarks`."""
    for remark in remarks(machine, times, values_of):
        level = logging.WARNING if remark.doubtful else logging.INFO
        _LOGGER.log(level, "%s: %s", machine.name, remark.sentence)


def remarks(machine: Machine, times: Array, values_of: Callable[[str], Array | None]) -> Iterator[Remark]:
    """Yield the remarks of all systems.

    Parameters
    ----------
    machine
        The machine as it ran.
    times
        Times of the record in s, shape (k,).
    values_of
        Function of `system.variable` that returns its values, shape (k,); None where it is not recorded.
    """
    source = {target: source for source, target in machine.connections}

    for name, data in machine.systems.items():
        prefix = f"{name}."

        def values(variable: str, prefix: str = prefix) -> Array | None:
            return values_of(source.get(prefix + variable, prefix + variable))

        own = {full.removeprefix(prefix): value for full, value in machine.values.items() if full.startswith(prefix)}
        yield from kind_of(data).remarks(data, Course(times, values, own))
