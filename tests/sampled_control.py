"""An oscillator that a sampled controller brings to rest, and the recursion that it follows."""

from __future__ import annotations

import numpy as np
from extending.controllers import SampledPid
from oscillator_in_closed_form import DAMPING, MASS, SPEED, START, STIFFNESS, oscillator
from scipy.signal import cont2discrete

from mbsfmu import CoupledModel
from mbsfmu.tracing.workspace import Floats

PROPORTIONAL, INTEGRAL, DERIVATIVE = 40.0, 60.0, 2.0
SAMPLE, OFFSET = 0.0137, 0.0041
"""In s, off every grid."""
LOOP = (("mechanism.slider.displacement", "controller.measured"), ("controller.command", "mechanism.motor.force"))


def controlled(sample: float = SAMPLE, offset: float = OFFSET) -> CoupledModel:
    """The oscillator whose position a sampled PID controller brings to zero."""
    pid = SampledPid(
        proportional=PROPORTIONAL, integral=INTEGRAL, derivative=DERIVATIVE, sample_time=sample, offset=offset
    )
    systems = {"mechanism": oscillator(driven=False).systems["mechanism"], "controller": pid}
    return CoupledModel(name="sampled", systems=systems, connections=LOOP, step=1e-3)


def discrete(times: Floats, sample: float = SAMPLE, offset: float = OFFSET) -> tuple[Floats, Floats]:
    """Displacement and command over time from zero, by the recursion of the plant with a command that is held."""
    plant = np.array([[0.0, 1.0], [-STIFFNESS / MASS, -DAMPING / MASS]]), np.array([[0.0], [1.0 / MASS]])

    def moved(state: Floats, command: float, time: float) -> Floats:
        matrix, column = cont2discrete((*plant, np.eye(2), np.zeros((2, 1))), time, method="zoh")[:2]
        return matrix @ state + column[:, 0] * command

    state, command, total, last = np.array([START, SPEED]), 0.0, 0.0, 0.0
    begin, instant, rows = 0.0, offset, []
    for time in times:
        while instant <= time + 1e-9:
            state = moved(state, command, instant - begin) if instant > begin else state
            error = -state[0]
            total += sample * error
            command = PROPORTIONAL * error + INTEGRAL * total + DERIVATIVE * (error - last) / sample
            last, begin, instant = error, instant, offset + round((instant - offset) / sample + 1.0) * sample
        rows.append((moved(state, command, time - begin)[0] if time > begin else state[0], command))
    displacements, commands = np.array(rows).T
    return displacements, commands
