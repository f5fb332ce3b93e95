"""Mechanisms in absolute coordinates against joint coordinates, and their assembly against dense solutions."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import null_space
from spatial import Random, in_motion, random_tree
from spatial_loops import LOOPS, loop_of

import mbsfmu
from mbsfmu.divide_and_conquer.articulation import in_coordinates
from mbsfmu.formulations.projection import Projection, TracedProjection
from mbsfmu.initialization.initialization import accelerations
from mbsfmu.model import Mechanism, RigidBody
from mbsfmu.parts import Revolute
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.absolute_system import AbsoluteSystem
from mbsfmu.systems.system import starts

SEEDS = range(4)


def absolute(joint_functions: SystemFunctions, mechanism: Mechanism) -> SystemFunctions:
    """The same motion in absolute coordinates; integrals are the joint angles, full turns and all."""
    functions = SystemFunctions(AbsoluteSystem(mechanism))
    functions.parameters[:] = joint_functions.parameters
    functions.inputs[:] = joint_functions.inputs
    functions.place(joint_functions.coordinates, joint_functions.velocities)
    values = named(joint_functions)
    for index, variable in enumerate(functions.system.integrals):
        if variable.name.endswith("_integral"):
            functions.integrals[index] = values[variable.name.removesuffix("_integral")]
    return functions


def named(functions: SystemFunctions) -> dict[str, float]:
    """Everything that can be read, by name."""
    system = functions.system
    groups = (
        (system.coordinates, functions.coordinates),
        (system.velocities, functions.velocities),
        (system.accelerations, functions.accelerations),
        (system.outputs, functions.outputs()[0]),
        (system.reactions, functions.reactions()[0]),
    )
    return {v.name: float(value) for group, values in groups for v, value in zip(group, values, strict=True)}


def same(found: dict[str, float], expected: dict[str, float], tolerance: float) -> None:
    """Compare what both have; quaternions mean the same with the other sign."""
    common = [name for name in expected if name in found]
    assert common
    for name in common:
        scale = max(1.0, abs(expected[name]))
        sign = -1.0 if "quaternion" in name and found[name] * expected[name] < 0 else 1.0
        assert sign * found[name] == pytest.approx(expected[name], abs=tolerance * scale), name


@pytest.mark.parametrize("seed", SEEDS)
def test_places_and_measures_random_trees(seed: int) -> None:
    mechanism = random_tree(seed, bodies=6)
    joints = in_motion(mechanism, np.random.default_rng(seed))
    bodies = absolute(joints, mechanism)
    assert np.max(np.abs(bodies.closure()[0]), initial=0.0) < 1e-12
    violation = bodies.traced("rates_of_closure", [bodies.expressions.closure_rate])()[0]
    assert np.max(np.abs(violation), initial=0.0) < 1e-11
    lifted = bodies.system.closure_jacobian(bodies.expressions._instant)
    (along,) = bodies.traced("closure_by_wrenches", [ca.SX(lifted)], matrices=[0])()
    np.testing.assert_allclose(along, bodies.closure()[1], atol=1e-11)
    measured, expected = named(bodies), named(joints)
    constrained = [n for n in expected if "acceleration" not in n and ".force" not in n and ".moment" not in n]
    same(measured, {name: expected[name] for name in constrained}, 1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_accelerations_and_reactions_of_random_trees(seed: int) -> None:
    mechanism = random_tree(seed, bodies=6)
    joints = in_motion(mechanism, np.random.default_rng(seed))
    joints.accelerations[:] = accelerations(joints)[0]
    bodies = absolute(joints, mechanism)
    projection = Projection(bodies)
    projection.factorize()
    projection.accelerate()
    scale = 1.0 + np.max(np.abs(joints.reactions()[0]), initial=0.0)
    same(named(bodies), named(joints), 1e-9 * scale)


def random_states(functions: SystemFunctions, random: Random) -> None:
    """Positions off the constraints, any velocities."""
    functions.coordinates += 0.1 * random.normal(size=functions.coordinates.shape)
    functions.velocities += random.normal(size=functions.velocities.shape)


@pytest.mark.parametrize("name", ["five-bar", "R-S-weld-U-R"])
@pytest.mark.parametrize("penalty", [1e2, 1e6])
def test_correction_is_the_dense_solution(name: str, penalty: float) -> None:
    """M Δq + Φ_qᵀ Δλ = 0 with Δλ = α (Φ_q Δq + violation), off the constraints, whatever the rank."""
    model = loop_of(name, 2) if name in LOOPS else mbsfmu.models.built_in(name)
    mechanism = model.systems["mechanism"]
    functions = SystemFunctions(AbsoluteSystem(mechanism))
    functions.parameters[:] = starts(functions.system.parameters)
    start = functions.system.start_system.initial_coordinates(functions.parameters)
    functions.place(*start)
    random = np.random.default_rng(5)
    random_states(functions, random)
    projection = Projection(functions, penalty)
    projection.factorize()
    violation = functions._memory["violation"]
    violation[:] = random.normal(size=len(violation))
    increments, multipliers = (part.copy() for part in projection.calls.correction())
    mass = functions.equilibrium()[0]
    jacobian = functions.closure()[1]
    masses = [functions.parameters[i] for i, v in enumerate(functions.system.parameters) if v.name.endswith(".mass")]
    alpha = penalty * np.mean(masses)
    matrix = np.block([[mass, jacobian.T], [-jacobian, np.eye(len(violation)) / alpha]])
    expected = np.linalg.solve(matrix, np.concatenate([np.zeros(len(mass)), violation]))
    tolerance = 1e-9 if penalty < 1e4 else 1e-5
    for found, wanted in zip((increments, multipliers), np.split(expected, [len(mass)]), strict=True):
        np.testing.assert_allclose(found, wanted, atol=tolerance * np.max(np.abs(wanted)))


@pytest.mark.parametrize("name", ["five-bar", "R-S-weld-U-R", "R-R-U-E"])
def test_joints_push_as_their_equations_turn(name: str) -> None:
    """Φ_qᵀ λ by the joints' forces on bodies, off the constraints, against the derivative of Φ."""
    model = loop_of(name, 2) if name in LOOPS else mbsfmu.models.built_in(name)
    functions = SystemFunctions(AbsoluteSystem(model.systems["mechanism"]))
    functions.parameters[:] = starts(functions.system.parameters)
    functions.place(*functions.system.start_system.initial_coordinates(functions.parameters))
    random = np.random.default_rng(8)
    random_states(functions, random)
    functions.accelerations[:] = random.normal(size=functions.accelerations.shape)
    functions.multipliers[:] = random.normal(size=functions.multipliers.shape)
    given = functions.expressions
    found, residual = functions.traced("balances", [given.constrained_residual, given.residual])()
    expected = residual + functions.closure()[1].T @ functions.multipliers
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.max(np.abs(expected)))


