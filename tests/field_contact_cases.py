"""Benchmark problems with contacts, friction and belts: Newton's cradle, a row of balls, stick-slip, a belt drive."""

from __future__ import annotations

from math import pi

import numpy as np
from field_case import Expected, FieldCase, integrated
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from mbsfmu import (
    CoupledModel,
    JointDrive,
    JointFriction,
    JointSpringDamper,
    Mechanism,
    PlaneContact,
    PolynomialSignal,
    PrescribedMotion,
    Prismatic,
    RackAndPinion,
    Revolute,
    RigidBody,
    SpringDamper,
    StepSignal,
)
from mbsfmu.tracing.workspace import Floats

BALLS, RADIUS, ROD = 5, 0.0125, 0.1
BALL = 7850.0 * 4.0 / 3.0 * pi * RADIUS**3
"""Mass in kg of a ball of steel."""
HERTZ = 4.0 / 3.0 * 1.15e11 * (0.5 * RADIUS) ** 0.5
"""Stiffness in N/m^1.5 of two such balls against each other, of 210 GPa and a Poisson's ratio of 0.3 [Hertz 1881]."""
RELEASE = -pi / 6


def balls_in_contact(centre: tuple[float, float, float]) -> dict[str, object]:
    """Return data of a ball with its centre and the point where the ball before it touches."""
    side = (centre[0] - RADIUS, *centre[1:])
    inertia = (0.4 * BALL * RADIUS**2,) * 3
    return {"mass": BALL, "inertia": inertia, "centre": centre, "points": {"middle": centre, "side": side}}


def contacts() -> tuple[PlaneContact, ...]:
    """Return the contacts of neighbours: the former a sphere, the latter its tangent plane."""
    return tuple(
        PlaneContact(
            name=f"touch{i}",
            sphere=f"ball{i}.middle",
            plane=f"ball{i + 1}.side",
            normal=(-1.0, 0.0, 0.0),
            radius=RADIUS,
            stiffness=HERTZ,
        )
        for i in range(1, BALLS)
    )


def newtons_cradle() -> CoupledModel:
    """Five pendulums with balls of steel that touch at rest; the first is released from 30°."""
    bodies = tuple(RigidBody(name=f"ball{i}", **balls_in_contact((0.0, -ROD, 0.0))) for i in range(1, BALLS + 1))
    joints = tuple(
        Revolute(name=f"A{i}", parent=f"ground.A{i}", child=f"ball{i}.origin", angle=RELEASE if i == 1 else 0.0)
        for i in range(1, BALLS + 1)
    )
    ground = {f"A{i}": (2.0 * RADIUS * i, 0.0, 0.0) for i in range(1, BALLS + 1)}
    mechanism = Mechanism(ground=ground, bodies=bodies, joints=joints, forces=contacts())
    return CoupledModel(name="cradle", systems={"m": mechanism})


def cradle_motion(times: Floats) -> Expected:
    """Five pendulum equations with the forces of Hertz at δ = 2 r (1 − cos φ) + l sin(φ' − φ), φ' the ball before."""
    inertia = BALL * (ROD**2 + 0.4 * RADIUS**2)

    def rates(_: float, y: Floats) -> Floats:
        angle, speed = np.split(y, 2)
        before, after = angle[:-1], angle[1:]
        depth = 2.0 * RADIUS * (1.0 - np.cos(after)) + ROD * np.sin(before - after)
        force = HERTZ * np.maximum(depth, 0.0) ** 1.5
        torque = -BALL * 9.81 * ROD * np.sin(angle)
        torque[:-1] -= force * ROD * np.cos(before - after)
        torque[1:] -= force * (2.0 * RADIUS * np.sin(after) - ROD * np.cos(before - after))
        return np.concatenate([speed, torque / inertia])

    start = [RELEASE] + [0.0] * (2 * BALLS - 1)
    y = integrated(rates, start, times, max_step=2e-4)
    return {f"ball{i}.angle": y[i - 1] for i in range(1, BALLS + 1)}


