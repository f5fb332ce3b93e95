"""What flows conserve from node to node, and what a node takes in for it.

A flow Q is counted by the volume upstream. By mass it takes Q / v₁ of oil along, v being the volume of oil that without
air has 1 at atmospheric pressure (`hydraulics.fluid`), and arrives as the volume Q v₂ / v₁. A node holds

    m = ρ Σ Vᵢ wᵢ / v,   wᵢ = 1 + (p − p_a) / Kᵢ,

where Vᵢ are its volumes at atmospheric pressure, and Kᵢ the moduli of their walls, which grow by wᵢ. The derivative of
this is the equation of the node, so that what nodes hold together changes by what sources and tanks give alone,
whatever moves and however often:

    Σ (Vᵢ wᵢ / K + Vᵢ / Kᵢ) ṗ = Q − Σ wᵢ V̇ᵢ.

A wall that moves, such as a piston, makes room in a bore that has grown: V̇ᵢ wᵢ. Without that factor a chamber in
elastic walls loses oil with each cycle of pressure and stroke. The force is the pressure times the area at rest all the
same; what that leaves open of the work at the walls is a share p / Kᵢ of it, 0.03 % at 100 bar and 31.5 GPa.

By volume [Jaiswal2021, eqs. 22, 23 and 42] the flow arrives as it left but for its air, Q (1 + α r₂) / (1 + α r₁), and
walls take Vᵢ / Kᵢ of it without growing. A flow over Δp then loses Δp / K_oil of itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hydraulics.component import Component, Space
from hydraulics.fluid import ATMOSPHERIC_PRESSURE, Conserved, Fluid
from mbsfmu.modelling.fields import Array


class Push(NamedTuple):
    """What moving walls of a component push out of a port.

    Attributes
    ----------
    component
        The component.
    node
        The node at the port.
    displaced
        In m³/s, by the volume at atmospheric pressure.
    growth
        w of the walls in which something moves.
    spaces
        The volumes of the component at the port.
    """

    component: Component
    node: str
    displaced: Array
    growth: Array | float
    spaces: tuple[Space, ...]

    @property
    def volume(self) -> Array:
        """What there is of room at the port in m³; none where a piston has closed its chamber."""
        return sum((space.volume for space in self.spaces), start=np.asarray(0.0))

    @property
    def walls(self) -> Array | None:
        """Modulus in Pa of the walls in which something moves; None where they are rigid."""
        return self.spaces[0].bulk_modulus if self.spaces else None


class NodeChange(NamedTuple):
    """What changes the energy of a node.

    Attributes
    ----------
    pressure, gas_pressure
        In Pa, against vacuum and against the pressure of vapour.
    spaces
        Its volumes.
    intake
        What flows bring in m³/s, by the measure of `flowing_volume`.
    pushes
        What moves in it.
    pressure_rate
        ṗ in Pa/s.
    """

    pressure: Array
    gas_pressure: Array
    spaces: Sequence[Space]
    intake: Array
    pushes: Sequence[Push]
    pressure_rate: Array


class Conservation(ABC):
    """What flows conserve."""

    @abstractmethod
    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array | None:
        """Return the volume at a gas pressure in Pa of what flows, by any measure that is the same everywhere.

        None where it is the same at any pressure.
        """

    @abstractmethod
    def carried_energy(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return what a flow carries in J/m³, by the measure of `flowing_volume`, at pressures in Pa."""

    @abstractmethod
    def energy_density(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return what oil stores at a pressure, and a gas pressure, in Pa, in J/m³ by its volume there."""

    @abstractmethod
    def stored_power(self, oil: Fluid, change: NodeChange) -> Array:
        """Return the rate of what a node stores in W; see `hydraulics.energy`."""

    @abstractmethod
    def rise(self, pressure: Array) -> Array | float:
        """Return by how many Pa a pressure lies above that at which walls are as large as they are given."""

    def growth(self, pressure: Array, walls: Array | None) -> Array | float:
        """Return w of walls with a modulus in Pa at a pressure in Pa; those without one are rigid."""
        return 1.0 if walls is None else 1.0 + self.rise(pressure) / walls

    def held(self, pressure: Array, spaces: Sequence[Space]) -> tuple[Array, Array]:
        """Return what volumes hold in m³ at a pressure in Pa, and by how much their walls grow in m³/Pa."""
        whole = walls = np.asarray(0.0)
        for space in spaces:
            whole = whole + space.volume
            if space.bulk_modulus is not None:
                walls = walls + space.volume / space.bulk_modulus
        return whole + self.rise(pressure) * walls, walls

    def capacity(self, compliance: Array | float, pressure: Array, spaces: Sequence[Space]) -> Array:
        """Return what volumes take in for a rise of their pressure, in m³/Pa [Jaiswal2021, eq. 42].

        Parameters
        ----------
        compliance
            Reciprocal 1 / K of the fluid's bulk modulus in 1/Pa.
        pressure
            In Pa, against vacuum.
        spaces
            The volumes.
        """
        held, walls = self.held(pressure, spaces)
        return held * compliance + walls


class MassConservation(Conservation):
    """Flows conserve mass."""

    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array:
        """Return v."""
        return oil.relative_volume_at(gas_pressure)

    def carried_energy(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:  # noqa: ARG002
        """Return h."""
        return oil.enthalpy_at(gas_pressure)

    def energy_density(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return u / v."""
        return oil.enthalpy_at(gas_pressure) / oil.relative_volume_at(gas_pressure) - pressure

    def stored_power(self, oil: Fluid, change: NodeChange) -> Array:
        """Return what flows carry, and the work of walls that move, with what stretches fresh ones."""
        pressure, gas_pressure, _, intake, pushes, _ = change
        enthalpy = oil.enthalpy_at(gas_pressure)
        power = intake * enthalpy
        for push in pushes:
            brought = push.growth * (enthalpy / oil.relative_volume_at(gas_pressure))
            if push.spaces:
                work = pressure if push.walls is None else pressure + 0.5 * self.rise(pressure) ** 2 / push.walls
                brought = np.where(push.volume > 0.0, work, brought)
            power = power + push.displaced * brought
        return power

    def rise(self, pressure: Array) -> Array:
        """Return p − p_a."""
        return pressure - ATMOSPHERIC_PRESSURE


class VolumeConservation(Conservation):
    """Flows conserve volume, but for that of the air, as in [Jaiswal2021]; walls stay as they are."""

    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array | None:
        """Return 1 + α r."""
        return None if oil.mixture is None else oil.mixture.expansion_by_air(gas_pressure)

    def carried_energy(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return p by the volume at p."""
        volume = self.flowing_volume(oil, gas_pressure)
        return pressure if volume is None else pressure * volume

    def energy_density(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return u / v, and of oil without air ∫ p dp / K, which is the same but for a share p / K, and simpler."""
        if oil.mixture is None:
            return wall_energy(pressure) / oil.bulk_modulus
        return oil.enthalpy_at(gas_pressure) / oil.relative_volume_at(gas_pressure) - pressure

    def stored_power(self, oil: Fluid, change: NodeChange) -> Array:
        """Return p Q − p V̇, and the energy that oil has and did not bring along, and that of fresh walls."""
        pressure, gas_pressure, spaces, intake, pushes, pressure_rate = change
        power = intake * self.carried_energy(oil, pressure, gas_pressure)
        made = wider = np.asarray(0.0)
        for push in pushes:
            power = power + push.displaced * pressure
            if push.spaces:
                room = np.where(push.volume > 0.0, push.displaced, 0.0)
                wider = wider - room
                if push.walls is not None:
                    made = made - room * (wall_energy(pressure) / push.walls)
        if oil.mixture is not None:
            held, _ = self.held(pressure, spaces)
            wider = wider + held * oil.compliance_at(gas_pressure) * pressure_rate
        return power + made + wider * self.energy_density(oil, pressure, gas_pressure)

    def rise(self, pressure: Array) -> float:  # noqa: ARG002
        """Return zero."""
        return 0.0


CONSERVATIONS: dict[Conserved, Conservation] = {
    "mass": MassConservation(),
    "volume": VolumeConservation(),
}
"""What flows conserve, by the word of the oil."""


def held_mass(oil: Fluid, pressure: Array, gas_pressure: Array, spaces: Sequence[Space]) -> Array:
    """Return the mass in kg of the oil in volumes, whatever flows conserve.

    Parameters
    ----------
    oil
        The oil.
    pressure, gas_pressure
        In Pa, against vacuum and against the pressure of vapour.
    spaces
        The volumes.
    """
    volume, _ = CONSERVATIONS["mass"].held(pressure, spaces)
    return oil.density * volume / oil.relative_volume_at(gas_pressure)


def wall_energy(pressure: Array) -> Array:
    """Return the energy of elastic walls by their volume and 1 / K, in Pa²."""
    return 0.5 * (pressure**2 - ATMOSPHERIC_PRESSURE**2)
