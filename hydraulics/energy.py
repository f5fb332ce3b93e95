"""Energy balance of a circuit: stored, supplied, delivered and dissipated energy.

Isothermal oil is barotropic: its volume v (`hydraulics.fluid`, relative to that of the oil at atmospheric pressure p_a)
is a function of its pressure p. Its internal energy is the work of compression, u = −∫ p dv from p_a, and a flow
carries the enthalpy h = u + p v, dh = v dp [L. D. Landau, E. M. Lifshitz: Fluid Mechanics, 2nd ed., 1987, §§ 2 and 6]:

    h = h_a + K_oil (1 − e) + α p_a ln(g / p_a),   or with a polytropic index  + α n / (n − 1) (r g − p_a).

A node of volumes Vᵢ contains Σ Vᵢ wᵢ (u / v) in its oil, and Σ Vᵢ (p² − p_a²) / 2 Kᵢ in its walls. If mass is
conserved, a flow rate j at p_a carries j h into its node. The rate of the node's energy is then

    Ė = Σ j h − p Σ V̇ᵢ − Σ V̇ᵢ (p − p_a)² / 2 Kᵢ.

The second term is the work on the moving walls. The third one is the error of wall work of `hydraulics.conservation`:
walls newly exposed by a piston are strained without work. It counts as dissipated, and is recovered when the piston
returns. A flow from p₁ to p₂ dissipates j (h₁ − h₂), about Q Δp. If a piston keeps moving after it has closed its
chamber, the node equations create oil. Its energy beyond its work, (w − 1) p + w u / v per volume, counts as a negative
loss. If a component displaces oil into a node without a volume of its own there, the oil comes from outside, with its
energy.

Flows that conserve volume [Jaiswal2021, eq. 22] carry p Q, and dissipate Q Δp. Oil arrives without its internal energy
u / v, and leaves without it. The energy created in this way is, with the flow Vᵢ / Kᵢ ṗ into walls,

    (u / v) Σ (V̇ᵢ + Vᵢ ṗ / K) + Σ V̇ᵢ (p² − p_a²) / 2 Kᵢ,

and it counts as a negative loss, a fraction of about p / 2 K of the power through cylinders. With these terms, for
either law,

    stored + dissipated + delivered − supplied

is constant except for the integration error. A transmission line stores the energy of linear acoustics: the pressures
times the flows into it, less its friction. Flows carry enthalpy to it; the difference, a fraction p / 2 K of that
power, counts as dissipated, and is negative where the line takes up oil. The loss of a component is the power of its
flows, of its moving walls and its `work_rate`, minus the power to a mechanism, minus `energy_rate`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hydraulics.equations import CircuitEquations
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
        Energies that are integrals over time, and the energy stored at the start.
    outputs
        Energies computed from states and integrals.
    """

    integrals = (
        _energy("supplied", "energy supplied by sources and by external drives"),
        _energy("delivered", "work delivered by actuators"),
        _energy("dissipated", "energy lost in flows and friction"),
        _energy("start", "energy stored at the start"),
    )
    outputs = (
        _energy("stored", "energy in compressed oil, in walls and in components"),
        _energy("drift", "energy balance error: stored + dissipated + delivered - supplied, minus the start value"),
    )

    def __init__(self, equations: CircuitEquations) -> None:
        self._equations = equations

    def powers(self, *given: Array) -> Array:
        """Return the derivatives of `integrals` in W, shape (4,).

        Parameters
        ----------
        given
            States, inputs, parameters and discrete states, as for `CircuitEquations.snapshot`.
        """
        now = self._equations.snapshot(*given)
        supplied = _total(each.component.work_rate(now.moment(each)) for each in now.upstream)
        supplied = supplied - _total(now.intakes[node] * now.carried_energy(node) for node in now.held_nodes)
        for push in now.pushes:
            if not push.spaces:
                held = now.brought_energy(push.node) if push.node in now.held_nodes else 0.0
                supplied = supplied + push.displaced * (now.brought_energy(push.node) - now.pressure(push.node) - held)
        delivered = _total(each.delivered(now.moment(each), now.output_context(each)) for each in now.upstream)
        storing = _total(each.component.energy_rate(now.moment(each)) for each in now.upstream)
        storing = storing + _total(now.stored_power(node) for node in now.volume_nodes)
        return np.stack([supplied, delivered, supplied - delivered - storing, np.asarray(0.0)])

    def initial_integrals(self, *given: Array) -> Array:
        """Return the initial values of `integrals` in J, shape (4,); arguments: see `powers`."""
        none = np.asarray(0.0)
        return np.stack([none, none, none, self._stored(*given)])

    def evaluate_outputs(self, integrals: Array, *given: Array) -> Array:
        """Return the `outputs` in J, shape (2,); other arguments: see `powers`."""
        stored = self._stored(*given)
        supplied, delivered, dissipated, start = (integrals[index] for index in range(len(self.integrals)))
        return np.stack([stored, stored + dissipated + delivered - supplied - start])

    def _stored(self, *given: Array) -> Array:
        now = self._equations.snapshot(*given)
        stored = _total(each.component.energy(now.moment(each)) for each in now.upstream)
        return stored + _total(now.stored_energy(node) for node in now.volume_nodes)


def _total(powers: Iterable[Array | float]) -> Array:
    total = np.asarray(0.0)
    for power in powers:
        total = total + power
    return total
