"""What a URDF file says of a robot: links, masses, joints, visuals, and what is not taken."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, TypeVar

import numpy as np
from lxml import etree
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from mbsfmu.base.errors import InputError
from mbsfmu.model.body import impossible_in
from mbsfmu.modelling import DataError

Floats = NDArray[np.float64]

_DECLARATION = re.compile(rb"<\?xml\b[^>]*\?>")
_OTHER_FORMATS = {
    "sdf": "SDF (Simulation Description Format)",
    "mujoco": "MJCF, MuJoCo's format",
    "gazebo": "an old file of Gazebo",
}


@dataclass(frozen=True)
class UrdfElement:
    """An element of the file, with what it belongs to.

    Attributes
    ----------
    element
        The element of the document.
    owner
        What it describes, as `link 'forearm'`; empty for the robot itself.
    """

    element: Any
    owner: str = ""

    @property
    def tag(self) -> str:
        """The tag without a namespace or a prefix that has none."""
        return self.element.tag.rpartition("}")[2].rpartition(":")[2]

    @property
    def where(self) -> str:
        """Line, owner and tag, for sentences."""
        owner = f"{self.owner}, " if self.owner else ""
        return f"line {self.element.sourceline}: {owner}<{self.tag}>"

    def refused(self, why: str) -> DataError:
        """Return the error of this element."""
        return DataError(f"{self.where} {why}")

    def children(self, tag: str | None = None) -> Iterator[UrdfElement]:
        """Yield the elements inside, all or those of a tag."""
        for child in self.element:
            if isinstance(child.tag, str) and tag in (None, child.tag):
                yield UrdfElement(child, self.owner)

    def child(self, tag: str) -> UrdfElement | None:
        """Return the only element of a tag inside, or None.

        Raises
        ------
        DataError
            When there are several.
        """
        found = list(self.children(tag))
        if len(found) > 1:
            raise found[1].refused(f"is there twice; the first is in line {found[0].element.sourceline}")
        return found[0] if found else None

    def required(self, tag: str) -> UrdfElement:
        """Return the only element of a tag inside, which must be there."""
        found = self.child(tag)
        if found is None:
            raise self.refused(f"has no <{tag}>")
        return found

    def text(self, attribute: str) -> str:
        """Return an attribute, which must be there and not empty."""
        text = self.element.get(attribute)
        if text is None:
            raise self.refused(f"has no attribute {attribute}")
        if not text.strip():
            raise self.refused(f"has an empty attribute {attribute}")
        return text.strip()

    def number(self, attribute: str, default: float | None = None) -> float:
        """Return an attribute as a finite number; it must be there unless there is a default."""
        if default is not None and self.element.get(attribute) is None:
            return default
        return float(self._numbers(attribute, 1)[0])

    def vector(self, attribute: str, count: int, default: tuple[float, ...] | None = None) -> Floats:
        """Return an attribute as finite numbers, separated by blanks, shape (count,)."""
        if default is not None and self.element.get(attribute) is None:
            return np.array(default)
        return self._numbers(attribute, count)

    def _numbers(self, attribute: str, count: int) -> Floats:
        text = self.text(attribute)
        try:
            numbers = [float(part.replace("_", "?")) for part in text.split()]  # Python reads 1_0 as 10
        except ValueError:
            numbers = []
        if len(numbers) != count or not all(map(isfinite, numbers)):
            expected = "a finite number" if count == 1 else f"{count} finite numbers, separated by blanks"
            hint = "; it is a file for xacro, which has to be run first" if "${" in text else ""
            raise self.refused(f"has {attribute}='{text}'; it must be {expected}{hint}")
        return np.array(numbers)


def robot_element(path: str | os.PathLike[str]) -> UrdfElement:
    """Return the root element of a URDF file.

    Declarations of XML that parsers of robots overlook (a version of 0.0, a blank before it) and prefixes without a
    namespace are no reason to refuse a file.

    Raises
    ------
    InputError
        When the file is no XML, or no URDF.
    OSError
        When it cannot be read.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        content = file.read()
    encoding = re.search(rb"<\?xml\b[^>]*encoding=[\"']([A-Za-z0-9._-]+)", content[:200])
    parser = etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, encoding=encoding[1].decode() if encoding else None
    )
    try:
        root = etree.fromstring(_DECLARATION.sub(b"", content.removeprefix(b"\xef\xbb\xbf")), parser)
    except (etree.XMLSyntaxError, LookupError, ValueError) as error:
        raise InputError(f"{name} is no URDF: {_sentence(error)}") from None
    faults = [each for each in parser.error_log if each.type_name != "NS_ERR_UNDEFINED_NAMESPACE"]
    if faults or root is None:
        why = f"line {faults[0].line}: {_sentence(faults[0].message)}" if faults else "it is empty"
        raise InputError(f"{name} is no URDF: {why}")
    if any("xacro" in str(element.tag).lower() for element in root.iter()):
        raise InputError(f"{name} is no URDF: it is a file for xacro, which has to be run first")
    tag = UrdfElement(root).tag
    if tag != "robot":
        what = _OTHER_FORMATS.get(tag)
        raise InputError(
            f"{name} is no URDF: it is {what}; convert it to URDF first"
            if what
            else f"{name} is no URDF: its root element is <{tag}>; that of URDF is <robot>"
        )
    return UrdfElement(root)


