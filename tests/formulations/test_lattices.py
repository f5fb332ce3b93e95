"""Lattices of bars, whose cells are loops beside and below each other, against equations of bodies in the plane."""

from __future__ import annotations

from math import atan2

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import null_space

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody
from mbsfmu.formulations.first_order import FirstOrderFormulation
from mbsfmu.model import along
from mbsfmu.native.traced_code import program_code

GRAVITY, MASS, INERTIA, LEANING, UNEVEN = 9.81, 1.0, 0.1, 0.3, 0.1
"""Without unevenness opposite bars stay parallel, and nothing of velocities is in accelerations of loops."""
Node = tuple[int, int]
Floats = NDArray[np.float64]


class Lattice:
    """Bars along the sides of leaning, uneven cells, hinged at the nodes; the topmost nodes are on the ground."""

    def __init__(self, across: int, deep: int) -> None:
        self.bars: list[tuple[Node, Node]] = []
        for row in range(1, deep + 1):
            for column in range(across + 1):
                self.bars.append(((column, row - 1), (column, row)))
                if column:
                    self.bars.append(((column - 1, row), (column, row)))
        self._top = [(column, 0) for column in range(across + 1)]

    def place(self, node: Node) -> Floats:
        column, row = node
        bent = UNEVEN * np.array([np.sin(2.0 * column + 3.0 * row), np.cos(column + 2.0 * row)])
        return np.array([column + np.sin(LEANING) * row, -np.cos(LEANING) * row]) + bent

    def angle(self, bar: int) -> float:
        x, y = self.place(self.bars[bar][1]) - self.place(self.bars[bar][0])
        return atan2(y, x)

    def pins(self) -> list[tuple[int, int, Node, bool]]:
        """Pairs of hinged bars, the first one there (−1 for the ground) first; the node; whether a loop is closed."""
        owner, found = dict.fromkeys(self._top, -1), []
        for bar, (start, end) in enumerate(self.bars):
            found.append((owner[start], bar, start, False))
            if end in owner:
                found.append((owner[end], bar, end, True))
            owner.setdefault(end, bar)
        return found

    def model(self) -> CoupledModel:
        def point(bar: int, node: Node) -> str:
            if bar < 0:
                return f"ground.top_{node[0]}"
            return f"bar_{bar}.origin" if self.bars[bar][0] == node else f"bar_{bar}.end"

        joints = [
            Revolute(
                name=f"{'closing' if cut else 'joint'}_{bar}", parent=point(parent, node), child=point(bar, node),
                angle=0.0 if cut else self.angle(bar) - (self.angle(parent) if parent >= 0 else 0.0), cut=cut,
            )
            for parent, bar, node, cut in self.pins()
        ]  # fmt: skip
        bodies = tuple(
            RigidBody(
                name=f"bar_{bar}", mass=MASS, inertia=(INERTIA, INERTIA, INERTIA), centre=along(0.5),
                length=float(np.linalg.norm(self.place(self.bars[bar][1]) - self.place(self.bars[bar][0]))),
                points={"end": along(1.0)},
            )
            for bar in range(len(self.bars))
        )  # fmt: skip
        ground = {f"top_{column}": (*self.place((column, 0)), 0.0) for column, _ in self._top}
        mechanism = Mechanism(ground=ground, bodies=bodies, joints=tuple(joints))
        return CoupledModel(name="lattice", systems={"mechanism": mechanism})

    def motion(self) -> tuple[Floats, Floats]:
        """Angular velocities and accelerations of the bars in some motion, from M a + Jᵀ λ = Q and J a = γ."""
        count, pins = len(self.bars), self.pins()
        rows, arms = np.zeros((2 * len(pins), 3 * count)), np.zeros((2 * len(pins), count))
        for number, (parent, bar, node, _) in enumerate(pins):
            for body, sign in ((parent, -1.0), (bar, 1.0)):
                if body >= 0:
                    arm = self.place(node) - 0.5 * sum(map(self.place, self.bars[body]))
                    at, own = slice(2 * number, 2 * number + 2), 3 * body
                    rows[at, own : own + 2] = sign * np.eye(2)
                    rows[at, own + 2] = sign * np.array([-arm[1], arm[0]])
                    arms[at, body] = sign * arm
        free = null_space(rows)
        velocities = free @ np.random.default_rng(3).normal(size=free.shape[1])
        masses = np.diag(np.tile([MASS, MASS, INERTIA], count))
        loads = np.tile([0.0, -MASS * GRAVITY, 0.0], count)
        matrix = np.block([[masses, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
        turning = velocities[2::3]
        solution = np.linalg.solve(matrix, np.concatenate([loads, arms @ turning**2]))
        return turning, solution[: 3 * count][2::3]


@pytest.mark.parametrize(("formulation", "cells"), [("dca", 2), ("hdca", 2), ("dca", 6)])
def test_accelerations_are_those_of_bodies_in_the_plane(formulation: str, cells: int) -> None:
    """Six cells across make groups of many handles, which are eliminated block by block."""
    lattice = Lattice(cells, cells)
    turning, expected = lattice.motion()
    options = {"formulation": formulation, "solver": "rk45", "code": "loops", "stabilisation": 0.0}
    simulation = lattice.model().simulation(compiled=False, **options)
    simulation.initialize()
    chosen = simulation.formulation
    assert isinstance(chosen, FirstOrderFormulation)
    functions = chosen.functions
    order = [int(each.name.split(".")[0].split("_")[1]) for each in functions.system.coordinates]
    parents = {bar: parent for parent, bar, _, cut in lattice.pins() if not cut}
    functions.velocities[:] = [turning[bar] - (turning[parents[bar]] if parents[bar] >= 0 else 0.0) for bar in order]
    if chosen.moving == "momenta":
        chosen.initial_momenta()
    chosen.motion()
    relative = dict(zip(order, functions.accelerations.tolist(), strict=True))
    found: list[float] = []
    for bar in range(len(lattice.bars)):
        found.append(relative[bar] + (found[parents[bar]] if parents[bar] >= 0 else 0.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.max(np.abs(expected)))


def test_functions_share_the_code_of_kernels_that_are_called_once() -> None:
    """Wherever their numbers lie: what a unit's second function adds to its first is little."""
    options = {"formulation": "dca", "solver": "rk45", "code": "loops"}
    formulation = Lattice(3, 3).model().simulation(compiled=False, **options).formulation
    assert isinstance(formulation, FirstOrderFormulation)
    helpers: dict[str, str] = {}
    program_code(formulation.explicit, helpers)
    first = set(helpers)
    program_code(formulation.motion, helpers)
    added = sum(len(text) for name, text in helpers.items() if name not in first)
    assert added < 0.1 * sum(len(helpers[name]) for name in first)
