"""Pumps on a shaft: fixed displacement, commanded, pressure-compensated, load-sensing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hydraulics.component import Port, SensedPort, Stage
from hydraulics.component_context import ComponentContext
from hydraulics.displacement import DrivenMachine
from mbsfmu.modelling.fields import Array, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity

_Swash = Annotated[float, Field(ge=-1, le=1)]
_PRESSURES = (1e5, 1e9)
"""Bounds in Pa of pump pressure settings."""


class AnyPump(DrivenMachine, abstract=True):
    """Base of all pumps.

    Attributes
    ----------
    inlet, outlet
        Nodes; it pumps from inlet to outlet when it turns forwards.
    """

    stage: ClassVar[Stage] = Stage.SOURCE
    ends: ClassVar[tuple[str, str]] = ("inlet", "outlet")
    inlet: Port
    outlet: Port


class Pump(AnyPump):
    """Fixed-displacement pump; its equations are those of `hydraulics.displacement`."""

    type: Literal["pump"] = "pump"


class DisplacedPump(AnyPump, abstract=True):
    """Variable-displacement pump, by a swash plate for example, with a first-order lag: τ ẋ = x_c − x.

    Attributes
    ----------
    time_constant
        τ in s.
    minimum_swash, maximum_swash
        Limits of the displacement fraction x; the second one limits the flow rate.
    """

    time_constant: Annotated[Positive, Parameter("s", "time constant of the swash", tunable=True, usual=(1e-4, 10.0))]
    minimum_swash: Annotated[_Swash, Parameter("1", "least share of the displacement", tunable=True)] = 0.0
    maximum_swash: Annotated[_Swash, Parameter("1", "greatest share of the displacement", tunable=True)] = 1.0

    @model_validator(mode="after")
    def _has_a_way(self) -> Self:
        if self.minimum_swash >= self.maximum_swash:
            raise ValueError(
                f"minimum_swash is {self.minimum_swash}; it must be less than maximum_swash, {self.maximum_swash}"
            )
        return self

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return that the largest displacement must exceed the least."""
        return (("minimum_swash", "maximum_swash"),)

    def states(self) -> tuple[Quantity, ...]:
        """Return the swash position."""
        return (Quantity("swash", "1", nominal=1.0, description="displacement fraction"),)

    @abstractmethod
    def wanted(self, now: ComponentContext) -> Array:
        """Return the swash position that the control demands, before saturation."""

    def share(self, now: ComponentContext) -> Array:
        """Return the swash position."""
        return now["swash"]

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the derivative of the swash position in 1/s."""
        return {"swash": (self._limited(now) - now["swash"]) / now["time_constant"]}

    def _limited(self, now: ComponentContext) -> Array:
        return np.clip(self.wanted(now), now["minimum_swash"], now["maximum_swash"])


class VariablePump(DisplacedPump):
    """Pump whose displacement follows a command; with a negative minimum it pumps in both directions.

    Attributes
    ----------
    initial_swash
        Share of the displacement at the start.
    """

    type: Literal["variable-pump"] = "variable-pump"
    initial_swash: Annotated[_Swash, Parameter("1", "share of the displacement at the start")] = 0.0

    @model_validator(mode="after")
    def _starts_within_its_way(self) -> Self:
        if not self.minimum_swash <= self.initial_swash <= self.maximum_swash:
            raise ValueError(
                f"initial_swash is {self.initial_swash}; it must be between {self.minimum_swash} and "
                f"{self.maximum_swash}, the least and the greatest"
            )
        return self

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the command, and the angular velocity of the shaft if it is not constant."""
        told = "share of the displacement; saturates at its limits"
        bounds = self.minimum_swash, self.maximum_swash
        command = Quantity("command", "1", 0.0, *bounds, description=told, saturates=True)
        return (command, *super().inputs())

    def wanted(self, now: ComponentContext) -> Array:
        """Return the command."""
        return now["command"]

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the initial swash position."""
        return {"swash": now["initial_swash"]}


class RegulatedPump(DisplacedPump, abstract=True):
    """Pump whose displacement follows from pressures; the swash starts in static equilibrium.

    Attributes
    ----------
    cut_off
        Outlet pressure in Pa, against vacuum, at which the displacement is zero.
    cut_off_range
        Pressure range in Pa below the cut-off over which the displacement falls from its maximum.
    maximum_torque
        Torque limit D x Δp in N m, which limits the power at a given speed; None without this
        control.
    """

    cut_off: Annotated[Positive, Parameter("Pa", "pressure at zero displacement", tunable=True, usual=_PRESSURES)]
    cut_off_range: Annotated[Positive, Parameter("Pa", "pressure range of the cut-off", tunable=True, usual=(1e3, 1e8))]
    maximum_torque: Annotated[OptionalPositive, Parameter("N.m", "torque limit", tunable=True, usual=(1e-2, 1e6))] = (
        None
    )

    def highest_pressure(self, values: Mapping[str, float]) -> float:
        """Return the cut-off pressure in Pa, at which the displacement is zero."""
        return values["cut_off"]

    def wanted(self, now: ComponentContext) -> Array:
        """Return the largest displacement fraction that cut-off and torque limit allow."""
        swash = (now["cut_off"] - now.pressure("outlet")) / now["cut_off_range"]
        if "maximum_torque" not in now:
            return swash
        # In terms of the torque at full displacement, which may be zero.
        whole = -now["displacement"] * self._drop(now)
        return np.minimum(swash, 1.0 / np.maximum(whole / now["maximum_torque"], 1.0))

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the static swash position at the initial pressures."""
        return {"swash": self._limited(now)}


class CompensatedPump(RegulatedPump):
    """Pressure-compensated pump: it destrokes near its cut-off pressure, x_c = (p_cut-off − p) / Δp_cut-off."""

    type: Literal["compensated-pump"] = "compensated-pump"


class LoadSensingPump(RegulatedPump):
    """Load-sensing pump: pressure margin above the load within its cut-off, x_c = (p_load + margin − p) / Δp_margin.

    Attributes
    ----------
    load_sense
        Node whose pressure is that of the load.
    margin
        Outlet pressure minus load pressure at zero displacement, in Pa.
    margin_range
        Reduction of the margin at full displacement, in Pa.
    """

    type: Literal["load-sensing-pump"] = "load-sensing-pump"
    load_sense: SensedPort
    margin: Annotated[Positive, Parameter("Pa", "margin above the load", tunable=True, usual=(1e4, 1e8))]
    margin_range: Annotated[
        Positive, Parameter("Pa", "reduction of the margin at full displacement", tunable=True, usual=(1e3, 1e8))
    ]

    def wanted(self, now: ComponentContext) -> Array:
        """Return the largest displacement fraction that margin, cut-off and torque limit allow."""
        above = now.pressure("outlet") - now.pressure("load_sense")
        return np.minimum((now["margin"] - above) / now["margin_range"], super().wanted(now))
