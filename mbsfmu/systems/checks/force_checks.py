"""Checks of user-defined forces and sensors: tracing, and the power balance of forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial

import casadi as ca
import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.equations.coordinate_charts import NO_TURN
from mbsfmu.equations.forces import ActingForce, MechanismForces
from mbsfmu.equations.kinematics import Kinematics
from mbsfmu.equations.loads import MotionState
from mbsfmu.equations.located_part import Given
from mbsfmu.equations.sensor_equations import MechanismSensors, PlacedSensor, Seen
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.kinds import is_built_in
from mbsfmu.systems.checks.own_numbers import with_hidden_numbers
from mbsfmu.systems.checks.traced_parts import check_part, round_off
from mbsfmu.tracing.symbols import expression, symbols

_BALANCE = 1e-8
"""Round-off tolerance of the balance, relative to the largest power."""

Moment = Callable[..., tuple[MotionState, Given]]
"""Returns the evaluation context of forces from the arrays of a trial."""
Trial = Sequence[Array]
"""Coordinates, velocities, accelerations, states, inputs and parameters of a mechanism."""


def check_forces(
    forces: MechanismForces,
    sensors: MechanismSensors,
    kinematics: Kinematics,
    references: int,
    trials: Callable[[], Sequence[Trial]],
) -> None:
    """Refuse user-defined forces and sensors that cannot be traced, and forces with a wrong power balance.

    Parameters
    ----------
    forces, sensors, kinematics
        Of the mechanism.
    references
        Number of orientations that joints of the mechanism are described from.
    trials
        Tells where they are tried.

    Raises
    ------
    InputError
        When a force or a sensor fails.
    """
    no_turns = np.tile(NO_TURN, references)

    def moment(
        coordinates: Array, velocities: Array, _: Array, states: Array, inputs: Array, parameters: Array
    ) -> tuple[MotionState, Given]:
        frames = kinematics.frames(coordinates, no_turns, parameters)
        moving = kinematics.velocities(frames, velocities)
        return MotionState(coordinates, velocities, frames, moving), Given(states, inputs, parameters)

    def seen(*trial: Array) -> Seen:
        motion, given = moment(*trial)
        accelerations = partial(
            kinematics.accelerations, motion.frames, motion.body_velocities, motion.velocities, trial[2]
        )
        return Seen(motion, accelerations, given.parameters)

    for acting in forces.acting:
        kind = type(acting.force)
        if not is_built_in(kind):
            tried = copy(acting)
            tried.force = with_hidden_numbers(acting.force)
            check_part(acting.owner, kind, partial(_answers, tried, moment), trials)
            _check_power(acting, moment, trials())
    for placed in sensors.placed:
        if not is_built_in(type(placed.sensor)):
            told = partial(_readings, _unseen_numbers(placed), seen)
            check_part(placed.owner, type(placed.sensor), told, trials)


def _unseen_numbers(placed: PlacedSensor) -> PlacedSensor:
    """Return a sensor whose data hide the numbers that are parameters."""
    tried = copy(placed)
    tried.sensor = with_hidden_numbers(placed.sensor)
    return tried


def _readings(placed: PlacedSensor, seen: Callable[..., Seen], *trial: Array) -> Mapping[str, Sequence[Array | float]]:
    """Return the results of a sensor, by the name of its function."""
    return {"evaluate_outputs": placed.evaluate_outputs(seen(*trial))}


def _answers(acting: ActingForce, moment: Moment, *trial: Array) -> Mapping[str, Sequence[Array | float]]:
    """Return the results of each function of a force, by the function's name."""
    motion, given = moment(*trial)
    names = ("work_rate", "dissipation", "energy")
    return {
        "loads": acting.components(motion, given),
        **{name: [acting.scalar(name, motion, given)] for name in names},
        "rates": acting.rates(motion, given),
        "evaluate_outputs": acting.evaluate_outputs(motion, given),
        "evaluate_event_indicators": acting.evaluate_event_indicators(motion, given),
        "initial_states": acting.initial_states(given.parameters),
    }


def _check_power(acting: ActingForce, moment: Moment, trials: Sequence[Trial]) -> None:
    """Refuse a force whose load power differs from work_rate − dissipation − dE/dt.

    Otherwise the energy balance of the mechanism would wrongly indicate an integration error.
    """
    made = [symbols(f"argument_{index}", len(values)) for index, values in enumerate(trials[0])]
    (coordinates, _), (velocities, _), _, (states, _), *_ = made
    motion, given = moment(*(array for _, array in made))
    work, loss, energy = (
        expression(acting.scalar(name, motion, given)) for name in ("work_rate", "dissipation", "energy")
    )
    rates = ca.vertcat(ca.SX(0, 1), *(expression(rate) for rate in acting.rates(motion, given)))
    storing = ca.jtimes(energy, coordinates, velocities) + ca.jtimes(energy, states, rates)
    power = expression(acting.power(motion, given))
    terms, left = ca.vertcat(power, work, loss, storing), power - (work - loss - storing)
    function = ca.Function("powers", [vector for vector, _ in made], [terms, left])

    def unbalanced(trial: Trial) -> Array:
        return np.asarray(function(*trial)[1]).ravel()

    for trial in trials:
        exerted, brought, lost, stored = powers = np.asarray(function(*trial)[0]).ravel()
        off = abs(unbalanced(trial)[0])
        if off > _BALANCE * np.max(np.abs(powers)) and off > round_off(unbalanced, trial):
            raise InputError(
                f"{acting.owner} is refused: what {type(acting.force).__name__} exerts has a power of {exerted:.6g} W "
                f"where work_rate is {brought:.6g} W, dissipation {lost:.6g} W and the rate of energy {stored:.6g} W; "
                "it must be the first less the others"
            )
