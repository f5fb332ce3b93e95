"""Orifices with a commanded area."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from hydraulics.component import Port, Stage
from hydraulics.component_context import ComponentContext
from hydraulics.flow import LAMINAR_PRESSURE, area_coefficient, orifice_flow
from hydraulics.opening import Points
from hydraulics.two_port import TwoPort
from mbsfmu.modelling.fields import Array, Positive
from mbsfmu.modelling.interpolation import tabulated
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity


class VariableOrifice(TwoPort):
    """Sharp-edged orifice whose area follows a command [Jaiswal2021, eqs. 24 and 25].

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    area
        Largest area in m².
    discharge_coefficient
        Discharge coefficient C_d, at most 1, that of an ideal orifice.
    points
        Table of command and open area fraction; linear interpolation, constant beyond.
    laminar_pressure
        Pressure drop in Pa below which the flow is laminar.
    """

    stage: ClassVar[Stage] = Stage.CONTROL
    type: Literal["variable-orifice"] = "variable-orifice"
    inlet: Port
    outlet: Port
    area: Annotated[Positive, Parameter("m2", "largest area", tunable=True, usual=(1e-10, 0.2))]
    discharge_coefficient: Annotated[Positive, Parameter("1", "flow discharge coefficient", tunable=True, maximum=1.0)]
    points: Annotated[Points, Parameter("1", "open area fraction", tunable=True)] = ((0.0, 0.0), (1.0, 1.0))
    laminar_pressure: Annotated[
        Positive, Parameter("Pa", "pressure drop below which the flow is laminar", tunable=True)
    ] = LAMINAR_PRESSURE

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the command."""
        told = "command, by which the table gives the area; saturates at its ends"
        ends = self.points[0][0], self.points[-1][0]
        return (Quantity("command", "1", 0.0, *ends, description=told, saturates=True),)

    def flow(self, now: ComponentContext) -> Array:
        """Return the flow rate in m³/s."""
        area = now["area"] * tabulated(now["command"], now, "points", self.points)
        coefficient = area_coefficient(now["discharge_coefficient"], area, now.oil.density)
        return orifice_flow(coefficient, self.drop(now), now["laminar_pressure"])
