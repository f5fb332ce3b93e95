"""What holds nodes at a pressure: pumps of constant pressure, tanks."""

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
    """What holds a node at a pressure and tells what it gives.

    Attributes
    ----------
    node
        The node that it holds at its pressure.
    """

    stage: ClassVar[Stage] = Stage.SOURCE
    node: HeldPort

    def outputs(self) -> tuple[Quantity, ...]:
        """Return flow and power."""
        return (
            Quantity("flow", "m3/s", description="flow into the circuit, by the volume at the source"),
            Quantity("power", "W", description="power into the circuit"),
        )

    def highest_pressure(self, values: Mapping[str, float]) -> float:
        """Return its pressure; infinite where that is not known, for something drives it."""
        return values.get("pressure", inf)

    def held_pressures(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return its pressure."""
        return {"node": now["pressure"]}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return what the rest of the circuit takes from its node."""
        flow = -now.inflow("node")
        return {"flow": flow, "power": flow * now["pressure"]}


class PressureSource(Source):
    """A pump with constant pressure.

    Attributes
    ----------
    pressure
        In Pa, against vacuum.
    """

    type: Literal["pressure-source"] = "pressure-source"
    pressure: _Pressure


class Tank(Source):
    """A tank with constant pressure.

    Attributes
    ----------
    pressure
        In Pa, against vacuum.
    """

    type: Literal["tank"] = "tank"
    pressure: _Pressure = 1e5

    def highest_pressure(self, values: Mapping[str, float]) -> float:  # noqa: ARG002
        """Return nothing: it pumps none."""
        return 0.0
