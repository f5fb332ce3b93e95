"""Pumps on a shaft: of fixed displacement, displaced by a command, by their own pressure, by that of a load."""

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
"""Least and most that a pump is set to in Pa."""


class AnyPump(DrivenMachine, abstract=True):
    """What all pumps have.

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
    """A pump with a fixed displacement; its laws are those of `hydraulics.displacement`."""

    type: Literal["pump"] = "pump"


class DisplacedPump(AnyPump, abstract=True):
    """A pump whose displacement is changed, by a swash plate, say, that follows its control with a lag: τ ẋ = x_c − x.

    Attributes
    ----------
    time_constant
        τ in s.
    minimum_swash, maximum_swash
        Between them is x, the share of the displacement that is in use; the second one limits the flow.
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
        """Return that the swash has a way."""
        return (("minimum_swash", "maximum_swash"),)

    def states(self) -> tuple[Quantity, ...]:
        """Return the swash."""
        return (Quantity("swash", "1", nominal=1.0, description="share of the displacement that is in use"),)

    @abstractmethod
    def wanted(self, now: ComponentContext) -> Array:
        """Return the swash that the control asks for, within any limits."""

    def share(self, now: ComponentContext) -> Array:
        """Return the swash."""
        return now["swash"]

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the rate of the swash in 1/s."""
        return {"swash": (self._limited(now) - now["swash"]) / now["time_constant"]}

    def _limited(self, now: ComponentContext) -> Array:
        return np.clip(self.wanted(now), now["minimum_swash"], now["maximum_swash"])


class VariablePump(DisplacedPump):
    """A pump whose displacement follows a command; with a negative least swash it pumps both ways.

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
        """Return the command, and the shaft's angular velocity where that is not given."""
        command = Quantity("command", "1", 0.0, description="share of the displacement; saturates at its limits")
        return (command, *super().inputs())

    def wanted(self, now: ComponentContext) -> Array:
        """Return the command."""
        return now["command"]

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the swash at the start."""
        return {"swash": now["initial_swash"]}


class RegulatedPump(DisplacedPump, abstract=True):
    """A pump whose displacement follows from pressures; the swash starts at rest at those of the start.

    Attributes
    ----------
    cut_off
        Pressure at the outlet in Pa, against vacuum, at which it gives nothing any more.
    cut_off_range
        By what the pressure at which it leaves its greatest displacement lies below, in Pa.
    maximum_torque
        Torque of the pressures D x Δp in N m above which it swings back, which limits its power at a speed; None
        without such a control.
    """

    cut_off: Annotated[
        Positive, Parameter("Pa", "pressure at which it gives nothing any more", tunable=True, usual=_PRESSURES)
    ]
    cut_off_range: Annotated[
        Positive, Parameter("Pa", "range of pressure within which it swings back", tunable=True, usual=(1e3, 1e8))
    ]
    maximum_torque: Annotated[
        OptionalPositive, Parameter("N.m", "torque above which it swings back", tunable=True, usual=(1e-2, 1e6))
    ] = None

    def highest_pressure(self, values: Mapping[str, float]) -> float:
        """Return the pressure at which it gives nothing any more."""
        return values["cut_off"]

    def wanted(self, now: ComponentContext) -> Array:
        """Return the most that cut-off and torque allow."""
        swash = (now["cut_off"] - now.pressure("outlet")) / now["cut_off_range"]
        if "maximum_torque" not in now:
            return swash
        # Written by the torque of the whole displacement, which may be none.
        whole = -now["displacement"] * self._drop(now)
        return np.minimum(swash, 1.0 / np.maximum(whole / now["maximum_torque"], 1.0))

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the swash at rest at the pressures of the start."""
        return {"swash": self._limited(now)}


class CompensatedPump(RegulatedPump):
    """A pump that swings back where its pressure comes near its cut-off: x_c = (p_cut-off − p) / Δp_cut-off."""

    type: Literal["compensated-pump"] = "compensated-pump"


class LoadSensingPump(RegulatedPump):
    """A pump that keeps its pressure above a load's as its cut-off lets it, x_c = (p_load + margin − p) / Δp_margin.

    Attributes
    ----------
    load_sense
        Node whose pressure is that of the load.
    margin
        By what the pressure at the outlet lies above that of the load where it gives nothing, in Pa.
    margin_range
        By what that is less where it gives all, in Pa.
    """

    type: Literal["load-sensing-pump"] = "load-sensing-pump"
    load_sense: SensedPort
    margin: Annotated[Positive, Parameter("Pa", "margin above the load", tunable=True, usual=(1e4, 1e8))]
    margin_range: Annotated[
        Positive, Parameter("Pa", "by what the margin falls to the greatest swash", tunable=True, usual=(1e3, 1e8))
    ]

    def wanted(self, now: ComponentContext) -> Array:
        """Return the most that margin, cut-off and torque allow."""
        above = now.pressure("outlet") - now.pressure("load_sense")
        return np.minimum((now["margin"] - above) / now["margin_range"], super().wanted(now))
