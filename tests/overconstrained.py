"""Overconstrained loops in closed form: Lagrange's equation of the one degree of freedom, integrated by SciPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from slewing import LENGTHS, four_bar_directions

from mbsfmu import CoupledModel
from mbsfmu.models import bennett, slewing_four_bar
from mbsfmu.models.chains import bennett_angle

Floats = NDArray[np.float64]
TIMES = {"bennett": (0.5, 0.75, 1.0, 1.25), "slewing-four-bar": (0.2, 0.3, 0.4, 0.5)}
"""The equations that are independent at the start stop being so at about 0.9 s, and at 0.39 s."""
SPEED = 4.0
"""Of the house in rad/s."""


def bennett_placement(model: CoupledModel, angle: float) -> list[tuple[Floats, Floats]]:
    """Rotation and centre of mass of each link, from the closed form of the linkage."""
    second = bennett_angle(angle)
    mechanism: Any = model.systems["mechanism"]
    twists = [joint.orientation[0] for joint in mechanism.joints[:3]]
    rotation, place, result = np.eye(3), np.zeros(3), []
    for turn, twist, body in zip((angle, second, -angle), twists, mechanism.bodies, strict=True):
        rotation = rotation @ Rotation.from_rotvec([twist, 0.0, 0.0]).as_matrix() @ about_z(turn)
        along = rotation[:, 0]
        result.append((rotation, place + 0.5 * body.length * along))
        place = place + body.length * along
    return result


def about_z(angle: float) -> Floats:
    return np.asarray(Rotation.from_rotvec([0.0, 0.0, angle]).as_matrix())


def slope(function: Callable[[float], Floats], at: float) -> Floats:
    """Derivative by differences of fourth order, to about 1e-11 of smooth closed forms."""
    small = 1e-3
    near, far = (function(at + k * small) - function(at - k * small) for k in (1, 2))
    return (8.0 * near - far) / (12.0 * small)


def lagrange(
    kinetic: Callable[[float], float], potential: Callable[[float], float], start: float, times: Sequence[float]
) -> Floats:
    """θ, θ̇ and θ̈ at given times, from rest, with J(θ) θ̇²/2 + V(θ) constant: J θ̈ = −J′ θ̇²/2 − V′."""

    def rates(_: float, state: Floats) -> list[float]:
        angle, speed = state
        force = -0.5 * slope(lambda x: np.array(kinetic(x)), angle) * speed**2
        return [speed, float(force - slope(lambda x: np.array(potential(x)), angle)) / kinetic(angle)]

    found = solve_ivp(rates, (0.0, times[-1]), [start, 0.0], method="DOP853", rtol=1e-10, atol=1e-10, t_eval=times)
    return np.vstack([found.y, [rates(0.0, state)[1] for state in found.y.T]])


@cache
def bennett_reference() -> Floats:
    """First angle of Bennett's linkage, its rate and acceleration at `TIMES`, shape (3, 4)."""
    model = bennett()
    mechanism: Any = model.systems["mechanism"]

    def placed(angle: float) -> Floats:
        return np.array([np.column_stack(pair) for pair in bennett_placement(model, angle)])

    def kinetic(angle: float) -> float:
        total = 0.0
        for body, here, rate in zip(mechanism.bodies, placed(angle), slope(placed, angle), strict=True):
            turning = here[:, :3].T @ rate[:, :3]
            spin, linear = np.array([turning[2, 1], turning[0, 2], turning[1, 0]]), rate[:, 3]
            total += body.mass * linear @ linear + spin @ tensor_of(body) @ spin
        return float(total)

    def potential(angle: float) -> float:
        pairs = zip(mechanism.bodies, placed(angle), strict=True)
        return float(-sum(body.mass * np.array(mechanism.gravity) @ here[:, 3] for body, here in pairs))

    return lagrange(kinetic, potential, 1.0, TIMES["bennett"])


MASSES, INERTIAS = np.array([10.0, 20.0, 15.0]), np.array([1.0, 5.0, 3.0])


def four_bar_centres(crank: float) -> Floats:
    """Centres of mass in the plane of the house, shape (3, 2)."""
    x, y = np.cos(four_bar_directions(crank)), np.sin(four_bar_directions(crank))
    halves = 0.5 * LENGTHS[:, np.newaxis] * np.stack([x, y], axis=1)
    return halves + np.array([[0.0, 0.0], [x[0], y[0]], [2.0, 0.0]])


def about_vertical(crank: float) -> float:
    """Moment of inertia of house and four-bar about the axis of slewing."""
    directions, centres = four_bar_directions(crank), four_bar_centres(crank)
    own = 0.1 * np.sin(directions) ** 2 + INERTIAS * np.cos(directions) ** 2
    return float(1e6 + np.sum(own + MASSES * centres[:, 0] ** 2))


@cache
def slewing_start() -> float:
    """Angle of the crank where it starts."""
    simulation = slewing_four_bar().simulation(compiled=False)
    simulation.initialize()
    return simulation.get("crank.angle")


@cache
def slewing_reference() -> Floats:
    """Angle of the crank, its rate and acceleration at `TIMES`, shape (3, 4).

    The house, whose angular momentum stays, adds what Routh's function has beside energy.
    """

    def kinetic(crank: float) -> float:
        spins, speeds = slope(four_bar_directions, crank), slope(four_bar_centres, crank)
        return float(np.sum(INERTIAS * spins**2 + MASSES * np.sum(speeds**2, axis=1)))

    start = slewing_start()
    momentum = SPEED * about_vertical(start)

    def potential(crank: float) -> float:
        weight = 9.81 * np.sum(MASSES * four_bar_centres(crank)[:, 1])
        return float(weight + 0.5 * momentum**2 / about_vertical(crank))

    return lagrange(kinetic, potential, start, TIMES["slewing-four-bar"])


