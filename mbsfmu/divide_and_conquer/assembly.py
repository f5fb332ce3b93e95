"""Divide-and-conquer assembly and disassembly by levels, sequential elimination along a tree, corrections.

Mass-orthogonal corrections: factors of a linear problem that solve for several right-hand sides.

The matrices depend on positions only, and are stored as a vector of numbers.

Divide-and-conquer assembly and disassembly by levels, each level in batches.

A subassembly with handles h satisfies V_h = Σ ξ_hk T_k + ξ_h0 [Chadaj2017, eqs. 15 and 16], where T_k is the wrench of
the outside joints on handle k. All handles of a body coincide in its centre of mass, so that every ξ of a single body
is its inverse inertia. V are accelerations [Featherstone1999] or velocities [Chadaj2017].

Constraint equations of a joint are eliminated one by one. With the wrench d of a unit multiplier on the handles and e =
dᵀ ξ d, the multiplier is λ = −(dᵀ ξ T + dᵀ ξ_0 + γ) / e, and the subassembly becomes ξ − ξ d dᵀ ξ / e. The coupling of
an equation to each earlier one in the same subassembly is stored as one number, so that ξ and ξ_0 need no update from
one equation to the next. This is C = −[Dᵀ (ξ_11 + ξ_22) D]⁻¹ of [Chadaj2017, eq. 27] factorized as L D Lᵀ. With a
softness 1/α added to every e it is C = (1/α I + Φ_q M⁻¹ Φ_qᵀ)⁻¹ of [Malczyk2012, eq. 20], which exists for any rank.

Matrices are factorized first (`factorize`), then vectors are solved (`LevelFactors.solve`), once for each right-hand
side.

Sequential elimination of the constraint equations of a tree's joints, from the tips to the ground.

Each subassembly then has one handle, the parent body of its next joint inwards, whereas one in the middle of a chain
has two: an elimination takes a third of the operations, and stores a third of the numbers. The equations are those of
`assembly.py`, which constraints with a softness need; rigid joints take less as `articulated_bodies.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from mbsfmu.divide_and_conquer.binary_tree import GROUND, BinaryTree, Elimination, Indices, SubassemblyBatch, TreeLevel
from mbsfmu.divide_and_conquer.elimination import Found, eliminate, gather, spread, times
from mbsfmu.equations.rotation import cut
from mbsfmu.modelling.data import Array

PENALTY = 1e6
"""Penalty factor α relative to the bodies' mean mass in kg; the paper's value for bodies of 1 kg [Malczyk2012]."""

FEW_BODIES = 64
"""Largest number of bodies for this penalty; beyond it the penalty grows as the square of their number."""


def suitable_penalty(coordinates: int) -> float:
    """Return the penalty factor for bodies with a total number of coordinates.

    The remainder of an iteration is 1/α of (Φ_q M⁻¹ Φ_qᵀ)⁻¹ of each motion; for the slowest motion along a chain of n
    bodies this is n² times that of a single joint.
    """
    return PENALTY * max(1.0, (coordinates / (6 * FEW_BODIES)) ** 2)


class Corrections(ABC):
    """The matrices of M Δz + Φ_zᵀ Δλ = 0 and Δλ = α (Φ_z Δz + violation)."""

    @abstractmethod
    def numbers(self) -> Array:
        """Return the matrices as one vector, shape (numbers,)."""

    @abstractmethod
    def with_numbers(self, numbers: Array) -> Corrections:
        """Return the same problem with other matrices, from `numbers`."""

    @property
    @abstractmethod
    def coordinates(self) -> int:
        """Number n of coordinates."""

    @abstractmethod
    def solve(self, violation: Array, free: Array | None = None) -> tuple[Array, Array]:
        """Return Δz and Δλ for a violation, shapes (n,) and (m,).

        Parameters
        ----------
        violation
            Φ, Φ̇ or Φ̈, shape (m,).
        free
            Accelerations of the bodies without constraints under loads, of which M Δz + Φ_zᵀ Δλ has the sum; without
            it there are no loads; shape (n,).
        """


class BlockDiagonalCorrections(Corrections):
    """Corrections of parts without constraints between them.

    Parameters
    ----------
    parts
        The corrections of the parts.
    constraints
        Number of constraints of each part.
    """

    def __init__(self, parts: Sequence[Corrections], constraints: Sequence[int]) -> None:
        self._parts = parts
        self._constraints = constraints

    def numbers(self) -> Array:
        """Return the matrices of all parts."""
        return np.concatenate([np.zeros(0), *(part.numbers() for part in self._parts)])

    def with_numbers(self, numbers: Array) -> BlockDiagonalCorrections:
        """Return the same problem with other matrices."""
        own = cut(numbers, [len(part.numbers()) for part in self._parts])
        parts = [part.with_numbers(each) for part, each in zip(self._parts, own, strict=True)]
        return BlockDiagonalCorrections(parts, self._constraints)

    @property
    def coordinates(self) -> int:
        """Number of coordinates of all parts."""
        return sum(part.coordinates for part in self._parts)

    def solve(self, violation: Array, free: Array | None = None) -> tuple[Array, Array]:
        """Return Δz and Δλ of all parts."""
        counts = [part.coordinates for part in self._parts]
        alone = [None] * len(counts) if free is None else cut(free, counts)
        found = [
            part.solve(opening, own)
            for part, opening, own in zip(self._parts, cut(violation, self._constraints), alone, strict=True)
        ]
        moved, pushing = zip(*found, strict=True) if found else ((), ())
        return np.concatenate([np.zeros(0), *moved]), np.concatenate([np.zeros(0), *pushing])


def in_a_row(tree: Any) -> Iterator[Array]:
    """Yield the elements of all arrays in nested lists and tuples."""
    if isinstance(tree, (list, tuple)):
        for each in tree:
            yield from in_a_row(each)
    else:
        yield tree.ravel()


def rebuilt(tree: Any, numbers: Array) -> Any:
    """Return nested lists and tuples of arrays of the same shapes with other elements, in the order of `in_a_row`."""
    first = 0

    def taken(part: Any) -> Any:
        nonlocal first
        if isinstance(part, (list, tuple)):
            return type(part)([taken(each) for each in part])
        begin, first = first, first + int(np.prod(part.shape))
        return numbers[begin:first].reshape(part.shape)

    return taken(tree)


TAKEN_AWAY = -1.0
"""Softness of equations that take an excess inertia d dᵀ away from a body: with dᵀ V − λ = 0 the wrench d λ is what it
takes to accelerate that."""


@dataclass(frozen=True)
class LevelEquations:
    """Constraint equations Σ dᵀ V + γ = 0, summed over the bodies of each, without γ.

    Attributes
    ----------
    wrenches
        d: wrenches of unit multipliers about the centres of mass of the bodies, in the order of the links' ends; zero
        on the ground, and for missing ends; shape (ends, rows, 6).
    active
        Ones for active equations, zeros for redundant ones; shape (rows,), None if all are active.
    """

    wrenches: Array
    active: Array | None = None


@dataclass(frozen=True)
class Eliminated:
    """Factors of the eliminated equations of one link, for all members of a group.

    Attributes
    ----------
    ends
        The handles that they act on; None for the ground.
    rows
        Their indices, shape (members, equations).
    numbers
        d of each end that is not the ground, shape (members, equations, 6); ξ d / e of each handle that is left, shape
        (members, 6, equations), with ξ as the equations before leave it; 1/e, shape (members, equations); of each link
        that the group has eliminated before, dᵀ ξ d / e with its ξ d / e, shape (members, equations, its equations);
        and the same among these equations, of each but the first, shape (members, equations before it).
    """

    ends: tuple[int | None, ...]
    rows: Indices
    numbers: Found


History = list[list[list[Eliminated]]]
"""Factors of the eliminated equations, by level, group and order."""


class DivideAndConquer:
    """Assembly of matrices by levels.

    Parameters
    ----------
    tree
        The plan.
    """

    def __init__(self, tree: BinaryTree) -> None:
        self._tree = tree

    def factorize(self, inverse: Array, equations: LevelEquations, softness: Array | None = None) -> LevelFactors:
        """Eliminate all equations and return the factors.

        Parameters
        ----------
        inverse
            Inverse inertia of each body about its centre of mass, shape (bodies, 6, 6).
        equations
            The constraints.
        softness
            1/α in 1/kg; without it, constraints are rigid and dependent equations are omitted.
        """
        pools = {1: inverse}
        history = []
        for level in self._tree.levels:
            pools, eliminated = _assemble(level, pools, equations, softness)
            history.append(eliminated)
        return LevelFactors(self._tree, inverse, history)


class LevelFactors:
    """Factors that solve for all multipliers and all bodies.

    Parameters
    ----------
    tree, inverse, history
        The plan, the inverse inertias, and the factors of eliminated equations.
    """

    def __init__(self, tree: BinaryTree, inverse: Array, history: History) -> None:
        self._tree = tree
        self._inverse = inverse
        self._history = history

    def solve(self, free: Array, bias: Array) -> tuple[Array, Array]:
        """Return V of each body, shape (bodies, 6), and the multipliers, shape (rows,).

        Parameters
        ----------
        free
            V of each body without constraints, shape (bodies, 6).
        bias
            γ of each equation, shape (rows,).
        """
        pools = {1: free}
        rests = []
        for level, eliminated in zip(self._tree.levels, self._history, strict=True):
            pools, rest = _gather(level, eliminated, pools, bias)
            rests.append(rest)
        multipliers: list[tuple[Array, Array]] = []
        forces = {count: np.zeros(pool.shape) for count, pool in pools.items()}
        steps = list(zip(self._tree.levels, self._history, rests, strict=True))
        for level, eliminated, rest in reversed(steps):
            forces = _disassemble(level, eliminated, rest, forces, multipliers)
        moved = free + times(self._inverse, forces[1])
        return moved, _in_order(multipliers, len(bias))

    def numbers(self) -> Array:
        """Return all numbers of the factors as one vector, shape (numbers,)."""
        return np.concatenate(list(in_a_row([self._inverse, self._matrices])))

    def with_numbers(self, numbers: Array) -> LevelFactors:
        """Return factors with other numbers, in the order of `numbers`."""
        inverse, matrices = rebuilt([self._inverse, self._matrices], numbers)
        history = [
            [
                [replace(one, numbers=found) for one, found in zip(group, own, strict=True)]
                for group, own in zip(level, of_level, strict=True)
            ]
            for level, of_level in zip(self._history, matrices, strict=True)
        ]
        return LevelFactors(self._tree, inverse, history)

    @property
    def _matrices(self) -> list[list[list[Found]]]:
        return [[_numbers(group) for group in level] for level in self._history]


def _assemble(
    level: TreeLevel, pools: dict[int, Array], equations: LevelEquations, softness: Array | None
) -> tuple[dict[int, Array], list[list[Eliminated]]]:
    """Return the ξ of the next level by their numbers of handles, each of shape (members, 6 h, 6 h)."""
    made: dict[int, list[Array]] = {}
    history = []
    for group in level.groups:
        links = [each for each in group.eliminations if each.rows.shape[1]]
        left, found = eliminate(
            [pools[count][positions] for count, positions in group.parts],
            [[equations.wrenches[end][each.rows] for end in range(len(each.ends))] for each in links],
            [None if equations.active is None else equations.active[each.rows] for each in links],
            [_softness(each, softness) for each in links],
            ends=tuple(each.ends for each in links),
            closes_loop=tuple(each.closes_loop for each in links),
            kept=group.kept,
        )
        history.append([Eliminated(each.ends, each.rows, own) for each, own in zip(links, found, strict=True)])
        made.setdefault(len(group.kept), []).append(left)
    return _joined(level, made, pools), history


def _softness(link: Elimination, softness: Array | None) -> Array | None:
    if link.excess:
        return TAKEN_AWAY * np.ones(len(link.rows))
    return None if softness is None else np.stack([softness] * len(link.rows))


def _gather(
    level: TreeLevel, history: list[list[Eliminated]], pools: dict[int, Array], bias: Array
) -> tuple[dict[int, Array], list[list[Array]]]:
    """Return the ξ_h0 of the next level, each of shape (members, 6 h), and dᵀ ξ_0 + γ of what is eliminated."""
    made: dict[int, list[Array]] = {}
    rests = []
    for group, eliminated in zip(level.groups, history, strict=True):
        parts = [pools[count][positions] for count, positions in group.parts]
        biases = [bias[one.rows] for one in eliminated]
        vector, left = gather(parts, _numbers(eliminated), biases, ends=_ends(eliminated), kept=group.kept)
        rests.append(left)
        made.setdefault(len(group.kept), []).append(vector)
    return _joined(level, made, pools), rests


def _numbers(eliminated: list[Eliminated]) -> list[Found]:
    return [one.numbers for one in eliminated]


def _ends(eliminated: list[Eliminated]) -> tuple[tuple[int | None, ...], ...]:
    return tuple(one.ends for one in eliminated)


def _joined(level: TreeLevel, made: dict[int, list[Array]], pools: dict[int, Array]) -> dict[int, Array]:
    """Return the assembled and the unchanged subassemblies of a level, by the number of handles."""
    for count, positions in level.carried.items():
        made.setdefault(count, []).append(pools[count][positions])
    return {count: np.concatenate(pieces) for count, pieces in made.items()}


def _handles(group: SubassemblyBatch) -> int:
    return sum(count for count, _ in group.parts)


def _disassemble(
    level: TreeLevel,
    history: list[list[Eliminated]],
    rests: list[list[Array]],
    forces: dict[int, Array],
    multipliers: list[tuple[Array, Array]],
) -> dict[int, Array]:
    """Return the wrenches on the handles of the previous level; add the level's multipliers to the list."""
    given = dict.fromkeys(forces, 0)
    placed: dict[int, list[tuple[Array, Array]]] = {}
    for group, eliminated, left in zip(level.groups, history, rests, strict=True):
        members, kept = len(group.parts[0][1]), len(group.kept)
        first = given.get(kept, 0)
        given[kept] = first + members
        acting, found = spread(
            forces[kept][first : first + members] if kept else np.zeros((members, 0)),
            _numbers(eliminated),
            left,
            ends=_ends(eliminated),
            kept=group.kept,
            handles=_handles(group),
        )
        multipliers += [(one.rows.ravel(), each.ravel()) for one, each in zip(eliminated, found, strict=True)]
        begin = 0
        for count, positions in group.parts:
            placed.setdefault(count, []).append((positions, acting[:, begin : begin + 6 * count]))
            begin += 6 * count
    for count, positions in level.carried.items():
        first = given[count]
        placed.setdefault(count, []).append((positions, forces[count][first : first + len(positions)]))
    return {count: _in_order(pieces, sum(len(each) for each, _ in pieces)) for count, pieces in placed.items()}


