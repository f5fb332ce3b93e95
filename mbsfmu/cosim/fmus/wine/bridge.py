"""What an unpacked FMU for Windows gets beside it, so that Linux runs it under Wine."""

from __future__ import annotations

import logging
import shutil
import sys
from importlib.resources import files
from pathlib import Path

from mbsfmu.base.errors import InputError
from mbsfmu.compiling.compiler import NoCompilerError, compile_library
from mbsfmu.cosim.fmus.wine.functions import far_functions, near_functions

WINDOWS = "win64"
"""The platform that Wine runs, as FMI 2.0 calls it."""
_LOGGER = logging.getLogger(__name__)
_WINE = "wine"
_PROGRAM = "under_wine.exe"


def why_not_bridged(version: str, platforms: set[str]) -> str | None:
    """Return why an FMU that has no library for this machine cannot be run under Wine.

    Returns
    -------
    str or None
        How the sentence goes on that says what platforms it has libraries for; None where it can be run.
    """
    if sys.platform != "linux" or not platforms & {WINDOWS, "win32", "x86_64-windows", "x86-windows"}:
        return ""
    if version != "2.0" or WINDOWS not in platforms:
        return f"; of FMUs for Windows, those of FMI 2.0 with a library for {WINDOWS} run here, under Wine"
    if shutil.which(_WINE) is None:
        return (
            "; with Wine (Debian: apt install wine64) and the extra 'cross' (pip install 'mbsfmu[cross]') it runs here"
        )
    return None


def bridge(folder: Path, identifier: str, platform: str, called: str) -> None:
    """Put the library that stands for that of Windows into an unpacked FMU, and the program that it starts.

    Parameters
    ----------
    folder
        What the FMU is unpacked into.
    identifier
        How its library is named, without suffix.
    platform
        What FMI calls this platform.
    called
        What messages call the FMU.

    Raises
    ------
    InputError
        When there is no compiler for one of them.
    CompilerError
        When a compiler does not do it.
    """
    texts = files("mbsfmu.native.runtime.fmi2"), files("mbsfmu.cosim.fmus.wine")
    common = {"fmi2.h": texts[0].joinpath("fmi2.h").read_text("utf-8")}
    common["messages.h"] = texts[1].joinpath("messages.h").read_text("utf-8")
    near, far = (texts[1].joinpath(name).read_text("utf-8") for name in ("near.c", "far.c"))
    try:
        library = compile_library(
            {**common, "near.c": near, "near_functions.h": near_functions()}, {"near.c": "-O1"}, None, portable=False
        )
        program = compile_library(
            {**common, "far.c": far, "far_functions.h": far_functions()}, {"far.c": "-O1"}, WINDOWS, program=True
        )
    except NoCompilerError as error:
        raise InputError(f"{called} is for Windows; to run it under Wine, {error}") from None
    _LOGGER.info("%s is for Windows; it runs under Wine", called)
    place = folder / "binaries" / platform
    place.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(library, place / f"{identifier}.so")
    shutil.copyfile(program, place / _PROGRAM)
