"""Tables of an FMU of coupled FMUs: what C knows of its components, and components linked with it.

The tables of an FMU of coupled FMUs: what C knows of the components, written as initial values of C.

`coupled_runtime/system_tables.h` declares the structures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.base.archives import opened_archive
from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.consistent_start import OutputGroup, OutputsOfInstance, is_loop, loop_names, sort_outputs
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import Extrapolation
from mbsfmu.cosim.coupling.sweeps import OneSweep
from mbsfmu.cosim.fmus.fmi2 import Fmi2Instance
from mbsfmu.cosim.fmus.fmi3 import Fmi3Instance
from mbsfmu.cosim.fmus.library_instance import LibraryPort
from mbsfmu.modelling.measurement_units import IDENTITY, LinearMap
from mbsfmu.native.shared import constants
from mbsfmu.native.traced_code import number, string

Component = Fmi2Instance | Fmi3Instance
"""An FMU for co-simulation in the process."""
_TYPES = ("Float64", "Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Boolean")
_FMI2 = {"Real": "FLOAT64", "Integer": "INT32", "Enumeration": "INT32", "Boolean": "INT32", "String": "STRING"}
_FMI3 = {**{each: each.upper() for each in _TYPES}, "Enumeration": "INT64", "String": "STRING"}
"""What C calls the types of values."""
_SETTERS = {2: {"Enumeration": "Integer"}, 3: {"Enumeration": "Int64"}}
"""What the functions for a type end in, where that is another word."""

_CONSTANTS = ("SAME_TIME", "NEIGHBOURS", "RESOLVED_STEP", "LEAST_STEP", "MOST_STEPS", "OVERSHOOT", "LARGEST")
"""Constants that C has from Python."""


@dataclass(frozen=True)
class Target:
    """A variable of a component that a value of the FMU goes to.

    Attributes
    ----------
    component, variable
        The names of both.
    map
        What becomes of the value on its way.
    """

    component: str
    variable: str
    map: LinearMap = IDENTITY


@dataclass(frozen=True)
class Given:
    """A variable of the FMU that is set: its kind in C, where its value goes, and its start value."""

    kind: str
    targets: tuple[Target, ...]
    start: float


@dataclass(frozen=True)
class Shown:
    """A variable of the FMU that shows an output of a component; its kind in C is always the same."""

    end: tuple[str, str]
    map: LinearMap = IDENTITY
    kind: str = "READ_OUTPUT"


@dataclass(frozen=True)
class CoupledSystem:
    """All that an FMU of coupled FMUs is made from.

    Attributes
    ----------
    instances
        The components by their names.
    at_start, algorithm
        The members with the connections that count for the start, and what makes the steps.
    starts
        Values of the package by (component, variable), in the types of the variables.
    variables
        Of the FMU by their names, in the order of the description.
    folders, identifiers, guids
        Of each component, its folder among the resources, its library without suffix, and what it is instantiated with.
    unit_tolerance
        Of the solvers inside the components; None for what they suggest.
    smallest_step
        Least communication step in s.
    """

    instances: dict[str, Component]
    at_start: CouplingData
    algorithm: OneSweep
    starts: dict[tuple[str, str], Any]
    variables: dict[str, Given | Shown]
    folders: dict[str, str]
    identifiers: dict[str, str]
    guids: dict[str, str]
    unit_tolerance: float | None
    smallest_step: float


def tables(system: CoupledSystem) -> dict[str, str]:
    """Return the C files of the tables by name; a library's suffix is left to `platform.h`."""
    writer = _Writer(system)
    exchange = system.algorithm.exchange
    components = [writer.component(name) for name in system.instances]
    groups = writer.groups()
    starts = [writer.start(end, value) for end, value in system.starts.items()]
    variables = [writer.variable(name, each) for name, each in system.variables.items()]
    turns = system.algorithm.turns if system.algorithm.in_turn else [(each, False) for each in exchange.members]
    places = {member.instance.name: index for index, member in enumerate(exchange.members)}
    flags = np.zeros(len(exchange.names), dtype=int)
    flags[system.algorithm.held] = 1
    listed = [
        ("struct ComponentSpec components", components),
        ("struct GroupSpec group_specs", groups),
        ("struct StartSpec starts", starts or ["{{0, 0, 0, 0, 0, 1, FLOAT64, 0, 1.0, 0.0}, 0.0, 0}"]),
        ("struct VariableSpec variables", variables),
        ("size_t turn_order", [str(places[member.instance.name]) for member, _ in turns]),
        ("unsigned char held", map(str, flags)),
        ("unsigned char corrected", map(str, system.algorithm.corrected[: len(flags)].astype(int))),
        ("char *const output_names", [string(".".join(name)) for name in exchange.names]),
    ]
    named = [f"static const {name}[] = {{\n    {_rows(rows)}\n}};" for name, rows in listed]
    return {"coupled_tables.h": "\n".join([*writer.lines, *named, ""]), "coupled_sizes.h": _sizes(system)}