def _in_order(pieces: list[tuple[Array, Array]], count: int) -> Array:
    """Concatenate pieces with given positions into one array."""
    if not pieces:
        return np.zeros(count)
    order = np.empty(count, dtype=np.intp)
    order[np.concatenate([positions for positions, _ in pieces])] = np.arange(count)
    return np.concatenate([values for _, values in pieces])[order]


@dataclass(frozen=True)
class Hung:
    """A body with its joint to the parent.

    Attributes
    ----------
    parent
        The parent body, with a lower index; −1 for the ground.
    rows
        Indices of the joint's constraint equations.
    excess
        Indices of the equations that take an excess inertia from the body; after those of all joints.
    """

    parent: int
    rows: tuple[int, ...]
    excess: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Step:
    """Elimination of the joint of a body to its parent, and of excess inertias of bodies whose last joint it is.

    Attributes
    ----------
    body
        The body.
    parts
        Indices of the assembled parts: bodies, then after all bodies the results of steps in their order.
    widths
        Numbers of their handles.
    ends
        The handles of the joint, None for the ground, unless it has no equations; then that of each excess inertia.
    rows
        Indices of the equations of each, shape (1, equations).
    excess
        For each, whether it is an excess inertia.
    kept
        The remaining handles.
    """

    body: int
    parts: tuple[int, ...]
    widths: tuple[int, ...]
    ends: tuple[tuple[int | None, ...], ...]
    rows: tuple[Indices, ...]
    excess: tuple[bool, ...]
    kept: tuple[int, ...]


