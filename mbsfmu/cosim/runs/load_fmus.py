"""FMUs of a run from files, folders and SSP packages, and what they contain."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lxml import etree

from mbsfmu.base.archives import scratch
from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.graph import Connection, Exposed, SystemGraph, behind_connectors, by_element, take
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.archive import Archive, read_fmu
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.cosim.fmus.instantiation import make_instance
from mbsfmu.cosim.fmus.isolation import FmuProcess, IsolatedInstance, RemoteFmu
from mbsfmu.cosim.fmus.model_exchange import SOLVERS
from mbsfmu.cosim.fmus.placed_fmu import PlacedFmu, Workers
from mbsfmu.cosim.fmus.variable_descriptions import STRUCTURAL, described_states, described_with, structural_values
from mbsfmu.cosim.runs.coupling_options import ALL
from mbsfmu.cosim.ssp import STRUCTURE, read_ssp
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measurement_units import IDENTITY, number_in

if TYPE_CHECKING:
    from mbsfmu.model.machine import Ends, Machine


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


_LIBRARIES = (".so", ".dll", ".dylib")
_INTERFACES = {
    "coSimulation": "co-simulation",
    "modelExchange": "model exchange",
    "scheduledExecution": "scheduled execution",
}
_CAPABILITIES = {
    "canGetAndSetFMUstate": "saves its state",
    "canGetAndSetFMUState": "saves its state",
    "canSerializeFMUstate": "serializes its state",
    "canSerializeFMUState": "serializes its state",
    "providesDirectionalDerivative": "directional derivatives",
    "providesDirectionalDerivatives": "directional derivatives",
    "providesAdjointDerivatives": "adjoint derivatives",
    "canHandleVariableCommunicationStepSize": "variable communication steps",
    "canInterpolateInputs": "interpolates inputs",
    "providesIntermediateUpdate": "intermediate update",
    "mightReturnEarlyFromDoStep": "may return early",
    "hasEventMode": "event mode",
    "canBeInstantiatedOnlyOncePerProcess": "only one instance a process",
    "needsExecutionTool": "needs its tool",
}
"""The flags of a model description that decide how an FMU can be run, as FMI 2.0 and 3.0 spell them."""


def is_source(path: str) -> bool:
    """Return whether a path names an FMU, an SSP package, or the folder of an unpacked package."""
    return Path(path).suffix.lower() in (".fmu", ".ssp", ".ssd") or (Path(path) / STRUCTURE).is_file()


def source_overview(path: str | os.PathLike[str], parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the content of an FMU or SSP package; nothing is loaded or run, so any platform is possible.

    Parameters
    ----------
    path
        An FMU of FMI 1.0, 2.0 or 3.0, an SSP package, or the folder of an unpacked one.
    parameters
        Values of structural parameters, by `name` of an FMU and `component.name` of a package; arrays have the sizes
        that follow from them.

    Returns
    -------
    dict
        Of an FMU: `model`, `description`, `fmi` (the version), `interfaces`, `platforms`, `sources` (whether it has
        source code), `capabilities`, `tool`, `date`, `size` in bytes, `start`, `stop`, `step` and `tolerance` of its
        default experiment (s; None where it has none), and `variables` with `name`, `kind` (causality, or state),
        `type`, `variability`, `unit`, `default`, `minimum`, `maximum` and `description`. Of a package: `package`,
        `start`, `stop`, `components` (such overviews by name), `connections`, `inputs`, `outputs`, and the
        `parameters` that it sets.

    Raises
    ------
    InputError
        When the file is not there, or cannot be read, or a parameter is not there, is not structural or is refused.
    """
    path = Path(path)
    parameters = parameters or {}
    if path.suffix.lower() == ".fmu":
        alone = f"{path.stem}."
        return _fmu(path, str(path), path.stem, {name.removeprefix(alone): each for name, each in parameters.items()})
    with scratch() as folder:
        graph = read_ssp(package_of(path) or path, folder)
        values = _by_component(parameters, graph.units)
        called = {file: graph.called.get(file, str(file)) for file in graph.units.values()}
        read = {file: _fmu(file, called[file]) for file in called}
        changed = {name: _fmu(graph.units[name], called[graph.units[name]], name, values[name]) for name in values}
        return {
            "package": path.name,
            "start": graph.start,
            "stop": graph.stop,
            "components": {name: changed.get(name, read[file]) for name, file in graph.units.items()},
            "connections": [_connection(each) for each in graph.connections],
            "inputs": [_connector(each) for each in graph.inputs],
            "outputs": [_connector(each) for each in graph.outputs],
            "parameters": {".".join(name): value for name, value in graph.parameters.items()},
        }


def _connection(connection: Connection) -> dict[str, Any]:
    plain = connection.transformation == IDENTITY
    return {
        "source": ".".join(connection.source),
        "target": ".".join(connection.target),
        "factor": None if plain else connection.factor,
        "offset": None if plain else connection.offset,
    }


def _connector(exposed: Exposed) -> dict[str, Any]:
    return {"name": exposed.name, "variable": ".".join(exposed.end)}


