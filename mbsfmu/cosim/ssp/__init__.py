"""System structure packages (SSP 1.0 and 2.0): FMUs, their connections and parameter values in one file."""

from mbsfmu.cosim.ssp.ssp_package import read_ssp, read_structure, write_ssp, write_structure
from mbsfmu.cosim.ssp.structure import STRUCTURE, SystemStructure

__all__ = ["STRUCTURE", "SystemStructure", "read_ssp", "read_structure", "write_ssp", "write_structure"]
