"""Sizes and choices of one model for all of its C code."""

from __future__ import annotations

from sys import float_info

from mbsfmu.base.errors import InputError
from mbsfmu.equations.kinematics import REFERENCE
from mbsfmu.formulations.formulation import NativeNeeds
from mbsfmu.integration.error_transport import Loss
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.integration.rosenbrock import Rosenbrock
from mbsfmu.integration.solver import LOOSE, AdaptiveSolver, Solver
from mbsfmu.native.traced_code import number, string
from mbsfmu.rules import rule_names
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variable_table import STEP, VIOLATIONS
from mbsfmu.simulation.watches import APART
from mbsfmu.stepping.iteration import REMAINING
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import Code, can_be_in_loops


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
