"""Bodies in absolute coordinates, connected by constraints only, for the divide-and-conquer assembly.

One linear problem serves positions, velocities and accelerations [Malczyk2012, sects. 2 and 3]: find the
mass-orthogonal correction that removes a violation Φ, Φ̇ or Φ̈. With increments ΔV and Δλ,

M ΔV + Dᵀ Δλ = 0,  Δλ = α (D ΔV + violation),

every iteration [eqs. 17, 56 and 72] is such a problem: the paper's λ* enters through the remaining violation. The
matrices depend on positions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from mbsfmu.divide_and_conquer.articulated_bodies import dual_axes
from mbsfmu.divide_and_conquer.articulation import (
    about,
    acted_on,
    by_ends,
    centres_of_mass,
    excess_directions,
    excess_wrenches,
    inverse_inertias,
    relating_wrenches,
)
from mbsfmu.divide_and_conquer.assembly import (
    Corrections,
    DivideAndConquer,
    Hung,
    LevelEquations,
    LevelFactors,
    SequentialAssembly,
    SequentialFactors,
)
from mbsfmu.divide_and_conquer.binary_tree import GROUND, BinaryTree, Link
from mbsfmu.equations.bodies import MassProperties
from mbsfmu.equations.constraints import CutJoint
from mbsfmu.equations.forces import CoordinateRelation
from mbsfmu.equations.joint_coordinates import measure
from mbsfmu.equations.kinematics import JointKinematics, Kinematics
from mbsfmu.equations.rotation import Frames
from mbsfmu.modelling.data import Array

ARM = 100.0
"""Lever arm in m that relates moments of inertia to masses in α. In smaller machines masses determine α, because a
larger α amplifies the inconsistency of redundant constraints.
"""


class ConstrainedBodies:
    """The linear problem of one mechanism.

    Parameters
    ----------
    masses
        Mass properties of the bodies.
    floating
        The free joints of the bodies; a body's coordinates are those of its joint.
    constraints
        The joints as constraints, those of the spanning tree first and outwards.
    reversed_joints
        For each joint, whether its child is the inner body.
    kinematics
        The joints of the spanning tree, whose coordinates are related.
    relations
        Relations of these coordinates, one equation each, after those of the joints.
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
        self._joined = links
        first = count + len(relations)
        self._hollow = excess_directions(kinematics.joints, masses)
        excess: list[Link] = []
        for body, directions in self._hollow.items():
            excess.append(Link((body,), tuple(range(first, first + len(directions))), excess=True))
            first += len(directions)
        self._excess = {link.ends[0]: link.rows for link in excess}
        self._links = [*links, *excess]

    @property
    def ends(self) -> list[tuple[int, ...]]:
        """Bodies on which each equation acts."""
        by_row = {row: link.ends for link in self._joined for row in link.rows}
        return [tuple(body for body in by_row[row] if body >= 0) for row in sorted(by_row)]

    @cached_property
    def tree(self) -> BinaryTree:
        """The plan of the balanced assembly."""
        return BinaryTree(len(self._masses), self._links, ground_first=True)

    @cached_property
    def _hung(self) -> list[Hung] | None:
        """The bodies with their joints to the parent, if these are all joints; otherwise None."""
        by_body = {link.ends[-1]: link for link in self._joined}
        free = Link((GROUND,), ())
        bodies = [
            Hung(by_body.get(body, free).ends[0], by_body.get(body, free).rows, self._excess.get(body, ()))
            for body in range(len(self._masses))
        ]
        rows = [row for link in self._joined for row in link.rows]
        is_tree = all(hung.parent < body for body, hung in enumerate(bodies)) and not self._relations
        return bodies if is_tree and rows == [row for hung in bodies for row in hung.rows] else None

    @cached_property
    def _one_by_one(self) -> SequentialAssembly:
        return SequentialAssembly(self._hung or [])

    def corrections(
        self,
        placed: Frames,
        parameters: Array,
        penalty: float,
        *,
        active: Array | None = None,
        sequential: bool = False,
    ) -> BodyCorrections:
        """Return the problem at given poses of the bodies.

        Parameters
        ----------
        placed
            Poses of the bodies, with the axes of their coordinates.
        parameters
            Parameters of the mechanism.
        penalty
            α as a multiple of the bodies' mean mass in kg, or of their mean moment of inertia about their joints by
            `ARM`² where this is more.
        active
            Ones for active equations, zeros for redundant ones, shape (rows,); None if all are active.
        sequential
            Whether joints are eliminated sequentially if they form a tree.
        """
        inverse = inverse_inertias(self._masses, placed, parameters)
        mass = sum((each.mass.of(parameters) for each in self._masses), np.asarray(0.0))
        softness = len(self._masses) / (penalty * np.maximum(mass, self._moments(parameters) / ARM**2))
        assembly = self._one_by_one if sequential and self._hung is not None else DivideAndConquer(self.tree)
        if active is not None:
            active = np.concatenate([active, np.ones(self._taken_away)])
        equations = replace(self._equations(placed, parameters), active=active)
        factors = assembly.factorize(inverse, equations, softness)
        return BodyCorrections(self._turns(placed), factors, self._taken_away)

    @property
    def _taken_away(self) -> int:
        """Number of equations that take away excess inertias."""
        return sum(map(len, self._excess.values()))

    def _moments(self, parameters: Array) -> Array:
        """Return the sum of the bodies' mean moments of inertia about their joints in kg m².

        Rotations converge by the ratio of their inertia to α; without this term they would not in machines of
        kilometres.
        """
        own = [each.inertia(parameters) for each in self._masses]
        moments: Array = sum(((each[0, 0] + each[1, 1] + each[2, 2]) / 3.0 for each in own), np.asarray(0.0))
        for joint in self._constraints:
            for body, point in joint.points(parameters):
                arm = point - self._masses[body].centre.of(parameters)
                moments = moments + self._masses[body].mass.of(parameters) * np.sum(arm * arm)
        return moments

    def _turns(self, placed: Frames) -> Array:
        """Return the matrices from angular velocities to Cardan angle rates, shape (bodies, 3, 3)."""
        return np.stack([np.stack(list(dual_axes(placed, joint).values())) for joint in self._floating])

    def free(self, placed: Frames, wrenches: list[Array], parameters: Array) -> Array:
        """Return V̇ of unconstrained bodies with their excess inertias, minus that of q̈ = 0; shape (6 bodies,).

        Parameters
        ----------
        placed, parameters
            Where the bodies are.
        wrenches
            Wrench on each body about its centre of mass, including inertial forces at q̈ = 0; each of shape (6,).
        """
        inverse = inverse_inertias(self._masses, placed, parameters)
        return (inverse @ np.stack(wrenches)[:, :, np.newaxis])[:, :, 0].ravel()

    def unheld(self, placed: Frames, forces: Array, parameters: Array) -> Array:
        """Return V̇ of unconstrained bodies under generalized forces alone, as `free`; shape (6 bodies,).

        Parameters
        ----------
        placed, parameters
            Where the bodies are.
        forces
            Along the coordinates, shape (6 bodies,).
        """
        by_body = zip(self._turns(placed), forces.reshape(-1, 6), strict=True)
        wrenches = [np.concatenate([own[:3], turns.T @ own[3:]]) for turns, own in by_body]
        return self.free(placed, wrenches, parameters)

    def constrained(self, placed: Frames, parameters: Array, multipliers: Array) -> list[Array]:
        """Return Dᵀ λ, the constraint wrench on each body about its centre of mass, each of shape (6,).

        Parameters
        ----------
        placed, parameters
            Where the bodies are.
        multipliers
            One for each equation, shape (rows,).
        """
        wrenches = self._equations(placed, parameters).wrenches
        result = [np.zeros(6)] * len(self._masses)
        for link in self._joined:
            for end, body in enumerate(link.ends):
                for row in link.rows if body >= 0 else ():
                    result[body] = result[body] + wrenches[end][row] * multipliers[row]
        return result

    def _equations(self, placed: Frames, parameters: Array) -> LevelEquations:
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
        for body, directions in self._hollow.items():
            acting += [[each] for each in excess_wrenches(self._masses[body], directions, placed, body, parameters)]
        return LevelEquations(by_ends(acting))


