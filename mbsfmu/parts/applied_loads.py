"""Forces and moments at points of bodies, given by inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

import numpy as np
from pydantic import model_validator

from mbsfmu.model.force import Force, PointLoad
from mbsfmu.model.force_context import ForceContext
from mbsfmu.model.reference_types import GROUND, PointReference, split_reference
from mbsfmu.modelling import Array, Quantity

Frame = Literal["inertial", "body"]
"""Frame of the components: the inertial frame, or the body frame."""


class _Applied(Force, abstract=True):
    """Base of a vector of inputs that acts on a body, in a chosen frame."""

    point: PointReference
    frame: Frame = "inertial"

    @model_validator(mode="after")
    def _acts_on_a_body(self) -> Self:
        if split_reference(self.point)[0] == GROUND:
            raise ValueError(f"it acts on '{self.point}', which does not move; it must be a point of a body")
        return self

    def _inertial(self, now: ForceContext, name: str) -> Array:
        """Return the input vector in the inertial frame, shape (3,)."""
        given = np.stack([now[f"{name}.{axis}"] for axis in "xyz"])
        return now.point("point").rotation @ given if self.frame == "body" else given

    def _vector(self, name: str, unit: str) -> tuple[Quantity, ...]:
        """Return the components of an input vector."""
        axes = "inertial frame" if self.frame == "inertial" else "body"
        return tuple(
            Quantity(f"{name}.{axis}", unit, 0.0, description=f"{name} on the body, {axis} of the {axes}")
            for axis in "xyz"
        )


class AppliedForce(_Applied):
    """External force at a point of a body, for example a bucket load, a hand force, or wind.

    It takes the inputs `force.x`, `force.y` and `force.z` in N.

    Attributes
    ----------
    point
        Point of application, as `body.point`.
    frame
        `inertial`, or `body` for a force that rotates with the body.
    """

    type: Literal["applied-force"] = "applied-force"

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the force components."""
        return self._vector("force", "N")

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply the force at the point."""
        return (PointLoad("point", force=self._inertial(now, "force")),)

    def work_rate(self, now: ForceContext) -> Array:
        """Return the power of the force in W."""
        return self._inertial(now, "force") @ now.point("point").velocity


class AppliedMoment(_Applied):
    """External moment on a body.

    It takes the inputs `moment.x`, `moment.y` and `moment.z` in N m.

    Attributes
    ----------
    point
        Any point of the body, as `body.point`; a moment does not depend on the point.
    frame
        `inertial`, or `body` for a moment that rotates with the body.
    """

    type: Literal["applied-moment"] = "applied-moment"

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the moment components."""
        return self._vector("moment", "N.m")

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply the moment to the body."""
        return (PointLoad("point", moment=self._inertial(now, "moment")),)

    def work_rate(self, now: ForceContext) -> Array:
        """Return the power of the moment in W."""
        return self._inertial(now, "moment") @ now.point("point").angular_velocity
