"""Derivatives of the start of a run by parameters, exact where it follows smoothly from parameters and inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.equations.linear import RANK_TOLERANCE
from mbsfmu.initialization.closing_loops import (
    CLOSED,
    OnConstraints,
    close_loops,
    given_ranks,
    onto_velocity_constraints,
)
from mbsfmu.initialization.initialization import UNBALANCED, Assembled, Assembly, BalancedPart, Initialization
from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

Flags = NDArray[np.bool_]
Ranks = NDArray[np.intp]
_SET = 2
"""How much a value is given that was set, see `given_ranks`."""
_ASIDE = 1e-6
"""Share of parameters by which initial states are looked at on both sides …"""
_BENT = 1e-2
"""… and second over first differences there from which on slopes jump."""


@dataclass(frozen=True)
class SmoothStart:
    """Derivatives of a start along directions of parameters and inputs.

    Attributes
    ----------
    motion
        Of (z, ż, x, integrals), shape (2 n + k + i, directions).
    parameters
        Of all parameters, calculated ones taken in; shape (parameters, directions).
    smooth
        Along which directions these are the derivatives; the way that loops are closed may change along the others.
    """

    motion: Floats
    parameters: Floats
    smooth: Flags


@dataclass(frozen=True)
class _Assembly:
    """Derivatives of coordinates and velocities on the constraints, each (n, directions), and where these hold."""

    coordinates: Floats
    velocities: Floats
    smooth: Flags


def smooth_start(initialization: Initialization, by_parameters: Floats, by_inputs: Floats) -> SmoothStart | None:
    """Return the derivatives of the start that was found last, by the theorem of implicit functions.

    Dependent coordinates and velocities follow from Φ = 0 and Φ̇ = 0, forces of parts in static equilibrium from
    −Q + Φ_zᵀ λ = 0, all at the choice of dependent coordinates with which the start was found.

    Parameters
    ----------
    initialization
        Where the start was found.
    by_parameters, by_inputs
        Directions, shapes (parameters, directions) and (inputs, directions).

    Returns
    -------
    start
        None where the start is that of other coordinates than the run's, or is found in kernel loops.
    """
    functions, system = initialization.functions, initialization.system
    every = [functions, *(part.functions for part in initialization.balanced_parts)]
    if any(each.in_loops for each in every) or system.references:
        return None
    parameters, smooth = by_parameters.copy(), np.ones(by_parameters.shape[1], dtype=bool)
    calculated: list[Floats] = []
    for part in initialization.balanced_parts:
        own = slice(part.first_parameter, part.first_parameter + len(part.functions.parameters))
        given = np.array([np.zeros(len(smooth)) if index < 0 else by_inputs[index] for index in part.inputs])
        forces, held = _forces(part, parameters[own], given.reshape(len(part.inputs), -1))
        smooth &= held
        calculated += list(forces)
        for source, target in initialization.feeds:
            if source < len(calculated):
                parameters[target] = calculated[source]
    found = _assembled(initialization.assembly, parameters, by_inputs)
    of_states, *others = functions.start_slopes()[2:]
    smooth &= found.smooth & ~_bends(functions, parameters)
    states = of_states @ parameters
    by_coordinates, by_velocities, by_states, directly, driven = others[6:]
    integrals = by_coordinates @ found.coordinates + by_velocities @ found.velocities + by_states @ states
    integrals = integrals + directly @ parameters + driven @ by_inputs
    motion = np.vstack([found.coordinates, found.velocities, states, integrals])
    return SmoothStart(motion, parameters, smooth)


def _bends(functions: SystemFunctions, directions: Floats) -> Flags:
    """Return along which directions of parameters slopes of the initial states jump, as at limits of what is given."""
    given = functions.parameters.copy()
    middle = functions.start()[2].copy()
    pattern = functions.expressions.depends(functions.expressions.start["states"], "parameters").any(axis=0)
    found = np.zeros(directions.shape[1], dtype=bool)
    for column in np.flatnonzero(directions[pattern].any(axis=0)):
        along = directions[:, column]
        step = _ASIDE / np.max(np.abs(along) / np.where(given == 0.0, 1.0, np.abs(given)))
        sides = []
        for sign in (1.0, -1.0):
            functions.parameters[:] = given + sign * step * along
            sides.append(functions.start()[2] - middle)
        bend, change = np.abs(sides[0] + sides[1]), np.abs(sides[0] - sides[1])
        found[column] = bool(np.any(bend > _BENT * change + RANK_TOLERANCE * np.abs(middle)))
    functions.parameters[:] = given
    return found


def _load(assembly: Assembly) -> Assembled:
    """Write the start that an assembly has led to into its functions, and return the assembly."""
    functions, last = assembly.functions, assembly.last
    assert last is not None
    functions.coordinates[:], functions.velocities[:] = last.coordinates.values, last.velocities.values
    functions.states[:] = functions.start()[2]
    return last


def _assembled(assembly: Assembly, parameters: Floats, inputs: Floats) -> _Assembly:
    """Return the derivatives of the coordinates and velocities of an assembly along directions."""
    last = _load(assembly)
    functions = assembly.functions
    of_coordinates, of_velocities, _, *closed = functions.start_slopes()
    jacobian, by_parameters, by_inputs, turned, rate_by_parameters, rate_by_inputs = (
        each.copy() for each in closed[:6]
    )
    given, given_rates = of_coordinates @ parameters, of_velocities @ parameters
    opened = by_parameters @ parameters + by_inputs @ inputs
    ranks, rate_ranks = given_ranks(last.guess, assembly.own), given_ranks(last.given, assembly.own_velocities)
    coordinates, smooth = _following(last.coordinates, jacobian, given, opened, ranks)
    for column, counted in _newly_set(given, ranks, smooth):
        found = close_loops(functions, last.guess, assembly.own, counted)
        if np.allclose(found.values, last.coordinates.values, rtol=0.0, atol=CLOSED):
            own = slice(column, column + 1)
            coordinates[:, own], smooth[own] = _following(found, jacobian, given[:, own], opened[:, own], counted)
    opened = turned @ coordinates + rate_by_parameters @ parameters + rate_by_inputs @ inputs
    velocities, smooth_rates = _following(last.velocities, jacobian, given_rates, opened, rate_ranks)
    for column, counted in _newly_set(given_rates, rate_ranks, smooth_rates):
        found = onto_velocity_constraints(
            functions, last.coordinates.values, last.given, assembly.own_velocities, counted
        )
        if np.allclose(found.values, last.velocities.values, rtol=RANK_TOLERANCE, atol=0.0):
            own = slice(column, column + 1)
            velocities[:, own], smooth_rates[own] = _following(
                found, jacobian, given_rates[:, own], opened[:, own], counted
            )
    _load(assembly)
    return _Assembly(coordinates, velocities, smooth & smooth_rates)


def _newly_set(given: Floats, ranks: Ranks, smooth: Flags) -> Iterator[tuple[int, Ranks]]:
    """Return directions along which a value that was not set changes, and how much values are given next to it."""
    for column in np.flatnonzero(given[ranks < _SET].any(axis=0) & ~smooth):
        yield int(column), np.where(given[:, column] != 0.0, _SET, ranks)


def _following(
    found: OnConstraints, jacobian: Floats, given: Floats, opened: Floats, counted: Ranks
) -> tuple[Floats, Flags]:
    """Return derivatives on the constraints, and along which directions the choice of dependent ones stays.

    Parameters
    ----------
    found
        Coordinates or velocities on the constraints.
    jacobian
        Φ_z, shape (m, n).
    given, opened
        Derivatives of given values, shape (n, directions), and of the constraints at these, (m, directions).
    counted
        How much values are given; others are dependent where one changes that was not set.
    """
    constrained = jacobian.any(axis=0)
    touched = given[constrained].any(axis=0) | opened.any(axis=0)
    begun = given[constrained & (counted < _SET)].any(axis=0)
    if found.dependent is None:
        return given.copy(), np.asarray(~touched)
    smooth = ~begun if found.is_chosen_clearly or not len(jacobian) else ~touched
    slopes = given.copy()
    if len(found.dependent):
        slopes[found.dependent] = 0.0
        right = opened + jacobian @ slopes
        slopes[found.dependent] = -np.linalg.lstsq(jacobian[:, found.dependent], right, rcond=RANK_TOLERANCE)[0]
        # Redundant constraints may contradict each other next to a parameter: loops cannot be closed there.
        left = np.abs(opened + jacobian @ slopes).max(axis=0)
        smooth &= left <= RANK_TOLERANCE * (
            np.abs(opened).max(axis=0) + np.abs(jacobian).max() * np.abs(slopes).max(axis=0)
        )
    return slopes, np.asarray(smooth)


def _forces(part: BalancedPart, parameters: Floats, inputs: Floats) -> tuple[Floats, Flags]:
    """Return the derivatives of what keeps a part in static equilibrium along directions, and where these hold."""
    functions = part.functions
    names = [each.name for each in functions.system.inputs]
    columns = [names.index(name) for _, name in functions.system.balances]
    assembled = _assembled(part.assembly, parameters, inputs)
    states = np.asarray(functions.start_slopes()[2] @ parameters)
    functions.velocities[:] = 0.0
    jacobian = functions.closure()[1].copy()
    others = functions.inputs.copy()
    others[columns] = 0.0
    functions.inputs[:] = others
    rest, by_forces = (each.copy() for each in functions.standing())
    unknown = np.hstack([by_forces.reshape(len(columns), -1).T, jacobian.T])
    solved: Floats = np.asarray(np.linalg.lstsq(unknown, -rest, rcond=RANK_TOLERANCE)[0], dtype=float)
    functions.inputs[columns] = solved[: len(columns)]
    functions.write("multipliers", solved[len(columns) :])
    by_coordinates, by_states, directly, by_inputs = functions.standing_slopes()
    held = np.ones(len(names), dtype=bool)
    held[columns] = False
    opened = by_coordinates @ assembled.coordinates + by_states @ states + directly @ parameters
    opened = opened + by_inputs[:, held] @ inputs[held]
    slopes: Floats = np.asarray(np.linalg.lstsq(unknown, -opened, rcond=RANK_TOLERANCE)[0], dtype=float)
    functions.inputs[:] = others
    unique = np.linalg.matrix_rank(unknown) == len(columns) + np.linalg.matrix_rank(jacobian)
    standing = np.linalg.norm(unknown @ solved + rest) <= UNBALANCED * max(np.max(np.abs(rest)), 1.0)
    smooth = assembled.smooth if unique and standing else np.zeros(parameters.shape[1], dtype=bool)
    return slopes[: len(columns)], np.asarray(smooth)


_SHARES = (2e-3, 2e-4, 2e-5, 2e-6)
"""Of the magnitude of a parameter: differences of fourth order are off by its fourth power, and by round-off over it,
about 1e-12 both for the first. The others follow where the start is not smooth so far away."""
_CENTRAL = (np.array([-2.0, -1.0, 1.0, 2.0]), np.array([1.0, -8.0, 8.0, -1.0]) / 12.0)
"""Distances in steps, and weights, of the central difference of fourth order …"""
_FORWARD = (np.arange(1.0, 5.0), np.array([48.0, -36.0, 16.0, -3.0]) / 12.0)
"""… and of the one to one side, that of the point itself apart [Fornberg 1988, tables 1 and 3]."""
_SMOOTH = 1e-3
"""By how much differences of second and fourth order may differ, as a share of the derivative."""
_KINKED = 0.75
"""Second differences over the step halve with it where the start is smooth, and stay where slopes jump."""


@dataclass(frozen=True)
class StartDerivatives:
    """How the start of a run follows parameters.

    Attributes
    ----------
    motion
        Derivatives of (z, ż, x, integrals) at the start, shape (2 n + k + i, parameters).
    parameters
        Derivatives of all parameters of the system, as some take the values of calculated ones; shape
        (all parameters, parameters).
    """

    motion: Floats
    parameters: Floats


def start_derivatives(simulation: Simulation, chosen: Sequence[int]) -> StartDerivatives:
    """Return the derivatives of the start by some parameters of a simulation.

    They follow from the equations of the start. Where the way that it is found may change next to a parameter, they are
    differences of fourth order, whose steps shrink until those of second order agree with them, and slopes on both
    sides with each other.

    Parameters
    ----------
    simulation
        The simulation; it is initialized anew.
    chosen
        Indices of the parameters among those of the system.

    Raises
    ------
    InputError
        When the start has no derivative by a parameter, as loops are closed in different ways on its two sides.
    """
    variables, decisive = simulation.functions.system.parameters, _decisive(simulation)
    given = simulation.run_loop.parameters.copy()

    def at(index: int, change: float) -> tuple[Floats, Floats]:
        moved = given.copy()
        moved[index] += change
        return _start(simulation, moved)

    by_parameters = np.eye(len(given))[:, list(chosen)]
    by_inputs = np.zeros((len(simulation.functions.inputs), len(chosen)))
    moving = [index if decisive[index] else None for index in chosen]
    found = _derivatives(
        simulation, (by_parameters, by_inputs), moving, lambda index: (variables[index], given[index]), at
    )
    simulation.run_loop.restart_run(given)
    return found


def start_by_inputs(simulation: Simulation, chosen: Sequence[int]) -> StartDerivatives:
    """Return the derivatives of the start by the values of some inputs at t = 0; errors as for `start_derivatives`.

    Pressures and forces that hold a mechanism where it starts depend on them, and prescribed motion does.
    """
    inputs, given = simulation.functions.system.inputs, simulation.run_loop.parameters.copy()
    values = simulation.run_loop.inputs_at_start(0.0)

    def at(index: int, change: float) -> tuple[Floats, Floats]:
        moved = values.copy()
        moved[index] += change
        return _start(simulation, given, moved)

    by_inputs, by_parameters = np.eye(len(values))[:, list(chosen)], np.zeros((len(given), len(chosen)))
    found = _derivatives(
        simulation, (by_parameters, by_inputs), list(chosen), lambda index: (inputs[index], values[index]), at
    )
    simulation.run_loop.restart_run(given)
    return found


def start_follows_inputs(simulation: Simulation, chosen: Sequence[int]) -> bool:
    """Return whether the start may depend on some inputs."""
    inputs = simulation.run_loop.inputs
    return bool(simulation.initialization.balanced_parts) or any(inputs.decides_start(index) for index in chosen)


def _derivatives(
    simulation: Simulation,
    directions: tuple[Floats, Floats],
    chosen: Sequence[int | None],
    variable: Callable[[int], tuple[Variable, float]],
    at: Callable[[int, float], tuple[Floats, Floats]],
) -> StartDerivatives:
    """Return the derivatives of the start along directions of parameters and inputs, one for each of some variables.

    Parameters
    ----------
    simulation
        The simulation.
    directions
        Changes of parameters and of inputs.
    chosen
        Indices of variables; None where the start does not depend on one.
    variable
        Returns the variable of an index, and its value.
    at
        Returns the start next to the present one: for an index, and a change of the variable.
    """
    run_loop, functions = simulation.run_loop, simulation.functions
    given = run_loop.parameters.copy()
    count = 2 * len(functions.coordinates) + len(functions.states) + len(functions.integrals)
    slopes = np.vstack([np.zeros((count, len(chosen))), directions[0]])
    simulation.initialization.run(given, run_loop.inputs_at_start(0.0))
    smooth = smooth_start(simulation.initialization, *directions)
    middle: Floats | None = None
    for column, index in enumerate(chosen):
        if index is None:
            continue
        if smooth is not None and smooth.smooth[column]:
            slopes[:count, column], slopes[count:, column] = smooth.motion[:, column], smooth.parameters[:, column]
            continue
        middle = np.concatenate(_start(simulation, given)) if middle is None else middle
        slopes[:, column] = _column(
            *variable(index), middle, lambda change, index=index: np.concatenate(at(index, change))
        )
    return StartDerivatives(slopes[:count], slopes[count:])


def _start(simulation: Simulation, parameters: Floats, inputs: Floats | None = None) -> tuple[Floats, Floats]:
    """Return (z, ż, x, integrals) at the start, and all parameters; inputs are those of the simulation by default."""
    run_loop = simulation.run_loop
    inputs = run_loop.inputs_at_start(0.0) if inputs is None else inputs
    try:
        start = simulation.initialization.run(parameters, inputs)
        run_loop.begin(0.0, start)
    except InputError as error:
        raise InputError(f"the start is not differentiated, as one next to it is refused: {error}") from None
    state = run_loop.present
    return np.concatenate([state.coordinates, state.velocities, state.states, state.integrals]), start.parameters.copy()


def _decisive(simulation: Simulation) -> NDArray[np.bool_]:
    """Return which parameters the start may depend on, shape (parameters,)."""
    initialization = simulation.initialization
    count = len(simulation.functions.parameters)
    if initialization.balanced_parts:
        return np.ones(count, dtype=bool)
    given = initialization.functions.expressions
    vectors = [*given.start.values(), given.all_closure, given.all_drifts, given.initial_integrals]
    return np.any([given.depends(each, "parameters").any(axis=0) for each in vectors], axis=0)


def _column(variable: Variable, value: float, middle: Floats, at: Callable[[float], Floats]) -> Floats:
    """Return the derivative of what a change of a variable gives, by this variable.

    Raises
    ------
    InputError
        When there is none.
    """
    magnitude = abs(value) or variable.nominal or 1.0
    least = (np.abs(middle) + _SMOOTH) / magnitude
    last = None
    for share in _SHARES:
        step, (places, weights) = _differences(variable, value, share * magnitude)
        changes = [at(place * step) - middle for place in places]
        slope = np.asarray(weights @ np.stack(changes)) / step
        tolerated = _SMOOTH * (np.abs(slope) + least)
        if places[0] > 0.0:
            smooth = last is not None and bool(np.all(np.abs(slope - last) <= tolerated))
        else:
            far_before, before, after, far_after = changes
            second_order = (after - before) / (2.0 * step)
            kink, far_kink = np.abs(after + before) / abs(step), np.abs(far_after + far_before) / abs(2.0 * step)
            smooth = bool(
                np.all((np.abs(slope - second_order) <= tolerated) & (kink <= _KINKED * far_kink + tolerated))
            )
        if smooth:
            return slope
        last = slope
    raise InputError(
        f"the start has no derivative by {variable.name} at {value:.6g} {variable.unit}: next to it loops close "
        "in another way, other coordinates give way, or a start value reaches a limit; choose start values that close "
        "the loops, or another value"
    )


def _differences(variable: Variable, value: float, step: float) -> tuple[float, tuple[Floats, Floats]]:
    """Return the step of differences, and their distances in steps and weights, within the limits of a parameter."""
    low = -np.inf if variable.minimum is None else variable.minimum
    high = np.inf if variable.maximum is None else variable.maximum
    if low < value - 2.0 * step and value + 2.0 * step < high:
        return step, _CENTRAL
    return (step if value + 4.0 * step < high else -step), _FORWARD
