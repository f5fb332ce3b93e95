"""Packages simulations as FMUs of machine code that need nothing on the target."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from mbsfmu.compiling.compiler import PLATFORMS, compile_library
from mbsfmu.fmu.description import Capabilities, describe
from mbsfmu.fmu.fmi2_description import model_description
from mbsfmu.fmu.package import common_files, refuse_to_overwrite, write_archive
from mbsfmu.identity import content_key
from mbsfmu.native.model_code import LOOP, UNIT, identity_source, unit_sources
from mbsfmu.simulation.simulation import Simulation

CAPABILITIES = Capabilities(
    needs_tool=False,
    takes_slopes=True,
    gives_rates=True,
    gives_derivatives=True,
)


def export_native(
    simulation: Simulation,
    path: str | os.PathLike[str],
    *,
    platforms: Sequence[str],
    sources: bool = False,
    icon: bytes | None = None,
    force: bool = False,
) -> Path:
    """Write an FMU of machine code.

    Parameters
    ----------
    simulation
        The simulation to package.
    path
        The file to write.
    platforms
        Keys of `PLATFORMS`; none for a unit of sources only.
    sources
        Whether the C sources are in it, for importers that compile.
    icon
        A picture of it as PNG.
    force
        Whether a file that is there is replaced.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        When the file is there and `force` is not given, or there is no compiler for a platform.
    """
    target = Path(path)
    refuse_to_overwrite(target, force)
    tool = f"mbsfmu {importlib.metadata.version('mbsfmu')}"
    texts = unit_sources(simulation, "")
    for name in LOOP.keys() - UNIT.keys():
        texts.pop(name)
    behaviour = content_key(sorted(texts.items()))
    description = describe(simulation, CAPABILITIES, tool, behaviour)
    texts |= identity_source(description.identity)
    libraries = {platform: compile_library(texts, UNIT, platform).read_bytes() for platform in platforms}
    identifier = description.identifier
    binaries = (
        (f"binaries/{platform}/{identifier}{PLATFORMS[platform].suffix}", library)
        for platform, library in libraries.items()
    )
    added = ((f"sources/{name}", text) for name, text in texts.items()) if sources else ()
    common = common_files(simulation, model_description(description, list(UNIT) if sources else []), icon)
    return write_archive(target, chain(common, binaries, added))
