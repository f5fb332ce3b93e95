"""Instances of FMUs, by the version of FMI and the interface that they are of."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmi2 import Fmi1Instance, Fmi2Instance
from mbsfmu.cosim.fmus.fmi3 import Fmi3Instance
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.cosim.fmus.model_exchange import SOLVERS, Fmi2Model, Fmi3Model


def make_instance(
    name: str, archive: Archive, solver: str = SOLVERS[0], values: Mapping[str, Any] = MappingProxyType({})
) -> Instance:
    """Return an instance of an unpacked FMU, by the version of FMI that it is of.

    Parameters
    ----------
    name, archive
        Its name and the FMU.
    solver
        For an FMU for model exchange.
    values
        Start values by name, of which those of structural parameters are set.

    Raises
    ------
    InputError
        When the FMU cannot be loaded, or a structural parameter is refused.
    SimulationError
        When it gives no instance, or refuses a structural parameter.
    """
    archive = archive.configured_with(name, values)
    version = str(archive.description.fmiVersion)
    if archive.exchanged:
        return (Fmi3Model if version == "3.0" else Fmi2Model)(name, archive, solver)
    return {"1.0": Fmi1Instance, "2.0": Fmi2Instance, "3.0": Fmi3Instance}[version](name, archive)
