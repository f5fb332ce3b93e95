"""Directional control valves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from hydraulics.component import Component, Flow, Port, Stage
from hydraulics.component_context import ComponentContext
from hydraulics.flow import LAMINAR_PRESSURE, orifice_flow
from mbsfmu.modelling.fields import Array, NonNegative, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity

SPOOL_NOMINAL = 10.0
"""Nominal value of a spool position in V."""


class DirectionalValve(Component):
    """A 4/3 directional control valve with first-order spool [Jaiswal2021, eqs. 26 and 27].

    A positive spool position joins supply to a and b to tank, a negative one supply to b and a to tank.

    Attributes
    ----------
    supply, tank, a, b
        Nodes of its ports.
    flow_coefficient
        C_vd in m³/(s V √Pa).
    time_constant
        τ of the spool in s.
    command_limit
        Saturation of the command in V, symmetric.
    dead_band
        Spool position in V up to which the edges overlap and stay closed.
    laminar_pressure
        Pressure drop in Pa below which the flow is laminar.
    initial_spool
        Spool position at the start in V.
    """

    stage: ClassVar[Stage] = Stage.CONTROL
    type: Literal["directional-valve"] = "directional-valve"
    supply: Port
    tank: Port
    a: Port
    b: Port
    flow_coefficient: Annotated[
        Positive,
        Parameter(
            "m3/(s.V)",
            "flow per volt at a pressure drop of 1 Pa, with whose root it grows",
            tunable=True,
            usual=(1e-14, 1e-3),
        ),
    ]
    time_constant: Annotated[Positive, Parameter("s", "time constant of the spool", tunable=True, usual=(1e-6, 10.0))]
    command_limit: Annotated[Positive, Parameter("V", "command at which it saturates", tunable=True)] = 10.0
    dead_band: Annotated[
        NonNegative, Parameter("V", "spool position up to which the valve stays closed", tunable=True)
    ] = 0.0
    laminar_pressure: Annotated[
        Positive, Parameter("Pa", "pressure drop below which the flow is laminar", tunable=True)
    ] = LAMINAR_PRESSURE
    initial_spool: Annotated[float, Parameter("V", "spool position at the start")] = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if abs(self.initial_spool) > self.command_limit:
            raise ValueError(
                f"initial_spool is {self.initial_spool}; it must be within the command limit of {self.command_limit} V"
            )
        return self

    def states(self) -> tuple[Quantity, ...]:
        """Return the spool position."""
        return (Quantity("spool", "V", nominal=SPOOL_NOMINAL, description="spool position"),)

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the command."""
        limit, told = self.command_limit, "command; saturates at its limit"
        return (Quantity("command", "V", 0.0, -limit, limit, description=told, saturates=True),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rates to the actuator."""
        return (
            Quantity("flow_a", "m3/s", description="flow out of port a, by the volume upstream"),
            Quantity("flow_b", "m3/s", description="flow out of port b, by the volume upstream"),
        )

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the flow over each edge."""
        supplies_a = now["spool"] > 0.0
        out_of_a, out_of_b = self._flows_out(now)
        yield Flow(np.where(supplies_a, out_of_a, 0.0), "supply", "a")
        yield Flow(np.where(supplies_a, 0.0, out_of_a), "tank", "a")
        yield Flow(np.where(supplies_a, 0.0, out_of_b), "supply", "b")
        yield Flow(np.where(supplies_a, out_of_b, 0.0), "tank", "b")

    def _flows_out(self, now: ComponentContext) -> tuple[Array, Array]:
        """Return the flow rates out of ports a and b in m³/s; at most one of the two edges of a port is open."""
        spool, dead_band = now["spool"], now["dead_band"]
        opening = np.maximum(spool - dead_band, 0.0) - np.maximum(-spool - dead_band, 0.0)
        coefficient = now["flow_coefficient"] * opening
        supply, tank, at_a, at_b = (now.pressure(port) for port in ("supply", "tank", "a", "b"))
        laminar = now["laminar_pressure"]
        out_of_a = orifice_flow(coefficient, np.where(spool > 0.0, supply - at_a, at_a - tank), laminar)
        into_b = orifice_flow(coefficient, np.where(spool > 0.0, at_b - tank, supply - at_b), laminar)
        return out_of_a, -into_b

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rates to the actuator."""
        out_of_a, out_of_b = self._flows_out(now)
        return {"flow_a": out_of_a, "flow_b": out_of_b}

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the derivative of the spool position in V/s [Jaiswal2021, eq. 27]."""
        limit = now["command_limit"]
        command = np.maximum(np.minimum(now["command"], limit), -limit)
        return {"spool": (command - now["spool"]) / now["time_constant"]}

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the initial spool position."""
        return {"spool": now["initial_spool"]}
