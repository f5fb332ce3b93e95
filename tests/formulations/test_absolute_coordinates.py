"""Mechanisms in absolute coordinates against joint coordinates, and their assembly against dense solutions."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from spatial import Random, in_motion, random_tree
from spatial_loops import LOOPS, loop_of

import mbsfmu
from mbsfmu.formulations.absolute_system import AbsoluteSystem
from mbsfmu.formulations.equilibrium import accelerations
from mbsfmu.formulations.functions import SystemFunctions
from mbsfmu.formulations.projection import Projection
from mbsfmu.formulations.system import starts
from mbsfmu.model import Mechanism

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
    increments, multipliers = (part.copy() for part in projection.correction())
    mass = functions.equilibrium()[0]
    jacobian = functions.closure()[1]
    masses = [functions.parameters[i] for i, v in enumerate(functions.system.parameters) if v.name.endswith(".mass")]
    alpha = penalty * np.mean(masses)
    matrix = np.block([[mass, jacobian.T], [-jacobian, np.eye(len(violation)) / alpha]])
    expected = np.linalg.solve(matrix, np.concatenate([np.zeros(len(mass)), violation]))
    tolerance = 1e-9 if penalty < 1e4 else 1e-5
    for found, wanted in zip((increments, multipliers), np.split(expected, [len(mass)]), strict=True):
        np.testing.assert_allclose(found, wanted, atol=tolerance * np.max(np.abs(wanted)))


def test_free_bodies_move_as_inertia_and_loads_say() -> None:
    """M q̈ = Q without constraints."""
    mechanism = random_tree(3, bodies=5)
    functions = absolute(in_motion(mechanism, np.random.default_rng(2)), mechanism)
    random_states(functions, np.random.default_rng(4))
    mass, rest, _, _ = functions.equilibrium()
    found = functions.traced("free", [functions.expressions.free_accelerations])()[0]
    np.testing.assert_allclose(mass @ found, -rest, atol=1e-10 * np.max(np.abs(rest)))


def test_numbers_leave_out_constants() -> None:
    """A planar mechanism's wrenches along the axes are constants: these are not computed anew."""
    functions = SystemFunctions(AbsoluteSystem(mbsfmu.models.built_in("five-bar").systems["mechanism"]))
    numbers = functions.expressions.correction_numbers(1e6)
    projection = Projection(functions)
    assert numbers.numel() == functions.system.correction_count
    assert projection._varying.numel() < 0.8 * numbers.numel()
    assert not any(isinstance(each, ca.SX) and each.is_constant() for each in ca.vertsplit(projection._varying))
