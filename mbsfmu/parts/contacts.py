"""Contacts of spheres and points with planes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from mbsfmu.equations.rotation import cross, unit
from mbsfmu.model.force import Force, PointLoad
from mbsfmu.model.force_context import ForceContext
from mbsfmu.model.reference_types import Direction, NonNegative, PointReference, Positive
from mbsfmu.modelling import Array, Parameter, Quantity


class _Touch(NamedTuple):
    """A contact in one evaluation: normal, position and slip of shape (3,), forces in N, other values in m and m/s."""

    normal: Array
    place: Array
    gap: Array
    depth: Array
    rate: Array
    slip: Array
    elastic: Array
    force: Array


class PlaneContact(Force):
    """Contact between a sphere, or a point, and a plane of the ground or of another body.

    The outputs are `normal_force` and `penetration`. At the penetration δ the normal force is N = k δⁿ max(0, 1 + D
    δ̇), zero at first contact and never tensile [Hunt1975]. Friction is regularised Coulomb friction, μ N v/√(v² + v₀²)
    against the slip v. The coefficient of restitution at the impact velocity v₀ is v₁/v₀ ≈ 1 − 2/3 D v₀ for small D v₀.

    Attributes
    ----------
    sphere
        Centre of the sphere, or the point, as `body.point`.
    plane
        A point of the plane, of the ground or of another body.
    normal
        Outward normal in the frame of the plane's body; the sphere is free on this side.
    radius
        In m; zero for a point.
    stiffness
        k in N/mⁿ.
    exponent
        n; 1.5 for spheres (Hertz).
    damping
        D in s/m.
    friction
        μ.
    creep_speed
        v₀ in m/s, the slip at which friction reaches 71 %.
    """

    symbol: ClassVar[str] = "none"
    type: Literal["plane-contact"] = "plane-contact"
    sphere: PointReference
    plane: PointReference
    normal: Direction = (0.0, 1.0, 0.0)
    radius: Annotated[NonNegative, Parameter("m", "radius")] = 0.0
    stiffness: Annotated[Positive, Parameter("N", "force at a penetration of 1 m")]
    exponent: Annotated[float, Field(ge=1.0, le=3.0)] = 1.5
    damping: Annotated[NonNegative, Parameter("s/m", "damping")] = 0.0
    friction: Annotated[NonNegative, Parameter("1", "coefficient of friction", tunable=True)] = 0.0
    creep_speed: Annotated[Positive, Parameter("m/s", "slip velocity of regularised friction", tunable=True)] = 1e-3

    def outputs(self) -> tuple[Quantity, ...]:
        """Return normal force and penetration."""
        return (
            Quantity("normal_force", "N", minimum=0.0, description="normal force of the contact", shared=True),
            Quantity(
                "penetration", "m", minimum=0.0, description="penetration of the sphere into the plane", shared=True
            ),
        )

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply normal force and friction to both bodies at the contact point."""
        touch = self._touch(now)
        force = touch.normal * touch.force + self._rubbing(now, touch)
        sphere, plane = (touch.place - now.point(each).position for each in ("sphere", "plane"))
        return (PointLoad("sphere", force, cross(sphere, force)), PointLoad("plane", -force, -cross(plane, force)))

    def energy(self, now: ForceContext) -> Array:
        """Return the elastic energy in J."""
        touch = self._touch(now)
        return touch.elastic * touch.depth / (self.exponent + 1.0)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the power dissipated by damping and friction in W."""
        touch = self._touch(now)
        return (touch.force - touch.elastic) * touch.rate - self._rubbing(now, touch) @ touch.slip

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return normal force and penetration."""
        touch = self._touch(now)
        return {"normal_force": touch.force, "penetration": touch.depth}

    def event_indicators(self) -> tuple[Quantity, ...]:
        """Return the gap."""
        return (Quantity("gap", "m", description="distance from sphere to plane, negative in contact"),)

    def evaluate_event_indicators(self, now: ForceContext) -> Mapping[str, Array]:
        """Return the gap."""
        return {"gap": self._touch(now).gap}

    def _rubbing(self, now: ForceContext, touch: _Touch) -> Array:
        """Return the friction force on the sphere in N."""
        speed = np.sqrt(touch.slip @ touch.slip + now["creep_speed"] ** 2)
        return -now["friction"] * touch.force / speed * touch.slip

    def _touch(self, now: ForceContext) -> _Touch:
        sphere, plane = now.point("sphere"), now.point("plane")
        normal = plane.rotation @ unit(self.normal)
        height = normal @ (sphere.position - plane.position)
        place = sphere.position - normal * height  # contact point on the plane
        passing = sphere.velocity + cross(sphere.angular_velocity, place - sphere.position)
        passing = passing - plane.velocity - cross(plane.angular_velocity, place - plane.position)
        approach = -(normal @ passing)
        gap = height - now["radius"]
        depth = np.maximum(-gap, 0.0)
        touching = depth > 0.0
        # The second derivative of δⁿ at δ = 0 is infinite for n < 2, and of no contact it is 0.
        elastic = now["stiffness"] * np.where(touching, np.where(touching, depth, 1.0) ** self.exponent, 0.0)
        force = elastic * np.maximum(1.0 + now["damping"] * approach, 0.0)
        return _Touch(normal, place, gap, depth, approach, passing + normal * approach, elastic, force)
