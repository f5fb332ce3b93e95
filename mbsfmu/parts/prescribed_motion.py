"""Joints that move as they are told to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from mbsfmu.model.constraint import Constraint
from mbsfmu.model.numbers import Numbers
from mbsfmu.model.reference_types import JointReference
from mbsfmu.modelling import Array, Quantity


class PrescribedMotion(Constraint):
    """A joint whose coordinate follows an input: q = s(t), whatever load that takes, which is its output.

    The inputs `position`, `velocity` and `acceleration` are s, ṡ and s̈ in rad or m. They begin with the start values
    of the joint, and s runs on by ṡ and s̈ where they are held. A signal of the position gives the other two as well,
    where it has a first and a second derivative.

    Attributes
    ----------
    joint
        Name of a joint of the spanning tree with one coordinate, as revolute or prismatic ones.
    """

    type: Literal["prescribed-motion"] = "prescribed-motion"
    joint: JointReference

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the motion."""
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