def test_free_bodies_move_as_inertia_and_loads_say() -> None:
    """M q̈ = Q without constraints, where q̈ follows from the accelerations of the bodies."""
    mechanism = random_tree(3, bodies=5)
    functions = absolute(in_motion(mechanism, np.random.default_rng(2)), mechanism)
    random_states(functions, np.random.default_rng(4))
    mass, rest, _, _ = functions.equilibrium()
    moved = functions.traced("free", [functions.expressions.free_accelerations])()[0].reshape(-1, 6)
    system = functions.system
    assert isinstance(system, AbsoluteSystem)
    turns = system.bodies._turns(system.motion(functions.numeric_instant()).placed)
    found = in_coordinates(turns, moved)
    np.testing.assert_allclose(mass @ found, -rest, atol=1e-10 * np.max(np.abs(rest)))


@pytest.mark.parametrize("name", ["five-bar", "double-pentagon"])
def test_multipliers_have_least_norm(name: str) -> None:
    """They have no part that leaves all bodies alone, of which there are three dimensions a loop."""
    simulation = mbsfmu.models.built_in(name).simulation(formulation="dca-alm", compiled=False)
    simulation.set("link_2.angular_velocity_start", 1.0)
    simulation.initialize()
    functions = simulation.functions
    idle = null_space(functions.closure()[1].T, rcond=1e-9)
    assert idle.shape[1] == (3 if name == "five-bar" else 6)
    assert np.linalg.norm(functions.multipliers) > 1.0
    np.testing.assert_allclose(idle.T @ functions.multipliers, 0.0, atol=1e-9)


def test_doubled_hinges_share_the_load() -> None:
    """A bar on two hinges of the same axis, one on each side at the same distance: each carries half of its weight."""
    bar = RigidBody(name="bar", mass=2.0, inertia=(0.1, 0.2, 0.2), points={"a": (-1, 0, 0.3), "b": (-1, 0, -0.3)})
    hinges = (
        Revolute(name="A", parent="ground.A", child="bar.a", angle=-0.5 * np.pi),
        Revolute(name="B", parent="ground.B", child="bar.b", cut=True),
    )
    mechanism = Mechanism(ground={"A": (0, 0, 0.3), "B": (0, 0, -0.3)}, bodies=(bar,), joints=hinges)
    model = mbsfmu.CoupledModel(name="door", systems={"mechanism": mechanism})
    simulation = model.simulation(formulation="dca-alm", compiled=False)
    simulation.initialize()
    for hinge in "AB":
        assert simulation.get(f"{hinge}.force.y") == pytest.approx(9.81, rel=1e-9)
        # What redundant equations share follows to round-off times the penalty factor.
        assert simulation.get(f"{hinge}.force.z") == pytest.approx(0.0, abs=1e-8)


def test_numbers_leave_out_constants() -> None:
    """A planar mechanism's wrenches along the axes are constants: these are not computed anew."""
    functions = SystemFunctions(AbsoluteSystem(mbsfmu.models.built_in("five-bar").systems["mechanism"]))
    numbers = functions.expressions.corrections(1e6).numbers()
    calls = Projection(functions).calls
    assert isinstance(calls, TracedProjection)
    assert calls.size == calls._varying.numel() < 0.8 * numbers.size
    assert not any(isinstance(each, ca.SX) and each.is_constant() for each in ca.vertsplit(calls._varying))
