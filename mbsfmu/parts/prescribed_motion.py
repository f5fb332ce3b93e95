"""Joints with prescribed motion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from mbsfmu.model.constraint import Constraint
from mbsfmu.model.numbers import Numbers
from mbsfmu.model.reference_types import JointReference
from mbsfmu.modelling import Array, Quantity


class PrescribedMotion(Constraint):
    """Joint whose coordinate follows an input, q = s(t); its output is the required load.

    The inputs `position`, `velocity` and `acceleration` are s, ṡ and s̈ in rad or m. They start with the joint's start
    values, and s is extrapolated by ṡ and s̈ while inputs are held. A signal for the position supplies the other two if
    it has a first and a second derivative.

    Attributes
    ----------
    joint
        Name of a joint of the spanning tree with one coordinate, such as a revolute or prismatic joint.
    """

    type: Literal["prescribed-motion"] = "prescribed-motion"
    joint: JointReference

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the motion inputs."""
        unit = "{joint.coordinate}"
        return (
            Quantity("position", unit, description="prescribed coordinate", rated=True),
            Quantity("velocity", f"{unit}/s", description="rate of the prescribed coordinate", rated=True),
            Quantity("acceleration", f"{unit}/s2", 0.0, description="rate of the prescribed velocity"),
        )

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002 - it has no parameters
        """Return one."""
        return {self.joint: 1.0}

    def value(self, now: Numbers) -> Array | float:
        """Return s."""
        return now["position"]

    def rate(self, now: Numbers) -> Array | float:
        """Return ṡ."""
        return now["velocity"]

    def acceleration(self, now: Numbers) -> Array | float:
        """Return s̈."""
        return now["acceleration"]
