"""Choice between joint and absolute coordinates."""

from __future__ import annotations

from collections.abc import Mapping

from mbsfmu.model.mechanism import Mechanism
from mbsfmu.systems.making import make_system
from mbsfmu.systems.mechanism.absolute_system import AbsoluteSystem
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import System


@make_system.register
def _(data: Mechanism, name: str, *, absolute: bool, start_values: Mapping[str, float]) -> System:
    return (AbsoluteSystem if absolute else MechanismSystem)(data, name, start_values)
