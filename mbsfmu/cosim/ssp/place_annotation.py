"""The worker that a component runs on, as an annotation of it: other programs pass over it.

    <ssd:Annotations>
      <ssc:Annotation type="mbsfmu.place"><Place xmlns="urn:mbsfmu:place" worker="plant-host"/></ssc:Annotation>
    </ssd:Annotations>

It counts where the run has a Dask scheduler; without one, the component runs in the process of the master.
"""

from __future__ import annotations

from lxml import etree

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.ssp.annotations import add_annotation, annotations_of

ANNOTATION = "mbsfmu.place"
"""Type of the annotation."""
NAMESPACE = "urn:mbsfmu:place"
_OWN = f"{{{NAMESPACE}}}"


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
    for annotation in annotations_of(component, ANNOTATION):
        worker = next((each.get("worker") for each in annotation.iterfind(f"{_OWN}Place")), None)
        if not worker:
            raise InputError(
                f"{package}, in the annotation {ANNOTATION} of '{component.get('name')}', names no worker; it must "
                f'read <Place xmlns="{NAMESPACE}" worker="NAME"/>'
            )
        return worker
    return None


def add_place(component: etree._Element, worker: str | None) -> None:
    """Add the annotation to the element of a component, at its end."""
    if worker is not None:
        annotation = add_annotation(component, ANNOTATION)
        etree.SubElement(annotation, f"{_OWN}Place", worker=worker, nsmap={"place": NAMESPACE})
