"""Annotations of elements of a package, which programs that do not know their type pass over."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from mbsfmu.cosim.ssp.ssp_names import SSC, SSD


def annotations_of(element: etree._Element, kind: str) -> Iterator[etree._Element]:
    """Yield the annotations of a type of an element."""
    for annotation in element.iterfind(f"{{{SSD}}}Annotations/{{{SSC}}}Annotation"):
        if annotation.get("type") == kind:
            yield annotation


def add_annotation(element: etree._Element, kind: str) -> etree._Element:
    """Add an annotation of a type to an element, at its end, and return it."""
    annotations = etree.SubElement(element, f"{{{SSD}}}Annotations")
    return etree.SubElement(annotations, f"{{{SSC}}}Annotation", type=kind)
