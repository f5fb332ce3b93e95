"""Record of the largest errors of a run, relative to the variables' ranges."""

from __future__ import annotations

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.integration.error_measure import (
    NOT_ESTIMATED,
    NOT_KNOWN,
    ONE_POINT,
    ErrorEstimate,
    ErrorMeasure,
    grown_rounding,
)
from mbsfmu.integration.error_transport import FARTHEST, LOSSES, Loss, exact_state
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

LOOKS = 4
"""Number of comparisons of outputs between consecutive powers of two of the number of points …"""
MOST_APART = 16
"""… at most so many points apart: errors of friction and contacts last for about ten steps …"""
GROWN = 2.0
"""… and if an error has grown by this factor since the last comparison …"""
NOTICED = 1e-5
"""… to more than this fraction of its variable's range."""


class ErrorRecord:
    """Record of a run's error from output to output.

    Coordinates, velocities, accelerations and states are recorded at every point, outputs and reactions at some.

    Parameters
    ----------
    formulation
        A formulation whose states have errors.

    Attributes
    ----------
    measure
        What is recorded, and how that is compared.
    size
        How many numbers a state keeps.
    """

    def __init__(self, formulation: Formulation) -> None:
        self._formulation = formulation
        system = formulation.functions.system
        direct = (*system.coordinates, *system.velocities, *system.accelerations, *system.states)
        self.measure = ErrorMeasure(system, second_order=formulation.second_order, arm=formulation.functions.lever_arm)
        self._direct = len(direct)
        self.size = 3 * len(self.measure.names) + len(direct) + 2

    def followed(self, state: State, before: Floats, parameters: Floats, inputs: Floats) -> State:
        """Return the present state of a run with its updated error record."""
        record, direct = before.copy(), self._direct
        record[-1] = record[-1] or state.error_record[-1]
        largest, lowest, highest, looked, (count, _) = np.split(record, self._ends)
        signed = state.error[:direct]
        error = np.abs(signed)
        values = np.concatenate([state.coordinates, state.velocities, state.accelerations, state.states])
        first = count == 0.0
        if first:
            lowest[:], highest[:] = np.inf, -np.inf
        _note(largest[:direct], lowest[:direct], highest[:direct], signed, values)
        record[-2] = count = count + 1.0
        whole = int(count)
        due = whole % min(MOST_APART, max(1, (1 << whole.bit_length() - 1) // LOOKS)) == 0
        ranges = highest[:direct] - lowest[:direct]
        if due or ((error > GROWN * looked) & (error > NOTICED * ranges)).any():
            looked[:] = np.maximum(looked, error)
            found = self._compared(state, parameters, inputs)
            if found is None:
                record[-1] = record[-1] or Loss.UNSOLVED
            else:
                _note(largest[direct:], lowest[direct:], highest[direct:], *found)
        return state.with_error(state.error, state.error_history, record)

    @property
    def _ends(self) -> list[int]:
        count = len(self.measure.names)
        return [count, 2 * count, 3 * count, 3 * count + self._direct]

    def _compared(self, state: State, parameters: Floats, inputs: Floats) -> tuple[Floats, Floats] | None:
        """Return errors and values of outputs and reactions; None if the exact ones cannot be computed."""
        functions = self._formulation.functions
        functions.parameters[:] = parameters
        functions.inputs[:] = inputs
        values = self._others(state)
        try:
            errors = values - self._others(self._formulation.closed(exact_state(self._formulation, state)))
        except SimulationError:
            return None
        return (errors, values) if (np.abs(errors) <= FARTHEST).all() else None

    def _others(self, state: State) -> Floats:
        self._formulation.load(state)
        outputs = self._formulation.functions.outputs()[0].copy()
        return np.concatenate([outputs, self._formulation.reactions()])

    def share(self, state: State, step: float) -> float:
        """Return the largest relative error so far, with a step in s; zero at the start, `NOT_KNOWN` if unknown."""
        return self._worst(state.error_record, step)[0]

    def _worst(self, record: Floats, step: float) -> tuple[float, str]:
        """Return the largest relative error and its variable."""
        largest, lowest, highest, _, (count, loss) = np.split(record, self._ends)
        if loss:
            return NOT_KNOWN, ""
        if count == 0.0:
            return 0.0, ""
        return self.measure.worst(largest, lowest, highest, grown_rounding(step, count))

    def estimate(self, record: Floats, step: float) -> ErrorEstimate:
        """Return the error estimate of the run in steps in s that ended with this record in its state."""
        share, name = self._worst(record, step)
        if share == NOT_KNOWN:
            return ErrorEstimate(None, None, f"the error is not known: {LOSSES[Loss(int(record[-1]))]}")
        if name and record[-2] == 1.0:
            return ONE_POINT
        return ErrorEstimate.of(share, name) if name else NOT_ESTIMATED


def _note(largest: Floats, lowest: Floats, highest: Floats, errors: Floats, values: Floats) -> None:
    """Update the record with errors of values, and with the values of the exact solution, in place."""
    exact = values - errors
    np.maximum(largest, np.abs(errors), out=largest)
    np.minimum(lowest, exact, out=lowest)
    np.maximum(highest, exact, out=highest)
