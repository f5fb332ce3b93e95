"""Packages units as FMUs that run on a Python of the target.

Known limits of the pythonfmu binaries that such an FMU carries: the Linux library does not link libpython, so
that hosts written in C must have loaded it; it needs glibc 2.32 or later; the GUID given at instantiation is not
compared; directional derivatives and input derivatives are refused; an exception is fatal to it, so that a value or
a state that is refused is logged as an error at once but refuses the next step only. The target's Python needs numpy,
scipy, casadi and pydantic, and nothing else of this toolkit's dependencies.
"""

from __future__ import annotations

import html
import importlib.metadata
import importlib.util
import json
import os
import stat
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import CARRIED, complete_file
from mbsfmu.base.identity import content_key
from mbsfmu.fmu.description import FILES, UNIT_FILE, Capabilities, Described, FmuDescription, FmuSimulation, describe
from mbsfmu.fmu.standards import STANDARDS, Standard
from mbsfmu.modelling.variables import Naming

# For every instance, pythonfmu's binary runs this file again and looks for the class among its names; it gives
# back a reference too many of every name that it looks at. The file therefore has one name, the class, of which
# `UnitSlave` keeps references to spare.
_SLAVE = """class {name}(__import__("mbsfmu.fmu.slave", fromlist=["UnitSlave"]).UnitSlave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
"""
_UNIX = 3  # the system whose attributes the entries of the archive have
_READABLE = stat.S_IFREG | 0o644
_BINARY_SUFFIXES = (".so", ".dll", ".dylib")


def export_python(
    unit: FmuSimulation,
    factory: str,
    arguments: dict[str, Any],
    path: str | os.PathLike[str],
    *,
    files: Mapping[str, str],
    needs_execution_tool: bool = True,
    naming: Naming = "structured",
    icon: bytes | None = None,
    carried: str | None = None,
    force: bool = False,
) -> Path:
    """Write an FMU that makes its simulation on the target, with the needed packages.

    Parameters
    ----------
    unit
        The unit, for the description.
    factory, arguments
        `package.module:function`, and the JSON-like dictionary that it makes the unit from; it gets the folder of the
        files as well.
    path
        The file to write.
    files
        What else it takes along, text by name.
    needs_execution_tool
        What the description says about it; true is the truth, some importers refuse it.
    naming
        Whether names of variables are structured or flat.
    icon
        A picture of the unit as PNG.
    carried
        What it says of the machine that it is.
    force
        Whether a file that is there is replaced.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        When the file is there and `force` is not given, or a variable cannot stand in a description.
    """
    target = Path(path)
    refuse_to_overwrite(target, force)
    version = importlib.metadata.version("mbsfmu")
    packages = dict(_packages())
    packages |= {f"resources/{FILES}/{name}": text.encode() for name, text in files.items()}
    behaviour = content_key(factory, arguments, packages)
    capabilities = Capabilities(needs_tool=needs_execution_tool)
    description = describe(unit, capabilities, f"mbsfmu {version}", behaviour, naming=naming)
    made_from = {"factory": factory, "arguments": arguments, "identity": description.identity}
    standard = STANDARDS[2]
    described = standard.describe(description, [], icon is not None)
    common = common_files(unit, standard, described, icon, carried, ("mbsfmu", "pythonfmu"))
    own = _files(description, made_from)
    return write_archive(target, chain(common, own, packages.items()))


def write_archive(target: Path, files: Iterable[tuple[str, bytes | str]]) -> Path:
    """Write an FMU from names and contents, atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with complete_file(target) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, time.gmtime()[:6])
            entry.create_system, entry.external_attr = _UNIX, _READABLE << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return target


def refuse_to_overwrite(target: Path, force: bool) -> None:
    """Raise an InputError if a file exists and must not be replaced."""
    if target.exists() and not force:
        raise InputError(f"{target} exists; say --force (force=True) to replace it")


def _packages() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files of the included packages."""
    for package in ("mbsfmu", "hydraulics", "pythonfmu"):
        folder = package_folder(package)
        for file in sorted(folder.rglob("*")):
            inside = file.relative_to(folder)
            if file.suffix in (".py", ".html", ".typed") and not {"tests", "__pycache__"} & set(inside.parts):
                yield f"resources/{package}/{inside.as_posix()}", file.read_bytes()


def _files(description: FmuDescription, made_from: dict[str, Any]) -> Iterator[tuple[str, bytes | str]]:
    # Python keeps modules by name in a process: two FMUs must not share the name of their slave's module.
    module = f"slave_{description.identity.strip('{}').replace('-', '')}"
    name = f"Slave{description.identifier}"
    yield "resources/slavemodule.txt", module
    yield f"resources/{module}.py", _SLAVE.format(name=name)
    yield f"resources/{UNIT_FILE}", json.dumps(made_from, indent=1)
    binaries = package_folder("pythonfmu") / "resources" / "binaries"
    for file in sorted(binaries.rglob("*")):
        if file.suffix in _BINARY_SUFFIXES:
            platform = file.parent.relative_to(binaries).as_posix()
            yield f"binaries/{platform}/{description.identifier}{file.suffix}", file.read_bytes()


def common_files(
    unit: FmuSimulation | FmuDescription,
    standard: Standard,
    descriptions: Mapping[str, bytes],
    icon: bytes | None,
    carried: str | None,
    packages: Sequence[str] = ("mbsfmu",),
) -> Iterator[tuple[str, bytes | str]]:
    """Yield name and content of the files of every FMU; `packages` are included."""
    yield from descriptions.items()
    if icon is not None:
        yield standard.icon, icon
    if carried is not None:
        yield f"resources/{CARRIED}", carried
    yield "documentation/index.html", _documentation(unit)
    licences = {name: text for package in packages for name, text in _licences(package)}
    told = f"{unit.name}: {unit.origin.license or 'licence not stated'}"
    yield f"{standard.licences}/license.txt", "\n".join([told, "It holds code of these licences:", *licences]) + "\n"
    for name, text in licences.items():
        yield f"{standard.licences}/{name}", text


def _licences(package: str) -> Iterator[tuple[str, str]]:
    for file in importlib.metadata.files(package) or ():
        # Those of the package itself, not of what stands in it: beside its metadata where it is installed, at the root
        # of a checkout that was installed to be edited.
        if "licen" in file.name.lower() and (file.parts[0].endswith("-info") or len(file.parts) == 1):
            yield f"{package}/{file.name}", file.read_text()


def package_folder(package: str) -> Path:
    """Return the folder of an importable package."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    return Path(spec.origin).parent


def _documentation(unit: FmuSimulation | FmuDescription) -> str:
    variables = [each.variable if isinstance(each, Described) else each for each in unit.variables]
    rows = "\n".join(
        f"<tr><td>{html.escape(each.name)}</td><td>{html.escape(each.causality)}</td>"
        f"<td>{html.escape(each.unit)}</td><td>{html.escape(each.description)}</td></tr>"
        for each in variables
    )
    name = html.escape(unit.name)
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{name}</title>\n'
        f"<h1>{name}</h1>\n<p>{html.escape(unit.description)}</p>\n"
        f"<table><tr><th>variable</th><th>causality</th><th>unit</th><th>meaning</th></tr>\n{rows}\n</table></html>\n"
    )
