"""kernel loops: what is recorded is what equations say, and neither code nor tracing grows with the mechanism."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pinocchio")
from code_length import length_of_code
from pinocchio_engine import PinocchioTree
from spatial import in_motion, random_tree

import mbsfmu
from mbsfmu import Beam, InputError, Mechanism, Revolute
from mbsfmu.parts import Actuator, Cylindrical, JointSpringDamper, SpringDamper
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import LARGE, Code
from mbsfmu.tracing.workspace import Floats, RecordedFunction

VECTORS = ("outputs", "integral_rates", "reactions", "initial_momenta", "momentum_rates", "start")


def recorded(mechanism: Mechanism, *, sequential: bool = False) -> SystemFunctions:
    """Functions whose code is kernel loops."""
    return SystemFunctions(MechanismSystem(mechanism), code=Code.LOOPS, sequential=sequential)


def at(functions: SystemFunctions, others: SystemFunctions) -> None:
    """Write what other functions hold."""
    for part in ("coordinates", "velocities", "parameters", "references", "inputs", "momenta", "accelerations"):
        getattr(functions, part)[:] = getattr(others, part)


def accelerations(functions: SystemFunctions) -> Floats:
    return functions.defined("dynamics", lambda given: list(given.forward_dynamics(0.0)))()[0]


@pytest.mark.parametrize("seed", range(6))
def test_accelerations_of_trees_are_those_of_another_engine(seed: int) -> None:
    mechanism = random_tree(seed, bodies=30)
    given = in_motion(mechanism, np.random.default_rng(seed), turned=seed % 2 == 1)
    functions = recorded(mechanism, sequential=seed % 3 > 0)
    at(functions, given)
    expected = PinocchioTree(mechanism, given.references).accelerations(given.coordinates, given.velocities)
    np.testing.assert_allclose(accelerations(functions), expected, rtol=1e-7, atol=1e-8 * np.max(np.abs(expected)))


def loaded_tree() -> Mechanism:
    """A branched tree with a joint that slides and turns, springs, dampers and an actuator."""
    bodies = tuple(Beam(name=f"link_{index}", length=0.5 + 0.1 * index, mass=1.0 + index) for index in range(5))
    joints = [
        Revolute(name="joint_0", parent="ground.O", child="link_0.start", angle=0.3, angular_velocity=0.4),
        Revolute(name="joint_1", parent="link_0.end", child="link_1.start", axis=(0.0, 1.0, 1.0), angle=-0.7),
        Revolute(name="joint_2", parent="link_0.centre", child="link_2.end", axis=(1.0, 1.0, 0.0), angle=0.5),
        Revolute(name="joint_4", parent="link_1.end", child="link_4.start", angle=0.2, angular_velocity=-1.0),
        Cylindrical(name="joint_3", parent="link_2.start", child="link_3.start", axis=(0.0, 0.6, 0.8)),
    ]
    forces = (
        SpringDamper(name="spring", start="ground.O", end="link_4.end", stiffness=80.0, damping=3.0, free_length=0.4),
        Actuator(name="cylinder", start="link_0.start", end="link_1.centre"),
        JointSpringDamper(name="damper", joint="joint_1", stiffness=2.0, damping=0.3),
    )
    return Mechanism(ground={"O": (0.0, 0.1, 0.0)}, bodies=bodies, joints=tuple(joints), forces=forces)


@pytest.mark.parametrize("name", VECTORS)
def test_recorded_functions_are_the_traced_ones(name: str) -> None:
    mechanism = loaded_tree()
    straight = in_motion(mechanism, random := np.random.default_rng(5))
    straight.inputs[:] = 100.0
    straight.momenta[:] = random.normal(size=straight.momenta.shape)
    straight.accelerations[:] = random.normal(size=straight.accelerations.shape)
    loops = recorded(mechanism, sequential=True)
    at(loops, straight)

    def results(functions: SystemFunctions) -> list[Floats]:
        def chosen(given: object) -> list[object]:
            found = getattr(given, name)
            return list(found.values()) if isinstance(found, dict) else [found]

        return functions.defined(name, chosen)()

    for own, expected in zip(results(loops), results(straight), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-11, atol=1e-11 * np.max(np.abs(expected), initial=1.0))
    assert isinstance(loops.outputs, RecordedFunction)


def mechanism_of(model: mbsfmu.CoupledModel) -> Mechanism:
    (mechanism,) = model.systems.values()
    assert isinstance(mechanism, Mechanism)
    return mechanism


def written(links: int) -> tuple[int, int]:
    """How many kernels the motion of a chain has, and how long its C is."""
    functions = recorded(mechanism_of(mbsfmu.models.pendulum(links)))
    function = functions.defined("dynamics", lambda given: list(given.forward_dynamics(0.0)))
    assert isinstance(function, RecordedFunction)
    return len(function.program.kernels), length_of_code(function)


def test_code_hardly_grows_with_the_mechanism() -> None:
    few, short = written(32)
    many, long = written(128)
    assert many <= few + 4
    assert long < 2.0 * short


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
def test_runs_are_those_of_straight_code(formulation: str) -> None:
    model = mbsfmu.models.pendulum(6)
    runs = [
        model.simulation(formulation=formulation, solver="rk45", relative_tolerance=1e-9, code=code).run(stop=0.5)
        for code in ("straight", "loops")
    ]
    for name in runs[0]:
        np.testing.assert_allclose(runs[0][name], runs[1][name], rtol=1e-7, atol=1e-7)


def test_size_chooses_the_form() -> None:
    links = LARGE + 1
    model = mbsfmu.models.pendulum(links)
    simulation = model.simulation(formulation="dca", solver="rk45", relative_tolerance=1e-8)
    assert simulation.functions.in_loops
    result = simulation.run(stop=0.2)
    potential = result["energy.potential"]
    assert np.max(np.abs(result["energy.drift"])) < 1e-6 * np.ptp(potential)
    assert not mbsfmu.models.pendulum(8).simulation(formulation="dca", solver="rk45").functions.in_loops


def test_a_formulation_without_code_in_loops_says_so() -> None:
    with pytest.raises(InputError, match="no effect"):
        mbsfmu.models.pendulum(2).simulation(formulation="penalty", code="loops")


def test_a_system_that_has_none_says_so() -> None:
    block = mbsfmu.parts.Integrator()
    model = mbsfmu.CoupledModel(name="alone", systems={"block": block})
    with pytest.raises(InputError, match="kernel loops are for mechanisms; alone has no bodies that move"):
        model.simulation(formulation="dca", solver="rk45", code="loops")


def test_parameters_are_read_when_it_runs() -> None:
    mechanism = loaded_tree()
    functions, changed = recorded(mechanism), in_motion(mechanism, np.random.default_rng(7))
    at(functions, changed)
    before = accelerations(functions).copy()
    names = [each.name for each in functions.system.parameters]
    changed.parameters[names.index("link_4.mass")] *= 2.0
    at(functions, changed)
    expected = accelerations(changed)
    np.testing.assert_allclose(accelerations(functions), expected, rtol=0.0, atol=1e-8 * np.max(np.abs(expected)))
    assert np.max(np.abs(before - expected)) > 1e-3
