"""The co-simulation master: drives any FMI 2.0 co-simulation units through FMPy."""

from mbsfmu.cosim.graph import Connection, SystemGraph
from mbsfmu.cosim.master import cosimulate
from mbsfmu.cosim.options import CouplingOptions
from mbsfmu.cosim.result import CosimulationError, CosimulationInterrupted, CosimulationResult
from mbsfmu.cosim.ssp import read_ssp, write_ssp

__all__ = [
    "Connection",
    "CosimulationError",
    "CosimulationInterrupted",
    "CosimulationResult",
    "CouplingOptions",
    "SystemGraph",
    "cosimulate",
    "read_ssp",
    "write_ssp",
]
