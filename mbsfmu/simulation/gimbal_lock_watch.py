"""Warnings of gimbal lock for loads on Cardan angles of ball and free joints."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.joint_coordinates import turned_back
from mbsfmu.equations.rotation import rotation_from_quaternion
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import System
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

UNDEFINED = 1e-2
"""Cosine of the second Cardan angle below which the first and third are nearly undefined: they change a hundred times
as fast as the body rotates.
"""
SHARES = np.linspace(0.0, 1.0, 17)
"""Fractions of an interval at which orientations are checked."""


@dataclass(frozen=True)
class LoadedAngle:
    """A load on a Cardan angle.

    Attributes
    ----------
    load, coordinate
        Name of the part, and the coordinate that it acts along.
    quaternion
        Where the four parts of the joint's orientation stand in a row.
    back
        What turns the outer body's axes to those of the joint, shape (3, 3).
    is_reversed
        Whether the orientation is that of the joint's parent in the child's frame.
    """

    load: str
    coordinate: str
    quaternion: tuple[int, ...]
    back: Floats
    is_reversed: bool

    def cosines(self, rows: Floats) -> Floats:
        """Return cosines of the second Cardan angle, shape (k,), of unnormalized quaternions, shape (4, k)."""
        lengths = np.linalg.norm(rows, axis=0)
        turned = rotation_from_quaternion(rows / lengths)
        turned = turned.transpose(1, 0, 2) if self.is_reversed else turned
        first, second, _ = np.einsum("jk,kl->lj", turned[0].T, self.back)
        return np.hypot(first, second)


class CardanWatch:
    """Watches joints with loaded Cardan angles for a second angle near ±90 degrees.

    There the first and the third are undefined, and the load is unbounded or discontinuous. Orientations between two
    points of a run are interpolated along the shortest rotation, so that long steps are checked too.

    Parameters
    ----------
    parts
        The systems, in joint coordinates.
    names
        Names of the variables in a row.
    """

    def __init__(self, parts: Iterable[System], names: Sequence[str]) -> None:
        place = {name: index for index, name in enumerate(names)}
        mechanisms = [part for part in parts if isinstance(part, MechanismSystem)]
        self._angles = [angle for part in mechanisms for angle in _loaded_angles(part, place)]

    @property
    def columns(self) -> set[int]:
        """Where in a row the variables stand that it looks at."""
        return {place for angle in self._angles for place in angle.quaternion}

    def diagnostics(self, times: Floats, rows: Floats) -> Iterable[str]:
        """Look at the points of a run, and yield for each load a sentence on the first orientation without angles.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and values, shape (k, number of variables).
        """
        for angle in self._angles:
            quaternions = rows[:, angle.quaternion].T
            least = _least_between(angle, quaternions[:, :-1], quaternions[:, 1:], SHARES)
            if (near := np.flatnonzero(least < UNDEFINED)).size:
                yield f"at t = {times[near[0]]:.6g} s {_warning(angle)}"

    def follow(self, times: Floats, rows: Floats) -> None:
        """Log the `diagnostics` of a run."""
        for sentence in self.diagnostics(times, rows):
            logger.warning("%s", sentence)

    def cause(self, rows: Floats) -> str:
        """Return the continuation of an error message for a run that ended near gimbal lock; empty otherwise."""
        for angle in self._angles:
            quaternions = rows[-2:, angle.quaternion].T
            if quaternions.shape[1] == 2:
                least = _least_between(angle, quaternions[:, :1], quaternions[:, 1:], 2.0 * SHARES)
                if least[0] < UNDEFINED:
                    return f"; there {_warning(angle)}"
        return ""


def _least_between(angle: LoadedAngle, begin: Floats, end: Floats, shares: Floats) -> Floats:
    """Return the least cosine between orientations, each of shape (4, k), shape (k,)."""
    end = np.where(np.sum(begin * end, axis=0) < 0.0, -end, end)
    return np.min([angle.cosines(begin + share * (end - begin)) for share in shares], axis=0)


def _warning(angle: LoadedAngle) -> str:
    return (
        f"the angle {angle.coordinate} that {angle.load} acts along is not defined: the second Cardan angle of the "
        "joint is next to 90 degrees, where the first and the third jump, and the load on them with them; let the "
        "joint start in another orientation, or take a bushing"
    )


def _loaded_angles(part: MechanismSystem, place: dict[str, int]) -> Iterable[LoadedAngle]:
    mechanism = part.mechanism
    topology = mechanism.topology
    for force in mechanism.forces:
        for reference in references(force, ReferenceKind.JOINT):
            joint, index = mechanism.joint_element(reference)
            body = topology.body_of_joint(joint.name)
            if body is None or not joint.turns_freely or joint.elements[index].slides:
                continue
            named = [f"{topology.bodies[body].name}.quaternion.{each}" for each in "wxyz"]
            found = [next((place[p + n] for p in (f"{part.name}.", "") if p + n in place), None) for n in named]
            places = tuple(each for each in found if each is not None)
            if len(places) == len(named):
                back = turned_back(np.array(joint.orientation))
                yield LoadedAngle(force.name, reference, places, back, topology.tree[body].reversed)
