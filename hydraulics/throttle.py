"""Orifices of constant area."""

from __future__ import annotations

from typing import Annotated, Literal

from hydraulics.component import Port
from hydraulics.component_context import ComponentContext
from hydraulics.flow import LAMINAR_PRESSURE, orifice_flow, throttle_coefficient
from hydraulics.two_port import TwoPort
from mbsfmu.modelling.fields import Array, Positive
from mbsfmu.modelling.parameters import Parameter


class Throttle(TwoPort):
    """A sharp-edged orifice between two nodes [Jaiswal2021, eqs. 24 and 25].

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    orifice_diameter
        In m.
    discharge_coefficient
        Discharge coefficient C_d, at most 1, that of an ideal orifice.
    laminar_pressure
        Pressure drop in Pa below which the flow is laminar.
    """

    type: Literal["throttle"] = "throttle"
    inlet: Port
    outlet: Port
    orifice_diameter: Annotated[Positive, Parameter("m", "diameter of the orifice", tunable=True, usual=(1e-5, 0.5))]
    discharge_coefficient: Annotated[Positive, Parameter("1", "flow discharge coefficient", tunable=True, maximum=1.0)]
    laminar_pressure: Annotated[
        Positive, Parameter("Pa", "pressure drop below which the flow is laminar", tunable=True)
    ] = LAMINAR_PRESSURE

    def flow(self, now: ComponentContext) -> Array:
        """Return the flow rate in m³/s."""
        coefficient = throttle_coefficient(now["discharge_coefficient"], now["orifice_diameter"], now.oil.density)
        return orifice_flow(coefficient, self.drop(now), now["laminar_pressure"])
