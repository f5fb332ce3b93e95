"""What there is to say of a machine: of its data, and conditions on the variables of its runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from mbsfmu.model.coupled import ModelData
from mbsfmu.model.machine import Machine
from mbsfmu.model.system_kinds import kind_of
from mbsfmu.modelling import Condition

_LOGGER = logging.getLogger(__name__)


def data_remarks(model: ModelData) -> Iterator[str]:
    """Yield a sentence on each number in a model's data that is hardly meant."""
    for name, data in model.systems.items():
        for sentence in kind_of(data).diagnostics(data):
            yield f"{name}: {sentence}"


def log_data_remarks(model: ModelData) -> None:
    """Warn of numbers in a model's data that are hardly meant."""
    for sentence in data_remarks(model):
        _LOGGER.warning("%s", sentence)


def conditions_of(machine: Machine) -> Iterator[Condition]:
    """Yield the conditions of all systems, on `system.variable`; connected inputs have the names of their sources."""
    sources = {target: source for source, target in machine.connections}
    for name, data in machine.systems.items():
        for condition in kind_of(data).conditions(data):
            yield condition.of(name).renamed(lambda reference: sources.get(reference, reference))
