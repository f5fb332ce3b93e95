"""Parts in a mechanism: forces, sensors, and relations between joint coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot, Properties, Slot, VectorSlot, body_and_point
from mbsfmu.equations.joint_coordinates import Loads, MotionState, coordinate_at
from mbsfmu.equations.rotation import body_velocity, point_acceleration, point_of_body
from mbsfmu.model.force import (
    BodyPoint,
    Force,
    ForceContext,
    JointLoad,
    JointMotion,
    Numbers,
    PointAcceleration,
    PointLoad,
    Sensor,
    SensorContext,
)
from mbsfmu.model.joint import Constraint
from mbsfmu.model.mechanism import Mechanism, joint_words
from mbsfmu.model.reference_types import ReferenceKind, reference_fields
from mbsfmu.modelling import DataError, DynamicPart, Quantity, belonging_to, closest_match, in_order, parameters_of
from mbsfmu.modelling.data import Array


class PlacedPart:
    """A part with its variables in the mechanism.

    Parameters
    ----------
    part, mechanism
        The part and its mechanism.
    joints
        Names of its joints by their placeholders.
    properties
        Receives the part's parameters.
    first_state, first_input
        Indices of its first state and input among those of the mechanism.

    Attributes
    ----------
    owner
        Its type and name, for messages.
    states, inputs, outputs
        Its variables, with short names.
    """

    def __init__(
        self,
        part: DynamicPart,
        mechanism: Mechanism,
        joints: Mapping[str, str],
        properties: Properties,
        *,
        first_state: int,
        first_input: int,
    ) -> None:
        self._part = part
        self.owner = f"{part.type} '{part.name}'"
        self._words = {word: joint_words(mechanism, joint) for word, joint in joints.items()}
        self._slots = dict(self._registered(properties))
        self.states, self.inputs, self.outputs = (
            tuple(self.in_words(each) for each in quantities)
            for quantities in (part.states(), part.inputs(), part.outputs())
        )
        self._first_state, self._first_input = first_state, first_input

    def in_words(self, quantity: Quantity) -> Quantity:
        """Return a variable with the words of its joints."""
        name, unit, description = (
            text.format(**self._words) if self._words else text
            for text in (quantity.name, quantity.unit, quantity.description)
        )
        return replace(quantity, name=name, unit=unit, description=description)

    def _registered(self, properties: Properties) -> Iterable[tuple[str, Slot | VectorSlot]]:
        """Register the parameters; yield their slots by field name."""
        slots: dict[str, list[Slot]] = {}
        for quantity in map(self.in_words, parameters_of(self._part, self._part.name)):
            field = quantity.name.split(".")[1]
            slots.setdefault(field, []).append(properties.quantity(quantity))
        for field, own in slots.items():
            yield field, VectorSlot(tuple(own)) if len(own) > 1 else own[0]

    def numbers(self, parameters: Array) -> dict[str, Callable[[], Array]]:
        """Return the slots of its parameters, by short name."""
        return {field: partial(slot.of, parameters) for field, slot in self._slots.items()}

    def live(self, states: Array, inputs: Array) -> dict[str, Callable[[], Array]]:
        """Return the slots of its states and inputs, by short name."""
        numbers: dict[str, Callable[[], Array]] = {}
        for quantities, values, first in (
            (self._part.states(), states, self._first_state),
            (self._part.inputs(), inputs, self._first_input),
        ):
            for index, quantity in enumerate(quantities, start=first):
                numbers[quantity.name] = partial(values.__getitem__, index)
        return numbers


def coordinate_of(mechanism: Mechanism, joint: str) -> int:
    """Return the index of the coordinate of a tree joint with one coordinate."""
    body = mechanism.topology.body_of_joint(joint)
    assert body is not None, joint  # the mechanism was checked when it was made
    (coordinate,) = mechanism.topology.tree[body].coordinates
    return coordinate


class Given(NamedTuple):
    """States, inputs and parameters of a mechanism, each a vector.

    Attributes
    ----------
    states, inputs, parameters
        Of the whole mechanism.
    """

    states: Array
    inputs: Array
    parameters: Array


class LocatedPart(PlacedPart):
    """A part that names points and joints of its mechanism.

    Parameters
    ----------
    part, mechanism, points
        The part, its mechanism, and the points of the mechanism.
    properties, first_state, first_input
        As for `PlacedPart`.
    """

    def __init__(
        self,
        part: DynamicPart,
        mechanism: Mechanism,
        points: Points,
        properties: Properties,
        *,
        first_state: int = 0,
        first_input: int = 0,
    ) -> None:
        named = reference_fields(part, ReferenceKind.POINT)
        self._points = {field: body_and_point(mechanism, points, reference) for field, reference in named.items()}
        joints = reference_fields(part, ReferenceKind.JOINT)
        self._joints = {field: coordinate_at(mechanism, points, joint) for field, joint in joints.items()}
        super().__init__(part, mechanism, joints, properties, first_state=first_state, first_input=first_input)

    def _placed(self, motion: MotionState, parameters: Array) -> dict[str, Callable[[], BodyPoint]]:
        """Return the positions and velocities of the points, by field."""
        return {field: cache(partial(_point, motion, *place, parameters)) for field, place in self._points.items()}

    def _moved(self, motion: MotionState, parameters: Array) -> dict[str, Callable[[], JointMotion]]:
        """Return the coordinates and rates of the joints, by field."""
        return {field: cache(partial(each.motion, motion, parameters)) for field, each in self._joints.items()}


def of_part(part: DynamicPart, quantities: Iterable[Quantity]) -> tuple[Quantity, ...]:
    """Return variables of a part with full names."""
    return tuple(belonging_to(part.name, quantity) for quantity in quantities)


def _point(motion: MotionState, body: int, slot: PointSlot, parameters: Array) -> BodyPoint:
    return point_of_body(motion.frames, body_velocity(motion.body_velocities, body), body, slot.of(parameters))


class ActingForce(LocatedPart):
    """A force in its mechanism.

    Parameters
    ----------
    force, mechanism, points
        The force, its mechanism, and the points of the mechanism.
    properties
        Receives the force's parameters.
    first_state, first_input
        Indices of its first state and input among those of the mechanism.

    Attributes
    ----------
    force
        The force.
    event_indicators
        Its event indicators, with short names.
    """

    def __init__(
        self,
        force: Force,
        mechanism: Mechanism,
        points: Points,
        properties: Properties,
        *,
        first_state: int,
        first_input: int,
    ) -> None:
        self.force = force
        super().__init__(force, mechanism, points, properties, first_state=first_state, first_input=first_input)
        self._indicators = force.event_indicators()  # which there are may follow from data, which checks hide
        self.event_indicators = tuple(map(self.in_words, self._indicators))

    # -- equations ------------------------------------------------------------------------------------------

    def present(self, motion: MotionState, given: Given) -> ForceContext:
        """Return the evaluation context of the force."""
        return ForceContext(
            self.owner,
            {**self.numbers(given.parameters), **self.live(given.states, given.inputs)},
            self._placed(motion, given.parameters),
            self._moved(motion, given.parameters),
        )

    def add_to(self, loads: Loads, motion: MotionState, given: Given) -> None:
        """Add the loads of the force."""
        now = self.present(motion, given)
        for load in self._exerted(now):
            if isinstance(load, JointLoad):
                self._joints[load.joint].add_load(loads, load.load, motion, given.parameters)
                continue
            body, _ = self._points[load.point]
            if load.force is not None:
                loads.add_force(body, load.force, now.point(load.point).position)
            if load.moment is not None:
                loads.add_moment(body, load.moment)

    def components(self, motion: MotionState, given: Given) -> list[Array]:
        """Return the components of the loads in N and N m."""
        parts = [part for load in self._exerted(self.present(motion, given)) for part in load[1:] if part is not None]
        return [component for part in parts for component in np.reshape(part, -1)]

    def power(self, motion: MotionState, given: Given) -> Array:
        """Return the power of the loads in W, a scalar."""
        now = self.present(motion, given)
        total = np.asarray(0.0)
        for load in self._exerted(now):
            if isinstance(load, JointLoad):
                total = total + load.load * now.joint(load.joint).rate
                continue
            point = now.point(load.point)
            if load.force is not None:
                total = total + load.force @ point.velocity
            if load.moment is not None:
                total = total + load.moment @ point.angular_velocity
        return total

    def _exerted(self, now: ForceContext) -> list[PointLoad | JointLoad]:
        """Return the loads of the force.

        Raises
        ------
        DataError
            If a load acts on a point or joint that the force does not name, or is not a number or vector.
        """
        loads = list(self.force.loads(now))
        for load in loads:
            if isinstance(load, JointLoad):
                self._check_place("joint", load.joint, self._joints)
                self._check_shape("load", load.load, ())
                continue
            self._check_place("point", load.point, self._points)
            for what, vector in (("force", load.force), ("moment", load.moment)):
                if vector is not None:
                    self._check_shape(what, vector, (3,))
        return loads

    def _check_place(self, kind: str, field: str, places: Iterable[str]) -> None:
        if field not in places:
            raise DataError(f"{self.owner}: loads names a {kind} '{field}'; {closest_match(field, places)}")

    def _check_shape(self, what: str, value: Array, shape: tuple[int, ...]) -> None:
        if np.shape(value) != shape:
            returned = "one number" if not shape else "of shape (3,)"
            raise DataError(f"{self.owner}: loads gives a {what} of shape {np.shape(value)}; it must be {returned}")

    def scalar(self, function: str, motion: MotionState, given: Given) -> Array:
        """Return the scalar result of a function of the force, such as `energy` in J.

        Raises
        ------
        DataError
            If the result is not a scalar.
        """
        value = getattr(self.force, function)(self.present(motion, given))
        if np.shape(value) != ():
            raise DataError(f"{self.owner}: {function} gives an array of shape {np.shape(value)}; it must be a number")
        return value

    def rates(self, motion: MotionState, given: Given) -> list[Array | float]:
        """Return the derivatives of its states."""
        return in_order(self.owner, "rates", self.force.states(), self.force.rates(self.present(motion, given)))

    def evaluate_outputs(self, motion: MotionState, given: Given) -> list[Array | float]:
        """Return its outputs."""
        returned = self.force.evaluate_outputs(self.present(motion, given))
        return in_order(self.owner, "evaluate_outputs", self.force.outputs(), returned)

    def evaluate_event_indicators(self, motion: MotionState, given: Given) -> list[Array | float]:
        """Return its event indicators."""
        returned = self.force.evaluate_event_indicators(self.present(motion, given))
        return in_order(self.owner, "evaluate_event_indicators", self._indicators, returned)

    def initial_states(self, parameters: Array) -> list[Array | float]:
        """Return its initial states."""
        start = self.force.initial_states(ForceContext(self.owner, self.numbers(parameters), {}, {}))
        return in_order(self.owner, "initial_states", self.force.states(), start)


class MechanismForces:
    """All forces of a mechanism except gravity.

    Parameters
    ----------
    mechanism, points
        The mechanism and its points.
    properties
        Receives the forces' parameters.

    Attributes
    ----------
    states, inputs, outputs, event_indicators
        Those of all forces, under their full names.
    balancing
        Indices of the inputs that can balance the mechanism in static equilibrium.
    """

    def __init__(self, mechanism: Mechanism, points: Points, properties: Properties) -> None:
        self.acting: list[ActingForce] = []
        self.states: tuple[Quantity, ...] = ()
        self.inputs: tuple[Quantity, ...] = ()
        self.outputs: tuple[Quantity, ...] = ()
        self.event_indicators: tuple[Quantity, ...] = ()
        self.balancing: tuple[int, ...] = ()
        for force in mechanism.forces:
            first = {"first_state": len(self.states), "first_input": len(self.inputs)}
            acting = ActingForce(force, mechanism, points, properties, **first)
            balancing = [index for index, each in enumerate(force.inputs()) if each.name in force.balancing]
            self.acting.append(acting)
            self.balancing += tuple(len(self.inputs) + index for index in balancing)
            self.states += of_part(force, acting.states)
            self.inputs += of_part(force, acting.inputs)
            self.outputs += of_part(force, acting.outputs)
            self.event_indicators += of_part(force, acting.event_indicators)

    def add_to(self, loads: Loads, motion: MotionState, given: Given) -> None:
        """Add the loads of all forces."""
        for each in self.acting:
            each.add_to(loads, motion, given)

    def work_rates(self, motion: MotionState, given: Given) -> list[Array]:
        """Return the external power of each force in W."""
        return [each.scalar("work_rate", motion, given) for each in self.acting]

    def dissipations(self, motion: MotionState, given: Given) -> list[Array]:
        """Return the dissipated power of each force in W."""
        return [each.scalar("dissipation", motion, given) for each in self.acting]

    def energies(self, motion: MotionState, given: Given) -> list[Array]:
        """Return the stored energy of each force in J."""
        return [each.scalar("energy", motion, given) for each in self.acting]

    def rates(self, motion: MotionState, given: Given) -> list[Array | float]:
        """Return the derivatives of the states."""
        return [rate for each in self.acting for rate in each.rates(motion, given)]

    def evaluate_outputs(self, motion: MotionState, given: Given) -> list[Array | float]:
        """Return the outputs."""
        return [value for each in self.acting for value in each.evaluate_outputs(motion, given)]

    def evaluate_event_indicators(self, motion: MotionState, given: Given) -> list[Array | float]:
        """Return the event indicators."""
        return [value for each in self.acting for value in each.evaluate_event_indicators(motion, given)]

    def initial_states(self, parameters: Array) -> list[Array | float]:
        """Return the initial states."""
        return [state for each in self.acting for state in each.initial_states(parameters)]


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


class CoordinateRelation(PlacedPart):
    """A constraint between joint coordinates in its mechanism.

    Parameters
    ----------
    constraint, mechanism
        The constraint, and the mechanism whose joints it relates.
    properties
        Receives its parameters.
    first_input
        Index of its first input among those of the mechanism.

    Attributes
    ----------
    name, unit
        For messages, and the unit of Φ.
    coordinates
        Indices of the coordinates.
    loads
        Load along each coordinate: name, unit, description.
    """

    def __init__(
        self, constraint: Constraint, mechanism: Mechanism, properties: Properties, *, first_input: int
    ) -> None:
        named = reference_fields(constraint, ReferenceKind.JOINT)
        super().__init__(constraint, mechanism, named, properties, first_state=0, first_input=first_input)
        self._constraint = constraint
        self.name = f"{constraint.name} ({constraint.type})"
        # Φ has the unit of the coordinate with the first factor.
        self._joints = tuple(constraint.factors(self._given(properties.starts())))
        if sorted(self._joints) != sorted(constraint.coupled):
            told, wanted = (", ".join(sorted(each)) or "nothing" for each in (self._joints, constraint.coupled))
            raise DataError(f"{self.owner}: factors gives {told}; it must give {wanted}")
        self.unit = joint_words(mechanism, self._joints[0]).coordinate
        self.coordinates = tuple(coordinate_of(mechanism, joint) for joint in self._joints)
        self.inputs = tuple(_starting(self.inputs, mechanism, self._joints[0]))
        self.loads = tuple(_load(constraint, mechanism, joint) for joint in self._joints)

    def _given(self, parameters: Array) -> Numbers:
        return Numbers(self.owner, self.numbers(parameters))

    def factors(self, parameters: Array) -> list[Array]:
        """Return a, in the order of `coordinates`."""
        return [np.asarray(0.0) + each for each in self._constraint.factors(self._given(parameters)).values()]

    def along(self, parameters: Array, count: int) -> Array:
        """Return the coefficients a of all coordinates, zero for unrelated ones, shape (count,)."""
        factors = dict(zip(self.coordinates, self.factors(parameters), strict=True))
        return np.stack([factors.get(index, np.asarray(0.0)) for index in range(count)])

    def _following(self, given: Given) -> Numbers:
        return Numbers(self.owner, {**self.numbers(given.parameters), **self.live(given.states, given.inputs)})

    def sum(self, coordinates: Array, parameters: Array) -> Array:
        """Return Σ a q of coordinates, rates or accelerations, a scalar."""
        total: Array = np.asarray(0.0)
        for index, factor in zip(self.coordinates, self.factors(parameters), strict=True):
            total = total + factor * coordinates[index]
        return total

    def evaluate(self, coordinates: Array, given: Given) -> Array:
        """Return Φ, a scalar."""
        return self.sum(coordinates, given.parameters) - self._constraint.value(self._following(given))

    def drift(self, given: Given) -> Array:
        """Return Φ_t = −ṡ, a scalar."""
        return np.asarray(0.0) - self._constraint.rate(self._following(given))

    def drift_rate(self, given: Given) -> Array:
        """Return Φ_tt = −s̈, a scalar."""
        return np.asarray(0.0) - self._constraint.acceleration(self._following(given))


def _starting(inputs: Iterable[Quantity], mechanism: Mechanism, joint: str) -> Iterator[Quantity]:
    """Yield the inputs; those without a start value start at the joint's coordinate and rate."""
    (element,) = next(each for each in mechanism.joints if each.name == joint).elements
    starts = iter((element.start, element.start_rate))
    for each in inputs:
        yield replace(each, start=next(starts, 0.0)) if each.start is None else each


def _load(constraint: Constraint, mechanism: Mechanism, joint: str) -> Quantity:
    words = joint_words(mechanism, joint)
    described = f"{words.effort} that the {constraint.type} exerts in joint {joint}, on the outer body"
    owner = constraint.name if len(constraint.coupled) == 1 else f"{constraint.name}.{joint}"
    return Quantity(f"{owner}.{words.effort}", words.load, description=described)
