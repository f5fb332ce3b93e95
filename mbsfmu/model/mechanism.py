"""Mechanisms as validated data, and their topology: spanning tree and cut joints."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Self

from pydantic import model_validator

from mbsfmu.base.files import complete_file
from mbsfmu.model.body import AnyBody, AnyShape, Body, Point
from mbsfmu.model.force import AnyForce, AnySensor
from mbsfmu.model.joint import AnyConstraint, AnyJoint, Joint
from mbsfmu.model.reference_types import GROUND, Name, ReferenceKind, Vector, references, split_reference
from mbsfmu.modelling import REFERENCE, Data, DataError, FrozenMap, Measured, Role, closest_match
from mbsfmu.modelling.errors import InputError
from mbsfmu.modelling.measurement_units import HINGE, SLIDE, JointWords, plain_number


@dataclass(frozen=True)
class TreeJoint:
    """A joint of the spanning tree, from the ground outwards.

    Attributes
    ----------
    joint
        The joint's data.
    reversed
        True where the body nearer to the ground is the joint's child.
    parent
        Index of the body nearer to the ground in `Topology.bodies`; -1 for the ground.
    coordinates
        Index of the coordinate of each of the joint's elements, in the order of these.
    reference
        Index of the joint's reference orientation; None for a joint that does not turn freely.
    """

    joint: AnyJoint
    reversed: bool
    parent: int
    coordinates: tuple[int, ...]
    reference: int | None = None


@dataclass(frozen=True)
class Topology:
    """The spanning tree and the cut joints of a mechanism.

    Attributes
    ----------
    bodies
        Bodies ordered so that each comes after its parent.
    tree
        For each body, the joint to its parent.
    cuts
        Joints that close loops.
    """

    bodies: tuple[Body, ...]
    tree: tuple[TreeJoint, ...]
    cuts: tuple[AnyJoint, ...]

    @property
    def coordinates(self) -> int:
        """Number of coordinates of the open tree."""
        return sum(len(joint.coordinates) for joint in self.tree)

    @property
    def references(self) -> int:
        """Number of ball and free joints."""
        return sum(joint.reference is not None for joint in self.tree)

    def index(self, body: str) -> int:
        """Return the index of a body by its name; -1 for the ground."""
        return -1 if body == GROUND else [each.name for each in self.bodies].index(body)

    def body_of_joint(self, joint: str) -> int | None:
        """Return the index of the outer body of a joint; None for a cut joint."""
        names = [tree_joint.joint.name for tree_joint in self.tree]
        return names.index(joint) if joint in names else None


def work_out(bodies: Sequence[Body], joints: Sequence[AnyJoint]) -> Topology:
    """Return the spanning tree, breadth first and in the order of the joints.

    Raises
    ------
    DataError
        When a body is not attached to the ground.
    """
    body_by_name = {body.name: body for body in bodies}
    order: dict[str, int] = {GROUND: -1}
    tree: list[TreeJoint] = []
    joints_of: dict[str, list[AnyJoint]] = {name: [] for name in (GROUND, *body_by_name)}
    for joint in joints:
        if not (joint.cut or joint.only_closes):
            for end in _ends(joint):
                joints_of[end].append(joint)
    coordinates = references = 0
    front = [GROUND]
    while front:
        here = front.pop(0)
        for joint in joints_of[here]:
            ends = _ends(joint)
            is_reversed = ends[1] == here
            outer = ends[0] if is_reversed else ends[1]
            if outer in order:
                continue
            order[outer] = len(tree)
            indices = tuple(range(coordinates, coordinates + len(joint.elements)))
            reference = references if joint.turns_freely else None
            tree.append(TreeJoint(joint, is_reversed, order[here], indices, reference))
            coordinates += len(indices)
            references += joint.turns_freely
            front.append(outer)
    loose = [body.name for body in bodies if body.name not in order]
    if loose:
        raise DataError(
            f"body '{loose[0]}' is not attached to the ground: no chain of joints that are not cut leads to it, "
            "and distances do not count; a body that nothing else holds has a free joint"
        )
    in_tree = {joint.joint.name for joint in tree}
    cuts = tuple(joint for joint in joints if joint.name not in in_tree)
    return Topology(tuple(body_by_name[name] for name in order if name != GROUND), tuple(tree), cuts)


def _ends(joint: Joint) -> tuple[str, str]:
    return split_reference(joint.parent)[0], split_reference(joint.child)[0]


RESERVED = ("gravity", "energy", "constraint", "solver", GROUND)
"""Names reserved for the mechanism's own variables."""


