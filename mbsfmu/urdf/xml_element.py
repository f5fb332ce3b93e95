"""Elements of URDF files: attributes as numbers, refused with the owner, the element, the attribute and the line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
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
