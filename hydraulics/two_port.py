"""The base of components that let oil through between two nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from hydraulics.component import Component, Flow
from hydraulics.component_context import ComponentContext
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.quantity import Quantity


class TwoPort(Component, abstract=True):
    """One flow between two ports, which it tells.

    Attributes
    ----------
    ends
        Its ports; flow from the first to the second counts as positive.
    """

    ends: ClassVar[tuple[str, str]] = ("inlet", "outlet")

    @abstractmethod
    def flow(self, now: ComponentContext) -> Array:
        """Return the flow through it in m³/s, by the volume upstream."""

    def drop(self, now: ComponentContext) -> Array:
        """Return the pressure drop from its first end to its second in Pa."""
        origin, target = self.ends
        return now.pressure(origin) - now.pressure(target)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return its flow."""
        origin, target = self.ends
        return (Quantity("flow", "m3/s", description=f"flow from {origin} to {target}, by the volume upstream"),)

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the flow through it."""
        return (Flow(self.flow(now), *self.ends),)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow through it."""
        return {"flow": self.flow(now)}
