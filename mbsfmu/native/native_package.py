"""Packages simulations as FMUs of machine code that need nothing on the target."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path

from mbsfmu.base.identity import content_key
from mbsfmu.compiling.compiler import PLATFORMS, Clocks, Fmi, Interface, compile_library, platform_named
from mbsfmu.fmu.description import Capabilities, FmuDescription, Scale, clock_variables, describe
from mbsfmu.fmu.fmu_package import common_files, refuse_to_overwrite, write_archive
from mbsfmu.fmu.standards import STANDARDS
from mbsfmu.modelling.variables import ModelExchangeData, Naming
from mbsfmu.native.c_sources import Sources, fmu_sources, identity_source, prefix_source, single_source, unit_files
from mbsfmu.simulation.continuous_states import ContinuousStates
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variable_table import NEXT_EVENT

HYSTERESIS = 1e-9
"""Shares of their magnitudes by which event indicators pass zero before they count as changed: far above round-off, so
that what rests at a zero makes no events, and far below what solvers are asked for, so that instants do not shift."""


def export_native(
    simulation: Simulation,
    path: str | os.PathLike[str],
    *,
    platforms: Sequence[str],
    fmi: Fmi = 2,
    kind: Collection[Interface] = ("cs",),
    naming: Naming = "structured",
    arrays: bool = False,
    apart: Collection[str] = (),
    sources: Sources | bool = False,
    clocks: Clocks = "none",
    event_indicators: bool = False,
    icon: bytes | None = None,
    carried: str | None = None,
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
        Names of platforms of the version; none for a unit of sources only.
    fmi
        Version of the FMI.
    kind
        What it is for: `cs`, co-simulation, `me`, model exchange, or both.
    naming
        Whether names of variables are structured or flat.
    arrays
        Whether components of vectors are arrays of FMI 3.0.
    apart
        Names of variables that stay single where others are elements of arrays.
    sources
        Whether the C sources are in it, for importers that compile: as several files, or with `single` as one.
    clocks
        Whether hosts make the updates of sampled blocks by clocks of FMI 3.0, and by which kind of them.
    event_indicators
        Whether model exchange has the event indicators of its parts.
    icon
        A picture of it as PNG.
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
        When the file is there and `force` is not given, there is no compiler for a platform, or the formulation is not
        for model exchange.
    """
    target = Path(path)
    refuse_to_overwrite(target, force)
    standard = STANDARDS[fmi]
    places = {platform_named(name, fmi): None for name in platforms}
    description, texts = described_sources(
        simulation,
        fmi,
        kind,
        naming=naming,
        arrays=arrays,
        apart=apart,
        clocks=clocks,
        event_indicators=event_indicators,
    )
    compiled = unit_files(fmi, texts)
    libraries = {platform: compile_library(texts, compiled, platform).read_bytes() for platform in places}
    identifier = description.identifier
    binaries = (
        (f"binaries/{platform}/{identifier}{PLATFORMS[platform].suffix}", library)
        for platform, library in libraries.items()
    )
    exposed, listed = _shown(texts, list(compiled), fmi, identifier, sources) if sources else ({}, [])
    added = ((f"sources/{name}", text) for name, text in exposed.items())
    described = standard.describe(description, listed, icon is not None)
    return write_archive(target, chain(common_files(simulation, standard, described, icon, carried), binaries, added))


def _shown(
    texts: Mapping[str, str], compiled: Sequence[str], fmi: Fmi, identifier: str, sources: Sources | bool
) -> tuple[dict[str, str], list[str]]:
    """Return the C files that an FMU carries, by name, and the names of those that importers compile."""
    files = {**texts, **prefix_source(fmi, identifier)}
    if sources != "single":
        return files, list(compiled)
    name = f"{identifier}.c"
    return {name: single_source(files, compiled)}, [name]


def described_sources(
    simulation: Simulation,
    fmi: Fmi,
    kind: Collection[Interface] = ("cs",),
    *,
    naming: Naming = "structured",
    arrays: bool = False,
    apart: Collection[str] = (),
    clocks: Clocks = "none",
    event_indicators: bool = False,
) -> tuple[FmuDescription, dict[str, str]]:
    """Return the FMU's description, and its C files by name."""
    exchange = None
    if "me" in kind:
        exchange = _exchange(simulation, beside_steps="cs" in kind, event_indicators=event_indicators)
    texts = fmu_sources(simulation, "", fmi, exchange, clocks)
    capabilities = Capabilities(
        needs_tool=False,
        takes_slopes=True,
        gives_rates=True,
        gives_derivatives=True,
        has_events=any(each.name == NEXT_EVENT.name for each in simulation.variables),
    )
    tool = f"mbsfmu {importlib.metadata.version('mbsfmu')}"
    behaviour = content_key(sorted(texts.items()))
    names = [each.name for each in simulation.variables]
    ticked = clock_variables(clocks, simulation.functions.system.samplings, names)
    description = describe(simulation, capabilities, tool, behaviour, naming, arrays, apart, exchange, ticked)
    return description, texts | identity_source(description.identity) | STANDARDS[fmi].generate(description)


def _exchange(simulation: Simulation, *, beside_steps: bool, event_indicators: bool) -> ModelExchangeData:
    """Return the model-exchange data of an FMU.

    Raises
    ------
    InputError
        When the simulation has no continuous states.
    """
    states = ContinuousStates.of(simulation, event_indicators=event_indicators)
    scale = Scale.of(simulation.variables)
    names = zip((each.name for each in states.states), (each.name for each in states.derivatives), strict=True)
    return ModelExchangeData(
        added=(*states.own, *states.derivatives, *states.indicators),
        derivatives=dict(names),
        dependencies=states.dependencies,
        magnitudes=tuple(scale.nominal(each) or 1.0 for each in states.integrated),
        indicators={each.name: HYSTERESIS * (scale.nominal(each) or 1.0) for each in states.indicators},
        derivatives_known=states.derivatives_known,
        beside_steps=beside_steps,
    )
