"""Co-simulation master for FMUs of FMI 2.0 and 3.0, loaded with FMPy."""

from mbsfmu.cosim.coupling.graph import Connection, CoupledJoint, JointHandle, SystemGraph
from mbsfmu.cosim.runs.cosimulation import Cosimulation
from mbsfmu.cosim.runs.coupling_options import CouplingOptions
from mbsfmu.cosim.runs.master import cosimulate
from mbsfmu.cosim.runs.run_recorder import CosimulationError, CosimulationInterrupted, CosimulationResult
from mbsfmu.cosim.ssp import read_ssp, write_ssp

__all__ = [
    "Connection",
    "Cosimulation",
    "CosimulationError",
    "CosimulationInterrupted",
    "CosimulationResult",
    "CoupledJoint",
    "CouplingOptions",
    "JointHandle",
    "SystemGraph",
    "cosimulate",
    "read_ssp",
    "write_ssp",
]
