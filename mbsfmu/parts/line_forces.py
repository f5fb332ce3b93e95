"""Forces along the straight line between two points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np

from mbsfmu.model.force import Force, PointLoad
from mbsfmu.model.force_context import ForceContext
from mbsfmu.model.reference_types import NonNegative, PointReference
from mbsfmu.modelling import Array, Parameter, Quantity


class LineOfAction:
    """The straight line between two points of a force.

    Parameters
    ----------
    now
        What the force sees.
    start, end
        Names of the fields that name the points.
    """

    def __init__(self, now: ForceContext, start: str = "start", end: str = "end") -> None:
        self._start, self._end = start, end
        self._ends = now.point(start), now.point(end)

    @cached_property
    def _gap(self) -> Array:
        start, end = self._ends
        return end.position - start.position

    @cached_property
    def length(self) -> Array:
        """|s| in m [Jaiswal2021, eq. 45]."""
        return np.sqrt(self._gap @ self._gap)

    @cached_property
    def velocity(self) -> Array:
        """d|s|/dt in m/s [Jaiswal2021, eq. 45]."""
        start, end = self._ends
        return (end.velocity - start.velocity) @ self._gap / self.length

    def push(self, force: Array) -> Iterable[PointLoad]:
        """Return a force in N that pushes the points apart."""
        vector = self._gap / self.length * force
        return (PointLoad(self._end, vector), PointLoad(self._start, -vector))


class Actuator(Force):
    """A line between two points along which a force acts from outside: a hydraulic cylinder, say.

    It gives the outputs `length` and `velocity` and takes the input `force`; a positive force pushes the
    points apart. Its `static_force` is the one that holds the mechanism still where it starts.

    Attributes
    ----------
    start, end
        The two points, each as `body.point`.
    """

    balancing: ClassVar[tuple[str, ...]] = ("force",)
    symbol: ClassVar[str] = "cylinder"
    type: Literal["actuator"] = "actuator"
    start: PointReference
    end: PointReference

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the force."""
        return (Quantity("force", "N", 0.0, description="force that pushes the ends apart"),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return length and velocity."""
        return (
            Quantity("length", "m", minimum=0.0, description="distance of its ends", shared=True),
            Quantity("velocity", "m/s", description="rate of its length", shared=True),
        )

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Push the points apart."""
        return LineOfAction(now).push(now["force"])

    def work_rate(self, now: ForceContext) -> Array:
        """Return force times velocity in W."""
        return now["force"] * LineOfAction(now).velocity

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return length and velocity."""
        line = LineOfAction(now)
        return {"length": line.length, "velocity": line.velocity}


class SpringDamper(Force):
    """A spring and a damper side by side between two points.

    Attributes
    ----------
    start, end
        The two points, each as `body.point`.
    stiffness
        In N/m.
    damping
        In N s/m.
    free_length
        Length without force in m.
    """

    symbol: ClassVar[str] = "spring"
    type: Literal["spring-damper"] = "spring-damper"
    start: PointReference
    end: PointReference
    stiffness: Annotated[NonNegative, Parameter("N/m", "stiffness")] = 0.0
    damping: Annotated[NonNegative, Parameter("N.s/m", "damping", tunable=True)] = 0.0
    free_length: Annotated[NonNegative, Parameter("m", "length without force")] = 0.0

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Push with the spring's and the damper's force."""
        line = LineOfAction(now)
        return line.push(-now["stiffness"] * (line.length - now["free_length"]) - now["damping"] * line.velocity)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the damper's loss in W."""
        return now["damping"] * LineOfAction(now).velocity ** 2

    def energy(self, now: ForceContext) -> Array:
        """Return the spring's energy in J."""
        return 0.5 * now["stiffness"] * (LineOfAction(now).length - now["free_length"]) ** 2
