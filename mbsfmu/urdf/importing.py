"""Mechanisms from URDF files: links and joints as bodies, with their visuals as shapes."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.spatial.transform import Rotation

from mbsfmu.equations.rotation import perpendicular, unit
from mbsfmu.model.body import (
    MESHES,
    QUANTITY,
    AnyShape,
    BoxShape,
    CylinderShape,
    MeshShape,
    Point,
    RigidBody,
    SphereShape,
)
from mbsfmu.model.force import Force
from mbsfmu.model.joint import Joint
from mbsfmu.model.mechanism import RESERVED, Mechanism
from mbsfmu.modelling import DataError
from mbsfmu.parts import Free, JointDrive, JointFriction, JointStop, Mimic, Planar, Prismatic, Revolute
from mbsfmu.urdf.robot import (
    IDENTITY,
    Floats,
    Frame,
    Mass,
    Robot,
    UrdfElement,
    UrdfJoint,
    UrdfLink,
    as_tuple,
    colour_of,
    frame_of,
    read_robot,
)

_LOGGER = logging.getLogger(__name__)
_PACKAGE = "package://"


def shapes_of(link: UrdfLink, frame: Frame, colours: Mapping[str, str], path: Path) -> Iterator[AnyShape]:
    """Yield the shapes of a link in the frame of its body; what cannot be drawn is reported in the log.

    Parameters
    ----------
    link
        The link.
    frame
        Frame of the link.
    colours
        Colours of the robot's materials by name.
    path
        The file; paths of meshes are relative to its folder.
    """
    for visual in link.visuals:
        try:
            yield _shape(visual, frame, colours, path.parent)
        except DataError as error:
            _LOGGER.warning("%s: a visual is not drawn, which changes no result: %s", path, error)


def _shape(visual: UrdfElement, frame: Frame, colours: Mapping[str, str], folder: Path) -> AnyShape:
    """Return the shape of a visual.

    Raises
    ------
    DataError
        When it cannot be drawn.
    """
    geometry = next(visual.required("geometry").children(), None)
    if geometry is None:
        raise visual.refused("has an empty <geometry>")
    made = _GEOMETRIES.get(geometry.tag)
    if made is None:
        raise geometry.refused(f"is none of {', '.join(_GEOMETRIES)}")
    placed, material = frame.of(frame_of(visual)), visual.child("material")
    colour = None if material is None else colour_of(material) or colours.get(material.element.get("name", ""))
    place = {
        "position": as_tuple(placed.position),
        "orientation": as_tuple(Rotation.from_matrix(placed.rotation).as_rotvec()),
        "colour": colour,
    }
    try:
        return made(geometry, folder, place)
    except DataError as error:
        raise error if str(error).startswith("line ") else geometry.refused(f"is refused: {error}") from None


def _box(geometry: UrdfElement, _: Path, place: Mapping[str, Any]) -> BoxShape:
    return BoxShape(size=as_tuple(geometry.vector("size", 3)), **place)


def _sphere(geometry: UrdfElement, _: Path, place: Mapping[str, Any]) -> SphereShape:
    return SphereShape(radius=geometry.number("radius"), **place)


def _cylinder(geometry: UrdfElement, _: Path, place: Mapping[str, Any]) -> CylinderShape:
    return CylinderShape(radius=geometry.number("radius"), length=geometry.number("length"), **place)


def _mesh(geometry: UrdfElement, folder: Path, place: Mapping[str, Any]) -> MeshShape:
    name, scale = geometry.text("filename"), geometry.element.get("scale", "1").split()
    factors = geometry.vector("scale", 3, (1.0, 1.0, 1.0)) if len(scale) != 1 else geometry.number("scale", 1.0)
    file = _found(name, folder)
    if file is None or file.suffix.lower() not in MESHES:
        why = "which is not there" if file is None else f"which is not {' or '.join(MESHES)}"
        raise geometry.refused(f"names {name}, {why}")
    if not np.all(factors > 0.0):
        raise geometry.refused(f"has scale='{' '.join(scale)}', which mirrors it; all factors must be positive")
    return MeshShape(file=str(file), scale=as_tuple(factors * np.ones(3)), **place)


_GEOMETRIES: dict[str, Callable[[UrdfElement, Path, Mapping[str, Any]], AnyShape]] = {
    "box": _box, "sphere": _sphere, "cylinder": _cylinder, "mesh": _mesh,
}  # fmt: skip


def _found(name: str, folder: Path) -> Path | None:
    """Return the file of a mesh; a package name refers to a parent folder of that name."""
    if not name.startswith(_PACKAGE):
        file = folder / name.removeprefix("file://")
        return file if file.is_file() else None
    inside = Path(name.removeprefix(_PACKAGE))
    beside = Path(*inside.parts[1:])
    places = (place / end for place in (folder, *folder.parents) for end in (inside, beside))
    return next((file for file in places if file.is_file()), None)


logger = logging.getLogger(__name__)

_ALONG_ONE_COORDINATE = ("revolute", "continuous", "prismatic")
_BUILT_IN_POINTS = ("origin", "centre")


def mechanism_from_urdf(
    path: str | os.PathLike[str],
    *,
    base: Literal["fixed", "free"] = "fixed",
    start: Mapping[str, float] = {},
    drives: bool = True,
    stop_stiffness: float | None = None,
    name: str | None = None,
) -> Mechanism:
    """Return the mechanism of a URDF file.

    Links become bodies with their URDF frames, in m, with z upwards. A link fixed to another one is part of its body,
    and its frame becomes a point of the body with the link's name. Frames of joints become points with the joints'
    names. Links fixed to the root link of a fixed base become points of the ground. Position limits become stops if a
    stiffness is given; damping and friction of a joint become its `JointFriction`; a mimic joint becomes a coupling.
    Visuals are the shapes of bodies, those of a fixed base's root link the scenery; what cannot be drawn is reported in
    the log. Limits of effort and velocity, textures, collisions, sensors and transmissions are ignored. Other elements
    and attributes that may change the motion, such as loops of other tools, are reported.

    Parameters
    ----------
    path
        The file.
    base
        Whether the root link is fixed to the ground, or floats.
    start
        Start coordinates by joint name in the file, in rad or m; zero by default.
    drives
        Whether each movable joint that is not a mimic joint has a `JointDrive`, `<joint>_drive`, with its torque or
        force as an input.
    stop_stiffness
        Stiffness of the stops at limits of position in N m/rad or N/m; None omits them.
    name
        Name of the mechanism; by default that of the robot.

    Raises
    ------
    InputError
        When the file is no URDF.
    DataError
        When what it describes cannot be a mechanism; the message has the line, the link or joint, and the attribute.
    OSError
        When the file cannot be read.
    """
    try:
        robot = read_robot(path)
        return _Import(robot, base, dict(start), drives, stop_stiffness, Path(path).absolute()).mechanism(
            name or _clean(robot.name)
        )
    except DataError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None


def _clean(text: str) -> str:
    """Return a valid name: other characters than letters and digits become underscores."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"_{name}" if not name or name[0].isdigit() else name


