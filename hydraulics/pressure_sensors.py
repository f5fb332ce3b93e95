"""Pressure and flow sensors, whose outputs other systems can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from hydraulics.component import Component, Flow, Port, SensedPort
from hydraulics.component_context import ComponentContext
from mbsfmu.modelling.fields import Array, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity


class PressureSensor(Component):
    """Sensor of a node's pressure.

    Attributes
    ----------
    node
        The node.
    """

    type: Literal["pressure-sensor"] = "pressure-sensor"
    node: SensedPort

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the pressure."""
        return (Quantity("pressure", "Pa", description="pressure, against vacuum", shared=True),)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the pressure."""
        return {"pressure": now.pressure("node")}


class FlowSensor(Component):
    """Flow meter between two nodes with a pressure drop proportional to the flow rate, as of a gear flow meter.

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    rated_flow, rated_drop
        A flow in m³/s and the pressure drop in Pa at it.
    """

    type: Literal["flow-sensor"] = "flow-sensor"
    inlet: Port
    outlet: Port
    rated_flow: Annotated[Positive, Parameter("m3/s", "flow at the rated drop", usual=(1e-9, 1.0))]
    rated_drop: Annotated[Positive, Parameter("Pa", "pressure drop at the rated flow", usual=(1.0, 1e8))] = 1e4

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rate."""
        description = "flow from inlet to outlet, by the volume upstream"
        return (Quantity("flow", "m3/s", description=description, shared=True),)

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the flow."""
        return (Flow(self._flow(now), "inlet", "outlet"),)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rate."""
        return {"flow": self._flow(now)}

    def _flow(self, now: ComponentContext) -> Array:
        return now["rated_flow"] * ((now.pressure("inlet") - now.pressure("outlet")) / now["rated_drop"])
