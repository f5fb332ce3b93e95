"""Proportional directional valves with any edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hydraulics.component import Component, Flow, OptionalPort, Port, Stage
from hydraulics.component_context import ComponentContext
from hydraulics.edges import Edge, Edges
from hydraulics.flow import LAMINAR_PRESSURE, rated_orifice_flow
from hydraulics.opening import kept_below
from hydraulics.poppet import RatedDrop, RatedFlow
from mbsfmu.modelling.fields import Array, OptionalPositive, Positive
from mbsfmu.modelling.interpolation import interpolated
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity

WORK_PORTS = "a", "b"
SENSING_SHARE = 0.02
"""Edge opening above which the load-sensing port is fully connected to the work port."""
_TRAVEL = -1.0, 1.0
"""Ends of the spool's stroke, at which commands saturate."""
_SPOOL = Quantity("spool", "1", nominal=1.0, description="spool position, relative to its stroke")


class ProportionalValve(Component):
    """Proportional directional valve, defined by its edges: 4/3, 3/2 or 2/2, with any centre.

    Each edge is an orifice whose opening is a table over the spool position [Merritt: Hydraulic Control Systems, 1967,
    chap. 5; Jelali and Kroll: Hydraulic Servo-systems, 2003]. The spool follows the command instantly, with a
    first-order lag, or as a second-order system, ẍ = ω² (u − x) − 2 ζ ω ẋ.

    Attributes
    ----------
    supply, tank, a, b
        Nodes of its ports; those that the edges connect must be given.
    load_sense
        Node of the load-sensing line; a small check valve feeds it from the work port that is connected to the supply.
    edges
        Its edges, as from `closed_centre`, `open_centre`, `tandem_centre`, `float_centre`, `three_way`, `two_way`.
    rated_flow, rated_drop
        Flow rate in m³/s over a fully open edge at its pressure drop in Pa.
    time_constant
        Of a spool of first order in s.
    natural_frequency, damping_ratio
        ω in rad/s and ζ of a spool of second order.
    compensation
        Largest pressure drop in Pa that a pressure compensator allows over the edges from the supply to a and b. Ideal,
        without
        lag: the lesser of this and of the actual drop, rounded by a parabola.
    load_check
        Whether a check valve keeps oil from flowing from a or b back to the supply.
    sensing_flow
        Flow in m³/s into the load-sensing line at the rated drop.
    laminar_pressure
        Pressure drop in Pa below which the flow is laminar.
    initial_spool
        Spool position at the start.
    """

    stage: ClassVar[Stage] = Stage.CONTROL
    type: Literal["proportional-valve"] = "proportional-valve"
    supply: Port
    a: Port
    b: OptionalPort = None
    tank: OptionalPort = None
    load_sense: OptionalPort = None
    edges: Edges
    rated_flow: RatedFlow
    rated_drop: RatedDrop
    time_constant: Annotated[
        OptionalPositive, Parameter("s", "time constant of the spool", tunable=True, usual=(1e-6, 10.0))
    ] = None
    natural_frequency: Annotated[
        OptionalPositive, Parameter("rad/s", "natural frequency of the spool", tunable=True, usual=(1.0, 1e4))
    ] = None
    damping_ratio: Annotated[
        OptionalPositive, Parameter("1", "damping ratio of the spool", tunable=True, usual=(0.05, 10.0))
    ] = None
    compensation: Annotated[
        OptionalPositive, Parameter("Pa", "pressure drop of the compensator", tunable=True, usual=(1e4, 1e8))
    ] = None
    load_check: bool = False
    sensing_flow: Annotated[
        Positive,
        Parameter("m3/s", "flow into the load-sensing line at the rated drop", tunable=True, usual=(1e-8, 1e-2)),
    ] = 2e-5
    laminar_pressure: Annotated[
        Positive, Parameter("Pa", "pressure drop below which the flow is laminar", tunable=True)
    ] = LAMINAR_PRESSURE
    initial_spool: Annotated[float, Field(ge=-1, le=1), Parameter("1", "spool position at the start")] = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self._check_edges()
        second = self.natural_frequency is not None, self.damping_ratio is not None
        if second[0] != second[1]:
            raise ValueError("natural_frequency and damping_ratio go together; one of them is missing")
        if all(second) and self.time_constant is not None:
            raise ValueError("a spool has a time_constant, or a natural_frequency and a damping_ratio, not both")
        if self.initial_spool and not self.states():
            raise ValueError(
                f"initial_spool is {self.initial_spool}, but without a time_constant the spool is where the command is"
            )
        return self

    def _check_edges(self) -> None:
        if not self.edges:
            raise ValueError("edges are none; closed_centre() and others give those of usual valves")
        joined = {"supply", "a"}
        for index, edge in enumerate(self.edges):
            if edge.origin == edge.target:
                raise ValueError(f"edges[{index}] joins port {edge.origin} to itself")
            for port in (edge.origin, edge.target):
                if getattr(self, port) is None:
                    raise ValueError(f"edges[{index}] joins {edge.origin} to {edge.target}; {port} is missing")
                joined.add(port)
        for port in ("tank", "b"):
            if getattr(self, port) is not None and port not in joined:
                raise ValueError(f"{port} is given, but no edge leads there")

    # -- what it has ----------------------------------------------------------------------------------------

    def states(self) -> tuple[Quantity, ...]:
        """Return the spool position and velocity, as far as they are states."""
        if self.natural_frequency is not None:
            return _SPOOL, Quantity("spool_velocity", "1/s", nominal=100.0, description="velocity of the spool")
        return () if self.time_constant is None else (_SPOOL,)

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the command."""
        told = "command, the spool position; saturates at -1 and 1"
        return (Quantity("command", "1", 0.0, *_TRAVEL, description=told, saturates=True),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rates to the actuator, and the spool position if it is no state."""
        flows = tuple(
            Quantity(f"flow_{port}", "m3/s", description=f"flow out of port {port}, by the volume upstream")
            for port in WORK_PORTS
            if port in self.ports()
        )
        return flows if self.states() else (*flows, _SPOOL)

    # -- equations ------------------------------------------------------------------------------------------

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the flow over each edge, and those into the load-sensing line."""
        spool = self._spool(now)
        for edge in self.edges:
            yield Flow(self._flow(edge, spool, now), edge.origin, edge.target)
        if "load_sense" in self.ports():
            for edge in filter(_meters, self.edges):
                yield Flow(self._sensing_flow(edge, spool, now), edge.target, "load_sense")

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rates to the actuator, and the spool position if it is no state."""
        out: dict[str, Array] = {port: np.asarray(0.0) for port in self.ports()}
        for flow, origin, target in self.flows(now):
            out[origin], out[target] = out[origin] - flow, out[target] + flow
        evaluated = {f"flow_{port}": out[port] for port in WORK_PORTS if port in out}
        return evaluated if self.states() else {**evaluated, "spool": self._spool(now)}

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the derivatives of the spool states."""
        if "time_constant" in now:
            return {"spool": (_saturated(now["command"]) - now["spool"]) / now["time_constant"]}
        if "natural_frequency" in now:
            frequency, velocity = now["natural_frequency"], now["spool_velocity"]
            pull = frequency * (_saturated(now["command"]) - now["spool"]) - 2.0 * now["damping_ratio"] * velocity
            return {"spool": velocity, "spool_velocity": frequency * pull}
        return {}

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the initial spool position, with zero velocity."""
        return {state.name: now["initial_spool"] if state is _SPOOL else 0.0 for state in self.states()}

    def _spool(self, now: ComponentContext) -> Array:
        return now["spool"] if self.states() else _saturated(now["command"])

    def _flow(self, edge: Edge, spool: Array, now: ComponentContext) -> Array:
        drop = now.pressure(edge.origin) - now.pressure(edge.target)
        if _meters(edge) and self.load_check:
            drop = np.maximum(drop, 0.0)
        if _meters(edge) and "compensation" in now:
            drop = kept_below(drop, now["compensation"])
        share = interpolated(spool, edge.points)
        return rated_orifice_flow(share, now["rated_flow"], now["rated_drop"], drop, now["laminar_pressure"])

    def _sensing_flow(self, edge: Edge, spool: Array, now: ComponentContext) -> Array:
        """Return the flow rate into the load-sensing line in m³/s from the work port that an edge feeds."""
        joined = np.minimum(interpolated(spool, edge.points) / SENSING_SHARE, 1.0)
        drop = np.maximum(now.pressure(edge.target) - now.pressure("load_sense"), 0.0)
        return rated_orifice_flow(joined, now["sensing_flow"], now["rated_drop"], drop, now["laminar_pressure"])


def _meters(edge: Edge) -> bool:
    """Return whether an edge connects the supply to a work port."""
    return edge.origin == "supply" and edge.target in WORK_PORTS


def _saturated(command: Array) -> Array:
    return np.clip(command, *_TRAVEL)