def row_of_balls() -> CoupledModel:
    """Five balls of steel in a row that touch, the first arriving with 1 m/s: the impact of a cradle, drawn out."""
    bodies = tuple(RigidBody(name=f"ball{i}", **balls_in_contact((0.0, 0.0, 0.0))) for i in range(1, BALLS + 1))
    joints = tuple(
        Prismatic(name=f"P{i}", parent=f"ground.P{i}", child=f"ball{i}.origin", axis=(1.0, 0.0, 0.0), velocity=speed)
        for i, speed in enumerate([1.0] + [0.0] * (BALLS - 1), 1)
    )
    ground = {f"P{i}": (2.0 * RADIUS * i, 0.0, 0.0) for i in range(1, BALLS + 1)}
    mechanism = Mechanism(ground=ground, bodies=bodies, joints=joints, forces=contacts())
    return CoupledModel(name="row", systems={"m": mechanism})


ROW = (-0.07108502, -0.03027376, -0.01446363, 0.12704499, 0.98877742)
"""Velocities after the impact by that of the first ball before it; the same for any mass, stiffness and velocity."""


def row_end(_: Floats) -> Expected:
    return {f"ball{i}.velocity": np.array([speed]) for i, speed in enumerate(ROW, 1)}


BLOCK = {"mass": 1.0, "stiffness": 1.0, "belt": 0.2, "static": 1.0, "coulomb": 0.5, "stribeck": 0.5, "smoothing": 1e-5}
"""Mass, spring, speed of the belt and static friction as in Leine, van Campen, de Kraker, van den Steen, Nonlinear
Dynamics 16 (1998); friction falls with velocity by the Stribeck law of the toolkit."""


def stick_slip() -> CoupledModel:
    """A block on a moving belt, held by a spring: it sticks and slips by turns."""
    tiny = (1.0, 1.0, 1.0)
    bodies = (
        RigidBody(name="belt", mass=1.0, inertia=tiny),
        RigidBody(name="block", mass=BLOCK["mass"], inertia=tiny),
    )
    x_axis = (1.0, 0.0, 0.0)
    joints = (
        Prismatic(name="run", parent="ground.O", child="belt.origin", axis=x_axis, velocity=BLOCK["belt"]),
        Prismatic(name="slip", parent="belt.origin", child="block.origin", axis=x_axis),
    )
    friction = JointFriction(
        name="friction",
        joint="slip",
        coulomb_load=BLOCK["coulomb"],
        static_load=BLOCK["static"],
        stribeck_rate=BLOCK["stribeck"],
        smoothing_velocity=BLOCK["smoothing"],
    )
    spring = SpringDamper(
        name="spring", start="ground.W", end="block.origin", stiffness=BLOCK["stiffness"], free_length=10.0
    )
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "W": (-10.0, 0.0, 0.0)},
        bodies=bodies,
        joints=joints,
        forces=(friction, spring),
        constraints=(PrescribedMotion(name="drive", joint="run"),),
    )
    constant = PolynomialSignal(times=(0.0,), coefficients=((0.0, BLOCK["belt"]),))
    return CoupledModel(name="stick_slip", systems={"m": mechanism}, signals={"m.drive.position": constant})


def block_motion(times: Floats) -> Expected:
    """One equation with the regularised law of friction, by Radau IIA."""

    def rates(_: float, y: Floats) -> list[float]:
        slip = y[1] - BLOCK["belt"]
        falling = (BLOCK["static"] - BLOCK["coulomb"]) * np.exp(-((slip / BLOCK["stribeck"]) ** 2))
        friction = -(BLOCK["coulomb"] + falling) * np.tanh(slip / BLOCK["smoothing"])
        return [y[1], (friction - BLOCK["stiffness"] * y[0]) / BLOCK["mass"]]

    y = integrated(rates, [0.0, BLOCK["belt"]], times, "Radau")
    return {"block.centre.x.position": y[0], "block.velocity": y[1] - BLOCK["belt"]}


def sharp_stick_slip(stop: float) -> tuple[list[float], float]:
    """Return when a block under sharp friction begins to slip and to stick, in s, and where it is at the end, in m."""
    place, now, changes = 0.0, 0.0, []

    def rates(_: float, y: Floats) -> list[float]:
        falling = (BLOCK["static"] - BLOCK["coulomb"]) * np.exp(-(((y[1] - BLOCK["belt"]) / BLOCK["stribeck"]) ** 2))
        return [y[1], (BLOCK["coulomb"] + falling - BLOCK["stiffness"] * y[0]) / BLOCK["mass"]]

    def sticks(time: float, y: Floats) -> float:
        return y[1] - BLOCK["belt"] if time > now + 1e-3 else -1.0

    sticks.terminal = True  # type: ignore[attr-defined]
    while True:
        waiting = (BLOCK["static"] / BLOCK["stiffness"] - place) / BLOCK["belt"]
        if now + waiting > stop:
            return changes, place + (stop - now) * BLOCK["belt"]
        now += waiting
        changes.append(now)
        start = [BLOCK["static"] / BLOCK["stiffness"], BLOCK["belt"]]
        slipping = solve_ivp(rates, (now, stop), start, "DOP853", rtol=1e-12, atol=1e-13, events=sticks)
        place, now = float(slipping.y[0, -1]), float(slipping.t[-1])
        if not slipping.t_events[0].size:
            return changes, place
        changes.append(now)


