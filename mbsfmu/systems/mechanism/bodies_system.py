"""Base of mechanism systems in joint and absolute coordinates, and their ball and free joints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from mbsfmu.divide_and_conquer.articulated_bodies import joint_rates
from mbsfmu.equations.constraints import CutJoint
from mbsfmu.equations.joint_coordinates import MotionState
from mbsfmu.equations.kinematics import (
    ChartedMotion,
    JointKinematics,
    orientation,
    reference_of,
    with_present_references,
    with_reference,
)
from mbsfmu.equations.rotation import stack
from mbsfmu.modelling.data import Array
from mbsfmu.systems.mechanism.joint_reactions import relating_pulls
from mbsfmu.systems.mechanism.mechanism_parts import MechanismParts, given
from mbsfmu.systems.system import (
    ConstraintMotion,
    EventIndicators,
    InertiaTensors,
    JointReactions,
    LoopsInUse,
    MovingReferences,
    SystemContext,
)

_PARTS = ("coordinates", "velocities", "accelerations", "momenta")


class QuaternionJoints:
    """The ball and free joints of a system.

    Parameters
    ----------
    joints
        Joints of the system.

    Attributes
    ----------
    turning_angles
        Indices of the three coordinates of each, from the inner body outwards.
    """

    def __init__(self, joints: Iterable[JointKinematics]) -> None:
        self._joints = [joint for joint in joints if joint.reference is not None]
        self.turning_angles = tuple(
            (first.coordinate, second.coordinate, third.coordinate)
            for first, second, third in (joint.hinges for joint in self._joints)
        )

    def with_references(self, instant: SystemContext, references: Array | None) -> SystemContext:
        """Return the same motion with other references, shape (8 r,); None for the present orientations."""
        parts = {name: list(getattr(instant, name)) for name in _PARTS}
        found = []
        for joint in self._joints:
            axes, turning = [hinge.axis for hinge in joint.hinges], _turning(joint, instant)
            assert joint.reference is not None
            if references is None:
                new = with_present_references(axes, turning)
            else:
                new = with_reference(axes, turning, reference_of(references, joint.reference))
            for name, values in parts.items():
                for hinge, index in zip(joint.hinges, range(3), strict=True):
                    values[hinge.coordinate] = getattr(new, name)[index]
            found.append(new.reference)
        moved = {name: stack(values) for name, values in parts.items()}
        return replace(instant, **moved, references=np.concatenate(found) if found else np.zeros(0))


def orientation_of(joint: JointKinematics, instant: SystemContext) -> Array:
    """Return the quaternion from the angles of a ball or free joint and its reference, shape (4,)."""
    turning = _turning(joint, instant)
    return orientation([hinge.axis for hinge in joint.hinges], turning.coordinates, turning.reference)


def _turning(joint: JointKinematics, instant: SystemContext) -> ChartedMotion:
    assert joint.reference is not None
    three = [hinge.coordinate for hinge in joint.hinges]
    numbers = {name: getattr(instant, name)[three] for name in _PARTS}
    return ChartedMotion(**numbers, reference=reference_of(instant.references, joint.reference))


class BodiesSystem(InertiaTensors, EventIndicators, JointReactions, MovingReferences, ConstraintMotion):
    """A mechanism as a system.

    Attributes
    ----------
    parts
        Its bodies, joints and forces.
    constraining
        The joints whose equations are its constraints.
    aligning
        Those of them that Φ = 0 lets turn over by half a turn, with their misalignments as equations.
    turning
        The joints of its coordinates that turn freely.
    """

    parts: MechanismParts
    constraining: Sequence[CutJoint]
    aligning: Sequence[CutJoint]
    turning: QuaternionJoints

    @abstractmethod
    def motion(self, instant: SystemContext) -> MotionState:
        """Return positions and velocities of the bodies."""

    def lightest_body(self, parameters: Array) -> tuple[float, str]:
        """Return the least mass of a body in kg, and the name of the body."""
        return min((float(each.mass.of(parameters)), each.body.name) for each in self.parts.masses)

    def undefined_forces(self, instant: SystemContext) -> list[str]:
        """Return the names of forces whose loads are not finite, as on a line between points that coincide."""
        motion, now = self.motion(instant), given(instant)
        with np.errstate(all="ignore"):
            return [
                each.force.name
                for each in self.parts.forces.acting
                if not np.isfinite(np.array(each.components(motion, now), dtype=np.float64)).all()
            ]

    def closure(self, instant: SystemContext) -> Array:
        """Return the violation Φ of constraints in m and rad, shape (number of constraints,)."""
        motion = self.motion(instant)
        violations = [joint.evaluate(motion.frames, instant.parameters) for joint in self.constraining]
        related = stack([each.evaluate(motion.coordinates, given(instant)) for each in self.parts.relations])
        return np.concatenate([*violations, related])

    def misalignment(self, instant: SystemContext) -> Array:
        """Return 1 − cos θ of each joint that the constraints let turn over by half a turn."""
        frames = self.motion(instant).frames
        return np.concatenate([np.zeros(0), *(each.evaluate(frames, instant.parameters) for each in self.aligning)])

    def closure_rate(self, instant: SystemContext) -> Array:
        """Return dΦ/dt in m/s and rad/s, shape (number of constraints,)."""
        motion, parameters = self.motion(instant), instant.parameters
        opening = joint_rates(self.constraining, motion.frames, motion.body_velocities, parameters)
        related = [
            each.sum(motion.velocities, parameters) + each.drift(given(instant)) for each in self.parts.relations
        ]
        return stack([*opening, *related])

    def constraint_drifts(self, instant: SystemContext) -> Array:
        """Return Φ_t, shape (number of constraints,)."""
        return self._behind_joints([each.drift(given(instant)) for each in self.parts.relations])

    def constraint_drift_rates(self, instant: SystemContext) -> Array:
        """Return Φ_tt, shape (number of constraints,)."""
        return self._behind_joints([each.drift_rate(given(instant)) for each in self.parts.relations])

    def _behind_joints(self, of_relations: list[Array]) -> Array:
        """Return values of relations after zeros for the equations of joints."""
        return np.concatenate([np.zeros(sum(len(joint.names) for joint in self.constraining)), stack(of_relations)])

    def driving_powers(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return the power of prescribed motion, and zeros, in W; shape (number of integrals,)."""
        pulls = relating_pulls(self.constraining, self.parts, loops)
        pairs = zip(pulls, self.parts.relations, strict=True)
        power = sum((-pull * relation.drift(given(instant)) for pull, relation in pairs), start=np.asarray(0.0))
        return np.concatenate([np.stack([power]), np.zeros(len(self.integrals) - 1)])

    def constraint_variables(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return names and units of the constraints, joints first, and the names of misalignments."""
        relations = self.parts.relations
        names = (*(name for joint in self.constraining for name in joint.names), *(each.name for each in relations))
        units = (*(unit for joint in self.constraining for unit in joint.units), *(each.unit for each in relations))
        return names, units, tuple(name for joint in self.aligning for name in joint.names)

    def rates(self, instant: SystemContext) -> Array:
        """Return the derivatives of the forces' states."""
        return stack(self.parts.forces.rates(self.motion(instant), given(instant)))

    def evaluate_event_indicators(self, instant: SystemContext) -> Array:
        """Return the event indicators of the forces."""
        return stack(self.parts.forces.evaluate_event_indicators(self.motion(instant), given(instant)))

    def inertia_tensors(self, parameters: Array) -> Array:
        """Return the tensors about the centres of mass in the bodies' axes, shape (6 k,)."""
        tensors = [each.inertia(parameters) for each in self.parts.changeable]
        rows = [each[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]] for each in tensors]
        return np.concatenate(rows) if rows else np.zeros(0)

    def with_references(self, instant: SystemContext, references: Array | None) -> SystemContext:
        """Return the same motion with present orientations as references."""
        return self.turning.with_references(instant, references)

    def initial_coordinates(self, parameters: Array) -> tuple[Array, Array]:
        """Return joint coordinates and their rates as given in the joints' data."""
        return self.parts.coordinates.initial(parameters)

    def initial_states(self, parameters: Array) -> Array:
        """Return the initial states of the forces."""
        return stack(self.parts.forces.initial_states(parameters))
