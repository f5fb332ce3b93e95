"""The forces of a mechanism: variables, loads, energies, and their sums."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mbsfmu.equations.bodies import Points
from mbsfmu.equations.loads import Loads, MotionState
from mbsfmu.equations.located_part import Given, LocatedPart, of_part
from mbsfmu.equations.properties import Properties
from mbsfmu.model.force import Force, JointLoad, PointLoad
from mbsfmu.model.force_context import ForceContext
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling import DataError, Quantity, closest_match, in_order
from mbsfmu.modelling.fields import Array


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