MOTOR, PULLEY = (0.05, 1e-3), (0.15, 0.05)
"""Radius in m and moment of inertia in kg m² of both pulleys."""
BELT = {"mass": 0.4, "stiffness": 2e4, "damping": 10.0}
LOAD, TORQUE = 0.5, 2.0
"""Viscous load of the pulley in N m s/rad, torque of the motor in N m."""


def belt_drive() -> CoupledModel:
    """Two pulleys and a belt with elastic runs and mass, which does not slip, driven from rest."""
    x_axis = (1.0, 0.0, 0.0)
    pulleys = (("motor", MOTOR[1]), ("pulley", PULLEY[1]))
    bodies = (
        *(RigidBody(name=name, mass=1.0, inertia=(inertia,) * 3) for name, inertia in pulleys),
        *(RigidBody(name=f"run{i}", mass=0.5 * BELT["mass"], inertia=(1e-3,) * 3) for i in (1, 2)),
    )
    joints = (
        *(Revolute(name=f"J{name}", parent=f"ground.{name}", child=f"{name}.origin") for name, _ in pulleys),
        *(Prismatic(name=f"R{i}", parent="ground.motor", child=f"run{i}.origin", axis=x_axis) for i in (1, 2)),
    )
    forces = (
        JointDrive(name="drive", joint="Jmotor"),
        JointSpringDamper(name="load", joint="Jpulley", damping=LOAD),
        SpringDamper(
            name="runs",
            start="run1.origin",
            end="run2.free",
            stiffness=BELT["stiffness"],
            damping=BELT["damping"],
            free_length=1.0,
        ),
    )
    bodies = (*bodies[:3], bodies[3].model_copy(update={"points": {"free": (1.0, 0.0, 0.0)}}))
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"motor": (0.0, 0.0, 0.0), "pulley": (0.5, 0.0, 0.0)},
        bodies=bodies,
        joints=joints,
        forces=forces,
        constraints=(
            RackAndPinion(name="wrap1", pinion="Jmotor", rack="R1", radius=MOTOR[0]),
            RackAndPinion(name="wrap2", pinion="Jpulley", rack="R2", radius=PULLEY[0]),
        ),
    )
    torque = {"m.drive.torque": StepSignal(times=(0.0,), values=(TORQUE,))}
    return CoupledModel(name="belt", systems={"m": mechanism}, signals=torque)


def belt_motion(times: Floats) -> Expected:
    """Two linear equations, by the exponential of a matrix."""
    mass = np.diag([inertia + 0.5 * BELT["mass"] * radius**2 for radius, inertia in (MOTOR, PULLEY)])
    arms = np.array([MOTOR[0], -PULLEY[0]])
    stiffness, damping = BELT["stiffness"] * np.outer(arms, arms), BELT["damping"] * np.outer(arms, arms)
    damping[1, 1] += LOAD
    system = np.zeros((5, 5))
    system[:2, 2:4] = np.eye(2)
    system[2:4, :2], system[2:4, 2:4] = -np.linalg.solve(mass, stiffness), -np.linalg.solve(mass, damping)
    system[2, 4] = TORQUE / mass[0, 0]
    y = np.array([expm(system * time)[:4, 4] for time in times]).T
    return {"motor.angle": y[0], "pulley.angle": y[1], "motor.angular_velocity": y[2], "pulley.angular_velocity": y[3]}


def contact_cases() -> tuple[FieldCase, ...]:
    """Return them."""
    return (
        FieldCase("Newton's cradle", "pendulums with Hertz's contacts by SciPy", newtons_cradle, cradle_motion, 1.0),
        FieldCase("row of balls", "velocities after the impact", row_of_balls, row_end, 0.02),
        FieldCase("stick-slip", "Leine et al., one equation by SciPy", stick_slip, block_motion, 16.0),
        FieldCase("belt drive", "exponential of a matrix", belt_drive, belt_motion, 2.0),
    )
