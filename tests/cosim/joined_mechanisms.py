"""Mechanisms that are cut at a joint, whole and in halves with a handle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import mbsfmu
from mbsfmu import (
    AppliedForce,
    AppliedMoment,
    Beam,
    CoupledModel,
    Fixed,
    Free,
    Mechanism,
    OrientationSensor,
    PointSensor,
    Prismatic,
    Revolute,
    RigidBody,
    Spherical,
)
from mbsfmu.models import bennett
from mbsfmu.models.chains import bennett_angle
from mbsfmu.simulation.run_result import Result

STOP = 0.5
PIN = "spherical:left.load+seen=right.load+seen"
ANGLES = {"crank": "left", "coupler": "left", "rocker": "right"}
TIGHT: dict[str, Any] = {"solver": "rodas5p", "relative_tolerance": 1e-12, "absolute_tolerance": 1e-12}
AXIS = (0.3, -0.2, 1.0)
HANDLE = "load+turn+seen+facing"
"""Prefixes of the variables of a handle with moments."""


def handle(point: str, *, turns: bool = True, suffix: str = "") -> dict[str, Any]:
    """Return the loads and sensors that make a point a handle; a suffix tells two of a mechanism apart."""
    forces: tuple[Any, ...] = (AppliedForce(name=f"load{suffix}", point=point),)
    sensors: tuple[Any, ...] = (
        PointSensor(name=f"seen{suffix}", point=point, measures=("position", "velocity", "acceleration")),
    )
    if turns:
        forces += (AppliedMoment(name=f"turn{suffix}", point=point),)
        measures = ("quaternion", "angular_velocity", "angular_acceleration")
        sensors += (OrientationSensor(name=f"facing{suffix}", point=point, measures=measures),)
    return {"forces": forces, "sensors": sensors}


def model(name: str, mechanism: Mechanism) -> CoupledModel:
    """Return a model of one mechanism."""
    return CoupledModel(name=name, systems={name: mechanism}, stop_time=STOP)


# -- a four-bar, planar ----------------------------------------------------------------------------------------

_CRANK, _COUPLER, _ROCKER, _GROUND, _ANGLE = 0.4, 1.0, 0.8, 1.0, 1.0


def four_bar_bodies() -> tuple[Beam, Beam, Beam]:
    """Return crank, coupler and rocker."""
    return (
        Beam(name="crank", length=_CRANK, mass=2.0),
        Beam(name="coupler", length=_COUPLER, mass=3.0),
        Beam(name="rocker", length=_ROCKER, mass=2.5),
    )


def four_bar_start(speed: float = 4.0) -> dict[str, tuple[float, float]]:
    """Return angle and angular velocity of the joints of crank, coupler and rocker, by trigonometry."""
    elbow = _CRANK * np.array([np.cos(_ANGLE), np.sin(_ANGLE)])
    across = np.array([_GROUND, 0.0]) - elbow
    distance = np.hypot(*across)
    inner = np.arccos((_COUPLER**2 + distance**2 - _ROCKER**2) / (2.0 * _COUPLER * distance))
    coupler = np.arctan2(across[1], across[0]) + inner
    along = _COUPLER * np.array([np.cos(coupler), np.sin(coupler)])
    arm = elbow + along - np.array([_GROUND, 0.0])
    turned = np.array([[0.0, -1.0], [1.0, 0.0]])
    rates = np.linalg.solve(np.stack([turned @ along, -turned @ arm], axis=1), -speed * turned @ elbow)
    return {
        "crank": (_ANGLE, speed),
        "coupler": (float(coupler - _ANGLE), float(rates[0] - speed)),
        "rocker": (float(np.arctan2(arm[1], arm[0])), float(rates[1])),
    }


def _hinge(name: str, parent: str, child: str, start: tuple[float, float]) -> Revolute:
    return Revolute(name=name, parent=parent, child=child, angle=start[0], angular_velocity=start[1])


def four_bar_whole() -> CoupledModel:
    """Return the whole four-bar."""
    start, ground = four_bar_start(), {"left": (0.0, 0.0, 0.0), "right": (_GROUND, 0.0, 0.0)}
    joints = (
        _hinge("shaft", "ground.left", "crank.start", start["crank"]),
        _hinge("elbow", "crank.end", "coupler.start", start["coupler"]),
        _hinge("pivot", "ground.right", "rocker.start", start["rocker"]),
        Revolute(name="pin", parent="coupler.end", child="rocker.end"),
    )
    return model("whole", Mechanism(ground=ground, bodies=four_bar_bodies(), joints=joints))


def _rocker(*, turns: bool) -> Mechanism:
    return Mechanism(
        ground={"right": (_GROUND, 0.0, 0.0)},
        bodies=four_bar_bodies()[2:],
        joints=(_hinge("pivot", "ground.right", "rocker.start", four_bar_start()["rocker"]),),
        **handle("rocker.end", turns=turns),
    )


def four_bar_halves(*, turns: bool = False) -> tuple[CoupledModel, CoupledModel]:
    """Return crank and coupler, and the rocker, each with a handle at the pin between them."""
    crank, coupler, _ = four_bar_bodies()
    start = four_bar_start()
    left = Mechanism(
        ground={"left": (0.0, 0.0, 0.0)},
        bodies=(crank, coupler),
        joints=(
            _hinge("shaft", "ground.left", "crank.start", start["crank"]),
            _hinge("elbow", "crank.end", "coupler.start", start["coupler"]),
        ),
        **handle("coupler.end", turns=turns),
    )
    return model("left", left), model("right", _rocker(turns=turns))


def four_bar_thirds() -> tuple[CoupledModel, CoupledModel, CoupledModel]:
    """Return crank, coupler and rocker, cut at both joints of the coupler, which is free."""
    crank, coupler, _ = four_bar_bodies()
    start = four_bar_start()
    (angle, speed), (turned, faster) = start["crank"], start["coupler"]
    elbow = _CRANK * np.array([np.cos(angle), np.sin(angle)])
    left = Mechanism(
        ground={"left": (0.0, 0.0, 0.0)},
        bodies=(crank,),
        joints=(_hinge("shaft", "ground.left", "crank.start", start["crank"]),),
        **handle("crank.end", turns=False),
    )
    free = Free(
        name="free",
        parent="ground.left",
        child="coupler.start",
        angles=(0.0, 0.0, angle + turned),
        angular_velocity=(0.0, 0.0, speed + faster),
        displacement=(*elbow, 0.0),
        velocity=(-speed * elbow[1], speed * elbow[0], 0.0),
    )
    first, second = (
        handle(f"coupler.{end}", turns=False, suffix=mark) for end, mark in (("start", "_a"), ("end", "_b"))
    )
    inertia = coupler.mass * _COUPLER**2 / 12.0  # of a beam, which has none about its axis
    rod = RigidBody(
        name="coupler",
        mass=coupler.mass,
        inertia=(0.01, inertia, inertia),
        centre=(0.5 * _COUPLER, 0.0, 0.0),
        points={"start": (0.0, 0.0, 0.0), "end": (_COUPLER, 0.0, 0.0)},
    )
    middle = Mechanism(
        ground={"left": (0.0, 0.0, 0.0)},
        bodies=(rod,),
        joints=(free,),
        **{kind: first[kind] + second[kind] for kind in first},
    )
    return model("crank", left), model("coupler", middle), model("rocker", _rocker(turns=False))


# -- a spatial chain of two bodies --------------------------------------------------------------------------------

_TURNED, _SPIN = (0.4, 0.1, 1.9), (0.0, 1.0, 3.0)
_ROD = RigidBody(
    name="rod", mass=2.0, inertia=(0.2, 0.02, 0.22), points={"end": (0.1, 0.9, 0.0)}, centre=(0.0, 0.5, 0.0)
)
_BLOB = RigidBody(name="blob", mass=1.5, inertia=(0.05, 0.08, 0.1), points={"eye": (0.0, 0.3, 0.1)})


def _socket(child: str) -> Spherical:
    return Spherical(name="socket", parent="ground.O", child=child, angles=_TURNED, angular_velocity=_SPIN)


def chain_whole(kind: str) -> CoupledModel:
    """Return a rod on a ball joint, and a body on its end by a joint."""
    ends = {"name": "cut", "parent": "rod.end", "child": "blob.eye"}
    joint = {
        "spherical": lambda: Spherical(**ends),
        "revolute": lambda: Revolute(**ends, axis=AXIS),
        "prismatic": lambda: Prismatic(**ends, axis=AXIS),
        "fixed": lambda: Fixed(**ends),
    }[kind]()
    return model(
        "whole",
        Mechanism(
            ground={"O": (0.0, 0.0, 0.0)},
            bodies=(_ROD, _BLOB),
            joints=(_socket("rod.origin"), joint),
            sensors=handle("blob.eye")["sensors"],
        ),
    )


def chain_halves() -> tuple[CoupledModel, CoupledModel]:
    """Return the rod, and the free body where the rod's end is, moving with it."""
    rod = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(_ROD,), joints=(_socket("rod.origin"),), **handle("rod.end"))
    start = model("whole", Mechanism(ground=rod.ground, bodies=rod.bodies, joints=rod.joints, sensors=rod.sensors))
    seen = start.simulation(step=1e-3).run(1e-3)
    place, velocity = (
        tuple(float(seen[f"seen.{what}.{axis}"][0]) for axis in "xyz") for what in ("position", "velocity")
    )
    free = Free(
        name="free",
        parent="ground.O",
        child="blob.eye",
        angles=_TURNED,
        angular_velocity=_SPIN,
        displacement=place,
        velocity=velocity,
    )
    blob = Mechanism(ground=rod.ground, bodies=(_BLOB,), joints=(free,), **handle("blob.eye"))
    return model("rod", rod), model("blob", blob)


