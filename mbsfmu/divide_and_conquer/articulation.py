"""Inputs of divide and conquer: inverse inertias, joint subspaces, joint rates.

Each joint has a motion subspace H, spanned by its slides and hinges, and a constrained subspace D with Dᵀ H = 0
[Chadaj2017, eqs. 10 and 11]. Wrenches and velocities of a body refer to its centre of mass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from mbsfmu.divide_and_conquer.articulated_bodies import (
    ArticulatedBodies,
    across,
    at_origin,
    constrained_subspace,
    dual_axes,
    impulse,
    joint_accelerations,
    joint_rates,
    shifted,
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
from mbsfmu.divide_and_conquer.elimination import reciprocal
from mbsfmu.equations.bodies import MassProperties
from mbsfmu.equations.constraints import CutJoint
from mbsfmu.equations.forces import CoordinateRelation, Given
from mbsfmu.equations.joint_coordinates import MotionState, measure
from mbsfmu.equations.kinematics import JointKinematics, Kinematics
from mbsfmu.equations.rotation import Frames, body_velocity, cross, perpendicular, stack
from mbsfmu.modelling.data import Array
from mbsfmu.tracing.kernels import kernel

_ALIGNED = 1e-9
"""Sine or cosine below which an axis counts as parallel or perpendicular: what turns a body so little has no energy."""

FIRMER = 1e3
"""Ratio of moments of inertia that lets round-off grow as much as a ratio of masses of one: errors were 7e-9 at 1e8."""


class Articulation:
    """Joints and bodies of a mechanism for the divide-and-conquer assembly.

    Parameters
    ----------
    kinematics, masses, cuts
        Of the mechanism.
    by_equations
        By body, the closure equations of its joint to the parent, where they give the constraint wrenches.
    relations
        Relations of joint coordinates, one equation each, after those of the cut joints.
    rows
        Indices of the loop equations in use.
    sequential
        Whether joints are eliminated sequentially if there are no such equations, as articulated bodies.
    opened
        Whether loops are open that hold the mechanism otherwise; bodies keep their excess inertias then.
    """

    def __init__(
        self,
        kinematics: Kinematics,
        masses: list[MassProperties],
        cuts: list[CutJoint],
        by_equations: Mapping[int, CutJoint],
        relations: Sequence[CoordinateRelation],
        rows: tuple[int, ...],
        *,
        sequential: bool = False,
        opened: bool = False,
    ) -> None:
        self._kinematics = kinematics
        self._masses = masses
        self._cuts = cuts
        self._by_equations = by_equations
        self._ends = [cut.ends for cut in cuts for _ in cut.names]
        self._rows = rows
        links, count = [], 0
        for body, joint in enumerate(kinematics.joints):
            constraints = 6 - len(joint.elements)
            links.append(Link((joint.parent, body), tuple(range(count, count + constraints))))
            count += constraints
        self._first_cut = count
        offset = 0
        for cut in cuts:
            own = [index for index, row in enumerate(rows) if offset <= row < offset + len(cut.names)]
            links.append(Link(cut.ends, tuple(count + index for index in own)))
            offset += len(cut.names)
        self._related = {offset + number: relation for number, relation in enumerate(relations)}
        for index, row in enumerate(rows):
            if (relation := self._related.get(row)) is not None:
                links.append(Link(acted_on(kinematics, relation), (count + index,)))
        self._hollow = {} if opened else excess_directions(kinematics.joints, masses)
        self._excess: dict[int, tuple[int, ...]] = {}
        first = self._first_cut + len(rows)
        for body, directions in self._hollow.items():
            self._excess[body] = tuple(range(first, first + len(directions)))
            first += len(directions)
        links += [Link((body,), own, excess=True) for body, own in self._excess.items()]
        self._opened = opened
        self._links = links
        self._sequential = sequential and not rows

    @cached_property
    def tree(self) -> BinaryTree:
        """The plan of the balanced assembly."""
        return BinaryTree(len(self._masses), self._links)

    # -- joints ---------------------------------------------------------------------------------------------

    def equations(
        self, frames: Frames, centres: list[Array], parameters: Array, active: Array | None
    ) -> LevelEquations:
        """Return the constraint equations of all joints: those of the tree, the loop equations, and excess inertias.

        Parameters
        ----------
        frames, centres, parameters
            Poses and centres of mass of the bodies.
        active
            Ones for active loop equations, zeros for the others, shape (rows,); None if all are active.
        """
        acting: list[list[Array]] = []
        for body, joint in enumerate(self._kinematics.joints):
            wrenches = self._constrained(frames, body, joint, parameters)
            acting += [[about(centres, joint.parent, -each), about(centres, body, each)] for each in wrenches]
        pairs = [pair for cut in self._cuts for pair in cut.wrenches(frames, parameters)]
        for row in self._rows:
            if (relation := self._related.get(row)) is not None:
                related = relating_wrenches(self._kinematics, frames, relation, parameters)
                acting.append([about(centres, body, wrench) for body, wrench in related.items()])
            else:
                ends = zip(self._ends[row], pairs[row], strict=True)
                acting.append([about(centres, body, wrench) for body, wrench in ends])
        for body, directions in self._hollow.items():
            acting += [[each] for each in excess_wrenches(self._masses[body], directions, frames, body, parameters)]
        counting = None
        if active is not None:
            counting = np.concatenate([np.ones(self._first_cut), active, np.ones(self._taken_away)])
        return LevelEquations(by_ends(acting), counting)

    @property
    def _taken_away(self) -> int:
        """Number of equations that take away excess inertias."""
        return sum(map(len, self._excess.values()))

    def _constrained(self, frames: Frames, body: int, joint: JointKinematics, parameters: Array) -> list[Array]:
        """Return the columns of D as wrenches about the inertial origin, each of shape (6,)."""
        if (closing := self._by_equations.get(body)) is not None:
            on_ends = zip(*closing.wrenches(frames, parameters), strict=True)
            return list(dict(zip((closing.parent, closing.child), on_ends, strict=True))[body])
        slides = [element for element in joint.elements if element.slides]
        axes = [frames.axis[element.coordinate] for element in joint.hinges]
        along = list(perpendicular(slides[0].axis)) if len(slides) == 1 else []
        about_axis = list(perpendicular(joint.hinges[0].axis)) if len(joint.hinges) == 1 else []
        place = frames.point(body, joint.outer.of(parameters))
        return constrained_subspace(
            frames.orientation(joint.parent), place, axes, along, about_axis, slides=len(slides)
        )

    def _across(self, frames: Frames, moved: list[Array]) -> Array:
        """Return ż (or z̈) of all coordinates from the body velocities V at the inertial origin, shape (n,)."""
        result: dict[int, Array] = {}
        for body, joint in enumerate(self._kinematics.joints):
            result |= across(frames, moved[body], body_velocity(moved, joint.parent), joint)
        return stack([result[index] for index in range(len(result))])

    # -- solutions ------------------------------------------------------------------------------------------

    @property
    def passes_one_by_one(self) -> bool:
        """Whether joints are passed as those of articulated bodies, which loses no digits."""
        return self._sequential

    def assembled(self, frames: Frames, parameters: Array, active: Array | None) -> AssembledMechanism:
        """Return the assembly of all bodies, which solves for several loads.

        Parameters
        ----------
        frames, parameters
            Where the bodies are.
        active
            As for `equations`.
        """
        centres = centres_of_mass(self._masses, frames, parameters)
        if self.passes_one_by_one:
            inertias = [
                each.regular_inertia(parameters) if self._opened else each.inertia(parameters) for each in self._masses
            ]
            tree = ArticulatedBodies(self._kinematics.joints, self._masses, inertias, centres, frames, parameters)

            def moving(wrenches: list[Array], bias: Array) -> tuple[Array, Array]:
                found = tree.solve(wrenches)
                return found, found[: len(bias)]

            return moving
        inverse = inverse_inertias(self._masses, frames, parameters)
        factors = DivideAndConquer(self.tree).factorize(inverse, self.equations(frames, centres, parameters, active))

        def solve(wrenches: list[Array], bias: Array) -> tuple[Array, Array]:
            central = [about(centres, body, wrench) for body, wrench in enumerate(wrenches)]
            free = (inverse @ np.stack(central)[:, :, np.newaxis])[:, :, 0]
            # zero for joints of the tree, and excess inertias
            everything = np.concatenate([np.zeros(self._first_cut), bias, np.zeros(self._taken_away)])
            solution, multipliers = factors.solve(free, everything)
            moved = [at_origin(centre, solution[body]) for body, centre in enumerate(centres)]
            return self._across(frames, moved), multipliers[self._first_cut : self._first_cut + len(bias)]

        return solve

    def loop_accelerations(self, motion: MotionState, given: Given, moved: list[Array], accelerations: Array) -> Array:
        """Return d²Φ/dt² of the loop equations in use, shape (rows,).

        Parameters
        ----------
        motion, given
            Poses and velocities of the bodies, and the other variables.
        moved
            Derivative of the body velocities Z at the fixed inertial origin, s̈ − ω × ṡ and α, each of shape (6,).
        accelerations
            The z̈ of that, shape (n,).
        """
        opening = joint_accelerations(self._cuts, motion, moved, given.parameters)
        related = {
            row: each.sum(accelerations, given.parameters) + each.drift_rate(given)
            for row, each in self._related.items()
        }
        return stack([related[row] if row in related else opening[row] for row in self._rows])

    def loop_drifts(self, given: Given) -> Array:
        """Return Φ_t of the loop equations in use, shape (rows,)."""
        related = (self._related.get(row) for row in self._rows)
        drifts = [np.asarray(0.0) if relation is None else relation.drift(given) for relation in related]
        return np.stack(drifts) if drifts else np.zeros(0)

    def loop_rates(self, motion: MotionState, given: Given) -> Array:
        """Return dΦ/dt of the loop equations in use, shape (rows,)."""
        opening = joint_rates(self._cuts, motion.frames, motion.body_velocities, given.parameters)
        related = {
            row: each.sum(motion.velocities, given.parameters) + each.drift(given)
            for row, each in self._related.items()
        }
        return stack([related[row] if row in related else opening[row] for row in self._rows])

    def wrench_rates(self, motion: MotionState, parameters: Array) -> list[tuple[Array, Array]]:
        """Return dw/dt of all loop equations, on the parent and on the child."""
        return [
            pair for cut in self._cuts for pair in cut.wrench_rates(motion.frames, motion.body_velocities, parameters)
        ]

    def pulled(self, wrenches: list[Array], acting: Sequence[tuple[Array, Array]], multipliers: Array) -> list[Array]:
        """Return wrenches on the bodies plus those of the cut joints' loop equations in use, each of shape (6,).

        Parameters
        ----------
        wrenches
            Wrenches without the loop equations.
        acting
            Wrenches of unit multipliers, or their rates, of all equations of cut joints, on parent and child.
        multipliers
            Of the equations in use, shape (rows,).
        """
        result = list(wrenches)
        for index, row in enumerate(self._rows):
            if row not in self._related:
                for body, wrench in zip(self._ends[row], acting[row], strict=True):
                    if body >= 0:
                        result[body] = result[body] + wrench * multipliers[index]
        return result

    def along(self, forces: Array, multipliers: Array, parameters: Array) -> Array:
        """Return generalized forces plus those of the relations in use, shape (n,).

        Parameters
        ----------
        forces
            Forces without the relations, shape (n,).
        multipliers, parameters
            Of the equations in use, shape (rows,), and of the mechanism.
        """
        if self._related.keys().isdisjoint(self._rows):
            return forces
        result = list(forces)
        for index, row in enumerate(self._rows):
            if (relation := self._related.get(row)) is not None:
                for coordinate, factor in zip(relation.coordinates, relation.factors(parameters), strict=True):
                    result[coordinate] = result[coordinate] + factor * multipliers[index]
        return np.stack(result)


AssembledMechanism = Callable[[list[Array], Array], tuple[Array, Array]]
"""Solution of an assembled mechanism: from wrenches and γ to ż (or z̈) and the multipliers of the loop equations in use,
shapes (n,) and (rows,). Wrenches are force and moment on each body about the inertial origin (or its linear and angular
momentum), each of shape (6,); γ is the bias of the loop equations in use, shape (rows,)."""


def turning_directions(joints: Sequence[JointKinematics]) -> list[Array]:
    """Return the directions in body axes about which each body turns, each of shape (0, 3), (1, 3) or (3, 3).

    Bodies that hang on parallel hinges turn about their direction alone; without hinges they do not turn.
    """
    turned: list[Array] = []
    spanned: list[Array] = []  # by the hinges from the ground to a body, with coordinates of zero
    for joint in joints:
        inner = np.eye(3) if joint.parent < 0 else turned[joint.parent]
        axes = np.zeros((0, 3)) if joint.parent < 0 else spanned[joint.parent]
        for hinge in joint.hinges:
            axis = inner @ hinge.axis
            if not len(axes):
                axes = axis[np.newaxis]
            elif len(axes) == 1 and np.linalg.norm(np.cross(axes[0], axis)) >= _ALIGNED:
                axes = np.eye(3)
        turned.append(inner @ joint.orientation)
        spanned.append(axes)
    return [axes @ rotation if len(axes) == 1 else axes for axes, rotation in zip(spanned, turned, strict=True)]


def excess_directions(joints: Sequence[JointKinematics], masses: Sequence[MassProperties]) -> dict[int, Array]:
    """Return by body the directions in which it moves and has no inertia, in body axes, each of shape (6,).

    These are displacements of the centre of mass, then rotations. Bodies are left out that cannot move so.
    """
    return _excess_directions(masses, turning_directions(joints))


def _excess_directions(masses: Sequence[MassProperties], turning: Sequence[Array]) -> dict[int, Array]:
    result: dict[int, Array] = {}
    for body, (mass, turned) in enumerate(zip(masses, turning, strict=True)):
        about = turned @ mass.hollow.T @ mass.hollow if len(turned) == 1 else mass.hollow[: len(turned)]
        about = about[np.linalg.norm(about, axis=1) > _ALIGNED]
        about = about / np.linalg.norm(about, axis=1)[:, np.newaxis]
        moved = np.eye(6)[: 3 if mass.massless else 0]
        if len(moved) + len(about):
            result[body] = np.concatenate([moved, np.concatenate([np.zeros((len(about), 3)), about], axis=1)])
    return result


def excess_wrenches(
    mass: MassProperties, directions: Array, frames: Frames, body: int, parameters: Array
) -> list[Array]:
    """Return wrenches about the centre of mass of equations that take excess inertias away, each of shape (6,).

    With the factor √m of a mass and √J of a moment of inertia, d dᵀ is the excess, and the softness is −1.
    """
    result = []
    for direction in directions:
        force, moment = (frames.rotation[body] @ part for part in (direction[:3], direction[3:]))
        excess = mass.excess_mass() if direction[:3].any() else mass.excess_moment(parameters)
        result.append(np.sqrt(excess) * np.concatenate([force, moment]))
    return result


def inertia_spread(
    joints: Sequence[JointKinematics], cuts: Sequence[CutJoint], masses: Sequence[MassProperties], parameters: Array
) -> float:
    """Return the factor by which the assembly lets round-off grow for unequal inertias, from numbers.

    It subtracts mobilities of light bodies from each other until those of heavy ones are left. The factor is the
    largest mass times the largest mobility of a body's point at one of its joints, or the largest moment of inertia
    times the largest rotational mobility, by `FIRMER`. Bodies are mobile about directions about which they turn.
    """
    turns = turning_directions(joints)
    hollow, turning = _excess_directions(masses, turns), []
    heaviest = largest = bulkiest = 0.0
    for body, (given, directions) in enumerate(zip(masses, turns, strict=True)):
        inertia = given.regular_inertia(parameters) if body in hollow else given.inertia(parameters)
        turning.append(directions.T @ np.linalg.inv(directions @ inertia @ directions.T) @ directions)
        heaviest = max(heaviest, float(given.mass.of(parameters)))
        bulkiest = max(bulkiest, float(np.max(np.diagonal(inertia))))
    ends = [end for cut in cuts for end in cut.points(parameters)]
    for body, joint in enumerate(joints):
        ends += [(body, joint.outer.of(parameters)), (joint.parent, joint.inner.of(parameters))]
    for body, point in ends:
        if body >= 0:
            arm = np.cross(np.eye(3), point - masses[body].centre.of(parameters))  # arm × …, transposed
            mobility = np.eye(3) / masses[body].regular_mass(parameters) + arm @ turning[body] @ arm.T
            largest = max(largest, float(np.linalg.norm(mobility, ord=2)))
    rotational = max((float(np.linalg.norm(each, ord=2)) for each in turning), default=0.0)
    return max(heaviest * largest, bulkiest * rotational / FIRMER)


def acted_on(kinematics: Kinematics, relation: CoordinateRelation) -> tuple[int, ...]:
    """Return the bodies adjacent to the joints of a relation, without the ground."""
    ends = {
        body: None
        for outer, joint in enumerate(kinematics.joints)
        if any(element.coordinate in relation.coordinates for element in joint.elements)
        for body in (joint.parent, outer)
        if body >= 0
    }
    return tuple(ends)


def relating_wrenches(
    kinematics: Kinematics, frames: Frames, relation: CoordinateRelation, parameters: Array
) -> dict[int, Array]:
    """Return the wrenches of a unit multiplier of a relation on each of its bodies, each of shape (6,).

    Parameters
    ----------
    kinematics, parameters
        The joints.
    frames
        Poses of the bodies, with the axes of the joints.
    relation
        The relation of coordinates.
    """
    result = dict.fromkeys(acted_on(kinematics, relation), np.zeros(6))
    along = relation.along(parameters, sum(len(joint.elements) for joint in kinematics.joints))
    for body, joint in enumerate(kinematics.joints):
        if any(element.coordinate in relation.coordinates for element in joint.elements):
            acting = impulse(frames, joint, along)
            result[body] = result[body] + acting
            if joint.parent >= 0:
                result[joint.parent] = result[joint.parent] - acting
    return result


def by_ends(acting: Sequence[Sequence[Array]]) -> Array:
    """Return wrenches by equation and end as an array by end and equation, zero for missing ends."""
    most = max(map(len, acting), default=2)
    filled = [[*each, *[np.zeros(6)] * (most - len(each))] for each in acting]
    return np.stack([np.stack(each) for each in zip(*filled, strict=True)]) if filled else np.zeros((most, 0, 6))


def centres_of_mass(masses: list[MassProperties], frames: Frames, parameters: Array) -> list[Array]:
    """Return the centres of mass in the inertial frame in m, each of shape (3,)."""
    return [frames.point(body, each.centre.of(parameters)) for body, each in enumerate(masses)]


def inverse_inertias(masses: list[MassProperties], frames: Frames, parameters: Array) -> Array:
    """Return M⁻¹ of each body about its centre of mass, shape (bodies, 6, 6)."""
    given = [(each.regular_mass(parameters), each.regular_inertia(parameters)) for each in masses]
    return np.stack([_inverse_inertia(turned, *each) for turned, each in zip(frames.rotation, given, strict=True)])


@kernel
def _inverse_inertia(rotation: Array, mass: Array, inertia: Array) -> Array:
    """Return M⁻¹ of a body, shape (6, 6), from its inertia tensor in body axes."""
    turning = rotation @ _inverse(inertia) @ rotation.T
    upper = np.concatenate([np.eye(3) * reciprocal(mass), np.zeros((3, 3))], axis=1)
    return np.concatenate([upper, np.concatenate([np.zeros((3, 3)), turning], axis=1)])


def spatial(acceleration: Array, velocity: Array) -> Array:
    """Return the derivative of Z at the fixed inertial origin from Ż of the body's point there, shape (6,)."""
    return np.concatenate([acceleration[:3] - cross(velocity[3:], velocity[:3]), acceleration[3:]])


