"""Restrictors: orifices of constant or commanded area, capillaries and leakage gaps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from hydraulics.component import Component, ComponentContext, Flow, Port, Stage
from hydraulics.flow import LAMINAR_PRESSURE, Points, area_coefficient, orifice_flow, throttle_coefficient
from mbsfmu.modelling.data import Array, Positive
from mbsfmu.modelling.interpolation import tabulated
from mbsfmu.modelling.parameters import Parameter, Quantity


class TwoPort(Component, abstract=True):
    """A two-port: one flow between two ports, which is also an output.

    Attributes
    ----------
    ends
        Names of the ports; flow from the first to the second is positive.
    """

    ends: ClassVar[tuple[str, str]] = ("inlet", "outlet")

    @abstractmethod
    def flow(self, now: ComponentContext) -> Array:
        """Return the flow rate in m³/s at the upstream density."""

    def drop(self, now: ComponentContext) -> Array:
        """Return the pressure drop from the first port to the second in Pa."""
        origin, target = self.ends
        return now.pressure(origin) - now.pressure(target)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rate."""
        origin, target = self.ends
        return (Quantity("flow", "m3/s", description=f"flow from {origin} to {target}, by the volume upstream"),)

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the flow."""
        return (Flow(self.flow(now), *self.ends),)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rate."""
        return {"flow": self.flow(now)}


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


class LaminarRestrictor(TwoPort, abstract=True):
    """Base of restrictors whose flow rate is proportional to the pressure drop.

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    diameter, length
        In m.
    viscosity
        Dynamic viscosity of the oil in it, in Pa s.
    """

    inlet: Port
    outlet: Port
    diameter: Annotated[Positive, Parameter("m", "diameter", tunable=True, usual=(1e-5, 3.0))]
    length: Annotated[Positive, Parameter("m", "length in the direction of the flow", usual=(1e-5, 1e3))]
    viscosity: Annotated[Positive, Parameter("Pa.s", "dynamic viscosity of the oil", tunable=True, usual=(1e-4, 10.0))]

    @abstractmethod
    def conductance(self, now: ComponentContext) -> Array:
        """Return the hydraulic conductance in m³/(s Pa)."""

    @abstractmethod
    def wetted_perimeter(self, now: ComponentContext) -> Array:
        """Return the wetted perimeter in m."""

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rate and the Reynolds number."""
        reynolds = Quantity("reynolds", "1", description="Reynolds number, which laminar flow keeps below some 2000")
        return (*super().outputs(), reynolds)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rate, and the Reynolds number of the hydraulic diameter, Re = 4 ρ |Q| / (μ × perimeter)."""
        flow = self.flow(now)
        reynolds = 4.0 * now.oil.density * np.abs(flow) / (now["viscosity"] * self.wetted_perimeter(now))
        return {"flow": flow, "reynolds": reynolds}

    def flow(self, now: ComponentContext) -> Array:
        """Return the flow rate in m³/s."""
        return self.conductance(now) * self.drop(now)


class Capillary(LaminarRestrictor):
    """Long, narrow, round pipe, Q = π d⁴ / (128 μ l) Δp [Hagen and Poiseuille; Merritt 1967, chap. 3]."""

    type: Literal["capillary"] = "capillary"

    def conductance(self, now: ComponentContext) -> Array:
        """Return the hydraulic conductance in m³/(s Pa)."""
        return np.pi * now["diameter"] ** 4 / (128.0 * now["viscosity"] * now["length"])

    def wetted_perimeter(self, now: ComponentContext) -> Array:
        """Return the perimeter of the bore in m."""
        return np.pi * now["diameter"]


class AnnularGap(LaminarRestrictor):
    """Annular gap around a piston or spool, Q = π d h³ / (12 μ l) (1 + 1.5 ε²) Δp [Merritt 1967, chap. 3].

    Attributes
    ----------
    clearance
        Radial clearance h of a centred piston in m.
    eccentricity
        ε, eccentricity relative to the clearance: at 1 the piston touches, and leakage is two and a half times as
        large.
    """

    type: Literal["annular-gap"] = "annular-gap"
    clearance: Annotated[Positive, Parameter("m", "radial clearance", tunable=True, usual=(1e-7, 1e-3))]
    eccentricity: Annotated[float, Field(ge=0, le=1), Parameter("1", "eccentricity by the clearance", tunable=True)] = (
        0.0
    )

    def conductance(self, now: ComponentContext) -> Array:
        """Return the hydraulic conductance in m³/(s Pa)."""
        gap = np.pi * now["diameter"] * now["clearance"] ** 3 / (12.0 * now["viscosity"] * now["length"])
        return gap * (1.0 + 1.5 * now["eccentricity"] ** 2)

    def wetted_perimeter(self, now: ComponentContext) -> Array:
        """Return the perimeter of both walls in m, taken as equal."""
        return 2.0 * np.pi * now["diameter"]


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