def _rows(rows: Iterable[str]) -> str:
    return ",\n    ".join(rows)


def _sizes(system: CoupledSystem) -> str:
    algorithm, exchange = system.algorithm, system.algorithm.exchange
    degree = algorithm.settings.extrapolation.degree
    adapts = int(algorithm.settings.extrapolation is Extrapolation.ADAPTIVE)
    sizes = {
        "COMPONENTS": len(system.instances),
        "GROUPS": len(_sorted(system.at_start)),
        "STARTS": len(system.starts),
        "VARIABLES": len(system.variables),
        "STEP_VARIABLE": next(k for k, each in enumerate(system.variables.values()) if each.kind == "GIVEN_STEP"),
        "START_COLUMNS": len(system.at_start.names),
        "OUTPUTS": len(exchange.names),
        "ENTRIES": len(exchange.entry_sources),
        "ROWS": exchange.rows,
        "POINTS": degree,
        "ADAPTS": adapts,
        "KNOWN_ROWS": 2 + degree + 2 * adapts,
        "SWEEPS_AGAIN": algorithm.again,
        "IN_TURN": int(algorithm.in_turn),
        "CORRECTS": int(algorithm.settings.energy_correction),
        "TAKES_ANY_STEP": int(all(each.takes_any_step for each in system.instances.values())),
        "SAVES_STATE": int(all(each.saves_state for each in system.instances.values())),
    }
    lines = [f"enum {{ {name} = {value} }};" for name, value in sizes.items()]
    lines += [*constants(*_CONSTANTS), f"#define SMALLEST_STEP {number(system.smallest_step)}"]
    guard = ["#ifndef COUPLED_SIZES_H", "#define COUPLED_SIZES_H"]
    return "\n".join([*guard, *lines, "#endif", ""])


def _sorted(exchange: CouplingData) -> list[list[int]]:
    dependencies = {member.instance.name: member.instance.initial_dependencies for member in exchange.members}
    return sort_outputs(exchange, dependencies)


