"""Users' joints whose slides turn, or whose axes are askew, in divide and conquer and in absolute coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import pytest
from spatial import GRAVITY, Random, in_motion, random_body, vector

from mbsfmu import (
    Angle,
    Array,
    BodyPoint,
    ClosureEquation,
    CoupledModel,
    Direction,
    InputError,
    Joint,
    JointElement,
    Mechanism,
    Offset,
    Relation,
    Revolute,
    gaps,
    offsets,
    tilts,
    turned_back,
    turns,
)
from mbsfmu.divide_and_conquer.articulated_bodies import across
from mbsfmu.equations.joint_coordinates import coordinate_at, measure
from mbsfmu.equations.rotation import body_velocity, perpendicular, unit
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import LoopsInUse


@dataclass(frozen=True)
class SeenFromChild(ClosureEquation):
    """An equation with parent and child exchanged."""

    unit: ClassVar[str] = "m"
    equation: ClosureEquation

    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        return self.equation.value(child, parent)

    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        return self.equation.wrenches(child, parent)[::-1]

    def wrench_rates(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        return self.equation.wrench_rates(child, parent)[::-1]


@dataclass(frozen=True)
class KeptCosine(Relation):
    """The cosine of an angle keeps its value."""

    unit: ClassVar[str] = "rad"
    measures: tuple[ClosureEquation, ...]
    cosine: float

    def relate(self, measured: tuple[Array, ...]) -> Array:
        return measured[0] - self.cosine

    def slopes(self, measured: tuple[Array, ...]) -> tuple[Array, ...]:
        return (np.asarray(1.0),)

    def slope_rates(self, measured: tuple[Array, ...], rates: tuple[Array, ...]) -> tuple[Array, ...]:
        return (np.asarray(0.0),)


def slide(axis: Direction, name: str = "") -> JointElement:
    return JointElement(slides=True, axis=axis, name=name, start=0.0, start_rate=0.0)


def hinge(axis: Direction, name: str = "") -> JointElement:
    return JointElement(slides=False, axis=axis, name=name, start=0.0, start_rate=0.0)


class OfTwoAxes(Joint, abstract=True):
    one: Direction = (1.0, 0.0, 0.0)
    two: Direction = (0.0, 0.0, 1.0)

    def askew(self, one: Direction, two: Direction) -> dict[str, ClosureEquation]:
        """An axis of the parent and one of the child keep their angle."""
        angle = Angle(((unit(one), turned_back(self.orientation) @ unit(two), 1.0),))
        return {"angle": KeptCosine((angle,), float(unit(one) @ unit(two)))}


class SlideHinge(OfTwoAxes):
    type: Literal["odd-slide-hinge"] = "odd-slide-hinge"

    @property
    def elements(self) -> tuple[JointElement, ...]:
        return slide(self.one), hinge(self.two)

    def equations(self) -> Mapping[str, ClosureEquation]:
        return {**offsets(self.one), **tilts(self.two, self.orientation)}


class HingeSlide(OfTwoAxes):
    type: Literal["odd-hinge-slide"] = "odd-hinge-slide"

    @property
    def elements(self) -> tuple[JointElement, ...]:
        return hinge(self.two), slide(self.one)

    def equations(self) -> Mapping[str, ClosureEquation]:
        back = turned_back(self.orientation)
        aside = [SeenFromChild(Offset(back @ each)) for each in perpendicular(unit(self.one))]
        return {"aside 1": aside[0], "aside 2": aside[1], **tilts(self.two, self.orientation)}


class TwoSlides(OfTwoAxes):
    type: Literal["odd-two-slides"] = "odd-two-slides"

    @property
    def elements(self) -> tuple[JointElement, ...]:
        return slide(self.one, "_1"), slide(self.two, "_2")

    def equations(self) -> Mapping[str, ClosureEquation]:
        return {"offset": Offset(unit(np.cross(self.one, self.two))), **turns(self.orientation)}


class HingeSlideHinge(OfTwoAxes):
    type: Literal["odd-hinge-slide-hinge"] = "odd-hinge-slide-hinge"

    @property
    def elements(self) -> tuple[JointElement, ...]:
        return hinge(self.two, "_1"), slide(np.cross(self.one, self.two)), hinge(self.two, "_2")

    def equations(self) -> Mapping[str, ClosureEquation]:
        return {"offset": Offset(unit(self.two)), **tilts(self.two, self.orientation)}


class TwoHinges(OfTwoAxes):
    type: Literal["odd-two-hinges"] = "odd-two-hinges"

    @property
    def elements(self) -> tuple[JointElement, ...]:
        return hinge(self.one, "_1"), hinge(self.two, "_2")

    def equations(self) -> Mapping[str, ClosureEquation]:
        return {**gaps(), **self.askew(self.one, self.two)}


class ScrewedOut(OfTwoAxes):
    """A slide between two hinges, along the first."""

    type: Literal["odd-screwed-out"] = "odd-screwed-out"

    @property
    def elements(self) -> tuple[JointElement, ...]:
        return hinge(self.one, "_1"), slide(self.one), hinge(self.two, "_2")

    def equations(self) -> Mapping[str, ClosureEquation]:
        return {**offsets(self.one), **self.askew(self.one, self.two)}


class AcrossScrewedOut(ScrewedOut):
    """The same with perpendicular axes, whose second hinge moves away from the first one's point."""

    type: Literal["odd-across-screwed-out"] = "odd-across-screwed-out"

    @property
    def elements(self) -> tuple[JointElement, ...]:
        return hinge(self.one, "_1"), slide(self.one), hinge(np.cross(self.one, self.two), "_2")

    def equations(self) -> Mapping[str, ClosureEquation]:
        return {**offsets(self.one), **self.askew(self.one, np.cross(self.one, self.two))}


