"""Implicit steps of fences, whose rails both begin on the ground: all loops reach down to it, and cost is linear."""

from __future__ import annotations

from math import atan2, cos, hypot, sin

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody
from mbsfmu.formulations.first_order import FirstOrderFormulation
from mbsfmu.formulations.recorded_steps import outermost_of
from mbsfmu.model import along
from mbsfmu.simulation.simulation import Simulation

GRAVITY, MASS, INERTIA = 9.81, 1.0, 0.1  # of each bar, about its middle
Floats = NDArray[np.float64]


class Fence:
    """Two rails of bars that are hinged to each other, and posts between them; each cell is a loop."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        top = [np.array([0.6 * i, 0.2 * sin(0.9 * i)]) for i in range(cells + 1)]
        low = [np.array([0.6 * i + 0.1, -0.7 + 0.1 * cos(0.7 * i)]) for i in range(cells + 1)]
        self.ends: list[tuple[Floats, Floats]] = []  # of the bars: top rail, post and low rail of each cell
        for i in range(cells):
            self.ends += [(top[i], top[i + 1]), (top[i + 1], low[i + 1]), (low[i], low[i + 1])]

    def angles(self) -> Floats:
        return np.array([atan2(*(end - start)[::-1]) for start, end in self.ends])

    def lengths(self) -> Floats:
        return np.array([hypot(*(end - start)) for start, end in self.ends])

    def model(self) -> CoupledModel:
        def hinge(bar: int, parent: int) -> Revolute:
            place = f"bar_{parent}.end" if parent >= 0 else f"ground.{'low' if bar == 2 else 'top'}"
            angle = angles[bar] - (angles[parent] if parent >= 0 else 0.0)
            return Revolute(name=f"hinge_{bar}", parent=place, child=f"bar_{bar}.origin", angle=angle)

        angles, joints = self.angles().tolist(), list[Revolute]()
        for rail in range(0, 3 * self.cells, 3):
            joints += [hinge(rail, rail - 3), hinge(rail + 1, rail), hinge(rail + 2, rail - 1)]
            joints.append(
                Revolute(name=f"pin_{rail}", parent=f"bar_{rail + 2}.end", child=f"bar_{rail + 1}.end", cut=True)
            )
        bodies = tuple(
            RigidBody(
                name=f"bar_{bar}", mass=MASS, inertia=(INERTIA,) * 3, centre=along(0.5), length=length,
                points={"end": along(1.0)},
            )
            for bar, length in enumerate(self.lengths().tolist())
        )  # fmt: skip
        ground = {name: (*map(float, self.ends[bar][0]), 0.0) for name, bar in (("top", 0), ("low", 2))}
        mechanism = Mechanism(ground=ground, bodies=bodies, joints=tuple(joints))
        return CoupledModel(name="fence", systems={"mechanism": mechanism})

    def simulation(self, formulation: str, step: float = 1e-3, *, compiled: bool = False) -> Simulation:
        options = {"formulation": formulation, "solver": "trapezoidal", "step": step, "code": "loops"}
        return self.model().simulation(compiled=compiled, **options)

    def pins(self) -> list[tuple[tuple[int, float], tuple[int, float]]]:
        """Which end (−0.5 or 0.5 of its length from its middle) of which bar is on which of another, −1 the ground."""
        found = []
        for rail in range(0, 3 * self.cells, 3):
            found += [((rail, -0.5), (rail - 3 if rail else -1, 0.5)), ((rail + 1, -0.5), (rail, 0.5))]
            found += [((rail + 2, -0.5), (rail - 1, 0.5)), ((rail + 2, 0.5), (rail + 1, 0.5))]
        return found

    def angles_at(self, time: float) -> Floats:
        """Absolute angles some time after rest, from M a + Jᵀ λ = Q and J a = γ in coordinates of the middles."""
        bars, lengths = 3 * self.cells, self.lengths()
        force = np.tile([0.0, -MASS * GRAVITY, 0.0], bars)
        inverse = np.tile([1.0 / MASS, 1.0 / MASS, 1.0 / INERTIA], bars)

        def flow(_: float, state: Floats) -> Floats:
            angles, rates = state[2 : 3 * bars : 3], state[3 * bars + 2 :: 3]
            jacobian, right = np.zeros((2 * len(self.pins()), 3 * bars)), np.zeros(2 * len(self.pins()))
            for row, ends in enumerate(self.pins()):
                for sign, (bar, share) in zip((1.0, -1.0), ends, strict=True):
                    if bar >= 0:
                        arm = sign * share * lengths[bar] * np.array([cos(angles[bar]), sin(angles[bar])])
                        jacobian[2 * row : 2 * row + 2, 3 * bar : 3 * bar + 2] = sign * np.eye(2)
                        jacobian[2 * row : 2 * row + 2, 3 * bar + 2] = -arm[1], arm[0]
                        right[2 * row : 2 * row + 2] += arm * rates[bar] ** 2
            soft = (jacobian * inverse) @ jacobian.T
            pushing = np.linalg.solve(soft, right - jacobian @ (inverse * force))
            return np.concatenate([state[3 * bars :], inverse * (force + jacobian.T @ pushing)])

        middles = [0.5 * (start + end) for start, end in self.ends]
        start = np.concatenate([[*place, angle] for place, angle in zip(middles, self.angles(), strict=True)])
        begin = np.concatenate([start, np.zeros(3 * bars)])
        found = solve_ivp(flow, (0.0, time), begin, method="DOP853", rtol=1e-10, atol=1e-11)
        return np.asarray(found.y[2 : 3 * bars : 3, -1])


def first_order(simulation: Simulation) -> FirstOrderFormulation:
    formulation = simulation.formulation
    assert isinstance(formulation, FirstOrderFormulation)
    return formulation


def test_cost_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBSFMU_COMPILED", "0")
    solutions = [first_order(Fence(cells).simulation("dca")).recorded.implicit for cells in (16, 19, 22)]
    for few, some, many in zip(*solutions, strict=True):
        assert many.operations - some.operations == pytest.approx(some.operations - few.operations, rel=0.05)


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
def test_solutions_are_those_of_the_dense_jacobian(formulation: str) -> None:
    """The iteration matrix by the changes that calls have along each unit vector, which nothing is eliminated for."""
    made, size = Fence(16).simulation(formulation), 0.01
    made.initialize()
    owner, random = first_order(made), np.random.default_rng(5)
    problem = owner.problem(made.run_loop.present, size)
    unknowns = problem.guess + 1e-3 * random.normal(size=problem.guess.shape)
    problem.residual(unknowns)
    inverse = problem.inverse()
    assert inverse is not None
    owner.functions.values("step")[0] = 0.5 * size  # a rate changes by 2/h with its value
    matrix = np.zeros((len(unknowns), len(unknowns)))
    for column, unit in enumerate(np.eye(len(unknowns))):
        owner.functions.write("right", unit)
        matrix[:, column] = owner.recorded.left()[0]
    right = np.abs(matrix).max(axis=1) * random.normal(size=len(unknowns))
    expected = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(inverse.times(right), expected, atol=1e-10 * np.max(np.abs(expected)))


def test_motion_is_that_of_bodies_in_the_plane() -> None:
    fence, time = Fence(16), 0.1
    expected = fence.angles_at(time)
    found = []
    for step in (4e-3, 2e-3):
        result = fence.simulation("dca", step, compiled=True).run(stop=time)
        relative = np.array([result[f"bar_{bar}.angle"][-1] for bar in range(3 * fence.cells)])
        absolute = np.zeros(3 * fence.cells)
        for bar, angle in enumerate(relative):
            parent = bar - 1 if bar % 3 == 1 else bar - 3
            absolute[bar] = angle + (absolute[parent] if parent >= 0 else 0.0)
        found.append(absolute)
    errors = [np.max(np.abs(each - expected)) for each in found]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)
    np.testing.assert_allclose((4.0 * found[1] - found[0]) / 3.0, expected, atol=1e-6)


def rope(turns: list[float]) -> Simulation:
    """A rope of bars with such angles between them, on the ground at both ends."""
    headings = np.cumsum(turns)
    far = (float(np.sum(np.cos(headings))), float(np.sum(np.sin(headings))), 0.0)
    places = ["ground.near", *(f"bar_{index}.end" for index in range(len(turns)))]
    joints = [
        Revolute(name=f"hinge_{index}", parent=places[index], child=f"bar_{index}.origin", angle=turn)
        for index, turn in enumerate(turns)
    ]
    joints.append(Revolute(name="end", parent="ground.far", child=places[-1], cut=True))
    bodies = tuple(
        RigidBody(
            name=f"bar_{index}",
            mass=MASS,
            inertia=(INERTIA,) * 3,
            centre=along(0.5),
            length=1.0,
            points={"end": along(1.0)},
        )
        for index in range(len(turns))
    )
    ground = {"near": (0.0, 0.0, 0.0), "far": far}
    mechanism = Mechanism(ground=ground, bodies=bodies, joints=tuple(joints))
    model = CoupledModel(name="rope", systems={"mechanism": mechanism})
    return model.simulation(formulation="dca", solver="trapezoidal", step=1e-3, code="loops", compiled=False)


@pytest.mark.parametrize(
    ("turns", "outermost"),
    [
        ([0.9, -0.4, -0.3, -0.3, -0.3, -0.3, -0.3, -0.2], [5, 6, 7]),
        (
            [0.9, -0.4, -0.5, -0.3, 0.1, 0.0, 0.0, 0.0],
            [2, 3, 4, 5, 6, 7],
        ),  # bars in line do not move their end along it
        ([0.5, -1.2], [0, 1]),
    ],
)
def test_multipliers_wait_for_what_moves_them_all(turns: list[float], outermost: list[int]) -> None:
    made = rope(turns)
    made.initialize()
    every = [list(range(len(turns)))] * 2
    assert outermost_of(made.functions, every, list(range(1, 1 + len(turns)))) == [outermost] * 2
