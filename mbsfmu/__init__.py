"""Multibody mechanisms and hydraulic circuits as FMI 2.0 co-simulation units.

A model is written once (`CoupledModel`), simulated in process, exported as functional mock-up units, run
coupled by the master, and compared: what does coupling cost?
"""

from __future__ import annotations

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mbsfmu import models
from mbsfmu.coupled import CoupledModel
from mbsfmu.data import Array, DataError, Parameter, Quantity
from mbsfmu.equations.closure import Angle, Gap, Offset, Relation, gaps, offsets, square, tilts, turned_back, turns
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.model import Beam, Cuboid, Mechanism, Point, RigidBody, along
from mbsfmu.model.block import Block, SampledBlock
from mbsfmu.model.closure import Equation
from mbsfmu.model.force import Force, JointLoad, PointLoad
from mbsfmu.model.joint import Element, Joint
from mbsfmu.model.names import Direction, JointReference, NonNegative, PointReference, Positive, Vector
from mbsfmu.model.numbers import Numbers
from mbsfmu.model.present import BodyPoint, JointMotion, Present
from mbsfmu.part_files import load_parts
from mbsfmu.parts import (
    Actuator,
    Cylindrical,
    Fixed,
    Free,
    JointDrive,
    JointSpringDamper,
    Line,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SpringDamper,
    Universal,
)
from mbsfmu.signals import LinearSignal, StepSignal
from mbsfmu.simulation.options import RunOptions
from mbsfmu.trajectory import Trajectory

if TYPE_CHECKING:
    from mbsfmu.comparison import Comparison, compare
    from mbsfmu.cosim import CosimulationError, CosimulationResult, CouplingOptions, cosimulate
    from mbsfmu.exporting import export
    from mbsfmu.fmu.validation import validate
    from mbsfmu.studies import sweep

# Loaded when asked for: a unit on its target has this package but need not have FMPy and lxml.
_LAZY = {
    "Comparison": "comparison",
    "compare": "comparison",
    "CosimulationError": "cosim",
    "CosimulationResult": "cosim",
    "CouplingOptions": "cosim",
    "cosimulate": "cosim",
    "export": "exporting",
    "sweep": "studies",
    "validate": "fmu.validation",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("mbsfmu")
    if name not in _LAZY:
        raise AttributeError(f"module 'mbsfmu' has no attribute '{name}'")
    return getattr(importlib.import_module(f"mbsfmu.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


__all__ = [
    "Actuator",
    "Angle",
    "Array",
    "Beam",
    "Block",
    "BodyPoint",
    "Comparison",
    "CosimulationError",
    "CosimulationResult",
    "CoupledModel",
    "CouplingOptions",
    "Cuboid",
    "Cylindrical",
    "DataError",
    "Direction",
    "Element",
    "Equation",
    "Fixed",
    "Force",
    "Free",
    "Gap",
    "InputError",
    "Joint",
    "JointDrive",
    "JointLoad",
    "JointMotion",
    "JointReference",
    "JointSpringDamper",
    "Line",
    "LinearSignal",
    "Mechanism",
    "NonNegative",
    "Numbers",
    "Offset",
    "Parameter",
    "Planar",
    "Point",
    "PointLoad",
    "PointReference",
    "Positive",
    "Present",
    "Prismatic",
    "Quantity",
    "Relation",
    "Revolute",
    "RigidBody",
    "RunOptions",
    "SampledBlock",
    "SimulationError",
    "Spherical",
    "SpringDamper",
    "StepSignal",
    "Trajectory",
    "Universal",
    "Vector",
    "along",
    "compare",
    "cosimulate",
    "export",
    "gaps",
    "load_parts",
    "models",
    "offsets",
    "square",
    "sweep",
    "tilts",
    "turned_back",
    "turns",
    "validate",
]
