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
    """A contact at one moment: normal, place and slip of shape (3,), forces in N, the rest in m and m/s."""

    normal: Array
    place: Array
    depth: Array
    rate: Array
    slip: Array
    elastic: Array
    force: Array


class PlaneContact(Force):
    """A sphere, or a point, that a plane of the ground or of another body does not let through.

    It gives the outputs `normal_force` and `penetration`. Where the sphere is δ beyond the plane this pushes with
    N = k δⁿ max(0, 1 + D δ̇), which begins at nothing and never pulls [Hunt1975], and rubs with μ N v/√(v² + v₀²)
    against the slip v, Coulomb's friction regularized. What leaves the plane at a speed v₁ has met it at v₀ with
    v₁/v₀ ≈ 1 − 2/3 D v₀ for small D v₀.

    Attributes
    ----------
    sphere
        Its centre, or the point, as `body.point`.
    plane
        A point of the plane, of the ground or of another body.
    normal
        Direction out of the plane, in the frame of its body: on that side the sphere is free.
    radius
        In m; zero for a point.
    stiffness
        k in N/mⁿ.
    exponent
        n, 1.5 as of spheres by Hertz.
    damping
        D in s/m.
    friction
        μ.
    creep_speed
        v₀ in m/s, the slip at which 71 % of the friction are there.
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
    creep_speed: Annotated[Positive, Parameter("m/s", "slip that friction needs to build up", tunable=True)] = 1e-3

    def outputs(self) -> tuple[Quantity, ...]:
        """Return normal force and penetration."""
        return (
            Quantity("normal_force", "N", minimum=0.0, description="normal force of the contact", shared=True),
            Quantity("penetration", "m", minimum=0.0, description="how far the sphere is in the plane", shared=True),
        )

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Push and rub both at the place of the contact."""
        touch = self._touch(now)
        force = touch.normal * touch.force + self._rubbing(now, touch)
        sphere, plane = (touch.place - now.point(each).position for each in ("sphere", "plane"))
        return (PointLoad("sphere", force, cross(sphere, force)), PointLoad("plane", -force, -cross(plane, force)))

    def energy(self, now: ForceContext) -> Array:
        """Return the elastic energy in J."""
        touch = self._touch(now)
        return touch.elastic * touch.depth / (self.exponent + 1.0)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the loss by damping and friction in W."""
        touch = self._touch(now)
        return (touch.force - touch.elastic) * touch.rate - self._rubbing(now, touch) @ touch.slip

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return normal force and penetration."""
        touch = self._touch(now)
        return {"normal_force": touch.force, "penetration": touch.depth}

    def _rubbing(self, now: ForceContext, touch: _Touch) -> Array:
        """Return the friction on the sphere in N."""
        speed = np.sqrt(touch.slip @ touch.slip + now["creep_speed"] ** 2)
        return -now["friction"] * touch.force / speed * touch.slip

    def _touch(self, now: ForceContext) -> _Touch:
        sphere, plane = now.point("sphere"), now.point("plane")
        normal = plane.rotation @ unit(self.normal)
        height = normal @ (sphere.position - plane.position)
        place = sphere.position - normal * height  # on the plane, where both touch
        passing = sphere.velocity + cross(sphere.angular_velocity, place - sphere.position)
        passing = passing - plane.velocity - cross(plane.angular_velocity, place - plane.position)
        approach = -(normal @ passing)
        depth = np.maximum(now["radius"] - height, 0.0)
        elastic = now["stiffness"] * depth**self.exponent
        force = elastic * np.maximum(1.0 + now["damping"] * approach, 0.0)
        return _Touch(normal, place, depth, approach, passing + normal * approach, elastic, force)
