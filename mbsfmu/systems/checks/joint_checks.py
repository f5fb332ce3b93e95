"""Checks of user-defined joints: elements, closure equations and their rates are consistent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import casadi as ca
import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.equations.rotation import (
    cross,
    quaternion_product,
    rotation_about,
    rotation_from_quaternion,
    rotation_from_vector,
    unit,
)
from mbsfmu.model.closure import ClosureEquation
from mbsfmu.model.force_context import BodyPoint
from mbsfmu.model.joint import Joint
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.kinds import is_built_in
from mbsfmu.systems.checks.traced_parts import check_part
from mbsfmu.tracing.symbols import expression, symbols

_PLACES = 4
_AGREEMENT = 1e-9
"""Tolerance of rates relative to the largest term."""
_CLOSED = 1e-9
"""Violation in m or rad below which elements satisfy the equations."""

State = tuple[Array, Array, Array, Array]
"""Position, velocity, quaternion and angular velocity of a body's point."""


def check_joint(joint: Joint) -> None:
    """Refuse a user-defined joint whose equations cannot be traced, or contradict its motion or rates.

    Raises
    ------
    InputError
        When it fails.
    """
    kind = type(joint)
    if is_built_in(kind):
        return
    owner = f"{joint.type} joint '{joint.name}'"
    check_part(owner, kind, partial(_answers, joint), _places)
    for name, equation in joint.equations().items():
        _check_rates(f"{owner} is refused: its equation '{name}'", equation)
    generator = np.random.default_rng(0)
    for coordinates in generator.uniform(-1.0, 1.0, (_PLACES, len(joint.elements))):
        _check_motion(owner, joint, coordinates)


def _answers(joint: Joint, *states: Array) -> Mapping[str, Sequence[Array | float]]:
    """Return the results of each equation of a joint, by its name."""
    ends = _points(states)
    numbers: dict[str, Sequence[Array | float]] = {}
    for name, equation in joint.equations().items():
        pairs = equation.wrenches(*ends), equation.wrench_rates(*ends)
        numbers[f"equation '{name}'"] = [
            equation.value(*ends),
            *(each for pair in pairs for side in pair for each in side),
        ]
    return numbers


def _points(states: Sequence[Array]) -> tuple[BodyPoint, BodyPoint]:
    """Return both points from eight vectors."""
    (p, v, q, w), (other_p, other_v, other_q, other_w) = states[:4], states[4:]
    rotation, other = rotation_from_quaternion(q), rotation_from_quaternion(other_q)
    return BodyPoint(p, v, rotation, w), BodyPoint(other_p, other_v, other, other_w)


def _places() -> list[tuple[Array, ...]]:
    """Return pairs of bodies in random motion, as eight vectors each."""
    generator = np.random.default_rng(0)

    def one() -> State:
        quaternion = generator.normal(size=4)
        place, velocity, spin = generator.normal(size=(3, 3))
        return place, velocity, quaternion / np.linalg.norm(quaternion), spin

    return [(*one(), *one()) for _ in range(_PLACES)]


def _check_rates(owner: str, equation: ClosureEquation) -> None:
    """Refuse wrenches that are not the derivatives of the value, and inconsistent rates of wrenches."""
    made = [symbols(f"part_{index}", len(part)) for index, part in enumerate(_places()[0])]
    arrays = [array for _, array in made]
    ends = _points(arrays)
    places = ca.vertcat(*(made[index][0] for index in (0, 2, 4, 6)))
    moving = ca.vertcat(*(expression(part) for part in (*_rates(arrays[:4]), *_rates(arrays[4:]))))
    pair, rates = equation.wrenches(*ends), equation.wrench_rates(*ends)
    said = sum(wrench @ _at_origin(end) for wrench, end in zip(pair, ends, strict=True))
    wrenches, told = (ca.vertcat(*(expression(side) for side in each)) for each in (pair, rates))
    checks: dict[str, tuple[ca.SX, ca.SX]] = {
        "wrenches": (expression(said), ca.jtimes(expression(equation.value(*ends)), places, moving)),
        "wrench_rates": (told, ca.jtimes(wrenches, places, moving)),
    }
    for function, (one, other) in checks.items():
        both = ca.Function("rates", [vector for vector, _ in made], [one, other])
        for place in _places():
            given, derived = (np.asarray(each).ravel() for each in both(*place))
            if np.max(np.abs(given - derived)) > _AGREEMENT * max(1.0, np.max(np.abs(derived))):
                worst = int(np.argmax(np.abs(given - derived)))
                raise InputError(
                    f"{owner} has {function} that its value does not have: {given[worst]:.6g} where derivatives give "
                    f"{derived[worst]:.6g}"
                )


def _rates(state: Sequence[Array]) -> tuple[Array, Array]:
    """Return the rates of position and quaternion."""
    _, velocity, quaternion, spin = state
    return velocity, 0.5 * quaternion_product(np.concatenate([np.zeros(1), spin]), quaternion)


def _at_origin(point: BodyPoint) -> Array:
    linear = point.velocity - cross(point.angular_velocity, point.position)
    return np.concatenate([linear, point.angular_velocity])


def _check_motion(owner: str, joint: Joint, coordinates: Array) -> None:
    """Refuse equations that the joint's own motion violates, or that leave other motion free."""
    rotation, place = np.eye(3), np.zeros(3)
    for element, coordinate in zip(joint.elements, coordinates, strict=True):
        axis = unit(element.axis)
        along = coordinate if element.slides else element.pitch * coordinate
        place = place + rotation @ axis * along
        rotation = rotation if element.slides else rotation @ rotation_about(axis, coordinate)
    still = np.zeros(3)
    parent = BodyPoint(still, still, np.eye(3), still)
    child = BodyPoint(place, still, rotation @ rotation_from_vector(joint.orientation), still)
    rows = []
    for name, equation in joint.equations().items():
        violation = float(equation.value(parent, child))
        rows.append(equation.wrenches(parent, child)[1])
        if abs(violation) > _CLOSED:
            raise InputError(
                f"{owner} is refused: what its elements allow violates its equation '{name}' by {violation:.3g} "
                f"{equation.unit}"
            )
    if rows and np.linalg.matrix_rank(np.stack(rows), rtol=1e-9) < len(rows):
        raise InputError(f"{owner} is refused: its {len(rows)} equations are not independent of each other")
