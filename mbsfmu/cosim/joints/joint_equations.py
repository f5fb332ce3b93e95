"""Joints between FMUs: handles of loaded FMUs, and the constraint equations between two (`compiled.joint_step`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.compiled.joint_step import find_gap, find_pose, find_rows
from mbsfmu.cosim.compiled.library import HandleTable, JointTable, pointer_to
from mbsfmu.cosim.coupling.coupling_data import Constant, Signal
from mbsfmu.cosim.coupling.graph import JOINT_KINDS, CoupledJoint, JointHandle
from mbsfmu.cosim.fmus.fmu_instance import Floats, Instance
from mbsfmu.cosim.fmus.model_exchange import ModelExchangeInstance
from mbsfmu.equations.rotation import perpendicular, rotation_elements, unit
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measurement_units import IDENTITY, UnitOfMeasurement, conversion
from mbsfmu.modelling.variables import Causality, Variability

POSITION, VELOCITY, QUATERNION, ANGULAR_VELOCITY = slice(0, 3), slice(3, 6), slice(6, 10), slice(10, 13)
MOTION = 13
"""Length of the array of a handle's motion."""


class JointEquations:
    """Equations of one joint.

    Parameters
    ----------
    joint
        The joint.

    Attributes
    ----------
    count
        Number of its constraints.
    turns
        Whether orientations matter.
    are_moments
        Which multipliers are moments, shape (count,); the others are forces.
    reference
        How the handles stood at the start, shape (2, 3, 3): the rotation matrix from the second body to the first one,
        and as rows, in the first body, the axis of the joint and two unit vectors perpendicular to it (of a joint
        without an axis the axes of the body). `begin` sets it.
    """

    def __init__(self, joint: CoupledJoint) -> None:
        self.kind = joint.kind
        self._axis = None if joint.axis is None else unit(joint.axis)
        self.count = {"spherical": 3, "revolute": 5, "prismatic": 5, "fixed": 6}[joint.kind]
        self.turns = joint.kind != "spherical"
        self.are_moments = np.arange(self.count) >= (2 if joint.kind == "prismatic" else 3)
        self.reference = np.stack([np.eye(3), np.eye(3)])
        self._motions = np.zeros((2, MOTION))
        self._handles = (HandleTable * 2)(*(HandleTable(motion=pointer_to(motion)) for motion in self._motions))
        self._table = JointTable(
            handles=self._handles,
            kind=JOINT_KINDS.index(joint.kind),
            count=self.count,
            reference=pointer_to(self.reference),
        )

    def begin(self, first: Floats, second: Floats) -> None:
        """Take the motions of the handles at the start, from which angles are counted."""
        axes = np.eye(3)
        if self._axis is not None:
            axes = np.stack([self._axis, *perpendicular(self._axis)])
        self.reference[:] = rotation(first).T @ rotation(second), axes

    def _find_pose(self, first: Floats, second: Floats) -> None:
        self._motions[:] = first, second
        find_pose(self._table)

    def gap(self, first: Floats, second: Floats) -> Floats:
        """Return what the joint is open by, in m and rad, shape (count,)."""
        self._find_pose(first, second)
        result = np.zeros(self.count)
        find_gap(self._table, pointer_to(result))
        return result

    def rows(self, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Return G₁ and G₂, each of shape (count, 6)."""
        self._find_pose(first, second)
        begins, ends = np.zeros(6 * self.count), np.zeros(6 * self.count)
        find_rows(self._table, pointer_to(begins), pointer_to(ends))
        return begins.reshape(-1, 6), ends.reshape(-1, 6)

    def rate(self, first: Floats, second: Floats) -> Floats:
        """Return the velocities over the constraints in m/s and rad/s, shape (count,)."""
        if not self.turns:
            return second[VELOCITY] - first[VELOCITY]
        inner, outer = self.rows(first, second)
        return inner @ speeds(first) + outer @ speeds(second)

    def bias(self, first: Floats, second: Floats) -> Floats:
        """Return Ġ₁ V₁ + Ġ₂ V₂ in m/s² and rad/s², shape (count,): with G a it is the constraints' acceleration."""
        straight = np.zeros(3)
        if not self.turns:
            return straight
        spin, faster = first[ANGULAR_VELOCITY], second[ANGULAR_VELOCITY]
        relative = faster - spin
        axes = self.reference[1] @ rotation(first).T
        if self.kind == "revolute":
            axis = self._outer_axis(second)
            normals = axes[1:]
            changing = _cross(_cross(faster, axis), normals) + _cross(axis, _cross(spin, normals))
            return np.concatenate([straight, changing @ relative])
        turning = _cross(spin, rotation(first).T) @ relative
        if self.kind == "prismatic":
            apart, passing = second[POSITION] - first[POSITION], second[VELOCITY] - first[VELOCITY]
            moving = _cross(spin, axes[1:])
            straight = 2.0 * moving @ passing + _cross(spin, moving) @ apart
        return np.concatenate([straight, turning])

    def _outer_axis(self, second: Floats) -> Floats:
        """Return the axis of a revolute joint as the second body carries it, in the inertial frame, shape (3,)."""
        return rotation(second) @ (self.reference[0].T @ self.reference[1][0])


def _cross(vector: Floats, others: Floats) -> Floats:
    """Return the cross products of a vector with another one, or with the rows of a matrix."""
    x, y, z = vector
    return others @ np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])  # many times as fast as NumPy's


