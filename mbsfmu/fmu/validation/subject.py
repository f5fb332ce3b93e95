"""A file that is checked: its entries, its description as it is written, its variables."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lxml import etree

from mbsfmu.base.archives import opened_archive
from mbsfmu.base.errors import InputError
from mbsfmu.base.files import reason

DESCRIPTION = "modelDescription.xml"


@dataclass(frozen=True)
class WrittenVariable:
    """A variable as its description has it.

    Attributes
    ----------
    index
        Its number, from 1 on.
    type
        Real, Float64, and so on; empty where there is none.
    attributes
        Those of the variable and of its type together, which have no names in common.
    node
        The element in the document.
    """

    index: int
    type: str
    attributes: Mapping[str, str]
    node: etree._Element

    @property
    def name(self) -> str:
        """Name, or what it is called without one."""
        return self.attributes.get("name", f"variable {self.index}")

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.type in ("Real", "Integer", "Enumeration") or self.type.startswith(("Float", "Int", "UInt"))

    def get(self, attribute: str) -> str | None:
        """Return an attribute."""
        return self.attributes.get(attribute)


class Subject:
    """A file that is checked.

    Parameters
    ----------
    path
        The FMU file.

    Attributes
    ----------
    entries
        Of the archive.
    root
        Root of the description.
    version
        Of FMI, as the description has it.

    Raises
    ------
    InputError
        When there is no such file, or it is no FMU.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        self.path = path
        try:
            with opened_archive(path, checks_names=False) as archive:
                self.entries = archive.infolist()
                self.root = etree.fromstring(archive.read(DESCRIPTION))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {reason(error)}") from None
        except (zipfile.BadZipFile, KeyError, etree.XMLSyntaxError, NotImplementedError, RuntimeError) as error:
            raise InputError(f"{path} is no FMU: {str(error).strip()}") from None
        self.version = self.root.get("fmiVersion", "")

    @property
    def names(self) -> list[str]:
        """Names of the entries."""
        return [entry.orig_filename for entry in self.entries]

    def read(self, name: str) -> bytes:
        """Return the content of an entry."""
        with opened_archive(self.path, checks_names=False) as archive:
            return archive.read(name)

    @property
    def interfaces(self) -> list[etree._Element]:
        """Elements of the FMU's interfaces in the description."""
        found = (self.root.find(name) for name in ("CoSimulation", "ModelExchange", "ScheduledExecution"))
        return [each for each in found if each is not None]

    @cached_property
    def variables(self) -> list[WrittenVariable]:
        """Its variables."""
        return list(self._variables())

    def _variables(self) -> Iterator[WrittenVariable]:
        parent = self.root.find("ModelVariables")
        nodes = [] if parent is None else [each for each in parent if isinstance(each.tag, str)]
        for index, node in enumerate(nodes, 1):
            if self.version.startswith("3."):
                yield WrittenVariable(index, str(node.tag), _texts(node), node)
                continue
            typed = next((each for each in node if each.tag != "Annotations" and isinstance(each.tag, str)), None)
            inner = {} if typed is None else _texts(typed)
            yield WrittenVariable(index, "" if typed is None else str(typed.tag), {**_texts(node), **inner}, node)


def _texts(node: etree._Element) -> dict[str, str]:
    return {str(key): str(value) for key, value in node.attrib.items()}
