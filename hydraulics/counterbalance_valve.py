"""Counterbalance valves: hold a load and lower it under control."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hydraulics.component import Flow, Port, SensedPort
from hydraulics.component_context import ComponentContext
from hydraulics.flow import rated_orifice_flow
from hydraulics.fluid import ATMOSPHERIC_PRESSURE
from hydraulics.opening import opening
from hydraulics.poppet import Override, PoppetValve, RatedDrop, RatedFlow, Setting
from mbsfmu.modelling.fields import Array, NonNegative, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity


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
