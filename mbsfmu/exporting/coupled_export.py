"""Exports coupled FMUs as one FMU for co-simulation, with the compiled exchange of the master inside."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Unpack

from mbsfmu.base.archives import opened_archive
from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import Origin, content_key
from mbsfmu.base.interruption import heeding_interruptions
from mbsfmu.base.physical_units import dimension, is_si
from mbsfmu.compiling.compiler import (
    PLATFORMS,
    VERSIONS,
    WEBASSEMBLY,
    Fmi,
    compile_library,
    host_platform,
    platform_named,
    same_platform,
)
from mbsfmu.cosim.compiled.library import exchange_sources
from mbsfmu.cosim.coupling.algorithms import make_algorithm
from mbsfmu.cosim.coupling.coupling_data import NUMERIC, CouplingData, DrivenInputs
from mbsfmu.cosim.coupling.extrapolation import Extrapolation
from mbsfmu.cosim.coupling.graph import (
    Connection,
    Exposed,
    SystemGraph,
    behind_connectors,
    check_connections,
    connect_elements,
    is_text,
    undriven_inputs,
)
from mbsfmu.cosim.coupling.sweeps import OneSweep, names_of
from mbsfmu.cosim.fmus.archive import read_fmu
from mbsfmu.cosim.fmus.fmi2 import Fmi2Instance
from mbsfmu.cosim.fmus.fmi3 import Fmi3Instance
from mbsfmu.cosim.fmus.variable_descriptions import check_integer, typed_value
from mbsfmu.cosim.runs import preparation
from mbsfmu.cosim.runs.coupling_options import OF_COURSES, CouplingKeywords, CouplingOptions
from mbsfmu.cosim.runs.load_fmus import by_instance, instantiate, load_graph
from mbsfmu.exporting.coupled_tables import (
    Component,
    CoupledSystem,
    Given,
    Shown,
    Target,
    linked_sources,
    single_source_of,
    tables,
)
from mbsfmu.fmu.description import Capabilities, FmuDescription, as_written
from mbsfmu.fmu.fmu_package import common_files, refuse_to_overwrite, write_archive
from mbsfmu.fmu.standards import STANDARDS
from mbsfmu.modelling.measurement_units import BASE_UNITS, UnitOfMeasurement
from mbsfmu.modelling.variables import STRUCTURED_NAME, Causality, Naming, Variability, Variable, identifier
from mbsfmu.native.c_sources import identity_source, runtime_files
from mbsfmu.native.traced_code import string

ALGORITHMS = ("jacobi", "gauss-seidel")
EXTRAPOLATIONS = tuple(each for each in Extrapolation if each is not Extrapolation.DERIVATIVES)
"""What FMUs of coupled FMUs have."""
_RUNTIME = Path(__file__).parent / "coupled_runtime"
_LAYER = ("component.h", "unit.h", "visibility.h", "prefix.h", "host_checks.h", "times.h", "extrema.h")
_MAINS = {"coupled_system.c": "-O2", "coupled_fmu.c": "-O1"}
_EQUAL_STEPS = ("tolerance", "absolute_tolerance", "smallest_step", "largest_step", "iteration_tolerance")
_REFUSED = (*_EQUAL_STEPS, "maximum_iterations", "relaxation", "jacobian", "threads", "model_exchange", *OF_COURSES)
"""Options of co-simulations that an FMU of coupled FMUs does not have."""
_TOLERANCE = 1e-6  # that the description suggests where no component does; nothing depends on it
STEP = Variable(
    "coupling.step",
    Causality.PARAMETER,
    Variability.FIXED,
    unit="s",
    minimum=1e-9,
    description="communication step",
)
"""The communication step, which an importer may choose."""
_NAMESPACE = uuid.UUID("6f2bd5b8-9f5e-4b0e-8f3e-3a7d0a3f4c51")


@heeding_interruptions()
def export_coupled(
    source: str | Path | Sequence[str | Path],
    path: str | os.PathLike[str],
    *,
    options: CouplingOptions | None = None,
    connections: Sequence[str | tuple[str, str] | Connection] = (),
    parameters: Mapping[str, Any] | None = None,
    fmi: Fmi = 2,
    platforms: Sequence[str] = (),
    force: bool = False,
    **given: Unpack[CouplingKeywords],
) -> Path:
    """Write coupled FMUs as one FMU for co-simulation.

    The components lie unpacked among its resources. Between them is the compiled exchange of the master: a run of the
    FMU gives what `cosimulate` gives with the same options, to the last bit, but for start values that an algebraic
    loop determines, which are equal to round-off.

    Parameters
    ----------
    source
        An SSP file, a folder that holds one, or FMU files, as for `cosimulate`.
    path
        The file to write.
    options, given
        Options, and those of them that are given by name: `algorithm` (`jacobi` or `gauss-seidel`), `extrapolation`
        (`adaptive`, `zero`, `linear` or `quadratic`), `order`, `rates`, `step`, `stop`, `energy_correction`,
        `unit_tolerance` and `strict` of `CouplingOptions`.
    connections
        `a.y=b.u`, beside those of the package.
    parameters
        Start values by `component.variable` or connector of the system, which the FMU begins with.
    fmi
        Version of the FMI: 2 for FMI 2.0, 3 for FMI 3.0. Components may be of either.
    platforms
        Platforms such as `linux64`; the one of this machine by default.
    force
        Whether a file that is there is replaced.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        When a file is wrong or there already, an option is not supported, or a component cannot do what is asked or
        lacks a platform; nothing is written.
    SimulationError
        When a component cannot be instantiated.
    """
    target = Path(path)
    if fmi not in VERSIONS:
        raise InputError(f"there is no FMI {fmi} for units; there are {' and '.join(map(str, VERSIONS))}")
    if target.suffix != ".fmu":
        raise InputError(f"coupled FMUs are written to one file, '{target}' must end in .fmu")
    refuse_to_overwrite(target, force)
    chosen = CouplingOptions.of(options, given, ("connections", "parameters", "fmi", "platforms", "force"))
    places = tuple(dict.fromkeys(platform_named(name, fmi) for name in platforms or [host_platform(fmi)]))
    with coupled_code(
        source, target.stem, places, options=chosen, connections=connections, parameters=parameters, fmi=fmi
    ) as code:
        standard = STANDARDS[fmi]
        description = code.description
        described = standard.describe(description, [], False)
        binaries = (
            (f"binaries/{place}/{description.identifier}{PLATFORMS[place].suffix}", code.library(place))
            for place in places
        )
        common = common_files(description, standard, described, None, None)
        return write_archive(target, chain(common, binaries, code.components()))


@contextmanager
def coupled_code(
    source: str | Path | Sequence[str | Path],
    name: str,
    places: Sequence[str],
    *,
    options: CouplingOptions,
    connections: Sequence[str | tuple[str, str] | Connection] = (),
    parameters: Mapping[str, Any] | None = None,
    fmi: Fmi = 2,
) -> Iterator[CoupledCode]:
    """Give the code of coupled FMUs as one FMU, of a name, for platforms of its version of the FMI.

    Other parameters and errors are those of `export_coupled`.
    """
    _check_options(options)
    with ExitStack() as stack:
        chosen = options
        graph = load_graph(source, stack, strict=chosen.strict)
        parsed = tuple(map(Connection.of, connections))
        graph = replace(graph, connections=(*graph.connections, *parsed))
        if graph.joints:
            raise InputError(
                f"the package has the joint {graph.joints[0]}, which needs the master to iterate; an FMU of coupled "
                "FMUs cannot"
            )
        files = _Files.of(graph, places)
        instances = stack.enter_context(instantiate(graph, parameters=parameters))
        for component, instance in instances.items():
            for variable, value in instance.configured.items():
                raise InputError(
                    f"{component}.{variable} is set to {value}: it is a structural parameter, which keeps its start "
                    "value in an FMU of coupled FMUs"
                )
        graph = connect_elements(graph, instances)
        check_connections(graph, instances)
        for connection in graph.connections:
            if is_text(connection, instances):
                raise InputError(f"connection {connection} is of type String, which an FMU of coupled FMUs lacks")
        values = by_instance(behind_connectors(parameters or {}, graph), instances)
        starts = {**graph.parameters, **values}
        unset = {(name, each) for name, instance in instances.items() for each in instance.structural}
        graph = replace(graph, parameters={end: value for end, value in starts.items() if end not in unset})
        made = _Coupled(graph, _components(instances), chosen, files)
        description, sources = made.described(name, fmi)
        yield CoupledCode(description, sources, {**_MAINS, f"fmi{fmi}.c": "-O1"}, files)


def _check_options(options: CouplingOptions) -> None:
    """Check that the options are those of equal steps without iteration."""
    if options.control != "fixed":
        raise InputError(f"an FMU of coupled FMUs makes equal steps; the control '{options.control}' is not supported")
    if options.algorithm not in ALGORITHMS:
        raise InputError(
            f"an FMU of coupled FMUs does not iterate its steps; '{options.algorithm}' is not supported; take "
            f"{' or '.join(ALGORITHMS)}"
        )
    if options.extrapolation not in EXTRAPOLATIONS:
        raise InputError(
            "the extrapolation 'derivatives' is not supported in an FMU of coupled FMUs; take adaptive, zero, linear "
            "or quadratic"
        )
    for name in _REFUSED:
        if getattr(options, name) != options.default(name):
            raise InputError(f"the option {name.replace('_', ' ')} has no effect in an FMU of coupled FMUs")


def _components(instances: Mapping[str, Any]) -> dict[str, Component]:
    """Return the instances, which must be for co-simulation."""
    exchanged = [name for name, each in instances.items() if not isinstance(each, Fmi2Instance | Fmi3Instance)]
    if exchanged:
        raise InputError(
            f"an FMU of coupled FMUs takes FMUs for co-simulation; {names_of(exchanged)} would be run by model exchange"
        )
    return dict(instances)


def _links(place: str) -> bool:
    """Return whether the components are linked: WebAssembly loads no libraries."""
    return PLATFORMS[place].suffix == WEBASSEMBLY


def _link(place: str) -> tuple[str, ...]:
    """Return further linker flags: old Linux systems have a separate library for loading libraries."""
    return ("-ldl",) if PLATFORMS[place].suffix == ".so" else ()


def _platform_source(place: str) -> dict[str, str]:
    """Return the file, by its name, that says where the libraries of components are on a platform."""
    names = {fmi: same_platform(place, fmi) or "" for fmi in VERSIONS}
    lines = [f"#define PLATFORM_OF_FMI{fmi} {string(name)}" for fmi, name in names.items()]
    lines += ["#define LINKED_COMPONENTS 1"] if _links(place) else []
    return {"platform.h": "\n".join([*lines, f"#define SUFFIX {string(PLATFORMS[place].suffix)}", ""])}


def _sources(fmi: Fmi) -> dict[str, str]:
    """Return the C files that are the same for all systems."""
    runtime = runtime_files()
    layer = [name for name in runtime if name in _LAYER or name.startswith(f"fmi{fmi}")]
    files = {name: runtime[name].read_text("utf-8") for name in layer}
    own = {file.name: file.read_text("utf-8") for file in sorted(_RUNTIME.glob("*.[ch]"))}
    says = "#define CO_SIMULATION 1\n#define MODEL_EXCHANGE 0\n#define PERIODIC_CLOCKS 0\n#define TRIGGERED_CLOCKS 0\n"
    return {**exchange_sources(), **files, **own, "interfaces.h": says}


@dataclass(frozen=True)
class _Files:
    """The files of components.

    Attributes
    ----------
    folders
        Of each component, its folder among the resources.
    descriptions
        Of each component, as FMPy reads it.
    paths
        Of each folder, the FMU that goes there.
    linked
        By these folders, what is linked for platforms that load no libraries.
    """

    folders: dict[str, str]
    descriptions: dict[str, Any]
    paths: dict[str, Path]
    linked: dict[str, tuple[int, str]]

    @classmethod
    def of(cls, graph: SystemGraph, places: Sequence[str]) -> _Files:
        """Find the files; each must have a library for all platforms.

        Raises
        ------
        InputError
            When one cannot be read or lacks a platform.
        """
        folders: dict[Path, str] = {}
        descriptions: dict[Path, Any] = {}
        linked: dict[str, tuple[int, str]] = {}
        for name, path in graph.units.items():
            called = graph.called.get(path) or str(path)
            if path in folders:
                continue
            description, _, entries = read_fmu(path, called)
            names = set(map(str, entries))
            interface = description.coSimulation
            if interface is None or description.fmiVersion not in ("2.0", "3.0"):
                raise InputError(
                    f"an FMU of coupled FMUs takes FMUs of FMI 2.0 and 3.0 for co-simulation, which {called} is not"
                )
            folders[path] = f"{len(folders)}_{interface.modelIdentifier}"
            descriptions[path] = description
            if any(map(_links, places)):
                linked[folders[path]] = single_source_of(description, path, f"the component {name} ({called})")
            for place in places:
                if _links(place):
                    continue
                folder = same_platform(place, 2 if description.fmiVersion == "2.0" else 3)
                library = f"binaries/{folder}/{interface.modelIdentifier}{PLATFORMS[place].suffix}"
                if library not in names:
                    raise InputError(f"the component {name} ({called}) has no binary for {folder or place}")
        return cls(
            {name: folders[path] for name, path in graph.units.items()},
            {name: descriptions[path] for name, path in graph.units.items()},
            {folder: path for path, folder in folders.items()},
            linked,
        )

    def content(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files of all components by their names in the archive."""
        for folder, path in self.paths.items():
            with opened_archive(path) as archive:
                for each in archive.infolist():
                    if not each.is_dir():
                        yield f"resources/{folder}/{each.filename}", archive.read(each)

    def key(self) -> list[tuple[str, str]]:
        """Return the identity of these files."""
        return [(folder, hashlib.sha256(path.read_bytes()).hexdigest()) for folder, path in self.paths.items()]