class _Joining:
    """Subassemblies during the assembly.

    Parameters
    ----------
    bodies
        As for `SequentialAssembly`.

    Attributes
    ----------
    steps
        Eliminations so far.
    """

    def __init__(self, bodies: Sequence[Hung]) -> None:
        self._bodies = bodies
        self.steps: list[_Step] = []
        self._of = list(range(len(bodies)))  # by body the next larger subassembly, or itself
        self._handles: list[tuple[int, ...]] = [(body,) for body in range(len(bodies))]
        self._waiting = [1] * len(bodies)  # joints
        for each in bodies:
            if each.parent != GROUND:
                self._waiting[each.parent] += 1

    def subassembly(self, body: int) -> int:
        """Return the subassembly of a body."""
        found = body
        while self._of[found] != found:
            self._of[found] = found = self._of[self._of[found]]
        return found

    def parts(self, body: int) -> tuple[int, ...]:
        """Return the subassemblies that the joint of a body connects."""
        parent = self._bodies[body].parent
        return tuple(self.subassembly(each) for each in (parent, body) if each != GROUND)

    def join(self, body: int) -> None:
        """Assemble a body with its parent."""
        parent, parts = self._bodies[body].parent, self.parts(body)
        handles = [each for part in parts for each in self._handles[part]]
        ends = None if parent == GROUND else handles.index(parent), handles.index(body)
        for each in (body, parent):
            if each != GROUND:
                self._waiting[each] -= 1
        kept = tuple(slot for slot, each in enumerate(handles) if self._waiting[each])
        widths = tuple(len(self._handles[part]) for part in parts)
        links: list[tuple[tuple[int | None, ...], tuple[int, ...], bool]] = []
        if rows := self._bodies[body].rows:
            links.append((ends, rows, False))
        for slot, each in enumerate(handles):
            if slot not in kept and (own := self._bodies[each].excess):
                links.append(((slot,), own, True))
        slots, of_links, excess = zip(*links, strict=True) if links else ((), (), ())
        indices = tuple(np.array([own]) for own in of_links)
        self.steps.append(_Step(body, parts, widths, slots, indices, excess, kept))
        for part in parts:
            self._of[part] = len(self._of)
        self._of.append(len(self._of))
        self._handles.append(tuple(handles[slot] for slot in kept))


