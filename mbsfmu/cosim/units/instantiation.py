"""Instances of units, by the version of FMI and the interface that they are of."""

from __future__ import annotations

from mbsfmu.cosim.units.archive import Archive
from mbsfmu.cosim.units.exchanged import SOLVERS, Fmi2Model, Fmi3Model
from mbsfmu.cosim.units.fmi2_instance import Fmi2Instance
from mbsfmu.cosim.units.fmi3_instance import Fmi3Instance
from mbsfmu.cosim.units.instance import Instance


def make_instance(name: str, archive: Archive, solver: str = SOLVERS[0]) -> Instance:
    """Return an instance of an unpacked FMU, by the version of FMI that it is of; the solver is for model exchange."""
    is_third = archive.description.fmiVersion == "3.0"
    if archive.exchanged:
        return (Fmi3Model if is_third else Fmi2Model)(name, archive, solver)
    return (Fmi3Instance if is_third else Fmi2Instance)(name, archive)
