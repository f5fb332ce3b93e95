"""Forces of one's own: with states, between joints, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
from scipy.linalg import expm

from mbsfmu import (
    Array,
    CoupledModel,
    DataError,
    Force,
    ForceContext,
    InputError,
    JointLoad,
    JointReference,
    LineOfAction,
    Mechanism,
    Parameter,
    Point,
    PointLoad,
    PointReference,
    Positive,
    Prismatic,
    Quantity,
    Revolute,
    RigidBody,
)

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
MASS, STIFFNESS, VISCOSITY = 2.0, 800.0, 30.0


class Maxwell(Force):
    """A spring and a damper one behind the other, whose state is the damper's length."""

    type: Literal["test-maxwell"] = "test-maxwell"
    start: PointReference
    end: PointReference
    stiffness: Annotated[Positive, Parameter("N/m", "stiffness")]
    damping: Annotated[Positive, Parameter("N.s/m", "damping")]
    initial_length: Annotated[float, Parameter("m", "length of the damper at the start")] = 0.0

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("length", "m", nominal=0.1, description="length of the damper"),)

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        return LineOfAction(now).push(-self._tension(now))

    def rates(self, now: ForceContext) -> Mapping[str, Array]:
        return {"length": self._tension(now) / now["damping"]}

    def initial_states(self, now: ForceContext) -> Mapping[str, Array | float]:
        return {"length": now["initial_length"]}

    def energy(self, now: ForceContext) -> Array:
        return 0.5 * self._tension(now) ** 2 / now["stiffness"]

    def dissipation(self, now: ForceContext) -> Array:
        return self._tension(now) ** 2 / now["damping"]

    def _tension(self, now: ForceContext) -> Array:
        return now["stiffness"] * (LineOfAction(now).length - now["length"])


class Gear(Force):
    """A torsional spring between two joints, which turn by a ratio, and a torque from outside in the first."""

    balancing: ClassVar[tuple[str, ...]] = ("torque",)
    type: Literal["test-gear"] = "test-gear"
    driving: JointReference
    driven: JointReference
    ratio: Annotated[float, Parameter("1", "turns of the driven joint for one of the driving")]
    stiffness: Annotated[Positive, Parameter("{driven.load}/{driven.coordinate}", "stiffness")]

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("torque", "{driving.load}", 0.0, description="torque in the driving joint"),)

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        load = -now["stiffness"] * self._twist(now)
        return (JointLoad("driven", load), JointLoad("driving", now["torque"] - now["ratio"] * load))

    def work_rate(self, now: ForceContext) -> Array:
        return now["torque"] * now.joint("driving").rate

    def energy(self, now: ForceContext) -> Array:
        return 0.5 * now["stiffness"] * self._twist(now) ** 2

    def _twist(self, now: ForceContext) -> Array:
        return now.joint("driven").coordinate - now["ratio"] * now.joint("driving").coordinate


