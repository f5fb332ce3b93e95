"""Symbols of hydraulic components, and which of their variables are flows at which ports."""

from __future__ import annotations

from collections.abc import Mapping

from hydraulics import (
    Accumulator,
    AnnularGap,
    Capillary,
    CheckValve,
    Component,
    CounterbalanceValve,
    DirectionalValve,
    FlowSensor,
    FlowSource,
    Hose,
    InertialMotor,
    Line,
    LineEnd,
    Motor,
    PilotCheckValve,
    PressureInput,
    PressureSensor,
    PressureSource,
    ProportionalValve,
    ReducingValve,
    ReliefValve,
    ShuttleValve,
    Tank,
    Throttle,
    TransmissionLine,
    VariableOrifice,
    Volume,
)
from hydraulics.boundaries import Source
from hydraulics.cylinders import AnyCylinder
from hydraulics.displacement_machines import AnyPump, DisplacedPump, DisplacementMachine
from hydraulics.restrictors import TwoPort

_SYMBOLS: tuple[tuple[type[Component] | tuple[type[Component], ...], str], ...] = (
    (Tank, "tank"),
    ((PressureSource, PressureInput), "pressure-source"),
    (FlowSource, "flow-source"),
    (DisplacedPump, "variable-pump"),
    (AnyPump, "pump"),
    ((Motor, InertialMotor), "motor"),
    (AnyCylinder, "cylinder"),
    ((DirectionalValve, ProportionalValve), "valve"),
    (PilotCheckValve, "pilot-check"),
    (CheckValve, "check"),
    (ShuttleValve, "shuttle"),
    ((ReliefValve, CounterbalanceValve), "relief"),
    (ReducingValve, "reducing"),
    (Throttle, "throttle"),
    (VariableOrifice, "variable-orifice"),
    ((Capillary, AnnularGap), "restrictor"),
    (Accumulator, "accumulator"),
    (Hose, "hose"),
    (Volume, "volume"),
    ((Line, TransmissionLine, LineEnd), "line"),
    (PressureSensor, "gauge"),
    (FlowSensor, "flow-meter"),
)
"""Symbols in `symbols.js` after ISO 1219, of the first class that a component belongs to; others are plain boxes."""
PortFlows = Mapping[str, tuple[tuple[str, int], ...]]
"""Variables by port, each with 1 where it is the flow out of the component there, -1 where it is the flow into it."""


def symbol_of(component: Component) -> str:
    """Return the name of a component's symbol; `box` without one."""
    return next((symbol for kinds, symbol in _SYMBOLS if isinstance(component, kinds)), "box")


def port_flows(component: Component) -> PortFlows:
    """Return the variables whose sum is the flow at a port, for the ports where there is one.

    Those of pumps and motors are without the leakage of the case. Components that users define have such a flow if
    they derive from `TwoPort` or a built-in component.
    """
    if isinstance(component, CounterbalanceValve):
        return {"load": (("flow", -1), ("free_flow", 1)), "valve": (("flow", 1), ("free_flow", -1))}
    if isinstance(component, (TwoPort, DisplacementMachine)):
        return _through("flow", *component.ends)
    if isinstance(component, (Line, FlowSensor)):
        return _through("flow", "inlet", "outlet")
    if isinstance(component, TransmissionLine):
        return {"inlet": (("inlet_flow", -1),), "outlet": (("outlet_flow", 1),)}
    if isinstance(component, (Source, FlowSource)):
        return {"node": (("flow", 1),)}
    if isinstance(component, (Accumulator, LineEnd)):
        return {"node": (("flow", -1),)}
    if isinstance(component, ShuttleValve):
        return {
            "a": (("flow_a", -1),),
            "b": (("flow_b", -1),),
            "outlet": (("flow_a", 1), ("flow_b", 1)),
        }
    if isinstance(component, (DirectionalValve, ProportionalValve)):
        return {port: ((f"flow_{port}", 1),) for port in ("a", "b") if port in component.ports()}
    return {}


def _through(variable: str, origin: str, target: str) -> PortFlows:
    return {origin: ((variable, -1),), target: ((variable, 1),)}
