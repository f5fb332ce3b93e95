"""Base class of spring-loaded, pressure-opened valves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar

from hydraulics.component import Stage
from hydraulics.component_context import ComponentContext
from hydraulics.flow import rated_orifice_flow
from hydraulics.opening import opening
from hydraulics.two_port import TwoPort
from mbsfmu.modelling.fields import Array, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity

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

    The lift balances the spring (`hydraulics.opening`), instantly or with a first-order lag. The flow is that of an
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
