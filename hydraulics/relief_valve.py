"""Valves that limit a pressure: relief valves, reducing valves."""

from __future__ import annotations

from typing import Literal

from hydraulics.fluid import Array
from hydraulics.moment import Moment
from hydraulics.poppet import Override, PoppetValve, Setting


class ReliefValve(PoppetValve):
    """A direct-acting relief valve: the pressure drop opens it against a spring.

    It passes the rated flow at `setting` + `override`, whatever it is set to, and has no hysteresis.

    Attributes
    ----------
    setting
        Pressure drop in Pa at which it begins to open.
    override
        By how many Pa the drop rises until the valve is open and passes its rated flow.
    """

    type: Literal["relief-valve"] = "relief-valve"
    setting: Setting
    override: Override

    def acting(self, now: Moment) -> Array:
        """Return the pressure drop; what is behind the valve helps its spring."""
        return self.drop(now)

    def cracking_and_full(self, now: Moment) -> tuple[Array, Array]:
        """Return the setting, and what is beyond it by the override."""
        return now["setting"], now["setting"] + now["override"]
