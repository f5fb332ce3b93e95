"""Valves that limit a pressure: relief valves, reducing valves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import model_validator

from hydraulics.component import Port, SensedPort
from hydraulics.component_context import ComponentContext
from hydraulics.poppet import Override, PoppetValve, RatedDrop, Setting
from mbsfmu.modelling.fields import Array


class ReliefValve(PoppetValve):
    """A direct-acting relief valve: the pressure drop opens it against a spring.

    It passes the rated flow at `setting` + `override`, whatever it is set to, and has no hysteresis.

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    setting
        Pressure drop in Pa at which it begins to open.
    override
        By how many Pa the drop rises until the valve is open and passes its rated flow.
    """

    type: Literal["relief-valve"] = "relief-valve"
    inlet: Port
    outlet: Port
    setting: Setting
    override: Override

    def acting(self, now: ComponentContext) -> Array:
        """Return the pressure drop; what is behind the valve helps its spring."""
        return self.drop(now)

    def cracking_and_full(self, now: ComponentContext) -> tuple[Array, Array]:
        """Return the setting, and what is beyond it by the override."""
        return now["setting"], now["setting"] + now["override"]

    def relieving_pressure(self, values: Mapping[str, float]) -> float:
        """Return the pressure at which it passes its rated flow."""
        return values["setting"] + values["override"]


class ReducingValve(PoppetValve):
    """A direct-acting pressure-reducing valve: open until the pressure behind it closes it against a spring.

    It lets nothing through at and above its setting, and does not relieve what is behind it.

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    drain
        Node of the spring's chamber, against which the pressure at the outlet counts; it takes no oil there.
    setting
        Pressure in Pa at the outlet, above that of the drain, at which it is closed.
    override
        By how many Pa below its setting it is open.
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
        """Return that it is open while there is a pressure left."""
        return (("override", "setting"),)

    @model_validator(mode="after")
    def _opens(self) -> Self:
        if self.override >= self.setting:
            raise ValueError(f"override is {self.override}; it must be less than the setting, {self.setting}")
        return self

    def acting(self, now: ComponentContext) -> Array:
        """Return minus the pressure behind it: that closes it."""
        return now.pressure("drain") - now.pressure("outlet")

    def cracking_and_full(self, now: ComponentContext) -> tuple[Array, Array]:
        """Return minus the pressures behind it at which it begins to open, and at which it is open."""
        return -now["setting"], now["override"] - now["setting"]

    def drop_when_rated(self, now: ComponentContext) -> Array:
        """Return the pressure drop of the rated flow."""
        return now["rated_drop"]
