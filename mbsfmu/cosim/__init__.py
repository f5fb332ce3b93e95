"""The co-simulation master: drives any co-simulation units of FMI 2.0 and 3.0 through FMPy."""

from mbsfmu.cosim.cosimulation import Cosimulation
from mbsfmu.cosim.graph import Connection, SystemGraph
from mbsfmu.cosim.master import cosimulate
from mbsfmu.cosim.options import CouplingOptions
from mbsfmu.cosim.result import CosimulationError, CosimulationInterrupted, CosimulationResult
from mbsfmu.cosim.ssp import read_ssp, write_ssp

__all__ = [
    "Connection",
    "Cosimulation",
    "CosimulationError",
    "CosimulationInterrupted",
    "CosimulationResult",
    "CouplingOptions",
    "SystemGraph",
    "cosimulate",
    "read_ssp",
    "write_ssp",
]
