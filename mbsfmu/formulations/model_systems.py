"""The systems that a model's data mean."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hydraulics import Circuit
from mbsfmu.formulations.absolute_system import AbsoluteSystem
from mbsfmu.formulations.block_system import BlockSystem
from mbsfmu.formulations.circuit_system import CircuitSystem
from mbsfmu.formulations.coupled_system import CoupledSystem
from mbsfmu.formulations.mechanism_system import MechanismSystem
from mbsfmu.formulations.system import System
from mbsfmu.formulations.traces import Traces
from mbsfmu.formulations.wiring import Wiring
from mbsfmu.model.block import Block
from mbsfmu.model.coupled import ModelData
from mbsfmu.model.mechanism import Mechanism


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
        Start values of inputs and parameters by name, where they are not those of the data.

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
    if model.connections or model.signals:
        wiring = Wiring(_parts(model, absolute=False), model.connections)
        for reference in model.signals:
            wiring.free_input(reference)


def _parts(model: ModelData, *, absolute: bool) -> dict[str, System]:
    return {name: system_of(data, name, absolute=absolute) for name, data in model.systems.items()}