class BodyCorrections(Corrections):
    """The problem at given poses.

    Parameters
    ----------
    turns
        For each body, what the products with its angular velocity are its Cardan angles' rates; shape (bodies, 3, 3).
    factors
        Factors of the assembly of the joints.
    taken_away
        Number of equations, after those of the joints, that take away excess inertias.
    """

    def __init__(self, turns: Array, factors: LevelFactors | SequentialFactors, taken_away: int) -> None:
        self._turns = turns
        self._factors = factors
        self._taken_away = taken_away

    @property
    def coordinates(self) -> int:
        """Number of coordinates."""
        return 6 * len(self._turns)

    def numbers(self) -> Array:
        """Return all numbers of the matrices."""
        return np.concatenate([self._turns.ravel(), self._factors.numbers()])

    def with_numbers(self, numbers: Array) -> BodyCorrections:
        """Return the same problem with other matrices."""
        count = 9 * len(self._turns)
        turns = numbers[:count].reshape(len(self._turns), 3, 3)
        return BodyCorrections(turns, self._factors.with_numbers(numbers[count:]), self._taken_away)

    def solve(self, violation: Array, free: Array | None = None) -> tuple[Array, Array]:
        """Return Δq (or Δq̇, Δq̈), shape (6 bodies,), and Δλ, shape (rows,), for Φ (or Φ̇, Φ̈)."""
        alone = np.zeros((len(self._turns), 6)) if free is None else free.reshape(-1, 6)
        moved, pushing = self._factors.solve(alone, np.concatenate([violation, np.zeros(self._taken_away)]))
        # M ΔV = −Dᵀ Δλ
        return in_coordinates(self._turns, moved), -pushing[: len(violation)]


def in_coordinates(turns: Array, moved: Array) -> Array:
    """Return the coordinate rates from the body velocities V about the centres of mass, shape (6 bodies,).

    Parameters
    ----------
    turns
        For each body, what the products with its angular velocity are its Cardan angles' rates; shape (bodies, 3, 3).
    moved
        V, shape (bodies, 6).
    """
    turning = (turns @ moved[:, 3:, np.newaxis])[:, :, 0]
    return np.concatenate([moved[:, :3], turning], axis=1).ravel()
