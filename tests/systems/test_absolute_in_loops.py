"""Absolute coordinates in loops: what is recorded is what is traced, at a cost that grows as the mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driven_crank import driven_crank
from spatial import random_tree

import mbsfmu
from mbsfmu import CoupledModel, InputError, Mechanism
from mbsfmu.divide_and_conquer.assembly import suitable_penalty
from mbsfmu.formulations.dca_alm import DcaAlm
from mbsfmu.formulations.formulation import Assembly
from mbsfmu.formulations.projection import Projection
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.absolute_system import AbsoluteSystem
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import Code, starts
from mbsfmu.tracing.workspace import Floats, RecordedFunction

TREE = "tree"
TOLERANCE = {"bennett": 1e-8, "driven-crank": 1e-6}
"""What redundant equations share, or contradict each other by, follows to round-off times the penalty factor."""


def mechanism_of(name: str) -> Mechanism:
    if name == TREE:
        return random_tree(1, bodies=6)
    model = driven_crank() if name == "driven-crank" else mbsfmu.models.built_in(name)
    (mechanism,) = model.systems.values()
    assert isinstance(mechanism, Mechanism)
    return mechanism


def started(mechanism: Mechanism, code: Code, *, sequential: bool = False) -> SystemFunctions:
    """Functions in absolute coordinates, where all bodies are off the constraints and move in any way.

    Redundant constraints contradict each other there, which the penalty factor multiplies: the crank is on them.
    """
    system = AbsoluteSystem(mechanism)
    functions = SystemFunctions(system, code=code, sequential=sequential)
    start = Initialization(MechanismSystem(mechanism)).run(starts(system.parameters))
    functions.parameters[:], functions.inputs[:] = start.parameters, starts(system.inputs)
    functions.place(start.coordinates, start.velocities)
    functions.write("integrals", np.zeros(len(system.integrals)))
    random = np.random.default_rng(4)
    functions.inputs[1:] = np.arange(1.0, len(system.inputs))  # of what is driven its rate, and the rate of this
    off = 0.0 if mechanism.constraints else 0.01
    for part, size in (("coordinates", off), ("velocities", 0.01)):
        functions.values(part)[:] += size * random.normal(size=functions.coordinates.shape)
    return functions


def found(functions: SystemFunctions, stabilisation: float) -> dict[str, Floats]:
    """What the iterations call, and where they lead."""
    projection = Projection(functions, stabilisation=stabilisation)
    calls, result = projection.calls, {}
    projection.factorize()
    for level, violation in calls.violations.items():
        functions.write("turning", np.arange(float(len(functions.rows))))
        violation()
        result[f"{level} violation"] = functions.values("violation").copy()
        for index, each in enumerate(calls.correction()):
            result[f"{level} correction {index}"] = each.copy()
    calls.free_motion()
    result |= {"free": functions.accelerations.copy(), "turning": functions.values("turning").copy()}
    projection.project()
    projection.accelerate()
    for part in ("coordinates", "velocities", "accelerations", "multipliers"):
        result[part] = functions.values(part).copy()
    return result | {"outputs": functions.outputs()[0].copy(), "reactions": functions.reactions()[0].copy()}


@pytest.mark.parametrize("name", [TREE, "ladder-2", "bennett", "driven-crank"])
def test_recorded_functions_are_the_traced_ones(name: str) -> None:
    mechanism = mechanism_of(name)
    expected = found(started(mechanism, Code.STRAIGHT), 2.0)
    for sequential in (False, True) if name == TREE else (False,):
        functions = started(mechanism, Code.LOOPS, sequential=sequential)
        for key, own in found(functions, 2.0).items():
            scale = np.max(np.abs(expected[key]), initial=1.0)
            tolerance = 1e-10 if key in ("coordinates", "velocities") else TOLERANCE.get(name, 1e-9)
            np.testing.assert_allclose(own, expected[key], rtol=0, atol=tolerance * scale, err_msg=key)
        assert isinstance(functions.placement, RecordedFunction)


def simulated(model: CoupledModel, **options: Any) -> dict[str, Floats]:
    given: dict[str, Any] = {"formulation": "dca-alm", "solver": "rk45", "relative_tolerance": 1e-8, **options}
    result = model.simulation(**given).run(stop=0.2, output_step=0.05)
    return {name: result[name] for name in result}


@pytest.mark.parametrize(("name", "projections"), [("pendulum-3", False), ("ladder-2", True)])
def test_runs_are_those_of_straight_code(name: str, projections: bool) -> None:
    model = mbsfmu.models.built_in(name)
    straight, loops = (simulated(model, code=code, projections=projections, compiled=False) for code in Code)
    for each in straight:
        scale = 1.0 + np.max(np.abs(straight[each]))
        np.testing.assert_allclose(loops[each], straight[each], rtol=0, atol=1e-10 * scale, err_msg=each)


def test_a_large_chain_moves_as_in_joint_coordinates() -> None:
    """Chosen by size, compiled: positions of 65 links against those of joint coordinates, which no joint can open."""
    model = mbsfmu.models.pendulum(65)
    options: dict[str, Any] = {"relative_tolerance": 1e-9, "absolute_tolerance": 1e-10}
    simulation = model.simulation(formulation="dca-alm", solver="rk45", **options)
    assert simulation.functions.in_loops
    result = simulation.run(stop=0.2, output_step=0.05)
    expected = simulated(model, formulation="dca", compiled=False, **options)
    for name, values in expected.items():
        if name.endswith((".position", ".angle", ".angular_velocity", ".force.x", ".angular_acceleration")):
            np.testing.assert_allclose(result[name], values, rtol=0, atol=1e-6 * (1.0 + np.max(np.abs(values))))
    assert np.max(result["constraint.position"]) < 1e-12
    assert np.max(result["constraint.velocity"]) < 1e-12
    assert np.max(np.abs(result["energy.drift"])) < 1e-6 * np.ptp(result["energy.potential"])
    assert simulation.statistics.iterations["acceleration"].most <= 6


def test_cost_grows_as_the_number_of_bodies() -> None:
    """What bodies add to a mechanism that has some already: at its ends they cost less than amid it."""
    for family, assembly in (("pendulum", Assembly.SEQUENTIAL), ("pendulum", Assembly.BALANCED), ("ladder", None)):
        costs = []
        for size in (4, 8, 16):
            model = mbsfmu.models.built_in(f"{family}-{size}")
            options: dict[str, Any] = {"code": Code.LOOPS, "assembly": assembly, "compiled": False}
            formulation = model.simulation(formulation="dca-alm", solver="rk45", **options).formulation
            assert isinstance(formulation, DcaAlm)
            calls = formulation.projection.in_steps
            costs.append(np.array([each.operations for each in (*calls, formulation.flow_rates)]))
        growth = np.max((costs[2] - costs[1]) / (2 * (costs[1] - costs[0])))
        assert growth < (1.01 if assembly is Assembly.SEQUENTIAL else 1.2), (family, assembly, growth)


def test_what_is_for_loops_alone_says_so() -> None:
    with pytest.raises(InputError, match="kernel loops only; the code of pendulum-2 is unrolled"):
        simulated(mbsfmu.models.pendulum(2), assembly="sequential")


def test_penalty_grows_as_the_slowest_motion_of_a_chain_needs() -> None:
    """Of equal masses in a row, one held, it is as stiff as 4 sin²(π / (4 n + 2)): α times that stays behind 64."""
    sizes = np.array([64, 128, 256, 1024])
    slowest = 4.0 * np.sin(np.pi / (4.0 * sizes + 2.0)) ** 2
    factors = np.array([suitable_penalty(6 * int(size)) for size in sizes])
    np.testing.assert_allclose(factors * slowest, factors[0] * slowest[0], rtol=0.02)
    assert [suitable_penalty(6 * size) for size in (1, 32, 64)] == [1e6] * 3  # the paper's


IMPLICIT: dict[str, Any] = {"solver": "trapezoidal", "newton_tolerance": 1e-13, "relative_tolerance": None}
"""With tolerances below what Newton's iteration leaves, iteration matrices of either form lead to the same step."""