def _steps(bodies: Sequence[Hung]) -> list[_Step]:
    """Return the eliminations in their order: from the tips inwards, those of joints to the ground last."""
    joining = _Joining(bodies)
    inwards = range(len(bodies) - 1, -1, -1)
    for body in sorted(inwards, key=lambda each: bodies[each].parent == GROUND):
        joining.join(body)
    return joining.steps


class SequentialAssembly:
    """Sequential assembly of matrices, with the interface of `DivideAndConquer`.

    Parameters
    ----------
    bodies
        All bodies, parents first.
    """

    def __init__(self, bodies: Sequence[Hung]) -> None:
        self._bodies = bodies
        self._steps = _steps(bodies)

    def factorize(self, inverse: Array, equations: LevelEquations, softness: Array | None = None) -> SequentialFactors:
        """Eliminate all equations; arguments as for `DivideAndConquer`."""
        soft = None if softness is None else np.stack([softness])
        left = [inverse[body : body + 1] for body in range(len(self._bodies))]
        history: list[list[Found]] = []
        for step in self._steps:
            joined, found = eliminate(
                [left[part] for part in step.parts],
                [
                    [equations.wrenches[end][rows] for end in range(len(ends))]
                    for ends, rows in zip(step.ends, step.rows, strict=True)
                ],
                [None] * len(step.rows),
                [TAKEN_AWAY * np.ones(1) if excess else soft for excess in step.excess],
                ends=step.ends,
                closes_loop=(False,) * len(step.rows),
                kept=step.kept,
            )
            left.append(joined)
            history.append(found)
        return SequentialFactors(self._bodies, self._steps, inverse, history)


