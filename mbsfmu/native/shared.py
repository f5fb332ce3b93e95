"""Constants and array lists shared by C and Python, defined once and generated into C."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType

from mbsfmu import modelling
from mbsfmu.base import times
from mbsfmu.equations import kinematics, linear
from mbsfmu.formulations import dca, double_step, first_order, penalty_factors, projection
from mbsfmu.initialization import closing_loops, coordinates, initialization
from mbsfmu.integration import error_measure, error_transport, explicit, implicit, solver
from mbsfmu.io import signals
from mbsfmu.model import body
from mbsfmu.modelling import parameters
from mbsfmu.native.traced_code import numbers, string
from mbsfmu.simulation import run_loop, watches
from mbsfmu.stepping import adaptive, iteration, newton, rosenbrock, stages
from mbsfmu.stepping.state import ARRAYS, BEGUN
from mbsfmu.systems import system
from mbsfmu.tracing import solved_equations
from mbsfmu.tracing.workspace import AnyFunction

CONSTANTS: dict[str, tuple[ModuleType, str]] = {
    "SAME_TIME": (times, "SAME_TIME"),
    "NEIGHBOURS": (times, "NEIGHBOURS"),
    "RESOLVED_STEP": (times, "RESOLVED_STEP"),
    "LEAST_STEP": (times, "LEAST_STEP"),
    "MOST_STEPS": (times, "MOST_STEPS"),
    "OVERSHOOT": (times, "OVERSHOOT"),
    "LARGEST": (modelling, "LARGEST"),
    "TENSOR_ROUND_OFF": (body, "ROUND_OFF"),
    "NO_INERTIA": (body, "NO_INERTIA"),
    "ALLOWED": (body, "ALLOWED"),
    "REGULAR": (body, "REGULAR"),
    "NEXT_TO_ZERO": (linear, "NEXT_TO_ZERO"),
    "AS_LONG": (linear, "AS_LONG"),
    "NEGLIGIBLE": (linear, "NEGLIGIBLE"),
    "NEAR_GIMBAL_LOCK": (kinematics, "NEAR_GIMBAL_LOCK"),
    "LOST_BY_TURNING": (kinematics, "LOST"),
    "RANK_TOLERANCE": (coordinates, "RANK_TOLERANCE"),
    "LARGEST_SLOPE": (coordinates, "LARGEST_SLOPE"),
    "WORSE": (system, "WORSE"),
    "ASSEMBLED": (closing_loops, "CLOSED"),
    "ASSEMBLY_STEP": (closing_loops, "STEP_LIMIT"),
    "ASSEMBLY_SHARE": (closing_loops, "SMALLEST_SHARE"),
    "ASSEMBLY_ITERATIONS": (closing_loops, "MOST_ITERATIONS"),
    "GIVEN": (closing_loops, "GIVEN"),
    "TURNED": (closing_loops, "TURNED"),
    "MOST_TURNS": (closing_loops, "MOST_TURNS"),
    "NEXT_TO_TURNED": (closing_loops, "NEXT"),
    "GOLDEN": (closing_loops, "GOLDEN"),
    "LEAST_TURNED": (closing_loops, "LEAST_TURNED"),
    "CHANGED": (initialization, "CHANGED"),
    "NO_VELOCITY": (initialization, "ROUND_OFF"),
    "UNBALANCED": (initialization, "UNBALANCED"),
    "UNDETERMINED": (initialization, "UNDETERMINED"),
    "AT_REST": (initialization, "AT_REST"),
    "CLOSED": (coordinates, "CLOSED"),
    "ACCEPTED": (coordinates, "ACCEPTED"),
    "CLOSING_STAGNATION": (coordinates, "STAGNATION"),
    "CLOSING_LOST": (coordinates, "LOST"),
    "CLOSING_ITERATIONS": (coordinates, "MOST_ITERATIONS"),
    "MINOR_KEPT": (run_loop, "KEPT"),
    "CHANGE_STRIDE": (run_loop, "STRIDE"),
    "CHANGE_HALVINGS": (run_loop, "HALVINGS"),
    "CHANGE_CAUSE": (run_loop, "CAUSE"),
    "LEAP": (double_step, "LEAP"),
    "ROUND_OFF": (double_step, "ROUND_OFF"),
    "SMALLEST_PART": (double_step, "SMALLEST_PART"),
    "GROWN": (dca, "GROWN"),
    "GROWN_BETWEEN_EVENTS": (dca, "GROWN_BETWEEN_EVENTS"),
    "CORRECTION_ITERATIONS": (projection, "MOST_ITERATIONS"),
    "CORRECTION_TOLERANCES": (projection, "TOLERANCES"),
    "CONTRADICTION": (projection, "STAGNATION"),
    "INSIDE": (projection, "INSIDE"),
    "CORRECTION_SLOW": (projection, "SLOW"),
    "MOST_GRADIENTS": (projection, "MOST_GRADIENTS"),
    "SINGULAR_SHARE": (projection, "SINGULAR"),
    "NEGLIGIBLE_SHARE": (projection, "NEGLIGIBLE"),
    "UNRESOLVED_SHARE": (projection, "UNRESOLVED"),
    "WEAK": (penalty_factors, "WEAK"),
    "WEAK_IN_STEPS": (penalty_factors, "WEAK_IN_STEPS"),
    "FIRM_SHARE": (penalty_factors, "FIRM_SHARE"),
    "LARGEST_STIFFENING": (penalty_factors, "LARGEST_STIFFENING"),
    "DISTINCT": (penalty_factors, "DISTINCT"),
    "PROJECTED_ROUND_OFF": (penalty_factors, "ROUND_OFF"),
    "NEWTON_ITERATIONS": (implicit, "MOST_ITERATIONS"),
    "LEFT": (implicit, "UNRESOLVED"),
    "SHORT": (implicit, "SHORT"),
    "BRIEF": (implicit, "BRIEF"),
    "STAGNATING": (newton, "STAGNATION"),
    "ROUNDED": (newton, "ROUND_OFF"),
    "SLOW": (newton, "SLOW"),
    "FLOOR": (newton, "FLOOR"),
    "FADING": (newton, "FADING"),
    "FRESH": (newton, "FRESH"),
    "FAST": (newton, "FAST"),
    "LIGHT": (iteration, "LIGHT"),
    "SMALL_FIRST": (iteration, "SMALL"),
    "STILL": (iteration, "STILL"),
    "NEAR": (newton, "NEAR"),
    "SAME_STEP": (iteration, "SAME_STEP"),
    "LOOP_SMALL": (solved_equations, "SMALL"),
    "LOOP_ROUND_OFF": (solved_equations, "ROUND_OFF"),
    "LOOP_TRIALS": (solved_equations, "MOST_TRIALS"),
    "HALVINGS": (solver, "HALVINGS"),
    "SMALLEST_SHARE": (adaptive, "SMALLEST_SHARE"),
    "CRAWLING_STEPS": (adaptive, "CRAWLING_STEPS"),
    "NOT_SMOOTH": (adaptive, "NOT_SMOOTH"),
    "CRAWLING_SHARE": (adaptive, "CRAWLING_SHARE"),
    "REFUSED_STEPS": (adaptive, "REFUSED_STEPS"),
    "REFUSED_SHARE": (adaptive, "REFUSED_SHARE"),
    "RK45_ORDER": (explicit, "RK45_ORDER"),
    "RK45_STAGES": (explicit, "RK45_STAGES"),
    "RK45_MOST_FACTOR": (explicit, "RK45_MOST_FACTOR"),
    "SAFETY": (adaptive, "SAFETY"),
    "LEAST_FACTOR": (adaptive, "LEAST_FACTOR"),
    "FIRST_CHANGE": (adaptive, "FIRST_CHANGE"),
    "STANDING": (adaptive, "STANDING"),
    "FIRST_STEP": (adaptive, "FIRST_STEP"),
    "UNSOLVED": (rosenbrock, "UNSOLVED"),
    "SLIGHT": (adaptive, "SLIGHT"),
    "LEAST_TOLERANCE": (adaptive, "LEAST_TOLERANCE"),
    "PIVOT_SHARE": (stages, "PIVOT_SHARE"),
    "MOST_AHEAD": (solver, "MOST_AHEAD"),
    "LARGE_DRIFT": (watches, "LARGE_DRIFT"),
    "LEAST_DRIFT": (watches, "LEAST_DRIFT"),
    "LEAST_SHARE": (watches, "LEAST_SHARE"),
    "DENSE": (watches, "DENSE"),
    "HIGHEST": (watches, "HIGHEST"),
    "DRIFTS": (watches, "DRIFTS"),
    "WHOLE": (watches, "WHOLE"),
    "DEFECT": (error_transport, "DEFECT"),
    "RECENT": (error_transport, "RECENT"),
    "LATE": (error_transport, "LATE"),
    "FARTHEST": (error_transport, "FARTHEST"),
    "LOOKS": (error_measure, "LOOKS"),
    "MOST_APART": (error_measure, "MOST_APART"),
    "GROWN_ERROR": (error_measure, "GROWN"),
    "NOTICED": (error_measure, "NOTICED"),
    "SMALL_RANGE": (parameters, "SMALL_RANGE"),
    "SMALL_CHANGE": (error_measure, "SMALL_CHANGE"),
    "VARIES": (parameters, "VARIES"),
    "ROUNDING": (error_measure, "ROUNDING"),
    "LARGE_ERROR": (error_measure, "LARGE_ERROR"),
    "MEANINGLESS": (error_measure, "MEANINGLESS"),
    "TOO_FAR": (error_transport, "TOO_FAR"),
    "NOT_KNOWN": (error_measure, "NOT_KNOWN"),
    "INACCURATE": (explicit, "INACCURATE"),
    "SAME": (explicit, "SAME"),
    "DEGREE": (signals, "DEGREE"),
    "ASTRAY": (projection, "ASTRAY"),
    "SET_OFF": (first_order, "SET_OFF"),
    "JUMP": (initialization, "JUMP"),
    "JUMP_OF_RATE": (initialization, "JUMP_OF_RATE"),
}
"""Names in C of constants that stand in Python, where it is said what they mean."""

LEVELS = len(projection.TOLERANCES)
"""Levels of a projection: position, velocity, acceleration."""
PRESENT: dict[str, str] = {
    "time": "1",
    "passed": "1",
    "sampled": "1",
    "step_size": "1",
    "tolerance_factor": "1",
    "parameters": "PARAMETERS",
    "inputs": "INPUTS",
    "effective": "INPUTS",
    "discrete": "DISCRETE",
}
"""What a run in process hands to its compiled loop and takes back, beside the arrays of a state: fields of the state in
C, and how many numbers each has."""
COUNTS: dict[str, str] = {
    "steps": "1",
    "newton_total": "1",
    "newton_max": "1",
    "iteration_matrices": "1",
    "failures": "1",
    "retries": "1",
    "evaluations": "1",
    "repartitions": "1",
    "embedded_distance": "1",
    "iterations": "3 * LEVELS",
}
"""The same of what a run has cost; iterations of projections by level: solutions, sum, most."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    # an instant
    "coordinates": ("COORDINATES",),
    "velocities": ("COORDINATES",),
    "accelerations": ("COORDINATES",),
    "states": ("STATES",),
    "integrals": ("INTEGRALS",),
    "inputs": ("INPUTS",),
    "parameters": ("PARAMETERS",),
    "references": ("REFERENCES",),
    "momenta": ("COORDINATES",),
    "discrete": ("DISCRETE",),
    "loop_iterates": ("LOOP_ITERATES",),
    "fed_through": ("FED_THROUGH",),
    # what goes with it
    "multipliers": ("CONSTRAINTS",),
    "active": ("CONSTRAINTS",),
    "rates": ("STATES",),
    "momentum_rates": ("COORDINATES",),
    "history": ("HISTORY",),
    "suggested_step": (),
    # what kernel loops works on
    "work": ("WORK",),
    "factors": ("FACTORS",),
    # dense matrices of loop equations
    "dense": ("LOOP_MATRICES",),
    "scratch": ("SCRATCH",),
    # right sides of steps in loops
    "right": ("RIGHT",),
    "right_of_integrals": ("INTEGRALS",),
    # a step of an implicit rule
    "unknowns": ("UNKNOWNS",),
    "begin": ("UNKNOWNS",),
    "begin_rates": ("UNKNOWNS",),
    "begin_accelerations": ("COORDINATES",),
    "begin_history": ("STEP_HISTORY",),
    "step": (),
    # double-step
    "basis": ("COORDINATES", "FREEDOM"),
    "lift": ("COORDINATES", "CONSTRAINTS"),
    "independent_velocities": ("COORDINATES",),
    "independent_accelerations": ("COORDINATES",),
    # penalty and projections
    "penalty": (),
    "correction_numbers": ("CORRECTION_NUMBERS",),
    "violation": ("CONSTRAINTS",),
    "turning": ("CONSTRAINTS",),
    # of the start system
    "start_coordinates": ("START_COORDINATES",),
    "start_velocities": ("START_COORDINATES",),
    "d_start_coordinates": ("START_COORDINATES",),
    "d_start_velocities": ("START_COORDINATES",),
    # of reactions that motion leaves open
    "shared_multipliers": ("ALL_CONSTRAINTS",),
    # derivatives by time, and directions of derivatives
    "integral_rates": ("INTEGRALS",),
    "input_rates": ("INPUTS",),
    "new_references": ("REFERENCES",),
    "d_coordinates": ("COORDINATES",),
    "d_velocities": ("COORDINATES",),
    "d_accelerations": ("COORDINATES",),
    "d_states": ("STATES",),
    "d_integrals": ("INTEGRALS",),
    "d_inputs": ("INPUTS",),
    "d_parameters": ("PARAMETERS",),
}
"""The arguments of traced functions, and how many numbers each has at most: products of sizes in the header. Where a
step begins, which the arrays of the state say, comes besides."""
_LONG_AS = {
    "coordinates": "COORDINATES",
    "rows": "CONSTRAINTS",
    "states": "STATES",
    "integrals": "INTEGRALS",
    "references": "REFERENCES",
    "history": "HISTORY",
    "loop_iterates": "LOOP_ITERATES",
    "suggested_step": "1",
    "iteration_matrix": "ITERATION_MATRIX",
    "iteration_matrix_use": "ITERATION_MATRIX_USE",
    "unconverged": "UNCONVERGED",
    "ahead": "AHEAD",
    "error": "ERROR",
    "error_history": "ERROR_HISTORY",
    "error_record": "ERROR_RECORD",
}


