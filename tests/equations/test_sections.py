"""Sections of trees: what hangs together, with two handles at most, and weighs as much as the others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from spatial import random_tree as random_spatial_tree

import mbsfmu
from mbsfmu.equations.kinematics import GROUND, Piece, sections
from mbsfmu.model import Mechanism
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import Code
from mbsfmu.tracing.tape.memory_layout import Phase, layout
from mbsfmu.tracing.tape.recorded_program import Program
from mbsfmu.tracing.workspace import Floats, RecordedFunction


def chain(bodies: int) -> list[int]:
    return list(range(-1, bodies - 1))


def binary(bodies: int) -> list[int]:
    return [(body - 1) // 2 if body else GROUND for body in range(bodies)]


def random_tree(bodies: int, seed: int) -> list[int]:
    random = np.random.default_rng(seed)
    return [GROUND, *(int(random.integers(max(0, body - 6), body)) for body in range(1, bodies))]


TREES = {
    "chain": chain(1000),
    "binary": binary(1023),
    "random": random_tree(900, 1),
    "forest": [GROUND, 0, 1, GROUND, 3, 3, GROUND],
    "star": [GROUND, *[0] * 50],
    "body": [GROUND],
    "none": [],
}


@pytest.mark.parametrize("count", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("name", TREES)
def test_pieces_hang_together_and_on_one_body(name: str, count: int) -> None:
    parents = TREES[name]
    pieces = sections(parents, count)
    assert sorted(body for piece in pieces for body in piece.bodies) == list(range(len(parents)))
    seen: set[int] = {GROUND}
    for piece in pieces if count > 1 else ():
        assert piece.parent == parents[piece.bodies[0]]
        assert piece.parent in seen
        assert 0 <= piece.section < count
        inside = set(piece.bodies)
        assert all(parents[body] in inside for body in piece.bodies[1:])
        hanging = {parents[body] for body in range(len(parents)) if body not in inside} & inside
        assert hanging == ({piece.end} if piece.end is not None else set())
        seen |= inside


def bodies_of(pieces: tuple[Piece, ...], count: int) -> list[int]:
    return [sum(len(piece.bodies) for piece in pieces if piece.section == each) for each in range(count)]


@pytest.mark.parametrize("count", [2, 3, 8, 64])
def test_a_chain_has_as_many_pieces_the_ends_being_the_longest(count: int) -> None:
    found = [len(piece.bodies) for piece in sections(chain(4096), count)]
    assert len(found) == count
    assert abs(found[0] - found[-1]) <= 2
    assert all(found[0] / each == pytest.approx(1.6, rel=0.06) for each in found[1:-1])


@pytest.mark.parametrize("name", ["binary", "random"])
def test_sections_of_branched_trees_are_alike(name: str) -> None:
    own = bodies_of(sections(TREES[name], 4), 4)
    assert max(own) < 1.4 * len(TREES[name]) / 4


# -- recorded in sections ----------------------------------------------------------------------------------------------


def pendulum(links: int) -> Mechanism:
    (mechanism,) = mbsfmu.models.pendulum(links).systems.values()
    return mechanism


def functions(mechanism: Mechanism, count: int, *, sequential: bool = True) -> SystemFunctions:
    return SystemFunctions(MechanismSystem(mechanism), code=Code.LOOPS, sequential=sequential, sections=count)


def accelerations(own: SystemFunctions) -> RecordedFunction:
    function = own.defined("dynamics", lambda given: list(given.forward_dynamics(0.0)))
    assert isinstance(function, RecordedFunction)
    return function


def in_turn(program: Program, phase: Phase) -> list[int]:
    """Operations of each section of a phase, of one after the other where they are not shared."""
    costs = [sum(each.count * program.kernels[call.kernel].cost for call in each.calls) for each in phase.stretches]
    ends = np.cumsum([0, *phase.sections]).tolist() if phase.shared and phase.sections else [0, len(costs)]
    return [sum(costs[begin:end]) for begin, end in pairwise(ends)]


@pytest.mark.parametrize(("count", "most"), [(2, 0.56), (8, 0.28)])
def test_little_is_left_one_after_the_other(count: int, most: float) -> None:
    program = accelerations(functions(pendulum(200), count)).program
    longest = sum(max(in_turn(program, phase)) for phase in layout(program).phases)
    assert longest < most * program.operations


def dependent(program: Program) -> Iterator[str]:
    """Where threads would use what another one makes meanwhile, if a phase that is shared has such places."""
    lies = layout(program)
    for number, phase in enumerate(lies.phases):
        if not phase.shared:
            continue
        section = np.repeat(np.arange(len(phase.sections)), phase.sections) if phase.sections else None
        made: dict[int, int] = {}  # by place who makes it: a section, or a call where these are cut anywhere
        taken: list[tuple[int, list[int]]] = []
        for index, stretch in enumerate(phase.stretches):
            for repetition in range(stretch.count):
                for call in stretch.calls:
                    own = len(taken) if section is None else int(section[index])
                    kernel, fields = program.kernels[call.kernel], lies.fields[call.kernel]
                    begins = [*(call.begin + repetition * call.distance)[1:], *call.listed[repetition]]
                    places = [
                        offset if field < 0 else begins[field] + offset
                        for field, offset in zip(fields.field, fields.offset, strict=True)
                    ]
                    first = int(call.begin[0] + repetition * call.distance[0])
                    taken.append((own, [int(place) for place in places]))
                    made |= dict.fromkeys(range(first, first + kernel.results), own)
        if any(made.get(place, own) != own for own, places in taken for place in places):
            yield f"phase {number} of {len(lies.phases)}"


@pytest.mark.parametrize("mechanism", [pendulum(60), random_spatial_tree(4, bodies=60)], ids=["pendulum", "tree"])
@pytest.mark.parametrize(("count", "sequential"), [(2, True), (3, True), (8, True), (1, False)])
def test_what_threads_share_does_not_depend_on_what_others_do(
    mechanism: Mechanism, count: int, sequential: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # shared as in mechanisms that are a thousand times as large
    for module in ("mbsfmu.tracing.tape.schedule", "mbsfmu.tracing.tape.memory_layout"):
        monkeypatch.setattr(f"{module}.SHARED", 30)
    program = accelerations(functions(mechanism, count, sequential=sequential)).program
    assert any(phase.shared for phase in layout(program).phases)
    assert list(dependent(program)) == []


def motion(own: SystemFunctions) -> list[Floats]:
    random = np.random.default_rng(3)
    own.parameters[:] = [variable.start for variable in own.system.parameters]
    for part in (own.coordinates, own.velocities, own.accelerations, own.momenta):
        part[:] = random.normal(size=part.shape)
    found = ("residual", "initial_momenta", "momentum_rates", "outputs", "reactions")
    return [accelerations(own)()[0]] + [
        own.defined(name, lambda given, name=name: [getattr(given, name)])()[0].copy() for name in found
    ]


def test_sections_change_nothing_but_round_off() -> None:
    for one, other in zip(motion(functions(pendulum(40), 1)), motion(functions(pendulum(40), 6)), strict=True):
        assert one.any()
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-11 * np.max(np.abs(one), initial=1.0))