class SequentialFactors:
    """Factors that solve for all multipliers and all bodies, as `LevelFactors`.

    Parameters
    ----------
    bodies, steps, inverse, history
        The bodies, the steps of the assembly, inverse inertias, and the factors of each step.
    """

    def __init__(
        self, bodies: Sequence[Hung], steps: Sequence[_Step], inverse: Array, history: list[list[Found]]
    ) -> None:
        self._bodies = bodies
        self._steps = steps
        self._inverse = inverse
        self._history = history

    def numbers(self) -> Array:
        """Return all numbers of the factors as one vector, shape (numbers,)."""
        return np.concatenate(list(in_a_row([self._inverse, self._history])))

    def with_numbers(self, numbers: Array) -> SequentialFactors:
        """Return factors with other numbers, in the order of `numbers`."""
        return SequentialFactors(self._bodies, self._steps, *rebuilt([self._inverse, self._history], numbers))

    def solve(self, free: Array, bias: Array) -> tuple[Array, Array]:
        """Return V of each body, shape (bodies, 6), and the multipliers, shape (rows,); as `LevelFactors.solve`."""
        pools = [free[body : body + 1] for body in range(len(self._bodies))]
        rests: list[list[Array]] = []
        for step, found in zip(self._steps, self._history, strict=True):
            parts, biases = [pools[part] for part in step.parts], [bias[rows] for rows in step.rows]
            joined, left = gather(parts, found, biases, ends=step.ends, kept=step.kept)
            pools.append(joined)
            rests.append(left)
        forces: list[Array] = [np.zeros((1, 0))] * len(pools)
        multipliers: list[tuple[int, Array]] = []
        for number, step in reversed(list(enumerate(self._steps))):
            outer = forces[len(self._bodies) + number]
            acting, found = spread(
                outer,
                self._history[number],
                rests[number],
                ends=step.ends,
                kept=step.kept,
                handles=sum(step.widths),
            )
            begin = 0
            for part, width in zip(step.parts, step.widths, strict=True):
                forces[part] = acting[:, begin : begin + 6 * width]
                begin += 6 * width
            pairs = zip(step.rows, found, strict=True)
            multipliers += [(int(rows[0, 0]), each[0]) for rows, each in pairs]
        moved = free + times(self._inverse, np.concatenate(forces[: len(self._bodies)]))
        return moved, np.concatenate([np.zeros(0), *(each for _, each in sorted(multipliers, key=itemgetter(0)))])
