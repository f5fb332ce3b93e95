"""Forces and moments in joints against Pinocchio, statics and Newton's second law."""

from __future__ import annotations

import numpy as np
import pytest

import mbsfmu
from mbsfmu.initialization.initialization import accelerations
from mbsfmu.parts import Free

pytest.importorskip("pinocchio")

from pinocchio_engine import PinocchioTree
from spatial import in_motion, random_tree

FORMULATIONS = ("double-step", "penalty", "dca", "hdca")


@pytest.mark.parametrize("seed", range(6))
def test_open_tree_against_pinocchio(seed: int) -> None:
    mechanism = random_tree(seed, bodies=9)
    functions = in_motion(mechanism, np.random.default_rng(seed))
    functions.accelerations[:] = accelerations(functions)[0]
    names = [variable.name for variable in functions.system.reactions]
    reactions = dict(zip(names, functions.reactions()[0], strict=True))
    engine = PinocchioTree(mechanism)
    parts = functions.coordinates, functions.velocities, functions.accelerations
    free = [joint.name for joint in mechanism.joints if isinstance(joint, Free)]
    found = {name: pair for name, pair in engine.transmitted(*parts).items() if name not in free}
    assert found
    for name, (place, wrench) in found.items():
        force, moment = ([reactions[f"{name}.{kind}.{axis}"] for axis in "xyz"] for kind in ("force", "moment"))
        scale = np.max(np.abs(wrench))
        np.testing.assert_allclose(force, wrench[:3], atol=1e-9 * scale)
        np.testing.assert_allclose(moment, wrench[3:] - np.cross(place, wrench[:3]), atol=1e-9 * scale)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_four_bar_at_rest(formulation: str) -> None:
    """The boom turns about O and rests on C, a third along it: C carries m g (l/2) / (l/3)."""
    simulation = mbsfmu.models.four_bar().simulation(formulation=formulation, compiled=False)
    simulation.initialize()
    assert simulation.get("C.force.y") == pytest.approx(-225 * 9.81 * 1.5, rel=1e-9)
    assert simulation.get("O.force.y") == pytest.approx(225 * 9.81 * -0.5, rel=1e-9)
    assert simulation.get("C.moment.z") == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_forces_on_the_whole_four_bar_move_its_centre(formulation: str) -> None:
    """Joints at O and E, the cylinder and gravity accelerate the centre of mass, which is differenced over time."""
    result = mbsfmu.models.four_bar().simulation(formulation=formulation, compiled=False).run(2.0)
    masses = {"boom": 225.0, "link": 35.0, "rocker": 50.0}
    places = {body: np.stack([result[f"{body}.centre.{axis}.position"] for axis in "xy"]) for body in masses}
    along = places["rocker"] - np.array([[0.0], [-2.0]])
    push = along / np.linalg.norm(along, axis=0) * result["cylinder.force"]
    at_o, at_e = (np.stack([result[f"{joint}.force.{axis}"] for axis in "xy"]) for joint in "OE")
    given = at_o + at_e + push - np.array([[0.0], [9.81 * sum(masses.values())]])
    first_moment = np.sum([mass * places[body] for body, mass in masses.items()], axis=0)
    moved = (first_moment[:, 2:] - 2.0 * first_moment[:, 1:-1] + first_moment[:, :-2]) / 1e-3**2
    later = slice(1400, 1990)  # the valve opens at 1 s; until its jolt has gone, differences say little
    size = np.max(np.abs(moved[:, later]))
    np.testing.assert_allclose(given[:, 1:-1][:, later], moved[:, later], atol=5e-3 * size)


def test_hinges_of_two_loops_carry_no_moment_about_their_axis() -> None:
    """Whatever force they transmit: multipliers of one loop taken for those of the other would turn bodies."""
    model = mbsfmu.models.built_in("double-pentagon")
    simulation = model.simulation(formulation="penalty", compiled=False)
    simulation.initialize()
    simulation.step(0.0, 1e-3)
    names = [joint.name for joint in model.systems["mechanism"].joints]
    forces = [simulation.get(f"{name}.force.y") for name in names]
    moments = [simulation.get(f"{name}.moment.z") for name in names]
    assert np.max(np.abs(forces)) > 1.0
    np.testing.assert_allclose(moments, 0.0, atol=1e-6 * np.max(np.abs(forces)))