@dataclass(frozen=True)
class CoupledCode:
    """The code of coupled FMUs as one FMU.

    Attributes
    ----------
    description
        The FMU's description.
    sources, mains
        C files by name but for those of a platform, and which are compiled with how much optimization.
    files
        The files of the components.
    """

    description: FmuDescription
    sources: Mapping[str, str]
    mains: Mapping[str, str]
    files: _Files

    def library(self, place: str, beside: Mapping[str, str] | None = None) -> bytes:
        """Return the compiled code for a platform, with further C files by name that are compiled beside."""
        texts, mains = linked_sources(self.files.linked) if _links(place) else ({}, {})
        sources = {**self.sources, **texts, **_platform_source(place), **(beside or {})}
        mains = {**self.mains, **mains, **dict.fromkeys(beside or {}, "-O2")}
        return compile_library(sources, mains, place, flags=_link(place)).read_bytes()

    def components(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files of all components by their names in the archive."""
        return self.files.content()


class _Coupled:
    """Coupled FMUs on their way to one.

    Parameters
    ----------
    graph
        What is coupled, scalars alone.
    instances
        The components, instantiated.
    options
        How steps are made.
    files
        The files of the components.
    """

    def __init__(
        self, graph: SystemGraph, instances: dict[str, Component], options: CouplingOptions, files: _Files
    ) -> None:
        self._graph, self._instances, self._options, self._files = graph, instances, options, files
        settings = options.settings(instances)
        rates = preparation.whole_rates(options.rates, instances)
        self._stop, self._step = preparation.experiment(graph, instances, options.stop, options.step)
        nothing = DrivenInputs({}, instances, graph.connections, self._step)
        self._at_start = CouplingData(instances, graph.connections, nothing)
        lasting = [
            each
            for each in graph.connections
            if instances[each.target[0]].variables[each.target[1]].causality is Causality.INPUT
        ]
        exchange = CouplingData(instances, lasting, nothing, rates, settings.extrapolation.rows)
        algorithm = make_algorithm(exchange, settings)
        assert isinstance(algorithm, OneSweep)
        self._algorithm = algorithm
        if not exchange.names:
            raise InputError("no component has a numeric output; there is nothing to couple")
        for member in (*self._at_start.members, *exchange.members):
            if not all(port.compiles for port in (member.entries, member.outputs)):
                raise InputError(
                    f"{member.instance.name} has connected inputs or outputs of FMI 3.0 that are not of type Float64, "
                    "or are set at events; an FMU of coupled FMUs does not support them"
                )
        self._units: dict[str, UnitOfMeasurement] = {}

    def described(self, name: str, fmi: Fmi) -> tuple[FmuDescription, dict[str, str]]:
        """Return the FMU's description, and its C files by name, except those of a platform."""
        step = replace(STEP, start=self._step), Given("GIVEN_STEP", (), self._step)
        variables = [*self._inputs(), *self._parameters(), step, *self._outputs()]
        names = [each.name for each, _ in variables]
        twice = next((each for index, each in enumerate(names) if each in names[:index]), None)
        if twice is not None:
            raise InputError(f"two variables of the FMU would be called '{twice}'; rename a connector")
        listed = [each for each, _ in variables]
        naming: Naming = "structured" if all(map(STRUCTURED_NAME.match, names)) else "flat"
        interfaces = {each: description.coSimulation for each, description in self._files.descriptions.items()}
        system = CoupledSystem(
            self._instances,
            self._at_start,
            self._algorithm,
            {end: self._typed(end, value) for end, value in self._graph.parameters.items()},
            {each.name: place for each, place in variables},
            self._files.folders,
            {each: interface.modelIdentifier for each, interface in interfaces.items()},
            {each: description.guid for each, description in self._files.descriptions.items()},
            self._options.unit_tolerance,
            STEP.minimum or 0.0,
        )  # fmt: skip
        shown = [index for index, (each, _) in enumerate(variables) if each.causality is Causality.OUTPUT]
        described = FmuDescription(
            name=name,
            description=f"{names_of(list(self._instances))}, coupled at steps of {self._step:g} s",
            origin=Origin(),
            tool=f"mbsfmu {importlib.metadata.version('mbsfmu')}",
            identifier=identifier(name),
            identity="",
            capabilities=Capabilities(
                needs_tool=any(each.needsExecutionTool for each in interfaces.values()),
                takes_any_step=all(each.takes_any_step for each in self._instances.values()),
                saves_state=all(each.saves_state for each in self._instances.values()),
                serializes_state=False,
                only_once=any(each.canBeInstantiatedOnlyOncePerProcess for each in interfaces.values()),
            ),
            stop_time=self._stop,
            step_size=self._step,
            tolerance=self._options.unit_tolerance or _TOLERANCE,
            variables=as_written(listed, [each.nominal for each in listed], naming),
            outputs=dict.fromkeys(shown),
            initial_unknowns=dict.fromkeys(shown),
            naming=naming,
            foreign_units={unit: _attributes(each) for unit, each in self._units.items()},
        )
        sources = {**_sources(fmi), **tables(system)}
        key = content_key(described, sorted(sources.items()), self._files.key())
        described = replace(described, identity="{" + str(uuid.uuid5(_NAMESPACE, key)) + "}")
        identity = identity_source(described.identity)
        return described, sources | identity | STANDARDS[fmi].generate(described)

    # -- variables of the FMU -----------------------------------------------------------------------------------------

    def _inputs(self) -> Iterator[tuple[Variable, Given]]:
        """Yield the connectors of the system, and the inputs of components that nothing drives.

        Among them those that follow a signal inside their component until they are set.
        """
        connectors: dict[str, list[Exposed]] = {}
        for exposed in self._graph.inputs:
            connectors.setdefault(exposed.name, []).append(exposed)
        for name, ends in connectors.items():
            if all(self._instances[each.end[0]].kinds[each.end[1]] in NUMERIC for each in ends):
                yield self._connector(name, ends)
        known = self._known()
        for name in undriven_inputs(self._graph, self._instances, known, followed_too=True):
            component, _, variable = name.partition(".")
            if self._instances[component].kinds[variable] in NUMERIC:
                yield self._given(name, (component, variable), "GIVEN_INPUT")

    def _parameters(self) -> Iterator[tuple[Variable, Given]]:
        """Yield the parameters of components that no connection and no connector drives."""
        driven = {each.target for each in self._graph.connections} | self._known()
        for component, instance in self._instances.items():
            for name, variable in instance.variables.items():
                if (
                    variable.causality is not Causality.PARAMETER
                    or instance.kinds[name] not in NUMERIC
                    or name in instance.aliases
                ):
                    continue
                if (component, name) not in driven:
                    tunable = variable.variability is Variability.TUNABLE
                    kind = "TUNABLE_PARAMETER" if tunable else "GIVEN_PARAMETER"
                    yield self._given(f"{component}.{name}", (component, name), kind)

    def _outputs(self) -> Iterator[tuple[Variable, Shown]]:
        """Yield the connectors of the system, and the outputs of components, which are local variables beside them."""
        exchange = self._algorithm.exchange
        for exposed in self._graph.outputs:
            if exposed.end not in exchange.columns:
                continue
            variable = replace(self._variable(exposed.name, exposed.end), causality=Causality.OUTPUT)
            yield (
                replace(variable, **self._unit(exposed.unit)),
                Shown(exposed.end, exposed.map),
            )
        causality = Causality.LOCAL if self._graph.outputs else Causality.OUTPUT
        for end in exchange.names:
            yield replace(self._variable(".".join(end), end), causality=causality), Shown(end)

    def _known(self) -> set[tuple[str, str]]:
        """Return the variables behind the connectors of the system, as (component, variable)."""
        return {
            (name, self._instances[name].behind(variable)) for name, variable in (e.end for e in self._graph.inputs)
        }

    def _connector(self, name: str, ends: list[Exposed]) -> tuple[Variable, Given]:
        first = ends[0]
        variables = [self._instances[each.end[0]].variables[each.end[1]] for each in ends]
        parameters = [each for each in variables if each.causality is Causality.PARAMETER]
        fixed = any(each.variability is not Variability.TUNABLE for each in parameters)
        kind = "GIVEN_INPUT" if not parameters else "GIVEN_PARAMETER" if fixed else "TUNABLE_PARAMETER"
        variable, given = self._given(name, first.end, kind)
        start = first.map.inverse()(given.start)
        targets = tuple(Target(*each.end, each.map) for each in ends)
        variable = replace(variable, **self._unit(first.unit), start=start, nominal=None)
        return variable, Given(kind, targets, start)

    def _given(self, name: str, end: tuple[str, str], kind: str) -> tuple[Variable, Given]:
        """Return a variable that is set, with the start value of the package, or of the component."""
        described = self._instances[end[0]].element(end[1]).described
        start = self._graph.parameters.get(end)
        if start is None:
            values = str(described.start if described.start is not None else 0.0).split()
            element = self._instances[end[0]].element(end[1])
            start = values[element.place] if len(values) == element.size else values[0]
        value = float(self._typed(end, start))
        causality = Causality.INPUT if kind == "GIVEN_INPUT" else Causality.PARAMETER
        variable = replace(self._variable(name, end), causality=causality, start=value)
        if causality is Causality.PARAMETER:
            tunable = kind == "TUNABLE_PARAMETER"
            variable = replace(variable, variability=Variability.TUNABLE if tunable else Variability.FIXED)
        return variable, Given(kind, (Target(*end),), value)

    def _typed(self, end: tuple[str, str], value: Any) -> Any:
        """Return a value as a variable of a component asks for it."""
        instance = self._instances[end[0]]
        described = instance.element(end[1]).described
        typed = typed_value(described, value, instance.units[end[1]])
        check_integer(".".join(end), described, typed)
        return typed

    def _variable(self, name: str, end: tuple[str, str]) -> Variable:
        """Return a variable of the FMU for one of a component; whole numbers and truth values are numbers too."""
        instance = self._instances[end[0]]
        variable, kind = instance.variables[end[1]], instance.kinds[end[1]]
        continuous = kind == "Real" and variable.variability is Variability.CONTINUOUS
        said = variable.description if kind == "Real" else f"{variable.description} ({kind})".strip()
        return Variable(
            name,
            variability=Variability.CONTINUOUS if continuous else Variability.DISCRETE,
            **self._unit(instance.units[end[1]]),
            nominal=variable.nominal if continuous else None,
            description=said,
        )

    # -- units of measurement ------------------------------------------------------------------------------------------

    def _unit(self, unit: UnitOfMeasurement) -> dict[str, Any]:
        """Return the fields of a variable that say its unit, and remember the definition of one that is not ours.

        Raises
        ------
        InputError
            When two components define it in different ways.
        """
        said = {"unit": unit.name, "definition": unit}
        if not unit.name:
            return said
        if is_si(unit.name):
            ours = UnitOfMeasurement.of_attributes(unit.name, dimension(unit.name))
            if unit.exponents is not None and (unit.exponents, unit.factor) != (ours.exponents, ours.factor):
                raise InputError(f"a component defines the unit '{unit.name}' in another way than the SI")
            return said
        known = self._units.setdefault(unit.name, unit)
        if known.exponents is None:
            self._units[unit.name] = unit
        elif unit.exponents is not None and replace(unit, relative=known.relative) != known:
            raise InputError(f"two components define the unit '{unit.name}' in different ways")
        return said


def _attributes(unit: UnitOfMeasurement) -> dict[str, str] | None:
    """Return the definition of a unit in base units; None without one."""
    if unit.exponents is None:
        return None
    bases = {base: str(power) for base, power in zip(BASE_UNITS, unit.exponents, strict=True) if power}
    return bases | {"factor": repr(unit.factor), "offset": repr(unit.offset)}