def _sentence(error: object) -> str:
    return " ".join(str(error).split())


NO_SIZE = 1e-6
"""Radius of gyration in m below which a link is a point mass: tools that export them write round-off for zero."""


@dataclass
class Mass:
    """Mass properties of a body's links: masses, centres and inertia tensors in the body frame."""

    masses: list[float] = field(default_factory=list)
    centres: list[Floats] = field(default_factory=list)
    tensors: list[Floats] = field(default_factory=list)

    def add(self, mass: float, centre: Floats, tensor: Floats) -> None:
        """Add the mass properties of a link."""
        self.masses.append(mass)
        self.centres.append(centre)
        self.tensors.append(tensor)

    def whole(self) -> tuple[float, Floats, Floats]:
        """Return mass, centre of mass and inertia tensor about it (parallel axis theorem)."""
        mass = sum(self.masses)
        if not mass > 0.0:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        masses, centres = np.array(self.masses), np.array(self.centres)
        centre = masses @ centres / mass
        arms = centres - centre
        moments = np.sum(masses * np.sum(arms**2, axis=1)) * np.eye(3) - (masses * arms.T) @ arms
        return mass, centre, without_round_off(mass, sum(self.tensors, start=moments))


def without_round_off(mass: float, tensor: Floats) -> Floats:
    """Return an inertia tensor in kg m², shape (3, 3), zero for a point mass."""
    return np.zeros((3, 3)) if np.all(np.abs(tensor) <= mass * NO_SIZE**2) else tensor


def as_tuple(vector: Floats) -> tuple[float, float, float]:
    """Return three components of an array as a tuple."""
    x, y, z = map(float, vector)
    return x, y, z


logger = logging.getLogger(__name__)

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
"""Types of joints."""
Thing = TypeVar("Thing")
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")

_TAKEN: dict[str, tuple[str, str]] = {
    "robot": ("name version", "link joint material"),
    "link": ("name type", "inertial visual collision"),
    "inertial": ("", "origin mass inertia"),
    "origin": ("xyz rpy quat_xyzw", ""),
    "mass": ("value", ""),
    "inertia": (" ".join(_MOMENTS), ""),
    "joint": ("name type", "origin parent child axis limit dynamics mimic"),
    "parent": ("link", ""),
    "child": ("link", ""),
    "axis": ("xyz", ""),
    "limit": ("lower upper effort velocity acceleration deceleration jerk", ""),
    "dynamics": ("damping friction", ""),
    "mimic": ("joint multiplier offset", ""),
}
"""Attributes and elements that are read, by tag; elements inside others are of pictures and contacts."""
_WITHOUT_EFFECT: dict[str, str] = {
    "robot": "transmission sensor ros2_control mujoco disable_collisions",
    "link": "contact self_collision_checking self_filter sensor surface",
    "joint": "calibration hardwareInterface safety_controller",
    "gazebo": "implicitSpringDamper material plugin provideFeedback sensor visual collision enable_wind canonicalBody "
    "fdir1 fudgeFactor kd kp laserRetro maxContacts maxVel minDepth mu1 mu2 selfCollide self_collide stopCfm stopErp "
    "stopKd stopKp cfmDamping preserveFixedJoint disableFixedJointLumping",
}
"""Elements by the element around them that are of pictures, contacts, control, sensors and the solvers of others."""
_LOOPS = ("loop_joint", "joint", "hinge", "slider", "linkage")
"""Elements that close a loop, some of them inside <gazebo>."""


@dataclass(frozen=True)
class Frame:
    """Position in m, shape (3,), and rotation, shape (3, 3), of a frame in another one."""

    position: Floats
    rotation: Floats

    def of(self, other: Frame) -> Frame:
        """Return a frame that is placed in this one."""
        return Frame(self.position + self.rotation @ other.position, self.rotation @ other.rotation)