# -- reactions ------------------------------------------------------------------------------------------------

Placement = list[tuple[Floats, Floats]]
"""Rotation and centre of mass of each body."""


@dataclass(frozen=True)
class Hinge:
    """A joint that turns about an axis: bodies by number (−1 the ground), a point and a direction in space."""

    parent: int
    child: int
    point: Floats
    axis: Floats


def path_of(placed: Callable[[float], Placement], motion: Floats) -> Callable[[float], Placement]:
    """Return the placement some time later, to second order, from θ, θ̇ and θ̈ now."""
    return lambda later: placed(float(motion @ [1.0, later, 0.5 * later**2]))


def least_reactions(
    path: Callable[[float], Placement],
    bodies: Sequence[tuple[float, Floats]],
    hinges: Sequence[Hinge],
    gravity: Sequence[float],
) -> Floats:
    """Force and moment of each hinge on its child, shape (hinges, 6), by Newton's and Euler's equations.

    Those of least norm that move the bodies (mass and tensor of inertia) along their path, without moments about axes.
    """

    def momenta(later: float) -> Floats:
        here = path(later)
        rates = slope(lambda s: np.array([np.column_stack(pair) for pair in path(s)]), later)
        found = []
        for (rotation, _), rate, (mass, tensor) in zip(here, rates, bodies, strict=True):
            turning = rotation.T @ rate[:, :3]
            spin = np.array([turning[2, 1], turning[0, 2], turning[1, 0]])
            found.append(np.concatenate([mass * rate[:, 3], rotation @ tensor @ spin]))
        return np.array(found)

    balance = np.zeros((6 * len(bodies) + len(hinges), 6 * len(hinges)))
    weights = [[*(mass * np.array(gravity)), 0.0, 0.0, 0.0] for mass, _ in bodies]
    right = np.concatenate([np.ravel(slope(momenta, 0.0) - weights), np.zeros(len(hinges))])
    for number, hinge in enumerate(hinges):
        own = slice(6 * number, 6 * number + 6)
        for body, sign in ((hinge.parent, -1.0), (hinge.child, 1.0)):
            if body >= 0:
                x, y, z = hinge.point - path(0.0)[body][1]
                balance[6 * body : 6 * body + 6, own] = sign * np.eye(6)
                balance[6 * body + 3 : 6 * body + 6, own][:, :3] = sign * np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        balance[6 * len(bodies) + number, own][3:] = hinge.axis
    return (np.linalg.pinv(balance, rcond=1e-10) @ right).reshape(-1, 6)


def bennett_reactions(motion: Floats) -> Floats:
    """Reactions of the four hinges of Bennett's linkage, shape (4, 6)."""
    model = bennett()
    mechanism: Any = model.systems["mechanism"]
    path = path_of(lambda angle: bennett_placement(model, angle), motion)
    bodies = [(body.mass, tensor_of(body)) for body in mechanism.bodies]
    ends = [(turn, at, 0.5 * body.length) for (turn, at), body in zip(path(0.0), mechanism.bodies, strict=True)]
    hinges = [Hinge(k - 1, k, at - half * turn[:, 0], turn[:, 2]) for k, (turn, at, half) in enumerate(ends)]
    turn, at, half = ends[-1]
    hinges.append(Hinge(-1, 2, at + half * turn[:, 0], np.array(mechanism.joints[-1].axis)))
    return least_reactions(path, bodies, hinges, mechanism.gravity)


def tensor_of(body: Any) -> Floats:
    """Tensor of inertia about the centre of mass, in the body's frame."""
    xy, xz, yz = body.products_of_inertia
    return np.asarray(np.diag(body.inertia) + np.array([[0.0, xy, xz], [xy, 0.0, yz], [xz, yz, 0.0]]))


def slewing_reactions(motion: Floats) -> Floats:
    """Reactions of slewing, A, B, D and C, shape (5, 6), in the frame of the house."""
    crank, speed, _ = motion
    momentum = SPEED * about_vertical(slewing_start())
    inertia = about_vertical(crank)
    slewing = momentum / inertia
    slowing = -slewing / inertia * float(slope(lambda x: np.array(about_vertical(x)), crank)) * speed
    flat = path_of(house_and_four_bar, motion)

    def path(later: float) -> Placement:
        turn = about_z(slewing * later + 0.5 * slowing * later**2)
        return [(turn @ rotation, turn @ centre) for rotation, centre in flat(later)]

    mechanism: Any = slewing_four_bar().systems["mechanism"]
    bodies = [(body.mass, tensor_of(body)) for body in mechanism.bodies]
    _, (turn, at), (turned, end), _ = path(0.0)
    across, front = np.array([0.0, -1.0, 0.0]), np.array([2.0, 0.0, 0.0])
    hinges = [
        Hinge(-1, 0, np.zeros(3), np.array([0.0, 0.0, 1.0])),
        Hinge(0, 1, np.zeros(3), across),
        Hinge(1, 2, at + 0.5 * LENGTHS[0] * turn[:, 0], across),
        Hinge(0, 3, front, across),
        Hinge(2, 3, end + 0.5 * LENGTHS[1] * turned[:, 0], across),
    ]
    return least_reactions(path, bodies, hinges, mechanism.gravity)


def house_and_four_bar(crank: float) -> Placement:
    """Placement in the frame of the house."""
    result = [(np.eye(3), np.zeros(3))]
    for direction, (x, z) in zip(four_bar_directions(crank), four_bar_centres(crank), strict=True):
        turn = Rotation.from_rotvec([0.0, -direction, 0.0]).as_matrix()
        result.append((turn, np.array([x, 0.0, z])))
    return result
