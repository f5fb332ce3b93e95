"""The generated part of a native unit: the traced functions and tables of one model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from importlib.metadata import version
from itertools import chain

import numpy as np

from mbsfmu.formulations.changed_start import bounds
from mbsfmu.formulations.functions import SystemFunctions
from mbsfmu.formulations.native_needs import StepKind
from mbsfmu.formulations.stage_pattern import FULL, elimination_order, stage_pattern
from mbsfmu.formulations.workspace import AnyFunction, RecordedFunction
from mbsfmu.native.derivative_code import RARE, changes, derivatives, recorded_variation, variation
from mbsfmu.native.header import header_sizes
from mbsfmu.native.literals import number, numbers, string, strings
from mbsfmu.native.program_code import program_code
from mbsfmu.native.shared import check_arguments, definitions
from mbsfmu.native.traced_code import traced_code
from mbsfmu.simulation.implicit import ImplicitSolver
from mbsfmu.simulation.rosenbrock import Rosenbrock
from mbsfmu.simulation.rosenbrock_methods import RosenbrockMethod
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variables import NEXT_EVENT, STEP, THREADS, UNCONVERGED, VIOLATIONS
from mbsfmu.variables import Exchange, Variability, Variable

_PART = "part_"
_NO_JACOBIAN = """/* Nothing asks for it. */
static void closure(const Parts *parts, double *violation, double *jacobian) {
    (void)parts;
    (void)violation;
    (void)jacobian;
}"""


class ModelCode:
    """The generated C files of one model."""

    def __init__(self, simulation: Simulation, exchange: Exchange | None = None) -> None:
        self._simulation = simulation
        self._exchange = exchange
        self._functions = simulation.functions
        self._system = self._functions.system
        self._placed = self._system.start_system is not self._system
        self._needs = simulation.formulation.native_needs(simulation.solver.kind)
        self._changes = self._functions.in_loops and not simulation.initialization.balanced_parts
        self._sizes = header_sizes(simulation, self._needs)
        self._memories = {"work": 0, "factors": 0}
        system = self._system
        segments = {
            "INPUT": system.inputs,
            "COORDINATE": system.coordinates,
            "VELOCITY": system.velocities,
            "ACCELERATION": system.accelerations,
            "STATE": system.states,
            "HELD": system.discrete,
            "INTEGRAL": system.integrals,
            "OUTPUT": system.outputs,
            "REACTION": system.reactions,
            "VIOLATION": VIOLATIONS,
            "OF_SOLVER": UNCONVERGED,
            "PARAMETER": system.parameters,
            "CALCULATED": simulation.initialization.calculated,
            "STEP_SIZE": (STEP,),
            "SHARED_BY": (THREADS,),
            "NEXT_EVENT": (NEXT_EVENT,),
        }
        self._places = {
            variable.name: (kind, index) for kind, segment in segments.items() for index, variable in enumerate(segment)
        }
        self._variables = simulation.variables
        if exchange:
            self._variables = (*self._variables, *exchange.added)
            for index, (state, derivative) in enumerate(exchange.derivatives.items()):
                self._places.setdefault(state, ("CONTINUOUS_STATE", index))
                self._places[derivative] = ("DERIVATIVE", index)
            self._sizes |= {"VARIABLES": len(self._variables), "CHANGES_KNOWN": int(exchange.derivatives_known)}

    def header(self) -> str:
        """Write sizes, constants and lists, which all source files need; these are written before."""
        written = self._sizes | {each.upper(): size for each, size in self._memories.items()}
        written["CHANGES"] = int(self._changes)
        sizes = "\n".join(f"#define {name} {value}" for name, value in written.items())
        return self._file(sizes, "\n".join(definitions()), '#include "runtime.h"')

    def steps(self) -> str:
        """Write what every step needs."""
        helpers: dict[str, str] = {}
        threads = self._simulation.formulation.threads > 1
        functions = [self._code(each, helpers, shared=threads) for each in self._step_functions()]
        shares = ['#include "shares.h"'] * threads
        if not self._asks_for_jacobian:
            functions.append(_NO_JACOBIAN)
        return self._file('#include "model.h"', *shares, *sorted(helpers.values()), *functions, *self._step_tables())

    @property
    def _asks_for_jacobian(self) -> bool:
        """Whether anything takes Φ_z as a matrix, which is as dense as the constraints are many."""
        return not (self._changes and self._placed) or bool(self._sizes["INDEPENDENT"])

    def flow(self) -> str:
        """Write what the equations for somebody else's solver need."""
        helpers: dict[str, str] = {}
        functions = [self._code(each, helpers) for each in self._flow_functions()]
        return self._file('#include "model.h"', *sorted(helpers.values()), *functions, *self._form_tables())

    def readings(self) -> str:
        """Write what updates, jumps of inputs and readers need beside the steps."""
        helpers, functions = self._reading_code
        return self._file('#include "model.h"', *sorted(helpers.values()), *functions, *self._reading_tables())

    @cached_property
    def _reading_code(self) -> tuple[dict[str, str], list[str]]:
        """Functions of CasADi by name that readers need, and the functions that they call."""
        helpers: dict[str, str] = {}
        return helpers, [self._code(each, helpers) for each in self._reading_functions()]

    def rest(self) -> str:
        """Write everything else; it is compiled together with what readers need."""
        helpers: dict[str, str] = {}
        functions = [self._code(each, helpers) for each in self._other_functions()]
        parts = list(self._balanced_parts(helpers))
        own = sorted(text for name, text in helpers.items() if name not in self._reading_code[0])
        return self._file('#include "model_readings.c"', *own, *functions, *self._tables(), *parts)

    def _code(self, function: AnyFunction, helpers: dict[str, str], prefix: str = "", *, shared: bool = False) -> str:
        # Parts that are balanced alone have inputs and multipliers of their own, as many as the largest needs.
        own = {"INPUTS": self._sizes["MOST_INPUTS"], "CONSTRAINTS": self._sizes["MOST_CONSTRAINTS"]}
        check_arguments(function, self._sizes | own if prefix.startswith(_PART) else self._sizes)
        if isinstance(function, RecordedFunction):
            memory, size = function.program.memory_name, function.program.schedule.size
            self._memories[memory] = max(self._memories[memory], size)
            return program_code(function, helpers, prefix, shared=shared, rare=function.name in RARE)
        return traced_code(function, helpers, prefix)

    def _file(self, *parts: str) -> str:
        origin = f"generated by mbsfmu {version('mbsfmu')} with CasADi {version('casadi')}"
        return "\n\n".join((f"/* {self._simulation.name}: {origin}. */", *parts)) + "\n"

    # -- functions ------------------------------------------------------------------------------------------

    def _step_functions(self) -> Iterable[AnyFunction]:
        """Make what is called in every step, or in any: references move along within steps."""
        functions, history = self._functions, self._simulation.formulation.history
        if isinstance(self._simulation.solver, ImplicitSolver):
            yield history.carried
        if history.layout.size:
            yield history.jumped
        if self._asks_for_jacobian:
            yield functions.closure
        yield from (functions.integral_rates, functions.outputs)
        if functions.rows and not self._needs.closes_loops:
            yield functions.gap
        if len(functions.guesses):
            yield functions.loop_solutions
        if functions.rates_by_accelerations:
            yield functions.state_rates
        yield from self._needs.in_steps
        if self._system.references:
            yield functions.recentred

    def _flow_functions(self) -> Iterable[AnyFunction]:
        """Make what the same takes that steps do not have."""
        functions = self._functions
        if functions.rows and not self._needs.closes_loops:
            yield functions.gap
        if len(functions.guesses):
            yield functions.loop_solutions
        yield from self._simulation.formulation.native_needs(StepKind.EXCHANGED).in_steps
        if self._system.references:
            yield functions.recentred

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
            yield functions.reaction_play
        if functions.system.discrete:
            yield functions.updates

    def _other_functions(self) -> Iterable[AnyFunction]:
        """Make what initialization and readers of derivatives call."""
        functions = self._functions
        yield from (functions.initial_integrals, functions.inertia_tensors, functions.start_limits)
        if functions.system.discrete:
            yield functions.initial_discrete
        if self._placed:
            yield from (functions.start_references, functions.placement)
        else:
            yield from (functions.start, functions.all_closure)
        if self._changes:
            yield from changes(functions)
            return
        if self._needs.own_motion:
            yield functions.equilibrium
        yield from derivatives(functions)

    def _balanced_parts(self, helpers: dict[str, str]) -> Iterable[str]:
        """Write the functions and the description of each part that is balanced alone, and of the whole."""
        initialization = self._simulation.initialization
        entries = []
        calculated = 0
        for place, part in enumerate(initialization.balanced_parts):
            prefix = f"{_PART}{place}_"
            functions = part.functions
            yield from self._assembled(functions, prefix, helpers)
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
        """Write what is needed to put a system together."""
        varied = recorded_variation if self._changes and functions.in_loops else variation
        at_rest = () if self._changes else (functions.equilibrium,)
        for function in (functions.start, functions.all_closure, *at_rest, varied(functions)):
            yield self._code(function, helpers, prefix)

    def _assembly(self, functions: SystemFunctions, first: int, prefix: str, balances: int, calculated: int) -> str:
        system = functions.system
        accelerations = system.accelerations
        texts = (system.constraints, [each.name for each in accelerations], [each.unit for each in accelerations])
        names = ", ".join(f"(const char *const[]){strings(each)}" for each in texts)
        at_rest = "NULL" if self._changes else f"{prefix}equilibrium"
        balancing = f"{prefix}balance_inputs, {prefix}whole_inputs" if balances else "NULL, NULL"
        return (
            f"{{{len(system.coordinates)}, {len(system.states)}, {len(system.inputs)}, {len(system.constraints)}, "
            f"{first}, {string(system.name)}, {names}, {prefix}start, {prefix}all_closure, {at_rest}, "
            f"{prefix}variation, {balances}, {balancing}, {calculated}}}"
        )

    # -- tables ---------------------------------------------------------------------------------------------

    def _step_tables(self) -> Iterable[str]:
        system, simulation = self._system, self._simulation
        if isinstance(simulation.solver, ImplicitSolver):
            yield f"static const char *const coordinate_names[] = {strings(each.name for each in system.coordinates)};"
            yield f"static const char *const state_names[] = {strings(each.name for each in system.states)};"
            limits = simulation.formulation.limits(self._needs.unknowns + len(system.states))
            yield f"static const double unknown_tolerances[] = {numbers(limits.shares)};"
            yield f"static const double unknown_nominals[] = {numbers(limits.nominal)};"
        rated = ", ".join(str(int(each.rated)) for each in system.inputs)
        yield f"static const int rated[] = {{{rated or '0'}}};"
        if not isinstance(simulation.solver, ImplicitSolver):
            yield f"static const double explicit_scales[] = {numbers(simulation.formulation.explicit_scale)};"
        if isinstance(simulation.solver, Rosenbrock):
            yield from self._method(simulation.solver.method)
            yield from self._elimination()
        yield from self._form_tables()

    def _elimination(self) -> Iterable[str]:
        """Write which elements derivatives have, and in which order they are eliminated, where many are zero."""
        slope, integrals = self._needs.slope_pattern, len(self._system.integrals)
        if slope is not None:
            solved = len(slope) - integrals
            matrix = stage_pattern(slope, slope.shape[1] - solved)
            order, filled = elimination_order(matrix)
            if filled < FULL:
                tables = {"stage_elements": matrix, "integral_elements": slope[solved:]}
                yield "#define ELIMINATED 1"
                yield f"static const int elimination_order[] = {{{', '.join(map(str, order))}}};"
                for name, pattern in tables.items():
                    places = np.argwhere(pattern.T)[:, ::-1].tolist()
                    yield f"#define {name.upper()} {len(places)}"
                    pairs = ", ".join(f"{{{row}, {column}}}" for row, column in places)
                    yield f"static const short {name}[][2] = {{{pairs or '{0, 0}'}}};"
                return
        yield "#define ELIMINATED 0"

    def _form_tables(self) -> Iterable[str]:
        """Write what the formulation asks for, whoever makes the steps."""
        system, simulation = self._system, self._simulation
        if self._needs.element_scales is not None:
            yield f"static const double element_scales[] = {numbers(self._needs.element_scales.ravel(order='F'))};"
        for name, texts in self._needs.names.items():
            yield f"static const char *const {name}[] = {strings(texts)};"
        if simulation.functions.rows:
            yield f"static const double loop_scales[] = {numbers(simulation.functions.scales)};"
            for what, texts in (("names", system.constraints), ("units", system.constraint_units)):
                chosen = strings(texts[row] for row in simulation.functions.rows)
                yield f"static const char *const loop_{what}[] = {chosen};"
        if system.guesses:
            unsolved = self._functions.expressions.unsolved
            yield f"static const char *const unsolved_loops[] = {strings(told for told, _ in unsolved)};"
            firsts = ", ".join(str(first) for _, first in unsolved)
            yield f"static const int first_guesses[] = {{{firsts}}};"
        if system.references:
            steep = ", ".join(str(index) for index in system.steep)
            yield f"static const int steep_coordinates[] = {{{steep}}};"

    def _reading_tables(self) -> Iterable[str]:
        simulation = self._simulation
        samplings = (
            f"{{{string(each.owner)}, {each.first}, {each.count}, {number(each.sample_time)}, {number(each.offset)}}}"
            for each in self._system.samplings
        )
        yield f"static const Sampling samplings[] = {{{', '.join(samplings) or '{NULL, 0, 0, 1.0, 0.0}'}}};"
        if self._sizes["INDEPENDENT"]:
            watch = simulation.rank_watch
            yield f"static const double watched_scales[] = {numbers(watch.scales.ravel(order='F'))};"
            yield f"static const double watched_lengths[] = {numbers(watch.lengths)};"
            yield f"static const char *const watched_joints[] = {strings(watch.joints)};"
        if driven := simulation.functions.driven:
            rows = [simulation.functions.rows[row] for row in driven]
            for what, texts in (("names", self._system.constraints), ("units", self._system.constraint_units)):
                yield f"static const char *const driven_{what}[] = {strings(texts[row] for row in rows)};"
            scales = simulation.functions.scales[list(driven)]
            yield f"static const double driven_scales[] = {numbers(scales)};"

    @staticmethod
    def _method(method: RosenbrockMethod) -> Iterable[str]:
        """Write the coefficients, of couplings the triangles row by row."""
        tables: dict[str, Iterable[float]] = {
            "couplings": chain(*method.couplings),
            "rate_couplings": chain(*method.rate_couplings),
            "stage_nodes": method.nodes,
            "stage_slopes": method.slopes,
            "interpolation": chain(*method.interpolation),
        }
        sizes = {"ORDER": method.order, "STAGES": method.stages, "DIAGONAL": number(method.diagonal)}
        sizes["INTERPOLANTS"] = len(method.interpolation)
        sizes["SOLVER_NAME"] = string(method.name)
        yield "\n".join(
            f"#define {name} {value}" for name, value in {**sizes, "SOLVER_NAME": string(method.name)}.items()
        )
        for name, values in tables.items():
            yield f"static const double {name}[] = {numbers(values)};"

    def _tables(self) -> Iterable[str]:
        system, simulation = self._system, self._simulation
        accelerated = self._functions.outputs_by_accelerations
        yield f"static const double guess_starts[] = {numbers(each.start or 0.0 for each in system.guesses)};"
        yield f"static const char *const parameter_names[] = {strings(each.name for each in system.parameters)};"
        yield f"static const double parameter_starts[] = {numbers(each.start or 0.0 for each in system.parameters)};"
        needs = ", ".join(str(int(each)) for each in accelerated)
        yield f"static const int output_needs_accelerations[] = {{{needs or '0'}}};"
        feeds = (f"{{{calculated}, {parameter}}}" for calculated, parameter in simulation.initialization.feeds)
        yield f"static const Feed feeds[] = {{{', '.join(feeds) or '{0, 0}'}}};"
        orderings = (f"{{{smaller}, {greater}}}" for smaller, greater in system.orderings)
        yield f"static const Ordering orderings[] = {{{', '.join(orderings) or '{0, 0}'}}};"
        tensors = (f"{{{string(tensor.body)}, {int(tensor.rod)}}}" for tensor in system.tensors)
        yield f"static const Tensor tensors[] = {{{', '.join(tensors) or '{NULL, 0}'}}};"
        yield f"static const Energies balances[] = {{{self._energies()}}};"
        yield f"static const char *const limited_names[] = {strings(each.name for each in system.limited)};"
        yield f"static const char *const limited_units[] = {strings(each.unit for each in system.limited)};"
        start = simulation.initialization
        for what in ("coordinates", "velocities"):
            described = (f"{{{string(e.name)}, {string(e.unit)}}}" for e in getattr(start.functions.system, what))
            yield f"static const StartVariable start_{what}_described[] = {{{', '.join(described) or '{NULL, NULL}'}}};"
        least = bounds(start.functions.system.coordinates, start.lever_arm)
        yield f"static const double start_bounds[] = {numbers(least)};"
        yield from self._signals()
        if self._exchange:
            yield from self._exchange_tables(self._exchange)
        rows = ",\n    ".join(self._row(variable) for variable in self._variables)
        yield f"static const Variable variables[] = {{\n    {rows},\n}};"

    def _exchange_tables(self, exchange: Exchange) -> Iterable[str]:
        index = {variable.name: place for place, variable in enumerate(self._variables)}
        states = ", ".join(str(index[name]) for name in exchange.derivatives)
        yield f"static const unsigned state_variables[] = {{{states or '0'}}};"
        yield f"static const double state_nominals[] = {numbers(exchange.magnitudes)};"

    def _signals(self) -> Iterable[str]:
        rows = []
        for place, (index, signal) in enumerate(self._simulation.signals.items()):
            kind, times, values, initial = signal.table
            yield f"static const double times_{place}[] = {numbers(times)};"
            yield f"static const double values_{place}[] = {numbers(values)};"
            rows.append(f"{{{index}, {kind}, {len(times)}, times_{place}, values_{place}, {number(initial)}}}")
        yield f"static const Signal signals[] = {{{', '.join(rows) or '{0, SIGNAL_STEPS, 0, NULL, NULL, 0.0}'}}};"

    def _energies(self) -> str:
        """Return where the energies of each mechanism and circuit stand among outputs and integrals."""
        rows = []
        for names in self._simulation.energy_watch.balances:
            places = (-1 if name is None else self._places[name][1] for name in names)
            rows.append(f"{{{string(names.drift)}, {', '.join(map(str, places))}}}")
        return ", ".join(rows) or "{NULL, 0, 0, 0, 0, 0}"

    def _row(self, variable: Variable) -> str:
        kind, index = self._places[variable.name]
        tunable = variable.variability is Variability.TUNABLE
        low = "-DBL_MAX" if variable.minimum is None else number(variable.minimum)
        high = "DBL_MAX" if variable.maximum is None else number(variable.maximum)
        return (
            f"{{{kind}, {index}, {number(variable.start or 0.0)}, {low}, {high}, "
            f"{string(variable.name)}, {string(variable.unit)}, {int(variable.settable)}, {int(tunable)}}}"
        )
