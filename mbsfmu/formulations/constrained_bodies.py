"""Bodies that nothing but constraints connects, as the divide-and-conquer assembly takes them.

One linear problem serves positions, velocities and accelerations [Malczyk2012, sects. 2 and 3]: which motion of the
bodies, mass-orthogonal to the constraints, takes a violation Φ, Φ̇ or Φ̈ away? With increments ΔV and Δλ,

M ΔV + Dᵀ Δλ = 0,  Δλ = α (D ΔV + violation),

every iteration [eqs. 17, 56 and 72] is such a problem: the paper's λ* enters through the violation that is left. The
matrices depend on positions only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mbsfmu.equations.bodies import MassProperties
from mbsfmu.equations.constraints import CutJoint
from mbsfmu.equations.coordinate_relations import CoordinateRelation
from mbsfmu.equations.joint_measurement import measure
from mbsfmu.equations.kinematics import Frames, JointKinematics, Kinematics
from mbsfmu.equations.rotation import Array
from mbsfmu.formulations.articulation import (
    about,
    acted_on,
    by_ends,
    centres_of_mass,
    inverse_inertias,
    relating_wrenches,
)
from mbsfmu.formulations.binary_tree import BinaryTree, Link
from mbsfmu.formulations.divide_and_conquer import DivideAndConquer, Equations, Factors
from mbsfmu.formulations.joint_subspaces import dual_axes


class ConstrainedBodies:
    """The linear problem of one mechanism.

    Parameters
    ----------
    masses
        Mass properties of the bodies.
    floating
        The joints that let them float; a body's coordinates are those of its joint.
    constraints
        The joints as constraints, those of the spanning tree first and outwards.
    reversed_joints
        For each joint, whether its child is the inner body.
    kinematics
        The joints of the spanning tree, whose coordinates are related.
    relations
        What holds between these coordinates, one equation each, behind those of the joints.

    Attributes
    ----------
    tree
        The plan of the assembly.
    count
        How many numbers the matrices come to.
    """

    def __init__(
        self,
        masses: list[MassProperties],
        floating: Sequence[JointKinematics],
        constraints: Sequence[CutJoint],
        reversed_joints: Sequence[bool],
        kinematics: Kinematics,
        relations: Sequence[CoordinateRelation],
    ) -> None:
        self._masses = masses
        self._floating = floating
        self._constraints = constraints
        self._reversed = reversed_joints
        links, count = [], 0
        for joint, is_reversed in zip(constraints, reversed_joints, strict=True):
            ends = (joint.child, joint.parent) if is_reversed else (joint.parent, joint.child)
            links.append(Link(ends, tuple(range(count, count + len(joint.names)))))
            count += len(joint.names)
        self._kinematics, self._relations = kinematics, relations
        links += [Link(acted_on(kinematics, relation), (row,)) for row, relation in enumerate(relations, start=count)]
        self._links = links
        self.tree = BinaryTree(len(masses), links, ground_first=True)
        self.count = 9 * len(masses) + Factors.count(self.tree, len(masses))

    def numbers(self, placed: Frames, parameters: Array, penalty: float) -> Array:
        """Return what the problem's matrices come to where the bodies are, shape (numbers,).

        Parameters
        ----------
        placed
            Where the bodies are, with the axes of their coordinates.
        parameters
            Parameters of the mechanism.
        penalty
            α as a multiple of the bodies' mean mass in kg.
        """
        inverse = inverse_inertias(self._masses, placed, parameters)
        total = sum((each.mass.of(parameters) for each in self._masses), np.asarray(0.0))
        softness = len(self._masses) / (penalty * total)
        factors = DivideAndConquer(self.tree).factorize(inverse, self._equations(placed, parameters), softness)
        turns = [dual for joint in self._floating for dual in dual_axes(placed, joint).values()]
        return np.concatenate([*turns, factors.numbers()])

    def correction(self, numbers: Array, violation: Array) -> tuple[Array, Array]:
        """Return Δq (or Δq̇, Δq̈), shape (6 bodies,), and Δλ, shape (rows,).

        Parameters
        ----------
        numbers
            The matrices.
        violation
            Φ, Φ̇ or Φ̈, shape (rows,).
        """
        bodies = len(self._masses)
        turns, rest = np.split(numbers, [9 * bodies])
        factors = Factors.from_numbers(self.tree, bodies, rest)
        moved, pushing = factors.solve(np.zeros((bodies, 6)), violation)
        # M ΔV = −Dᵀ Δλ
        return in_coordinates(turns.reshape(bodies, 3, 3), moved), -pushing

    def free(self, placed: Frames, wrenches: list[Array], parameters: Array) -> Array:
        """Return q̈ of bodies that no constraint holds, less that of q̈ = 0; shape (6 bodies,).

        Parameters
        ----------
        placed, parameters
            Where the bodies are.
        wrenches
            What acts on each body, inertial forces at q̈ = 0 included, about its centre of mass; each of shape (6,).
        """
        inverse = inverse_inertias(self._masses, placed, parameters)
        turns = np.stack([np.stack(list(dual_axes(placed, joint).values())) for joint in self._floating])
        return in_coordinates(turns, (inverse @ np.stack(wrenches)[:, :, np.newaxis])[:, :, 0])

    def constrained(self, placed: Frames, parameters: Array, multipliers: Array) -> list[Array]:
        """Return Dᵀ λ: what multipliers exert on each body about its centre of mass, each of shape (6,).

        Parameters
        ----------
        placed, parameters
            Where the bodies are.
        multipliers
            One for each equation, shape (rows,).
        """
        wrenches = self._equations(placed, parameters).wrenches
        result = [np.zeros(6)] * len(self._masses)
        for link in self._links:
            for end, body in enumerate(link.ends):
                for row in link.rows if body >= 0 else ():
                    result[body] = result[body] + wrenches[end][row] * multipliers[row]
        return result

    def _equations(self, placed: Frames, parameters: Array) -> Equations:
        centres = centres_of_mass(self._masses, placed, parameters)
        acting: list[list[Array]] = []
        for joint, is_reversed in zip(self._constraints, self._reversed, strict=True):
            for on_parent, on_child in joint.wrenches(placed, parameters):
                of_parent, of_child = about(centres, joint.parent, on_parent), about(centres, joint.child, on_child)
                acting.append([of_child, of_parent] if is_reversed else [of_parent, of_child])
        if self._relations:
            frames = measure(self._kinematics.joints, placed, parameters).frames
            for relation in self._relations:
                wrenches = relating_wrenches(self._kinematics, frames, relation, parameters)
                acting.append([about(centres, body, wrench) for body, wrench in wrenches.items()])
        return Equations(by_ends(acting))


def in_coordinates(turns: Array, moved: Array) -> Array:
    """Return the rates of the coordinates from the V of the bodies about their centres of mass, shape (6 bodies,).

    Parameters
    ----------
    turns
        For each body, what the products with its angular velocity are its Cardan angles' rates; shape (bodies, 3, 3).
    moved
        V, shape (bodies, 6).
    """
    turning = (turns @ moved[:, 3:, np.newaxis])[:, :, 0]
    return np.concatenate([moved[:, :3], turning], axis=1).ravel()
