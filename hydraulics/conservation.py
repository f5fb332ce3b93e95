"""Conservation laws of flows between nodes, and the compliance of nodes.

A flow rate Q is volumetric at the upstream density. If mass is conserved, it carries Q / v₁ of oil, where v is the
specific volume relative to that of oil without air at atmospheric pressure (`hydraulics.fluid`). It arrives as the flow
rate Q v₂ / v₁. A node contains

    m = ρ Σ Vᵢ wᵢ / v,   wᵢ = 1 + (p − p_a) / Kᵢ,

where Vᵢ are its volumes at atmospheric pressure, and Kᵢ the bulk moduli of their walls, which expand by wᵢ. The
derivative of this mass is the equation of the node. The total mass of all nodes therefore changes by sources and tanks
only, independent of motion and number of cycles:

    Σ (Vᵢ wᵢ / K + Vᵢ / Kᵢ) ṗ = Q − Σ wᵢ V̇ᵢ.

A moving wall, such as a piston, displaces volume in an expanded bore: V̇ᵢ wᵢ. Without this factor a chamber with
elastic walls would lose oil with each cycle of pressure and stroke. The force is nevertheless the pressure times the
unexpanded area. The resulting error of the wall work is a fraction p / Kᵢ of it, 0.03 % at 100 bar and 31.5 GPa.

If volume is conserved [Jaiswal2021, eqs. 22, 23 and 42], a flow arrives unchanged except for its air, Q (1 + α r₂) / (1
+ α r₁), and walls take Vᵢ / Kᵢ of it without expanding. A flow over Δp then loses the fraction Δp / K_oil of itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hydraulics.component import Space
from hydraulics.fluid import ATMOSPHERIC_PRESSURE, Conserved, Fluid
from mbsfmu.modelling.data import Array


class Push(NamedTuple):
    """Displacement of a port's node by the moving walls of a component.

    Attributes
    ----------
    owner
        Name of the component.
    node
        The node at the port.
    displaced
        In m³/s, at atmospheric pressure.
    growth
        Expansion w of the walls around the moving part.
    spaces
        The volumes of the component at the port.
    """

    owner: str
    node: str
    displaced: Array
    growth: Array | float
    spaces: tuple[Space, ...]

    @property
    def volume(self) -> Array:
        """Volume at the port in m³; zero where a piston has closed its chamber."""
        return sum((space.volume for space in self.spaces), start=np.asarray(0.0))

    @property
    def walls(self) -> Array | None:
        """Bulk modulus in Pa of the walls around the moving part; None if rigid."""
        return self.spaces[0].bulk_modulus if self.spaces else None


class NodeChange(NamedTuple):
    """Quantities that change the energy of a node.

    Attributes
    ----------
    pressure, gas_pressure
        In Pa, against vacuum and against the pressure of vapour.
    spaces
        Its volumes.
    intake
        Inflow in m³/s, by the measure of `flowing_volume`.
    pushes
        Displacements by moving walls.
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
    """Base of the conservation laws."""

    @abstractmethod
    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array | None:
        """Return the volume of the conserved measure at a gas pressure in Pa; None if it is independent of pressure.

        The measure is the same at both ends of a flow.
        """

    @abstractmethod
    def carried_energy(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return the energy that a flow carries in J/m³ of the measure of `flowing_volume`, at pressures in Pa."""

    @abstractmethod
    def energy_density(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return the energy density of oil in J/m³ at a pressure and a gas pressure in Pa."""

    @abstractmethod
    def stored_power(self, oil: Fluid, change: NodeChange) -> Array:
        """Return the rate of the energy of a node in W; see `hydraulics.equations`."""

    @abstractmethod
    def rise(self, pressure: Array) -> Array | float:
        """Return the pressure in Pa minus that at which walls have their given size."""

    def growth(self, pressure: Array, walls: Array | None) -> Array | float:
        """Return the expansion w of walls with a bulk modulus in Pa at a pressure in Pa; 1 for rigid walls."""
        return 1.0 if walls is None else 1.0 + self.rise(pressure) / walls

    def held(self, pressure: Array, spaces: Sequence[Space]) -> tuple[Array, Array]:
        """Return the expanded volume in m³ at a pressure in Pa, and its wall compliance in m³/Pa."""
        whole = walls = np.asarray(0.0)
        for space in spaces:
            whole = whole + space.volume
            if space.bulk_modulus is not None:
                walls = walls + space.volume / space.bulk_modulus
        return whole + self.rise(pressure) * walls, walls

    def capacity(self, compliance: Array | float, pressure: Array, spaces: Sequence[Space]) -> Array:
        """Return the hydraulic capacitance of volumes in m³/Pa [Jaiswal2021, eq. 42].

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
    """Conservation of mass."""

    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array:
        """Return the relative volume v."""
        return oil.relative_volume_at(gas_pressure)

    def carried_energy(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:  # noqa: ARG002
        """Return the enthalpy h."""
        return oil.enthalpy_at(gas_pressure)

    def energy_density(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return u / v."""
        return oil.enthalpy_at(gas_pressure) / oil.relative_volume_at(gas_pressure) - pressure

    def stored_power(self, oil: Fluid, change: NodeChange) -> Array:
        """Return the power of flows, the work of moving walls, and the strain energy of newly exposed walls."""
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
    """Conservation of volume, except for that of the air, as in [Jaiswal2021]; walls do not expand."""

    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array | None:
        """Return 1 + α r."""
        return None if oil.mixture is None else oil.mixture.expansion_by_air(gas_pressure)

    def carried_energy(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return p per volume at p."""
        volume = self.flowing_volume(oil, gas_pressure)
        return pressure if volume is None else pressure * volume

    def energy_density(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return u / v; without air ∫ p dp / K, which differs by a fraction p / K only and is simpler."""
        if oil.mixture is None:
            return wall_energy(pressure) / oil.bulk_modulus
        return oil.enthalpy_at(gas_pressure) / oil.relative_volume_at(gas_pressure) - pressure

    def stored_power(self, oil: Fluid, change: NodeChange) -> Array:
        """Return p Q − p V̇, the energy of oil that the flow did not carry, and that of newly exposed walls."""
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
"""Conservation laws by the option of `Oil.conserves`."""


def held_mass(oil: Fluid, pressure: Array, gas_pressure: Array, spaces: Sequence[Space]) -> Array:
    """Return the mass in kg of the oil in volumes, for either conservation law.

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
    """Return the energy of elastic walls per volume and per 1 / K, in Pa²."""
    return 0.5 * (pressure**2 - ATMOSPHERIC_PRESSURE**2)
