"""Trees of joints of all kinds against Pinocchio, which shares no code with ours."""

from __future__ import annotations

import numpy as np
import pytest
from spatial import KINDS, in_motion, random_tree

import mbsfmu
from mbsfmu.initialization.initialization import accelerations
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import LoopsInUse
from mbsfmu.tracing.workspace import Floats

pytest.importorskip("pinocchio")
from pinocchio_engine import PinocchioTree

SEEDS = range(16)


def same(ours: Floats, theirs: Floats) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.max(np.abs(theirs), initial=0.0))


def moving(seed: int) -> tuple[SystemFunctions, PinocchioTree]:
    """A tree in motion, and the same in Pinocchio; with odd seeds references are no identity."""
    mechanism = random_tree(seed)
    functions = in_motion(mechanism, np.random.default_rng(seed + 100), turned=seed % 2 == 1)
    return functions, PinocchioTree(mechanism, functions.references)


def test_trees_have_every_kind_of_joint_both_ways_round() -> None:
    joints = [joint for seed in SEEDS for joint in random_tree(seed).topology.tree]
    for way in (True, False):
        assert {type(joint.joint) for joint in joints if joint.reversed is way} == set(KINDS)
    parents = [[joint.parent for joint in random_tree(seed).topology.tree] for seed in SEEDS]
    assert any(len(set(each)) < len(each) for each in parents), "no tree branches"


@pytest.mark.parametrize("seed", SEEDS)
def test_accelerations(seed: int) -> None:
    """Of the semirecursive equations and of divide and conquer, against the articulated-body algorithm."""
    functions, pinocchio = moving(seed)
    theirs = pinocchio.accelerations(functions.coordinates, functions.velocities)
    same(accelerations(functions)[0], theirs)
    same(functions.system.forward_dynamics(functions.numeric_instant(), LoopsInUse(()), 0.0)[0], theirs)


@pytest.mark.parametrize("seed", SEEDS)
def test_momenta_and_velocities(seed: int) -> None:
    """Momenta from velocities and velocities from momenta, against the composite-rigid-body mass matrix."""
    functions, pinocchio = moving(seed)
    system, mass = functions.system, pinocchio.mass(functions.coordinates)
    same(system.initial_momenta(functions.numeric_instant()), mass @ functions.velocities)
    functions.momenta[:] = np.random.default_rng(seed).normal(size=functions.momenta.shape)
    velocities, impulses = system.impulsive_velocities(functions.numeric_instant(), LoopsInUse(()), 0.0)
    same(velocities, np.linalg.solve(mass, functions.momenta))
    assert impulses.shape == (0,)


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_of_momenta(seed: int) -> None:
    """ṗ = ∂(T − V)/∂z, the energies being those that are written out, differentiated exactly."""
    functions, _ = moving(seed)
    names = [variable.name for variable in functions.system.outputs]
    kinetic, potential = (
        functions.expressions.outputs[names.index(f"energy.{kind}")] for kind in ("kinetic", "potential")
    )
    slope = functions.traced("slope", [functions.expressions.derivative(kinetic - potential, "coordinates").T])
    same(functions.system.momentum_rates(functions.numeric_instant(), LoopsInUse(())), slope()[0])


@pytest.mark.parametrize("seed", range(3))
def test_accelerations_of_a_long_chain(seed: int) -> None:
    mechanism = mbsfmu.models.pendulum(16).systems["mechanism"]
    functions = in_motion(mechanism, np.random.default_rng(seed))
    theirs = PinocchioTree(mechanism).accelerations(functions.coordinates, functions.velocities)
    ours, _ = functions.system.forward_dynamics(functions.numeric_instant(), LoopsInUse(()), 0.0)
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-10 * np.max(np.abs(theirs)))
