"""FMUs for model exchange, integrated by the master."""

from mbsfmu.cosim.fmus.model_exchange.fmi2_model import Fmi2Model
from mbsfmu.cosim.fmus.model_exchange.fmi3_model import Fmi3Model
from mbsfmu.cosim.fmus.model_exchange.integrator import SOLVERS

__all__ = ["SOLVERS", "Fmi2Model", "Fmi3Model"]
