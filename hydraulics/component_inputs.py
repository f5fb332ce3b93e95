"""Where units of somebody else's join a circuit: a flow into a node, or a pressure that a node is held at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from hydraulics.component import Component, Port, Stage
from hydraulics.component_context import ComponentContext
from hydraulics.sources import Source
from mbsfmu.modelling.fields import Array, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity


class FlowSource(Component):
    """A flow into a node from outside the circuit, whatever the pressure.

    Attributes
    ----------
    node
        The node.
    constant_flow
        In m³/s by the volume at the node's pressure; None where it is an input.
    """

    stage: ClassVar[Stage] = Stage.SOURCE
    type: Literal["flow-source"] = "flow-source"
    node: Port
    constant_flow: Annotated[
        float | None, Parameter("m3/s", "flow into the node", tunable=True, usual=(-10.0, 10.0))
    ] = None

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the flow where it is not given."""
        flow = Quantity("flow", "m3/s", 0.0, description="flow into the node, by the volume there")
        return (flow,) if self.constant_flow is None else ()

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the pressure against which it flows, and the power."""
        return (
            Quantity("pressure", "Pa", description="pressure of the node, against vacuum", shared=True),
            Quantity("power", "W", description="power into the circuit"),
        )

    def displacements(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow."""
        return {"node": self._flow(now)}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return pressure and power."""
        return {"pressure": now.pressure("node"), "power": self.work_rate(now)}

    def work_rate(self, now: ComponentContext) -> Array:
        """Return the power in W that pushes the oil in; its own energy it brings beside."""
        return now.pressure("node") * self._flow(now)

    def _flow(self, now: ComponentContext) -> Array:
        return now["constant_flow"] if "constant_flow" in now else now["flow"]


class PressureInput(Source):
    """A node held at a pressure that is an input.

    Attributes
    ----------
    initial_pressure
        In Pa, against vacuum: where nothing drives it, and where states at the start follow from it.
    """

    type: Literal["pressure-input"] = "pressure-input"
    initial_pressure: Annotated[Positive, Parameter("Pa", "pressure at the start", usual=(1e3, 1e9))] = 1e5

    def held_pressures(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return its pressure; inputs are not known yet where states at the start are worked out."""
        return {"node": now["pressure"] if "pressure" in now else now["initial_pressure"]}

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the pressure."""
        return (Quantity("pressure", "Pa", self.initial_pressure, 0.0, description="pressure, against vacuum"),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return flow and power."""
        return (
            Quantity("flow", "m3/s", description="flow into the circuit, by the volume at the source", shared=True),
            Quantity("power", "W", description="power into the circuit"),
        )