@dataclass
class _Writer:
    """Writes structures; arrays that they point to go to `lines`."""

    system: CoupledSystem
    lines: list[str] = field(default_factory=list)

    def _array(self, type_: str, values: Sequence[Any], written: Any = str) -> str:
        """Write an array; return its name, or NULL where it is empty."""
        if not len(values):
            return "NULL"
        name = f"array_{len(self.lines)}"
        self.lines.append(f"static const {type_} {name}[] = {{{', '.join(written(each) for each in values)}}};")
        return name

    def _version(self, instance: Component) -> int:
        return 2 if isinstance(instance, Fmi2Instance) else 3

    def _port(self, port: Any) -> str:
        assert isinstance(port, LibraryPort)
        prefix = port.unit.dialect.prefix
        blocks = [
            f"{{{string(f'{prefix}Get{each.kind}')}, {string(f'{prefix}Set{each.kind}')}, "
            f"{self._array('uint32_t', each.references)}, {len(each.references)}, {len(each.places)}, "
            f"{self._array('ptrdiff_t', each.places)}, {int(each.whole)}, {int(each.shares)}}}"
            for each in port.layout()
        ]
        slopes = port.slope_references()
        rows = self._array("struct BlockSpec", blocks)
        return f"{{{rows}, {len(blocks)}, {len(port.names)}, {self._array('uint32_t', slopes)}, {len(slopes)}}}"

    def _entries(self, port: Any, sources: Any, factors: Any, offsets: Any) -> str:
        return (
            f"{{{self._port(port)}, {self._array('ptrdiff_t', sources.tolist())}, "
            f"{self._array('double', factors.tolist(), number)}, {self._array('double', offsets.tolist(), number)}}}"
        )

    def _member_entries(self, member: CoupledInstance) -> str:
        return self._entries(member.entries, member.sources, member.factors, member.offsets)

    def component(self, name: str) -> str:
        """Write a component."""
        system, instance = self.system, self.system.instances[name]
        start, member = system.at_start.member(name), system.algorithm.exchange.member(name)
        later = dict(system.algorithm.turns)[member] if system.algorithm.in_turn else False
        tolerance = instance.own_tolerance(system.unit_tolerance)
        intermediate = instance.intermediate if isinstance(instance, Fmi3Instance) else ()
        has_events = isinstance(instance, Fmi3Instance) and instance.has_events
        values = [
            string(name),
            string(system.folders[name]),
            f"{string(system.identifiers[name])} SUFFIX",
            string(system.guids[name]),
            *map(int, (self._version(instance), has_events, instance.takes_any_step, instance.saves_state)),
            int(tolerance is not None),
            number(tolerance or 0.0),
            self._array("uint32_t", intermediate),
            len(intermediate),
            self._member_entries(start),
            self._port(start.outputs),
            start.place.start,
            self._member_entries(member),
            self._port(member.outputs),
            member.entry_place.start,
            member.place.start,
            *map(int, (member.converts, member.ramps, member.shares, member.rate, later)),
        ]
        return f"{{{', '.join(map(str, values))}}}"

    def groups(self) -> list[str]:
        """Write the outputs that are found together at the start, in their order."""
        exchange = self.system.at_start
        dependencies = {member.instance.name: member.instance.initial_dependencies for member in exchange.members}
        nominals, written = exchange.nominals(), []
        for columns in _sorted(exchange):
            group = OutputGroup(exchange, columns, dependencies)
            ordered = group.columns.tolist()
            parts = self._array("struct PartSpec", [self._part(each) for each in group.parts])
            real = [int(each not in exchange.held) for each in ordered]
            written.append(
                f"{{{self._array('ptrdiff_t', ordered)}, {len(ordered)}, "
                f"{int(is_loop(exchange, columns, dependencies))}, {self._array('unsigned char', real)}, "
                f"{self._array('double', nominals[ordered].tolist(), number)}, {parts}, {len(group.parts)}, "
                f"{string(loop_names(exchange, ordered))}}}"
            )
        return written

    def _part(self, part: OutputsOfInstance) -> str:
        instance, knowns, unknowns = part.member.instance, "NULL", "NULL"
        place = list(self.system.instances).index(instance.name)
        inputs, outputs = part.inputs, part.outputs
        assert isinstance(inputs, LibraryPort)
        assert isinstance(outputs, LibraryPort)
        differentiates = instance.gives_directional_derivatives and inputs.all_real and outputs.all_real
        if differentiates and all(inputs.unit.element(name).size == 1 for name in (*inputs.names, *outputs.names)):
            knowns, unknowns = (
                self._array("uint32_t", [port.unit.element(name).described.valueReference for name in port.names])
                for port in (inputs, outputs)
            )
        return (
            f"{{{place}, {self._entries(inputs, part.sources, part.factors, part.offsets)}, "
            f"{self._port(outputs)}, {knowns}, {unknowns}}}"
        )

    def _target(self, target: Target) -> str:
        instance = self.system.instances[target.component]
        version, element = self._version(instance), instance.element(target.variable)
        described = element.described
        word = _SETTERS[version].get(described.type, described.type)
        type_ = (_FMI2 if version == 2 else _FMI3)[described.type]
        values = [
            list(self.system.instances).index(target.component),
            string(f"fmi{version}Get{word}"),
            string(f"fmi{version}Set{word}"),
            described.valueReference,
            element.place,
            element.size,
            type_,
            int(instance.sets_at_events(target.variable)),
            number(target.map.factor),
            number(target.map.offset),
        ]
        return f"{{{', '.join(map(str, values))}}}"

    def start(self, end: tuple[str, str], value: Any) -> str:
        """Write a start value of the package."""
        target = self._target(Target(*end))
        if isinstance(value, bytes):
            raise InputError(f"{'.'.join(end)} is Binary; an FMU of coupled FMUs gives Binary variables no values")
        if isinstance(value, str):
            return f"{{{target}, 0.0, {string(value)}}}"
        if float(value) != value:
            raise InputError(f"{'.'.join(end)} is {value}; an FMU of coupled FMUs takes integers up to 2^53")
        return f"{{{target}, {number(value)}, NULL}}"

    def variable(self, name: str, variable: Given | Shown) -> str:
        """Write a variable of the FMU."""
        begin = f"{string(name)}, {variable.kind}"
        if isinstance(variable, Given):
            targets = self._array("struct TargetSpec", [self._target(each) for each in variable.targets])
            return f"{{{begin}, {targets}, {len(variable.targets)}, 0, 0, {number(variable.start)}, 1.0, 0.0}}"
        columns = self.system.at_start.columns[variable.end], self.system.algorithm.exchange.columns[variable.end]
        way = variable.map
        return f"{{{begin}, NULL, 0, {columns[0]}, {columns[1]}, 0.0, {number(way.factor)}, {number(way.offset)}}}"