def rotation(motion: Floats) -> Floats:
    """Return the rotation matrix of a handle's body, shape (3, 3)."""
    return np.array(rotation_elements(*motion[QUATERNION].tolist()))


def speeds(motion: Floats) -> Floats:
    """Return velocity and angular velocity of a handle, shape (6,)."""
    return np.concatenate([motion[VELOCITY], motion[ANGULAR_VELOCITY]])


_LOGGER = logging.getLogger(__name__)

_GRAVITY = tuple(f"gravity.{axis}" for axis in "xyz")
"""Parameters of our FMUs, but for directions in which nothing moves; those of others may have none of such names."""
_SAME_GRAVITY = 1e-6
"""Difference of gravity in m/s² that is none: numbers that are typed with other digits differ by more."""
_AXES = {"quaternion": "wxyz"}
_UNITS = {
    "force": "N",
    "moment": "N.m",
    "position": "m",
    "velocity": "m/s",
    "quaternion": "1",
    "angular_velocity": "rad/s",
    "acceleration": "m/s2",
    "angular_acceleration": "rad/s2",
}
ALGORITHMS = ("jacobi", "gauss-seidel")
"""Coupling algorithms that joints go with."""
_STARTS = 1e-6
"""What a joint may be open by at the start in m and rad, and its velocities differ by in m/s and rad/s."""


