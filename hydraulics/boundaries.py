"""Boundaries of a circuit: sources and tanks, inputs of other FMUs, sensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Annotated, ClassVar, Literal

from hydraulics.component import Component, ComponentContext, Flow, HeldPort, Port, SensedPort, Stage
from mbsfmu.modelling.data import Array, NonNegative, Positive
from mbsfmu.modelling.parameters import Parameter, Quantity

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