class ThreeHinges(OfTwoAxes):
    type: Literal["odd-three-hinges"] = "odd-three-hinges"

    @property
    def elements(self) -> tuple[JointElement, ...]:
        return hinge(self.one, "_1"), hinge(self.two, "_2"), hinge(np.cross(self.one, self.two), "_3")

    def equations(self) -> Mapping[str, ClosureEquation]:
        return gaps()


MEASURED = (SlideHinge, HingeSlide, TwoSlides, TwoHinges, ScrewedOut, AcrossScrewedOut)
UNMEASURED = (HingeSlideHinge, ThreeHinges)


def chain(kinds: Sequence[type[OfTwoAxes]], random: Random, *, reversed_joints: bool) -> Mechanism:
    """Bodies in a row: the first one turns about the ground, the others hang on joints of the kinds, axes askew."""
    joints: list[Joint] = [Revolute(name="joint_0", parent="ground.O", child="body_0.here", axis=vector(random))]
    for body, kind in enumerate(kinds, start=1):
        ends = [f"body_{body - 1}.next", f"body_{body}.here"]
        parent, child = ends[::-1] if reversed_joints else ends
        axes = {"one": vector(random), "two": vector(random), "orientation": vector(random)}
        joints.append(kind(name=f"joint_{body}", parent=parent, child=child, **axes))  # pyright: ignore[reportCallIssue]
    bodies = tuple(random_body(random, f"body_{body}") for body in range(len(joints)))
    return Mechanism(gravity=GRAVITY, ground={"O": (0.1, 0.2, 0.3)}, bodies=bodies, joints=tuple(joints))


def moving(kinds: Sequence[type[OfTwoAxes]], *, reversed_joints: bool) -> SystemFunctions:
    random = np.random.default_rng(7)
    return in_motion(chain(kinds, random, reversed_joints=reversed_joints), random)


@pytest.mark.parametrize("reversed_joints", [False, True], ids=["outwards", "inwards"])
def test_accelerations_and_momenta_are_those_of_the_mass_matrix(*, reversed_joints: bool) -> None:
    """M z̈ = Q and M ż = p, with M of the semirecursive equations, by both kinds of assembly."""
    functions = moving((*MEASURED, *UNMEASURED), reversed_joints=reversed_joints)
    mass, rest = (each.copy() for each in functions.equilibrium()[:2])
    momenta = np.random.default_rng(3).normal(size=len(rest))
    accelerations, velocities = np.linalg.solve(mass, np.stack([-rest, momenta], axis=1)).T
    pushed = replace(functions.numeric_instant(), momenta=momenta)
    for one_by_one in (True, False):
        loops = LoopsInUse((), sequential=one_by_one)
        found = functions.system.forward_dynamics(functions.numeric_instant(), loops, 0.0)[0]
        np.testing.assert_allclose(found, accelerations, atol=1e-9 * np.max(np.abs(accelerations)))
        found = functions.system.impulsive_velocities(pushed, loops, 0.0)[0]
        np.testing.assert_allclose(found, velocities, atol=1e-9 * np.max(np.abs(velocities)))


@pytest.mark.parametrize("reversed_joints", [False, True], ids=["outwards", "inwards"])
def test_poses_determine_coordinates_and_rates(*, reversed_joints: bool) -> None:
    """What absolute coordinates measure is what joint coordinates placed."""
    functions = moving(MEASURED, reversed_joints=reversed_joints)
    system, instant = functions.system, functions.numeric_instant()
    assert isinstance(system, MechanismSystem)
    motion, joints = system.motion(instant), system.parts.kinematics.joints
    measured = measure(joints, motion.frames, instant.parameters)
    found = [measured.coordinates[index] for index in range(len(instant.coordinates))]
    np.testing.assert_allclose(found, instant.coordinates, atol=1e-12)
    rates = {}
    for body, joint in enumerate(joints):
        inner = body_velocity(motion.body_velocities, joint.parent)
        rates |= across(measured.frames, motion.body_velocities[body], inner, joint)
    np.testing.assert_allclose([rates[index] for index in range(len(rates))], instant.velocities, atol=1e-11)


def test_a_cut_joint_measures_oblique_slides() -> None:
    """A joint in the tree and its like that closes a loop have the same coordinates and rates."""
    random = np.random.default_rng(7)
    mechanism = chain([TwoSlides], random, reversed_joints=False)
    again = mechanism.joints[1].model_copy(update={"name": "again", "cut": True})
    mechanism = mechanism.model_copy(update={"joints": (*mechanism.joints, again)})
    functions = in_motion(mechanism, random)
    system, instant = functions.system, functions.numeric_instant()
    assert isinstance(system, MechanismSystem)
    for number in (1, 2):
        measured = coordinate_at(mechanism, system.parts.points, f"again.displacement_{number}")
        found = measured.motion(system.motion(instant), instant.parameters)
        np.testing.assert_allclose(found, (instant.coordinates[number], instant.velocities[number]), atol=1e-12)


@pytest.mark.parametrize(("kind", "hinges"), [(HingeSlideHinge, 2), (ThreeHinges, 3)])
def test_what_poses_do_not_determine_is_refused_in_absolute_coordinates(kind: type[OfTwoAxes], hinges: int) -> None:
    mechanism = chain([kind], np.random.default_rng(7), reversed_joints=False)
    model = CoupledModel(name="chain", systems={"mechanism": mechanism})
    with pytest.raises(InputError, match=rf"joint 'joint_1' has {hinges} hinges; in absolute coordinates"):
        model.simulation(formulation="dca-alm")
