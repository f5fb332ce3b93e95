"""Loads along joint coordinates: drives, springs, friction and stops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from hydraulics.cylinders import friction
from mbsfmu.model.force import Force, ForceContext, JointLoad
from mbsfmu.model.reference_types import JointReference, NonNegative, Positive
from mbsfmu.modelling import Array, Condition, Parameter, Quantity


class JointSpringDamper(Force):
    """Spring and damper on a joint coordinate.

    Attributes
    ----------
    joint
        The coordinate: the name of a joint with one, or `joint.coordinate`; of a cut joint angles are within ±π.
    stiffness
        In N m/rad, or N/m for a sliding coordinate.
    damping
        In N m s/rad, or N s/m.
    free_coordinate
        Coordinate in rad or m at which the load is the preload.
    preload
        Load at the free coordinate in N m or N, positive where it increases the coordinate.
    """

    type: Literal["joint-spring-damper"] = "joint-spring-damper"
    joint: JointReference
    stiffness: Annotated[NonNegative, Parameter("{joint.load}/{joint.coordinate}", "stiffness")] = 0.0
    damping: Annotated[NonNegative, Parameter("{joint.load}.s/{joint.coordinate}", "damping", tunable=True)] = 0.0
    free_coordinate: Annotated[float, Parameter("{joint.coordinate}", "coordinate without spring load")] = 0.0
    preload: Annotated[float, Parameter("{joint.load}", "load at the free coordinate")] = 0.0

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        """Apply the spring and damper load to the joint."""
        spring = now["preload"] - now["stiffness"] * self._stretch(now)
        return (JointLoad("joint", spring - now["damping"] * now.joint("joint").rate),)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the power dissipated by the damper in W."""
        return now["damping"] * now.joint("joint").rate ** 2

    def energy(self, now: ForceContext) -> Array:
        """Return the elastic energy in J."""
        stretch = self._stretch(now)
        return 0.5 * now["stiffness"] * stretch**2 - now["preload"] * stretch

    def _stretch(self, now: ForceContext) -> Array:
        return now.joint("joint").coordinate - now["free_coordinate"]


class _JointEffort(Force, abstract=True):
    """Base of an external torque (or force) along a joint coordinate.

    Attributes
    ----------
    joint
        The coordinate: the name of a joint with one, or `joint.coordinate`.
    """

    joint: JointReference

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the torque or force input."""
        described = "{joint.effort} in the joint, on the outer body"
        return (Quantity("{joint.effort}", "{joint.load}", 0.0, description=described),)

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        """Apply the input to the joint."""
        return (JointLoad("joint", now["{joint.effort}"]),)

    def work_rate(self, now: ForceContext) -> Array:
        """Return the power of the input in W."""
        return now["{joint.effort}"] * now.joint("joint").rate


class JointDrive(_JointEffort):
    """External torque (or force, for a sliding coordinate) along a joint coordinate.

    It takes the input `torque` in N m, or `force` in N.
    """

    type: Literal["joint-drive"] = "joint-drive"


class JointActuator(_JointEffort):
    """Joint of the spanning tree that another system drives, such as a hydraulic motor.

    The input is `torque`, and the outputs are `angle` and `angular_velocity`; for a sliding joint `force`,
    `displacement` and `velocity`. `static_torque` (or `static_force`) is the load of static equilibrium at the start.
    """

    balancing: ClassVar[tuple[str, ...]] = ("{joint.effort}",)
    type: Literal["joint-actuator"] = "joint-actuator"

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the coordinate and its rate."""
        return (
            Quantity("{joint.position}", "{joint.coordinate}", description="coordinate of the joint", shared=True),
            Quantity("{joint.rate}", "{joint.coordinate}/s", description="rate of the coordinate", shared=True),
        )

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return the coordinate and its rate."""
        motion = now.joint("joint")
        return {"{joint.position}": motion.coordinate, "{joint.rate}": motion.rate}


class JointFriction(Force):
    """Friction along a joint coordinate: Coulomb, static (Stribeck) and viscous, as in [Armstrong1994].

    The output is `load`. At the rate v it is −(C + (S − C) exp(−(v/v_S)²)) tanh(v/v_0) − d v. A sticking joint
    therefore creeps at a fraction of v_0, in proportion to its load over S. C and S are constant loads, independent of
    the joint's reaction.

    Attributes
    ----------
    joint
        The coordinate: the name of a joint with one, or `joint.coordinate`.
    coulomb_load
        C in N m or N.
    static_load
        S in N m or N, the static (breakaway) load; C by default.
    stribeck_rate
        v_S in rad/s or m/s, at which friction has fallen to C + 0.37 (S − C).
    smoothing_velocity
        v_0 in rad/s or m/s, at which friction reaches 76 %.
    damping
        d in N m s/rad or N s/m.
    """

    type: Literal["joint-friction"] = "joint-friction"
    joint: JointReference
    coulomb_load: Annotated[NonNegative, Parameter("{joint.load}", "Coulomb friction", tunable=True)] = 0.0
    static_load: Annotated[NonNegative | None, Parameter("{joint.load}", "static friction", tunable=True)] = None
    stribeck_rate: Annotated[Positive, Parameter("{joint.coordinate}/s", "Stribeck rate", tunable=True)] = 0.01
    smoothing_velocity: Annotated[
        Positive, Parameter("{joint.coordinate}/s", "rate of regularised friction", tunable=True)
    ] = 0.001
    damping: Annotated[
        NonNegative, Parameter("{joint.load}.s/{joint.coordinate}", "viscous friction", tunable=True)
    ] = 0.0

    @model_validator(mode="after")
    def _starts_with_no_less(self) -> Self:
        if self.static_load is not None and self.static_load < self.coulomb_load:
            raise ValueError(
                f"static_load is {self.static_load:g} and coulomb_load {self.coulomb_load:g}; what starts a motion "
                "must be no less than what keeps it up"
            )
        return self

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the friction load."""
        return (Quantity("load", "{joint.load}", description="friction on the outer body"),)

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        """Apply the friction load to the joint."""
        return (JointLoad("joint", self._load(now)),)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the dissipated power in W."""
        return -self._load(now) * now.joint("joint").rate

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return the friction load."""
        return {"load": self._load(now)}

    def _load(self, now: ForceContext) -> Array:
        return -friction(
            now.joint("joint").rate,
            viscous=now["damping"],
            coulomb=now["coulomb_load"],
            static=now["static_load"] if "static_load" in now else now["coulomb_load"],
            stribeck_velocity=now["stribeck_rate"],
            smoothing_velocity=now["smoothing_velocity"],
        )


