"""Bodies without inertia about an axis, about which they turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from spatial import assembled

from mbsfmu import CoupledModel, Vector
from mbsfmu.divide_and_conquer.articulation import excess_directions
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.model import Beam, Mechanism, Point, RigidBody
from mbsfmu.parts import Fixed, JointDrive, Revolute, Spherical, Universal
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import LoopsInUse

INERTIA, TORQUE = 1e-5, 1e-3
"""Of a rotor on a shaft, which has none about its axis, 2e5 times as much across it, and a drive."""


def driven(*, loop: bool, rotor: float = INERTIA, axial_inertia: float = 0.0) -> SystemFunctions:
    """A shaft about its own axis with a welded rotor, and a link or a four-bar of links on the ground."""
    joints = [
        Revolute(name="bearing", parent="ground.O", child="shaft.start", axis=(1.0, 0.0, 0.0)),
        Fixed(name="weld", parent="shaft.end", child="rotor.origin"),
        Revolute(name="A", parent="ground.A", child="crank.start", angle=0.3),
    ]
    bodies = [
        Beam(name="shaft", length=2.0, mass=20.0, axial_inertia=axial_inertia),
        RigidBody(name="rotor", mass=0.1, inertia=(rotor, rotor, rotor)),
        Beam(name="crank", length=1.0, mass=1.0),
    ]
    if loop:
        joints += [
            Revolute(name="B", parent="crank.end", child="coupler.start", angle=-1.2),
            Revolute(name="C", parent="coupler.end", child="rocker.start", angle=-1.2),
            Revolute(name="D", parent="rocker.end", child="ground.D", cut=True),
        ]
        bodies += [Beam(name=name, length=1.0, mass=1.0) for name in ("coupler", "rocker")]
    mechanism = Mechanism(
        gravity=(0.0, -9.81, 0.0),
        ground={"O": (0.0, 0.0, 0.0), "A": (0.0, 1.0, 0.0), "D": (0.9, 1.0, 0.0)},
        bodies=tuple(bodies),
        joints=tuple(joints),
        forces=(JointDrive(name="drive", joint="bearing"),),
    )
    functions = assembled(mechanism, np.random.default_rng(1))
    functions.velocities[:] = 0.0
    functions.inputs[:] = TORQUE
    return functions


@pytest.mark.parametrize(
    ("loop", "one_by_one"), [(False, True), (False, False), (True, False)], ids=["tree", "balanced", "loop"]
)
def test_only_the_rotor_resists_the_drive(*, loop: bool, one_by_one: bool) -> None:
    """The angle is τ t² / (2 J), with the J of the rotor alone."""
    functions = driven(loop=loop)
    in_use = LoopsInUse(functions.rows, sequential=one_by_one)
    bearing = [each.name for each in functions.system.coordinates].index("shaft.angle")
    found = functions.system.forward_dynamics(functions.numeric_instant(), in_use, 0.0)[0]
    np.testing.assert_allclose(found[bearing], TORQUE / INERTIA, rtol=1e-9)
    momenta = np.zeros(len(found))
    momenta[bearing] = TORQUE
    pushed = replace(functions.numeric_instant(), momenta=momenta)
    found = functions.system.impulsive_velocities(pushed, in_use, 0.0)[0]
    np.testing.assert_allclose(found[bearing], TORQUE / INERTIA, rtol=1e-9)


def test_a_loop_holds_what_nothing_holds_without_it() -> None:
    """A rod on a ball joint, kept from turning about its axis by a universal joint that closes a loop.

    The open tree, whose energy restarts momenta, has the excess inertia there, and is finite with it alone.
    """
    mechanism = Mechanism(
        ground={"A": (0.0, 0.0, 0.0), "B": (1.0, 0.5, 0.0)},
        bodies=(
            RigidBody(name="crank", mass=1.0, inertia=(0.1, 0.1, 0.1), points={"end": (0.0, 0.2, 0.1)}),
            Beam(name="rod", length=1.0, mass=2.0),
            RigidBody(name="rocker", mass=1.0, inertia=(0.1, 0.1, 0.1), points={"end": (0.0, -0.3, 0.2)}),
        ),
        joints=(
            Revolute(name="A", parent="ground.A", child="crank.origin"),
            Spherical(name="ball", parent="crank.end", child="rod.start"),
            Revolute(name="B", parent="ground.B", child="rocker.origin", axis=(0.3, 0.2, 1.0)),
            Universal(name="cross", parent="rocker.end", child="rod.end", cut=True),
        ),
    )
    functions = assembled(mechanism, np.random.default_rng(1))
    system = functions.system
    assert isinstance(system, MechanismSystem)
    functions.momenta[:] = system.initial_momenta(functions.numeric_instant())
    held = system.impulsive_velocities(functions.numeric_instant(), LoopsInUse(functions.rows), 0.0)[0]
    np.testing.assert_allclose(held, functions.velocities, rtol=1e-8)
    for one_by_one in (True, False):
        opened = LoopsInUse((), sequential=one_by_one, opened=True)
        velocities = system.impulsive_velocities(functions.numeric_instant(), opened, 0.0)[0]
        energies = [functions.momenta @ each for each in (velocities, functions.velocities)]
        np.testing.assert_allclose(*energies, rtol=1e-5)


def test_links_that_turn_across_their_axes_need_no_further_equation() -> None:
    system = driven(loop=True).system
    assert isinstance(system, MechanismSystem)
    hollow = excess_directions(system.parts.kinematics.joints, system.parts.masses)
    assert [system.parts.masses[body].body.name for body in hollow] == ["shaft"]


def test_a_hair_of_an_inertia_is_refined() -> None:
    """A shaft with 1e-12 kg m² about its axis, and a rotor of 1 kg m²: the assembly has 11 digits less."""
    functions = driven(loop=True, rotor=1.0, axial_inertia=1e-12)
    assert functions.weak
    in_use = LoopsInUse(functions.rows, refined=functions.weak)
    bearing = [each.name for each in functions.system.coordinates].index("shaft.angle")
    found = functions.system.forward_dynamics(functions.numeric_instant(), in_use, 0.0)[0]
    np.testing.assert_allclose(found[bearing], TORQUE, rtol=1e-11)
    assert not driven(loop=True, rotor=1e-5, axial_inertia=1e-6).weak


@pytest.mark.parametrize(("axis", "refined"), [((0.0, 0.0, 1.0), False), ((1.0, 0.0, 0.0), True)])
def test_only_rods_that_turn_about_their_axes_are_light_about_them(axis: Vector, *, refined: bool) -> None:
    """Hung at a point beside its axis, a rod in a plane has no inertias that are very unequal."""
    rod = Beam(name="rod", length=1.0, mass=2.0, points={"eye": Point(along=0.5, position=(0.0, 0.4, 0.0))})
    hinge = Revolute(name="hinge", parent="ground.O", child="rod.eye", axis=axis)
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(rod,), joints=(hinge,))
    assert Initialization(MechanismSystem(mechanism)).loops.weak is refined


@pytest.mark.parametrize("loop", [False, True], ids=["tree", "loop"])
def test_absolute_coordinates_take_it_away_too(*, loop: bool) -> None:
    """Of all that turns about the axis 0.4 is excess inertia: α = τ / J of the rotor alone."""
    system = driven(loop=loop).system
    assert isinstance(system, MechanismSystem)
    model = CoupledModel(name="driven", systems={"mechanism": system.mechanism})
    simulation = model.simulation(formulation="dca-alm")
    simulation.set("drive.torque", TORQUE)
    simulation.initialize()
    np.testing.assert_allclose(simulation.get("shaft.angular_acceleration"), TORQUE / INERTIA, rtol=1e-9)
    turned = simulation.run(0.01)["shaft.angle"][-1]
    np.testing.assert_allclose(turned, 0.5 * TORQUE / INERTIA * 0.01**2, rtol=1e-9)
