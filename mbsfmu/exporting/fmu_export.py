"""Exports models: one FMU for the whole, or one per system with a package of their connections."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import all_or_none
from mbsfmu.base.interruption import heeding_interruptions
from mbsfmu.compiling.compiler import CLOCKS, INTERFACES, VERSIONS, Clocks, Fmi, Interface, host_platform
from mbsfmu.exporting.icons import icon
from mbsfmu.exporting.wrappers import Wrapper, check_wrappers, wrapper_files, write_wrappers
from mbsfmu.fmu.fmu_package import export_python, refuse_to_overwrite
from mbsfmu.integration.implicit import Jacobian
from mbsfmu.io.part_files import UserParts
from mbsfmu.model.body import without_shapes
from mbsfmu.model.machine import Carried, Machine
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.variables import NAMINGS, Causality, Naming
from mbsfmu.native.c_sources import SOURCES, Sources
from mbsfmu.native.native_package import export_native
from mbsfmu.rules import find_rule
from mbsfmu.simulation.run_options import RunKeywords, RunOptions
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.system_model.coupled_model import CoupledModel
from mbsfmu.system_model.model_simulation import in_equal_steps, run_options, unit_from_dict

Layout = Literal["separate", "monolithic", "both"]
Backend = Literal["native", "python"]
Locals = Literal["all", "none"]
LOCALS: tuple[Locals, ...] = get_args(Locals)
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
BACKENDS: tuple[Backend, ...] = get_args(Backend)
logger = logging.getLogger(__name__)
_BESIDE = (
    *("layout", "backend", "fmi", "kind", "naming", "arrays", "platforms", "sources", "outputs", "locals"),
    *("needs_execution_tool", "reference", "wrapper", "clocks", "event_indicators", "force"),
)
_FACTORY = f"{unit_from_dict.__module__}:{unit_from_dict.__name__}"


@heeding_interruptions()
def export(
    model: CoupledModel,
    directory: str | os.PathLike[str],
    *,
    options: RunOptions | None = None,
    layout: Layout = "both",
    backend: Backend = "native",
    fmi: Fmi = 2,
    kind: Interface | Sequence[Interface] = ("cs",),
    naming: Naming = "structured",
    arrays: bool = False,
    platforms: Sequence[str] = (),
    sources: Sources | bool = False,
    outputs: Sequence[str] = (),
    locals: Locals = "all",  # noqa: A002 - the word of the FMI
    needs_execution_tool: bool = True,
    reference: bool = False,
    wrapper: Wrapper | Sequence[Wrapper] = (),
    clocks: Clocks = "none",
    event_indicators: bool = False,
    force: bool = False,
    **given: Unpack[RunKeywords],
) -> list[Path]:
    """Write the FMUs of a model.

    Parameters
    ----------
    model
        The model.
    directory
        Where the files go; made if it is not there.
    options, given
        Options, and those of them that are given by name; `RunOptions` says what they are. Native FMUs have the rules
        of integration, `rk4`, `rk45`, `rodas4` and `rodas5p`, with exact Jacobians.
    layout
        `monolithic`: `<model>.fmu`; `separate`: `<system>.fmu` for each system, and `<model>.ssp`; `both`, which of a
        model with one system is `monolithic`.
    backend
        `native`: machine code that needs nothing on the target; `python`: FMUs that run on a Python of the target.
    fmi
        Version of the FMI: 2 for FMI 2.0, 3 for FMI 3.0, which native FMUs can be of.
    kind
        What native FMUs are for: `cs`, co-simulation, `me`, model exchange, where the importer has the solver, or both
        in one file, as `("cs", "me")`.
    naming
        `structured`: names with dots, as `boom.angle`, which importers show as a tree; `flat`: identifiers, as
        `boom_angle`, for Simulink, which makes buses of dots, and Twin Builder, which takes none. Descriptions begin
        with the structured name then; co-simulation, packages and reports take both.
    arrays
        Whether components of vectors are one array, `tip.position` instead of `tip.position.x` and so on, in native
        FMUs of FMI 3.0. Importers that do not know arrays lose their columns.
    platforms
        Platforms of native FMUs, such as `linux64` and `win64`; the one of this machine by default. FMI 3.0 has names
        of its own, such as `x86_64-linux` and `aarch64-linux`, and takes those of FMI 2.0 as well.
    sources
        Whether native FMUs carry their C sources, for importers that compile: `several` files, which true means too,
        or a `single` one, named after the model.
    outputs
        Patterns of the variables that are outputs, as `CoupledModel.outputs`, which they replace.
    locals
        Whether units show `all` variables that are no outputs, or `none`, for importers that read every variable; what
        tells the next event is shown in any case. With `all` they also carry along the model as data, from which
        reports of coupled runs draw the machine.
    needs_execution_tool
        What the description of Python units says about it; true is the truth, some importers refuse it.
    reference
        Whether FMUs for co-simulation are run by the master, and hold the results, for importers to check against.
    wrapper
        Files beside each FMU that add it to models of other tools: `simulink`, the MATLAB function `add_<model>.m`,
        `modelica`, the package `<model>.mo`, or both, as `("simulink", "modelica")`. That of Modelica needs kind `me`,
        which OpenModelica imports, or naming `flat`, which Dymola keeps.
    clocks
        Whether native FMUs of FMI 3.0 have a clock for each sampled block, which importers with event mode must set:
        `periodic`, at the block's instants, or `triggered`, whenever they want an update. With `none` updates are
        events of the FMU itself.
    event_indicators
        Whether native FMUs for model exchange have event indicators: the gaps of end stops and contacts, at whose zeros
        solvers of importers end their steps. Without them solvers pass these kinks by their error control.
    force
        Whether files that are there are replaced.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        When an option is refused, a file is there already, or the model cannot be initialized; nothing is written.
    """
    _check_words(layout, backend, locals, naming, fmi)
    _check_sources(sources)
    if arrays and (fmi != 3 or backend != "native"):
        raise InputError("arrays are for native FMUs of FMI 3.0")
    kinds = (kind,) if isinstance(kind, str) else kind
    _check_kind(kinds, backend, event_indicators=event_indicators)
    _check_clocks(clocks, backend, fmi, has_reference=reference)
    wrappers = (wrapper,) if isinstance(wrapper, str) else wrapper
    check_wrappers(wrappers, naming=naming, kind=kinds, arrays=arrays, clocks=clocks)
    if reference and "cs" not in kinds:
        raise InputError("reference results are those of FMUs for co-simulation; kind cs has them")
    if outputs:
        model = model.model_copy(update={"outputs": outputs})
    chosen = run_options(model, options, given, _BESIDE)
    if chosen.check_error:
        raise InputError("check error has no effect in FMUs, whose runs their hosts make; it has in process")
    _check_backend(backend, chosen, fmi, has_binaries=bool(platforms or sources), needs_tool=needs_execution_tool)
    if layout == "both" and len(model.systems) == 1:
        layout = "monolithic"  # the unit of the only system would be the same once more
    folder = Path(directory)
    wanted, package = _files(model, folder, layout)
    beside = wrapper_files(wanted.values(), wrappers)
    files_beside = [file for each in beside.values() for file in each.values()]
    for path in [*wanted.values(), *files_beside, *([package] if layout != "monolithic" else [])]:
        refuse_to_overwrite(path, force)
    files = UserParts.of(model).with_rule(find_rule(chosen.chosen_solver)).alone() if backend == "python" else {}
    units = _made_fmus(model, wanted, chosen, list(files), shows_locals=locals == "all")
    _check_events(clocks, units, event_indicators=event_indicators)
    _warn_undriven(model, {unit.system: unit.simulation.undriven for unit in units})
    _report_kept_files([unit.simulation for unit in units])
    if "cs" in kinds:
        _report_bounds([unit.simulation for unit in units])
    native = {"platforms": platforms or [host_platform(fmi)], "fmi": fmi, "kind": kinds, "sources": sources}
    native |= {"arrays": arrays}
    paths: list[Path] = []
    with all_or_none(paths):
        for unit in units:
            carries = {
                "naming": naming,
                "icon": unit.icon(),
                "carried": unit.carried() if locals == "all" else None,
                "force": force,
            }
            if backend == "native":
                unit.simulation.check_inertias()
                carries |= {"clocks": clocks if unit.is_sampled() else "none", "event_indicators": event_indicators}
                path = export_native(unit.simulation, unit.path, apart=unit.connected(), **native, **carries)
            else:
                carries |= {"files": files, "needs_execution_tool": needs_execution_tool}
                path = export_python(unit.simulation, _FACTORY, unit.arguments, unit.path, **carries)
            paths.append(path)
            if reference:
                _add_reference(path)
            paths.extend(write_wrappers(path, beside[unit.path]))  # one by one: files before a refusal are removed
        if layout != "monolithic":
            paths.append(_write_package(model, wanted, package))
    return paths


@dataclass(frozen=True)
class _Unit:
    """A unit before it is written.

    Attributes
    ----------
    model
        The model.
    system
        Its system; None for the whole.
    path
        The file to write.
    arguments
        What `unit_from_dict` makes it from, here and in Python units.
    simulation
        What it computes.
    """

    model: CoupledModel
    system: str | None
    path: Path
    arguments: dict[str, Any]
    simulation: Simulation

    def icon(self) -> bytes:
        """Return its picture."""
        systems = self.model.systems
        return icon(systems if self.system is None else {self.system: systems[self.system]}, self.simulation)

    def carried(self) -> str:
        """Return the machine data of the FMU, for animations of coupled runs."""
        run = self.simulation.machine_as_run()
        machine = Machine.of(self.model, self.system).with_values({} if run is None else run.values)
        return Carried(machine, self.system).text()

    def is_sampled(self) -> bool:
        """Return whether it has a block that a clock can update."""
        return any(not each.delays for each in self.simulation.functions.system.samplings)

    def connected(self) -> list[str]:
        """Return its variables that connections of its package name, one by one."""
        ends = (_split(reference) for connection in self.model.connections for reference in connection)
        return [name for owner, name in ends if owner == self.system]


def _made_fmus(
    model: CoupledModel,
    wanted: Mapping[str | None, Path],
    options: RunOptions,
    files: Sequence[str],
    *,
    shows_locals: bool,
) -> list[_Unit]:
    """Return the units by their files; systems alone start where they do in the whole."""
    parts = UserParts.of(model)
    starts = {} if set(wanted) == {None} else model.starts(options=options)
    common = {"model": without_shapes(model.to_dict()), "options": options.to_dict()}
    common |= {"parts": files, "locals": shows_locals}
    units = []
    for system, path in wanted.items():
        arguments = {**common, "system": system, "starts": None if system is None else starts.get(system)}
        with parts.given():
            simulation = unit_from_dict(arguments)
            equal = in_equal_steps(options)
            if simulation.undriven and equal is not options and simulation.solver.name != equal.chosen_solver:
                arguments = {**arguments, "options": equal.to_dict()}  # its inputs are set at communication points
                simulation = unit_from_dict(arguments)
            units.append(_Unit(model, system, path, arguments, simulation))
    return units


def _check_words(layout: str, backend: str, exposed: str, naming: str, fmi: int) -> None:
    """Check the options given by words and numbers; `exposed` is the choice of locals."""
    words_of = {"layout": (layout, LAYOUTS), "backend": (backend, BACKENDS), "choice of locals": (exposed, LOCALS)}
    words_of |= {"naming": (naming, NAMINGS)}
    for what, (word, words) in words_of.items():
        if word not in words:
            raise InputError(f"there is no {what} '{word}'; {closest_match(word, words)}")
    if fmi not in VERSIONS:
        raise InputError(f"there is no FMI {fmi} for FMUs; there are {' and '.join(map(str, VERSIONS))}")


def _check_sources(sources: str | bool) -> None:
    """Check the choice of C files."""
    if not isinstance(sources, bool) and sources not in SOURCES:
        raise InputError(f"there is no choice of sources '{sources}'; {closest_match(sources, SOURCES)}")


def _check_backend(backend: str, options: RunOptions, fmi: int, *, has_binaries: bool, needs_tool: bool) -> None:
    """Check that options apply to the backend."""
    if backend == "native" and options.jacobian not in (None, Jacobian.EXACT):
        raise InputError(f"jacobian = {options.jacobian} has no effect in native FMUs; it has in those of 'python'")
    if backend == "python" and has_binaries:
        raise InputError("platforms and sources are for the backend 'native'; FMUs of 'python' hold neither")
    if backend == "python" and fmi != 2:
        raise InputError(f"FMUs of 'python' are of FMI 2.0; those of 'native' can be of FMI {fmi}.0 as well")
    if backend == "native" and not needs_tool:
        raise InputError("that no execution tool is needed is said of FMUs of 'python'; those of 'native' need none")


def _check_kind(kind: Sequence[str], backend: str, *, event_indicators: bool) -> None:
    """Check what FMUs are for."""
    if not kind:
        raise InputError(f"FMUs are for something: kind is one of {', '.join(INTERFACES)}, or more of them")
    for each in kind:
        if each not in INTERFACES:
            raise InputError(f"there is no kind '{each}' of FMUs; {closest_match(each, INTERFACES)}")
    if backend == "python" and "me" in kind:
        raise InputError("FMUs of 'python' are for co-simulation; those of 'native' can be for model exchange")
    if event_indicators and "me" not in kind:
        raise InputError("event indicators are for solvers of importers; kind me has them")


def _check_clocks(clocks: str, backend: str, fmi: int, *, has_reference: bool) -> None:
    """Check the choice of clocks."""
    if clocks not in CLOCKS:
        raise InputError(f"there is no choice of clocks '{clocks}'; {closest_match(clocks, CLOCKS)}")
    if clocks != "none" and (fmi != 3 or backend != "native"):
        raise InputError("clocks are for native FMUs of FMI 3.0")
    if clocks != "none" and has_reference:
        raise InputError(
            "reference results are of runs by our master, which sets no clocks; FMUs with clocks have none"
        )


def _check_events(clocks: str, units: Sequence[_Unit], *, event_indicators: bool) -> None:
    """Check that there is a block that a clock can update, and a part with event indicators."""
    if clocks != "none" and not any(unit.is_sampled() for unit in units):
        raise InputError("clocks are those of sampled blocks, and the model has none")
    if event_indicators and not any(unit.simulation.functions.system.event_indicators for unit in units):
        raise InputError("event indicators are gaps of end stops and contacts, and the model has none")


def _add_reference(path: Path) -> None:
    from mbsfmu.exporting.reference_results import add_reference  # noqa: PLC0415 - loads FMPy

    add_reference(path)


def _write_package(model: CoupledModel, units: Mapping[str | None, Path], package: Path) -> Path:
    from mbsfmu.cosim import Connection, write_ssp  # noqa: PLC0415 - loads FMPy, which FMUs alone do without

    connections = [Connection(_split(source), _split(target)) for source, target in model.connections]
    members = {system: path for system, path in units.items() if system is not None}
    return write_ssp(package, model.name, members, connections, model.stop_time)


def _warn_undriven(model: CoupledModel, inputs: Mapping[str | None, Sequence[str]]) -> None:
    """Warn of inputs without a source in the model or package: the importer must set them."""
    targets = {target for _, target in model.connections}
    left = [(system, name) for system, names in inputs.items() for name in names]
    whole = [name for system, name in left if system is None]
    alone = [f"{system}.{name}" for system, name in left if system is not None]
    sentences = ", ".join([*whole, *(name for name in alone if name not in targets)])
    if sentences:
        logger.info("the importer has to drive %s", sentences)


def _report_bounds(units: Iterable[Simulation]) -> None:
    """Report what the steps of units with limited iterations take at most."""
    for unit in units:
        work = unit.solver.most_work
        if work is not None:
            logger.info(
                "%s: a communication step of %g s is one internal step, and one more for each discontinuity or update "
                "within it; each takes at most %d residuals, %d Jacobians and %d linear solves",
                unit.name,
                unit.step_size,
                work.residuals,
                work.jacobians,
                work.solutions,
            )


def _report_kept_files(units: Iterable[Simulation]) -> None:
    """Report outputs that were not selected but are needed by connections."""
    kept = [
        name
        for unit in units
        for name in unit.exposed.kept(each.name for each in unit.variables if each.causality is Causality.OUTPUT)
    ]
    if kept:
        logger.info("connections read %s, which are outputs in addition to those that were chosen", ", ".join(kept))


def _files(model: CoupledModel, folder: Path, layout: str) -> tuple[dict[str | None, Path], Path]:
    """Return the units' files by system, None being the whole, and the package of their connections."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; the FMUs need a folder")
    if folder.suffix == ".fmu" and not folder.exists():
        raise InputError(
            f"{folder} would be a folder: name a folder for the FMUs of a model, which have the names of the model and "
            "its systems; a package alone becomes the file that is named"
        )
    wanted: dict[str | None, Path] = {}
    if layout in ("separate", "both"):
        wanted.update({name: folder / f"{name}.fmu" for name in model.systems})
    if layout in ("monolithic", "both"):
        wanted[None] = folder / f"{model.name}.fmu"
    if len(set(wanted.values())) < len(wanted):
        raise InputError(f"the model and one of its systems are both called '{model.name}'; rename one")
    return wanted, folder / f"{model.name}.ssp"


def _split(reference: str) -> tuple[str, str]:
    system, _, variable = reference.partition(".")
    return system, variable
