"""Divide and conquer in loops against the semirecursive equations and exact derivatives of the energies."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from coupled_trees import coupled_tree
from spatial import assembled
from spatial_loops import LOOPS, loop_of

import mbsfmu
from mbsfmu import Mechanism, RigidBody
from mbsfmu.formulations.first_order import elimination_error
from mbsfmu.formulations.formulation import least_reactions
from mbsfmu.initialization.initialization import accelerations
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import LoopsInUse
from mbsfmu.tracing.workspace import Floats

CASES = [f"{name}, cut {cut}" for name, joints in LOOPS.items() for cut in range(len(joints))]
PLANAR = ["four-bar", "quick-return", "loop-8", "double-loop-8"]
RELATED = "coupled tree"


def in_motion(case: str) -> SystemFunctions:
    if case == RELATED:
        return assembled(coupled_tree(), np.random.default_rng(1))
    if case in PLANAR:
        model = mbsfmu.models.built_in(case)
    else:
        name, _, cut = case.partition(", cut ")
        model = loop_of(name, int(cut))
    functions = assembled(model.systems["mechanism"], np.random.default_rng(1))
    assert len(functions.rows)
    return functions


def same(ours: Floats, theirs: Floats) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9 * np.max(np.abs(theirs)))


@pytest.mark.parametrize("case", [*CASES, *PLANAR, RELATED])
def test_accelerations_and_multipliers(case: str) -> None:
    functions = in_motion(case)
    expected, multipliers, _ = accelerations(functions)
    assert np.max(np.abs(multipliers)) > 0.1
    ours = functions.system.forward_dynamics(functions.numeric_instant(), LoopsInUse(functions.rows), 0.0)
    same(ours[0], expected)
    same(ours[1], multipliers)


def unequal(case: str, ratio: float) -> SystemFunctions:
    """Functions of a loop of bodies that weigh a ratio times as much and as little as otherwise, in turn."""
    name, _, cut = case.partition(", cut ")
    mechanism, bodies = loop_of(name, int(cut)).systems["mechanism"], []
    assert isinstance(mechanism, Mechanism)
    for number, body in enumerate(mechanism.bodies):
        assert isinstance(body, RigidBody)
        factor = ratio if number % 2 else 1.0 / ratio
        moments = {
            "inertia": tuple(factor * each for each in body.inertia),
            "products_of_inertia": tuple(factor * each for each in body.products_of_inertia),
        }
        bodies.append(body.model_copy(update={"mass": factor * body.mass, **moments}))
    return assembled(mechanism.model_copy(update={"bodies": tuple(bodies)}), np.random.default_rng(1))


@pytest.mark.parametrize("case", ["R-S-U-R, cut 1", "R-R-U-E, cut 3"])
def test_solutions_for_unequal_bodies_are_refined(case: str) -> None:
    """Masses of 1e4 and 1e-4 kg take eight digits from an assembly, which are found again."""
    functions = unequal(case, 1e4)
    assert functions.weak
    assert not in_motion(case).weak
    expected, multipliers, _ = accelerations(functions)
    loops, instant = LoopsInUse(functions.rows, refined=functions.weak), functions.numeric_instant()
    ours = functions.system.forward_dynamics(instant, loops, 0.0)
    same(ours[0], expected)
    same(ours[1], multipliers)
    functions.momenta[:] = functions.system.initial_momenta(functions.numeric_instant())
    same(functions.system.impulsive_velocities(functions.numeric_instant(), loops, 0.0)[0], functions.velocities)


def test_errors_that_refinement_leaves_are_known() -> None:
    functions = unequal("R-U-U-C, cut 0", 1e4)
    expected, multipliers, _ = accelerations(functions)
    functions.accelerations[:], functions.multipliers[:] = expected, multipliers
    exact = least_reactions(functions).copy()
    assert elimination_error(functions, 0.0) < 1e-12
    loops = LoopsInUse(functions.rows, refined=functions.weak)
    found = functions.system.forward_dynamics(functions.numeric_instant(), loops, 0.0)
    functions.accelerations[:], functions.multipliers[:] = found
    error = np.max(np.abs(least_reactions(functions) - exact)) / np.max(np.abs(exact))
    assert error > 1e-3
    np.testing.assert_allclose(elimination_error(functions, 0.0), error, rtol=1e-6)


@pytest.mark.parametrize("case", ["R-S-U-R, cut 1", "R-U-U-C, cut 3", "R-R-U-E, cut 3", "loop-8", RELATED])
def test_stabilisation_is_baumgartes(case: str) -> None:
    """Off the constraints, accelerations satisfy Φ̈ + 2 a Φ̇ + a² Φ = 0, all by exact derivatives; without a only Φ̈."""
    functions = in_motion(case)
    random = np.random.default_rng(2)
    functions.coordinates += 1e-2 * random.normal(size=functions.coordinates.shape)
    functions.velocities += 1e-2 * random.normal(size=functions.velocities.shape)
    given = functions.expressions
    closing = functions.traced("closing", [given.closure, given.closure_rate, given.closure_acceleration])
    instant = functions.numeric_instant()
    left = []
    for rate in (0.0, 20.0):
        functions.accelerations[:], _ = functions.system.forward_dynamics(instant, LoopsInUse(functions.rows), rate)
        value, first, second = (each.copy() for each in closing())
        left.append(
            np.max(np.abs(second + 2.0 * rate * first + rate**2 * value)) / np.max(np.abs(functions.accelerations))
        )
    assert np.max(np.abs(value)) > 1e-3
    assert max(left) < 1e-9


@pytest.mark.parametrize("case", [*CASES, *PLANAR, RELATED])
def test_velocities_impulses_and_rates_of_momenta(case: str) -> None:
    """M ż − Φ_zᵀ σ = p, Φ_z ż = 0, and ṗ = ∂(T − V)/∂z + Q − Φ̇_zᵀ σ with any impulses σ, by exact derivatives.

    The load Q of the actuators is the derivative of their power by ż.
    """
    functions = in_motion(case)
    system, given = functions.system, functions.expressions
    functions.momenta[:] = system.initial_momenta(functions.numeric_instant())
    velocities, impulses = system.impulsive_velocities(functions.numeric_instant(), LoopsInUse(functions.rows), 0.0)
    same(velocities, functions.velocities)
    assert np.max(np.abs(impulses)) < 1e-9 * np.max(np.abs(functions.momenta))
    functions.momenta[:] = np.random.default_rng(3).normal(size=functions.momenta.shape)
    functions.velocities[:], functions.multipliers[:] = system.impulsive_velocities(
        functions.numeric_instant(), LoopsInUse(functions.rows), 0.0
    )
    mass = functions.equilibrium()[0]
    jacobian = functions.closure()[1]
    same(mass @ functions.velocities - jacobian.T @ functions.multipliers, functions.momenta)
    assert np.max(np.abs(jacobian @ functions.velocities)) < 1e-9 * np.max(np.abs(functions.velocities))
    names = [variable.name for variable in system.outputs]
    lagrangian = given.outputs[names.index("energy.kinetic")] - given.outputs[names.index("energy.potential")]
    power = given.integral_rates[0]
    by_inputs = given.derivative(power, "velocities").T
    turning = given.derivative(ca.dot(given.multipliers, given.closure_rate), "coordinates").T
    slope = functions.traced("slope", [given.derivative(lagrangian, "coordinates").T + by_inputs - turning])
    rates = system.momentum_rates(
        functions.numeric_instant(), LoopsInUse(functions.rows, multipliers=functions.multipliers)
    )
    same(rates, slope()[0])
