"""The fluid: oil with entrained air.

The oil contains a volume fraction α of air in bubbles, at atmospheric pressure p_a. Their partial pressure g = p − p_v,
the pressure p minus the vapour pressure p_v (Dalton), follows a polytropic law. Oil of volume 1 at p_a has e = exp((p_a
− g) / K_oil) at g, and its air α r, r = (p_a / g)^(1/n). The mixture has the volume v and the consistent bulk modulus
K, −dv / v = dg / K:

    v = e + α r,   K = (e + α r) / (e / K_oil + α r / (n g))

[Gholizadeh, Burton, Schoenau: Fluid bulk modulus: comparison of low pressure models, International Journal of Fluid
Power 13 (2012), compression alone; with n = 1 and e ≈ 1 Merritt: Hydraulic Control Systems, 1967]. As g goes to zero K
decreases as n g: the fluid becomes a gas, and no flow can reduce its pressure to p_v. The density is that of the oil at
p_a divided by v; the mass of air is neglected.

Integration steps can violate this: a step across the loss of stiffness may end below p_v, where no pressure is defined.
The state of a volume is therefore its compression s instead of its pressure; every value of s corresponds to a pressure
above p_v:

    s = g − c² / g,   g = s / 2 + √(s² / 4 + c²),   c² = α K_oil p_a.

With n = 1, e ≈ 1 and rigid walls −ds / K_oil is the volume change of the mixture relative to that of the oil alone: s
is the pressure of oil without air, negative during cavitation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from mbsfmu.modelling.data import Array, Data, Measured, NonNegative, Positive
from mbsfmu.modelling.parameters import Quantity, Role

LEAST_MODULUS, LEAST_DENSITY = 1e7, 100.0
"""Lower bounds of any liquid in a circuit: bulk modulus in Pa and density in kg/m³."""
Conserved = Literal["mass", "volume"]
"""What flows conserve between nodes; see `hydraulics.equations`."""
ISOTHERMAL = 1.0
"""Polytropic index of an isothermal gas."""


class Oil(Data):
    """Hydraulic oil.

    Attributes
    ----------
    bulk_modulus
        In Pa.
    density
        In kg/m³, at atmospheric pressure and without air.
    air_content
        Volume of the air in bubbles at atmospheric pressure, relative to the oil volume; 0.005 is usual in machines in
        order, and
        in other libraries. Dissolved air does not count until it is released: where pressures stay low for long, up to
        0.09 more. With 0 the bulk modulus is constant, as in [Jaiswal2021, eq. 23], and pressures fall below vacuum
        during cavitation.
    polytropic_index
        n of the air: 1 for isothermal bubbles, as small ones nearly are, up to 1.4 for adiabatic ones. With 1 the
        equations
        are simpler, and n is not a parameter.
    vapour_pressure
        In Pa, against vacuum. That of mineral oil is nearly zero; water-based fluids have some 1e4 Pa.
    conserves
        What flows conserve. "mass": oil expands where it flows to a lower pressure. "volume": the flow rate is the same
        at both ends, except for its air, and walls are as in [Jaiswal2021, eqs. 22 and 23]. Use it only to compare with
        such models: oil that flows to a lower pressure loses Δp / K of its mass, and a closed damper, circuit or
        transmission runs empty.
    """

    bulk_modulus: Annotated[Positive, Role.PARAMETER, Measured("Pa")]
    density: Annotated[Positive, Role.PARAMETER, Measured("kg/m3")]
    air_content: Annotated[float, Field(ge=0, lt=1), Role.PARAMETER, Measured("1")] = 0.005
    polytropic_index: Annotated[float, Field(ge=ISOTHERMAL, le=2), Role.PARAMETER] = ISOTHERMAL
    vapour_pressure: Annotated[NonNegative, Measured("Pa")] = 0.0
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
"""Atmospheric pressure p_a in Pa, to which the air content refers."""


class Mixture(NamedTuple):
    """Oil with air, as numbers or symbols; units as for `Oil`.

    Without a polytropic index the air is isothermal, which avoids a logarithm and an exponential. Reciprocals are
    faster than nested quotients.
    """

    bulk_modulus: Array | float
    air_content: Array | float
    polytropic_index: Array | float | None

    @property
    def _scale(self) -> Array | float:
        """c² in Pa²."""
        return self.air_content * self.bulk_modulus * ATMOSPHERIC_PRESSURE

    def gas_pressure(self, compression: Array) -> Array:
        """Return the gas pressure g in Pa at a compression s in Pa, without cancellation for either sign."""
        half = 0.5 * np.abs(compression)
        larger = half + np.sqrt(half**2 + self._scale)
        return np.maximum(compression, 0.0) + self._scale / larger

    def compression(self, gas_pressure: Array) -> Array:
        """Return the compression s in Pa."""
        return gas_pressure - self._scale / gas_pressure

    def slope(self, gas_pressure: Array) -> Array:
        """Return ds/dg = 1 + c² / g²."""
        return 1.0 + self._scale * (1.0 / gas_pressure) ** 2

    def relative_volume(self, gas_pressure: Array) -> Array:
        """Return the volume v of the mixture relative to the oil volume at atmospheric pressure."""
        return liquid_volume(gas_pressure, self.bulk_modulus) + self._air(gas_pressure)

    def expansion_by_air(self, gas_pressure: Array) -> Array:
        """Return the volume 1 + α r of the mixture for an oil volume of 1, neglecting the oil's compression."""
        return 1.0 + self._air(gas_pressure)

    def compliance(self, gas_pressure: Array) -> Array:
        """Return 1 / K in 1/Pa."""
        liquid, air = liquid_volume(gas_pressure, self.bulk_modulus), self._air(gas_pressure)
        softening = air * (1.0 / gas_pressure)
        if self.polytropic_index is not None:
            softening = softening / self.polytropic_index
        return (liquid * (1.0 / self.bulk_modulus) + softening) / (liquid + air)

    def enthalpy(self, gas_pressure: Array) -> Array:
        """Return ∫ v dg from atmospheric pressure in J/m³ of oil volume there without air."""
        liquid = liquid_enthalpy(gas_pressure, self.bulk_modulus)
        if self.polytropic_index is None:
            return liquid + self.air_content * ATMOSPHERIC_PRESSURE * np.log(gas_pressure / ATMOSPHERIC_PRESSURE)
        steepness = self.polytropic_index / (self.polytropic_index - 1.0)
        air = self._air(gas_pressure) * gas_pressure - self.air_content * ATMOSPHERIC_PRESSURE
        return liquid + steepness * air

    def _air(self, gas_pressure: Array) -> Array:
        """Return the air volume α r."""
        ratio = ATMOSPHERIC_PRESSURE * (1.0 / gas_pressure)
        if self.polytropic_index is None:
            return self.air_content * ratio
        return self.air_content * np.exp(np.log(ratio) / self.polytropic_index)


