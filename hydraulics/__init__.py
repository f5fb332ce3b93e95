"""Lumped-fluid hydraulics: components joined at nodes, and the equations of the circuit."""

from hydraulics.circuit import Balanced, Circuit, balanced
from hydraulics.components import (
    Cylinder,
    DirectionalValve,
    Hose,
    PressureSource,
    Tank,
    Throttle,
    Volume,
)
from hydraulics.data import DataError
from hydraulics.equations import CircuitEquations
from hydraulics.flow import catalogue_coefficient
from hydraulics.fluid import Oil
from hydraulics.quantity import Quantity

__all__ = [
    "Balanced",
    "Circuit",
    "CircuitEquations",
    "Cylinder",
    "DataError",
    "DirectionalValve",
    "Hose",
    "Oil",
    "PressureSource",
    "Quantity",
    "Tank",
    "Throttle",
    "Volume",
    "balanced",
    "catalogue_coefficient",
]
