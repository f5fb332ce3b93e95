"""FMI 2.0 co-simulation units of simulations: description, packaging, validation."""

from mbsfmu.fmu.package import export_python
from mbsfmu.fmu.unit import Unit
from mbsfmu.fmu.validation import validate

__all__ = ["Unit", "export_python", "validate"]
