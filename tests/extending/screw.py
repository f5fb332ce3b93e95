"""A screw joint as a user would write it: a turn of the child moves it along the axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from mbsfmu import (
    Angle,
    Array,
    ClosureEquation,
    Direction,
    Joint,
    JointElement,
    Offset,
    Relation,
    offsets,
    tilts,
    turned_back,
)


@dataclass(frozen=True)
class Thread(Relation):
    """p sin(d / p − θ) = 0, of the way d and the sine and cosine of the turn θ, which tell no full turns.

    Attributes
    ----------
    pitch
        In m/rad.
    """

    unit: ClassVar[str] = "m"
    measures: tuple[ClosureEquation, ...]
    pitch: float

    @classmethod
    def about(cls, axis: Array, orientation: Sequence[float], pitch: float) -> Self:
        axis = axis / np.linalg.norm(axis)
        first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
        first = first / np.linalg.norm(first)
        there = turned_back(orientation) @ first
        along, cosine = Offset(axis), Angle(((first, there, 1.0),))
        return cls((along, Angle(((np.cross(axis, first), there, 1.0),)), cosine), pitch)

    def relate(self, measured: Sequence[Array]) -> Array:
        way, sine, cosine = measured
        return self.pitch * (np.sin(way / self.pitch) * cosine - np.cos(way / self.pitch) * sine)

    def slopes(self, measured: Sequence[Array]) -> Sequence[Array]:
        way, sine, cosine = measured
        turn = way / self.pitch
        return (
            np.cos(turn) * cosine + np.sin(turn) * sine,
            -self.pitch * np.cos(turn),
            self.pitch * np.sin(turn),
        )

    def slope_rates(self, measured: Sequence[Array], rates: Sequence[Array]) -> Sequence[Array]:
        way, sine, cosine = measured
        way_rate, sine_rate, cosine_rate = rates
        turn, turning = way / self.pitch, way_rate / self.pitch
        return (
            np.cos(turn) * (cosine_rate + turning * sine) + np.sin(turn) * (sine_rate - turning * cosine),
            np.sin(turn) * way_rate,
            np.cos(turn) * way_rate,
        )


class Screw(Joint):
    """A screw: the child turns about an axis, and moves along it by the pitch.

    Attributes
    ----------
    axis
        In the parent's frame.
    pitch
        In m/rad.
    angle, angular_velocity
        Start values in rad and rad/s; no meaning where the joint is cut.
    """

    type: Literal["screw"] = "screw"
    axis: Direction = (0.0, 0.0, 1.0)
    pitch: float
    angle: float = 0.0
    angular_velocity: float = 0.0

    @model_validator(mode="after")
    def _has_pitch(self) -> Self:
        if self.pitch == 0.0:
            raise ValueError("pitch is 0 m/rad; a screw without one is a revolute joint")
        return self

    @property
    def elements(self) -> tuple[JointElement, ...]:
        return (JointElement(False, self.axis, "", self.angle, self.angular_velocity, self.pitch),)

    def equations(self) -> Mapping[str, ClosureEquation]:
        thread = Thread.about(np.array(self.axis), self.orientation, self.pitch)
        return {**offsets(self.axis), **tilts(self.axis, self.orientation), "thread": thread}
