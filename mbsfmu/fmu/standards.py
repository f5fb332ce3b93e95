"""FMI versions, and their forms of common content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mbsfmu.compiling.compiler import Fmi
from mbsfmu.fmu import fmi2_description, fmi3_description
from mbsfmu.fmu.description import FmuDescription


@dataclass(frozen=True)
class Standard:
    """A version of the FMI.

    Attributes
    ----------
    fmi
        The number that it goes by.
    describe
        Gives the files that describe a unit, by their names in the archive, from what the unit is, the names of the
        sources that importers compile, and whether there is an icon.
    generate
        Gives the C files, by name, that say what the description says.
    icon
        Name of the picture in the archive.
    licences
        Folder of the licences in the archive.
    """

    fmi: Fmi
    describe: Callable[[FmuDescription, Sequence[str], bool], dict[str, bytes]]
    generate: Callable[[FmuDescription], dict[str, str]]
    icon: str
    licences: str


def _nothing(_: FmuDescription) -> dict[str, str]:
    return {}


STANDARDS: dict[Fmi, Standard] = {
    2: Standard(2, fmi2_description.description_files, _nothing, "model.png", "licenses"),
    3: Standard(
        3,
        fmi3_description.description_files,
        fmi3_description.generated_sources,
        "terminalsAndIcons/icon.png",
        "documentation/licenses",
    ),
}
