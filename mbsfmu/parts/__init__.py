"""Built-in parts of mechanisms; each class has the part's data and equations."""

from mbsfmu.parts.applied_loads import AppliedForce, AppliedMoment
from mbsfmu.parts.bushing import Bushing
from mbsfmu.parts.contacts import PlaneContact
from mbsfmu.parts.couplings import Differential, Gear, LinearCoupling, Mimic, RackAndPinion
from mbsfmu.parts.dynamic_blocks import FirstOrder, Integrator, RateLimiter, SecondOrder, TransferFunction
from mbsfmu.parts.joint_forces import JointActuator, JointDrive, JointSpringDamper
from mbsfmu.parts.joint_losses import JointFriction, JointStop
from mbsfmu.parts.joints import (
    Cylindrical,
    Distance,
    Fixed,
    Free,
    Planar,
    PointOnLine,
    PointOnPlane,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from mbsfmu.parts.line_forces import Actuator, LineOfAction, SpringDamper
from mbsfmu.parts.pid_blocks import PidController, SampledPidController
from mbsfmu.parts.prescribed_motion import PrescribedMotion
from mbsfmu.parts.sensors import DistanceSensor, JointSensor, OrientationSensor, PointSensor
from mbsfmu.parts.shaft import Shaft
from mbsfmu.parts.static_blocks import DeadZone, Gain, Limiter, Sum, Table, Table2D

__all__ = [
    "Actuator",
    "AppliedForce",
    "AppliedMoment",
    "Bushing",
    "Cylindrical",
    "DeadZone",
    "Differential",
    "Distance",
    "DistanceSensor",
    "FirstOrder",
    "Fixed",
    "Free",
    "Gain",
    "Gear",
    "Integrator",
    "JointActuator",
    "JointDrive",
    "JointFriction",
    "JointSensor",
    "JointSpringDamper",
    "JointStop",
    "Limiter",
    "LineOfAction",
    "LinearCoupling",
    "Mimic",
    "OrientationSensor",
    "PidController",
    "Planar",
    "PlaneContact",
    "PointOnLine",
    "PointOnPlane",
    "PointSensor",
    "PrescribedMotion",
    "Prismatic",
    "RackAndPinion",
    "RateLimiter",
    "Revolute",
    "SampledPidController",
    "SecondOrder",
    "Shaft",
    "Spherical",
    "SpringDamper",
    "Sum",
    "Table",
    "Table2D",
    "TransferFunction",
    "Universal",
]