class Mechanism(Data):
    """A spatial mechanism: bodies, joints, forces, constraints and sensors.

    Attributes
    ----------
    name
        Name of the mechanism.
    gravity
        Gravitational acceleration in m/s².
    ground
        Points of the fixed frame by name, in m.
    bodies, joints, forces, sensors
        The parts; names are unique among bodies, forces, sensors and constraints, and among joints.
    constraints
        What holds between the coordinates of joints of the spanning tree, as gears make it.
    scenery
        Shapes that stand on the ground, in the inertial frame, for pictures alone.

    Raises
    ------
    DataError
        When the parts do not fit together; the message is one sentence.
    """

    name: Name = "mechanism"
    gravity: Annotated[Vector, Role.PARAMETER, Measured("m/s2")] = (0.0, -9.81, 0.0)
    ground: Annotated[FrozenMap[Name, Vector], Role.PARAMETER, Measured("m")] = {}
    bodies: tuple[AnyBody, ...]
    joints: tuple[AnyJoint, ...]
    forces: tuple[AnyForce, ...] = ()
    constraints: tuple[AnyConstraint, ...] = ()
    sensors: tuple[AnySensor, ...] = ()
    scenery: Annotated[tuple[AnyShape, ...], Role.PICTURE] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.bodies:
            raise ValueError("a mechanism needs at least one body")
        self._check_names()
        self._check_references()
        for joint in work_out(self.bodies, self.joints).cuts:
            if not joint.constrains:
                raise DataError(
                    f"joint '{joint.name}' is {joint.type} and closes a loop; it constrains nothing, leave it out"
                )
        return self

    def _check_names(self) -> None:
        acting = [*self.forces, *self.constraints, *self.sensors]
        parts = [*self.bodies, *acting]
        for kind, things in (("body, force, constraint or sensor", parts), ("joint", self.joints)):
            names = [thing.name for thing in things]
            for name in names:
                if names.count(name) > 1:
                    raise DataError(f"the name '{name}' is given to more than one {kind}")
        for part in (*parts, *self.joints):
            if part.name in RESERVED:
                raise DataError(f"the name '{part.name}' is reserved; choose another for the {part.type}")
        for joint in self.joints:
            if namesake := next((part for part in acting if part.name == joint.name), None):
                raise DataError(
                    f"the name '{joint.name}' is given to a joint and to a {namesake.family.family}; rename one"
                )

    def _check_references(self) -> None:
        for joint in self.joints:
            self._check_points(f"joint '{joint.name}'", joint)
        for part in (*self.forces, *self.sensors):
            thing = f"{part.type} '{part.name}'"
            self._check_points(thing, part, "joins" if part in self.forces else "measures between")
            for reference in references(part, ReferenceKind.JOINT):
                self.joint_element(reference, thing)
            self._check_units(thing, part)
        for constraint in self.constraints:
            thing, joints = f"{constraint.type} '{constraint.name}'", constraint.coupled
            for joint in joints:
                self._check_joint(thing, joint)
                if joints.count(joint) > 1:
                    raise DataError(f"{thing} names joint '{joint}' twice; it must be another one each time")
            self._check_units(thing, constraint)

    def _check_points(self, thing: str, part: Data, does: str = "joins") -> None:
        points = references(part, ReferenceKind.POINT)
        for reference in points:
            self.point(reference, thing)
        for one, other in pairwise(points):
            if split_reference(one)[0] == split_reference(other)[0]:
                raise DataError(f"{thing} {does} '{one}' and '{other}' of the same body")

    def _check_units(self, thing: str, part: Data) -> None:
        """Check that texts with units for what a joint decides are of its kind: `5 mm` is no limit of a hinge."""
        for field, written in part.written_units.items():
            pattern = part.unit_of(field) or ""
            names = {name.partition(".")[0] for _, name, _, _ in Formatter().parse(pattern) if name}
            joints = {name: getattr(part, name) for name in names}
            unit = pattern.format(**{name: joint_words(self, joint) for name, joint in joints.items()})
            if unit not in written.units:
                of = " and ".join(f"'{joint}'" for joint in joints.values())
                raise DataError(f"{thing}: {field} is '{written.text}'; of joint {of} it must be in {unit}")

    def joint_element(self, reference: str, user: str = "the call") -> tuple[AnyJoint, int]:
        """Return the joint, and the index of its element, of `joint` or `joint.coordinate`.

        Raises
        ------
        DataError
            When there is no such joint or coordinate; the message names `user`.
        """
        name, _, coordinate = reference.partition(".")
        joint = self._joint(user, name)
        names = joint.coordinate_names
        if coordinate:
            if coordinate not in names:
                raise DataError(
                    f"{user}: joint '{name}' has no coordinate '{coordinate}'; {closest_match(coordinate, names)}"
                )
            return joint, names.index(coordinate)
        if len(names) != 1:
            reason = (
                f"has the coordinates {', '.join(names)}; say which, as '{name}.{names[0]}'" if names else "has none"
            )
            raise DataError(f"{user} needs a coordinate, and joint '{name}' is {joint.type}, which {reason}")
        return joint, 0

    def _joint(self, user: str, name: str) -> AnyJoint:
        joints = {joint.name: joint for joint in self.joints}
        if name not in joints:
            raise DataError(f"{user}: there is no joint '{name}'; {closest_match(name, joints)}")
        return joints[name]

    def _check_joint(self, thing: str, name: str) -> None:
        joint = self._joint(thing, name)
        simple = len(joint.elements) == 1
        if not simple or self.topology.body_of_joint(name) is None:
            kind = "cut" if simple else joint.type
            raise DataError(f"{thing}: joint '{name}' is {kind}; it must be of the spanning tree, with one coordinate")

    @cached_property
    def _body_by_name(self) -> dict[str, AnyBody]:
        return {body.name: body for body in self.bodies}

    def point(self, reference: str, user: str = "the call") -> Point:
        """Return the point of `body.point`, in the body frame.

        Raises
        ------
        DataError
            When there is no such body or point; the message names `user`.
        """
        owner, name = split_reference(reference)
        bodies = self._body_by_name
        if owner == GROUND:
            points = {point: Point(position=position) for point, position in self.ground.items()}
        elif owner in bodies:
            points = bodies[owner].all_points
        else:
            raise DataError(f"{user}: there is no body '{owner}'; {closest_match(owner, [GROUND, *bodies])}")
        if name not in points:
            raise DataError(f"{user}: '{owner}' has no point '{name}'; {closest_match(name, points)}")
        return points[name]

    @cached_property
    def topology(self) -> Topology:
        """The spanning tree and the cut joints.

        Raises
        ------
        DataError
            When a body is not attached to the ground.
        """
        return work_out(self.bodies, self.joints)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a mechanism from a JSON file.

        Raises
        ------
        DataError
            When the file is no JSON, or what it says is no mechanism.
        OSError
            When the file cannot be read.
        """
        return cls.from_dict(read_json(path))

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the mechanism to a JSON file."""
        write_json(path, self.to_dict())


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return a JSON file's content without `$schema`.

    Raises
    ------
    DataError
        When it is no JSON; the sentence says where.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        data = json.loads(text, object_pairs_hook=_without_doubles, parse_float=plain_number)
    except DataError:
        raise
    except InputError as error:  # of a number
        raise DataError(f"{Path(path).name}: {error}") from None
    except (ValueError, RecursionError) as error:
        why = "a number has thousands of digits" if "integer string" in str(error) else error
        raise DataError(f"{Path(path).name} is not a JSON file: {why}") from None
    return {name: each for name, each in data.items() if name != REFERENCE} if isinstance(data, dict) else data


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        doubled = next(name for name in names if names.count(name) > 1)
        raise DataError(f"'{doubled}' is there twice in one object of the file")
    return result


def write_json(path: str | os.PathLike[str], data: dict[str, Any]) -> None:
    """Write a JSON file."""
    with complete_file(path) as partial:
        partial.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def mechanisms_of(systems: Mapping[str, Any]) -> dict[str, Mechanism]:
    """Return the mechanisms among systems by name."""
    return {name: data for name, data in systems.items() if isinstance(data, Mechanism)}


def joint_words(mechanism: Mechanism, joint: str) -> JointWords:
    """Return the words and units of the coordinate `joint` or `joint.coordinate`."""
    found, index = mechanism.joint_element(joint)
    return SLIDE if found.elements[index].slides else HINGE