def _distinct(kind: str, texts: Iterable[str]) -> dict[str, str]:
    """Return valid names by the names of the file; a name that has another meaning here gets its kind behind it.

    Raises
    ------
    DataError
        If two names would be equal.
    """
    names: dict[str, str] = {}
    for text in texts:
        name = _clean(text)
        name = f"{name}_{kind}" if name in RESERVED else name
        if other := next((one for one, taken in names.items() if taken == name), None):
            raise DataError(f"the {kind}s '{other}' and '{text}' would both be called '{name}' here; rename one")
        names[text] = name
    return names


class _Import:
    """Conversion of a robot to a mechanism."""

    def __init__(
        self,
        robot: Robot,
        base: str,
        start: dict[str, float],
        drives: bool,
        stop_stiffness: float | None,
        path: Path,
    ) -> None:
        self._path = path
        self._robot, self._base, self._drives, self._stiffness = robot, base, drives, stop_stiffness
        self._links, self._joints = robot.links, robot.joints
        if unknown := [name for name in start if name not in self._joints]:
            raise DataError(f"start names '{unknown[0]}', which is not a joint; joints are {', '.join(self._joints)}")
        self._start = self._with_followers(start)
        self._names = _distinct("link", self._links)
        self._joint_names = _distinct("joint", self._joints)
        self._frames: dict[str, Frame] = {}
        self._body_of: dict[str, str | None] = {}
        self._masses: dict[str, Mass] = {}
        self._points: dict[str | None, dict[str, Floats]] = {None: {}}
        self._made: list[Joint] = []
        self._moving: list[UrdfJoint] = []
        self._place()
        self._taken = {*self._masses, *self._joint_names.values(), *(joint.name for joint in self._made)}

    def mechanism(self, name: str) -> Mechanism:
        """Return the mechanism."""
        bodies = tuple(self._body(body) for body in self._masses)
        if not bodies:
            raise DataError("nothing moves: all links are fixed to the base")
        ground = {point: as_tuple(at) for point, at in self._points[None].items()}
        followers = tuple(self._followers())
        return Mechanism(
            name=name,
            gravity=(0.0, 0.0, -9.81),
            ground=ground,
            bodies=bodies,
            joints=tuple(self._made),
            forces=tuple(self._forces({follower.joint for follower in followers})),
            constraints=followers,
            scenery=tuple(self._shapes(None)),
        )

    def _shapes(self, body: str | None) -> Iterator[AnyShape]:
        """Yield the shapes of all links of a body, or of the ground."""
        for name, link in self._links.items():
            if self._body_of[name] == body:
                yield from shapes_of(link, self._frames[name], self._robot.colours, self._path)

    def _with_followers(self, start: Mapping[str, float]) -> dict[str, float]:
        """Return the start coordinates, with those of mimic joints computed from their leaders.

        Raises
        ------
        DataError
            If a joint cannot follow its leader, or a start coordinate contradicts its leader.
        """
        result = dict(start)

        def place(name: str, behind: tuple[str, ...] = ()) -> float:
            mimic = self._joints[name].mimic
            if mimic is None or self._joints[name].type == "fixed":
                return result.get(name, 0.0)
            if name in behind:
                raise self._joints[name].refused(f"is in a ring of joints that mimic each other: {', '.join(behind)}")
            self._check_follower(self._joints[name], mimic.joint)
            angle = mimic.multiplier * place(mimic.joint, (*behind, name)) + mimic.offset
            if name in start and abs(start[name] - angle) > 1e-9:
                raise DataError(
                    f"start gives '{name}' as {start[name]:g}, but it mimics '{mimic.joint}' and is at {angle:g}"
                )
            return angle

        for name, joint in self._joints.items():
            if joint.mimic is not None:
                result[name] = place(name)
        return result

    def _check_follower(self, joint: UrdfJoint, leader: str) -> None:
        """Refuse a mimic joint that cannot follow its leader."""
        if leader not in self._joints:
            raise joint.refused(f"mimics '{leader}', which does not exist")
        for each in (joint, self._joints[leader]):
            if each.type not in _ALONG_ONE_COORDINATE:
                raise joint.refused(
                    f"mimics '{leader}', but '{each.name}' is {each.type}; both must be "
                    f"{', '.join(_ALONG_ONE_COORDINATE[:-1])} or {_ALONG_ONE_COORDINATE[-1]}"
                )

    # -- the tree -------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Traverse the tree from its root and assign each link to a body."""
        carried: dict[str, UrdfJoint] = {}
        for joint in self._joints.values():
            for link in (joint.parent, joint.child):
                if link not in self._links:
                    raise joint.refused(f"names the link '{link}', which is not there")
            if (other := carried.setdefault(joint.child, joint)) is not joint:
                raise joint.refused(
                    f"has the child '{joint.child}', as joint '{other.name}' has; a link has one joint to its parent"
                )
        roots = [name for name in self._links if name not in carried]
        if len(roots) != 1:
            raise DataError(f"the links are no tree: roots are {', '.join(roots) or 'none'}; there must be one")
        (root,) = roots
        if self._base == "free":
            self._points[None]["origin"] = np.zeros(3)
            self._begin_body(root)
            body = self._names[root]
            self._made.append(Free(name=f"{body}_base", parent="ground.origin", child=f"{body}.origin"))
        else:
            self._frames[root], self._body_of[root] = IDENTITY, None
            self._points[None][self._names[root]] = np.zeros(3)
        waiting = [root]
        while waiting:
            parent = waiting.pop(0)
            for joint in self._joints.values():
                if joint.parent == parent:
                    self._join(joint)
                    waiting.append(joint.child)
        self._check_masses()
        if ring := [name for name in self._links if name not in self._frames]:
            raise DataError(f"the links are no tree: {', '.join(ring)} hang on each other in a ring")

    def _check_masses(self) -> None:
        """Refuse a joint that moves no mass."""
        outboard = {name: mass.whole()[0] for name, mass in self._masses.items()}
        for joint in reversed(self._moving):
            body = self._names[joint.child]
            if not outboard[body] > 0.0:
                raise joint.refused(
                    f"moves link '{joint.child}', which has no mass, nor has anything that it carries; give it an "
                    "<inertial>, or fix the joint"
                )
            if (inner := self._body_of[joint.parent]) is not None:
                outboard[inner] += outboard[body]

    def _begin_body(self, link: str) -> None:
        """Take a link's frame as the frame of a new body."""
        body = self._names[link]
        self._frames[link], self._body_of[link] = IDENTITY, body
        self._masses[body], self._points[body] = Mass(), {}
        self._add_mass(link)

    def _add_mass(self, link: str) -> None:
        """Add the inertia of a link to its body."""
        body, inertial = self._body_of[link], self._links[link].inertial
        if body is None or inertial is None:
            return
        inertial.check()
        frame = self._frames[link].of(inertial.frame)
        self._masses[body].add(inertial.mass, frame.position, frame.rotation @ inertial.tensor @ frame.rotation.T)

    def _join(self, joint: UrdfJoint) -> None:
        """Assign the child link of a joint: to the body of its parent if fixed, otherwise to a new body."""
        body, frame = self._body_of[joint.parent], self._frames[joint.parent].of(joint.frame)
        if joint.type == "fixed":
            self._frames[joint.child], self._body_of[joint.child] = frame, body
            self._add_point(body, self._names[joint.child], "link", frame.position)
            self._add_mass(joint.child)
            return
        self._moving.append(joint)
        name = self._joint_names[joint.name]
        point = self._add_point(body, name, "joint", frame.position)
        self._begin_body(joint.child)
        ends = {
            "name": name,
            "parent": f"{body or 'ground'}.{point}",
            "child": f"{self._names[joint.child]}.origin",
            "orientation": as_tuple(Rotation.from_matrix(frame.rotation).as_rotvec()),
        }
        self._made.append(self._joint(joint, ends, frame.rotation))

    def _add_point(self, body: str | None, name: str, kind: str, position: Floats) -> str:
        """Add a point to a body or the ground; return its name, with its kind behind it where a link has the name.

        Links and joints may have the same names in a file, but points of a body are all different.
        """
        of_link = kind == "joint" and name in self._names.values()
        if of_link or QUANTITY.fullmatch(name) or (body is not None and name in _BUILT_IN_POINTS):
            name = f"{name}_{kind}"
        while name in self._points[body]:
            name = f"{name}_"
        self._points[body][name] = position
        return name

    def _joint(self, joint: UrdfJoint, ends: dict[str, Any], rotation: Floats) -> Joint:
        """Return a movable joint."""
        axis, start = as_tuple(rotation @ joint.axis), self._start.get(joint.name, 0.0)
        if joint.type in ("revolute", "continuous"):
            return Revolute(**ends, axis=axis, angle=start)
        if joint.type == "prismatic":
            return Prismatic(**ends, axis=axis, displacement=start)
        if joint.name in self._start:
            raise DataError(f"start names '{joint.name}', which is {joint.type} and has more than one coordinate")
        if joint.type == "floating":
            return Free(**ends)
        return Planar(**ends, axis=axis, direction=as_tuple(perpendicular(unit(np.array(axis)))[0]))

    # -- parts ----------------------------------------------------------------------------------------------

    def _name(self, joint: str, kind: str) -> str:
        """Return the name of a part at a joint, as `elbow_drive`; with underscores behind it where it is taken."""
        name = f"{joint}_{kind}"
        while name in self._taken:
            name = f"{name}_"
        self._taken.add(name)
        return name

    def _body(self, name: str) -> RigidBody:
        """Return a body from its links."""
        mass, centre, tensor = self._masses[name].whole()
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = tensor
        return RigidBody(
            name=name,
            mass=mass,
            inertia=(float(xx), float(yy), float(zz)),
            products_of_inertia=(float(xy), float(xz), float(yz)),
            centre=Point(position=as_tuple(centre)),
            points={point: Point(position=as_tuple(position)) for point, position in self._points[name].items()},
            shapes=tuple(self._shapes(name)),
        )

    def _followers(self) -> Iterator[Mimic]:
        """Return the couplings of mimic joints."""
        for joint in self._joints.values():
            if joint.mimic is not None and joint.type != "fixed":
                name = self._joint_names[joint.name]
                yield Mimic(
                    name=self._name(name, "mimic"),
                    joint=name,
                    leader=self._joint_names[joint.mimic.joint],
                    multiplier=joint.mimic.multiplier,
                    offset=joint.mimic.offset,
                )

    def _forces(self, following: set[str]) -> Iterator[Force]:
        """Return drives, friction and stops of joints with one coordinate."""
        for joint in self._joints.values():
            name = self._joint_names[joint.name]
            if joint.type not in _ALONG_ONE_COORDINATE:
                if joint.damping or joint.friction:
                    self._report(joint, "the dynamics of joint '%s' are not taken: it is %s", joint.name, joint.type)
                continue
            if self._drives and name not in following:
                yield JointDrive(name=self._name(name, "drive"), joint=name)
            if joint.damping or joint.friction:
                yield JointFriction(
                    name=self._name(name, "friction"), joint=name, coulomb_load=joint.friction, damping=joint.damping
                )
            if joint.type != "continuous" and self._stiffness is not None:
                yield from self._stops(joint, name, self._stiffness)

    def _stops(self, joint: UrdfJoint, name: str, stiffness: float) -> Iterator[JointStop]:
        """Return the stops of a joint."""
        if joint.limits is None or joint.limits[0] == joint.limits[1]:
            self._report(joint, "joint '%s' has no limits of position: it gets no stops", joint.name)
            return
        (lower, upper), start = joint.limits, self._start.get(joint.name, 0.0)
        if lower > upper:
            raise joint.refused(f"has the limits {lower:g} and {upper:g}; lower must be less than upper")
        if not lower <= start <= upper:
            beyond = "joint '%s' starts at %g, beyond its limits %g and %g: its stop is loaded"
            self._report(joint, beyond, joint.name, start, lower, upper)
        yield JointStop(name=self._name(name, "stop"), joint=name, lower=lower, upper=upper, stiffness=stiffness)

    def _report(self, joint: UrdfJoint, sentence: str, *values: object) -> None:
        """Report in the log, with file and line."""
        logger.warning(f"%s: line %d: {sentence}", self._path, joint.element.element.sourceline, *values)
