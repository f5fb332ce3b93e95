"""Pressure-limiting valves: relief valves, reducing valves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import model_validator

from hydraulics.component import Port, SensedPort
from hydraulics.component_context import ComponentContext
from hydraulics.poppet import Override, PoppetValve, RatedDrop, Setting
from mbsfmu.modelling.fields import Array


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