class BoundHandle:
    """A handle of a loaded FMU.

    Parameters
    ----------
    handle
        The handle.
    instance
        Its FMU.
    turns
        Whether orientations matter: then it needs quaternion and angular velocity.
    moments
        Whether it is loaded by moments.

    Attributes
    ----------
    inputs
        Names of the inputs of the wrench.
    places
        Their places in a wrench (force, moment).
    port, read_places
        What reads its motion, and the places of these values in it.

    Raises
    ------
    InputError
        When the FMU lacks a variable, or has it as something else.
    """

    def __init__(self, handle: JointHandle, instance: Instance, *, turns: bool, moments: bool) -> None:
        self.handle, self.instance = handle, instance
        loads = [*self._components("force"), *(self._components("moment") if moments else [None] * 3)]
        self.places = np.array([place for place, name in enumerate(loads) if name is not None], dtype=np.intp)
        self.inputs = tuple(instance.behind(name) for name in loads if name is not None)
        for name in self.inputs:
            self._check_input(name)
        read = [*self._components("position"), *self._components("velocity")]
        if turns:
            read += [*self._components("quaternion"), *self._components("angular_velocity")]
        self.read_places = np.array([place for place, name in enumerate(read) if name is not None], dtype=np.intp)
        self.port = instance.port([name for name in read if name is not None])
        self._motion = np.zeros(MOTION)
        self._motion[QUATERNION.start] = 1.0

    @property
    def turns(self) -> bool:
        """Whether orientations are read."""
        return self.read_places[-1] >= VELOCITY.stop

    def accelerations(self) -> tuple[list[str], list[int]]:
        """Return the names of its accelerations, and their places in (acceleration, angular acceleration).

        Raises
        ------
        InputError
            When the FMU has none.
        """
        wanted = ("acceleration", "angular_acceleration") if self.turns else ("acceleration",)
        for quantity in wanted:
            if self._found(quantity) is None:
                raise InputError(
                    f"the handle {self.handle} lacks {quantity.replace('_', ' ')}, without which {self.instance.name} "
                    "cannot be joined by model exchange; let the FMU give it, or take FMUs for co-simulation"
                )
        names = [name for quantity in wanted for name in self._components(quantity)]
        return [name for name in names if name is not None], [k for k, name in enumerate(names) if name is not None]

    def motion(self) -> Floats:
        """Return the motion as the FMU tells it now, shape (13,), in a new array."""
        result = self._motion.copy()
        result[self.read_places] = self.port.read()
        return result

    # -- names --------------------------------------------------------------------------------------------------

    def _found(self, quantity: str) -> tuple[str | None, ...] | None:
        """Return the names of the components of a quantity; None where the FMU has no such."""
        given = getattr(self.handle, quantity)
        if given is not None:
            return tuple(each if each is None else self.instance.known_name(each) for each in given)
        axes = _AXES.get(quantity, "xyz")
        for prefix in self.handle.prefixes:
            name = self.instance.known_name(f"{prefix}.{quantity}")
            elements = self.instance.arrays.get(name, ())
            if len(elements) == len(axes):
                return elements
            names = tuple(self.instance.known_name(f"{prefix}.{quantity}.{axis}") for axis in axes)
            if all(each in self.instance.variables for each in names):
                return names
        return None

    def _components(self, quantity: str) -> tuple[str | None, ...]:
        names = self._found(quantity)
        if names is None:
            wanted = " or ".join(f"'{prefix}.{quantity}.x'" for prefix in self.handle.prefixes) or f"its {quantity}"
            raise InputError(
                f"the handle {self.handle} lacks {quantity.replace('_', ' ')}, which a joint needs of it: "
                f"{self.instance.name} has no variable {wanted}"
            )
        for name in filter(None, names):
            self._check(name, quantity)
        return names

    def _check(self, name: str, quantity: str) -> None:
        instance = self.instance
        if name not in instance.variables:
            raise InputError(
                f"the handle {self.handle}: {instance.name} has no variable '{name}'; "
                f"{closest_match(name, instance.variables)}"
            )
        if instance.kinds[name] != "Real":
            raise InputError(f"the handle {self.handle}: {name} is of type {instance.kinds[name]}; it must be Real")
        measured, wanted = instance.units[name], _UNITS[quantity]
        try:
            same = conversion(measured, UnitOfMeasurement(wanted)) == IDENTITY
        except InputError:
            same = False
        if not same:
            raise InputError(f"the handle {self.handle}: {name} is in {measured.name}; it must be in {wanted}")

    def _check_input(self, name: str) -> None:
        variable = self.instance.variables[name]
        if variable.causality is not Causality.INPUT or variable.variability is not Variability.CONTINUOUS:
            raise InputError(f"the handle {self.handle}: {name} is no continuous input; a joint cannot load it")


class BoundJoint:
    """A joint between handles of loaded FMUs.

    Parameters
    ----------
    joint
        The joint.
    instances
        The FMUs by name.

    Attributes
    ----------
    joint, equations
        The joint, and its equations.
    handles
        The two handles.

    Raises
    ------
    InputError
        When an FMU is not there or lacks what a handle needs.
    """

    def __init__(self, joint: CoupledJoint, instances: Mapping[str, Instance]) -> None:
        self.joint = joint
        self.equations = JointEquations(joint)
        for handle in (joint.first, joint.second):
            if handle.unit not in instances:
                raise InputError(
                    f"the joint {joint}: there is no FMU '{handle.unit}'; {closest_match(handle.unit, instances)}"
                )
        turns = self.equations.turns
        self.handles = tuple(
            BoundHandle(handle, instances[handle.unit], turns=turns, moments=turns)
            for handle in (joint.first, joint.second)
        )
        self._compared = False

    @property
    def loads(self) -> list[tuple[str, str]]:
        """Inputs that it drives, as (instance, input)."""
        return [(handle.instance.name, name) for handle in self.handles for name in handle.inputs]

    def motions(self) -> tuple[Floats, Floats]:
        """Return the motions of both handles."""
        first, second = self.handles
        return first.motion(), second.motion()

    def begin(self) -> None:
        """Take the start as it is, from which angles are counted.

        Raises
        ------
        SimulationError
            When the joint is open there.
        """
        motions = self.motions()
        self.equations.begin(*motions)
        for what, values, measured_in in (
            ("is open by", self.equations.gap(*motions), "m or rad"),
            ("moves apart at", self.equations.rate(*motions), "m/s or rad/s"),
        ):
            worst = float(np.max(np.abs(values)))
            if not worst <= _STARTS:
                raise SimulationError(
                    f"the joint {self.joint} {what} {worst:.3g} {measured_in} at the start; start values must close it "
                    f"to {_STARTS:g}"
                )
        if not self._compared:
            self._compared = True
            self._compare_gravity()

    def _compare_gravity(self) -> None:
        """Warn where the two FMUs have different gravity: they are halves of one machine."""
        first, second = (each.instance for each in self.handles)
        common = [name for name in _GRAVITY if name in first.variables and name in second.variables]
        pairs = zip(common, *(each.port(common).read().tolist() for each in (first, second)), strict=True)
        different = [
            f"{name} is {one:.6g} m/s2 in {first.name} and {other:.6g} m/s2 in {second.name}"
            for name, one, other in pairs
            if abs(one - other) > _SAME_GRAVITY
        ]
        if different:
            _LOGGER.warning(
                "%s, which the joint %s holds together: give both the same gravity, along the same axes",
                *("; ".join(different), self.joint),
            )


