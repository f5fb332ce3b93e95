"""Gas-charged accumulators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from hydraulics.component import ChamberPort, Component, Space
from hydraulics.component_context import ComponentContext
from hydraulics.flow import LAMINAR_PRESSURE, orifice_flow, throttle_coefficient
from hydraulics.fluid import ISOTHERMAL
from mbsfmu.modelling.fields import Array, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity

_SEAT = 1e-3
"""Share of the volume that is left of the oil where the bladder sits down."""
_LEAST_GAS = 1e-3
"""Share of the volume below which the gas is not compressed further: beyond a thousand times the precharge."""


class Accumulator(Component):
    """A gas behind a bladder or piston, which oil compresses [Watton: Fundamentals of Fluid Power Control, 2009].

    The gas is polytropic, p_g = p₀ (V₀ / (V₀ − V))ⁿ with the oil's volume V, and oil enters like through an orifice,
    V̇ = C Δp / √max(|Δp|, p_laminar), Δp = p − p_g. The last thousandth of oil the bladder gives up as it sits down on
    its seat, against whose stiffness p_g falls to nothing with V: where p is below the precharge oil is left with
    V ≈ 10⁻³ V₀ p / p₀, and never less than none.

    Attributes
    ----------
    node
        The node whose volume its oil adds to.
    volume
        V₀ of the gas in m³ where there is no oil.
    precharge_pressure
        p₀ in Pa, against vacuum.
    polytropic_index
        n: 1 for slow changes at one temperature, 1.4 for fast ones of nitrogen, and more at high pressure.
    inlet_diameter, discharge_coefficient
        Of the orifice, the diameter in m.
    laminar_pressure
        Pressure drop in Pa below which the flow in it is laminar.
    """

    type: Literal["accumulator"] = "accumulator"
    node: ChamberPort
    volume: Annotated[Positive, Parameter("m3", "volume of the gas without oil", usual=(1e-6, 10.0))]
    precharge_pressure: Annotated[Positive, Parameter("Pa", "pressure of the gas without oil", usual=(1e4, 1e9))]
    polytropic_index: Annotated[
        float, Field(ge=ISOTHERMAL, le=2), Parameter("1", "index of the gas's law, 1 at one temperature")
    ] = 1.3
    inlet_diameter: Annotated[Positive, Parameter("m", "diameter of the inlet", tunable=True, usual=(1e-5, 0.5))]
    discharge_coefficient: Annotated[
        Positive, Parameter("1", "flow discharge coefficient of the inlet", tunable=True, maximum=1.0)
    ] = 0.7
    laminar_pressure: Annotated[
        Positive, Parameter("Pa", "pressure drop below which the flow is laminar", tunable=True)
    ] = LAMINAR_PRESSURE

    def states(self) -> tuple[Quantity, ...]:
        """Return the volume of its oil."""
        return (Quantity("oil_volume", "m3", nominal=self.volume, description="volume of the oil in it"),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the pressure of the gas and the flow."""
        return (
            Quantity("gas_pressure", "Pa", description="pressure of the gas, against vacuum"),
            Quantity("flow", "m3/s", description="flow into it"),
        )

    # -- equations ------------------------------------------------------------------------------------------

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return what flows in."""
        return {"oil_volume": self._flow(now)}

    def displacements(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return what its bladder makes room for."""
        return {"node": -self._flow(now)}

    def volumes(self, now: ComponentContext) -> Iterable[Space]:
        """Return its oil."""
        return (Space("node", now["oil_volume"]),)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the pressure of the gas and the flow."""
        return {"gas_pressure": self._gas_pressure(now), "flow": self._flow(now)}

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the volume at which gas or seat balance the pressure at the start."""
        ratio = now.pressure("node") / now["precharge_pressure"]
        compressed = 1.0 - np.maximum(ratio, 1.0) ** (-1.0 / now["polytropic_index"])
        seated = _SEAT * np.clip(ratio, 0.0, 1.0)
        return {"oil_volume": now["volume"] * np.maximum(compressed, seated)}

    def energy(self, now: ComponentContext) -> Array:
        """Return ∫ p_g dV in J, from the gas without oil on, and what the seat stores."""
        work, exponent = now["precharge_pressure"] * now["volume"], now["polytropic_index"] - 1.0
        compression = np.log(now["volume"] / self._gas_volume(now))
        isothermal = exponent < 1e-6
        curved = np.where(isothermal, 1.0, exponent)
        gas = np.where(isothermal, compression, (np.exp(curved * compression) - 1.0) / curved)
        return work * (gas + 0.5 * _SEAT * self._seated(now) ** 2)

    def energy_rate(self, now: ComponentContext) -> Array:
        """Return the power in W against gas and seat."""
        return self._pressure(now) * self._flow(now)

    def _gas_volume(self, now: ComponentContext) -> Array:
        return np.maximum(now["volume"] - now["oil_volume"], _LEAST_GAS * now["volume"])

    def _gas_pressure(self, now: ComponentContext) -> Array:
        return now["precharge_pressure"] * (now["volume"] / self._gas_volume(now)) ** now["polytropic_index"]

    def _seated(self, now: ComponentContext) -> Array:
        """Return by what share the bladder is pressed on its seat."""
        return np.maximum(1.0 - now["oil_volume"] / (_SEAT * now["volume"]), 0.0)

    def _pressure(self, now: ComponentContext) -> Array:
        """Return the pressure in Pa that gas and seat balance."""
        return self._gas_pressure(now) - now["precharge_pressure"] * self._seated(now)

    def _flow(self, now: ComponentContext) -> Array:
        coefficient = throttle_coefficient(now["discharge_coefficient"], now["inlet_diameter"], now.oil.density)
        return orifice_flow(coefficient, now.pressure("node") - self._pressure(now), now["laminar_pressure"])
