"""Spring-loaded valves: relief, reducing, counterbalance, check and shuttle valves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hydraulics.component import Component, ComponentContext, Flow, Port, SensedPort, Stage
from hydraulics.flow import opening, rated_orifice_flow
from hydraulics.fluid import ATMOSPHERIC_PRESSURE
from hydraulics.restrictors import TwoPort
from mbsfmu.modelling.data import Array, NonNegative, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter, Quantity

LAMINAR_PRESSURE = 1e4
"""Pressure drop in Pa below which the flow past a poppet is laminar; small, because check valves open at small ones."""

Setting = Annotated[Positive, Parameter("Pa", "pressure at which it begins to open", tunable=True, usual=(1e4, 2e8))]
"""Field type: pressure to which a spring is set."""
Override = Annotated[
    Positive, Parameter("Pa", "pressure from cracking to full opening", tunable=True, usual=(1e2, 1e8))
]
"""Field type: pressure from cracking to full opening."""
RatedFlow = Annotated[
    Positive, Parameter("m3/s", "flow at the rated pressure drop when open", tunable=True, usual=(1e-8, 1.0))
]
"""Field type: flow rate of an open valve."""
RatedDrop = Annotated[Positive, Parameter("Pa", "pressure drop of the rated flow", tunable=True, usual=(1e3, 1e8))]
"""Field type: pressure drop of the rated flow."""


class PoppetValve(TwoPort, abstract=True):
    """Valve between two nodes whose poppet is lifted by pressure against a spring.

    The lift balances the spring (`hydraulics.flow`), instantly or with a first-order lag. The flow is that of an
    orifice with an area proportional to the lift [Merritt: Hydraulic Control Systems, 1967; Watton: Fundamentals of
    Fluid Power Control, 2009]. The time constant and the override of a catalogue curve include poppet inertia and flow
    forces.

    Attributes
    ----------
    rated_flow
        Flow in m³/s when open, at the rated pressure drop.
    time_constant
        Of the poppet in s; None without a lag.
    laminar_pressure
        Pressure drop in Pa below which the flow is laminar.
    """

    stage: ClassVar[Stage] = Stage.CONTROL
    rated_flow: RatedFlow
    time_constant: Annotated[
        OptionalPositive, Parameter("s", "time constant of the poppet", tunable=True, usual=(1e-6, 10.0))
    ] = None
    laminar_pressure: Annotated[
        Positive, Parameter("Pa", "pressure drop below which the flow is laminar", tunable=True)
    ] = LAMINAR_PRESSURE

    @abstractmethod
    def acting(self, now: ComponentContext) -> Array:
        """Return the opening pressure in Pa."""

    @abstractmethod
    def cracking_and_full(self, now: ComponentContext) -> tuple[Array, Array]:
        """Return the opening pressures in Pa of cracking and of full opening."""

    def drop_when_rated(self, now: ComponentContext) -> Array:
        """Return the pressure drop in Pa of the rated flow; by default that of full opening."""
        return self.cracking_and_full(now)[1]

    def states(self) -> tuple[Quantity, ...]:
        """Return the lift, if it has a lag."""
        return () if self.time_constant is None else (_LIFT,)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rate, and the lift if it is no state."""
        return (*super().outputs(), _LIFT) if self.time_constant is None else super().outputs()

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the derivative of the lift."""
        return {"lift": (self._balance(now) - now["lift"]) / now["time_constant"]} if "time_constant" in now else {}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rate, and the lift if it is no state."""
        outputs = super().evaluate_outputs(now)
        return outputs if "time_constant" in now else {**outputs, "lift": self._balance(now)}

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the static lift at the initial pressures."""
        return {"lift": self._balance(now)} if "time_constant" in now else {}

    def flow(self, now: ComponentContext) -> Array:
        """Return the flow rate past the poppet in m³/s."""
        lift = now["lift"] if "time_constant" in now else self._balance(now)
        return rated_orifice_flow(
            lift, now["rated_flow"], self.drop_when_rated(now), self.drop(now), now["laminar_pressure"]
        )

    def _balance(self, now: ComponentContext) -> Array:
        """Return the static lift at the present pressures."""
        return opening(self.acting(now), *self.cracking_and_full(now))


_LIFT = Quantity("lift", "1", nominal=1.0, description="lift of the poppet, relative to full lift")


class ReliefValve(PoppetValve):
    """Direct-acting relief valve, opened by the pressure drop against a spring.

    It passes the rated flow at `setting` + `override`, for any setting, and has no hysteresis.

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    setting
        Pressure drop in Pa at which it begins to open.
    override
        Pressure rise in Pa from cracking to full opening, where the valve passes its rated flow.
    """

    type: Literal["relief-valve"] = "relief-valve"
    inlet: Port
    outlet: Port
    setting: Setting
    override: Override

    def acting(self, now: ComponentContext) -> Array:
        """Return the pressure drop in Pa; the outlet pressure acts on the spring side."""
        return self.drop(now)

    def cracking_and_full(self, now: ComponentContext) -> tuple[Array, Array]:
        """Return the setting, and the setting plus the override, in Pa."""
        return now["setting"], now["setting"] + now["override"]

    def relieving_pressure(self, values: Mapping[str, float]) -> float:
        """Return the pressure in Pa at which it passes its rated flow."""
        return values["setting"] + values["override"]


class ReducingValve(PoppetValve):
    """Direct-acting pressure-reducing valve: its outlet pressure closes it against a spring.

    It is closed at and above its setting, and does not relieve the outlet.

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    drain
        Node of the spring chamber, the reference of the outlet pressure; without flow.
    setting
        Pressure in Pa at the outlet, above that of the drain, at which it is closed.
    override
        Pressure in Pa below the setting at which it is fully open.
    rated_drop
        Pressure drop in Pa of the rated flow when open.
    """

    type: Literal["reducing-valve"] = "reducing-valve"
    inlet: Port
    outlet: Port
    drain: SensedPort
    setting: Setting
    override: Override
    rated_drop: RatedDrop

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return that the setting must exceed the override."""
        return (("override", "setting"),)

    @model_validator(mode="after")
    def _opens(self) -> Self:
        if self.override >= self.setting:
            raise ValueError(f"override is {self.override}; it must be less than the setting, {self.setting}")
        return self

    def acting(self, now: ComponentContext) -> Array:
        """Return minus the gauge pressure at the outlet in Pa, which closes the valve."""
        return now.pressure("drain") - now.pressure("outlet")

    def cracking_and_full(self, now: ComponentContext) -> tuple[Array, Array]:
        """Return minus the outlet pressures in Pa of cracking and of full opening."""
        return -now["setting"], now["override"] - now["setting"]

    def drop_when_rated(self, now: ComponentContext) -> Array:
        """Return the pressure drop of the rated flow in Pa."""
        return now["rated_drop"]


