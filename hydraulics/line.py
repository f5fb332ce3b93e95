"""Lines with fluid inertia."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import numpy as np

from hydraulics.component import Component, Flow, Port
from hydraulics.component_context import ComponentContext
from hydraulics.pipe_friction import laminar_resistance, reynolds_number, turbulent_factor
from mbsfmu.modelling.fields import Array, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity


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