IDENTITY = Frame(np.zeros(3), np.eye(3))


@dataclass(frozen=True)
class Inertial:
    """Mass in kg, frame of the centre of mass, and inertia tensor in it in kg m², shape (3, 3)."""

    element: UrdfElement
    mass: float
    frame: Frame
    tensor: Floats

    def check(self) -> None:
        """Refuse what no body has; of a link that never moves it has no effect."""
        inertia, mass = self.element.required("inertia"), self.element.required("mass")
        if self.mass < 0.0:
            raise mass.refused(f"has value='{self.mass:g}'; it must not be negative")
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = self.tensor.tolist()
        if not self.mass and self.tensor.any():
            raise inertia.refused(f"is not zero, but <mass> in line {mass.element.sourceline} is: no body has it")
        if why := impossible_in((xx, yy, zz, xy, xz, yz)):
            raise inertia.refused(f"is of no body: {why}")


@dataclass(frozen=True)
class UrdfLink:
    """A link; its visuals are still elements, as nothing depends on them."""

    name: str
    element: UrdfElement
    inertial: Inertial | None
    visuals: tuple[UrdfElement, ...]


@dataclass(frozen=True)
class MimicLaw:
    """The joint that is followed: q = multiplier · q_leader + offset."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class UrdfJoint:
    """A joint.

    Attributes
    ----------
    limits
        Lower and upper limit in m or rad, or None.
    damping, friction
        In N m s/rad and N m, or N s/m and N.
    """

    name: str
    element: UrdfElement
    type: str
    parent: str
    child: str
    frame: Frame
    axis: Floats
    limits: tuple[float, float] | None
    damping: float
    friction: float
    mimic: MimicLaw | None

    def refused(self, why: str) -> DataError:
        """Return an error with the line and the name of the joint."""
        return DataError(f"line {self.element.element.sourceline}: joint '{self.name}' {why}")


@dataclass(frozen=True)
class Robot:
    """A robot; links and joints by name in the order of the file, colours by the names of materials."""

    name: str
    links: dict[str, UrdfLink]
    joints: dict[str, UrdfJoint]
    colours: dict[str, str]


def read_robot(path: str | os.PathLike[str]) -> Robot:
    """Return the robot of a file; elements and attributes with an effect that is not taken are reported in the log.

    Raises
    ------
    InputError
        When the file is no URDF.
    DataError
        When something is missing, is no number, or cannot be; the sentence has line, link or joint, and attribute.
    OSError
        When the file cannot be read.
    """
    root = robot_element(path)
    for note in _untaken(root):
        logger.warning("%s: %s", os.fspath(path), note)
    links = _by_name(root, "link", _link)
    joints = _by_name(root, "joint", _joint)
    return Robot(root.text("name"), links, joints, dict(_colours(root, path)))


def _colours(root: UrdfElement, path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and colours of materials; one without a colour that can be drawn is reported in the log."""
    for material in root.children("material"):
        try:
            name, colour = material.text("name"), colour_of(material)
        except DataError as error:
            logger.warning("%s: a colour is not taken, which changes no result: %s", os.fspath(path), error)
            continue
        if colour:
            yield name, colour


def frame_of(element: UrdfElement) -> Frame:
    """Return the frame that the origin of an element says; roll, pitch and yaw turn about fixed axes."""
    origin = element.child("origin")
    if origin is None:
        return IDENTITY
    position = origin.vector("xyz", 3, (0.0, 0.0, 0.0))
    if origin.element.get("quat_xyzw") is None:
        return Frame(position, Rotation.from_euler("xyz", origin.vector("rpy", 3, (0.0, 0.0, 0.0))).as_matrix())
    quaternion = origin.vector("quat_xyzw", 4)
    if origin.element.get("rpy") is not None or not np.any(quaternion):
        raise origin.refused("has quat_xyzw, which must not be zero, nor be there with rpy")
    return Frame(position, Rotation.from_quat(quaternion).as_matrix())


