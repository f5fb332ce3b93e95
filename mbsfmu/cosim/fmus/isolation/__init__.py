"""Units in processes of their own: what takes one down, or keeps it for ever, does not take down the master."""

from mbsfmu.cosim.fmus.isolation.fmu_process import FmuProcess
from mbsfmu.cosim.fmus.isolation.isolated_instance import IsolatedInstance

__all__ = ["FmuProcess", "IsolatedInstance"]
