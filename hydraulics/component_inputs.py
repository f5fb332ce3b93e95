"""Circuit inputs for other FMUs: a flow into a node, or the pressure of a node."""

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
    """Flow into a node from outside the circuit, independent of the pressure.

    Attributes
    ----------
    node
        The node.
    constant_flow
        In m³/s at the density of the node; None if it is an input.
    """

    stage: ClassVar[Stage] = Stage.SOURCE
    type: Literal["flow-source"] = "flow-source"
    node: Port
    constant_flow: Annotated[
        float | None, Parameter("m3/s", "flow into the node", tunable=True, usual=(-10.0, 10.0))
    ] = None

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the flow rate if it is not constant."""
        flow = Quantity("flow", "m3/s", 0.0, description="flow into the node, by the volume there")
        return (flow,) if self.constant_flow is None else ()

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the node pressure and the power."""
        return (
            Quantity("pressure", "Pa", description="pressure of the node, against vacuum", shared=True),
            Quantity("power", "W", description="power into the circuit"),
        )

    def displacements(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rate in m³/s."""
        return {"node": self._flow(now)}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the node pressure and the power."""
        return {"pressure": now.pressure("node"), "power": self.work_rate(now)}

    def work_rate(self, now: ComponentContext) -> Array:
        """Return the power in W that pushes the oil in, without the oil's own energy."""
        return now.pressure("node") * self._flow(now)

    def _flow(self, now: ComponentContext) -> Array:
        return now["constant_flow"] if "constant_flow" in now else now["flow"]


class PressureInput(Source):
    """Node held at a pressure that is an input.

    Attributes
    ----------
    initial_pressure
        In Pa, against vacuum: start value of the input, and pressure for the initial states.
    """

    type: Literal["pressure-input"] = "pressure-input"
    initial_pressure: Annotated[Positive, Parameter("Pa", "pressure at the start", usual=(1e3, 1e9))] = 1e5

    def held_pressures(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the pressure; the initial pressure during initialization, where inputs are unknown."""
        return {"node": now["pressure"] if "pressure" in now else now["initial_pressure"]}

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the pressure."""
        return (Quantity("pressure", "Pa", self.initial_pressure, 0.0, description="pressure, against vacuum"),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return flow rate and power."""
        return (
            Quantity("flow", "m3/s", description="flow into the circuit, by the volume at the source", shared=True),
            Quantity("power", "W", description="power into the circuit"),
        )
