"""A slave that is not ours, written by hand for pythonfmu: a proportional controller that drives a valve.

It holds no state; the valve's command is the gain times the distance to the wanted length, within its limits.
"""

from pythonfmu import Fmi2Causality, Fmi2Slave, Fmi2Variability, Real


class Positioner(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.wanted, self.gain, self.limit = 1.0, 100.0, 10.0
        self.length, self.command = 1.0, 0.0
        for name in ("wanted", "gain", "limit"):
            self.register_variable(Real(name, causality=Fmi2Causality.parameter, variability=Fmi2Variability.tunable))
        self.register_variable(Real("length", causality=Fmi2Causality.input))
        self.register_variable(Real("command", causality=Fmi2Causality.output))

    def do_step(self, current_time, step_size):
        error = self.wanted - self.length
        self.command = max(-self.limit, min(self.limit, self.gain * error))
        return True
