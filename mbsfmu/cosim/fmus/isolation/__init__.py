"""FMUs in separate processes: a crash or endless call does not affect the master."""

from mbsfmu.cosim.fmus.isolation.fmu_process import FmuProcess
from mbsfmu.cosim.fmus.isolation.isolated_instance import IsolatedInstance

__all__ = ["FmuProcess", "IsolatedInstance"]