class CounterbalanceValve(PoppetValve):
    """Counterbalance valve: pilot-assisted relief valve between load and directional valve, with a bypass check valve.

    The pressure against the spring is p_load + R p_pilot − B p_valve, all gauge pressures, with the pilot ratio R and
    the back-pressure ratio B. B is 1 + R if the spring chamber is connected to the port of the directional valve, as in
    most valves; less, down to 0, in relief-balanced and vented ones [Bak, Hansen: Analysis of Offshore Knuckle Boom
    Crane, Part One: Modeling and Parameter Identification, Modeling, Identification and Control 34 (2013)].

    Attributes
    ----------
    load, valve
        Nodes of the load and of the directional valve; flow from load to valve counts as positive.
    pilot
        Node of the pilot line, from which it takes no oil.
    setting
        Pressure in Pa of the load at which it begins to open without pilot and back pressure; usually 1.3 times the
        largest load's.
    override
        Rise in Pa of the opening pressure from cracking to full opening.
    pilot_ratio
        R.
    back_pressure_ratio
        B; None means 1 + R.
    rated_drop
        Pressure drop in Pa of the rated flow when open.
    check_flow, check_cracking_pressure, check_full_pressure
        Flow in m³/s of the open check valve, and drops in Pa from the directional valve to the load at which it
        begins to open, and at which it is open and passes that flow.
    """

    ends: ClassVar[tuple[str, str]] = ("load", "valve")
    type: Literal["counterbalance-valve"] = "counterbalance-valve"
    load: Port
    valve: Port
    pilot: SensedPort
    setting: Setting
    override: Override
    pilot_ratio: Annotated[
        NonNegative, Parameter("1", "area of the pilot piston by that of the seat", tunable=True, usual=(0.1, 100.0))
    ]
    back_pressure_ratio: Annotated[
        float | None, Field(ge=0), Parameter("1", "back pressure's area by that of the seat", tunable=True)
    ] = None
    rated_drop: RatedDrop
    check_flow: RatedFlow
    check_cracking_pressure: Annotated[
        NonNegative, Parameter("Pa", "drop at which the check valve begins to open", tunable=True, usual=(10.0, 1e8))
    ] = 5e4
    check_full_pressure: Annotated[
        Positive, Parameter("Pa", "drop at which the check valve is open", tunable=True, usual=(100.0, 1e8))
    ] = 5e5

    @model_validator(mode="after")
    def _opens(self) -> Self:
        if self.check_full_pressure <= self.check_cracking_pressure:
            raise ValueError(
                f"check_full_pressure is {self.check_full_pressure}; it must be greater than the cracking pressure, "
                f"{self.check_cracking_pressure}"
            )
        return self

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return that the check valve's full-opening pressure must exceed its cracking pressure."""
        return (("check_cracking_pressure", "check_full_pressure"),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rates of poppet and check valve, and the lift if it is no state."""
        free = Quantity("free_flow", "m3/s", description="flow through the check valve, by the volume upstream")
        return (*super().outputs(), free)

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the flows of poppet and check valve."""
        return (*super().flows(now), Flow(self._free_flow(now), "valve", "load"))

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the outputs."""
        return {**super().evaluate_outputs(now), "free_flow": self._free_flow(now)}

    def acting(self, now: ComponentContext) -> Array:
        """Return the pressure against the spring in Pa: load and pilot minus back pressure."""
        load, pilot, back = (now.pressure(port) - ATMOSPHERIC_PRESSURE for port in ("load", "pilot", "valve"))
        ratio = now["pilot_ratio"]
        back_ratio = now["back_pressure_ratio"] if "back_pressure_ratio" in now else 1.0 + ratio
        return load + ratio * pilot - back_ratio * back

    def cracking_and_full(self, now: ComponentContext) -> tuple[Array, Array]:
        """Return the setting, and the setting plus the override, in Pa."""
        return now["setting"], now["setting"] + now["override"]

    def drop_when_rated(self, now: ComponentContext) -> Array:
        """Return the pressure drop of the rated flow in Pa."""
        return now["rated_drop"]

    def _free_flow(self, now: ComponentContext) -> Array:
        drop, full = -self.drop(now), now["check_full_pressure"]
        lift = opening(drop, now["check_cracking_pressure"], full)
        return rated_orifice_flow(lift, now["check_flow"], full, drop, now["laminar_pressure"])


class Check(PoppetValve, abstract=True):
    """Base of check valves: flow from inlet to outlet where the pressure drop exceeds the spring.

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    cracking_pressure, full_pressure
        Pressure drops in Pa of cracking and of full opening, where the valve passes the rated flow.
    """

    inlet: Port
    outlet: Port
    cracking_pressure: Annotated[
        NonNegative, Parameter("Pa", "pressure drop at which it begins to open", tunable=True, usual=(10.0, 1e8))
    ]
    full_pressure: Annotated[
        Positive, Parameter("Pa", "pressure drop at which it is open", tunable=True, usual=(100.0, 1e8))
    ]

    @model_validator(mode="after")
    def _opens(self) -> Self:
        if self.full_pressure <= self.cracking_pressure:
            raise ValueError(
                f"full_pressure is {self.full_pressure}; it must be greater than the cracking pressure, "
                f"{self.cracking_pressure}"
            )
        return self

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return that the full-opening pressure must exceed the cracking pressure."""
        return (("cracking_pressure", "full_pressure"),)

    def acting(self, now: ComponentContext) -> Array:
        """Return the pressure drop in Pa."""
        return self.drop(now)

    def cracking_and_full(self, now: ComponentContext) -> tuple[Array, Array]:
        """Return the pressure drops in Pa of cracking and of full opening."""
        return now["cracking_pressure"], now["full_pressure"]


class CheckValve(Check):
    """Spring-loaded check valve; with a weak spring, from a tank to a line, an anti-cavitation valve."""

    type: Literal["check-valve"] = "check-valve"


class PilotCheckValve(Check):
    """Check valve that a pilot piston, drained to the inlet, can open.

    The opening pressure is Δp + R max(0, p_pilot − p_inlet): the piston only pushes [Murrenhoff: Fundamentals of Fluid
    Power, part 1: Hydraulics]. The valve blocks flow from the outlet until the pilot pressure exceeds the inlet
    pressure by (p_outlet − p_inlet + cracking pressure) / R.

    Attributes
    ----------
    pilot
        Node of the pilot line, from which it takes no oil.
    pilot_ratio
        R, area of the pilot piston divided by that of the seat.
    """

    type: Literal["pilot-check-valve"] = "pilot-check-valve"
    pilot: SensedPort
    pilot_ratio: Annotated[
        Positive, Parameter("1", "area ratio of pilot piston and seat", tunable=True, usual=(0.1, 100.0))
    ]

    def acting(self, now: ComponentContext) -> Array:
        """Return the pressure drop plus the pilot piston's contribution in Pa."""
        push = np.maximum(now.pressure("pilot") - now.pressure("inlet"), 0.0)
        return self.drop(now) + now["pilot_ratio"] * push


class ShuttleValve(Component):
    """Shuttle valve: a ball that the higher inlet pressure pushes onto the seat of the other inlet.

    The position of the ball follows from the difference of the inlet pressures; without a difference both seats are
    half open.

    Attributes
    ----------
    a, b
        Nodes of the inlets.
    outlet
        Node that the inlet of higher pressure feeds.
    rated_flow
        Flow in m³/s of an open seat at the rated pressure drop.
    rated_drop
        In Pa.
    shift_pressure
        Difference in Pa between the inlets at which the ball is on a seat.
    laminar_pressure
        Pressure drop in Pa below which the flow is laminar.
    """

    stage: ClassVar[Stage] = Stage.CONTROL
    type: Literal["shuttle-valve"] = "shuttle-valve"
    a: Port
    b: Port
    outlet: Port
    rated_flow: RatedFlow
    rated_drop: RatedDrop
    shift_pressure: Annotated[
        Positive, Parameter("Pa", "difference between the inlets that seats the ball", tunable=True, usual=(10.0, 1e7))
    ] = 2e4
    laminar_pressure: Annotated[
        Positive, Parameter("Pa", "pressure drop below which the flow is laminar", tunable=True)
    ] = LAMINAR_PRESSURE

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rates from both inlets."""
        return tuple(
            Quantity(f"flow_{port}", "m3/s", description=f"flow from {port} to the outlet, by the volume upstream")
            for port in ("a", "b")
        )

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the flows from both inlets."""
        for port, flow in self._flows(now).items():
            yield Flow(flow, port, "outlet")

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rates from both inlets."""
        return {f"flow_{port}": flow for port, flow in self._flows(now).items()}

    def _flows(self, now: ComponentContext) -> dict[str, Array]:
        shift, laminar = now["shift_pressure"], now["laminar_pressure"]
        open_to_a = opening(now.pressure("a") - now.pressure("b"), -shift, shift)
        return {
            port: rated_orifice_flow(
                share, now["rated_flow"], now["rated_drop"], now.pressure(port) - now.pressure("outlet"), laminar
            )
            for port, share in (("a", open_to_a), ("b", 1.0 - open_to_a))
        }