def colour_of(material: UrdfElement) -> str | None:
    """Return the colour of a material as `#d9902f`, None where it has none."""
    colour = material.child("color")
    if colour is None:
        return None
    red, green, blue = (np.clip(colour.vector("rgba", 4)[:3], 0.0, 1.0) * 255).round().astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _by_name(root: UrdfElement, tag: str, made: Callable[[UrdfElement, str], Thing]) -> dict[str, Thing]:
    result: dict[str, Thing] = {}
    lines: dict[str, int] = {}
    for element in root.children(tag):
        name = element.text("name")
        line = element.element.sourceline
        if name in lines:
            raise DataError(f"line {line}: there are two {tag}s '{name}'; the first is in line {lines[name]}")
        lines[name] = line
        result[name] = made(UrdfElement(element.element, f"{tag} '{name}'"), name)
    return result


def _link(element: UrdfElement, name: str) -> UrdfLink:
    inertial = element.child("inertial")
    return UrdfLink(name, element, None if inertial is None else _inertial(inertial), tuple(element.children("visual")))


def _inertial(element: UrdfElement) -> Inertial:
    mass, inertia = element.required("mass").number("value"), element.required("inertia")
    xx, xy, xz, yy, yz, zz = (inertia.number(name) for name in _MOMENTS)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertial(element, mass, frame_of(element), without_round_off(mass, tensor))


def _joint(element: UrdfElement, name: str) -> UrdfJoint:
    kind, axis = element.text("type"), element.child("axis")
    if kind not in KINDS:
        raise element.refused(f"has type='{kind}'; it may be {', '.join(KINDS)}")
    direction = np.array([1.0, 0.0, 0.0]) if axis is None else axis.vector("xyz", 3)
    if axis is not None and kind not in ("fixed", "floating") and not np.any(direction):
        raise axis.refused("has xyz='0 0 0'; it must have a direction")
    dynamics, mimic = element.child("dynamics"), element.child("mimic")
    damping, friction = (
        (0.0, 0.0) if dynamics is None else (dynamics.number("damping", 0.0), dynamics.number("friction", 0.0))
    )
    if dynamics is not None and (damping < 0.0 or friction < 0.0):
        raise dynamics.refused("has a negative number; damping and friction take energy, and are not negative")
    return UrdfJoint(
        name,
        element,
        kind,
        element.required("parent").text("link"),
        element.required("child").text("link"),
        frame_of(element),
        direction,
        _limits(element.child("limit")),
        damping,
        friction,
        None
        if mimic is None
        else MimicLaw(mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)),
    )


def _law(mimic: UrdfElement) -> MimicLaw:
    return MimicLaw(mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))


def _limits(element: UrdfElement | None) -> tuple[float, float] | None:
    """Return lower and upper limit; a missing one is zero where the other is there, as URDF says."""
    if element is None or (element.element.get("lower") is None and element.element.get("upper") is None):
        return None
    return element.number("lower", 0.0), element.number("upper", 0.0)


def _untaken(root: UrdfElement) -> Iterator[str]:
    """Yield a sentence for each kind of element and attribute that is not taken and may have an effect."""
    first: dict[tuple[str, ...], UrdfElement] = {}
    counts: Counter[tuple[str, ...]] = Counter()

    def note(element: UrdfElement, *kind: str) -> None:
        first.setdefault(kind, element)
        counts[kind] += 1

    def look(element: UrdfElement) -> None:
        if element.tag in ("material", "visual", "collision"):
            return
        attributes, children = (words.split() for words in _TAKEN.get(element.tag, ("", "")))
        for attribute in element.element.attrib:
            if element.tag in _TAKEN and attribute not in attributes and not attribute.startswith("{"):
                note(element, element.tag, f"attribute {attribute}")
        for child in element.children():
            if child.element.tag in children or child.tag == "gazebo":
                look(child)
            elif not _changes_nothing(child, element.tag):
                note(child, element.tag, child.tag)

    look(root)
    for kind, element in first.items():
        *_, what = kind
        others = f", nor {counts[kind] - 1} more" if counts[kind] > 1 else ""
        name = element.element.get("name") or element.element.get("reference")
        called = f" '{name}'" if name else ""
        thing = f"<{element.tag}>{called}" if what == element.tag else f"the {what} of <{element.tag}>{called}"
        opens = "; the loop that it closes stays open, close it by a joint of the mechanism" if what in _LOOPS else ""
        yield f"line {element.element.sourceline}: {thing} is not taken{others}{opens}"


def _changes_nothing(element: UrdfElement, around: str) -> bool:
    """Return whether an element has no effect on what is read."""
    if element.tag in ("gravity", "turnGravityOff"):
        on = (element.element.text or "").strip().lower() in ("1", "true")
        return on == (element.tag == "gravity")
    return element.tag in _WITHOUT_EFFECT.get(around, "").split() or "#controller" in element.element.tag
