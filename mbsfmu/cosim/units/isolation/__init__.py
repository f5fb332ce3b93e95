"""Units in processes of their own: what takes one down, or keeps it for ever, does not take down the master."""

from mbsfmu.cosim.units.isolation.instance import IsolatedInstance
from mbsfmu.cosim.units.isolation.process import UnitProcess

__all__ = ["IsolatedInstance", "UnitProcess"]
