"""Forces along the line between two points."""

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
    """The line of action between the two points of a force.

    Parameters
    ----------
    now
        Evaluation context of the force.
    start, end
        Names of the fields with the two points.
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
        """Return the loads of a force in N that pushes the points apart."""
        vector = self._gap / self.length * force
        return (PointLoad(self._end, vector), PointLoad(self._start, -vector))


class Actuator(Force):
    """Actuator between two points with an external force, for example a hydraulic cylinder.

    The outputs are `length` and `velocity`, the input is `force`; a positive force pushes the points apart.
    `static_force` is the force of static equilibrium at the start.

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
        """Return the force input."""
        return (Quantity("force", "N", 0.0, description="force that pushes the ends apart"),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return length and velocity."""
        return (
            Quantity("length", "m", minimum=0.0, description="distance of its ends", shared=True),
            Quantity("velocity", "m/s", description="rate of its length", shared=True),
        )

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply the force at both points."""
        return LineOfAction(now).push(now["force"])

    def work_rate(self, now: ForceContext) -> Array:
        """Return the power of the force in W."""
        return now["force"] * LineOfAction(now).velocity

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return length and velocity."""
        line = LineOfAction(now)
        return {"length": line.length, "velocity": line.velocity}


class SpringDamper(Force):
    """Spring and damper in parallel between two points.

    Attributes
    ----------
    start, end
        The two points, each as `body.point`.
    stiffness
        In N/m.
    damping
        In N s/m.
    free_length
        Unloaded length in m.
    """

    symbol: ClassVar[str] = "spring"
    type: Literal["spring-damper"] = "spring-damper"
    start: PointReference
    end: PointReference
    stiffness: Annotated[NonNegative, Parameter("N/m", "stiffness")] = 0.0
    damping: Annotated[NonNegative, Parameter("N.s/m", "damping", tunable=True)] = 0.0
    free_length: Annotated[NonNegative, Parameter("m", "length without force")] = 0.0

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply the spring and damper force at both points."""
        line = LineOfAction(now)
        return line.push(-now["stiffness"] * (line.length - now["free_length"]) - now["damping"] * line.velocity)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the power dissipated by the damper in W."""
        return now["damping"] * LineOfAction(now).velocity ** 2

    def energy(self, now: ForceContext) -> Array:
        """Return the elastic energy in J."""
        return 0.5 * now["stiffness"] * (LineOfAction(now).length - now["free_length"]) ** 2
