"""The plan of the divide-and-conquer assembly, replayed body by body."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import ceil, log2
from typing import Any, cast

import numpy as np
import pytest
from graphs import chain, graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from mbsfmu.divide_and_conquer.assembly import DivideAndConquer, LevelEquations
from mbsfmu.divide_and_conquer.binary_tree import GROUND, BinaryTree, Link
from mbsfmu.tracing.tape.recorded_program import Program, program_of
from mbsfmu.tracing.tape.recording import Recorder

Pools = dict[int, list[tuple[int, ...]]]


def replay(bodies: int, links: list[Link], *, ground_first: bool = False) -> list[int]:
    """Follow the handles, by the names of their bodies, through all levels; return how often each row is eliminated.

    Nothing is taken from the tree but positions: that the handles are those of the joints' bodies is checked here.
    """
    tree = BinaryTree(bodies, links, ground_first=ground_first)
    alone = {0, len(tree.levels) - 1} if ground_first else {tree.joined}
    ends = {row: link.ends for link in links for row in link.rows}
    pools: Pools = {1: [(body,) for body in range(bodies)]}
    eliminated: Counter[int] = Counter()
    for number, level in enumerate(tree.levels):
        made: Pools = {}
        taken: list[tuple[int, int]] = []
        for group in level.groups:
            members = len(group.parts[0][1])
            for member in range(members):
                parts = [pools[count][positions[member]] for count, positions in group.parts]
                taken += [(count, int(positions[member])) for count, positions in group.parts]
                assert all(len(part) == count for part, (count, _) in zip(parts, group.parts, strict=True))
                handles = [body for part in parts for body in part]
                assert len(parts) == 2 or number in alone, "only the ground's level has groups of one"
                for order, elimination in enumerate(group.eliminations):
                    slots = elimination.ends
                    acted = tuple(GROUND if slot is None else handles[slot] for slot in slots)
                    for row in elimination.rows[member]:
                        assert ends[row] == acted
                        eliminated[int(row)] += 1
                        assert GROUND not in acted or len(parts) == 1
                        assert GROUND not in acted or number == (0 if ground_first else tree.joined)
                    assert elimination.closes_loop == (order > 0)
                made.setdefault(len(group.kept), []).append(tuple(handles[slot] for slot in group.kept))
        for count, positions in level.carried.items():
            taken += [(count, int(position)) for position in positions]
            made.setdefault(count, []).extend(pools[count][position] for position in positions)
        everything = [(count, position) for count, pool in pools.items() for position in range(len(pool))]
        assert sorted(taken) == sorted(everything), "each subassembly goes on, once"
        pools = made
    assert set(pools) == {0}, "no handle is left"
    return [eliminated[row] for row in ends]


@pytest.mark.parametrize("closed", [False, True])
def test_levels_and_handles_of_chains(closed: bool) -> None:
    """⌈log₂ n⌉ levels, and two handles at most: also where the last body is joined to the ground."""
    for bodies in range(1, 301):
        tree = BinaryTree(bodies, chain(bodies, closed=closed))
        assert tree.joined == ceil(log2(bodies))
        assert len(tree.levels) == tree.joined + 1
        handles = [len(group.kept) for level in tree.levels for group in level.groups]
        handles += [count for level in tree.levels for count in level.carried]
        assert max(handles) <= 2


@pytest.mark.parametrize("ground_first", [False, True])
@pytest.mark.parametrize("bodies", [1, 2, 3, 7, 16, 33])
def test_plan_of_chains(bodies: int, ground_first: bool) -> None:
    assert replay(bodies, chain(bodies), ground_first=ground_first) == [1] * 5 * bodies
    assert replay(bodies, chain(bodies, closed=True), ground_first=ground_first) == [1] * 5 * (bodies + 1)


@pytest.mark.parametrize("bodies", [2, 3, 8])
def test_ground_first_leaves_fewer_handles(bodies: int) -> None:
    """The outer bodies of a closed chain have one joint left then, instead of two; levels are as many."""
    early, late = (BinaryTree(bodies, chain(bodies, closed=True), ground_first=each) for each in (True, False))
    assert early.joined == late.joined
    assert len(early.levels) == len(late.levels)
    assert [group.kept for group in early.levels[-1].groups] == [()], "joined at once, none is left"
    assert [len(group.kept) for group in late.levels[-2].groups] == [2]


def test_chain_is_halved_in_batches() -> None:
    """Sixteen links: eight, four, two joints at once, then one, then the ground's."""
    tree = BinaryTree(16, chain(16))
    assert [[len(group.parts[0][1]) for group in level.groups] for level in tree.levels[-2:]] == [[1], [1]]
    joined = [sum(len(group.parts[0][1]) for group in level.groups) for level in tree.levels]
    assert joined == [8, 4, 2, 1, 1]