def constants(*names: str) -> Iterator[str]:
    """Write constants of these names as macros."""
    for name in names:
        module, attribute = CONSTANTS[name]
        yield f"#define {name} {_literal(getattr(module, attribute))} /* {module.__name__}.{attribute} */"


def definitions() -> Iterator[str]:
    """Write the constants and the lists of arrays as macros: of a state, those that functions take, and the others."""
    yield from constants(*CONSTANTS)
    yield f"#define LEVELS {LEVELS}"
    arguments = {name: " * ".join(sizes) or "1" for name, sizes in ARGUMENTS.items()}
    yield _list("ARGUMENTS", arguments)
    arrays = {name: _LONG_AS[like] for name, like in ARRAYS.items()}
    yield _list("STATE_ARRAYS", {name: size for name, size in arrays.items() if name in ARGUMENTS})
    yield _list("KEPT_ARRAYS", {name: size for name, size in arrays.items() if name not in ARGUMENTS})
    yield _list("PRESENT", PRESENT | arrays)
    yield _list("COUNTS", COUNTS)


def _literal(value: float | str | Mapping[str, float]) -> str:
    if isinstance(value, Mapping):
        return numbers(value.values())
    return string(value) if isinstance(value, str) else repr(value)


def _list(name: str, entries: Mapping[str, str]) -> str:
    """Write a macro that applies another one to each name with its size."""
    rows = [f"#define {name}(EACH)", *(f"    EACH({entry}, {size})" for entry, size in entries.items())]
    return " \\\n".join(rows)


def check_arguments(traced: AnyFunction, sizes: Mapping[str, object]) -> None:
    """Check that a traced function's arguments and results have sufficient size.

    Parameters
    ----------
    traced
        The function.
    sizes
        The header's, by name.

    Raises
    ------
    ValueError
        When an argument is not in the list, or is larger than there.
    """
    begun = {f"{BEGUN}{name}": (_LONG_AS[like],) for name, like in ARRAYS.items()}
    own = len(traced.writes) - len(traced.into)
    arguments = traced.reads | dict(zip(traced.into, traced.writes[own:], strict=True))
    for name, count in arguments.items():
        room = 1
        for size in ARGUMENTS.get(name, begun.get(name, ("",))):
            room *= int(str(sizes.get(size, 0)))
        if count > room:
            raise ValueError(f"{traced.name} takes {count} numbers of '{name}'; the list of arguments has {room}")