@pytest.mark.parametrize(
    ("name", "solver", "compiled"),
    [
        ("pendulum-3", "trapezoidal", False),
        ("ladder-2", "generalized-alpha", False),
        ("bennett", "trapezoidal", True),
        ("driven-crank", "trapezoidal", False),
    ],
)
def test_implicit_steps_are_those_of_straight_code(name: str, solver: str, *, compiled: bool) -> None:
    model = driven_crank() if name == "driven-crank" else mbsfmu.models.built_in(name)
    options = {**IMPLICIT, "solver": solver, "step": 0.01, "compiled": compiled}
    straight, loops = (simulated(model, code=code, **options) for code in Code)
    for each in straight:
        scale = 1.0 + np.max(np.abs(straight[each]))
        np.testing.assert_allclose(loops[each], straight[each], rtol=0, atol=1e-8 * scale, err_msg=each)


def test_jacobians_are_those_of_unrolled_code() -> None:
    """What solves with them, where multipliers act, bodies turn and constraints are redundant."""
    model, solutions = mbsfmu.models.built_in("ladder-2"), []
    for code in Code:
        simulation = model.simulation(formulation="dca-alm", solver="trapezoidal", step=2e-3, code=code, compiled=False)
        simulation.initialize()
        problem = simulation.formulation.problem(simulation.run_loop.present, 2e-3)
        problem.residual(problem.guess)
        inverse = problem.inverse()
        assert inverse is not None
        solutions.append(inverse.times(np.cos(np.arange(float(problem.guess.size)))))
    coordinates = len(simulation.functions.coordinates)
    for part in (slice(coordinates), slice(coordinates, None)):
        scale = np.max(np.abs(solutions[0][part]))
        np.testing.assert_allclose(solutions[1][part], solutions[0][part], rtol=0, atol=1e-6 * scale)


