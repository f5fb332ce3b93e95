"""The semirecursive equations of motion of a mechanism in joint coordinates, with loop constraints.

Both semirecursive formulations, double-step and penalty-based, are made of these [Jaiswal2021, sect. 2.1].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mbsfmu.equations.bodies import MassProperties, Points
from mbsfmu.equations.constraints import CutJoint
from mbsfmu.equations.forces import (
    ActuatorForce,
    Force,
    JointDriveForce,
    Loads,
    Motion,
    make_force,
)
from mbsfmu.equations.kinematics import Frames, Kinematics, point_velocity
from mbsfmu.equations.properties import Properties, Slot
from mbsfmu.equations.rotation import Array, cross
from mbsfmu.formulations.system import Instant, System
from mbsfmu.model.joint import Fixed, Prismatic, Revolute
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.variables import Causality, Variable


class SemirecursiveMechanism(System):
    """A mechanism as a system in the coordinates of its open tree.

    Variables are named after the body that a joint carries (`boom.angle`) and after the force
    (`cylinder.length`, `cylinder.velocity`, input `cylinder.force`).

    Parameters
    ----------
    mechanism
        The mechanism.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.name = mechanism.name
        properties = Properties()
        points = Points(mechanism, properties)
        topology = mechanism.topology
        self._gravity = properties.vector("gravity", mechanism.gravity, "m/s2", "gravitational acceleration")
        self._bodies = topology.bodies
        self._masses = [MassProperties(body, properties, points) for body in topology.bodies]
        self._kinematics = Kinematics(topology, points)
        self._cuts = [CutJoint(joint, mechanism, points) for joint in topology.cuts]
        self._forces = [make_force(force, mechanism, points, properties) for force in mechanism.forces]
        self._kept: tuple[Instant, Motion] | None = None
        self._start = self._coordinate_variables(properties)
        self._input_of_force = self._input_variables()
        self.parameters = tuple(properties.variables)
        self.constraints = tuple(name for cut in self._cuts for name in cut.names)
        self.balances = tuple(
            (
                Variable(
                    f"{force.name}.static_force",
                    Causality.CALCULATED_PARAMETER,
                    unit="N",
                    description="force that keeps the mechanism at rest where it starts",
                ),
                f"{force.name}.force",
            )
            for force in self._actuators
        )
        self.integrals = (
            Variable("energy.work", unit="J", description="work done by actuators and drives"),
            Variable("energy.dissipated", unit="J", description="energy lost in dampers"),
            Variable("energy.start", unit="J", description="kinetic and potential energy at the start"),
        )
        self.outputs = self._output_variables()

    @property
    def _actuators(self) -> list[ActuatorForce]:
        return [force for force in self._forces if isinstance(force, ActuatorForce)]

    def _coordinate_variables(self, properties: Properties) -> list[tuple[Slot, Slot]]:
        """Name z, ż and z̈ after the bodies; return the slots of their start values."""
        variables: tuple[list[Variable], ...] = ([], [], [])
        slots = []
        for body, joint in zip(self._bodies, self._kinematics.joints, strict=True):
            if joint.coordinate is None:
                continue
            tree_joint = joint.source
            names = ("displacement", "velocity", "acceleration")
            unit, what = "m", f"along joint {tree_joint.name}"
            if not joint.slides:
                names = ("angle", "angular_velocity", "angular_acceleration")
                unit, what = "rad", f"about joint {tree_joint.name}"
            causalities = (Causality.OUTPUT, Causality.OUTPUT, Causality.LOCAL)
            for index, (name, causality) in enumerate(zip(names, causalities, strict=True)):
                suffix = ("", "/s", "/s2")[index]
                description = f"{name.replace('_', ' ')} {what}, relative to the inner body"
                variables[index].append(
                    Variable(f"{body.name}.{name}", causality, unit=unit + suffix, description=description)
                )
            slots.append(
                tuple(
                    properties.scalar(
                        f"{body.name}.{name}_start",
                        value,
                        unit + suffix,
                        f"start value of the {name.replace('_', ' ')}; loops are closed from there",
                        structural_zero=False,
                    )
                    for name, value, suffix in zip(names[:2], _start_values(tree_joint), ("", "/s"), strict=True)
                )
            )
        self.coordinates, self.velocities, self.accelerations = (tuple(group) for group in variables)
        return slots

    def _input_variables(self) -> dict[str, int]:
        """Make an input for each force from outside; return the index of the input by the force's name."""
        inputs = []
        for force in self._forces:
            if isinstance(force, ActuatorForce):
                inputs.append((force, "force", "N", "force that pushes the ends apart"))
            elif isinstance(force, JointDriveForce):
                quantity, unit = ("force", "N") if force.slides else ("torque", "N.m")
                inputs.append((force, quantity, unit, f"{quantity} in the joint, on the outer body"))
        self.inputs = tuple(
            Variable(f"{force.name}.{quantity}", Causality.INPUT, unit=unit, start=0.0, description=description)
            for force, quantity, unit, description in inputs
        )
        return {force.name: index for index, (force, *_) in enumerate(inputs)}

    def _output_variables(self) -> tuple[Variable, ...]:
        lines = []
        for force in self._actuators:
            lines += [
                Variable(f"{force.name}.length", Causality.OUTPUT, unit="m", description="distance of its ends"),
                Variable(f"{force.name}.velocity", Causality.OUTPUT, unit="m/s", description="rate of its length"),
            ]
        centres = [
            Variable(f"{body.name}.centre.{axis}.position", unit="m", description=f"centre of mass, {axis}")
            for body in self._bodies
            for axis in "xyz"
        ]
        energies = [
            Variable("energy.kinetic", unit="J", description="kinetic energy"),
            Variable("energy.potential", unit="J", description="energy in gravity and springs"),
            Variable(
                "energy.drift",
                unit="J",
                description="energy gained since the start that neither work nor loss explains",
            ),
        ]
        return (*lines, *centres, *energies)

    # -- equations ------------------------------------------------------------------------------------------

    def residual(self, instant: Instant) -> Array:
        """Return M' z̈ − Q' of the open tree in N m and N [Jaiswal2021, eqs. 11 and 12], shape (n,)."""
        motion = self._motion(instant)
        accelerations = self._kinematics.accelerations(
            motion.frames, motion.body_velocities, instant.velocities, instant.accelerations
        )
        loads = self._loads(motion, instant)
        # M̄ Ż − Q̄ of each body, summed up from the leaves to the base: Rdᵀ Tᵀ (M̄ Ż − Q̄).
        balance = [
            self._inertia_wrench(body, motion, acceleration, instant.parameters) - wrench
            for body, (acceleration, wrench) in enumerate(zip(accelerations, loads.wrenches, strict=True))
        ]
        residuals: dict[int, Array] = {}
        for body in reversed(range(len(self._bodies))):
            joint = self._kinematics.joints[body]
            if joint.coordinate is not None:
                transformation = self._kinematics.transformation(motion.frames, body)
                load = loads.joint_loads[joint.coordinate]
                residuals[joint.coordinate] = transformation @ balance[body] - load
            if joint.parent >= 0:
                balance[joint.parent] = balance[joint.parent] + balance[body]
        return _stack([residuals[index] for index in range(len(self.coordinates))])

    def _inertia_wrench(self, body: int, motion: Motion, acceleration: Array, parameters: Array) -> Array:
        """Return M̄ Ż minus the velocity terms of Q̄, at the inertial origin [eqs. 9 and 10]; shape (6,)."""
        mass, inertia, centre = self._mass_of(body, motion.frames, parameters)
        angular = motion.body_velocities[body][3:]
        linear = (
            acceleration[:3] + cross(acceleration[3:], centre) + cross(angular, cross(angular, centre))
        )  # acceleration of the centre of mass [eq. 7]
        force = mass * linear
        moment = inertia @ acceleration[3:] + cross(angular, inertia @ angular)
        return np.concatenate([force, moment + cross(centre, force)])

    def _mass_of(self, body: int, frames: Frames, parameters: Array) -> tuple[Array, Array, Array]:
        """Return mass, inertia tensor in the inertial frame and centre of mass of a body."""
        properties = self._masses[body]
        rotation = frames.rotation[body]
        inertia = rotation @ properties.inertia(parameters) @ rotation.T
        return properties.mass.of(parameters), inertia, frames.point(body, properties.centre.of(parameters))

    def _loads(self, motion: Motion, instant: Instant) -> Loads:
        loads = Loads.none(len(self._bodies), len(self.coordinates))
        gravity = self._gravity.of(instant.parameters)
        for body in range(len(self._bodies)):
            mass, _, centre = self._mass_of(body, motion.frames, instant.parameters)
            loads.add_force(body, mass * gravity, centre)
        for force in self._forces:
            force.apply(loads, motion, self._given(force, instant), instant.parameters)
        return loads

    def _given(self, force: Force, instant: Instant) -> Array | None:
        index = self._input_of_force.get(force.name)
        return None if index is None else instant.inputs[index]

    def _motion(self, instant: Instant) -> Motion:
        """Return positions and velocities of the bodies; kept until another instant comes."""
        if self._kept is None or self._kept[0] is not instant:
            self._kept = instant, self._moved(instant)
        return self._kept[1]

    def _moved(self, instant: Instant) -> Motion:
        frames = self._kinematics.frames(instant.coordinates, instant.parameters)
        velocities = self._kinematics.velocities(frames, instant.velocities)
        return Motion(instant.coordinates, instant.velocities, frames, velocities)

    def closure(self, instant: Instant) -> Array:
        """Return the violation Φ of the cut joints in m and rad, shape (number of constraints,)."""
        if not self._cuts:
            return np.zeros(0)
        frames = self._motion(instant).frames
        return np.concatenate([cut.evaluate(frames, instant.parameters) for cut in self._cuts])

    def rates(self, instant: Instant) -> Array:  # noqa: ARG002
        """Return nothing: a mechanism has no states of first order."""
        return np.zeros(0)

    # -- energy and outputs ---------------------------------------------------------------------------------

    def _energies(self, instant: Instant) -> tuple[Array, Array]:
        """Return kinetic and potential energy in J."""
        motion = self._motion(instant)
        gravity = self._gravity.of(instant.parameters)
        kinetic = potential = np.asarray(0.0)
        for body in range(len(self._bodies)):
            mass, inertia, centre = self._mass_of(body, motion.frames, instant.parameters)
            velocity = motion.body_velocities[body]
            linear, angular = point_velocity(velocity, centre), velocity[3:]
            kinetic = kinetic + 0.5 * (mass * (linear @ linear) + angular @ (inertia @ angular))
            potential = potential - mass * (gravity @ centre)
        for force in self._forces:
            potential = potential + force.energy(motion.frames, instant.coordinates, instant.parameters)
        return kinetic, potential

    def integral_rates(self, instant: Instant) -> Array:
        """Return the power of actuators and drives, the loss in dampers, and zero, in W; shape (3,)."""
        motion = self._motion(instant)
        work = loss = np.asarray(0.0)
        for force in self._forces:
            work = work + force.work_rate(motion, self._given(force, instant), instant.parameters)
            loss = loss + force.dissipation(motion, instant.parameters)
        return np.stack([work, loss, np.asarray(0.0)])

    def initial_integrals(self, instant: Instant) -> Array:
        """Return no work, no loss, and the energy at the start in J; shape (3,)."""
        kinetic, potential = self._energies(instant)
        return np.stack([np.asarray(0.0), np.asarray(0.0), kinetic + potential])

    def evaluate_outputs(self, instant: Instant) -> Array:
        """Return lengths, velocities, centres of mass and energies, in the order of `outputs`."""
        motion = self._motion(instant)
        lines = []
        for force in self._actuators:
            lines += [
                force.line.length(motion.frames, instant.parameters),
                force.line.velocity(motion, instant.parameters),
            ]
        centres = [self._mass_of(body, motion.frames, instant.parameters)[2] for body in range(len(self._bodies))]
        kinetic, potential = self._energies(instant)
        work, loss, start = instant.integrals
        drift = kinetic + potential + loss - work - start
        return np.concatenate([_stack(lines), *centres, np.stack([kinetic, potential, drift])])

    def initial_coordinates(self, parameters: Array) -> tuple[Array, Array]:
        """Return z and ż as given with the joints."""
        coordinates = _stack([slot.of(parameters) for slot, _ in self._start])
        return coordinates, _stack([slot.of(parameters) for _, slot in self._start])

    def initial_states(self, parameters: Array) -> Array:  # noqa: ARG002
        """Return nothing: a mechanism has no states of first order."""
        return np.zeros(0)


def _start_values(joint: Revolute | Prismatic | Fixed) -> tuple[float, ...]:
    if isinstance(joint, Revolute):
        return joint.angle, joint.angular_velocity
    if isinstance(joint, Prismatic):
        return joint.displacement, joint.velocity
    return ()


def _stack(scalars: Sequence[Array]) -> Array:
    return np.stack(scalars) if len(scalars) else np.zeros(0)
