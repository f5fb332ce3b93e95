"""FMUs of a run from an SSP file, a folder with one, or FMU files."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.base.scratch import scratch
from mbsfmu.cosim.coupling.arrays import by_element, take
from mbsfmu.cosim.coupling.exposed import behind_connectors
from mbsfmu.cosim.coupling.graph import SystemGraph
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.cosim.fmus.hosts.placed_fmu import PlacedFmu, Workers
from mbsfmu.cosim.fmus.instantiation import make_instance
from mbsfmu.cosim.fmus.isolation import FmuProcess, IsolatedInstance
from mbsfmu.cosim.fmus.isolation.remote_fmu import RemoteFmu
from mbsfmu.cosim.fmus.model_exchange import SOLVERS
from mbsfmu.cosim.runs.coupling_options import ALL
from mbsfmu.cosim.ssp import STRUCTURE, read_ssp
from mbsfmu.modelling import closest_match

_LOGGER = logging.getLogger(__name__)


def load_graph(source: str | Path | Sequence[str | Path], stack: ExitStack, *, strict: bool = False) -> SystemGraph:
    """Read a system graph; unpacked files are removed when the stack closes.

    Parameters
    ----------
    source
        A package, a folder that holds one packed or unpacked, or FMU files.
    stack
        Where what is unpacked is left.
    strict
        Whether what a package leaves open is refused.

    Raises
    ------
    InputError
        When a folder holds no package or several, a package no component or stands beside others, or two FMU files have
        one name.
    """
    if not isinstance(source, (str, Path)) and len(source) == 1:
        source = source[0]
    if isinstance(source, (str, Path)):
        path = package_of(source)
        if path is not None:
            folder = stack.enter_context(scratch())
            graph = read_ssp(path, folder, strict=strict)
            if not graph.units:
                raise InputError(f"{path} has no component; there is nothing to run")
            return graph
        source = [source]
    units: dict[str, Path] = {}
    for each in source:
        name, file = _named(each)
        if file.suffix == ".ssp":
            raise InputError(f"{file} is a package of FMUs that stands alone; give it alone, or FMU files")
        if name in units:
            raise InputError(f"two FMUs are called '{name}'; give one another name, as name={file}")
        units[name] = file
    if not units:
        raise InputError("no FMU is given; there is nothing to run")
    return SystemGraph(units)


def package_of(source: str | Path) -> Path | None:
    """Return the package that a path means, packed or unpacked; None where it means an FMU.

    Raises
    ------
    InputError
        When a folder holds none, or several, or a system structure is not that of a package.
    """
    path = Path(source)
    if path.suffix == ".ssd":
        if path.name != STRUCTURE:
            raise InputError(
                f"{path} is a system structure without a package: call it {STRUCTURE}, put the FMUs where it says, and "
                "give its folder"
            )
        path = path.parent
    path = _package_in(path) if path.is_dir() else path
    return path if path.is_dir() or path.suffix == ".ssp" else None


def _package_in(folder: Path) -> Path:
    """Return the package that a folder holds, or the folder if that is one unpacked."""
    if (folder / STRUCTURE).is_file():
        return folder
    found = sorted(folder.glob("*.ssp"))
    if len(found) != 1:
        raise InputError(f"the folder {folder} holds {len(found)} SSP files and no {STRUCTURE}; it must hold one")
    return found[0]


def _named(source: str | Path) -> tuple[str, Path]:
    """Return name and file of a unit, which reads `name=file.fmu` or `file.fmu`."""
    name, equals, file = str(source).partition("=")
    if not equals or Path(source).is_file() or not name or not file:
        return Path(source).stem, Path(source)
    if "." in name or "/" in name:
        raise InputError(f"the unit '{name}' is refused: its name must not be empty or contain a dot")
    return name, Path(file)


@contextmanager
def instantiate(
    graph: SystemGraph,
    isolated: Collection[str] = (),
    limit: float | None = None,
    exchanged: Collection[str] = (),
    solver: str = SOLVERS[0],
    placed: Mapping[str, str] | None = None,
    scheduler: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Instance]]:
    """Give the instances of all FMUs by name; they are freed at the end.

    Parameters
    ----------
    graph
        The FMUs.
    isolated
        Names of those that have a process of their own; `all` means all.
    limit
        Time in s that each call of these may take; None for any.
    exchanged
        Names of those that are run by model exchange though they are for co-simulation too; `all` means all.
    solver
        Of FMUs for model exchange.
    placed
        Workers of a Dask cluster, by the names of the FMUs that run on them.
    scheduler
        Address of its scheduler.
    parameters
        Start values by `instance.variable` or connectors of the system, of which those of structural parameters are set
        here, beside those of the package: the names of variables follow from them.

    Raises
    ------
    InputError
        When an FMU cannot be run, there is no such worker, a name means no FMU, or a structural parameter is refused.
    SimulationError
        When an FMU gives no instance, or refuses a structural parameter.
    """
    if graph.placed and scheduler is None:
        _LOGGER.info("%s run here: workers that a package names count with a scheduler", names_of(list(graph.placed)))
    # What is given for an FMU goes before what the package says.
    named = {} if scheduler is None or ALL in {*(placed or ()), *isolated} else graph.placed
    placed = {**{name: worker for name, worker in named.items() if name not in isolated}, **(placed or {})}
    if scheduler is not None and not placed:
        raise InputError(
            f"scheduler = {scheduler} has no effect with FMUs on this machine; it has with place, or a package that "
            "names workers"
        )
    wanted = ((isolated, "to be isolated"), (exchanged, "to be run by model exchange"), (placed, "to be placed"))
    for names, what in wanted:
        for name in names:
            if name not in (ALL, *graph.units):
                raise InputError(f"there is no FMU '{name}' {what}; {closest_match(name, (ALL, *graph.units))}")
    with ExitStack() as stack:
        archives: dict[tuple[Path, bool | None], Archive] = {}
        instances: dict[str, Instance] = {}
        starts = _starts(graph, parameters or {})
        remote = _begun(graph, isolated, placed, scheduler, limit, stack)
        for name, file in graph.units.items():
            how = True if name in exchanged or ALL in exchanged else graph.exchanged.get(name)
            there = remote.get(name)
            if isinstance(there, PlacedFmu):
                archive = there.unpack(file, how, graph.called.get(file))
                instances[name] = IsolatedInstance(name, archive, there, solver, starts[name])
            else:
                if (file, how) not in archives:
                    archives[file, how] = Archive(file, how, graph.called.get(file))
                    stack.callback(archives[file, how].close)
                archive = archives[file, how]
                instances[name] = (
                    make_instance(name, archive, solver, starts[name])
                    if there is None
                    else IsolatedInstance(name, archive, there, solver, starts[name])
                )
            instances[name].carried = archive.carried
            stack.callback(instances[name].close)
        if solver != SOLVERS[0] and not any(instance.is_exchanged for instance in instances.values()):
            raise InputError(f"the FMU solver '{solver}' has no effect: no FMU is run by model exchange")
        yield instances


def _starts(graph: SystemGraph, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return start values by FMU and variable: those of the package, and behind them what is given."""
    starts: dict[str, dict[str, Any]] = {name: {} for name in graph.units}
    for (name, variable), value in graph.parameters.items():
        if name in starts:
            starts[name][variable] = value
    for reference, value in behind_connectors(parameters, graph).items():
        name, _, variable = reference.partition(".")
        if name in starts:
            starts[name].pop(variable, None)  # the last one of two names of a variable counts
            starts[name][variable] = value
    return starts


