"""Wrappers beside FMUs: files of other tools that add an FMU to their models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.exporting import modelica_wrapper, simulink_wrapper
from mbsfmu.exporting.wrapped_fmu import WrappedFmu
from mbsfmu.modelling import closest_match

Wrapper = Literal["simulink", "modelica"]
WRAPPERS: tuple[Wrapper, ...] = get_args(Wrapper)


@dataclass(frozen=True)
class _Kind:
    """How wrappers of a tool are called and written.

    Attributes
    ----------
    file_name
        Gives the name of the wrapper from the name of the FMU's file without its ending.
    text
        Gives its content.
    """

    file_name: Callable[[str], str]
    text: Callable[[WrappedFmu], str]


_KINDS: dict[Wrapper, _Kind] = {
    "simulink": _Kind(simulink_wrapper.file_name, simulink_wrapper.text),
    "modelica": _Kind(modelica_wrapper.file_name, modelica_wrapper.text),
}


def check_wrappers(wrappers: Iterable[str], *, naming: str, kind: Sequence[str], arrays: bool, clocks: str) -> None:
    """Check the choice of wrappers before FMUs are made.

    Raises
    ------
    InputError
        When there is no such wrapper, or it cannot be of such FMUs.
    """
    for each in wrappers:
        if each not in WRAPPERS:
            raise InputError(f"there is no wrapper '{each}'; {closest_match(each, WRAPPERS)}")
        if arrays:
            raise InputError("wrappers have scalar variables; with arrays there are none")
        if clocks != "none":
            raise InputError(f"wrappers set no clocks; with {each} clocks must be none")
        if each == "modelica" and naming != "flat" and "me" not in kind:
            raise InputError(
                "the wrapper modelica needs kind me, which OpenModelica imports, or naming flat, which Dymola keeps"
            )


def wrapper_files(fmus: Iterable[Path], wrappers: Sequence[Wrapper]) -> dict[Path, dict[Wrapper, Path]]:
    """Return the wrappers' files of each FMU.

    Raises
    ------
    InputError
        When two of them would be one file.
    """
    files: dict[Path, dict[Wrapper, Path]] = {
        fmu: {each: fmu.with_name(_KINDS[each].file_name(fmu.stem)) for each in wrappers} for fmu in fmus
    }
    owners: dict[Path, Path] = {}
    for fmu, beside in files.items():
        for path in beside.values():
            if path in owners:
                raise InputError(f"the wrappers of {owners[path].name} and {fmu.name} would both be {path.name}")
            owners[path] = fmu
    return files


def write_wrappers(fmu: Path, files: dict[Wrapper, Path]) -> Iterator[Path]:
    """Write the wrappers of an FMU and yield their files.

    Raises
    ------
    InputError
        When the tool cannot have the names of the FMU's variables.
    """
    if not files:
        return
    described = WrappedFmu.of(fmu)
    for wrapper, path in files.items():
        with complete_file(path) as partial:
            partial.write_text(_KINDS[wrapper].text(described), encoding="utf-8")
        yield path
