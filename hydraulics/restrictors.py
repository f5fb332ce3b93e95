"""Laminar restrictors: capillaries and leakage gaps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from hydraulics.component import Port
from hydraulics.component_context import ComponentContext
from hydraulics.two_port import TwoPort
from mbsfmu.modelling.fields import Array, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity


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
