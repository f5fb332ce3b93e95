"""Sensors of points, bodies and joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from mbsfmu.equations.kinematics import cardan_angles
from mbsfmu.equations.rotation import cross, quaternion_from_rotation
from mbsfmu.model.force import BodyPoint, PointAcceleration, Sensor, SensorContext
from mbsfmu.model.reference_types import JointReference, PointOrNone, PointReference
from mbsfmu.modelling import Array, Quantity
from mbsfmu.parts.forces import LineOfAction

_AT_REST = BodyPoint(np.zeros(3), np.zeros(3), np.eye(3), np.zeros(3))
_STAYING = PointAcceleration(np.zeros(3), np.zeros(3))


def _once(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if words.count(word) > 1:
            raise ValueError(f"measures has '{word}' twice")
    return words


class _Relative(Sensor, abstract=True):
    """Base of sensors of a point of a body, relative to the inertial frame or to another body."""

    point: PointReference
    relative_to: PointOrNone = None

    @property
    def _frame(self) -> str:
        """Return the frame of the components, in words."""
        return "of the inertial frame" if self.relative_to is None else f"as seen from {self.relative_to}"

    def _origin(self, now: SensorContext) -> BodyPoint:
        """Return position and velocity of the reference origin."""
        return _AT_REST if self.relative_to is None else now.point("relative_to")

    def _origin_changing(self, now: SensorContext) -> PointAcceleration:
        """Return the acceleration of the reference origin."""
        return _STAYING if self.relative_to is None else now.acceleration("relative_to")

    def _components(self, what: str, unit: str, described: str, axes: str = "xyz") -> tuple[Quantity, ...]:
        return tuple(
            Quantity(f"{what}.{axis}", unit, description=f"{described}, {axis} {self._frame}", shared=True)
            for axis in axes
        )


class PointSensor(_Relative):
    """Position, velocity and acceleration of a point, relative to the inertial frame or to another body.

    The outputs are `position.x` to `.z`, `velocity.x` to `.z` and `acceleration.x` to `.z`.

    Attributes
    ----------
    point
        The measured point, as `body.point`.
    relative_to
        Origin of the reference frame, as `body.point`, with the axes of that body. By default the inertial frame.
    measures
        The selected outputs.
    """

    type: Literal["point-sensor"] = "point-sensor"
    measures: Annotated[
        tuple[Literal["position", "velocity", "acceleration"], ...], Field(min_length=1), AfterValidator(_once)
    ] = ("position", "velocity")

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the selected outputs."""
        units = {"position": "m", "velocity": "m/s", "acceleration": "m/s2"}
        return tuple(
            each for what in self.measures for each in self._components(what, units[what], f"{what} of {self.point}")
        )

    def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:
        """Return the outputs; in a rotating frame without the frame's own motion."""
        place, origin = now.point("point"), self._origin(now)
        turning = origin.angular_velocity
        gap = place.position - origin.position
        passing = place.velocity - origin.velocity - cross(turning, gap)
        readings = {"position": gap, "velocity": passing}
        if "acceleration" in self.measures:
            changing, carried = now.acceleration("point"), self._origin_changing(now)
            by_frame = cross(carried.angular, gap) + cross(turning, cross(turning, gap))
            readings["acceleration"] = changing.linear - carried.linear - by_frame - 2.0 * cross(turning, passing)
        seen = [_by_axis(what, origin.rotation.T @ readings[what]) for what in self.measures]
        return {name: value for vector in seen for name, value in vector.items()}


