"""What connections of a coupled system carry, and what they must not join."""

from __future__ import annotations

import numpy as np
import pytest
from cosim.linear_units import LinearSystem

from mbsfmu.modelling import DataError
from mbsfmu.modelling.variables import Causality, Variability, Variable
from mbsfmu.systems.concatenated_system import CoupledSystem


def integrator(name: str, unit: str) -> LinearSystem:
    matrices = [np.array([[value]]) for value in (0.0, 1.0, 1.0, 0.0)]
    return LinearSystem(name, matrices, [0.0], {"u": unit}, {"y": unit})


class Slider(LinearSystem):
    """A mass of 2 kg that a force moves along a line; its outputs are velocity and acceleration."""

    coordinates = (Variable("displacement", unit="m"),)
    velocities = (Variable("slider.velocity", unit="m/s"),)
    accelerations = (Variable("slider.acceleration", unit="m/s2"),)

    def __init__(self) -> None:
        self.name, self._start = "slider", np.zeros(0)
        self.inputs = (Variable("force", Causality.INPUT, Variability.CONTINUOUS, "N", 0.0),)
        self.outputs = (
            Variable("velocity", Causality.OUTPUT, unit="m/s"),
            Variable("acceleration", Causality.OUTPUT, unit="m/s2"),
        )

    def rates(self, instant):
        return np.zeros(0)

    def residual(self, instant):
        return 2.0 * instant.accelerations - instant.inputs

    def evaluate_outputs(self, instant):
        return np.concatenate([instant.velocities, instant.accelerations])

    def initial_coordinates(self, parameters):
        return np.zeros(1), np.zeros(1)


def test_other_unit_is_refused_by_name() -> None:
    parts = {"a": integrator("a", "m"), "b": integrator("b", "m/s")}
    with pytest.raises(DataError, match=r"'a\.y' is in m, but 'b\.u' is in m/s"):
        CoupledSystem("both", parts, [("a.y", "b.u")])
    CoupledSystem("both", {**parts, "b": integrator("b", "m")}, [("a.y", "b.u")])


@pytest.mark.parametrize(
    ("read", "unit"), [("velocity", "m/s"), ("acceleration", "m/s2"), ("slider.acceleration", "m/s2")]
)
def test_what_moves_drives_an_input(read: str, unit: str) -> None:
    """Of an instant at 3 m/s and 5 m/s²."""
    whole = CoupledSystem("both", {"a": Slider(), "b": integrator("b", unit)}, [(f"a.{read}", "b.u")])
    instant = whole.instant(lambda part, size: np.full(size, {"velocities": 3.0, "accelerations": 5.0}.get(part, 0.0)))
    assert whole.rates(instant) == [3.0 if unit == "m/s" else 5.0]
    assert whole.fed_through == (() if unit == "m/s" else ("b.u",))