class JointStop(Force):
    """End stops of a joint coordinate, with a stiffness and a damping that is never tensile.

    The output is `load`. At the compression δ a stop exerts k δ max(0, 1 + D δ̇), zero at first contact [Hunt1975]. The
    coefficient of restitution at the impact velocity v₀ is v₁/v₀ ≈ 1 − 2/3 D v₀ for small D v₀.

    Attributes
    ----------
    joint
        The coordinate: the name of a joint with one, or `joint.coordinate`.
    lower, upper
        Limits in rad or m; one of them may be omitted.
    stiffness
        k in N m/rad or N/m.
    damping
        D in s/rad or s/m, relative to the load.
    """

    type: Literal["joint-stop"] = "joint-stop"
    joint: JointReference
    lower: Annotated[float | None, Parameter("{joint.coordinate}", "lower limit")] = None
    upper: Annotated[float | None, Parameter("{joint.coordinate}", "upper limit")] = None
    stiffness: Annotated[Positive, Parameter("{joint.load}/{joint.coordinate}", "stiffness of the stops")]
    damping: Annotated[NonNegative, Parameter("s/{joint.coordinate}", "damping of the stops")] = 0.0

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if self.lower is None and self.upper is None:
            raise ValueError("it has neither lower nor upper; a stop needs a limit")
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise ValueError(f"lower is {self.lower:g} and upper {self.upper:g}; lower must be less than upper")
        return self

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the load of the stops."""
        return (Quantity("load", "{joint.load}", description="load of the stops on the outer body"),)

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        """Apply the load of the stops to the joint."""
        return (JointLoad("joint", self._load(now)),)

    def energy(self, now: ForceContext) -> Array:
        """Return the elastic energy of the stops in J."""
        return sum((0.5 * now["stiffness"] * depth**2 for _, depth in self._depths(now)), start=np.asarray(0.0))

    def dissipation(self, now: ForceContext) -> Array:
        """Return the dissipated power in W."""
        rate = now.joint("joint").rate
        elastic = sum((-way * now["stiffness"] * depth for way, depth in self._depths(now)), start=np.asarray(0.0))
        return (elastic - self._load(now)) * rate

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return the load of the stops."""
        return {"load": self._load(now)}

    def event_indicators(self) -> tuple[Quantity, ...]:
        """Return the distance to each stop, negative where it is compressed."""
        limits = [name for name in ("lower", "upper") if getattr(self, name) is not None]
        return tuple(
            Quantity(f"{name}_gap", "{joint.coordinate}", description=f"distance to the {name} stop") for name in limits
        )

    def evaluate_event_indicators(self, now: ForceContext) -> Mapping[str, Array]:
        """Return the distance to each stop."""
        coordinate = now.joint("joint").coordinate
        return {f"{name}_gap": way * (limit - coordinate) for name, way, limit in self._limits(now)}

    def conditions(self) -> Iterator[Condition]:
        """Yield the condition that each stop pushes."""
        for end, way in (("lower", 1.0), ("upper", -1.0)):
            if getattr(self, end) is not None:
                yield Condition(f"{self.type} '{self.name}' reaches its {end} stop", {"load": way})

    def _depths(self, now: ForceContext) -> list[tuple[float, Array]]:
        """Return for each stop the sign of compression, and the compression."""
        coordinate = now.joint("joint").coordinate
        return [(way, np.maximum(way * (coordinate - limit), 0.0)) for _, way, limit in self._limits(now)]

    @staticmethod
    def _limits(now: ForceContext) -> list[tuple[str, float, Array]]:
        """Return the name of each limit, the sign of compression there, and the limit."""
        return [(name, way, now[name]) for name, way in (("lower", -1.0), ("upper", 1.0)) if name in now]

    def _load(self, now: ForceContext) -> Array:
        rate = now.joint("joint").rate
        pushes = (
            -way * now["stiffness"] * depth * np.maximum(1.0 + now["damping"] * way * rate, 0.0)
            for way, depth in self._depths(now)
        )
        return sum(pushes, start=np.asarray(0.0))
