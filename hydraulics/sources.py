"""Pressure sources and tanks, which hold nodes at a pressure."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Annotated, ClassVar, Literal

from hydraulics.component import Component, HeldPort, Stage
from hydraulics.component_context import ComponentContext
from mbsfmu.modelling.fields import Array, NonNegative
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity

_Pressure = Annotated[NonNegative, Parameter("Pa", "pressure", tunable=True, usual=(1e3, 1e9))]


class Source(Component, abstract=True):
    """Base of components that hold a node at a pressure and report the supplied flow.

    Attributes
    ----------
    node
        Node held at the pressure.
    """

    stage: ClassVar[Stage] = Stage.SOURCE
    node: HeldPort

    def outputs(self) -> tuple[Quantity, ...]:
        """Return flow rate and power."""
        return (
            Quantity("flow", "m3/s", description="flow into the circuit, by the volume at the source"),
            Quantity("power", "W", description="power into the circuit"),
        )

    def highest_pressure(self, values: Mapping[str, float]) -> float:
        """Return the pressure in Pa; infinite if it is an input."""
        return values.get("pressure", inf)

    def held_pressures(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the pressure in Pa."""
        return {"node": now["pressure"]}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rate that the circuit takes from the node, and its power."""
        flow = -now.inflow("node")
        return {"flow": flow, "power": flow * now["pressure"]}


class PressureSource(Source):
    """Constant-pressure source.

    Attributes
    ----------
    pressure
        In Pa, against vacuum.
    """

    type: Literal["pressure-source"] = "pressure-source"
    pressure: _Pressure


class Tank(Source):
    """Tank at constant pressure.

    Attributes
    ----------
    pressure
        In Pa, against vacuum.
    """

    type: Literal["tank"] = "tank"
    pressure: _Pressure = 1e5

    def highest_pressure(self, values: Mapping[str, float]) -> float:  # noqa: ARG002
        """Return zero: a tank does not pump."""
        return 0.0
