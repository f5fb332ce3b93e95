"""The sensors of a mechanism and their outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import NamedTuple

from mbsfmu.equations.bodies import Points
from mbsfmu.equations.frames import body_velocity, point_acceleration
from mbsfmu.equations.loads import MotionState
from mbsfmu.equations.located_part import LocatedPart, of_part
from mbsfmu.equations.properties import Properties
from mbsfmu.model.force_context import BodyPoint, PointAcceleration, SensorContext
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.sensor import Sensor
from mbsfmu.modelling import Quantity, in_order
from mbsfmu.modelling.fields import Array


class Seen(NamedTuple):
    """Motion of the mechanism for its sensors.

    Attributes
    ----------
    motion
        Poses and velocities of the bodies.
    accelerations
        Returns Ż of each body, each of shape (6,); outputs that call it depend on accelerations.
    parameters
        Of the mechanism.
    """

    motion: MotionState
    accelerations: Callable[[], list[Array]]
    parameters: Array


class PlacedSensor(LocatedPart):
    """A sensor in its mechanism.

    Parameters
    ----------
    sensor, mechanism, points
        The sensor, its mechanism, and the points of the mechanism.
    properties
        Receives the sensor's parameters.

    Attributes
    ----------
    sensor
        The sensor.
    """

    def __init__(self, sensor: Sensor, mechanism: Mechanism, points: Points, properties: Properties) -> None:
        super().__init__(sensor, mechanism, points, properties)
        self.sensor = sensor

    def evaluate_outputs(self, seen: Seen) -> list[Array | float]:
        """Return its outputs."""
        points = self._placed(seen.motion, seen.parameters)
        now = SensorContext(
            self.owner,
            self.numbers(seen.parameters),
            points,
            self._moved(seen.motion, seen.parameters),
            self._accelerated(seen, points),
        )
        return in_order(self.owner, "evaluate_outputs", self.sensor.outputs(), self.sensor.evaluate_outputs(now))

    def _accelerated(
        self, seen: Seen, points: Mapping[str, Callable[[], BodyPoint]]
    ) -> dict[str, Callable[[], PointAcceleration]]:
        """Return the accelerations of the points, by field."""
        return {field: partial(_changing, seen, body, points[field]) for field, (body, _) in self._points.items()}


class MechanismSensors:
    """All sensors of a mechanism.

    Parameters
    ----------
    mechanism, points
        The mechanism and its points.
    properties
        Receives the sensors' parameters.

    Attributes
    ----------
    placed
        The sensors.
    outputs
        Outputs with full names.
    """

    def __init__(self, mechanism: Mechanism, points: Points, properties: Properties) -> None:
        self.placed = [PlacedSensor(sensor, mechanism, points, properties) for sensor in mechanism.sensors]
        self.outputs: tuple[Quantity, ...] = tuple(
            quantity for each in self.placed for quantity in of_part(each.sensor, each.outputs)
        )

    def evaluate_outputs(
        self, motion: MotionState, accelerations: Callable[[], list[Array]], parameters: Array
    ) -> list[Array | float]:
        """Return the outputs; arguments as in `Seen`."""
        seen = Seen(motion, cache(accelerations), parameters)
        return [value for each in self.placed for value in each.evaluate_outputs(seen)]


def _changing(seen: Seen, body: int, point: Callable[[], BodyPoint]) -> PointAcceleration:
    """Return the acceleration of a point of a body."""
    rates = body_velocity(seen.accelerations(), body)
    place = point()
    return PointAcceleration(point_acceleration(rates, place.angular_velocity, place.position), rates[3:])