def about(centres: list[Array], body: int, wrench: Array) -> Array:
    """Return a wrench about the inertial origin as one about a body's centre of mass; zero for the ground."""
    if body < 0:
        return np.zeros(6)
    return _about(centres[body], wrench)


@kernel
def _about(centre: Array, wrench: Array) -> Array:
    return shifted(wrench, centre)


def _inverse(inertia: Array) -> Array:
    """Return the inverse of a symmetric tensor by its adjugate, shape (3, 3)."""
    columns = [
        cross(inertia[1], inertia[2]),
        cross(inertia[2], inertia[0]),
        cross(inertia[0], inertia[1]),
    ]
    return np.stack(columns) * reciprocal(inertia[0] @ columns[0])


# -- bodies in absolute coordinates, connected by constraints only, for the divide-and-conquer assembly ----------------
# One linear problem serves positions, velocities and accelerations [Malczyk2012, sects. 2 and 3]: find the mass-
# orthogonal correction that removes a violation Φ, Φ̇ or Φ̈. With increments ΔV and Δλ,
#
# M ΔV + Dᵀ Δλ = 0,  Δλ = α (D ΔV + violation),
#
# every iteration [eqs. 17, 56 and 72] is such a problem: the paper's λ* enters through the remaining violation. The
# matrices depend on positions only.

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
