"""The description of an FMU in an archive, checked for what code and paths are made of."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import fmpy
from lxml import etree

from mbsfmu.base.archives import opened_archive
from mbsfmu.base.errors import InputError
from mbsfmu.base.files import reason

_DESCRIPTION = "modelDescription.xml"
_VERSIONS = ("1.0", "2.0", "3.0")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class ReadFmu(NamedTuple):
    """What is read of an FMU before it is unpacked.

    Attributes
    ----------
    description
        Its description, as FMPy reads it.
    root
        The same as XML, for what FMPy leaves out.
    entries
        The names in the archive.
    """

    description: Any
    root: Any
    entries: list[PurePosixPath]


def read_fmu(path: Path, called: str | None = None) -> ReadFmu:
    """Read the description of an FMU.

    Parameters
    ----------
    path
        The FMU.
    called
        What messages call it; its path by default.

    Raises
    ------
    InputError
        When there is no such file, it is no FMU that can be read or one of another version of FMI, its archive is
        refused (`opened_archive`), or a model identifier is none: libraries are called so, and functions begin with it.
    """
    called = called or str(path)
    if not path.is_file():
        raise InputError(f"there is no file {called}")
    try:
        with opened_archive(path, called) as archive:
            entries = [PurePosixPath(name) for name in archive.namelist()]
            if PurePosixPath(_DESCRIPTION) not in entries:
                raise InputError(f"{called} is no FMU that can be read: it has no {_DESCRIPTION} at its top")
            root = etree.fromstring(archive.read(_DESCRIPTION))
            _check_version(called, root.get("fmiVersion") or "")
        description = fmpy.read_model_description(str(path), validate=False)
        _add_differences(description, root)
        _add_bounds(description, root)
    except InputError:
        raise
    except Exception as error:  # FMPy raises bare exceptions here
        cause = reason(error) if isinstance(error, OSError) else str(error).strip()
        raise InputError(f"{called} is no FMU that can be read: {cause}") from None
    for kind in ("coSimulation", "modelExchange", "scheduledExecution"):
        interface = getattr(description, kind)
        identifier = None if interface is None else interface.modelIdentifier
        if identifier is not None and not _IDENTIFIER.fullmatch(identifier):
            raise InputError(
                f"{called} has the model identifier '{identifier}', which is none: it must have letters, digits and "
                "underscores, and not begin with a digit"
            )
    return ReadFmu(description, root, entries)


def _check_version(called: str, version: str) -> None:
    """Refuse FMUs of other versions; before one is a standard its betas differ from it and from one another."""
    if version in _VERSIONS:
        return
    later = next((each for each in _VERSIONS if version.startswith(f"{each}-")), None)
    known = f"it must be {', '.join(_VERSIONS[:-1])} or {_VERSIONS[-1]}"
    way = f"let its tool export it by FMI {later}" if later else known
    raise InputError(f"{called} is of FMI '{version}', which is not supported; {way}")


def _add_differences(description: Any, root: Any) -> None:
    """Say which variables are differences: FMPy looks for `relativeQuantity` among the children of their elements."""
    relative: dict[str | None, bool] = {}
    for variable in root.iterfind("ModelVariables/*"):
        for element in (variable, *variable.iterfind("Real")):
            if (said := element.get("relativeQuantity")) is not None:
                relative[variable.get("name")] = said in ("true", "1")
    for variable in description.modelVariables:
        original = getattr(variable, "alias", None) or variable
        variable.relativeQuantity = relative.get(original.name)


def _add_bounds(description: Any, root: Any) -> None:
    """Add the bounds of unsigned integers, which FMPy leaves out."""
    nodes = {each.get("name"): each for each in root.iterfind("ModelVariables/*") if str(each.tag).startswith("UInt")}
    for variable in description.modelVariables:
        original = getattr(variable, "alias", None) or variable
        if (node := nodes.get(original.name)) is not None:
            variable.min, variable.max = node.get("min"), node.get("max")
