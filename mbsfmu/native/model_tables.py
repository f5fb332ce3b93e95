"""Tables, sizes and choices of one model for all of its C code."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from sys import float_info

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.equations.kinematics import REFERENCE
from mbsfmu.formulations.formulation import NativeNeeds
from mbsfmu.initialization.initialization import bounds
from mbsfmu.integration.error_transport import Loss
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.integration.rosenbrock import MOST_FACTOR, Rosenbrock, RosenbrockMethod
from mbsfmu.integration.solver import LOOSE, AdaptiveSolver, Solver
from mbsfmu.modelling.variables import ModelExchangeData, Variability, Variable
from mbsfmu.native.traced_code import number, numbers, string, strings
from mbsfmu.rules import rule_names
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variable_table import ERROR, NEXT_EVENT, STEP, UNCONVERGED, VIOLATIONS
from mbsfmu.simulation.watches import APART
from mbsfmu.stepping.iteration import REMAINING
from mbsfmu.stepping.stages import FULL, elimination_order, stage_pattern
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import Code, can_be_in_loops


class ModelTables:
    """The generated tables of one model.

    Parameters
    ----------
    simulation
        The simulation.
    needs
        What its formulation needs in C.
    exchange
        What it has for model exchange; None where it is for co-simulation alone.

    Attributes
    ----------
    variables
        Its variables, those for model exchange behind the others.
    """

    def __init__(self, simulation: Simulation, needs: NativeNeeds, exchange: ModelExchangeData | None) -> None:
        self._simulation = simulation
        self._needs = needs
        self._exchange = exchange
        self._system = system = simulation.functions.system
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
            "NEXT_EVENT": (NEXT_EVENT,),
            "ERROR_SHARE": (ERROR,),
        }
        self._places = {
            variable.name: (kind, index) for kind, segment in segments.items() for index, variable in enumerate(segment)
        }
        self.variables = simulation.variables
        if exchange:
            self.variables = (*self.variables, *exchange.added)
            for index, (state, derivative) in enumerate(exchange.derivatives.items()):
                self._places.setdefault(state, ("CONTINUOUS_STATE", index))
                self._places[derivative] = ("DERIVATIVE", index)
            for index, name in enumerate(exchange.indicators):
                self._places[name] = ("INDICATOR", index)

    def of_steps(self, solver: Solver | None) -> Iterable[str]:
        """Write what the steps of a solver need; without one what equations need that others integrate."""
        system, simulation = self._system, self._simulation
        if isinstance(solver, ImplicitSolver):
            yield f"static const char *const coordinate_names[] = {strings(each.name for each in system.coordinates)};"
            yield f"static const char *const state_names[] = {strings(each.name for each in system.states)};"
            limits = simulation.formulation.limits(self._needs.unknowns + len(system.states))
            yield f"static const double unknown_tolerances[] = {numbers(limits.shares)};"
            yield f"static const double unknown_nominals[] = {numbers(limits.nominal)};"
        yield f"static const int rated[] = {{{self._rated}}};"
        if solver is not None and not isinstance(solver, ImplicitSolver):
            yield f"static const double explicit_scales[] = {numbers(simulation.formulation.explicit_scale)};"
        if isinstance(solver, Rosenbrock):
            yield from rosenbrock_tables(solver.method)
            yield from self._elimination()
            if simulation.functions.staged is not None:
                yield f"static const double staged_rows[] = {numbers(map(float, simulation.functions.staged))};"
        yield from self.of_equations()

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

    def of_equations(self) -> Iterable[str]:
        """Write what the formulation asks for, whoever makes the steps."""
        system, simulation = self._system, self._simulation
        if self._needs.element_scales is not None:
            yield f"static const double element_scales[] = {numbers(self._needs.element_scales.ravel(order='F'))};"
        for name, texts in self._needs.names.items():
            yield f"static const char *const {name}[] = {strings(texts)};"
        if simulation.functions.system.aligned:
            yield f"static const char *const aligned_names[] = {strings(simulation.functions.system.aligned)};"
        if simulation.functions.rows and not self._needs.closes_loops:  # what opened loops are told by
            yield f"static const double loop_scales[] = {numbers(simulation.functions.scales)};"
            for what, texts in (("names", system.constraints), ("units", system.constraint_units)):
                chosen = strings(texts[row] for row in simulation.functions.rows)
                yield f"static const char *const loop_{what}[] = {chosen};"
        if system.loop_iterates:
            unsolved = self._simulation.functions.expressions.unsolved
            yield f"static const char *const unsolved_loops[] = {strings(description for description, _ in unsolved)};"
            firsts = ", ".join(str(first) for _, first in unsolved)
            yield f"static const int first_loop_iterates[] = {{{firsts}}};"
        if system.references:
            angles = ", ".join(f"{{{first}, {second}, {third}}}" for first, second, third in system.turning_angles)
            yield f"static const int turning_angles[][3] = {{{angles}}};"

    def of_readings(self, *, watched: bool) -> Iterable[str]:
        """Write what updates, jumps of inputs and readers need; of change points where they are watched for."""
        simulation = self._simulation
        samplings = (
            f"{{{string(each.owner)}, {each.first}, {each.count}, {number(each.sample_time)}, {number(each.offset)}, "
            f"{string(each.reason)}, {int(not each.delays)}}}"
            for each in self._system.samplings
        )
        yield f"static const Sampling samplings[] = {{{', '.join(samplings) or '{NULL, 0, 0, 1.0, 0.0, NULL, 0}'}}};"
        if watched:
            watch = simulation.rank_watch
            yield f"static const double watched_equations[] = {numbers(watch.equations)};"
            yield f"static const double watched_lengths[] = {numbers(watch.lengths)};"
            yield f"static const char *const watched_joints[] = {strings(watch.joints)};"
        if driven := simulation.functions.driven:
            rows = [simulation.functions.rows[row] for row in driven]
            for what, texts in (("names", self._system.constraints), ("units", self._system.constraint_units)):
                yield f"static const char *const driven_{what}[] = {strings(texts[row] for row in rows)};"
            scales = simulation.functions.scales[list(driven)]
            yield f"static const double driven_scales[] = {numbers(scales)};"

    @property
    def _rated(self) -> str:
        """Whether each input has a rate, for steps, and for the start, which is another C file."""
        return ", ".join(str(int(each.rated)) for each in self._system.inputs) or "0"

    def of_rest(self) -> Iterable[str]:
        """Write what the start, the variables and their readers need."""
        system, simulation = self._system, self._simulation
        accelerated = self._simulation.functions.outputs_by_accelerations
        starts = numbers(each.start or 0.0 for each in system.loop_iterates)
        yield f"static const double loop_iterate_starts[] = {starts};"
        yield f"static const char *const parameter_names[] = {strings(each.name for each in system.parameters)};"
        yield f"static const double parameter_starts[] = {numbers(each.start or 0.0 for each in system.parameters)};"
        needs = ", ".join(str(int(each)) for each in accelerated)
        yield f"static const int output_needs_accelerations[] = {{{needs or '0'}}};"
        feeds = (f"{{{calculated}, {parameter}}}" for calculated, parameter in simulation.initialization.feeds)
        yield f"static const Feed feeds[] = {{{', '.join(feeds) or '{0, 0}'}}};"
        yield f"static const int rated_inputs[] = {{{self._rated}}};"
        orderings = (f"{{{smaller}, {greater}}}" for smaller, greater in system.orderings)
        yield f"static const Ordering orderings[] = {{{', '.join(orderings) or '{0, 0}'}}};"
        tensors = (f"{{{string(tensor.body)}, {int(tensor.rod)}}}" for tensor in system.tensors)
        yield f"static const Tensor tensors[] = {{{', '.join(tensors) or '{NULL, 0}'}}};"
        if (record := simulation.solver.error_record) is not None:
            yield f"#define ERROR_GROUPS {record.measure.groups.max() + 1}"
            yield f"#define ERROR_VECTORS {record.measure.vectors.max() + 1}"
            yield f"static const double least_ranges[] = {numbers(record.measure.least)};"
            yield f"static const double turn_arms[] = {numbers(record.measure.arms)};"
            tables = {
                "measures_positions": record.measure.positions.astype(int),
                "differences_of": record.measure.differences,
                "energies_of": record.measure.energies,
                "turned_by": record.measure.turned_by,
                "turn_powers": record.measure.powers,
                "error_groups": record.measure.groups,
                "error_vectors": record.measure.vectors,
                "squared_rates": record.measure.squares,
            }
            for name, table in tables.items():
                yield f"static const int {name}[] = {{{', '.join(map(str, table.tolist()))}}};"
            yield f"static const char *const error_names[] = {strings(record.measure.names)};"
        yield f"static const Energies balances[] = {{{self._energies()}}};"
        yield from self._conditions()
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
        rows = ",\n    ".join(self._row(variable) for variable in self.variables)
        yield f"static const Variable variables[] = {{\n    {rows},\n}};"

    def _exchange_tables(self, exchange: ModelExchangeData) -> Iterable[str]:
        index = {variable.name: place for place, variable in enumerate(self.variables)}
        among = {index[name]: place for place, name in enumerate(exchange.derivatives)}
        places = (str(among.get(place, len(among))) for place in range(len(self.variables)))
        yield f"static const int state_places[] = {{{', '.join(places)}}};"
        yield f"static const double state_nominals[] = {numbers(exchange.magnitudes)};"
        if exchange.indicators:
            yield f"static const double indicator_hysteresis[] = {numbers(exchange.indicators.values())};"

    def _signals(self) -> Iterable[str]:
        rows = []
        for place, (index, signal) in enumerate(self._simulation.signals.items()):
            kind, times, values, initial = signal.table
            yield f"static const double times_{place}[] = {numbers(times)};"
            yield f"static const double values_{place}[] = {numbers(values)};"
            rows.append(f"{{{index}, {kind}, {len(times)}, times_{place}, values_{place}, {number(initial)}}}")
        yield f"static const Signal signals[] = {{{', '.join(rows) or '{0, SIGNAL_STEPS, 0, NULL, NULL, 0.0}'}}};"

    def _conditions(self) -> Iterable[str]:
        """Write the conditions on a run, and which variables they weigh."""
        rows: list[str] = []
        weights: list[str] = []
        for each in self._simulation.condition_watch.conditions:
            texts = f"{string(each.before_time)}, {string(each.after_time + each.advice)}"
            rows.append(f"{{{texts}, {int(each.doubtful)}, {len(weights)}, {len(each.weights)}, {number(each.bound)}}}")
            for name, factor in each.weights.items():
                kind, index = self._places[name]
                weights.append(f"{{{kind}, {index}, {number(factor)}}}")
        yield f"static const Weight weights[] = {{{', '.join(weights) or '{INPUT, 0, 0.0}'}}};"
        yield f"static const Condition conditions[] = {{{', '.join(rows) or '{NULL, NULL, 0, 0, 0, 0.0}'}}};"

    def _energies(self) -> str:
        """Return where the energies of each mechanism and circuit stand among outputs and integrals."""
        rows, watch = [], self._simulation.energy_watch
        for names, scale in zip(watch.balances, watch.scales, strict=True):
            places = (-1 if name is None else self._places[name][1] for name in names)
            rows.append(f"{{{string(names.drift)}, {', '.join(map(str, places))}, {number(scale)}}}")
        return ", ".join(rows) or "{NULL, 0, 0, 0, 0, 0, 0.0}"

    def _row(self, variable: Variable) -> str:
        kind, index = self._places[variable.name]
        tunable = variable.variability is Variability.TUNABLE
        least, most = variable.accepted
        low = "-DBL_MAX" if least is None else number(least)
        high = "DBL_MAX" if most is None else number(most)
        return (
            f"{{{kind}, {index}, {number(variable.start or 0.0)}, {low}, {high}, "
            f"{string(variable.name)}, {string(variable.unit)}, {int(variable.settable)}, {int(tunable)}}}"
        )


def rosenbrock_tables(method: RosenbrockMethod) -> Iterable[str]:
    """Write the coefficients, of couplings the triangles row by row."""
    tables: dict[str, Iterable[float]] = {
        "couplings": chain(*method.couplings),
        "rate_couplings": chain(*method.rate_couplings),
        "stage_nodes": method.nodes,
        "stage_slopes": method.slopes,
        "interpolation": chain(*method.interpolation),
    }
    sizes = {"ORDER": method.order, "DIAGONAL": number(method.diagonal), "MOST_FACTOR": number(MOST_FACTOR)}
    sizes |= {"INTERPOLANTS": len(method.interpolation), "SOLVER_NAME": string(method.name)}
    yield "\n".join(f"#define {name} {value}" for name, value in sizes.items())
    for name, values in tables.items():
        yield f"static const double {name}[] = {numbers(values)};"


def header_sizes(simulation: Simulation, needs: NativeNeeds) -> dict[str, object]:
    """Return sizes, choices and tolerances by their names in C.

    Parameters
    ----------
    simulation
        The simulation.
    needs
        What the C of its formulation needs.

    Raises
    ------
    InputError
        When native FMUs have no such solver.
    """
    return {
        **_choices(simulation, needs),
        **_counts(simulation, needs),
        **_bounds(simulation),
        **_tolerances(simulation, needs),
    }


def _choices(simulation: Simulation, needs: NativeNeeds) -> dict[str, object]:
    """Return which code is compiled."""
    system = simulation.functions.system
    return {
        "FORMULATION_FILE": string(needs.file),
        "OWN_MOTION": int(needs.own_motion),
        "SECOND_ORDER": int(simulation.formulation.second_order),
        "HAMILTONIAN": int(simulation.formulation.moving == "momenta"),
        "LOST_UNSOLVED": int(Loss.UNSOLVED),
        "RATES_BY_ACCELERATIONS": int(simulation.functions.rates_by_accelerations),
        "RECOMPUTES_REACTIONS": int(needs.recomputes_reactions),
        "CLOSES_LOOPS": int(needs.closes_loops),
        "LEAVES_OUT": int(simulation.formulation.leaves_out and simulation.functions.rank > 0),
        "ABSOLUTE": int(simulation.formulation.absolute),
        "PLACED": int(system.start_system is not system),
        "STIFFENS_PENALTY": int(simulation.formulation.stiffens),
        **needs.choices,
        "IMPLICIT": 1,
        "RK4": 2,
        "RK45": 3,
        "ROSENBROCK": 4,
        "EXCHANGED": 5,
        "SOLVER": native_solver(simulation.solver),
        "CONTINUOUS": int(isinstance(simulation.solver, AdaptiveSolver)),
    }


def native_solver(solver: Solver) -> str:
    """Return the name in C of a solver.

    Raises
    ------
    InputError
        When native FMUs have no such solver.
    """
    if isinstance(solver, ImplicitSolver):
        return "IMPLICIT"
    if isinstance(solver, Rosenbrock):
        return "ROSENBROCK"
    if solver.name not in ("rk4", "rk45"):
        having = ", ".join((*rule_names(), "rk4", "rk45", *Rosenbrock.names))
        raise InputError(f"native FMUs have the solvers {having}; '{solver.name}' needs the backend 'python'")
    return solver.name.upper()


def _counts(simulation: Simulation, needs: NativeNeeds) -> dict[str, object]:
    """Return how many there are of what."""
    functions, initialization = simulation.functions, simulation.initialization
    system, layout = functions.system, simulation.formulation.history.layout
    return {
        "COORDINATES": len(system.coordinates),
        "START_COORDINATES": len(initialization.functions.coordinates),
        "CONSTRAINTS": len(functions.rows),
        "ALIGNED": len(system.aligned),
        "RANK": functions.rank,
        "STAGED": int(functions.staged is not None),
        "INDEPENDENT": initialization.watched_equations(functions),
        "ALL_CONSTRAINTS": len(system.constraints),
        "VIOLATIONS": len(VIOLATIONS) if system.constraints else 0,
        "PLAY": len(system.constraints) - functions.rank if functions.reactions_open else 0,
        "FREEDOM": needs.freedom,
        "DEPENDENT": needs.dependent,
        "STATES": len(system.states),
        "UNKNOWNS": needs.unknowns + len(system.states),
        "STEP_MULTIPLIERS": simulation.formulation.step_multipliers,
        "ALL_UNKNOWNS": needs.unknowns + len(system.states) + simulation.formulation.step_multipliers,
        "RIGHT": needs.right_sides or needs.unknowns + len(system.states) + simulation.formulation.step_multipliers,
        "DISCRETE": len(system.discrete),
        "SAMPLINGS": len(system.samplings),
        "REFERENCES": REFERENCE * system.references,
        "LOOP_ITERATES": len(system.loop_iterates),
        "FED_THROUGH": len(system.fed_through),
        "ALGEBRAIC_LOOPS": len(functions.expressions.unsolved),
        "HISTORY": layout.size,
        "STEP_HISTORY": layout.of_step(min(layout.motions, needs.unknowns)).size,
        "MOTION_HISTORY": sum(layout.rule.remembered_motion),
        "ITERATION_MATRIX": len(functions.iteration_matrix),
        "PIVOTS": len(system.coordinates) + len(system.states) + len(functions.rows),
        "ITERATION_MATRIX_USE": len(functions.iteration_matrix_use),
        "UNCONVERGED": len(functions.unconverged),
        "AHEAD": len(functions.ahead),
        "ERROR": len(functions.error),
        "ERROR_HISTORY": len(functions.error_history),
        "ERROR_RECORD": len(functions.error_record),
        "STAGES": simulation.solver.method.stages if isinstance(simulation.solver, Rosenbrock) else 0,
        "INTEGRALS": len(system.integrals),
        "POINT": 2 * simulation.formulation.freedom + len(system.states) + len(system.integrals),
        "INPUTS": len(system.inputs),
        "PARAMETERS": len(system.parameters),
        "CALCULATED_PARAMETERS": len(initialization.calculated),
        "OUTPUTS": len(system.outputs),
        "REACTIONS": len(system.reactions),
        "VARIABLES": len(simulation.variables),
        "SIGNALS": len(simulation.signals),
        "BALANCED_PARTS": len(initialization.balanced_parts),
        "FEEDS": len(initialization.feeds),
        "ORDERINGS": len(system.orderings),
        "TENSORS": len(system.tensors),
        "BALANCES": len(simulation.energy_watch.balances),
        "CONDITIONS": len(simulation.condition_watch.conditions),
        "LIMITED": len(system.limited),
        "DRIVEN": len(functions.driven),
        "COMPUTED": 0,
        "CORRECTION_NUMBERS": needs.correction_numbers,
        "GRADIENTS": needs.gradients,
    }


def balanced_functions(simulation: Simulation) -> list[SystemFunctions]:
    """Return the functions of the parts that are balanced alone, in loops where those of the whole are."""
    found = [part.functions for part in simulation.initialization.balanced_parts]
    if not simulation.functions.in_loops:
        return found
    return [SystemFunctions(each.system, code=Code.LOOPS) if can_be_in_loops(each.system) else each for each in found]


def _sides(rows: int, columns: int, forces: int) -> list[tuple[int, int]]:
    """Return rows and columns of the least squares of constraints and of what balances; see assembly.c."""
    return [(rows, columns), (columns, rows + forces), (rows, rows)] if rows + forces else []


def _squares_work(rows: int, columns: int) -> int:
    """Return the value of SQUARES_WORK in C."""
    return rows * columns + columns**2 + 4 * columns + 2 * rows if rows else 0


def _bounds(simulation: Simulation) -> dict[str, object]:
    """Return the largest sizes among the system that runs and those that are put together at the start."""
    initialization = simulation.initialization
    everything = [simulation.functions, initialization.functions]
    everything += [part.functions for part in initialization.balanced_parts]
    coordinates = max(len(each.coordinates) for each in everything)
    # Where joints are turned back, misalignments count behind all constraints; see assembly.c.
    constraints = max(len(each.system.constraints) + len(each.system.aligned) for each in everything)
    systems = [each.system for each in everything[1:]]
    sides = [(len(each.constraints) + len(each.aligned), len(each.coordinates), len(each.balances)) for each in systems]
    matrix = max(max(rows, columns) * (rows + forces) for rows, columns, forces in sides)
    work = max((_squares_work(*each) for side in sides for each in _sides(*side)), default=0)
    watched = initialization.watched_equations(simulation.functions) > 0
    of_watch = 4 * len(simulation.functions.rows) * len(simulation.functions.coordinates)  # see change_points.c
    return {
        "MOST_COORDINATES": coordinates,
        "STRAIGHT": max(
            (len(each.coordinates) for each in balanced_functions(simulation) if not each.in_loops), default=0
        ),
        "MOST_CONSTRAINTS": constraints,
        "DENSE_MATRIX": matrix,
        "LOOP_MATRICES": max(5 * matrix + work, of_watch if watched else 0),
        "MOST_INPUTS": max(len(each.inputs) for each in everything),
        "MOST_OUTPUTS": max(len(each.system.outputs) for each in everything),
        "MOST_INTEGRALS": max(len(each.integrals) for each in everything),
        "MOST_STATES": max(len(each.states) for each in everything),
    }


def _tolerances(simulation: Simulation, needs: NativeNeeds) -> dict[str, object]:
    """Return the numbers that follow from options."""
    formulation, solver = simulation.formulation, simulation.solver
    samplings = simulation.functions.system.samplings
    adaptive = isinstance(solver, AdaptiveSolver)
    return {
        "OPENING": number(formulation.opening),
        "NEAR_CHANGE": number(simulation.initialization.loops.near),
        "SYSTEM_NAME": string(simulation.functions.system.name),
        "REMEDY": string(formulation.remedy),
        "MORE_ACCURATE": string(solver.more_accurate),
        "PASSES_CHANGE_POINTS": string(solver.passes_change_points),
        "DRIFT_REMEDY": string(solver.remedy),
        "RELATIVE_TOLERANCE": number(solver.relative_tolerance if adaptive else 0.0),
        "ABSOLUTE_TOLERANCE": number(solver.absolute_tolerance if adaptive else 0.0),
        "LOOSE_TOLERANCE": number(min(LOOSE * solver.tolerance, float_info.max)),
        "LOOSE_NOTE": string(solver.loose),
        "REMAINING": number(REMAINING),
        "HEAVIEST": number(solver.limits.heaviest if isinstance(solver, ImplicitSolver) else 1.0),
        "MOST_INCREMENTS": (solver.iterations or 0) if isinstance(solver, ImplicitSolver) else 0,
        "UNRESOLVED": number(solver.unresolved if isinstance(solver, ImplicitSolver) else 0.0),
        "REFRESH_COST": number(formulation.refresh_cost if isinstance(solver, ImplicitSolver) else 0.0),
        "SMALLEST_STEP": number(STEP.minimum or 0.0),
        "PENALTY": number(needs.penalty),
        "APART": number(APART),
        "SHORTEST_SAMPLE_TIME": number(min((each.sample_time for each in samplings), default=float_info.max)),
    }
