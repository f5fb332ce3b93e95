"""The energy of a circuit: what it stores, takes in, gives to actuators and loses.

Oil at one temperature is barotropic: its volume v (`hydraulics.fluid`, by that of the oil at atmospheric pressure p_a)
follows from its pressure p. It stores what compressed it, u = −∫ p dv from p_a on, and a flow carries the enthalpy
h = u + p v, dh = v dp [L. D. Landau, E. M. Lifshitz: Fluid Mechanics, 2nd ed., 1987, §§ 2 and 6]:

    h = h_a + K_oil (1 − e) + α p_a ln(g / p_a),   or with a polytropic index  + α n / (n − 1) (r g − p_a).

A node of volumes Vᵢ holds Σ Vᵢ wᵢ (u / v) in its oil, and Σ Vᵢ (p² − p_a²) / 2 Kᵢ in its walls. Where mass is
conserved, a flow that is j by the volume at p_a brings j h to its node. The rate of what the node holds is then

    Ė = Σ j h − p Σ V̇ᵢ − Σ V̇ᵢ (p − p_a)² / 2 Kᵢ.

The second term is the work on what moves the walls. The third one is what `hydraulics.conservation` leaves open of it:
walls into which a piston moves are stretched by nobody. It counts as lost, and comes back as the piston does. Over a
flow from p₁ to p₂ j (h₁ − h₂) is lost, about Q Δp. Out of a chamber that its piston has closed, and goes on to push,
the equations of nodes make oil of nothing; what that oil brings along beside its work, (w − 1) p + w u / v by volume,
counts as a negative loss. Where a component pushes oil into a node without any volume of its own, the oil comes from
outside, with its energy.

Flows that conserve volume [Jaiswal2021, eq. 22] carry p Q, and lose Q Δp. Oil arrives without the energy u / v that it
then has, and goes without it: what the equations make so of nothing is, with Vᵢ / Kᵢ ṗ taken by walls,

    (u / v) Σ (V̇ᵢ + Vᵢ ṗ / K) + Σ V̇ᵢ (p² − p_a²) / 2 Kᵢ,

and it counts as a negative loss, a share p / 2 K or so of what goes through cylinders. With these, for either law,

    stored + dissipated + delivered − supplied

stays what it was at the start, exactly but for the error of integration. What a component loses is what flows through
it, walls that it moves and its own `work_rate` bring in, less what it gives to a mechanism, and `energy_rate`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hydraulics.component import Component, HydraulicActuator
from hydraulics.equations import CircuitEquations
from hydraulics.snapshot import CircuitState
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.quantity import Quantity


def _energy(name: str, description: str) -> Quantity:
    return Quantity(f"hydraulic_energy.{name}", "J", description=description)


class CircuitEnergies:
    """Energies of a circuit and the powers that change them.

    Parameters
    ----------
    equations
        The equations of the circuit.

    Attributes
    ----------
    integrals
        Energies that are integrals over time, and what is stored at the start.
    outputs
        Energies that follow.
    """

    integrals = (
        _energy("supplied", "energy that sources, and what drives components from outside, have brought in"),
        _energy("delivered", "work done on what actuators move with"),
        _energy("dissipated", "energy lost in flows and friction"),
        _energy("start", "energy stored at the start"),
    )
    outputs = (
        _energy("stored", "energy in compressed oil, in walls and in components"),
        _energy("drift", "energy gained since the start that nothing supplied, delivered or dissipated explains"),
    )

    def __init__(self, equations: CircuitEquations) -> None:
        self._equations = equations

    def powers(self, states: Array, inputs: Array, parameters: Array) -> Array:
        """Return the rates of `integrals` in W, shape (4,)."""
        now = self._equations.snapshot(states, inputs, parameters)
        supplied = _total(component.work_rate(now.moment(component)) for component in now.upstream)
        supplied = supplied - _total(now.intakes[node] * now.carried_energy(node) for node in now.held_nodes)
        for push in now.pushes:
            if not push.spaces:
                held = now.brought_energy(push.node) if push.node in now.held_nodes else 0.0
                supplied = supplied + push.displaced * (now.brought_energy(push.node) - now.pressure(push.node) - held)
        delivered = _total(_delivered(component, now) for component in now.upstream)
        storing = _total(component.energy_rate(now.moment(component)) for component in now.upstream)
        storing = storing + _total(now.stored_power(node) for node in now.volume_nodes)
        return np.stack([supplied, delivered, supplied - delivered - storing, np.asarray(0.0)])

    def initial_integrals(self, states: Array, inputs: Array, parameters: Array) -> Array:
        """Return `integrals` at the start in J, shape (4,)."""
        none = np.asarray(0.0)
        return np.stack([none, none, none, self._stored(states, inputs, parameters)])

    def evaluate_outputs(self, integrals: Array, states: Array, inputs: Array, parameters: Array) -> Array:
        """Return `outputs` in J, shape (2,)."""
        stored = self._stored(states, inputs, parameters)
        supplied, delivered, dissipated, start = (integrals[index] for index in range(len(self.integrals)))
        return np.stack([stored, stored + dissipated + delivered - supplied - start])

    def _stored(self, states: Array, inputs: Array, parameters: Array) -> Array:
        now = self._equations.snapshot(states, inputs, parameters)
        stored = _total(component.energy(now.moment(component)) for component in now.upstream)
        return stored + _total(now.stored_energy(node) for node in now.volume_nodes)


def _total(powers: Iterable[Array | float]) -> Array:
    total = np.asarray(0.0)
    for power in powers:
        total = total + power
    return total


def _delivered(component: Component, now: CircuitState) -> Array | float:
    """Return the power in W that an actuator gives to what it moves with."""
    if not isinstance(component, HydraulicActuator) or component.motion[-1] not in {
        each.name for each in component.inputs()
    }:
        return 0.0
    told = component.evaluate_outputs(now.output_context(component))
    return told[component.effort] * now.moment(component)[component.motion[-1]]
