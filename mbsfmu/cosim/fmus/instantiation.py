"""Instances of FMUs, by the version of FMI and the interface that they are of."""

from __future__ import annotations

from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmi2_instance import Fmi2Instance
from mbsfmu.cosim.fmus.fmi3_instance import Fmi3Instance
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.cosim.fmus.model_exchange import SOLVERS, Fmi2Model, Fmi3Model


def make_instance(name: str, archive: Archive, solver: str = SOLVERS[0]) -> Instance:
    """Return an instance of an unpacked FMU, by the version of FMI that it is of; the solver is for model exchange."""
    is_third = archive.description.fmiVersion == "3.0"
    if archive.exchanged:
        return (Fmi3Model if is_third else Fmi2Model)(name, archive, solver)
    return (Fmi3Instance if is_third else Fmi2Instance)(name, archive)
