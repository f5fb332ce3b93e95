"""The generated part of a native FMU: the traced functions of one model, long ones in files of their own.

Long functions in separate C files, to limit compiler memory and choose optimization levels.

A function in pieces is spread over several files, piece by piece; a header declares all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.formulations.formulation import StepKind
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.modelling.variables import ModelExchangeData
from mbsfmu.native.model_tables import ModelTables, balanced_functions, header_sizes
from mbsfmu.native.operations import Operations
from mbsfmu.native.shared import check_arguments, definitions
from mbsfmu.native.traced_code import declared, program_code, string, strings, traced_code
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.systems.expressions import PARTS
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.tracing.workspace import AnyFunction, RecordedFunction, TracedFunction

HEADER = "model_apart.h"
FILE = "model_apart_"
"""How the names of the files begin."""
LEVEL = "-Og"
"""How much they are optimized: gcc takes 1.4 times as long with -O1 and twice as long with -O2, and a Jacobian takes no
less time for it; without any it is twice as large."""
_LONG = 25_000
"""Characters from which on a function stands apart; where it is shorter, a declaration saves little."""
_FILE = 700_000
"""Characters of a file: gcc takes some 100 MB for it."""
_OTHERS = ("solve_linear(", "solve_loop(")
"""Static functions of the runtime that the files do not have."""
_DEFINITION = re.compile(r"^static (?:PIECE )?void (\w+)\(([^)]*)\) \{\n.*?^\}", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class _Function:
    """A function of C.

    Attributes
    ----------
    declaration
        What makes it known.
    text
        Its definition, which everybody can call.
    helpers
        What it calls, defined in each file.
    """

    declaration: str
    text: str
    helpers: Mapping[str, str]


class ApartCode:
    """The functions of a model that stand in files of their own."""

    def __init__(self) -> None:
        self._functions: list[_Function] = []

    def taken(self, code: str, helpers: Mapping[str, str]) -> str | None:
        """Move a function with its pieces to a separate file; return a forwarding one, or None if it stays.

        It does so where it is short, or calls what other files alone have.

        Parameters
        ----------
        code
            Its definition.
        helpers
            Functions that it may call, by name.
        """
        called = {name: text for name, text in helpers.items() if f"{name}(" in code}
        if len(code) < _LONG or any(each in text for text in (code, *called.values()) for each in _OTHERS):
            return None
        found = list(_DEFINITION.finditer(code))
        names = re.compile(rf"\b({'|'.join(each[1] for each in found)})\(")
        for each in found:
            body = names.sub(r"NAMED(mbsfmu_\1)(", each[0])
            text = re.sub(r"^static (?:PIECE )?", "", body)
            own = {name: helper for name, helper in called.items() if f"{name}(" in text}
            declaration = f"INTERNAL void NAMED(mbsfmu_{each[1]})({each[2]});"
            self._functions.append(_Function(declaration, text, own))
        name, parameters = found[-1][1], found[-1][2]
        handed = ", ".join(re.findall(r"(\w+)(?:,|$)", parameters))
        return f"static void {name}({parameters}) {{ NAMED(mbsfmu_{name})({handed}); }}"

    def files(self) -> dict[str, str]:
        """Return the files by name: the header, and those with the functions."""
        guard = HEADER.upper().replace(".", "_")
        declarations = "\n".join(each.declaration for each in self._functions)
        header = f"#ifndef {guard}\n#define {guard}\n\n{declarations}\n\n#endif\n"
        made, room = list[list[_Function]](), 0
        for each in self._functions:
            if room < len(each.text):
                made.append([])
                room = _FILE
            made[-1].append(each)
            room -= len(each.text)
        return {HEADER: header} | {f"{FILE}{number}.c": _file(functions) for number, functions in enumerate(made)}


def _file(functions: list[_Function]) -> str:
    helpers: dict[str, str] = {}
    for each in functions:
        helpers |= each.helpers
    parts = ['#include "model.h"', f'#include "{HEADER}"', *helpers.values(), *(each.text for each in functions)]
    return "\n\n".join(parts) + "\n"


_PART = "part_"
_NO_JACOBIAN = """/* Nothing asks for it. */
static void closure(const Parts *parts, double *violation, double *jacobian) {
    (void)parts;
    (void)violation;
    (void)jacobian;
}"""


_DERIVATIVES = ("slope", "change", "drift", "variation", "feedthrough", "output_rates", "by_accelerations", "mass")
"""How the names of functions end that are derivatives, or for these alone."""


def _is_derivative(function: AnyFunction) -> bool:
    return function.name.endswith(_DERIVATIVES)


class ModelCode:
    """The generated C files of one model, of which later ones call kernels of earlier ones.

    Parameters
    ----------
    simulation
        The simulation that makes its steps.
    exchange
        What an FMU has for model exchange.
    held
        Gets traced functions by name, with places for them in the files; without it they are there, as C.
    ensemble
        Whether it is for ensembles, which have no derivatives.
    errors
        Whether its steps estimate their errors, where they can.
    """

    def __init__(
        self,
        simulation: Simulation,
        exchange: ModelExchangeData | None = None,
        held: dict[str, Operations] | None = None,
        *,
        ensemble: bool = False,
        errors: bool = True,
    ) -> None:
        self._simulation = simulation
        self._held = held
        self._ensemble = ensemble
        self._apart = None if exchange is None or exchange.beside_steps else ApartCode()
        self._included = ['#include "model.h"', *([] if self._apart is None else [f'#include "{HEADER}"'])]
        self._functions = simulation.functions
        self._system = self._functions.system
        self._placed = self._system.start_system is not self._system
        self._steps = exchange is None or exchange.beside_steps
        kind = simulation.solver.kind if self._steps else StepKind.EXCHANGED
        self._needs = simulation.formulation.native_needs(kind)
        self._changes = self._functions.in_loops
        self._sizes = header_sizes(simulation, self._needs)
        self._sizes["INDICATORS"] = len(exchange.indicators) if exchange else 0
        self._written: set[str] = set()
        self._helpers_of_rest: set[str] = set()
        self._memories = {"work": 0, "factors": 0}
        self._tables = ModelTables(simulation, self._needs, exchange)
        if not self._steps:
            self._sizes["SOLVER"] = "EXCHANGED"
        if not errors:
            self._sizes |= dict.fromkeys(("ERROR", "ERROR_HISTORY", "ERROR_RECORD"), 0)
        if exchange:
            known = int(exchange.derivatives_known)
            self._sizes |= {"VARIABLES": len(self._tables.variables), "CHANGES_KNOWN": known}

    def header(self) -> str:
        """Write sizes, constants and lists, which all source files need; these are written before."""
        written = self._sizes | {each.upper(): size for each, size in self._memories.items()}
        written["CHANGES"] = int(self._changes)
        sizes = "\n".join(f"#define {name} {value}" for name, value in written.items())
        return self._file(sizes, "\n".join(definitions()), '#include "runtime.h"')

    def steps(self) -> str:
        """Write what every step needs."""
        helpers: dict[str, str] = {}
        functions = [self._code(each, helpers) for each in self._step_functions()]
        if not self._asks_for_jacobian:
            functions.append(_NO_JACOBIAN)
        tables = self._tables.of_steps(self._simulation.solver if self._steps else None)
        return self._file(*self._included, *self._once(helpers), *functions, *tables)

    @property
    def _asks_for_jacobian(self) -> bool:
        """Whether anything takes Φ_z as a matrix, which is as dense as the constraints are many."""
        return not (self._changes and self._placed) or bool(self._sizes["INDEPENDENT"])

    def flow(self) -> str:
        """Write the functions of the equations for external solvers."""
        helpers: dict[str, str] = {}
        functions = [self._code(each, helpers) for each in self._flow_functions()]
        return self._file('#include "model.h"', *self._once(helpers), *functions, *self._tables.of_equations())

    def readings(self) -> str:
        """Write what updates, jumps of inputs and readers need beside the steps."""
        helpers, functions = self._reading_code
        tables = self._tables.of_readings(watched=bool(self._sizes["INDEPENDENT"]))
        return self._file(*self._included, *self._once(helpers), *functions, *tables)

    @cached_property
    def _reading_code(self) -> tuple[dict[str, str], list[str]]:
        """Functions of CasADi and kernels by name that readers need, and the functions that call them."""
        helpers: dict[str, str] = {}
        return helpers, [self._code(each, helpers) for each in self._reading_functions()]

    def rest(self) -> str:
        """Write everything else; it is compiled together with what readers need."""
        helpers: dict[str, str] = {}
        functions = [self._code(each, helpers) for each in self._other_functions()]
        parts = list(self._balanced_parts(helpers))
        self._helpers_of_rest = helpers.keys() | self._reading_code[0].keys()
        own = self._once({name: text for name, text in helpers.items() if name not in self._reading_code[0]})
        return self._file('#include "model_readings.c"', *own, *functions, *self._tables.of_rest(), *parts)

    def lanes(self) -> str:
        """Write what steps and readings of several machines at once need; it is compiled together with the rest.

        Raises
        ------
        InputError
            When a function cannot be written so.
        """
        helpers: dict[str, str] = {}
        functions = [self._in_lanes(each, helpers) for each in self._lane_functions()]
        own = {name: text for name, text in helpers.items() if name not in self._helpers_of_rest}
        return self._file(*own.values(), *functions, *self._tables.of_steps(self._simulation.solver))

    def _in_lanes(self, function: TracedFunction, helpers: dict[str, str]) -> str:
        operations = Operations.of(function, helpers)
        if operations is None:
            raise InputError(
                f"{self._simulation.name} has no ensembles: its function {function.name} solves an algebraic loop by "
                "iteration, or is too long; run its machines one by one"
            )
        return operations.lanes()

    def _lane_functions(self) -> Iterable[TracedFunction]:
        """Write the functions that are called for several machines at once."""
        functions = self._functions
        named: list[AnyFunction] = []
        if isinstance(self._simulation.solver, ImplicitSolver):
            named.append(self._simulation.formulation.history.carried)
        elif functions.rates_by_accelerations:
            named.append(functions.state_rates)
        if functions.rank:
            named.append(functions.closure)
        named += [functions.integral_rates, functions.outputs, *self._needs.in_steps]
        if self._system.reactions and not self._sizes["PLAY"]:
            named.append(functions.reactions)
        if self._system.references:
            named.append(functions.with_present_references)
            if self._sizes["ERROR"]:
                named.append(functions.with_references)
        for each in named:
            assert isinstance(each, TracedFunction)  # formulations with lanes have no kernel loops
            yield each

    def _once(self, helpers: dict[str, str]) -> list[str]:
        """Return the functions called by those of a file; declarations for long kernels of an earlier file."""
        texts = [declared(text) if name in self._written else text for name, text in helpers.items()]
        self._written |= helpers.keys()
        return texts

    def _code(self, function: AnyFunction, helpers: dict[str, str], prefix: str = "") -> str:
        # Parts that are balanced alone have inputs and multipliers of their own, as many as the largest needs.
        own = {"INPUTS": self._sizes["MOST_INPUTS"], "CONSTRAINTS": self._sizes["MOST_CONSTRAINTS"]}
        check_arguments(function, self._sizes | own if prefix.startswith(_PART) else self._sizes)
        if isinstance(function, RecordedFunction):
            memory, size = function.program.memory_name, function.program.schedule.size
            self._memories[memory] = max(self._memories[memory], size)
            return program_code(function, helpers, prefix)
        operations = Operations.of(function, helpers, prefix)
        if operations is None or self._held is None:
            called: dict[str, str] = {}
            code = traced_code(function, called, prefix) if operations is None else operations.code()
            if self._apart is not None and _is_derivative(function):
                caller = self._apart.taken(code, helpers | called)
                if caller is not None:
                    return caller
            helpers |= called
            return code
        self._held[operations.name] = operations
        return operations.place

    @property
    def length(self) -> int:
        """How many operations the code of steps and readings has; what loops call again and again counts once."""
        return sum(each.length for each in (*self._step_functions(), *self._reading_functions()))

    def _file(self, *parts: str) -> str:
        origin = f"generated by mbsfmu {version('mbsfmu')} with CasADi {version('casadi')}"
        return "\n\n".join((f"/* {self._simulation.name}: {origin}. */", *parts)) + "\n"

    def apart(self) -> dict[str, str]:
        """Return the files, by name, of long functions of all other files; these are written before."""
        return {} if self._apart is None else self._apart.files()

    # -- functions ------------------------------------------------------------------------------------------

    def _step_functions(self) -> Iterable[AnyFunction]:
        """Write the functions called in every step, changes of references included."""
        functions, history = self._functions, self._simulation.formulation.history
        if self._steps and isinstance(self._simulation.solver, ImplicitSolver):
            yield history.carried
        if history.layout.size:
            yield history.jumped
        if self._asks_for_jacobian:
            yield functions.closure
        yield from (functions.integral_rates, functions.outputs)
        yield from self._closing_functions()
        if len(functions.loop_iterates):
            yield functions.loop_solutions
        if functions.rates_by_accelerations:
            yield functions.state_rates
        yield from self._needs.in_steps
        if self._system.references:
            yield functions.with_present_references
            if self._sizes["ERROR"]:
                yield functions.with_references

    def _flow_functions(self) -> Iterable[AnyFunction]:
        """Make what the same takes that steps do not have."""
        functions = self._functions
        yield from self._closing_functions()
        if len(functions.loop_iterates):
            yield functions.loop_solutions
        yield from self._simulation.formulation.native_needs(StepKind.EXCHANGED).in_steps
        if self._system.references:
            yield functions.with_present_references

    def _closing_functions(self) -> Iterable[AnyFunction]:
        """Make what tells whether loops are closed at the end of steps."""
        if self._system.aligned:
            yield self._functions.misalignment
        if self._functions.rows and not self._needs.closes_loops:
            yield self._functions.gap

    def _reading_functions(self) -> Iterable[AnyFunction]:
        """Make what updates, jumps of inputs and readers of reactions call."""
        functions = self._functions
        if not self._needs.own_motion:
            yield functions.equilibrium
        yield from self._needs.at_start
        yield functions.reactions
        if functions.driven:
            yield functions.missed
        if functions.reactions_open:
            yield from (functions.shared_reactions, functions.all_closure_jacobian)
        if functions.system.discrete:
            yield functions.updates
        if self._sizes["INDICATORS"]:
            yield functions.event_indicators

    def _other_functions(self) -> Iterable[AnyFunction]:
        """Make what initialization and readers of derivatives call."""
        functions = self._functions
        yield from (functions.initial_integrals, functions.inertia_tensors, functions.start_limits)
        if functions.system.discrete:
            yield functions.initial_discrete
        if self._placed:
            yield from (functions.start_references, functions.placement)
        else:
            yield from (functions.start, *_closures(functions))
        if self._changes:
            yield from changes(functions, steps=self._steps)
            return
        if self._needs.own_motion:
            yield functions.equilibrium
        if not self._ensemble:
            yield from derivatives(functions, steps=self._steps)

    def _balanced_parts(self, helpers: dict[str, str]) -> Iterable[str]:
        """Write the functions and the description of each part that is balanced alone, and of the whole."""
        initialization = self._simulation.initialization
        entries = []
        calculated = 0
        alike = zip(initialization.balanced_parts, balanced_functions(self._simulation), strict=True)
        for place, (part, functions) in enumerate(alike):
            prefix = f"{_PART}{place}_"
            yield from self._assembled(functions, prefix, helpers)
            yield from (self._code(each, helpers, prefix) for each in self._balancing(functions))
            names = [variable.name for variable in functions.system.inputs]
            inputs = [str(names.index(name)) for _, name in functions.system.balances]
            yield f"static const int {prefix}balance_inputs[] = {{{', '.join(inputs)}}};"
            yield f"static const int {prefix}whole_inputs[] = {{{', '.join(map(str, part.inputs))}}};"
            entries.append(self._assembly(functions, part.first_parameter, prefix, len(inputs), calculated))
            calculated += len(inputs)
        yield f"static const Assembly balanced_parts[] = {{{', '.join(entries) or '{0}'}}};"
        prefix = "start_" if self._placed else ""
        if self._placed:
            yield from self._assembled(initialization.functions, prefix, helpers)
        yield f"static const Assembly whole = {self._assembly(initialization.functions, 0, prefix, 0, 0)};"

    def _assembled(self, functions: SystemFunctions, prefix: str, helpers: dict[str, str]) -> Iterable[str]:
        """Write the functions of assembly."""
        yield self._code(functions.start, helpers, prefix)
        yield from (self._code(each, helpers, prefix) for each in _closures(functions))
        if not self._ensemble:
            varied = recorded_variation if self._changes and functions.in_loops else variation
            yield self._code(varied(functions), helpers, prefix)

    def _balancing(self, functions: SystemFunctions) -> Iterable[AnyFunction]:
        """Make what balances a part besides."""
        yield functions.standing
        if functions.in_loops:
            yield from (functions.freed, recorded_standing_change(functions))
        else:
            yield functions.equilibrium

    def _assembly(self, functions: SystemFunctions, first: int, prefix: str, balances: int, calculated: int) -> str:
        system = functions.system
        names, units = [each.name for each in system.accelerations], [each.unit for each in system.accelerations]
        texts = (system.constraints, system.aligned, names, units)
        described = [f"(const char *const[]){strings(each or [''])}" for each in texts]
        described += [f"(const int[]){{{', '.join(str(int(one)) for one in each) or '0'}}}" for each in system.written]
        misaligned = f"{prefix}misalignment_slopes" if system.aligned else "NULL"
        own = [("standing", balances > 0), ("equilibrium", balances > 0 and not functions.in_loops)]
        own += [(name, balances > 0 and functions.in_loops) for name in ("freed", "standing_change")]
        at_rest = ", ".join(f"{prefix}{name}" if is_there else "NULL" for name, is_there in own)
        varied = "NULL" if self._ensemble else f"{prefix}variation"
        balancing = f"{prefix}balance_inputs, {prefix}whole_inputs" if balances else "NULL, NULL"
        return (
            f"{{{len(system.coordinates)}, {len(system.states)}, {len(system.inputs)}, {len(system.constraints)}, "
            f"{len(system.aligned)}, {first}, {string(system.name)}, {', '.join(described)}, {prefix}start, "
            f"{prefix}all_closure, {misaligned}, {at_rest}, "
            f"{varied}, {balances}, {balancing}, {calculated}}}"
        )


def _closures(functions: SystemFunctions) -> list[AnyFunction]:
    """Return the functions that loops are closed by at the start."""
    return [functions.all_closure, *([functions.misalignment_slopes] if functions.system.aligned else [])]


# -- the traced functions that a unit's derivatives need: by inputs while it steps, by time, and at the start ----------
# In unrolled code these are matrices and changes along directions, from which linear equations find the rest. In
# loops, accelerations follow without such equations, and so do their changes; loops are closed by linear equations
# all the same.

_VARIED = PARTS[: PARTS.index("references")]
"""Parts that change with what is set: references of orientations and momenta do not, these follow, those stay."""
_BY_TIME = {
    "coordinates": "velocities",
    "velocities": "accelerations",
    "states": "rates",
    "integrals": "integral_rates",
    "inputs": "input_rates",
}
"""The derivatives of parts by time."""


def derivatives(functions: SystemFunctions, *, steps: bool) -> Iterable[TracedFunction]:
    """Return those of unrolled code; those of outputs by time where a unit makes steps."""
    given = functions.expressions
    direct = [given.derivative(given.outputs, part) for part in ("inputs", "accelerations")]
    direct.append(given.derivative(given.quadratic, "inputs"))
    yield functions.traced("feedthrough", direct, matrices=[0, 1, 2])
    if steps:
        rates = ca.SX.zeros(len(functions.system.outputs))
        for part, rate in _BY_TIME.items():
            rates += ca.jtimes(given.outputs, functions.symbol(part), functions.symbol(rate))
        yield functions.traced("output_rates", [rates])
    yield variation(functions)
    if is_placed(functions):
        yield _placement_variation(functions)


_MOVED = tuple(f"d_{part}" for part in ("coordinates", "velocities", "states", "parameters", "inputs"))
"""Directions of what the start depends on."""


def changes(functions: SystemFunctions, *, steps: bool) -> Iterable[RecordedFunction]:
    """Return those of kernel loops: changes of everything along directions of inputs, of the start, and by time.

    The last are there where a unit makes steps.
    """
    _add_directions(functions)

    def direct(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
        along = [(given.instant.inputs, beside["d_inputs"])]
        return given.changes([given.moving.outputs, given.moving.instant.accelerations], along)

    def start(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
        along = _along_start(given, beside)
        (integrals,) = given.changes([given.initial_integrals], along)
        along.append((given.instant.integrals, integrals))
        return [*given.changes([given.moving.outputs, given.moving.instant.accelerations], along), integrals]

    def by_time(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
        rates = {rate: beside.get(rate, getattr(given.instant, rate, None)) for rate in _BY_TIME.values()}
        along = [(getattr(given.instant, part), rates[rate]) for part, rate in _BY_TIME.items()]
        return given.changes([given.outputs], along)

    yield functions.recorded("direct_change", direct, ["d_inputs"], into=["d_accelerations"])
    yield functions.recorded("start_change", start, _MOVED, into=["d_accelerations", "d_integrals"])
    yield _recorded_placement(functions) if is_placed(functions) else recorded_variation(functions)
    if steps:
        yield functions.recorded("output_rates", by_time, ["rates", "integral_rates", "input_rates"])


def is_placed(functions: SystemFunctions) -> bool:
    """Return whether the start is given in other coordinates."""
    return functions.system.start_system is not functions.system


def _add_directions(functions: SystemFunctions) -> None:
    for part in _VARIED:
        functions.add_part(f"d_{part}", functions.symbol(part).numel())


def _along_start(given: RecordedSystem, beside: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(getattr(given.instant, part.removeprefix("d_")), direction) for part, direction in beside.items()]


def recorded_variation(functions: SystemFunctions) -> RecordedFunction:
    """Return the result of `variation` in loops, without accelerations, which `start_change` has."""
    _add_directions(functions)

    def varied(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
        closing = [given.all_closure, given.all_closure_rate] if functions.system.constraints else [np.zeros(0)] * 2
        values = [*closing, *[np.zeros(0)] * 4, *given.start.values()]
        return given.changes(values, _along_start(given, beside))

    return functions.recorded("variation", varied, _MOVED)


def recorded_standing_change(functions: SystemFunctions) -> RecordedFunction:
    """Return how −Q + Φ_zᵀ λ changes without motion along directions of what the start depends on, in loops."""
    _add_directions(functions)

    def changed(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
        return given.changes([given.standing_balance], _along_start(given, beside))

    directions = [each for each in _MOVED if each != "d_velocities"]
    return functions.recorded("standing_change", changed, directions)


def _recorded_placement(functions: SystemFunctions) -> RecordedFunction:
    """Return the result of `_placement_variation` in loops."""
    for part in ("d_start_coordinates", "d_start_velocities"):
        functions.add_part(part, functions.symbol(part.removeprefix("d_")).numel())
    given_by = ("start_coordinates", "start_velocities")
    beside_it = (*given_by, "d_start_coordinates", "d_start_velocities", "d_parameters")

    def placed(given: RecordedSystem, own: dict[str, Any]) -> list[Any]:
        along = [(own[part], own[f"d_{part}"]) for part in given_by]
        along.append((given.instant.parameters, own["d_parameters"]))
        return given.changes(given.placed(*(own[part] for part in given_by)), along)

    return functions.recorded("placement_variation", placed, beside_it)


def variation(functions: SystemFunctions) -> TracedFunction:
    """Trace how everything that initialization solves changes along directions of the instant's parts."""
    given, system = functions.expressions, functions.system
    placed = is_placed(functions)
    directions = {part: functions.add_part(f"d_{part}", given.symbol_by_part[part].numel())[0] for part in _VARIED}

    def along(value: ca.SX) -> ca.SX:
        result = ca.SX.zeros(value.numel())
        for part, direction in directions.items():
            result += ca.jtimes(value, given.symbol_by_part[part], direction)
        return result

    values = [given.all_closure, given.all_closure_rate, given.closure_acceleration, given.balance]
    if not system.constraints:
        values[:3] = [ca.SX(0, 1)] * 3
    values += [given.outputs, given.initial_integrals, *((ca.SX(0, 1),) * 3 if placed else given.start.values())]
    return functions.traced("variation", [along(value) for value in values])


def _placement_variation(functions: SystemFunctions) -> TracedFunction:
    """Trace how z and ż at the start change with those of the start system and with parameters."""
    parts = ("start_coordinates", "start_velocities", "parameters")
    directions = [functions.add_part(f"d_{part}", functions.symbol(part).numel())[0] for part in parts[:2]]
    directions.append(functions.symbol("d_parameters"))
    placed = functions.expressions.placed(*(functions.symbol(part) for part in parts[:2]))
    along = ca.vertcat(*(functions.symbol(part) for part in parts)), ca.vertcat(*directions)
    return functions.traced("placement_variation", [ca.jtimes(value, *along) for value in placed])
