"""Trees that float without gravity keep their momentum, which Pinocchio tells."""

from __future__ import annotations

import numpy as np
import pytest
from spatial import random_tree

from mbsfmu import CoupledModel, Mechanism
from mbsfmu.parts import Free
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats

pytest.importorskip("pinocchio")
from pinocchio_engine import PinocchioTree


def floating_tree(seed: int) -> Mechanism:
    """A random tree whose first body floats."""
    tree = random_tree(seed)
    root = Free(name="joint_0", parent="ground.O", child="body_0.here")
    return Mechanism(gravity=(0.0, 0.0, 0.0), ground=tree.ground, bodies=tree.bodies, joints=(root, *tree.joints[1:]))


def momentum(mechanism: Mechanism, simulation: Simulation) -> Floats:
    state = simulation.run_loop.state
    assert state is not None
    return PinocchioTree(mechanism, state.references).momentum(state.coordinates, state.velocities)


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
@pytest.mark.parametrize("seed", [1, 5])
def test_momentum_and_energy(formulation: str, seed: int) -> None:
    """Joints of many kinds, references that move on the way."""
    mechanism = floating_tree(seed)
    options = {"solver": "rk45", "relative_tolerance": 1e-9, "absolute_tolerance": 1e-9, "step": 1.0}
    model = CoupledModel(name="tree", systems={"mechanism": mechanism})
    simulation = model.simulation(formulation=formulation, **options)
    random = np.random.default_rng(seed)
    for variable in simulation.variables:
        if "velocity_start" in variable.name:
            simulation.set(variable.name, random.normal())
    simulation.initialize()
    references = simulation.run_loop.state.references
    momenta = [momentum(mechanism, simulation)]
    for index in range(5):
        simulation.step(0.4 * index, 0.4)
        momenta.append(momentum(mechanism, simulation))
    scale = np.linalg.norm(momenta[0])
    np.testing.assert_allclose(momenta, [momenta[0]] * 6, rtol=0.0, atol=1e-6 * scale)
    assert abs(simulation.get("energy.drift")) < 1e-6 * simulation.get("energy.start")
    assert not np.array_equal(simulation.run_loop.state.references, references), "no reference has moved"
