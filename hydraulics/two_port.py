"""Base class of components with one flow between two nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from hydraulics.component import Component, Flow
from hydraulics.component_context import ComponentContext
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.quantity import Quantity


class TwoPort(Component, abstract=True):
    """A two-port: one flow between two ports, which is also an output.

    Attributes
    ----------
    ends
        Names of the ports; flow from the first to the second is positive.
    """

    ends: ClassVar[tuple[str, str]] = ("inlet", "outlet")

    @abstractmethod
    def flow(self, now: ComponentContext) -> Array:
        """Return the flow rate in m³/s at the upstream density."""

    def drop(self, now: ComponentContext) -> Array:
        """Return the pressure drop from the first port to the second in Pa."""
        origin, target = self.ends
        return now.pressure(origin) - now.pressure(target)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the flow rate."""
        origin, target = self.ends
        return (Quantity("flow", "m3/s", description=f"flow from {origin} to {target}, by the volume upstream"),)

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the flow."""
        return (Flow(self.flow(now), *self.ends),)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rate."""
        return {"flow": self.flow(now)}