def bennett_halves() -> tuple[CoupledModel, tuple[CoupledModel, CoupledModel], str]:
    """Return Bennett's linkage with a sensor, its halves when it is cut at its third hinge, and the joint there.

    The halves have two freedoms and one; three of the joint's five constraints are redundant, others as it moves.
    """
    linkage: Any = bennett().systems["mechanism"]
    first, second, third, fourth = linkage.joints
    common = {"ground": linkage.ground, "gravity": linkage.gravity}
    # The last angle of the loop is that of the second hinge, seen from the other side.
    closing = Revolute(
        name="hinge_4",
        parent=fourth.parent,
        child=fourth.child,
        axis=fourth.axis,
        orientation=fourth.orientation,
        angle=bennett_angle(1.0),
    )
    sensors = (PointSensor(name="seen", point="link_2.end"),)
    whole = Mechanism(**common, bodies=linkage.bodies, joints=linkage.joints, sensors=sensors)
    left = Mechanism(**common, bodies=linkage.bodies[:2], joints=(first, second), **handle("link_2.end"))
    right = Mechanism(**common, bodies=linkage.bodies[2:], joints=(closing,), **handle("link_3.origin"))
    joint = f"revolute:left.{HANDLE}=right.{HANDLE}:{','.join(map(repr, third.axis))}"
    return model("whole", whole), (model("left", left), model("right", right)), joint


