"""Derivatives of the start of a run by parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbsfmu.analysis.smooth_start import smooth_start
from mbsfmu.base.errors import InputError
from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats

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
