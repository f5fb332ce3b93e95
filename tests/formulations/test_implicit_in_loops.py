"""Implicit steps in loops: what is solved along the tree is what dense matrices say, at a cost that is linear."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rings import ring
from scipy.linalg import expm
from spatial import random_tree

import mbsfmu
from mbsfmu import CoupledModel, LinearSignal, Mechanism
from mbsfmu.formulations.first_order import FirstOrderFormulation
from mbsfmu.parts import AppliedForce, JointSpringDamper, SpringDamper
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.systems.system import Code

CRANE = Path(__file__).parents[2] / "examples" / "crane.py"
STEP = 1e-3
LONG = 0.03  # a step at which iteration matrices are far from those without forces and loops

Floats = NDArray[np.float64]


def crane() -> CoupledModel:
    """A tree with a cylinder, whose pressures are stiff states."""
    model: CoupledModel = runpy.run_path(str(CRANE))["crane"]()
    return model


def tree() -> CoupledModel:
    """A tree of joints of all kinds, with springs between bodies that are far from each other."""
    mechanism = random_tree(3, bodies=4)
    springs = [
        SpringDamper(
            name=f"spring_{one}", start=f"body_{one}.next", end=f"body_{other}.here", stiffness=30.0, damping=2.0
        )
        for one, other in ((1, 3), (0, 2))
    ]
    return CoupledModel(name="tree", systems={"mechanism": mechanism.model_copy(update={"forces": tuple(springs)})})


def linked(links: int, stiffness: float, damping: float) -> CoupledModel:
    """A pendulum of many links with a spring and a damper in each joint."""
    mechanism = mbsfmu.models.pendulum(links).systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    springs = [
        JointSpringDamper(name=f"spring_{joint.name}", joint=joint.name, stiffness=stiffness, damping=damping)
        for joint in mechanism.joints
    ]
    return CoupledModel(name="linked", systems={"mechanism": mechanism.model_copy(update={"forces": tuple(springs)})})


def simulation(
    model: CoupledModel, formulation: str, code: Code, *, compiled: bool = True, **options: Any
) -> Simulation:
    given = {"solver": "trapezoidal", "step": STEP, **options}
    return model.simulation(formulation=formulation, code=code, compiled=compiled, **given)


@pytest.mark.parametrize(
    ("model", "formulation", "rule"),
    [
        (tree, "dca", "trapezoidal"),
        (crane, "dca", "trapezoidal"),
        (crane, "hdca", "trapezoidal"),
        (lambda: linked(5, 1e5, 10.0), "hdca", "bdf2"),
        (lambda: mbsfmu.models.ladder(3), "dca", "trapezoidal"),
        (lambda: ring(7), "dca", "trapezoidal"),
        (lambda: ring(7), "hdca", "trapezoidal"),
        (lambda: mbsfmu.models.built_in("bennett"), "dca", "trapezoidal"),
        (lambda: mbsfmu.models.built_in("bennett"), "hdca", "trapezoidal"),
    ],
    ids=[
        "tree",
        "crane",
        "crane of momenta",
        "chain",
        "ladder",
        "ring",
        "ring of momenta",
        "redundant",
        "redundant momenta",
    ],
)
def test_solutions_are_those_of_the_dense_jacobian(
    model: Callable[[], CoupledModel], formulation: str, rule: str
) -> None:
    random = np.random.default_rng(3)
    problems = []
    for code in Code:
        made = simulation(model(), formulation, code, compiled=False, solver=rule, stabilisation=3.0)
        made.initialize()
        problems.append(made.formulation.problem(made.run_loop.present, LONG))
    straight, loops = problems
    unknowns = straight.guess + 1e-3 * random.normal(size=straight.guess.shape)
    expected = straight.residual(unknowns).copy()
    np.testing.assert_allclose(loops.residual(unknowns), expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))
    matrix, inverse = straight.jacobian(), loops.inverse()
    assert inverse is not None
    scale = np.maximum(np.abs(matrix).max(axis=1), 1.0)
    for _ in range(3):
        right = scale * random.normal(size=len(scale))
        solved = inverse.times(right)
        np.testing.assert_allclose(
            solved, np.linalg.solve(matrix, right), rtol=1e-7, atol=1e-10 * np.max(np.abs(solved))
        )


def pushed() -> CoupledModel:
    """A chain with a force on its end that rises, and dampers whose loss is an integral."""
    mechanism = linked(4, 5.0, 0.5).systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    force = AppliedForce(name="push", point=f"{mechanism.bodies[-1].name}.end")
    given = mechanism.model_copy(update={"forces": (*mechanism.forces, force)})
    signals = {"mechanism.push.force.y": LinearSignal(times=(0.0, 0.1), values=(0.0, 20.0))}
    return CoupledModel(name="pushed", systems={"mechanism": given}, signals=signals)


def braked() -> CoupledModel:
    """A closed chain with dampers, whose loss is an integral."""
    mechanism = ring(5).systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    dampers = [
        JointSpringDamper(name=f"damper_{each}", joint=f"joint_{each}", stiffness=4.0, damping=3.0) for each in (0, 2)
    ]
    return CoupledModel(name="braked", systems={"mechanism": mechanism.model_copy(update={"forces": tuple(dampers)})})


@pytest.mark.parametrize(
    ("model", "formulation", "solver"),
    [
        (braked, "hdca", "rodas5p"),
        (pushed, "dca", "generalized-alpha"),
        (pushed, "hdca", "trapezoidal"),
        (pushed, "hdca", "rodas4"),
        (crane, "dca", "rodas5p"),
        (lambda: mbsfmu.models.ladder(2), "hdca", "trapezoidal"),
        (lambda: mbsfmu.models.built_in("bennett"), "dca", "rodas5p"),
    ],
)
def test_runs_are_those_of_straight_code(model: Callable[[], CoupledModel], formulation: str, solver: str) -> None:
    tolerances = {"relative_tolerance": 1e-7, "absolute_tolerance": 1e-7} if solver.startswith("rodas") else {}
    runs = [simulation(model(), formulation, code, solver=solver, **tolerances).run(stop=0.2) for code in Code]
    for name in runs[0]:
        np.testing.assert_allclose(
            runs[1][name], runs[0][name], rtol=1e-7, atol=1e-7 * np.max(np.abs(runs[0][name])) + 1e-8
        )


def test_small_pivots_are_seen() -> None:
    """Of links that stand up there is a step at which the pivot of the last one vanishes: M / h² less its weight."""
    made = simulation(mbsfmu.models.pendulum(2), "dca", Code.LOOPS, compiled=False, solver="rodas5p")
    made.set("link_1.angle_start", np.pi / 2)
    made.initialize()
    formulation = made.formulation
    assert isinstance(formulation, FirstOrderFormulation)
    form = formulation.explicit_form(made.run_loop.present)
    form.rates(form.start, made.functions.inputs.copy())
    stages = form.stages()

    def last(share: float) -> float:
        assert stages.factorize(share)
        return float(formulation.recorded.stages.factors()[0][0])

    low, high = 0.05, 5.0
    assert last(low) * last(high) < 0.0
    for _ in range(44):  # a pivot that is zero to the last bit is another matter
        middle = 0.5 * (low + high)
        low, high = (middle, high) if last(middle) * last(low) > 0.0 else (low, middle)
    right = np.array([0.3, -0.2, 1.0, 0.7, *np.zeros(len(form.start) - 4)])
    for share, solved in ((1e-3, True), (low, False)):
        stages.factorize(share)
        missing = stages.missing(right, stages.solve(right))
        assert missing is not None
        assert bool(np.max(np.abs(missing)) < 1e-9) is solved


def test_halved_steps_are_four_times_as_exact() -> None:
    exact = simulation(pushed(), "dca", Code.LOOPS, solver="rk45", relative_tolerance=1e-11, absolute_tolerance=1e-11)
    expected = exact.run(stop=0.2)["link_3.angle"][-1]
    errors = [
        abs(simulation(pushed(), "dca", Code.LOOPS, step=step).run(stop=0.2)["link_3.angle"][-1] - expected)
        for step in (4e-3, 2e-3)
    ]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)


def linear_chain(links: int, stiffness: float, damping: float) -> tuple[Floats, Floats, Floats]:
    """Matrices M, C and K of a hanging chain of such links for small angles against the vertical."""
    gravity, sides = 9.81, np.eye(links) - np.eye(links, k=-1)  # relative angles from absolute ones
    centres = np.tril(np.ones((links, links)), -1) + 0.5 * np.eye(links)
    mass = centres.T @ centres + np.eye(links)
    weight = gravity * np.diag(links - np.arange(links) - 0.5)
    return mass, damping * sides.T @ sides, stiffness * sides.T @ sides + weight


@pytest.mark.parametrize("solver", ["trapezoidal", "bdf2"])
def test_a_stiff_chain_follows_its_linear_equations(solver: str) -> None:
    """M δz̈ + C δż + K δz = 0 decays at rates of up to 1e6 1/s, which steps of 2 ms pass over."""
    links, amount, stiffness, damping, step = 12, 1e-4, 2e3, 2e4, 2e-3
    model = linked(links, stiffness, damping)
    mechanism = model.systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    angles = [amount - np.pi / 2, *[0.0] * (links - 1)]
    down = [each.model_copy(update={"angle": angle}) for each, angle in zip(mechanism.joints, angles, strict=True)]
    forces = [mechanism.forces[0].model_copy(update={"free_coordinate": -np.pi / 2}), *mechanism.forces[1:]]
    hanging = mechanism.model_copy(update={"joints": tuple(down), "forces": tuple(forces)})
    chain = CoupledModel(name="hanging", systems={"mechanism": hanging})
    made = simulation(chain, "dca", Code.LOOPS, solver=solver, step=step)
    result = made.run(stop=0.4)
    mass, dampers, springs = linear_chain(links, stiffness, damping)
    none = np.zeros_like(mass)
    flow = np.block([[none, np.eye(links)], [-np.linalg.solve(mass, springs), -np.linalg.solve(mass, dampers)]])
    assert step * np.max(np.abs(np.linalg.eigvals(flow))) > 100.0
    start = np.concatenate([np.full(links, amount), np.zeros(links)])
    expected = np.array([(expm(flow * time) @ start)[:links] for time in result.time[::20]]).T
    found = np.cumsum([result[f"link_{index + 1}.angle"][::20] for index in range(links)], axis=0) + np.pi / 2
    np.testing.assert_allclose(found, expected, atol=2e-3 * amount)


@pytest.mark.parametrize(
    ("model", "formulation", "sizes"),
    [
        (mbsfmu.models.pendulum, "dca", (12, 24, 48)),
        (mbsfmu.models.ladder, "hdca", (4, 8, 16)),
        (ring, "hdca", (12, 24, 48)),  # equations of its loop have all coordinates in them
    ],
)
def test_cost_is_linear(model: Callable[[int], CoupledModel], formulation: str, sizes: tuple[int, ...]) -> None:
    functions = {}
    for size in sizes:
        made = simulation(model(size), formulation, Code.LOOPS, compiled=False).formulation
        assert isinstance(made, FirstOrderFormulation)
        recorded = made.recorded
        functions[size] = [*recorded.implicit, recorded.residual, *recorded.stages]
    for few, some, many in zip(*functions.values(), strict=True):
        assert many.operations - some.operations == pytest.approx(2 * (some.operations - few.operations), rel=0.05)
        assert many.program.schedule.size <= 2.2 * some.program.schedule.size
        kernels = [len({loop.kernel for loop in each.program.schedule.loops}) for each in (some, many)]
        assert kernels[1] <= kernels[0] + 6  # of a balanced assembly there are some more
