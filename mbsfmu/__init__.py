"""Multibody mechanisms and hydraulic circuits as FMI 2.0 co-simulation units.

A model is written once (`CoupledModel`), simulated in process, exported as functional mock-up units, run
coupled by the master, and compared: what does coupling cost?
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mbsfmu import cosim as cosim
    from mbsfmu import models
    from mbsfmu.comparison import Comparison, ComparisonOptions, compare
    from mbsfmu.cosim import CosimulationError, CosimulationResult, CouplingOptions, cosimulate
    from mbsfmu.coupled import CoupledModel
    from mbsfmu.data import Array, DataError, Parameter, Quantity
    from mbsfmu.equations.closure import Angle, Gap, Offset, Relation, gaps, offsets, square, tilts, turned_back, turns
    from mbsfmu.errors import InputError, SimulationError
    from mbsfmu.exporting import export
    from mbsfmu.fmu.validation import validate
    from mbsfmu.model import Beam, Cuboid, Mechanism, Point, RigidBody, along
    from mbsfmu.model.block import Block, SampledBlock
    from mbsfmu.model.closure import Equation
    from mbsfmu.model.constraint import Constraint
    from mbsfmu.model.force import Force, JointLoad, PointLoad
    from mbsfmu.model.joint import Element, Joint
    from mbsfmu.model.names import Direction, JointReference, NonNegative, PointOrNone, PointReference, Positive, Vector
    from mbsfmu.model.numbers import Numbers
    from mbsfmu.model.present import BodyPoint, JointMotion, Observed, PointAcceleration, Present
    from mbsfmu.model.sensor import Sensor
    from mbsfmu.part_files import load_parts
    from mbsfmu.parts import (
        Actuator,
        AppliedForce,
        AppliedMoment,
        Bushing,
        Cylindrical,
        DeadZone,
        Differential,
        DistanceSensor,
        FirstOrder,
        Fixed,
        Free,
        Gain,
        Gear,
        Integrator,
        JointActuator,
        JointDrive,
        JointFriction,
        JointSensor,
        JointSpringDamper,
        JointStop,
        Limiter,
        Line,
        LinearCoupling,
        Mimic,
        OrientationSensor,
        PidController,
        Planar,
        PlaneContact,
        PointSensor,
        PrescribedMotion,
        Prismatic,
        RackAndPinion,
        RateLimiter,
        Revolute,
        SampledPidController,
        SecondOrder,
        Shaft,
        Spherical,
        SpringDamper,
        Sum,
        Table,
        Table2D,
        TransferFunction,
        Universal,
    )
    from mbsfmu.signals import LinearSignal, SineSignal, StepSignal, read_signal
    from mbsfmu.simulation.options import RunOptions
    from mbsfmu.smooth_signals import PolynomialSignal, RestToRestSignal, SplineSignal
    from mbsfmu.studies import StudyOptions, sweep
    from mbsfmu.trajectory import Trajectory
    from mbsfmu.urdf import mechanism_from_urdf

# Loaded when asked for: what a program does not use costs it no time, and a unit on its target, which has this package,
# need not have FMPy and lxml.
_HOMES = {
    "comparison": "compare Comparison ComparisonOptions",
    "cosim": "cosimulate CosimulationError CosimulationResult CouplingOptions",
    "coupled": "CoupledModel",
    "data": "Array DataError Parameter Quantity",
    "equations.closure": "Angle Gap gaps Offset offsets Relation square tilts turned_back turns",
    "errors": "InputError SimulationError",
    "exporting": "export",
    "fmu.validation": "validate",
    "model": "along Beam Cuboid Mechanism Point RigidBody",
    "model.block": "Block SampledBlock",
    "model.closure": "Equation",
    "model.constraint": "Constraint",
    "model.force": "Force JointLoad PointLoad",
    "model.joint": "Element Joint",
    "model.names": "Direction JointReference NonNegative PointOrNone PointReference Positive Vector",
    "model.numbers": "Numbers",
    "model.present": "BodyPoint JointMotion Observed PointAcceleration Present",
    "model.sensor": "Sensor",
    "part_files": "load_parts",
    "parts": "Actuator AppliedForce AppliedMoment Bushing Cylindrical DeadZone Differential DistanceSensor "
    "FirstOrder Fixed Free Gain Gear Integrator JointActuator JointDrive JointFriction JointSensor "
    "JointSpringDamper JointStop Limiter Line LinearCoupling Mimic OrientationSensor PidController Planar "
    "PlaneContact PointSensor PrescribedMotion Prismatic RackAndPinion RateLimiter Revolute "
    "SampledPidController SecondOrder Shaft Spherical SpringDamper Sum Table Table2D TransferFunction "
    "Universal",
    "signals": "LinearSignal read_signal SineSignal StepSignal",
    "simulation.options": "RunOptions",
    "smooth_signals": "PolynomialSignal RestToRestSignal SplineSignal",
    "studies": "StudyOptions sweep",
    "trajectory": "Trajectory",
    "urdf": "mechanism_from_urdf",
}
_PACKAGES = ("cosim", "models")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("mbsfmu")
    if name in _PACKAGES:
        return importlib.import_module(f"mbsfmu.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mbsfmu' has no attribute '{name}'")
    value = globals()[name] = getattr(importlib.import_module(f"mbsfmu.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


__all__ = [
    "Actuator",
    "Angle",
    "AppliedForce",
    "AppliedMoment",
    "Array",
    "Beam",
    "Block",
    "BodyPoint",
    "Bushing",
    "Comparison",
    "ComparisonOptions",
    "Constraint",
    "CosimulationError",
    "CosimulationResult",
    "CoupledModel",
    "CouplingOptions",
    "Cuboid",
    "Cylindrical",
    "DataError",
    "DeadZone",
    "Differential",
    "Direction",
    "DistanceSensor",
    "Element",
    "Equation",
    "FirstOrder",
    "Fixed",
    "Force",
    "Free",
    "Gain",
    "Gap",
    "Gear",
    "InputError",
    "Integrator",
    "Joint",
    "JointActuator",
    "JointDrive",
    "JointFriction",
    "JointLoad",
    "JointMotion",
    "JointReference",
    "JointSensor",
    "JointSpringDamper",
    "JointStop",
    "Limiter",
    "Line",
    "LinearCoupling",
    "LinearSignal",
    "Mechanism",
    "Mimic",
    "NonNegative",
    "Numbers",
    "Observed",
    "Offset",
    "OrientationSensor",
    "Parameter",
    "PidController",
    "Planar",
    "PlaneContact",
    "Point",
    "PointAcceleration",
    "PointLoad",
    "PointOrNone",
    "PointReference",
    "PointSensor",
    "PolynomialSignal",
    "Positive",
    "PrescribedMotion",
    "Present",
    "Prismatic",
    "Quantity",
    "RackAndPinion",
    "RateLimiter",
    "Relation",
    "RestToRestSignal",
    "Revolute",
    "RigidBody",
    "RunOptions",
    "SampledBlock",
    "SampledPidController",
    "SecondOrder",
    "Sensor",
    "Shaft",
    "SimulationError",
    "SineSignal",
    "Spherical",
    "SplineSignal",
    "SpringDamper",
    "StepSignal",
    "StudyOptions",
    "Sum",
    "Table",
    "Table2D",
    "Trajectory",
    "TransferFunction",
    "Universal",
    "Vector",
    "along",
    "compare",
    "cosimulate",
    "export",
    "gaps",
    "load_parts",
    "mechanism_from_urdf",
    "models",
    "offsets",
    "read_signal",
    "square",
    "sweep",
    "tilts",
    "turned_back",
    "turns",
    "validate",
]