class OrientationSensor(_Relative):
    """Orientation and angular motion of a body, relative to the inertial frame or to another body.

    The outputs are `quaternion.w` to `.z`, the unit quaternion with w ≥ 0 from the reference frame to the body frame;
    `cardan_angle.x` to `.z`, the angles of the same rotation about x, then the turned y, then the turned z, the second
    one within ±π/2, the others within ±π; `angular_velocity.x` to `.z` and `angular_acceleration.x` to `.z`. At a
    second angle of ±π/2 (gimbal lock) the other two are undetermined.

    Attributes
    ----------
    point
        Any point of the body, as `body.point`.
    relative_to
        Reference frame, as a point of another body; by default the inertial frame.
    axes
        Frame of the components of angular velocity and acceleration: the reference frame, or the `body`.
    measures
        The selected outputs.
    """

    type: Literal["orientation-sensor"] = "orientation-sensor"
    axes: Literal["frame", "body"] = "frame"
    measures: Annotated[
        tuple[Literal["quaternion", "cardan_angle", "angular_velocity", "angular_acceleration"], ...],
        Field(min_length=1),
        AfterValidator(_once),
    ] = ("quaternion", "angular_velocity")

    @property
    def _frame(self) -> str:
        return f"{super()._frame}, along axes of the body" if self.axes == "body" else super()._frame

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the selected outputs."""
        body, seen = self.point.partition(".")[0], super()._frame
        quaternion = tuple(
            Quantity(
                f"quaternion.{part}", "1", None, -1.0, 1.0, description=f"orientation of {body} {seen}", shared=True
            )
            for part in "wxyz"
        )
        angles = tuple(
            Quantity(f"cardan_angle.{axis}", "rad", description=f"Cardan angle of {body} {seen}, {axis}", shared=True)
            for axis in "xyz"
        )
        every = {
            "quaternion": quaternion,
            "cardan_angle": angles,
            "angular_velocity": self._components("angular_velocity", "rad/s", f"angular velocity of {body}"),
            "angular_acceleration": self._components(
                "angular_acceleration", "rad/s2", f"angular acceleration of {body}"
            ),
        }
        return tuple(each for what in self.measures for each in every[what])

    def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:
        """Return the outputs."""
        place, origin = now.point("point"), self._origin(now)
        turned = origin.rotation.T @ place.rotation
        axes = place.rotation if self.axes == "body" else origin.rotation
        readings: dict[str, Array] = {}
        if "quaternion" in self.measures:
            quaternion = quaternion_from_rotation(turned)
            readings |= {f"quaternion.{part}": quaternion[index] for index, part in enumerate("wxyz")}
        if "cardan_angle" in self.measures:
            readings |= _by_axis("cardan_angle", cardan_angles(turned))
        spin = place.angular_velocity - origin.angular_velocity
        if "angular_velocity" in self.measures:
            readings |= _by_axis("angular_velocity", axes.T @ spin)
        if "angular_acceleration" in self.measures:
            changing = now.acceleration("point").angular - self._origin_changing(now).angular
            readings |= _by_axis("angular_acceleration", axes.T @ (changing - cross(origin.angular_velocity, spin)))
        return readings


def _by_axis(what: str, vector: Array) -> dict[str, Array]:
    return {f"{what}.{axis}": vector[index] for index, axis in enumerate("xyz")}


class DistanceSensor(Sensor):
    """Distance between two points, and its rate.

    The outputs are `distance` and `rate`; the rate is zero if the points coincide.

    Attributes
    ----------
    start, end
        The two points, each as `body.point`.
    """

    type: Literal["distance-sensor"] = "distance-sensor"
    start: PointReference
    end: PointReference

    def outputs(self) -> tuple[Quantity, ...]:
        """Return distance and rate."""
        between = f"distance between {self.start} and {self.end}"
        return (
            Quantity("distance", "m", minimum=0.0, description=between, shared=True),
            Quantity("rate", "m/s", description=f"rate of the {between}", shared=True),
        )

    def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:
        """Return distance and rate."""
        line = LineOfAction(now)
        return {"distance": line.length, "rate": np.where(line.length > 0.0, line.velocity, 0.0)}


class JointSensor(Sensor):
    """Joint coordinate and its rate.

    The outputs are `coordinate` and `rate`.

    Attributes
    ----------
    joint
        The coordinate: the name of a joint with one, or `joint.coordinate`; of a cut joint angles are within ±π.
    """

    type: Literal["joint-sensor"] = "joint-sensor"
    joint: JointReference

    def outputs(self) -> tuple[Quantity, ...]:
        """Return coordinate and rate."""
        return (
            Quantity("coordinate", "{joint.coordinate}", description=f"coordinate of {self.joint}", shared=True),
            Quantity(
                "rate", "{joint.coordinate}/s", description=f"rate of the coordinate of {self.joint}", shared=True
            ),
        )

    def evaluate_outputs(self, now: SensorContext) -> Mapping[str, Array]:
        """Return coordinate and rate."""
        motion = now.joint("joint")
        return {"coordinate": motion.coordinate, "rate": motion.rate}
