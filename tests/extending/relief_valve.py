"""A relief valve: a spring holds it closed up to a pressure, from where on it opens with a delay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import model_validator

from hydraulics import Array, Component, ComponentContext, Flow, Parameter, Port, Positive, Quantity, orifice_flow


class PilotReliefValve(Component):
    """A direct-acting relief valve with a first-order poppet.

    Attributes
    ----------
    inlet, outlet
        Nodes.
    cracking_pressure, full_pressure
        Pressure drops in Pa at which it begins to open, and at which it is open.
    flow_coefficient
        Flow by the root of the pressure drop when it is open, in m³/(s √Pa).
    time_constant
        Of the poppet in s.
    laminar_pressure
        Pressure drop in Pa below which the flow is laminar.
    """

    type: Literal["pilot-relief-valve"] = "pilot-relief-valve"
    inlet: Port
    outlet: Port
    cracking_pressure: Annotated[Positive, Parameter("Pa", "pressure drop at which it begins to open", tunable=True)]
    full_pressure: Annotated[Positive, Parameter("Pa", "pressure drop at which it is open", tunable=True)]
    flow_coefficient: Annotated[Positive, Parameter("m3/s", "flow at a pressure drop of 1 Pa when open", tunable=True)]
    time_constant: Annotated[Positive, Parameter("s", "time constant of the poppet", tunable=True)] = 0.01
    laminar_pressure: Annotated[Positive, Parameter("Pa", "pressure drop of laminar flow", tunable=True)] = 2e5

    @model_validator(mode="after")
    def _opens(self) -> Self:
        if self.full_pressure <= self.cracking_pressure:
            raise ValueError(
                f"full_pressure is {self.full_pressure}; it must be greater than the cracking pressure, "
                f"{self.cracking_pressure}"
            )
        return self

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("opening", "1", nominal=1.0, description="lift of the poppet, of its whole"),)

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("pilot", "Pa", 0.0, description="by what a pilot raises the cracking pressure"),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (
            Quantity("flow", "m3/s", description="flow from inlet to outlet", shared=True),
            Quantity("balance", "1", description="lift at which the spring balances the pressure", shared=True),
        )

    def orderings(self) -> tuple[tuple[str, str], ...]:
        return (("cracking_pressure", "full_pressure"),)

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        return (Flow(self._flow(now), "inlet", "outlet"),)

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        return {"opening": (self._lift(now, now["pilot"]) - now["opening"]) / now["time_constant"]}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        return {"flow": self._flow(now), "balance": self._lift(now, now["pilot"])}

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        return {"opening": self._lift(now, 0.0)}

    def _flow(self, now: ComponentContext) -> Array:
        lift = now["opening"]
        area = lift * (2.0 - lift)  # of a poppet: its edge widens first
        return orifice_flow(now["flow_coefficient"] * area, self._drop(now), now["laminar_pressure"])

    def _lift(self, now: ComponentContext, pilot: Array | float) -> Array:
        """Return the lift at which the spring balances the pressure."""
        beyond = self._drop(now) - now["cracking_pressure"] - pilot
        return np.clip(beyond / (now["full_pressure"] - now["cracking_pressure"]), 0.0, 1.0)

    def _drop(self, now: ComponentContext) -> Array:
        return now.pressure("inlet") - now.pressure("outlet")