class Fluid(NamedTuple):
    """The oil of a circuit in one evaluation, as numbers or symbols.

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
        """Return the volume at a pressure in Pa, against vacuum, relative to oil without air at atmospheric pressure.

        The density is `density` divided by this volume.
        """
        return self.relative_volume_at(pressure - self.vapour_pressure)

    def compliance_at(self, gas_pressure: Array) -> Array | float:
        """Return 1 / K in 1/Pa at a gas pressure in Pa, accurate down to almost pure vapour."""
        return 1.0 / self.bulk_modulus if self.mixture is None else self.mixture.compliance(gas_pressure)

    def relative_volume_at(self, gas_pressure: Array) -> Array:
        """Return the relative volume v at a gas pressure in Pa."""
        if self.mixture is None:
            return liquid_volume(gas_pressure, self.bulk_modulus)
        return self.mixture.relative_volume(gas_pressure)

    def enthalpy_at(self, gas_pressure: Array) -> Array:
        """Return the enthalpy h at a gas pressure in Pa, in J/m³ at atmospheric pressure (`hydraulics.equations`)."""
        flow_work = self.vapour_pressure + ATMOSPHERIC_PRESSURE
        if self.mixture is None:
            return flow_work + liquid_enthalpy(gas_pressure, self.bulk_modulus)
        return flow_work * (1.0 + self.mixture.air_content) + self.mixture.enthalpy(gas_pressure)


def liquid_volume(gas_pressure: Array, bulk_modulus: Array | float) -> Array:
    """Return the liquid volume e at a gas pressure in Pa, relative to that at atmospheric pressure."""
    return np.exp((ATMOSPHERIC_PRESSURE - gas_pressure) * (1.0 / bulk_modulus))


def liquid_enthalpy(gas_pressure: Array, bulk_modulus: Array | float) -> Array:
    """Return ∫ e dg from atmospheric pressure in J/m³."""
    return bulk_modulus * (1.0 - liquid_volume(gas_pressure, bulk_modulus))


def oil_parameters(oil: Oil) -> Iterator[Quantity]:
    """Yield the parameters of the oil, and those of its air if it has some."""
    yield Quantity("oil.bulk_modulus", "Pa", oil.bulk_modulus, LEAST_MODULUS, description="bulk modulus")
    yield Quantity("oil.density", "kg/m3", oil.density, LEAST_DENSITY, description="density")
    if oil.air_content > 0.0:
        content, index = oil.air_content, oil.polytropic_index
        yield Quantity("oil.air_content", "1", content, 1e-6, 1.0, description="air at atmospheric pressure, by volume")
        if index != ISOTHERMAL:
            yield Quantity("oil.polytropic_index", "1", index, ISOTHERMAL, 2.0, description="index of the air's law")
        yield Quantity("oil.vapour_pressure", "Pa", oil.vapour_pressure, 0.0, description="vapour pressure of the oil")
