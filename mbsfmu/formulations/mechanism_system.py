"""The semirecursive equations of motion of a mechanism in joint coordinates, with loop constraints.

Both semirecursive formulations, double-step and penalty-based, are made of these [Jaiswal2021, sect. 2.1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from mbsfmu.equations.bodies import MassProperties, Points
from mbsfmu.equations.charts import Turning, orientation, recentred
from mbsfmu.equations.constraints import CutJoint
from mbsfmu.equations.forces import Given, MechanismForces
from mbsfmu.equations.kinematics import (
    Frames,
    JointKinematics,
    Kinematics,
    body_velocity,
    point_velocity,
    reference_of,
    tree_joints,
)
from mbsfmu.equations.loads import Loads, Motion
from mbsfmu.equations.properties import Properties
from mbsfmu.equations.rotation import Array, cross, quaternion_product
from mbsfmu.formulations.articulation import Articulation, impulse, spatial
from mbsfmu.formulations.capabilities import (
    ArticulatedDynamics,
    CanonicalMomenta,
    InertiaTensors,
    JointReactions,
    MovingReferences,
)
from mbsfmu.formulations.force_checks import check_forces
from mbsfmu.formulations.joint_checks import check_joint
from mbsfmu.formulations.kept import Kept
from mbsfmu.formulations.mechanism_variables import (
    CoordinateVariables,
    balance_of,
    output_variables,
    reaction_variables,
    stack,
)
from mbsfmu.formulations.part_variables import part_variable, trial_points
from mbsfmu.formulations.system import Instant, LoopsInUse, Tensor, starting, starts
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.names import Reference, references
from mbsfmu.variables import Causality, Variable


class MechanismSystem(InertiaTensors, JointReactions, MovingReferences, ArticulatedDynamics, CanonicalMomenta):
    """A mechanism as a system in the coordinates of its open tree.

    Variables are named after the body that a joint carries (`boom.angle`) and after the force
    (`cylinder.length`, `cylinder.velocity`, input `cylinder.force`).

    Parameters
    ----------
    mechanism
        The mechanism.
    name
        Name of the system; the mechanism's by default.
    start_values
        Start values of inputs and parameters by name, where they are not those of the mechanism.

    Attributes
    ----------
    mechanism
        The mechanism.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        name: str | None = None,
        start_values: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.name = name or mechanism.name
        self.mechanism = mechanism
        self._properties = properties = Properties()
        self._points = points = Points(mechanism, properties)
        topology = mechanism.topology
        self._gravity = properties.vector("gravity", mechanism.gravity, "m/s2", "gravitational acceleration")
        self._bodies = topology.bodies
        self._masses = [MassProperties(body, properties, points) for body in topology.bodies]
        self._kinematics = Kinematics(tree_joints(topology, points))
        self._cuts = [CutJoint(joint, mechanism, points) for joint in topology.cuts]
        self._pitched = {
            body: CutJoint(joint.joint, mechanism, points)
            for body, joint in enumerate(topology.tree)
            if any(element.pitch for element in joint.joint.elements)
        }
        self._forces = forces = MechanismForces(mechanism, points, properties)
        self._kept: Kept[Motion] = Kept()
        self._articulations: dict[tuple[int, ...], Articulation] = {}
        self._variables = CoordinateVariables(topology, properties)
        self.coordinates = self._variables.coordinates
        self.velocities = self._variables.velocities
        self.accelerations = self._variables.accelerations
        self.references = topology.references
        self._turning = [joint for joint in self._kinematics.joints if joint.reference is not None]
        self.steep = tuple(joint.hinges[1].coordinate for joint in self._turning)
        self._changeable = [each for each in self._masses if each.may_be_impossible]
        self.tensors = tuple(Tensor(each.body.name, each.rod) for each in self._changeable)
        self.states = tuple(part_variable(replace(each, start=None), Causality.LOCAL) for each in forces.states)
        self.inputs = starting((part_variable(each, Causality.INPUT) for each in forces.inputs), start_values)
        self.parameters = starting(properties.variables, start_values)
        self.constraints = tuple(name for cut in self._cuts for name in cut.names)
        self.constraint_units = tuple(unit for cut in self._cuts for unit in cut.units)
        self.balances = tuple(balance_of(forces.inputs[index]) for index in forces.balancing)
        self.integrals = (
            Variable("energy.work", unit="J", description="work done by actuators and drives"),
            Variable("energy.dissipated", unit="J", description="energy lost in dampers"),
            Variable("energy.start", unit="J", description="kinetic and potential energy at the start"),
        )
        self.outputs = output_variables(topology, forces.outputs)
        self._tree = topology.tree
        driven = {joint for force in mechanism.forces for joint in references(force, Reference.JOINT)}
        self.reactions = reaction_variables(topology, driven)
        check_forces(forces, self._kinematics, topology.references, self._trials)
        for joint in mechanism.joints:
            check_joint(joint)

    def _trials(self) -> list[tuple[Array, ...]]:
        """Return where users' forces are tried: coordinates, velocities, states, inputs and parameters."""
        parameters = starts(self.parameters)
        coordinates, velocities = self.initial_coordinates(parameters)
        groups = (coordinates, velocities, self.initial_states(parameters), starts(self.inputs))
        variables = (self.coordinates, self.velocities, self.states, self.inputs)
        return trial_points(parameters, *zip(groups, variables, strict=True))

    # -- equations ------------------------------------------------------------------------------------------

    def residual(self, instant: Instant) -> Array:
        """Return M' z̈ − Q' of the open tree in N m and N [Jaiswal2021, eqs. 11 and 12], shape (n,)."""
        motion = self._motion(instant)
        balance, loads = self._balance(motion, instant, instant.accelerations)
        # Summed up from the leaves to the base: Rdᵀ Tᵀ (M̄ Ż − Q̄).
        residuals: dict[int, Array] = {}
        for body in reversed(range(len(self._bodies))):
            joint = self._kinematics.joints[body]
            for element in joint.elements:
                transformation = self._kinematics.transformation(motion.frames, element.coordinate)
                load = loads.joint_loads[element.coordinate]
                residuals[element.coordinate] = transformation @ balance[body] - load
            if joint.parent >= 0:
                balance[joint.parent] = balance[joint.parent] + balance[body]
        return stack([residuals[index] for index in range(len(self.coordinates))])

    def _balance(self, motion: Motion, instant: Instant, accelerations: Array) -> tuple[list[Array], Loads]:
        """Return M̄ Ż − Q̄ of each body at joint accelerations z̈, each of shape (6,), and the loads in Q̄."""
        moved = self._body_accelerations(motion, instant, accelerations)
        loads = self._loads(motion, instant)
        balance = [
            self._inertia_wrench(body, motion, acceleration, instant.parameters) - wrench
            for body, (acceleration, wrench) in enumerate(zip(moved, loads.wrenches, strict=True))
        ]
        return balance, loads

    def _body_accelerations(self, motion: Motion, instant: Instant, accelerations: Array) -> list[Array]:
        """Return Ż of each body, each of shape (6,)."""
        return self._kinematics.accelerations(motion.frames, motion.body_velocities, instant.velocities, accelerations)

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
        self._forces.add_to(loads, motion, _given(instant))
        return loads

    def _motion(self, instant: Instant) -> Motion:
        """Return positions and velocities of the bodies; kept until an instant comes at which they are others."""
        # Where angles are measured, their full turns are in the integrals.
        given = (instant.coordinates, instant.velocities, instant.integrals, instant.references, instant.parameters)
        return self._kept.of(given, lambda: self._moved(instant))

    def _moved(self, instant: Instant) -> Motion:
        frames = self._kinematics.frames(instant.coordinates, instant.references, instant.parameters)
        velocities = self._kinematics.velocities(frames, instant.velocities)
        return Motion(instant.coordinates, instant.velocities, frames, velocities)

    def inertia_tensors(self, parameters: Array) -> Array:
        """Return the tensors about the centres of mass in the bodies' axes, shape (6 k,)."""
        if not self._changeable:
            return np.zeros(0)
        tensors = (each.inertia(parameters) for each in self._changeable)
        return np.concatenate([each[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]] for each in tensors])

    def closure(self, instant: Instant) -> Array:
        """Return the violation Φ of the cut joints in m and rad, shape (number of constraints,)."""
        if not self._cuts:
            return np.zeros(0)
        frames = self._motion(instant).frames
        return np.concatenate([cut.evaluate(frames, instant.parameters) for cut in self._cuts])

    def rates(self, instant: Instant) -> Array:
        """Return the rates of the forces' states."""
        return stack(self._forces.rates(self._motion(instant), _given(instant)))

    # -- divide and conquer ---------------------------------------------------------------------------------

    def articulation(self, rows: Sequence[int]) -> Articulation:
        """Return the mechanism as the divide-and-conquer assembly takes it, with the loop equations in use."""
        key = tuple(rows)
        if key not in self._articulations:
            self._articulations[key] = Articulation(self._kinematics, self._masses, self._cuts, self._pitched, key)
        return self._articulations[key]

    def forward_dynamics(self, instant: Instant, loops: LoopsInUse, stabilisation: float) -> tuple[Array, Array]:
        """Return z̈ and λ by Featherstone's assembly of accelerations, shapes (n,) and (rows,).

        V is what z̈ adds to the bodies' accelerations: the velocity terms are those at z̈ = 0, which obey all joints
        of the tree.
        """
        rows = loops.rows
        articulation, motion = self.articulation(rows), self._motion(instant)
        without = np.zeros(len(self.coordinates))
        balance, loads = self._balance(motion, instant, without)
        loaded = stack(loads.joint_loads)
        wrenches = [-wrench for wrench in balance]
        for body, joint in enumerate(self._kinematics.joints):
            load = impulse(motion.frames, joint, loaded)
            wrenches[body] = wrenches[body] + load
            if joint.parent >= 0:
                wrenches[joint.parent] = wrenches[joint.parent] - load
        bias = np.zeros(len(rows))
        if len(rows):
            moved = self._body_accelerations(motion, instant, without)
            at_rest = [spatial(each, motion.body_velocities[body]) for body, each in enumerate(moved)]
            bias = articulation.loop_bias(motion, instant.parameters, at_rest)
            if stabilisation:
                rate = articulation.loop_rates(motion, instant.parameters)
                violation = self.closure(instant)[list(rows)]
                bias = bias + 2.0 * stabilisation * rate + stabilisation**2 * violation
        accelerations, multipliers = articulation.solve(motion.frames, instant.parameters, wrenches, bias, loops.active)
        return accelerations, -multipliers  # the equations of motion have M z̈ − Q + Φ_zᵀ λ = 0

    def initial_momenta(self, instant: Instant) -> Array:
        """Return p = M ż, the momenta of the outer bodies along each coordinate [Chadaj2017, eq. 6], shape (n,)."""
        motion = self._motion(instant)
        momenta = [self._momentum(body, motion, instant.parameters) for body in range(len(self._bodies))]
        return self._along_joints(motion.frames, momenta)

    def _momentum(self, body: int, motion: Motion, parameters: Array) -> Array:
        """Return linear and angular momentum about the inertial origin, shape (6,)."""
        mass, inertia, centre = self._mass_of(body, motion.frames, parameters)
        velocity = motion.body_velocities[body]
        linear = mass * point_velocity(velocity, centre)
        return np.concatenate([linear, inertia @ velocity[3:] + cross(centre, linear)])

    def _along_joints(self, frames: Frames, wrenches: list[Array]) -> Array:
        """Return bᵀ times the sum of the wrenches on the bodies behind each joint, shape (n,)."""
        total = list(wrenches)
        result: dict[int, Array] = {}
        for body in reversed(range(len(self._bodies))):
            joint = self._kinematics.joints[body]
            for element in joint.elements:
                column = self._kinematics.transformation(frames, element.coordinate)
                result[element.coordinate] = column @ total[body]
            if joint.parent >= 0:
                total[joint.parent] = total[joint.parent] + total[body]
        return stack([result[index] for index in range(len(self.coordinates))])

    def impulsive_velocities(self, instant: Instant, loops: LoopsInUse, stabilisation: float) -> tuple[Array, Array]:
        """Return ż and σ from the momenta [Chadaj2017, eqs. 15 to 46], shapes (n,) and (rows,).

        H p acts on each body from the joint that it hangs on, and the other way round on the body that it hangs on.
        Where the loops are to close, Φ_z ż = −a Φ takes the place of Φ_z ż = 0: ṗ [eq. 77] holds for either, for it
        has the constraint forces Φ_zᵀ λ as the rates of the impulses, whatever these enforce.
        """
        rows = loops.rows
        articulation = self.articulation(rows)
        frames = self._kinematics.frames(instant.coordinates, instant.references, instant.parameters)
        wrenches = [impulse(frames, joint, instant.momenta) for joint in self._kinematics.joints]
        for joint, acting in zip(self._kinematics.joints, list(wrenches), strict=True):
            if joint.parent >= 0:
                wrenches[joint.parent] = wrenches[joint.parent] - acting
        bias = np.zeros(len(rows))
        if stabilisation and len(rows):
            bias = stabilisation * self.closure(instant)[list(rows)]
        return articulation.solve(frames, instant.parameters, wrenches, bias, loops.active)

    def momentum_rates(self, instant: Instant, loops: LoopsInUse) -> Array:
        """Return ṗ = Hᵀ (Q − Σ ẇ σ) + Ḣᵀ P̄ [Chadaj2017, eq. 77], shape (n,).

        At the fixed inertial origin the terms with Ṡ vanish. Q are the loads on the bodies behind the joint, ẇ the
        rates of the cut joints' wrenches there, and P̄, the articulated momentum, is the momentum of these bodies
        less the impulses of their cut joints.
        """
        rows, impulses = loops.rows, loops.multipliers
        articulation, motion = self.articulation(rows), self._motion(instant)
        loads = self._loads(motion, instant)
        forces = list(loads.wrenches)
        momenta = [self._momentum(body, motion, instant.parameters) for body in range(len(self._bodies))]
        if len(rows):
            pairs = [pair for cut in self._cuts for pair in cut.wrenches(motion.frames, instant.parameters)]
            rates = articulation.wrench_rates(motion, instant.parameters)
            for index, row in enumerate(rows):
                for body, wrench, rate in zip(articulation.ends(index), pairs[row], rates[row], strict=True):
                    if body >= 0:
                        forces[body] = forces[body] - rate * impulses[index]
                        momenta[body] = momenta[body] - wrench * impulses[index]
        for body in reversed(range(len(self._bodies))):
            inner = self._kinematics.joints[body].parent
            if inner >= 0:
                momenta[inner] = momenta[inner] + momenta[body]
        turning = self._kinematics.transformation_rates(motion.frames, motion.body_velocities, instant.velocities)
        joints = {e.coordinate: body for body, joint in enumerate(self._kinematics.joints) for e in joint.elements}
        along = self._along_joints(motion.frames, forces) + stack(loads.joint_loads)
        return along + stack([turning[index] @ momenta[joints[index]] for index in range(len(joints))])

    def evaluate_reactions(self, instant: Instant, loops: LoopsInUse) -> Array:
        """Return force in N and moment in N m of each joint on its child, first the tree's joints, then the cut ones.

        What moves the bodies behind a joint of the tree and is no load, drive or cut joint comes from the joint. What
        drives and springs in a joint exert is part of its reaction. Loop equations that are not in use carry nothing.
        """
        motion = self._motion(instant)
        missing, _ = self._balance(motion, instant, instant.accelerations)
        of_cuts: list[Array] = []
        used = dict(zip(loops.rows, range(len(loops.rows)), strict=True))
        row = 0
        for cut in self._cuts:
            total = np.zeros(6)
            for on_parent, on_child in cut.wrenches(motion.frames, instant.parameters):
                if row in used:
                    multiplier = -loops.multipliers[used[row]]  # M z̈ − Q = −Φ_zᵀ λ
                    total = total + on_child * multiplier
                    for body, wrench in ((cut.parent, on_parent), (cut.child, on_child)):
                        if body >= 0:
                            missing[body] = missing[body] - wrench * multiplier
                row += 1
            of_cuts.append(moved_to(cut.child_place(motion.frames, instant.parameters), total))
        of_tree: list[Array] = []
        for body in reversed(range(len(self._bodies))):
            joint = self._kinematics.joints[body]
            if joint.parent >= 0:
                missing[joint.parent] = missing[joint.parent] + missing[body]
            if not self._tree[body].joint.constrains:
                continue
            if self._tree[body].reversed:
                place = motion.frames.point(joint.parent, joint.inner.of(instant.parameters))
                of_tree.append(moved_to(place, -missing[body]))
            else:
                place = motion.frames.point(body, joint.outer.of(instant.parameters))
                of_tree.append(moved_to(place, missing[body]))
        return np.concatenate([*reversed(of_tree), *of_cuts, np.zeros(0)])

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
        for energy in self._forces.energies(motion, _given(instant)):
            potential = potential + energy
        return kinetic, potential

    def integral_rates(self, instant: Instant) -> Array:
        """Return the power of actuators and drives, the loss in dampers, and zero, in W; shape (3,)."""
        motion, given = self._motion(instant), _given(instant)
        work = sum(self._forces.work_rates(motion, given), start=np.asarray(0.0))
        loss = sum(self._forces.dissipations(motion, given), start=np.asarray(0.0))
        return np.stack([work, loss, np.asarray(0.0)])

    def initial_integrals(self, instant: Instant) -> Array:
        """Return no work, no loss, and the energy at the start in J; shape (3,)."""
        kinetic, potential = self._energies(instant)
        return np.stack([np.asarray(0.0), np.asarray(0.0), kinetic + potential])

    def evaluate_outputs(self, instant: Instant) -> Array:
        """Return what forces tell, orientations, centres of mass and energies, in the order of `outputs`."""
        motion = self._motion(instant)
        told = self._forces.evaluate_outputs(motion, _given(instant))
        centres = [self._mass_of(body, motion.frames, instant.parameters)[2] for body in range(len(self._bodies))]
        kinetic, potential = self._energies(instant)
        work, loss, start = instant.integrals[0], instant.integrals[1], instant.integrals[2]
        drift = kinetic + potential + loss - work - start
        return np.concatenate(
            [stack(told), *self._turns_of(motion, instant), *centres, np.stack([kinetic, potential, drift])]
        )

    def _turns_of(self, motion: Motion, instant: Instant) -> list[Array]:
        """Return quaternion and angular velocity of each joint that turns freely."""
        result = []
        for body, joint in enumerate(self._kinematics.joints):
            if joint.reference is None:
                continue
            turning, axes = self._turning_of(joint, instant)
            turned = orientation(axes, turning.coordinates, turning.reference)
            quaternion = quaternion_product(turned, joint.quaternion)
            inner = body_velocity(motion.body_velocities, joint.parent)
            relative = motion.body_velocities[body][3:] - inner[3:]
            result += [quaternion, motion.frames.orientation(joint.parent).T @ relative]
        return result

    def _turning_of(self, joint: JointKinematics, instant: Instant) -> tuple[Turning, list[Array]]:
        """Return the motion of a joint that turns freely, and the axes of its hinges."""
        assert joint.reference is not None
        three = [hinge.coordinate for hinge in joint.hinges]
        turning = Turning(
            instant.coordinates[three],
            instant.velocities[three],
            instant.accelerations[three],
            instant.momenta[three],
            reference_of(instant.references, joint.reference),
        )
        return turning, [hinge.axis for hinge in joint.hinges]

    def start_references(self, coordinates: Array) -> Array:  # noqa: ARG002 - angles tell all there
        """Return references of no rotation."""
        return np.tile([1.0, 0.0, 0.0, 0.0], self.references)

    def recentred(self, instant: Instant) -> Instant:
        """Return the same motion with present orientations as references."""
        parts = [list(part) for part in (instant.coordinates, instant.velocities)]
        parts += [list(part) for part in (instant.accelerations, instant.momenta)]
        references = []
        for joint in self._turning:
            turning, axes = self._turning_of(joint, instant)
            new = recentred(axes, turning)
            for part, values in zip(
                parts, (new.coordinates, new.velocities, new.accelerations, new.momenta), strict=True
            ):
                for hinge, index in zip(joint.hinges, range(3), strict=True):
                    part[hinge.coordinate] = np.asarray(values[index])
            references.append(new.reference)
        coordinates, velocities, accelerations, momenta = (stack(part) for part in parts)
        return replace(
            instant,
            coordinates=coordinates,
            velocities=velocities,
            accelerations=accelerations,
            momenta=momenta,
            references=np.concatenate(references) if references else np.zeros(0),
        )

    def initial_coordinates(self, parameters: Array) -> tuple[Array, Array]:
        """Return z and ż as given with the joints."""
        return self._variables.initial(parameters)

    def initial_states(self, parameters: Array) -> Array:
        """Return the forces' states at the start."""
        return stack(self._forces.initial_states(parameters))


def _given(instant: Instant) -> Given:
    return Given(instant.states, instant.inputs, instant.parameters)


def moved_to(place: Array, wrench: Array) -> Array:
    """Return a wrench about the inertial origin as one about a place, shape (6,)."""
    return np.concatenate([wrench[:3], wrench[3:] - cross(place, wrench[:3])])