def sliding_pair(lower: float, upper: float) -> tuple[CoupledModel, CoupledModel]:
    """Return two masses in kg on one vertical guide; the lower one is pushed by an input."""
    halves = []
    for name, mass in (("lower", lower), ("upper", upper)):
        body = RigidBody(name="mass", mass=mass, inertia=(1.0, 1.0, 1.0))
        parts = handle("mass.origin")
        if name == "lower":
            parts["forces"] += (AppliedForce(name="push", point="mass.origin"),)
        guide = Prismatic(name="guide", parent="ground.O", child="mass.origin", axis=(0.0, 1.0, 0.0))
        halves.append(model(name, Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(body,), joints=(guide,), **parts)))
    return halves[0], halves[1]


def export_half(half: CoupledModel, folder: Path, **options: Any) -> Path:
    """Export one half and return its FMU."""
    return mbsfmu.export(half, folder / half.name, **options)[0]


# -- results -----------------------------------------------------------------------------------------------------


def inside(*names: str, step: float) -> dict[str, float]:
    """Return the steps inside the FMUs in s."""
    return {f"{name}.solver.step": step for name in names}


def largest_gap(result: Any, first: str = "left", second: str = "right", what: str = "position") -> float:
    """Return the largest distance of the two points over time."""
    gaps = [result[f"{first}.seen.{what}.{axis}"] - result[f"{second}.seen.{what}.{axis}"] for axis in "xyz"]
    return float(np.max(np.abs(gaps)))


def off(result: Any, tight: Result, kinds: tuple[str, ...] = ("angle", "angular_velocity")) -> float:
    """Return the largest error at the end."""
    names = [(f"{unit}.{body}.{kind}", f"{body}.{kind}") for body, unit in ANGLES.items() for kind in kinds]
    return max(abs(result[name][-1] - tight[alone][-1]) for name, alone in names)
