"""The fluid: oil with air in it.

Beside the oil there is a share α of its volume, counted at atmospheric pressure p_a, of air in bubbles. Their pressure
g = p − p_v, what is left of the pressure p without that of the vapour p_v (Dalton), follows a polytropic law. Oil that
has the volume 1 at p_a has e = exp((p_a − g) / K_oil) at g, and its air α r, r = (p_a / g)^(1/n). So the mixture has
the volume v and the bulk modulus K, which belong together, −dv / v = dg / K:

    v = e + α r,   K = (e + α r) / (e / K_oil + α r / (n g))

[Gholizadeh, Burton, Schoenau: Fluid bulk modulus: comparison of low pressure models, International Journal of Fluid
Power 13 (2012), compression alone; with n = 1 and e ≈ 1 Merritt: Hydraulic Control Systems, 1967]. Where g falls to
zero K falls like n g: the fluid becomes a gas, and no flow brings its pressure down to p_v. The density is that of the
oil at p_a by v; air weighs nothing beside it.

Rules that make steps do not know that: a step in which the oil loses its stiffness may end below p_v, where there is no
pressure. So the state of a volume is not its pressure but its compression s; any value of s is a pressure above p_v:

    s = g − c² / g,   g = s / 2 + √(s² / 4 + c²),   c² = α K_oil p_a.

With n = 1, e ≈ 1 and rigid walls −ds / K_oil is the change of the mixture's volume by that of the oil alone: s is the
pressure that oil without air would have, below zero where oil is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from mbsfmu.modelling.data import Data
from mbsfmu.modelling.fields import Array, NonNegative, Positive
from mbsfmu.modelling.quantity import Quantity

LEAST_MODULUS, LEAST_DENSITY = 1e7, 100.0
"""Bulk modulus in Pa and density in kg/m³ below those of any liquid in a circuit."""
Conserved = Literal["mass", "volume"]
"""What flows conserve from one node to another; see `hydraulics.conservation`."""
ISOTHERMAL = 1.0
"""Polytropic index of a gas that keeps its temperature."""


class Oil(Data):
    """Hydraulic oil.

    Attributes
    ----------
    bulk_modulus
        In Pa.
    density
        In kg/m³, at atmospheric pressure and without air.
    air_content
        Volume of the air in bubbles at atmospheric pressure, as a share of the oil's volume; 0.005 is what oil of a
        machine in order has, and what other libraries take. Air that is dissolved does not count until it is released:
        where pressures stay low for long, up to 0.09 more. With 0 the oil has the same modulus at any pressure, as in
        [Jaiswal2021, eq. 23], and its pressures fall below vacuum where it is torn.
    polytropic_index
        n of the air: 1 for bubbles that keep the oil's temperature, as small ones nearly do, up to 1.4 for those that
        have no time to. With 1 the equations are simpler, and it is no parameter of theirs.
    vapour_pressure
        In Pa, against vacuum. That of mineral oil is next to nothing; water-based fluids have some 1e4 Pa.
    conserves
        What flows conserve. "mass": oil expands where it flows from a higher to a lower pressure, and none appears or
        is lost. "volume": it arrives with the volume that it left with, but for its air, and walls are as in
        [Jaiswal2021, eqs. 22 and 23]. That is for comparison with such models: oil gets lost wherever it flows to a
        lower pressure, Δp / K of it, and a closed damper, a closed circuit or a transmission runs dry.
    """

    bulk_modulus: Positive
    density: Positive
    air_content: Annotated[float, Field(ge=0, lt=1)] = 0.005
    polytropic_index: Annotated[float, Field(ge=ISOTHERMAL, le=2)] = ISOTHERMAL
    vapour_pressure: NonNegative = 0.0
    conserves: Conserved = "mass"

    @model_validator(mode="after")
    def _is_liquid(self) -> Self:
        if self.bulk_modulus < LEAST_MODULUS:
            raise ValueError(
                f"bulk_modulus is {self.bulk_modulus:g} Pa; it must be at least {LEAST_MODULUS:g} Pa as that of any "
                "liquid, and that of mineral oil is some 1.5e9 Pa"
            )
        if self.density < LEAST_DENSITY:
            raise ValueError(
                f"density is {self.density:g} kg/m3; it must be at least {LEAST_DENSITY:g} kg/m3 as that of any "
                "liquid, and that of mineral oil is some 850 kg/m3"
            )
        return self


ATMOSPHERIC_PRESSURE = 101325.0
"""p_a in Pa, at which the content of air is counted."""


class Mixture(NamedTuple):
    """Oil with air, as numbers or symbols; units as for `Oil`.

    Without a polytropic index the air is isothermal, which saves a logarithm and an exponential. Reciprocals take less
    time than quotients of quotients.
    """

    bulk_modulus: Array | float
    air_content: Array | float
    polytropic_index: Array | float | None

    @property
    def _scale(self) -> Array | float:
        """c² in Pa²."""
        return self.air_content * self.bulk_modulus * ATMOSPHERIC_PRESSURE

    def gas_pressure(self, compression: Array) -> Array:
        """Return g in Pa at a compression s in Pa; written so that nothing cancels at either sign."""
        half = 0.5 * np.abs(compression)
        larger = half + np.sqrt(half**2 + self._scale)
        return np.maximum(compression, 0.0) + self._scale / larger

    def compression(self, gas_pressure: Array) -> Array:
        """Return s in Pa."""
        return gas_pressure - self._scale / gas_pressure

    def slope(self, gas_pressure: Array) -> Array:
        """Return ds/dg = 1 + c² / g²."""
        return 1.0 + self._scale * (1.0 / gas_pressure) ** 2

    def relative_volume(self, gas_pressure: Array) -> Array:
        """Return the volume v of oil with its air where the oil alone has 1 at atmospheric pressure."""
        return liquid_volume(gas_pressure, self.bulk_modulus) + self._air(gas_pressure)

    def expansion_by_air(self, gas_pressure: Array) -> Array:
        """Return the volume 1 + α r of oil with its air where the oil alone has 1, its own compression left aside."""
        return 1.0 + self._air(gas_pressure)

    def compliance(self, gas_pressure: Array) -> Array:
        """Return 1 / K in 1/Pa."""
        liquid, air = liquid_volume(gas_pressure, self.bulk_modulus), self._air(gas_pressure)
        softening = air * (1.0 / gas_pressure)
        if self.polytropic_index is not None:
            softening = softening / self.polytropic_index
        return (liquid * (1.0 / self.bulk_modulus) + softening) / (liquid + air)

    def enthalpy(self, gas_pressure: Array) -> Array:
        """Return ∫ v dg in J/m³ from atmospheric pressure on, by the volume that the oil has there without air."""
        liquid = liquid_enthalpy(gas_pressure, self.bulk_modulus)
        if self.polytropic_index is None:
            return liquid + self.air_content * ATMOSPHERIC_PRESSURE * np.log(gas_pressure / ATMOSPHERIC_PRESSURE)
        steepness = self.polytropic_index / (self.polytropic_index - 1.0)
        air = self._air(gas_pressure) * gas_pressure - self.air_content * ATMOSPHERIC_PRESSURE
        return liquid + steepness * air

    def _air(self, gas_pressure: Array) -> Array:
        """Return α r."""
        ratio = ATMOSPHERIC_PRESSURE * (1.0 / gas_pressure)
        if self.polytropic_index is None:
            return self.air_content * ratio
        return self.air_content * np.exp(np.log(ratio) / self.polytropic_index)


class Fluid(NamedTuple):
    """The oil of a circuit at one moment, as numbers or symbols.

    Attributes
    ----------
    density
        In kg/m³.
    bulk_modulus
        Of the oil without air in Pa.
    vapour_pressure
        In Pa, against vacuum.
    mixture
        The oil with its air; None where it has none.
    """

    density: Array | float
    bulk_modulus: Array | float
    vapour_pressure: Array | float
    mixture: Mixture | None

    def compliance(self, pressure: Array) -> Array | float:
        """Return the reciprocal of the bulk modulus at a pressure in Pa, against vacuum, in 1/Pa."""
        return self.compliance_at(pressure - self.vapour_pressure)

    def relative_volume(self, pressure: Array) -> Array:
        """Return the volume at a pressure in Pa, against vacuum, of oil that without air has 1 at atmospheric pressure.

        The density is `density` by this volume.
        """
        return self.relative_volume_at(pressure - self.vapour_pressure)

    def compliance_at(self, gas_pressure: Array) -> Array | float:
        """Return 1 / K in 1/Pa at a gas pressure in Pa, which is exact where almost nothing but vapour is left."""
        return 1.0 / self.bulk_modulus if self.mixture is None else self.mixture.compliance(gas_pressure)

    def relative_volume_at(self, gas_pressure: Array) -> Array:
        """Return v at a gas pressure in Pa."""
        if self.mixture is None:
            return liquid_volume(gas_pressure, self.bulk_modulus)
        return self.mixture.relative_volume(gas_pressure)

    def enthalpy_at(self, gas_pressure: Array) -> Array:
        """Return h at a gas pressure in Pa, in J/m³ by the volume at atmospheric pressure; see `hydraulics.energy`."""
        flow_work = self.vapour_pressure + ATMOSPHERIC_PRESSURE
        if self.mixture is None:
            return flow_work + liquid_enthalpy(gas_pressure, self.bulk_modulus)
        return flow_work * (1.0 + self.mixture.air_content) + self.mixture.enthalpy(gas_pressure)


def liquid_volume(gas_pressure: Array, bulk_modulus: Array | float) -> Array:
    """Return the volume e at a gas pressure in Pa of oil that has 1 at atmospheric pressure."""
    return np.exp((ATMOSPHERIC_PRESSURE - gas_pressure) * (1.0 / bulk_modulus))


def liquid_enthalpy(gas_pressure: Array, bulk_modulus: Array | float) -> Array:
    """Return ∫ e dg in J/m³ from atmospheric pressure on."""
    return bulk_modulus * (1.0 - liquid_volume(gas_pressure, bulk_modulus))


def oil_parameters(oil: Oil) -> Iterator[Quantity]:
    """Yield the parameters of the oil; those of air where it has some."""
    yield Quantity("oil.bulk_modulus", "Pa", oil.bulk_modulus, LEAST_MODULUS, description="bulk modulus")
    yield Quantity("oil.density", "kg/m3", oil.density, LEAST_DENSITY, description="density")
    if oil.air_content > 0.0:
        content, index = oil.air_content, oil.polytropic_index
        yield Quantity("oil.air_content", "1", content, 1e-6, 1.0, description="air at atmospheric pressure, by volume")
        if index != ISOTHERMAL:
            yield Quantity("oil.polytropic_index", "1", index, ISOTHERMAL, 2.0, description="index of the air's law")
        yield Quantity("oil.vapour_pressure", "Pa", oil.vapour_pressure, 0.0, description="vapour pressure of the oil")
