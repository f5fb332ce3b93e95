"""One-way valves: check valves, pilot-operated check valves, shuttle valves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from hydraulics.component import Component, Flow, Port, SensedPort, Stage
from hydraulics.component_context import ComponentContext
from hydraulics.flow import rated_orifice_flow
from hydraulics.opening import opening
from hydraulics.poppet import LAMINAR_PRESSURE, PoppetValve, RatedDrop, RatedFlow
from mbsfmu.modelling.fields import Array, NonNegative, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity


class Check(PoppetValve, abstract=True):
    """Base of check valves: flow from inlet to outlet where the pressure drop exceeds the spring.

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    cracking_pressure, full_pressure
        Pressure drops in Pa of cracking and of full opening, where the valve passes the rated flow.
    """

    inlet: Port
    outlet: Port
    cracking_pressure: Annotated[
        NonNegative, Parameter("Pa", "pressure drop at which it begins to open", tunable=True, usual=(10.0, 1e8))
    ]
    full_pressure: Annotated[
        Positive, Parameter("Pa", "pressure drop at which it is open", tunable=True, usual=(100.0, 1e8))
    ]

    @model_validator(mode="after")
    def _opens(self) -> Self:
        if self.full_pressure <= self.cracking_pressure:
            raise ValueError(
                f"full_pressure is {self.full_pressure}; it must be greater than the cracking pressure, "
                f"{self.cracking_pressure}"
            )
        return self

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return that the full-opening pressure must exceed the cracking pressure."""
        return (("cracking_pressure", "full_pressure"),)

    def acting(self, now: ComponentContext) -> Array:
        """Return the pressure drop in Pa."""
        return self.drop(now)

    def cracking_and_full(self, now: ComponentContext) -> tuple[Array, Array]:
        """Return the pressure drops in Pa of cracking and of full opening."""
        return now["cracking_pressure"], now["full_pressure"]


class CheckValve(Check):
    """Spring-loaded check valve; with a weak spring, from a tank to a line, an anti-cavitation valve."""

    type: Literal["check-valve"] = "check-valve"


class PilotCheckValve(Check):
    """Check valve that a pilot piston, drained to the inlet, can open.

    The opening pressure is Δp + R max(0, p_pilot − p_inlet): the piston only pushes [Murrenhoff: Fundamentals of Fluid
    Power, part 1: Hydraulics]. The valve blocks flow from the outlet until the pilot pressure exceeds the inlet
    pressure by (p_outlet − p_inlet + cracking pressure) / R.

    Attributes
    ----------
    pilot
        Node of the pilot line, from which it takes no oil.
    pilot_ratio
        R, area of the pilot piston divided by that of the seat.
    """

    type: Literal["pilot-check-valve"] = "pilot-check-valve"
    pilot: SensedPort
    pilot_ratio: Annotated[
        Positive, Parameter("1", "area ratio of pilot piston and seat", tunable=True, usual=(0.1, 100.0))
    ]

    def acting(self, now: ComponentContext) -> Array:
        """Return the pressure drop plus the pilot piston's contribution in Pa."""
        push = np.maximum(now.pressure("pilot") - now.pressure("inlet"), 0.0)
        return self.drop(now) + now["pilot_ratio"] * push


class ShuttleValve(Component):
    """Shuttle valve: a ball that the higher inlet pressure pushes onto the seat of the other inlet.

    The position of the ball follows from the difference of the inlet pressures; without a difference both seats are
    half open.

    Attributes
    ----------
    a, b
        Nodes of the inlets.
    outlet
        Node that the inlet of higher pressure feeds.
    rated_flow
        Flow in m³/s of an open seat at the rated pressure drop.
    rated_drop
        In Pa.
    shift_pressure
        Difference in Pa between the inlets at which the ball is on a seat.
    laminar_pressure
        Pressure drop in Pa below which the flow is laminar.
    """

    stage: ClassVar[Stage] = Stage.CONTROL
    type: Literal["shuttle-valve"] = "shuttle-valve"
    a: Port
    b: Port
    outlet: Port
    rated_flow: RatedFlow
    rated_drop: RatedDrop
    shift_pressure: Annotated[
        Positive, Parameter("Pa", "difference between the inlets that seats the ball", tunable=True, usual=(10.0, 1e7))
    ] = 2e4
    laminar_pressure: Annotated[
        Positive, Parameter("Pa", "pressure drop below which the flow is laminar", tunable=True)
    ] = LAMINAR_PRESSURE

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rates from both inlets."""
        return tuple(
            Quantity(f"flow_{port}", "m3/s", description=f"flow from {port} to the outlet, by the volume upstream")
            for port in ("a", "b")
        )

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the flows from both inlets."""
        for port, flow in self._flows(now).items():
            yield Flow(flow, port, "outlet")

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rates from both inlets."""
        return {f"flow_{port}": flow for port, flow in self._flows(now).items()}

    def _flows(self, now: ComponentContext) -> dict[str, Array]:
        shift, laminar = now["shift_pressure"], now["laminar_pressure"]
        open_to_a = opening(now.pressure("a") - now.pressure("b"), -shift, shift)
        return {
            port: rated_orifice_flow(
                share, now["rated_flow"], now["rated_drop"], now.pressure(port) - now.pressure("outlet"), laminar
            )
            for port, share in (("a", open_to_a), ("b", 1.0 - open_to_a))
        }
