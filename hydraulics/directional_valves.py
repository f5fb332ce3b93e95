"""Directional control valves, on-off and proportional."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hydraulics.component import Component, ComponentContext, Flow, OptionalPort, Port, Stage
from hydraulics.flow import LAMINAR_PRESSURE, Edge, Edges, kept_below, orifice_flow, rated_orifice_flow
from hydraulics.pressure_valves import RatedDrop, RatedFlow
from mbsfmu.modelling.data import Array, NonNegative, OptionalPositive, Positive
from mbsfmu.modelling.interpolation import interpolated
from mbsfmu.modelling.parameters import Parameter, Quantity

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
