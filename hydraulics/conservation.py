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

import numpy as np

from hydraulics.component import Space
from hydraulics.fluid import ATMOSPHERIC_PRESSURE, Array, Conserved, Fluid


class Conservation(ABC):
    """What flows conserve."""

    @abstractmethod
    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array | None:
        """Return the volume at a gas pressure in Pa of what flows, by any measure that is the same everywhere.

        None where it is the same at any pressure.
        """

    @abstractmethod
    def growth(self, pressure: Array, walls: Array | None) -> Array | float:
        """Return what a volume becomes at a pressure in Pa that is 1 at atmospheric pressure, by the modulus in Pa."""

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
        whole = walls = np.asarray(0.0)
        for space in spaces:
            whole = whole + space.volume * self.growth(pressure, space.bulk_modulus)
            if space.bulk_modulus is not None:
                walls = walls + space.volume / space.bulk_modulus
        return whole * compliance + walls


class MassConservation(Conservation):
    """Flows conserve mass."""

    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array:
        """Return v."""
        return oil.relative_volume_at(gas_pressure)

    def growth(self, pressure: Array, walls: Array | None) -> Array | float:
        """Return w."""
        return growth(pressure, walls)


class VolumeConservation(Conservation):
    """Flows conserve volume, but for that of the air, as in [Jaiswal2021]."""

    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array | None:
        """Return 1 + α r."""
        return None if oil.mixture is None else oil.mixture.expansion_by_air(gas_pressure)

    def growth(self, pressure: Array, walls: Array | None) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0


CONSERVATIONS: dict[Conserved, Conservation] = {
    "mass": MassConservation(),
    "volume": VolumeConservation(),
}
"""What flows conserve, by the word of the oil."""


def growth(pressure: Array, walls: Array | None) -> Array | float:
    """Return w of walls with a modulus in Pa at a pressure in Pa; those without one are rigid."""
    return 1.0 if walls is None else 1.0 + (pressure - ATMOSPHERIC_PRESSURE) / walls


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
    volume = sum((space.volume * growth(pressure, space.bulk_modulus) for space in spaces), start=np.asarray(0.0))
    return oil.density * volume / oil.relative_volume_at(gas_pressure)
