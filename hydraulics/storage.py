"""Storage of energy: volumes and hoses, gas-charged accumulators, and the inertia of oil in lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from hydraulics.component import ChamberPort, Component, ComponentContext, FilledPort, Flow, Port, Space
from hydraulics.flow import LAMINAR_PRESSURE, orifice_flow, throttle_coefficient
from hydraulics.fluid import ISOTHERMAL
from hydraulics.transmission_line import laminar_resistance, reynolds_number, turbulent_factor
from mbsfmu.modelling.data import Array, Positive
from mbsfmu.modelling.parameters import Parameter, Quantity

LARGEST_HOSE = 0.5
"""Volume in m³ of a hose of 76 mm, the widest for pressure, that is 110 m long."""
_Volume = Annotated[Positive, Parameter("m3", "volume", usual=(1e-12, 1e3))]


class Hose(Component):
    """A hose with elastic walls.

    Attributes
    ----------
    node
        The node whose volume it adds to.
    volume
        In m³, at atmospheric pressure.
    bulk_modulus
        Modulus of its walls in Pa.
    """

    type: Literal["hose"] = "hose"
    node: FilledPort
    volume: Annotated[Positive, Parameter("m3", "volume", usual=(1e-12, LARGEST_HOSE))]
    bulk_modulus: Annotated[Positive, Parameter("Pa", "bulk modulus", usual=(1e6, inf))]

    def volumes(self, now: ComponentContext) -> Iterable[Space]:
        """Return the volume."""
        return (Space("node", now["volume"], now["bulk_modulus"]),)


class Volume(Component):
    """Volume with rigid walls, such as a manifold.

    Attributes
    ----------
    node
        The node whose volume it adds to.
    volume
        In m³.
    """

    type: Literal["volume"] = "volume"
    node: FilledPort
    volume: _Volume

    def volumes(self, now: ComponentContext) -> Iterable[Space]:
        """Return the volume."""
        return (Space("node", now["volume"]),)


_SEAT = 1e-3
"""Oil volume relative to V₀ below which the bladder is seated."""
_LEAST_GAS = 1e-3
"""Gas volume relative to V₀ below which it is not compressed further (a thousand times the precharge)."""


class Accumulator(Component):
    """Gas-charged bladder or piston accumulator [Watton: Fundamentals of Fluid Power Control, 2009].

    The gas is polytropic, p_g = p₀ (V₀ / (V₀ − V))ⁿ with the oil volume V. Oil enters through an orifice, V̇ = C Δp /
    √max(|Δp|, p_laminar), Δp = p − p_g. Below V = 10⁻³ V₀ the bladder is seated, and the stiffness of the seat brings
    p_g to zero with V. If p is below the precharge pressure, V ≈ 10⁻³ V₀ p / p₀ remains, so that V is never negative.

    Attributes
    ----------
    node
        Node to which the accumulator is connected.
    volume
        Gas volume V₀ without oil in m³.
    precharge_pressure
        p₀ in Pa, against vacuum.
    polytropic_index
        n: 1 for slow, isothermal changes, 1.4 for fast changes of nitrogen, and more at high pressure.
    inlet_diameter, discharge_coefficient
        Diameter in m and discharge coefficient of the orifice.
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
        """Return the oil volume."""
        return (Quantity("oil_volume", "m3", nominal=self.volume, description="volume of the oil in it"),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the gas pressure and the flow rate."""
        return (
            Quantity("gas_pressure", "Pa", description="pressure of the gas, against vacuum"),
            Quantity("flow", "m3/s", description="flow into it"),
        )

    # -- equations ------------------------------------------------------------------------------------------

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rate into the accumulator in m³/s."""
        return {"oil_volume": self._flow(now)}

    def displacements(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rate into the node that the bladder displaces in m³/s."""
        return {"node": -self._flow(now)}

    def volumes(self, now: ComponentContext) -> Iterable[Space]:
        """Return the oil volume in m³."""
        return (Space("node", now["oil_volume"]),)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the gas pressure and the flow rate."""
        return {"gas_pressure": self._gas_pressure(now), "flow": self._flow(now)}

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the oil volume at which gas and seat balance the initial pressure."""
        ratio = now.pressure("node") / now["precharge_pressure"]
        compressed = 1.0 - np.maximum(ratio, 1.0) ** (-1.0 / now["polytropic_index"])
        seated = _SEAT * np.clip(ratio, 0.0, 1.0)
        return {"oil_volume": now["volume"] * np.maximum(compressed, seated)}

    def energy(self, now: ComponentContext) -> Array:
        """Return the energy of gas and seat in J: ∫ p_g dV from V = 0, and the elastic energy of the seat."""
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
        """Return how far the bladder is seated, from 0 to 1."""
        return np.maximum(1.0 - now["oil_volume"] / (_SEAT * now["volume"]), 0.0)

    def _pressure(self, now: ComponentContext) -> Array:
        """Return the pressure p_g of gas and seat in Pa."""
        return self._gas_pressure(now) - now["precharge_pressure"] * self._seated(now)

    def _flow(self, now: ComponentContext) -> Array:
        coefficient = throttle_coefficient(now["discharge_coefficient"], now["inlet_diameter"], now.oil.density)
        return orifice_flow(coefficient, now.pressure("node") - self._pressure(now), now["laminar_pressure"])


class Line(Component):
    """Round line with lumped fluid inertia, (ρ l / A) Q̇ = Δp − Δp_f.

    Friction is the greater of laminar and turbulent pipe friction of fully developed flow: Δp_f = λ (l / d) ρ u |u| / 2
    with λ = 64 / Re [Hagen and Poiseuille] or 0.3164 / Re^¼ [Blasius 1913, up to Re = 10⁵; Merritt: Hydraulic Control
    Systems, 1967]. Both are equal at Re = 1187, below the actual transition, so that friction is continuous. The
    compliance of oil and walls is that of hoses at its ends, half of it at each.

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    diameter, length
        In m.
    viscosity
        Dynamic viscosity μ of the oil in Pa s.
    initial_flow
        In m³/s.
    """

    type: Literal["line"] = "line"
    inlet: Port
    outlet: Port
    diameter: Annotated[Positive, Parameter("m", "diameter", usual=(1e-4, 3.0))]
    length: Annotated[Positive, Parameter("m", "length", usual=(1e-3, 1e5))]
    viscosity: Annotated[Positive, Parameter("Pa.s", "dynamic viscosity of the oil", tunable=True, usual=(1e-4, 10.0))]
    initial_flow: Annotated[float, Parameter("m3/s", "flow at the start")] = 0.0

    def states(self) -> tuple[Quantity, ...]:
        """Return the flow rate."""
        description = "flow from inlet to outlet, by the volume upstream"
        return (Quantity("flow", "m3/s", nominal=1e-4, description=description),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return friction and the Reynolds number."""
        return (
            Quantity("friction", "Pa", description="pressure drop by friction"),
            Quantity("reynolds", "1", description="Reynolds number"),
        )

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the flow."""
        return (Flow(now["flow"], "inlet", "outlet"),)

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the derivative of the flow rate in m³/s²."""
        return {"flow": self._driving(now) / self._inertance(now)}

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the initial flow rate."""
        return {"flow": now["initial_flow"]}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return friction and the Reynolds number."""
        return {"friction": self._friction(now), "reynolds": self._reynolds(now)}

    def energy(self, now: ComponentContext) -> Array:
        """Return the kinetic energy in J."""
        return 0.5 * self._inertance(now) * now["flow"] ** 2

    def energy_rate(self, now: ComponentContext) -> Array:
        """Return the power in W that accelerates the oil."""
        return now["flow"] * self._driving(now)

    def _driving(self, now: ComponentContext) -> Array:
        """Return the pressure in Pa that accelerates the oil."""
        return now.pressure("inlet") - now.pressure("outlet") - self._friction(now)

    def _inertance(self, now: ComponentContext) -> Array:
        return now.oil.density * now["length"] / (0.25 * np.pi * now["diameter"] ** 2)

    def _reynolds(self, now: ComponentContext) -> Array:
        return reynolds_number(now["flow"], now["diameter"], now["viscosity"] / now.oil.density)

    def _friction(self, now: ComponentContext) -> Array:
        """Return Δp_f in Pa."""
        resistance = laminar_resistance(now["length"], now["diameter"], now["viscosity"])
        return resistance * now["flow"] * turbulent_factor(self._reynolds(now))
