"""Annotations of SSP packages: joints between FMUs, and workers of components; other programs pass over them.

Joints between FMUs as an annotation of a system: other programs pass over it.

    <ssd:Annotations>
      <ssc:Annotation type="mbsfmu.joints">
        <Joints xmlns="urn:mbsfmu:joints">
          <Joint kind="revolute" first="left.pin" second="right.pin" axis="0 0 1"/>
        </Joints>
      </ssc:Annotation>
    </ssd:Annotations>

Elements are those of the system. The variables of a handle with names of its own stand in a child, `First` or `Second`,
as `<Second force="fx fy -" position="x y -" velocity="vx vy -"/>`, with a dash for a component that is not there.

The worker that a component runs on, as an annotation of it: other programs pass over it.

    <ssd:Annotations>
      <ssc:Annotation type="mbsfmu.place"><Place xmlns="urn:mbsfmu:place" worker="plant-host"/></ssc:Annotation>
    </ssd:Annotations>

It counts where the run has a Dask scheduler; without one, the component runs in the process of the master.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from lxml import etree

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.graph import TOLERANCE, CoupledJoint, JointHandle
from mbsfmu.cosim.ssp.structure import SSC, SSD


def annotations_of(element: etree._Element, kind: str) -> Iterator[etree._Element]:
    """Yield the annotations of a type of an element."""
    for annotation in element.iterfind(f"{{{SSD}}}Annotations/{{{SSC}}}Annotation"):
        if annotation.get("type") == kind:
            yield annotation


def add_annotation(element: etree._Element, kind: str) -> etree._Element:
    """Add an annotation of a type to an element, at its end, and return it."""
    annotations = etree.SubElement(element, f"{{{SSD}}}Annotations")
    return etree.SubElement(annotations, f"{{{SSC}}}Annotation", type=kind)


JOINT_ANNOTATION = "mbsfmu.joints"
"""Type of the annotation."""
JOINT_NAMESPACE = "urn:mbsfmu:joints"
_JOINTS = f"{{{JOINT_NAMESPACE}}}"
_ATTRIBUTES = ("kind", "first", "second", "axis", "name", "tolerance")
_QUANTITIES = tuple(each.name for each in fields(JointHandle) if each.name not in ("unit", "prefixes"))
_NONE = "-"


def read_joints(system: etree._Element, package: str) -> Iterator[CoupledJoint]:
    """Yield the joints between the elements of a system.

    Parameters
    ----------
    system
        The element of the system.
    package
        Name of the package, for messages.

    Raises
    ------
    InputError
        When an annotation is not as it must be.
    """
    for annotation in annotations_of(system, JOINT_ANNOTATION):
        for joint in annotation.iterfind("*/*"):
            try:
                yield _joint(joint)
            except InputError as error:
                raise InputError(f"{package}, in the annotation {JOINT_ANNOTATION}: {error}") from None


def _joint(element: etree._Element) -> CoupledJoint:
    if element.tag != f"{_JOINTS}Joint":
        raise InputError(f"there is an element '{element.tag!s}'; it must be Joint of the namespace {JOINT_NAMESPACE}")
    for name in element.attrib:
        if name not in _ATTRIBUTES:
            raise InputError(f"a Joint has the attribute '{name!s}'; it may have {', '.join(_ATTRIBUTES)}")
    handles = {}
    for end in ("first", "second"):
        handle = JointHandle.parse(element.get(end, ""))
        child = next((each for each in element if each.tag == f"{_JOINTS}{end.title()}"), None)
        handles[end] = handle if child is None else replace(handle, **dict(_names(child)))
    axis = element.get("axis")
    try:
        direction = None if axis is None else tuple(float(each) for each in axis.split())
        tolerance = float(element.get("tolerance", TOLERANCE))
    except ValueError:
        raise InputError(f"the axis '{axis}' or the tolerance of a Joint is no number") from None
    given: Any = {"kind": element.get("kind", ""), "axis": direction}
    return CoupledJoint(**given, **handles, name=element.get("name", ""), tolerance=tolerance)


def _names(element: etree._Element) -> Iterator[tuple[str, Any]]:
    for quantity, text in element.attrib.items():
        if quantity not in _QUANTITIES:
            raise InputError(f"a handle has the attribute '{quantity!s}'; it may have {', '.join(_QUANTITIES)}")
        names = tuple(None if each == _NONE else each for each in str(text).split())
        count = 4 if quantity == "quaternion" else 3
        if len(names) != count:
            raise InputError(f"the {quantity!s} of a handle is '{text!s}'; it must be {count} names, or - for none")
        yield str(quantity), names


def add_joints(system: etree._Element, joints: Sequence[CoupledJoint]) -> None:
    """Add the annotation of joints to the element of a system, at its end."""
    if not joints:
        return
    parent = etree.SubElement(
        add_annotation(system, JOINT_ANNOTATION), f"{_JOINTS}Joints", nsmap={"joints": JOINT_NAMESPACE}
    )
    for joint in joints:
        given = {
            "kind": joint.kind,
            "first": str(joint.first),
            "second": str(joint.second),
            "axis": None if joint.axis is None else " ".join(repr(float(each)) for each in joint.axis),
            "name": joint.name,
            "tolerance": None if joint.tolerance == TOLERANCE else repr(joint.tolerance),
        }
        present = {name: text for name, text in given.items() if text is not None}
        child = etree.SubElement(parent, f"{_JOINTS}Joint", present)
        for end, handle in (("First", joint.first), ("Second", joint.second)):
            names = {quantity: getattr(handle, quantity) for quantity in _QUANTITIES}
            own = {quantity: " ".join(each or _NONE for each in of) for quantity, of in names.items() if of is not None}
            if own:
                etree.SubElement(child, f"{_JOINTS}{end}", own)


PLACE_ANNOTATION = "mbsfmu.place"
"""Type of the annotation."""
PLACE_NAMESPACE = "urn:mbsfmu:place"
_PLACE = f"{{{PLACE_NAMESPACE}}}"


def read_place(component: etree._Element, package: str) -> str | None:
    """Return the worker of a component; None where nothing is said.

    Parameters
    ----------
    component
        The element of the component.
    package
        Name of the package, for messages.

    Raises
    ------
    InputError
        When an annotation names no worker.
    """
    for annotation in annotations_of(component, PLACE_ANNOTATION):
        worker = next((each.get("worker") for each in annotation.iterfind(f"{_PLACE}Place")), None)
        if not worker:
            raise InputError(
                f"{package}, in the annotation {PLACE_ANNOTATION} of '{component.get('name')}', names no worker; it "
                f'must read <Place xmlns="{PLACE_NAMESPACE}" worker="NAME"/>'
            )
        return worker
    return None


def add_place(component: etree._Element, worker: str | None) -> None:
    """Add the annotation to the element of a component, at its end."""
    if worker is not None:
        annotation = add_annotation(component, PLACE_ANNOTATION)
        etree.SubElement(annotation, f"{_PLACE}Place", worker=worker, nsmap={"place": PLACE_NAMESPACE})