def sliding(*forces: Force | dict[str, Any]) -> CoupledModel:
    """A mass on a slide, thrown, 1 m away from a point on the slide's axis."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0), "A": (-1.0, 0.0, 0.0)},
        bodies=(RigidBody(name="mass", mass=MASS, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="slide", parent="ground.O", child="mass.origin", velocity=1.5),),
        forces=forces,
    )
    return CoupledModel(name="sliding", systems={"mechanism": mechanism}, step=1e-3)


# -- states -------------------------------------------------------------------------------------------------


def maxwell(**fields: Any) -> Maxwell:
    ends = {"start": "ground.A", "end": "mass.origin", "initial_length": 1.0}
    return Maxwell(**{"name": "element", "stiffness": STIFFNESS, "damping": VISCOSITY, **ends, **fields})


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_force_with_a_state_moves_a_mass_as_in_closed_form(formulation: str) -> None:
    result = sliding(maxwell()).simulation(formulation=formulation, compiled=False, step=2e-4).run(0.3)
    tension = STIFFNESS / MASS
    system = np.array([[0.0, 1.0, 0.0], [-tension, 0.0, tension], [STIFFNESS / VISCOSITY, 0.0, -STIFFNESS / VISCOSITY]])
    expected = np.array([expm(system * time) @ [0.0, 1.5, 0.0] for time in result.time])
    np.testing.assert_allclose(result["mass.displacement"], expected[:, 0], atol=2e-6)
    np.testing.assert_allclose(result["element.length"], 1.0 + expected[:, 2], atol=2e-6)
    assert np.max(np.abs(result["energy.drift"])) < 2e-5
    assert result["energy.dissipated"][-1] > 1.0


def test_compiled_runs_with_states_of_forces_are_those_of_the_interpreter() -> None:
    one, other = (sliding(maxwell()).simulation(compiled=compiled).run(0.2) for compiled in (True, False))
    for name in one.names:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-12, atol=1e-12)


# -- joints -------------------------------------------------------------------------------------------------


def wheels(gravity: float) -> CoupledModel:
    """Two wheels with a spring between their joints; the second one is out of balance."""
    mechanism = Mechanism(
        gravity=(0.0, gravity, 0.0),
        ground={"O": (0.0, 0.0, 0.0), "Q": (1.0, 0.0, 0.0)},
        bodies=(
            RigidBody(name="one", mass=1.0, inertia=(1.0, 1.0, 0.4)),
            RigidBody(name="two", mass=3.0, inertia=(1.0, 1.0, 0.9), centre=(0.2, 0.0, 0.0)),
        ),
        joints=(
            Revolute(name="A", parent="ground.O", child="one.origin", angular_velocity=0.0 if gravity else 2.0),
            Revolute(name="B", parent="ground.Q", child="two.origin"),
        ),
        forces=(Gear(name="gear", driving="A", driven="B", ratio=-2.5, stiffness=40.0),),
    )
    return CoupledModel(name="wheels", systems={"mechanism": mechanism}, step=1e-3)


def test_force_between_joints_swings_as_in_closed_form() -> None:
    result = wheels(0.0).simulation(compiled=False, step=5e-4).run(0.5)
    one, two, ratio = 0.4, 0.9 + 3.0 * 0.2**2, -2.5
    twist_rate, reduced = -ratio * 2.0, 1.0 / (1.0 / two + ratio**2 / one)
    frequency = np.sqrt(40.0 / reduced)
    twist = twist_rate * np.sin(frequency * result.time) / frequency
    np.testing.assert_allclose(result["two.angle"] - ratio * result["one.angle"], twist, atol=5e-5)
    system = wheels(0.0).simulation(compiled=False).functions.system
    (stiffness,) = (each for each in system.parameters if each.name == "gear.stiffness")
    assert stiffness.unit == "N.m/rad"


def test_balancing_input_holds_a_mechanism_at_rest() -> None:
    """The torque that the weight of the second wheel needs goes through a spring that is not wound: it is missing."""
    model = wheels(-9.81)
    simulation = model.simulation(compiled=False)
    simulation.initialize()
    assert simulation.get("gear.static_torque") == pytest.approx(0.0, abs=1e-9)
    mechanism = model.systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    turned = mechanism.joints[0].model_copy(update={"angle": -0.06})
    wound = mechanism.model_copy(update={"joints": (turned, mechanism.joints[1])})
    simulation = model.model_copy(update={"systems": {"mechanism": wound}}).simulation(compiled=False)
    simulation.initialize()
    assert simulation.get("gear.static_torque") == pytest.approx(-(2.5**2) * 40.0 * 0.06, rel=1e-9)


# -- refusals -----------------------------------------------------------------------------------------------


class Wrong(Force):
    """A push whose functions do what a test says."""

    type: Literal["test-wrong-force"] = "test-wrong-force"
    start: PointReference
    end: PointReference
    case: str

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        line = LineOfAction(now)
        if self.case == "branch" and line.length > 1.0:  # branches
            return line.push(np.asarray(5.0))
        if self.case == "point":
            return (PointLoad("middle", np.zeros(3)),)
        if self.case == "shape":
            return (PointLoad("end", line.length),)
        if self.case == "number":
            return line.push(now["size"])
        return line.push(-100.0 * line.length - 5.0 * line.velocity)

    def energy(self, now: ForceContext) -> Array:
        return (100.0 if self.case == "energy" else 50.0) * LineOfAction(now).length ** 2

    def dissipation(self, now: ForceContext) -> Array:
        return (0.0 if self.case == "dissipation" else 5.0) * LineOfAction(now).velocity ** 2


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("branch", (__file__, "branches on a value")),
        ("point", ("loads names a point 'middle'; there are start, end",)),
        ("shape", ("loads gives a force of shape (); it must be of shape (3,)",)),
        ("number", ("has no number 'size' here",)),
        ("energy", ("Wrong exerts has a power of", "it must be the first less the others")),
        ("dissipation", ("Wrong exerts has a power of", "dissipation 0 W")),
    ],
)
def test_forces_that_do_wrong_are_refused(case: str, words: tuple[str, ...]) -> None:
    model = sliding(Wrong(name="wrong", start="ground.A", end="mass.origin", case=case))
    with pytest.raises((DataError, InputError)) as caught:
        model.simulation(compiled=False)
    for word in ("test-wrong-force 'wrong'", *words):
        assert word in str(caught.value)


def test_forces_that_do_right_are_taken() -> None:
    sliding(Wrong(name="wrong", start="ground.A", end="mass.origin", case="none")).simulation(compiled=False)


def without_loads() -> None:
    class Idle(Force):
        type: Literal["test-idle-force"] = "test-idle-force"
        point: PointReference


def without_place() -> None:
    class Nowhere(Force):
        type: Literal["test-nowhere"] = "test-nowhere"

        def loads(self, now: ForceContext) -> Iterable[PointLoad]:
            return ()


def with_a_word() -> None:
    class Worded(Force):
        type: Literal["test-worded"] = "test-worded"
        point: PointReference
        word: Annotated[str, Parameter("m", "length")]

        def loads(self, now: ForceContext) -> Iterable[PointLoad]:
            return ()


def states_without_rates() -> None:
    class Still(Maxwell):
        type: Literal["test-still-force"] = "test-still-force"

    class Stiller(Force):
        type: Literal["test-stiller-force"] = "test-stiller-force"
        point: PointReference

        def states(self) -> tuple[Quantity, ...]:
            return (Quantity("x", "m"),)

        def loads(self, now: ForceContext) -> Iterable[PointLoad]:
            return ()


@pytest.mark.parametrize(
    ("define", "sentence"),
    [
        (without_loads, "class Idle: a force has a function loads"),
        (without_place, "class Nowhere: a force needs a point or a joint that it acts on"),
        (with_a_word, "class Worded: the parameter 'word' must be a number, as Positive or float, or three, as Vector"),
        (states_without_rates, "class Stiller: it has states, but no rates"),
    ],
)
def test_classes_that_lack_something_are_refused(define: Callable[[], None], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        define()


def test_balancing_needs_an_input() -> None:
    class Balancing(Maxwell):
        balancing: ClassVar[tuple[str, ...]] = ("force",)
        type: Literal["test-balancing"] = "test-balancing"

    with pytest.raises(DataError, match="it balances by 'force', which is no input"):
        Balancing(name="b", start="ground.A", end="mass.origin", stiffness=1.0, damping=1.0)


def test_loads_need_a_joint_with_one_coordinate() -> None:
    plain = wheels(0.0).systems["mechanism"]
    assert isinstance(plain, Mechanism)
    with pytest.raises(DataError, match="test-gear 'gear': there is no joint 'C'"):
        plain.model_copy(update={"forces": (plain.forces[0].model_copy(update={"driven": "C"}),)})


def test_points_and_bodies_stay_as_they_were() -> None:
    """A point of a force alone is a parameter as those of joints are."""
    body = RigidBody(name="mass", mass=MASS, inertia=(1.0, 1.0, 1.0), points={"p": Point(position=(0.3, 0.0, 0.0))})
    mechanism = (
        sliding().systems["mechanism"].model_copy(update={"bodies": (body,), "forces": (maxwell(end="mass.p"),)})
    )
    system = CoupledModel(name="x", systems={"mechanism": mechanism}).simulation(compiled=False).functions.system
    assert "mass.p.x" in [each.name for each in system.parameters]


class Tie(Force):
    """A spring and a damper in all directions between two points."""

    type: Literal["test-tie"] = "test-tie"
    start: PointReference
    end: PointReference
    stiffness: Annotated[Positive, Parameter("N/m", "stiffness")] = 1e4

    def _stretch(self, now: ForceContext) -> Array:
        return now.point("end").position - now.point("start").position

    def _rate(self, now: ForceContext) -> Array:
        return now.point("end").velocity - now.point("start").velocity

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        force = now["stiffness"] * (self._stretch(now) + 0.1 * self._rate(now))
        return PointLoad("start", force), PointLoad("end", -force)

    def energy(self, now: ForceContext) -> Array:
        return 0.5 * now["stiffness"] * self._stretch(now) @ self._stretch(now)

    def dissipation(self, now: ForceContext) -> Array:
        return 0.1 * now["stiffness"] * self._rate(now) @ self._rate(now)


@pytest.mark.parametrize(("start", "end"), [("one.tip", "other.root"), ("other.root", "one.tip")])
def test_points_that_joints_hold_may_be_tied(start: str, end: str) -> None:
    """What pulls on both sides of a pin exerts and takes what round-off leaves, and is no error."""
    one, other = (
        RigidBody(
            name=name,
            mass=3.0,
            inertia=(0.2, 0.3, 0.4),
            points={"root": (0.31, 0.17, -0.2), "tip": (-0.47, 0.13, 0.33)},
        )
        for name in ("one", "other")
    )
    mechanism = Mechanism(
        ground={"p": (0.1, 0.2, 0.3)},
        bodies=(one, other),
        joints=(
            Revolute(name="a", parent="ground.p", child="one.root", axis=(0.6, 0.0, 0.8), angle=0.4),
            Revolute(name="b", parent="one.tip", child="other.root", axis=(0.0, 0.28, 0.96), angle=-0.7),
        ),
        forces=(Tie(name="tie", start=start, end=end),),
    )
    free = mechanism.model_copy(update={"forces": ()})
    runs = [CoupledModel(name="tied", systems={"m": each}).simulation().run(0.5) for each in (mechanism, free)]
    np.testing.assert_allclose(*(run["other.angle"] for run in runs), atol=1e-9)