_OPTIMIZATION = "-O2"
_OF_ALL = ("FreeInstance", "EnterInitializationMode", "ExitInitializationMode", "Terminate", "DoStep")
_FUNCTIONS = {
    2: (
        *(*_OF_ALL, "Instantiate", "SetupExperiment", "GetFMUstate", "SetFMUstate", "FreeFMUstate"),
        *(f"{way}{kind}" for way in ("Get", "Set") for kind in ("Real", "Integer", "Boolean", "String")),
        *("SetRealInputDerivatives", "GetDirectionalDerivative", "GetRealStatus", "GetBooleanStatus"),
    ),
    3: (
        *(*_OF_ALL, "InstantiateCoSimulation", "GetFMUState", "SetFMUState", "FreeFMUState"),
        *(
            f"{way}{'U' * unsigned}Int{bits}"
            for way in ("Get", "Set")
            for unsigned in (0, 1)
            for bits in (8, 16, 32, 64)
        ),
        *(f"{way}{kind}" for way in ("Get", "Set") for kind in ("Float64", "Float32", "Boolean", "String")),
        *("EnterEventMode", "EnterStepMode", "UpdateDiscreteStates", "GetDirectionalDerivative"),
    ),
}
"""What `coupled_runtime` calls of components, which every FMU has by the standards."""
_TYPE_DECLARATIONS = """\
/* Functions of linked components by name; the last one has none. */
#ifndef MBSFMU_LINKED_FUNCTION_H
#define MBSFMU_LINKED_FUNCTION_H

struct LinkedFunction {
    const char *name;
    void (*function)(void);
};

#endif
"""


def linked_sources(sources: Mapping[str, tuple[int, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the C files of linked components by name, and those that are compiled with their optimization.

    Parameters
    ----------
    sources
        By the folders of the components, their version of the FMI and their C source.
    """
    files, mains, declared, listed = {"linked_function.h": _TYPE_DECLARATIONS}, {}, [], []
    for index, (folder, (fmi, source)) in enumerate(sources.items()):
        prefix, table = f"linked_{index}_", f"linked_functions_{index}"
        names = [f"fmi{fmi}{name}" for name in _FUNCTIONS[fmi]]
        rows = [f"    {{{string(name)}, (void (*)(void)){prefix}{name}}}," for name in names]
        main = f"linked_{index}.c"
        files[f"component_{index}.c"] = source
        files[main] = "\n".join(
            [
                f"#define FMI{fmi}_FUNCTION_PREFIX {prefix}",
                f'#include "component_{index}.c"',
                '#include "linked_function.h"',
                f"const struct LinkedFunction {table}[] = {{",
                *rows,
                "    {0, 0},",
                "};",
                "",
            ]
        )
        mains[main] = _OPTIMIZATION
        declared.append(f"extern const struct LinkedFunction {table}[];")
        listed.append(f"{{{string(folder)}, {table}}}")
    files["linked_components.h"] = "\n".join(
        [
            '#include "linked_function.h"',
            *declared,
            "static const struct LinkedLibrary {",
            "    const char *folder;",
            "    const struct LinkedFunction *functions;",
            f"}} linked_libraries[] = {{{', '.join([*listed, '{0, 0}'])}}};",
            "",
        ]
    )
    return files, mains


def single_source_of(description: Any, path: Path, called: str) -> tuple[int, str]:
    """Return the version of the FMI and the C source of an FMU.

    Parameters
    ----------
    description
        As FMPy reads it.
    path, called
        The FMU, and what it is called in sentences.

    Raises
    ------
    InputError
        When it does not come with its source in a single file.
    """
    fmi = 2 if description.fmiVersion == "2.0" else 3
    sets = (each for configuration in description.buildConfigurations for each in configuration.sourceFileSets)
    names = dict.fromkeys(file for each in sets for file in each.sourceFiles)
    if len(names) != 1:
        raise InputError(
            f"{called} comes with {len(names) or 'no'} C source files; for WebAssembly components are linked from one: "
            "our FMUs have it with --sources single"
        )
    with opened_archive(path) as archive:
        text = archive.read(f"sources/{next(iter(names))}").decode("utf-8")
    return fmi, text
