"""Hydraulic circuits as systems."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from hydraulics import Circuit, CircuitEnergies, CircuitEquations
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.kinds import is_built_in
from mbsfmu.modelling.variables import Causality
from mbsfmu.systems.capabilities import EventIndicators, SampledUpdates, StartLimits
from mbsfmu.systems.checks.circuit_checks import check_displacements, check_energy
from mbsfmu.systems.checks.own_numbers import with_hidden_numbers
from mbsfmu.systems.checks.traced_parts import check_part
from mbsfmu.systems.making import make_system
from mbsfmu.systems.motionless_system import MotionlessSystem
from mbsfmu.systems.part_variables import part_variable, trial_points
from mbsfmu.systems.system import Sampling, System, SystemContext, started, starting, starts

_MAGNITUDES = {"J": 1e3, "Pa": 1e6, "N": 1e4, "m3/s": 1e-4, "W": 1e3, "V": 10.0}
"""Nominal values of circuit variables by unit, if a quantity has none."""


class CircuitSystem(MotionlessSystem, StartLimits, EventIndicators, SampledUpdates):
    """A circuit: pressures and spool positions are first-order states; no coordinates. Lines with a delay are sampled.

    Parameters
    ----------
    circuit
        The circuit.
    name
        Name of the system.
    start_values
        Start values of inputs, parameters and states by name, where they are not those of the circuit.
    """

    def __init__(
        self, circuit: Circuit, name: str = "circuit", start_values: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self.name, self._given = name, start_values
        self._equations = CircuitEquations(circuit)
        self._energies = CircuitEnergies(self._equations)
        self.states = tuple(part_variable(each, Causality.LOCAL, _MAGNITUDES) for each in self._equations.states)
        self.discrete = tuple(
            part_variable(each, Causality.LOCAL, _MAGNITUDES, held=True) for each in self._equations.discrete
        )
        self.samplings = tuple(
            Sampling(
                f"{name}.{each.name}",
                first,
                len(each.component.discrete_states()),
                each.component.sample_period,
                offset=0.0,
                advice=each.component.update_advice,
                delays=True,
            )
            for each, first in self._equations.sampled
        )
        inputs = (part_variable(each, Causality.INPUT, _MAGNITUDES) for each in self._equations.inputs)
        parameters = (part_variable(each, Causality.PARAMETER) for each in self._equations.parameters)
        self.inputs, self.parameters = starting(inputs, start_values), starting(parameters, start_values)
        self.orderings = self._equations.orderings
        self.limited = tuple(part_variable(each, Causality.LOCAL, _MAGNITUDES) for each in self._equations.limited)
        self.event_indicators = tuple(
            part_variable(each, Causality.LOCAL, _MAGNITUDES) for each in self._equations.event_indicators
        )
        self.integrals = tuple(part_variable(each, Causality.LOCAL, _MAGNITUDES) for each in CircuitEnergies.integrals)
        self.outputs = tuple(
            part_variable(each, Causality.OUTPUT if each.shared else Causality.LOCAL, _MAGNITUDES)
            for each in (*self._equations.outputs, *CircuitEnergies.outputs)
        )

        for component in circuit.components:
            if not is_built_in(type(component)):
                owner = f"{component.type} '{component.name}'"
                answers = partial(self._equations.answers, with_hidden_numbers(component))
                check_part(owner, type(component), answers, self._points)
                check_displacements(component, self._equations, self._points)
                check_energy(component, self._equations, self._points)

    def _points(self) -> list[tuple[Array, ...]]:
        """Return states, inputs, parameters and discrete states: those at the start, and variations of them."""
        parameters = starts(self.parameters)
        states = (self._equations.initial_states(parameters), self.states)
        discrete = (self._equations.initial_discrete(parameters), self.discrete)
        points = trial_points(parameters, states, (starts(self.inputs), self.inputs), discrete)
        return [(states, inputs, parameters, discrete) for states, inputs, discrete, parameters in points]

    def rates(self, instant: SystemContext) -> Array:
        """Return the derivatives of pressures in Pa/s and of spool positions in V/s."""
        return self._equations.rates(*_given(instant))

    def updates(self, instant: SystemContext) -> Array:
        """Return the discrete states after an update."""
        return self._equations.updates(*_given(instant))

    def initial_discrete(self, parameters: Array) -> Array:
        """Return the discrete states before the first update."""
        return self._equations.initial_discrete(parameters)

    def integral_rates(self, instant: SystemContext) -> Array:
        """Return the powers in W of the circuit's energies, shape (4,)."""
        return self._energies.powers(*_given(instant))

    def initial_integrals(self, instant: SystemContext) -> Array:
        """Return the initial energies in J: zero supplied, delivered, dissipated; stored energy; shape (4,)."""
        return self._energies.initial_integrals(*_given(instant))

    def evaluate_outputs(self, instant: SystemContext) -> Array:
        """Return forces, pressures, flow rates and energies, in the order of `outputs`."""
        given = _given(instant)
        energies = self._energies.evaluate_outputs(instant.integrals, *given)
        return np.concatenate([self._equations.evaluate_outputs(*given), energies])

    def evaluate_event_indicators(self, instant: SystemContext) -> Array:
        """Return the event indicators of the components."""
        return self._equations.evaluate_event_indicators(*_given(instant))

    def start_limits(self, instant: SystemContext) -> Array:
        """Return initial pressures and cylinder lengths with their limits."""
        return self._equations.start_limits(instant.inputs, instant.parameters)

    def start_advice(self, limited: int, parameters: Array) -> str:
        """Return advice on a cylinder whose load no pressure balances."""
        return self._equations.start_advice(limited, parameters)

    def initial_states(self, parameters: Array) -> Array:
        """Return the initial pressures in Pa and spool positions in V."""
        return started(self._equations.initial_states(parameters), self.states, self._given)


def _given(instant: SystemContext) -> tuple[Array, Array, Array, Array]:
    """Return states, inputs, parameters and discrete states."""
    return instant.states, instant.inputs, instant.parameters, instant.discrete


@make_system.register
def _(data: Circuit, name: str, *, absolute: bool, start_values: Mapping[str, float]) -> System:  # noqa: ARG001
    return CircuitSystem(data, name, start_values)
