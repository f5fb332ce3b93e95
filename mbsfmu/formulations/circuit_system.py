"""A hydraulic circuit as a system."""

from __future__ import annotations

from functools import partial

import numpy as np

from hydraulics import Circuit, CircuitEquations, Quantity
from hydraulics.kinds import is_built_in
from mbsfmu.equations.rotation import Array
from mbsfmu.formulations.system import Instant, System, starts
from mbsfmu.formulations.traced_parts import check_part
from mbsfmu.variables import Causality, Variability, Variable

_MAGNITUDES = {"Pa": 1e6, "N": 1e4, "m3/s": 1e-4, "W": 1e3, "V": 10.0}
"""Usual magnitudes of what circuits give and take, by unit, where a quantity does not say."""

_POINTS = 4
"""At how many points beside the start users' parts are tried."""


class CircuitSystem(System):
    """A circuit: pressures and spool positions are states of first order; it has no coordinates.

    Parameters
    ----------
    circuit
        The circuit.
    name
        Name of the system.
    """

    def __init__(self, circuit: Circuit, name: str = "circuit") -> None:
        self.name = name
        self._equations = CircuitEquations(circuit)
        self.states = tuple(_variable(each, Causality.LOCAL) for each in self._equations.states)
        self.inputs = tuple(_variable(each, Causality.INPUT) for each in self._equations.inputs)
        self.parameters = tuple(
            _variable(each, Causality.PARAMETER, Variability.TUNABLE if each.tunable else Variability.FIXED)
            for each in self._equations.parameters
        )
        self.orderings = self._equations.orderings
        self.limited = tuple(_variable(each, Causality.LOCAL) for each in self._equations.limited)
        self.outputs = tuple(
            _variable(each, Causality.OUTPUT if each.shared else Causality.LOCAL) for each in self._equations.outputs
        )

        for component in circuit.components:
            if not is_built_in(type(component)):
                owner = f"{component.type} '{component.name}'"
                check_part(owner, type(component), partial(self._equations.answers, component), self._points)

    def _points(self) -> list[tuple[Array, Array, Array]]:
        """Return states, inputs and parameters: those at the start, and some about them."""
        generator = np.random.default_rng(0)

        def about(values: Array, variables: tuple[Variable, ...]) -> Array:
            magnitudes = np.array([variable.nominal or 1.0 for variable in variables])
            return values + magnitudes * generator.uniform(-1.0, 1.0, len(values))

        parameters, inputs = starts(self.parameters), starts(self.inputs)
        states = self._equations.initial_states(parameters)
        near = (parameters * generator.uniform(0.95, 1.05, len(parameters)) for _ in range(_POINTS))
        others = [(about(states, self.states), about(inputs, self.inputs), each) for each in near]
        return [(states, inputs, parameters), *others]

    def residual(self, instant: Instant) -> Array:  # noqa: ARG002
        """Return nothing: a circuit has no coordinates."""
        return np.zeros(0)

    def closure(self, instant: Instant) -> Array:  # noqa: ARG002
        """Return nothing: a circuit has no loops to close."""
        return np.zeros(0)

    def rates(self, instant: Instant) -> Array:
        """Return the rates of pressures in Pa/s and of spools in V/s."""
        return self._equations.rates(instant.states, instant.inputs, instant.parameters)

    def integral_rates(self, instant: Instant) -> Array:  # noqa: ARG002
        """Return nothing."""
        return np.zeros(0)

    def evaluate_outputs(self, instant: Instant) -> Array:
        """Return forces, pressures and flows, in the order of `outputs`."""
        return self._equations.evaluate_outputs(instant.states, instant.inputs, instant.parameters)

    def start_limits(self, instant: Instant) -> Array:
        """Return pressures and lengths of cylinders at the start, with their limits."""
        return self._equations.start_limits(instant.inputs, instant.parameters)

    def initial_coordinates(self, parameters: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """Return nothing: a circuit has no coordinates."""
        return np.zeros(0), np.zeros(0)

    def initial_states(self, parameters: Array) -> Array:
        """Return pressures in Pa and spool positions in V at the start."""
        return self._equations.initial_states(parameters)

    def initial_integrals(self, instant: Instant) -> Array:  # noqa: ARG002
        """Return nothing."""
        return np.zeros(0)


def _variable(quantity: Quantity, causality: Causality, variability: Variability = Variability.CONTINUOUS) -> Variable:
    nominal = quantity.nominal
    if nominal is None and causality is not Causality.PARAMETER:
        nominal = _MAGNITUDES.get(quantity.unit)
    return Variable(
        quantity.name,
        causality,
        variability,
        quantity.unit,
        quantity.start,
        quantity.minimum,
        quantity.maximum,
        nominal,
        quantity.description,
    )