def test_implicit_steps_are_of_order_two_and_keep_energy() -> None:
    """Beside joint coordinates, which no joint can open, with a tolerance that leaves no error."""
    model = mbsfmu.models.pendulum(4)
    tight = simulated(model, formulation="dca", relative_tolerance=1e-10, absolute_tolerance=1e-11)
    errors = []
    for step in (4e-3, 2e-3):
        result = model.simulation(formulation="dca-alm", step=step, code="loops").run(stop=0.2, output_step=0.05)
        errors.append(np.max(np.abs(result["link_4.angle"] - tight["link_4.angle"])))
        assert np.max(result["constraint.position"]) < 1e-12
    assert 3.6 < errors[0] / errors[1] < 4.4
    assert np.max(np.abs(result["energy.drift"])) < 1e-4 * np.ptp(result["energy.potential"])


def test_cost_of_implicit_steps_grows_as_the_number_of_bodies() -> None:
    for family, sizes in (("pendulum", (3, 6, 12)), ("ladder", (2, 3, 4))):
        costs = []
        for size in sizes:
            model = mbsfmu.models.built_in(f"{family}-{size}")
            formulation = model.simulation(formulation="dca-alm", code="loops", compiled=False).formulation
            assert isinstance(formulation, DcaAlm)
            steps = formulation.recorded
            costs.append(np.array([each.operations for each in (steps.residual, steps.landing, *steps.implicit)]))
        more, fewer = sizes[2] - sizes[1], sizes[1] - sizes[0]
        growth = np.max((costs[2] - costs[1]) / more / ((costs[1] - costs[0]) / fewer))
        assert growth < 1.25, (family, growth)


def test_formulations_that_are_named_take_the_options_that_are_given() -> None:
    model, options = mbsfmu.models.pendulum(2), {"formulation": "penalty", "solver": "rodas5p"}
    with pytest.raises(InputError, match=r"or the formulation dca, dca-alm, hdca$"):
        model.simulation(**options, code="loops")
    with pytest.raises(InputError, match=r"or the formulation double-step, dca, dca-alm, hdca$"):
        model.simulation(**options)
