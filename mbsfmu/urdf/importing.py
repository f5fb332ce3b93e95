"""Mechanisms from URDF files."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.spatial.transform import Rotation

from mbsfmu.equations.rotation import perpendicular, unit
from mbsfmu.model.body import Point, RigidBody
from mbsfmu.model.force import Force
from mbsfmu.model.joint import Joint
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.shape import AnyShape
from mbsfmu.modelling import DataError
from mbsfmu.parts import Free, JointDrive, JointFriction, JointStop, Mimic, Planar, Prismatic, Revolute
from mbsfmu.urdf.masses import Floats, Frame, Mass, as_tuple
from mbsfmu.urdf.urdf_reading import clean_name, distinct_names, law_of, parsed
from mbsfmu.urdf.visuals import shapes_of

logger = logging.getLogger(__name__)

_KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")


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
    Visuals are the shapes of bodies, those of a fixed base's root link the scenery. Limits of effort and velocity,
    textures, collisions, sensors and transmissions are ignored.

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
        When the parser is not installed, or the file is no URDF.
    DataError
        When what it describes cannot be a mechanism; the message names the link or joint.
    OSError
        When the file cannot be read.
    """
    robot = parsed(path)
    try:
        return _Import(robot, base, dict(start), drives, stop_stiffness, Path(path).absolute().parent).mechanism(
            name or clean_name(robot.name or "robot")
        )
    except DataError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None