def _by_component(parameters: Mapping[str, Any], components: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return values by component and variable."""
    result: dict[str, dict[str, Any]] = {}
    for reference, value in parameters.items():
        name, _, variable = reference.partition(".")
        if name not in components:
            raise InputError(f"there is no component '{name}' for '{reference}'; {closest_match(name, components)}")
        result.setdefault(name, {})[variable] = value
    return result


def _fmu(file: Path, called: str, name: str = "", values: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Return the content of an FMU, with values of structural parameters; `name` is what messages on these call it."""
    described, root, entries = read_fmu(file, called)
    structural = [each.name for each in described.modelVariables if each.causality == STRUCTURAL]
    for each in values:
        if each not in structural:
            raise InputError(
                f"{called} has no structural parameter '{each}', and others change nothing that is shown; "
                f"{closest_match(each, structural)}"
            )
    described = described_with(described, structural_values(name, described, values))
    experiment = described.defaultExperiment
    return {
        "model": described.modelName,
        "description": described.description,
        "fmi": described.fmiVersion,
        "interfaces": [name for attribute, name in _INTERFACES.items() if getattr(described, attribute) is not None],
        "platforms": sorted(
            {
                each.parts[1]
                for each in entries
                if len(each.parts) == 3 and each.parts[0] == "binaries" and each.suffix in _LIBRARIES
            }
        ),
        "sources": any(each.parts[0] == "sources" and each.suffix == ".c" for each in entries),
        "capabilities": _capabilities(root),
        "tool": described.generationTool,
        "date": described.generationDateAndTime,
        "size": file.stat().st_size,
        **{
            name: None if experiment is None else _number(getattr(experiment, attribute))
            for name, attribute in (
                ("start", "startTime"),
                ("stop", "stopTime"),
                ("step", "stepSize"),
                ("tolerance", "tolerance"),
            )
        },
        "variables": list(_variables(described, values)),
    }


def _capabilities(root: etree._Element) -> list[str]:
    """Return the flags that are set; FMPy leaves some of them out of FMI 3.0."""
    set_flags = {name for each in root for name, value in each.attrib.items() if value in ("true", "1")}
    return list(dict.fromkeys(text for name, text in _CAPABILITIES.items() if name in set_flags))


def _variables(described: Any, values: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    states = set(described_states(described.derivatives))
    known = {each.valueReference for each in described.modelVariables if each.name in values}
    for each in described.modelVariables:
        dimensions = "".join(f"[{_size(part, known)}]" for part in each.dimensions)
        causality = each.causality or "local"
        declared = None if each.declaredType is None else each.declaredType.unit
        yield {
            "name": each.name,
            "kind": "state" if causality == "local" and each.name in states else causality,
            "type": f"{each.type}{dimensions}",
            "variability": each.variability,
            "unit": each.unit or declared,
            "default": each.start,
            "minimum": each.min,
            "maximum": each.max,
            "description": each.description,
        }


def _size(dimension: Any, known: Collection[int]) -> Any:
    """Return the size of a dimension; the name of a structural parameter that is not among known references."""
    if dimension.start is not None:
        return dimension.start
    return dimension.variable.start if dimension.valueReference in known else dimension.variable.name


def _number(text: Any) -> float | None:
    return None if text is None else float(text)


@dataclass(frozen=True)
class Drawable:
    """Data for an animation of a coupled run.

    Attributes
    ----------
    texts
        What FMUs carry along, by name; nothing of those of others.
    connections
        Source and target of each connection.
    given, driven
        Values that were set at the start, and what somebody drives, as (unit, variable).
    """

    texts: Mapping[str, str]
    connections: tuple[tuple[Ends, Ends], ...]
    given: Mapping[Ends, Any]
    driven: frozenset[Ends]

    @classmethod
    def of(
        cls, graph: SystemGraph, units: Mapping[str, Instance], given: Mapping[Ends, Any], driven: Collection[Ends]
    ) -> Drawable:
        """Return the data of loaded FMUs."""
        texts = {name: unit.carried for name, unit in units.items() if unit.carried is not None}
        numbers = {ends: _drawn_number(units[ends[0]], ends[1], value) for ends, value in given.items()}
        return cls(texts, tuple((each.source, each.target) for each in graph.connections), numbers, frozenset(driven))

    def machine(self) -> Machine:
        """Return the machine that the FMUs are.

        Raises
        ------
        InputError
            When no FMU says what it is, or one has parts that are not loaded.
        """
        from mbsfmu.model.machine import machine_of_fmus  # noqa: PLC0415 - few runs are looked at

        found = machine_of_fmus(self.texts, self.connections, self.given, self.driven)
        if found is None:
            raise InputError("no FMU carries along what its bodies look like, as those of this toolkit do")
        return found


def _drawn_number(unit: Instance, variable: str, value: Any) -> Any:
    """Return a value that was set, in the unit of its variable where it is the text of a number."""
    if not isinstance(value, str) or unit.kinds.get(variable) != "Real":
        return value
    return number_in(value, unit.units[variable])