def net(rungs: int) -> tuple[int, list[Link]]:
    """Two hanging strings of bodies, and rungs that hang on one of them and are pinned to the other."""
    ends = []
    for number in range(rungs):
        one, other, rung = (3 * number + each for each in range(3))
        ends += [(one - 3, one), (other - 3, other), (one, rung)] if number else [(-1, one), (-1, other), (one, rung)]
    ends += [(3 * number + 2, 3 * number + 1) for number in range(rungs)]
    return 3 * rungs, [Link(pair, (row,)) for row, pair in enumerate(ends)]


def most_handles(tree: BinaryTree) -> int:
    """How many handles two parts that are joined have at most."""
    return max(sum(count for count, _ in group.parts) for level in tree.levels for group in level.groups)


@pytest.mark.parametrize("rungs", [8, 42, 200])
def test_strings_are_joined_across_their_rungs(rungs: int) -> None:
    """What is cut out of a net hangs on it by two bodies above and two below, however large it is."""
    tree = BinaryTree(*net(rungs))
    assert most_handles(tree) <= 8
    kinds = {
        (tuple(count for count, _ in group.parts), group.kept, tuple(each.ends for each in group.eliminations))
        for level in tree.levels
        for group in level.groups
    }
    assert len(kinds) <= 13
    assert tree.joined <= log2(3 * rungs) + 3
    assert set(replay(*net(rungs))) == {1}


def test_branches_are_joined_from_their_tips() -> None:
    """Of a tree whose bodies have two branches each: what is joined hangs on few bodies, in 2 log₂ n levels at most."""
    bodies = 255
    tree = BinaryTree(bodies, [Link(((body - 1) // 2 if body else GROUND, body), (body,)) for body in range(bodies)])
    assert most_handles(tree) <= 5
    assert tree.joined <= 2 * log2(bodies + 1)


@settings(max_examples=150)
@given(graphs(), st.booleans())
def test_each_row_is_eliminated_once(graph: tuple[int, list[Link]], ground_first: bool) -> None:
    """For branched trees with loops, joints of any number of equations and several between the same bodies."""
    assert set(replay(*graph, ground_first=ground_first)) <= {1}


@settings(max_examples=50)
@given(st.integers(1, 200), st.integers(0, 2**32))
def test_levels_of_branched_trees(bodies: int, seed: int) -> None:
    """Every level joins at least a pair, and no fewer levels than halving takes suffice."""
    random = np.random.default_rng(seed)
    links = [Link((int(random.integers(-1, body)) if body else GROUND, body), (body,)) for body in range(bodies)]
    roots = sum(link.ends[0] == GROUND for link in links)
    tree = BinaryTree(bodies, links)
    assert ceil(log2(bodies / roots)) <= tree.joined <= bodies - roots


def lattice(cells: int) -> tuple[int, list[Link]]:
    """Bars of square cells, as many across as deep, that hang from the ground: a joint for each bar that meets another.

    The first bar that comes to a node carries all others there.
    """
    owner = dict.fromkeys(((column, 0) for column in range(cells + 1)), GROUND)
    tree: list[Link] = []
    loops: list[Link] = []
    for row in range(1, cells + 1):
        for column in range(cells + 1):
            bars = [((column, row - 1), (column, row)), ((column - 1, row), (column, row))]
            for start, end in bars[: 1 + (column > 0)]:
                body = len(tree)
                tree.append(Link((owner[start], body), (body,)))
                if end in owner:
                    loops.append(Link((owner[end], body), (1000 + len(loops),)))
                owner.setdefault(end, body)
    return len(tree), [*tree, *loops]


def recorded(cells: int) -> Program:
    """The accelerations of a lattice's bodies, with nothing known of their inertias, and a wrench for each joint."""
    bodies, links = lattice(cells)
    rows = [replace(link, rows=(row,)) for row, link in enumerate(links)]
    recorder = Recorder()
    inverse, wrenches = recorder.new(36 * bodies), recorder.new(12 * len(rows))
    free, bias = recorder.new(6 * bodies), recorder.new(len(rows))
    assembly = DivideAndConquer(BinaryTree(bodies, rows))
    given = [cast("Any", each) for each in (inverse.reshape(bodies, 6, 6), wrenches.reshape(2, len(rows), 6))]
    factors = assembly.factorize(given[0], LevelEquations(given[1]))
    moved, _ = factors.solve(cast("Any", free.reshape(bodies, 6)), cast("Any", bias))
    offered = {"inverse": inverse, "wrenches": wrenches, "free": free, "bias": bias}
    return program_of("assembly", recorder, offered, [moved])


def test_wider_lattices_have_more_calls_and_no_longer_code() -> None:
    """Eliminations of groups with many handles are calls of the same small kernels."""
    narrow, wide = (recorded(cells) for cells in (8, 12))
    used = [{loop.kernel for loop in each.schedule.loops} for each in (narrow, wide)]
    lengths = [[each.kernels[kernel].cost for kernel in own] for each, own in zip((narrow, wide), used, strict=True)]
    assert wide.operations > 3.0 * narrow.operations
    assert max(lengths[1]) == max(lengths[0])
    assert sum(lengths[1]) < 1.02 * sum(lengths[0])
