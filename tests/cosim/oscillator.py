"""A slave that is not ours: half of a two-mass oscillator, written by hand for pythonfmu.

With `side` 1 it is a mass on a spring to the ground that takes the coupling's force; with `side` 2 a mass with the
coupling spring, whose stretch is a state, that takes the velocity of the other one. Inputs are held, and the motion
between communication points is exact: what error there is comes from the coupling.
"""

import numpy as np
from pythonfmu import Fmi2Causality, Fmi2Slave, Fmi2Variability, Real
from scipy.linalg import expm


class Oscillator(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.mass, self.stiffness, self.damping, self.side = 1.0, 40.0, 0.4, 1.0
        self.position, self.velocity = 0.1, 0.0
        self.stretch = 0.0
        self.force_in = self.velocity_in = 0.0
        for name in ("mass", "stiffness", "damping", "side"):
            self.register_variable(Real(name, causality=Fmi2Causality.parameter, variability=Fmi2Variability.tunable))
        for name in ("force_in", "velocity_in"):
            self.register_variable(Real(name, causality=Fmi2Causality.input))
        for name in ("position", "velocity", "force"):
            self.register_variable(Real(name, causality=Fmi2Causality.output))

    @property
    def force(self):
        return 0.0 if self.side == 1.0 else self.stiffness * self.stretch

    def do_step(self, current_time, step_size):
        k, d, m = self.stiffness, self.damping, self.mass
        if self.side == 1.0:
            rates = [[0, 1, 0, 0], [-k / m, -d / m, 0, self.force_in / m], [0] * 4, [0] * 4]
        else:
            rates = [[0, 1, 0, 0], [0, 0, -k / m, 0], [0, 1, 0, -self.velocity_in], [0] * 4]
        state = [self.position, self.velocity, self.stretch, 1.0]
        self.position, self.velocity, self.stretch, _ = expm(np.array(rates) * step_size) @ state
        return True
