"""Motion of a mechanism in the coordinates of its open tree: residuals, and divide and conquer.

The assemblies are Featherstone's of accelerations, and of momenta [Chadaj2017].
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from mbsfmu.equations.kinematics import Frames
from mbsfmu.equations.loads import Motion
from mbsfmu.equations.rotation import Array
from mbsfmu.formulations.articulation import Articulation, spatial
from mbsfmu.formulations.joint_subspaces import impulse
from mbsfmu.formulations.mechanism_parts import MechanismParts, given
from mbsfmu.formulations.mechanism_variables import stack
from mbsfmu.formulations.system import Instant, LoopsInUse


class TreeDynamics:
    """Equations of motion of a mechanism's tree, with loops cut.

    Parameters
    ----------
    parts
        Bodies, joints and forces.
    """

    def __init__(self, parts: MechanismParts) -> None:
        self._parts = parts
        self._kinematics = parts.kinematics
        self._articulated = cache(self._articulation)

    def articulation(self, loops: LoopsInUse) -> Articulation:
        """Return the mechanism as the divide-and-conquer assembly takes it, with the loop equations in use."""
        return self._articulated(tuple(loops.rows), loops.sequential)

    def _articulation(self, rows: tuple[int, ...], sequential: bool) -> Articulation:
        parts = self._parts
        own = parts.masses, parts.cuts, parts.pitched, parts.relations
        return Articulation(self._kinematics, *own, rows, sequential=sequential)

    def moved(self, motion: Motion, instant: Instant, accelerations: Array) -> list[Array]:
        """Return Ż of each body at z̈, each of shape (6,)."""
        return self._kinematics.accelerations(motion.frames, motion.body_velocities, instant.velocities, accelerations)

    def residual(self, motion: Motion, instant: Instant) -> Array:
        """Return M' z̈ − Q' in N m and N [Jaiswal2021, eqs. 11 and 12], shape (n,).

        Summed up from the leaves to the base: Rdᵀ Tᵀ (M̄ Ż − Q̄).
        """
        moved = self.moved(motion, instant, instant.accelerations)
        balance, loads = self._parts.balance(motion, moved, instant)
        return self._along_joints(motion.frames, balance) - stack(loads.joint_loads)

    def _along_joints(self, frames: Frames, wrenches: list[Array]) -> Array:
        """Return bᵀ times the sum of the wrenches on the bodies behind each joint, shape (n,)."""
        total = self._behind_joints(wrenches)
        columns = {
            element.coordinate: self._kinematics.transformation(frames, element.coordinate) @ total[body]
            for body, joint in enumerate(self._kinematics.joints)
            for element in joint.elements
        }
        return stack([columns[index] for index in range(len(columns))])

    def _behind_joints(self, vectors: list[Array]) -> list[Array]:
        """Return the sum of what each body and all behind it have."""
        total = list(vectors)
        for body in reversed(range(len(total))):
            inner = self._kinematics.joints[body].parent
            if inner >= 0:
                total[inner] = total[inner] + total[body]
        return total

    def _with_joints(self, frames: Frames, wrenches: Sequence[Array], along: Array) -> list[Array]:
        """Return wrenches on the bodies with what acts along the joints' coordinates, on both ends of each joint."""
        result = list(wrenches)
        for body, joint in enumerate(self._kinematics.joints):
            acting = impulse(frames, joint, along)
            result[body] = result[body] + acting
            if joint.parent >= 0:
                result[joint.parent] = result[joint.parent] - acting
        return result

    # -- divide and conquer ---------------------------------------------------------------------------------

    def forward_dynamics(
        self, motion: Motion, instant: Instant, loops: LoopsInUse, stabilisation: float
    ) -> tuple[Array, Array]:
        """Return z̈ and λ by Featherstone's assembly of accelerations, shapes (n,) and (rows,).

        V is what z̈ adds to the bodies' accelerations: the velocity terms are those at z̈ = 0, which obey all joints
        of the tree.
        """
        articulation = self.articulation(loops)
        moved = self.moved(motion, instant, np.zeros(len(instant.coordinates)))
        balance, loads = self._parts.balance(motion, moved, instant)
        wrenches = self._with_joints(motion.frames, [-wrench for wrench in balance], stack(loads.joint_loads))
        bias = np.zeros(len(loops.rows))
        if len(loops.rows):
            at_rest = [spatial(each, motion.body_velocities[body]) for body, each in enumerate(moved)]
            bias = articulation.loop_bias(motion, given(instant), at_rest)
            if stabilisation:
                rate = articulation.loop_rates(motion, given(instant))
                violation = self._violation(motion.frames, instant, loops)
                bias = bias + 2.0 * stabilisation * rate + stabilisation**2 * violation
        accelerations, multipliers = articulation.solve(motion.frames, instant.parameters, wrenches, bias, loops.active)
        return accelerations, -multipliers  # the equations of motion have M z̈ − Q + Φ_zᵀ λ = 0

    def _violation(self, frames: Frames, instant: Instant, loops: LoopsInUse) -> Array:
        """Return Φ of the loop equations in use, shape (rows,)."""
        violations = [cut.evaluate(frames, instant.parameters) for cut in self._parts.cuts]
        related = [each.evaluate(instant.coordinates, given(instant)) for each in self._parts.relations]
        return np.concatenate([*violations, stack(related)])[list(loops.rows)]

    # -- momenta --------------------------------------------------------------------------------------------

    def initial_momenta(self, motion: Motion, instant: Instant) -> Array:
        """Return p = M ż, the momenta of the outer bodies along each coordinate [Chadaj2017, eq. 6], shape (n,)."""
        return self._along_joints(motion.frames, self._parts.momenta(motion, instant.parameters))

    def impulsive_velocities(self, instant: Instant, loops: LoopsInUse, stabilisation: float) -> tuple[Array, Array]:
        """Return ż and σ from the momenta [Chadaj2017, eqs. 15 to 46], shapes (n,) and (rows,).

        H p acts on each body from the joint that it hangs on, and the other way round on the body that it hangs on.
        Where the loops are to close, Φ̇ = −a Φ takes the place of Φ̇ = 0: ṗ [eq. 77] holds for either, for it has the
        constraint forces Φ_zᵀ λ as the rates of the impulses, whatever these enforce.
        """
        frames = self._kinematics.frames(instant.coordinates, instant.references, instant.parameters)
        wrenches = self._with_joints(frames, [np.zeros(6)] * len(self._parts.masses), instant.momenta)
        articulation = self.articulation(loops)
        bias = articulation.loop_drifts(given(instant))
        if stabilisation and len(loops.rows):
            bias = bias + stabilisation * self._violation(frames, instant, loops)
        return articulation.solve(frames, instant.parameters, wrenches, bias, loops.active)

    def momentum_rates(self, motion: Motion, instant: Instant, loops: LoopsInUse) -> Array:
        """Return ṗ = Hᵀ (Q − Σ ẇ σ) + Ḣᵀ P̄ [Chadaj2017, eq. 77], shape (n,).

        At the fixed inertial origin the terms with Ṡ vanish. Q are the loads on the bodies behind the joint, ẇ the
        rates of the cut joints' wrenches there, and P̄, the articulated momentum, is the momentum of these bodies
        less the impulses of their cut joints.
        """
        articulation = self.articulation(loops)
        loads = self._parts.loads(motion, instant)
        forces = list(loads.wrenches)
        momenta = self._parts.momenta(motion, instant.parameters)
        if len(loops.rows):
            pairs = [pair for cut in self._parts.cuts for pair in cut.wrenches(motion.frames, instant.parameters)]
            rates = articulation.wrench_rates(motion, instant.parameters)
            for index, row in enumerate(loops.rows):
                if (ends := articulation.ends(index)) is None:
                    continue  # a relation's wrenches along the coordinates stay as they are
                for body, wrench, rate in zip(ends, pairs[row], rates[row], strict=True):
                    if body >= 0:
                        forces[body] = forces[body] - rate * loops.multipliers[index]
                        momenta[body] = momenta[body] - wrench * loops.multipliers[index]
        behind = self._behind_joints(momenta)
        turning = self._kinematics.transformation_rates(motion.frames, motion.body_velocities, instant.velocities)
        joints = {e.coordinate: body for body, joint in enumerate(self._kinematics.joints) for e in joint.elements}
        along = self._along_joints(motion.frames, forces) + stack(loads.joint_loads)
        return along + stack([turning[index] @ behind[joints[index]] for index in range(len(joints))])