def bind(
    joints: Sequence[CoupledJoint],
    instances: Mapping[str, Instance],
    driven: Iterable[tuple[str, str]],
    algorithm: str,
    control: str,
) -> list[BoundJoint]:
    """Return the joints between loaded FMUs.

    Parameters
    ----------
    joints, instances
        The joints, and the FMUs by name.
    driven
        Inputs that connections and signals drive, as (instance, input).
    algorithm, control
        Names of the coupling algorithm of all other connections, and of the control of steps.

    Raises
    ------
    InputError
        When an FMU lacks what a joint needs, two joints have one name or load one handle, a load is driven
        otherwise, or the algorithm or control has no joints.
    """
    if joints:
        check_algorithm(algorithm)
    if joints and control != "fixed":
        raise InputError(f"the control is '{control}', but joints need steps of one length; choose fixed")
    handles = [handle for joint in joints for handle in (joint.first, joint.second) if handle.unit in instances]
    exchanged = [handle.unit for handle in handles if instances[handle.unit].is_exchanged]
    for handle in handles:
        instance = instances[handle.unit]
        if exchanged and not instance.is_exchanged:
            raise InputError(
                f"{exchanged[0]} is run by model exchange and {handle.unit} by co-simulation; joints need FMUs of one "
                "kind, which `model_exchange` chooses where they are for both"
            )
        if exchanged and not isinstance(instance, ModelExchangeInstance):
            raise InputError(
                f"{handle.unit} is isolated or placed, but FMUs that joints join by model exchange are evaluated too "
                "often for messages between processes; take it out of `isolate` and `place`"
            )
        if not exchanged and not instance.saves_state:
            raise InputError(
                f"{handle.unit} cannot save its state, which the joint at {handle} needs to repeat steps; take an FMU "
                "that can, or a spring between the FMUs"
            )
    bound = [BoundJoint(joint, instances) for joint in joints]
    names = [joint.name for joint in joints]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two joints are called '{name}'; give one another name")
    taken = set(driven)
    for each in bound:
        for end in each.loads:
            if end in taken:
                raise InputError(f"{'.'.join(end)} is driven twice: by the joint {each.joint}, and otherwise")
            taken.add(end)
    return bound


def check_algorithm(algorithm: str) -> None:
    """Check that a coupling algorithm of all other connections goes with joints.

    Raises
    ------
    InputError
        When it does not.
    """
    if algorithm not in ALGORITHMS:
        raise InputError(
            f"the algorithm is '{algorithm}', which closes no joints; {' and '.join(ALGORITHMS)} leave them to a "
            "solution of their own"
        )


def are_exchanged(joints: Sequence[BoundJoint]) -> bool:
    """Return whether the FMUs of joints are for model exchange."""
    return any(handle.instance.is_exchanged for joint in joints for handle in joint.handles)


def unloaded(joints: Sequence[BoundJoint]) -> dict[tuple[str, str], Signal]:
    """Return signals of the inputs that joints drive, by (instance, input): zero until a joint says more.

    FMUs for model exchange have none: their wrenches are set in each evaluation.
    """
    return {} if are_exchanged(joints) else {end: Constant(0.0) for joint in joints for end in joint.loads}


def columns_of(handle: BoundHandle, columns: Mapping[tuple[str, str], int]) -> NDArray[np.intp]:
    """Return the columns of the inputs of a handle's wrench."""
    return np.array([columns[handle.instance.name, name] for name in handle.inputs], dtype=np.intp)