def _begun(
    graph: SystemGraph,
    isolated: Collection[str],
    placed: Mapping[str, str],
    scheduler: str | None,
    limit: float | None,
    stack: ExitStack,
) -> dict[str, RemoteFmu]:
    """Begin the processes of FMUs that run in others, all before one is waited for; the stack ends them."""
    remote: dict[str, RemoteFmu] = {}
    workers = None if scheduler is None else Workers(scheduler)
    if workers is not None:
        stack.callback(workers.close)
    for name in graph.units:
        worker = placed.get(name, placed.get(ALL))
        if worker is not None:
            assert workers is not None
            remote[name] = PlacedFmu(name, workers, worker, limit)
        elif name in isolated or ALL in isolated:
            remote[name] = FmuProcess(name, limit)
        else:
            continue
        stack.callback(remote[name].close)
    return remote


def by_instance(values: Mapping[str, Any], instances: Mapping[str, Instance]) -> dict[tuple[str, str], Any]:
    """Return values by (instance, variable) instead of `instance.variable`; arrays become their elements.

    Aliases become the variables behind them.

    Raises
    ------
    InputError
        When there is no such instance or variable, a variable is given twice by two of its names, or an array is given
        another number of values than it has.
    """
    result: dict[tuple[str, str], Any] = {}
    for reference, value in values.items():
        name, _, variable = reference.partition(".")
        if name not in instances:
            raise InputError(f"there is no FMU '{name}' for '{reference}'; {closest_match(name, instances)}")
        variable = instances[name].known_name(variable)
        elements = instances[name].arrays.get(variable)
        if elements is not None:
            for element, each in by_element(reference, elements, value).items():
                take(result, (name, element), each, instances)
            continue
        if variable not in instances[name].variables:
            raise InputError(
                f"{name} has no variable '{variable}'; {closest_match(variable, instances[name].variables)}"
            )
        take(result, (name, variable), value, instances)
    return result
