"""A checked and unpacked FMU file, and its description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import fmpy
from fmpy.model_description import Unknown
from lxml import etree

from mbsfmu.base.archives import opened_archive, remove_scratch, scratch_folder, unpack
from mbsfmu.base.errors import InputError
from mbsfmu.base.files import CARRIED, reason
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.cosim.fmus.variable_descriptions import described_with, structural_values, structured_names
from mbsfmu.cosim.fmus.wine.bridge import WINDOWS, bridge, why_not_bridged

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


PLATFORMS = {"1.0": fmpy.platform, "2.0": fmpy.platform, "3.0": fmpy.platform_tuple}
"""What this platform is called in each version of FMI."""
_KINDS = {False: "co-simulation", True: "model exchange"}
"""What an FMU is for, by whether it is run by model exchange."""


class PlacedArchive(NamedTuple):
    """What the master knows of an FMU that another host has unpacked.

    Attributes
    ----------
    flat_names, exchanged, carried
        As of `Archive`.
    """

    flat_names: dict[str, str]
    exchanged: bool
    carried: str | None


class Archive:
    """An FMU file, unpacked once for all its instances; `close` removes what was unpacked.

    Parameters
    ----------
    path
        The FMU file.
    exchanged
        Whether it is taken for model exchange; None for co-simulation where it is for that, as all by default.
    called
        What messages call it; its path by default.

    Attributes
    ----------
    description
        Its description, as FMPy reads it; variables have their structured names, where flat ones come from such.
    flat_names
        The structured names by the flat ones of the FMU; nothing where its names are structured.
    exchanged
        Whether it is run by model exchange.
    interface
        What it says of that, or of co-simulation.
    intermediate
        References of variables that can be set and read inside of steps.
    called
        What messages call it.
    folder
        What it is unpacked into.
    configured
        Values of structural parameters that the description has been changed to, by name.
    under_wine
        Whether it has a library for Windows alone, which Wine runs.

    Raises
    ------
    InputError
        When it is no FMI 2.0 or 3.0 FMU for co-simulation or model exchange, or of FMI 1.0 for co-simulation, that runs
        on this platform, is not for what it is wanted for, or is damaged.
    """

    def __init__(self, path: Path, exchanged: bool | None = None, called: str | None = None) -> None:
        self.called = called = called or str(path)
        self.description, root, names = read_fmu(path, called)
        self.flat_names = structured_names(self.description)
        for each in self.description.modelVariables:
            each.name = self.flat_names.get(each.name, each.name)
        version = self.description.fmiVersion
        self.exchanged = self.description.coSimulation is None if exchanged is None else exchanged
        self.interface: Any = self.description.modelExchange if self.exchanged else self.description.coSimulation
        if version not in PLATFORMS or self.interface is None or (version == "1.0" and self.exchanged):
            wanted = "co-simulation or model exchange" if exchanged is None else _KINDS[exchanged]
            first = "" if self.exchanged and exchanged else ", and none of FMI 1.0 for co-simulation"
            found = self._interface(version)
            raise InputError(f"{called} is no FMI 2.0 or 3.0 FMU for {wanted}{first} (it is {found})")
        self.configured: Mapping[str, Any] = {}
        self.intermediate: frozenset[int] = frozenset()
        if version == "1.0":
            self._read_first_version(root)
        if version == "3.0":
            self._read_flags(root)
        self.under_wine = self._check_entries(names, PLATFORMS[version], version)
        self.folder = str(scratch_folder())
        try:
            unpack(path, Path(self.folder), called)
            if self.under_wine:
                bridge(Path(self.folder), self.interface.modelIdentifier, PLATFORMS[version], called)
        except (InputError, CompilerError):
            self.close()
            raise
        except BaseException as error:
            self.close()
            if isinstance(error, Exception):  # of any kind: what zipfile and FMPy raise
                cause = reason(error) if isinstance(error, OSError) else str(error).strip()
                raise InputError(f"{called} cannot be unpacked: {cause}") from None
            raise

    def configured_with(self, name: str, values: Mapping[str, Any]) -> Archive:
        """Return the same FMU, described as it is with values of structural parameters.

        Parameters
        ----------
        name
            Name of its instance, for messages.
        values
            Start values of any variables by name.

        Raises
        ------
        InputError
            As of `structural_values`.
        """
        known = {self.flat_names.get(each, each): value for each, value in values.items()}
        changed = structural_values(name, self.description, known)
        if not changed:
            return self
        result = copy(self)
        result.description, result.configured = described_with(self.description, changed), changed
        return result

    def _interface(self, version: str | None) -> str:
        """Return the interface of an FMU that cannot be run."""
        kinds = {
            _KINDS[False]: self.description.coSimulation,
            _KINDS[True]: self.description.modelExchange,
            "scheduled execution": self.description.scheduledExecution,
        }
        given = [name for name, interface in kinds.items() if interface is not None]
        return f"FMI {version} for {' and '.join(given) or 'nothing'}"

    def _read_first_version(self, root: Any) -> None:
        """Read what FMPy omits of FMI 1.0: capabilities, direct dependencies, and aliases with the other sign.

        These are left out of the variables: the FMU gives the value of the variable that they are the negative of.
        """
        capabilities = root.find("Implementation//Capabilities")
        flags = {} if capabilities is None else capabilities.attrib
        for name in ("canHandleVariableCommunicationStepSize", "canInterpolateInputs"):
            setattr(self.interface, name, flags.get(name) in ("true", "1"))
        self.interface.maxOutputDerivativeOrder = int(flags.get("maxOutputDerivativeOrder", 0))
        nodes = dict(zip(self.description.modelVariables, root.iterfind("ModelVariables/*"), strict=True))
        kept = [variable for variable, node in nodes.items() if node.get("alias") != "negatedAlias"]
        known = {node.get("name"): variable for variable, node in nodes.items()}
        for variable, node in nodes.items():
            if variable.causality == "output" and variable in kept:
                direct = node.find("DirectDependency")
                named = None if direct is None else [each.text for each in direct.iterfind("Name")]
                needed = None if named is None else [known[name] for name in named if name in known]
                self.description.outputs.append(Unknown(variable=variable, dependencies=needed))
        self.description.modelVariables = kept

    def _read_flags(self, root: Any) -> None:
        """Read FMI 3.0 flags that FMPy omits, or reads by their FMI 2.0 names."""
        given = root.xpath(
            f"string({'ModelExchange' if self.exchanged else 'CoSimulation'}/@providesDirectionalDerivatives)"
        )
        self.interface.providesDirectionalDerivative = given in ("true", "1")
        variables = root.iterfind("ModelVariables/*")
        given = (each.get("valueReference") for each in variables if each.get("intermediateUpdate") in ("true", "1"))
        self.intermediate = frozenset(int(each) for each in given if each is not None)

    def _check_entries(self, names: list[PurePosixPath], platform: str, version: str) -> bool:
        """Check for a library of this platform; return whether Wine has to run it."""
        binaries = [name for name in names if len(name.parts) == 3 and name.parts[0] == "binaries"]
        platforms = {name.parts[1] for name in binaries if name.suffix in (".so", ".dll", ".dylib")}
        under_wine = platform not in platforms
        if under_wine and (why := why_not_bridged(version, platforms)) is not None:
            found = ", ".join(sorted(platforms)) or "none"
            raise InputError(f"{self.called} has no binary for {platform}; it has {found}{why}")
        suffix = ".dll" if under_wine else fmpy.sharedLibraryExtension
        library = f"{self.interface.modelIdentifier}{suffix}"
        folder = PurePosixPath("binaries", platform := WINDOWS if under_wine else platform)
        if folder / library not in names:
            found = ", ".join(name.name for name in names if name.parent == folder)
            raise InputError(f"{self.called} has no library {library} for {platform}; {folder} has {found}")
        return under_wine

    @cached_property
    def carried(self) -> str | None:
        """Machine data of the FMU; None without it."""
        file = Path(self.folder, "resources", CARRIED)
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def close(self) -> None:
        """Remove the unpacked files."""
        remove_scratch(self.folder)