class _Import:
    """Conversion of a robot to a mechanism."""

    def __init__(
        self,
        robot: Any,
        base: str,
        start: dict[str, float],
        drives: bool,
        stop_stiffness: float | None,
        folder: Path,
    ) -> None:
        self._folder = folder
        self._robot, self._base, self._drives, self._stiffness = robot, base, drives, stop_stiffness
        self._links = {link.name: link for link in robot.links}
        self._joints = {joint.name: joint for joint in robot.joints}
        if unknown := [each for each in start if each not in self._joints]:
            raise DataError(f"start names '{unknown[0]}', which is not a joint; joints are {', '.join(self._joints)}")
        self._start = self._with_followers(start)
        self._names = distinct_names("link", self._links)
        self._joint_names = distinct_names("joint", self._joints)
        self._frames: dict[str, Frame] = {}
        self._masses: dict[str, Mass] = {}
        self._points: dict[str | None, dict[str, Floats]] = {None: {}}
        self._made: list[Joint] = []
        self._place()

    def mechanism(self, name: str) -> Mechanism:
        """Return the mechanism."""
        bodies = tuple(self._body(each) for each in self._masses)
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
            forces=tuple(self._forces({each.joint for each in followers})),
            constraints=followers,
            scenery=tuple(self._shapes(None)),
        )

    def _shapes(self, body: str | None) -> Iterator[AnyShape]:
        """Yield the shapes of all links of a body, or of the ground."""
        materials = {each.name: each for each in self._robot.materials}
        for name, link in self._links.items():
            if self._frames[name].body == body:
                yield from shapes_of(link, self._frames[name], materials, self._folder)

    def _with_followers(self, start: Mapping[str, float]) -> dict[str, float]:
        """Return the start coordinates, with those of mimic joints computed from their leaders.

        Raises
        ------
        DataError
            If a leader is missing, mimic joints form a cycle, or a start coordinate contradicts its leader.
        """
        result = dict(start)

        def place(name: str, behind: tuple[str, ...] = ()) -> float:
            mimic = self._joints[name].mimic
            if mimic is None:
                return result.get(name, 0.0)
            if mimic.joint not in self._joints:
                raise DataError(f"joint '{name}' mimics '{mimic.joint}', which does not exist")
            if name in behind:
                raise DataError(f"joints mimic each other in a ring: {', '.join(behind)}")
            factor, offset = law_of(mimic)
            found = factor * place(mimic.joint, (*behind, name)) + offset
            if name in start and abs(start[name] - found) > 1e-9:
                raise DataError(
                    f"start gives '{name}' as {start[name]:g}, but it mimics '{mimic.joint}' and is at {found:g}"
                )
            return found

        for name, joint in self._joints.items():
            if joint.mimic is not None:
                result[name] = place(name)
        return result

    # -- the tree -------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Traverse the tree from its root and assign each link to a body."""
        for joint in self._robot.joints:
            for link in (joint.parent, joint.child):
                if link not in self._links:
                    raise DataError(f"joint '{joint.name}' names the link '{link}', which is not there")
        children = {joint.child for joint in self._robot.joints}
        roots = [name for name in self._links if name not in children]
        if len(roots) != 1:
            raise DataError(f"the links are no tree: roots are {', '.join(roots) or 'none'}; there must be one")
        (root,) = roots
        if self._base == "free":
            self._points[None]["origin"] = np.zeros(3)
            self._begin_body(root)
            own = self._names[root]
            self._made.append(Free(name=f"{own}_base", parent="ground.origin", child=f"{own}.origin"))
        else:
            self._points[None][self._names[root]] = np.zeros(3)
            self._frames[root] = Frame(None, np.zeros(3), np.eye(3))
        waiting = [root]
        while waiting:
            parent = waiting.pop(0)
            for joint in (each for each in self._robot.joints if each.parent == parent):
                if joint.child in self._frames:
                    raise DataError(f"link '{joint.child}' is the child of more than one joint")
                self._join(joint)
                waiting.append(joint.child)
        if missing := [name for name in self._links if name not in self._frames]:
            raise DataError(f"link '{missing[0]}' does not hang on the root '{root}'")

    def _begin_body(self, link: str) -> None:
        """Use the link's frame as the frame of a new body."""
        own = self._names[link]
        self._frames[link] = Frame(own, np.zeros(3), np.eye(3))
        self._masses[own], self._points[own] = Mass(), {}
        self._add_mass(link)

    def _add_mass(self, link: str) -> None:
        """Add the inertia of a link to its body."""
        frame, inertial = self._frames[link], self._links[link].inertial
        if frame.body is None or inertial is None:
            return
        placed = np.eye(4) if inertial.origin is None else np.asarray(inertial.origin, dtype=float)
        tensor = np.zeros((3, 3)) if inertial.inertia is None else np.asarray(inertial.inertia, dtype=float)
        if not inertial.mass:
            if tensor.any():
                raise DataError(f"link '{link}' has an inertia but no mass")
            return
        turned = frame.rotation @ placed[:3, :3]
        centre = frame.position + frame.rotation @ placed[:3, 3]
        self._masses[frame.body].add(float(inertial.mass), centre, turned @ tensor @ turned.T)

    def _join(self, joint: Any) -> None:
        """Assign the child link of a joint: to the body of its parent if fixed, otherwise to a new body."""
        if joint.type not in _KINDS:
            raise DataError(f"joint '{joint.name}' is of type '{joint.type}'; it may be {', '.join(_KINDS)}")
        parent = self._frames[joint.parent]
        placed = np.eye(4) if joint.origin is None else np.asarray(joint.origin, dtype=float)
        position = parent.position + parent.rotation @ placed[:3, 3]
        rotation = parent.rotation @ placed[:3, :3]
        if joint.type == "fixed":
            self._frames[joint.child] = Frame(parent.body, position, rotation)
            self._add_point(parent.body, self._names[joint.child], position, f"link '{joint.child}'")
            self._add_mass(joint.child)
            return
        own = self._joint_names[joint.name]
        self._add_point(parent.body, own, position, f"joint '{joint.name}'")
        self._begin_body(joint.child)
        ends = {
            "name": own,
            "parent": f"{parent.body or 'ground'}.{own}",
            "child": f"{self._names[joint.child]}.origin",
            "orientation": as_tuple(Rotation.from_matrix(rotation).as_rotvec()),
        }
        self._made.append(self._joint(joint, ends, rotation))

    def _add_point(self, body: str | None, name: str, position: Floats, thing: str) -> None:
        if name in self._points[body] or (body is not None and name in ("origin", "centre")):
            raise DataError(f"{thing} cannot have a point of its name on '{body or 'ground'}': it is taken; rename it")
        self._points[body][name] = position

    def _joint(self, joint: Any, ends: dict[str, Any], rotation: Floats) -> Joint:
        """Return a movable joint."""
        axis = as_tuple(rotation @ (np.array([1.0, 0.0, 0.0]) if joint.axis is None else np.asarray(joint.axis, float)))
        start = self._start.get(joint.name, 0.0)
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

    def _body(self, name: str) -> RigidBody:
        """Return a body from its links."""
        mass, centre, tensor = self._masses[name].whole()
        if not mass > 0.0:
            raise DataError(
                f"link '{self._link(name)}' moves but has no mass, nor has anything that is fixed to it; give it an "
                "inertial, or fix its joint"
            )
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = tensor
        return RigidBody(
            name=name,
            mass=mass,
            inertia=(float(xx), float(yy), float(zz)),
            products_of_inertia=(float(xy), float(xz), float(yz)),
            centre=Point(position=as_tuple(centre)),
            points={point: Point(position=as_tuple(at)) for point, at in self._points[name].items()},
            shapes=tuple(self._shapes(name)),
        )

    def _link(self, body: str) -> str:
        return next(link for link, name in self._names.items() if name == body)

    def _followers(self) -> Iterator[Mimic]:
        """Return the couplings of mimic joints."""
        for joint in self._robot.joints:
            if joint.mimic is None or joint.type == "fixed":
                continue
            factor, offset = law_of(joint.mimic)
            yield Mimic(
                name=f"{self._joint_names[joint.name]}_mimic",
                joint=self._joint_names[joint.name],
                leader=self._joint_names[joint.mimic.joint],
                multiplier=factor,
                offset=offset,
            )

    def _forces(self, following: set[str]) -> Iterator[Force]:
        """Return drives, friction and stops of joints with one coordinate."""
        for joint in self._robot.joints:
            own, dynamics = self._joint_names[joint.name], joint.dynamics
            damping, friction = (0.0, 0.0) if dynamics is None else (dynamics.damping or 0.0, dynamics.friction or 0.0)
            if joint.type not in ("revolute", "continuous", "prismatic"):
                if damping or friction:
                    logger.warning("the dynamics of joint '%s' are not taken: it is %s", joint.name, joint.type)
                continue
            if self._drives and own not in following:
                yield JointDrive(name=f"{own}_drive", joint=own)
            if damping or friction:
                yield JointFriction(
                    name=f"{own}_friction", joint=own, coulomb_load=float(friction), damping=float(damping)
                )
            if joint.type != "continuous":
                yield from self._stops(joint, own)

    def _stops(self, joint: Any, own: str) -> Iterator[JointStop]:
        """Return the stops of a joint, if requested.

        Raises
        ------
        DataError
            When its limits are the wrong way round.
        """
        limit = joint.limit
        lower, upper = (None, None) if limit is None else (limit.lower, limit.upper)
        if lower is not None and upper is not None and lower > upper:
            raise DataError(
                f"joint '{joint.name}' has the limits {lower:g} and {upper:g}; lower must be less than upper"
            )
        if self._stiffness is None:
            return
        if lower is None or upper is None or lower == upper:
            logger.warning("joint '%s' has no limits of position: it gets no stops", joint.name)
            return
        start = self._start.get(joint.name, 0.0)
        if not lower <= start <= upper:
            logger.warning(
                "joint '%s' starts at %g, beyond its limits %g and %g: its stop is loaded",
                joint.name,
                start,
                lower,
                upper,
            )
        yield JointStop(
            name=f"{own}_stop", joint=own, lower=float(lower), upper=float(upper), stiffness=self._stiffness
        )
