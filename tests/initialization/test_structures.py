"""Structures without freedom stay where they are, with the reactions of statics, however near to moving they are."""

from __future__ import annotations

import numpy as np
import pytest
from driven_crank import CRANK, ROD, driven_crank
from mechanisms import slider_crank
from rigid_structures import STRUCTURES, Structure, bar, toggle

from mbsfmu import (
    CoupledModel,
    Free,
    InputError,
    Mechanism,
    PolynomialSignal,
    PrescribedMotion,
    Prismatic,
    RackAndPinion,
    Revolute,
    RigidBody,
    SineSignal,
    SpringDamper,
    Trajectory,
    along,
)
from mbsfmu.simulation.run_result import Result

WAYS = [
    *((formulation, "trapezoidal") for formulation in ("double-step", "dca", "hdca", "dca-alm", "penalty")),
    *((formulation, "rodas5p") for formulation in ("double-step", "dca", "hdca", "dca-alm")),
    *((formulation, "dop853") for formulation in ("dca", "hdca", "dca-alm")),
    *(("dca", solver) for solver in ("rk4", "rk45", "adams", "radau", "bdf2", "generalized-alpha")),
]


def assert_holds(structure: Structure, result: Result, epsilon: float) -> None:
    """Lengths decide on ε to round-off by ε, and reactions go with 1/ε."""
    for name, expected in structure.reactions.items():
        np.testing.assert_allclose(result[name], expected, rtol=1e-12 + 1e-14 / epsilon**2, err_msg=name)
    assert np.ptp(result[structure.angle]) <= 1e-15 / epsilon


@pytest.mark.parametrize(("formulation", "solver"), WAYS)
@pytest.mark.parametrize("epsilon", [1e-2, 1e-6])
def test_toggle_holds(formulation: str, solver: str, epsilon: float) -> None:
    structure = toggle(epsilon)
    simulation = structure.model.simulation(formulation=formulation, solver=solver, compiled=False)
    assert_holds(structure, simulation.run(0.02), epsilon)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize(("formulation", "epsilon"), [("dca", 1e-4), ("dca-alm", 1e-5)])
def test_other_structures_hold(name: str, formulation: str, epsilon: float) -> None:
    structure = STRUCTURES[name](epsilon)
    assert_holds(structure, structure.model.simulation(formulation=formulation, compiled=False).run(0.02), epsilon)


def test_compiled_steps_hold() -> None:
    structure = STRUCTURES["geared four bar"](1e-4)
    assert_holds(structure, structure.model.simulation(formulation="hdca", solver="rk45").run(0.3), 1e-4)


def with_pendulum(epsilon: float) -> CoupledModel:
    """A toggle with a pendulum at its knee."""
    mechanism = toggle(epsilon).model.systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    hinge = Revolute(name="P", parent="left.end", child="pendulum.origin", angle=-0.5)
    parts = {"bodies": (*mechanism.bodies, bar("pendulum", 1.0)), "joints": (*mechanism.joints, hinge)}
    return CoupledModel(name="machine", systems={"mechanism": mechanism.model_copy(update=parts)})


def test_locked_loops_of_machines_that_move_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    told = "no freedom is left by the loop closed at B"
    with_pendulum(1e-4).simulation(formulation="dca", compiled=False)
    assert told in caplog.text
    caplog.clear()
    with_pendulum(1e-4).simulation(formulation="double-step", compiled=False)
    with_pendulum(0.1).simulation(formulation="dca", compiled=False)
    assert told not in caplog.text


def parallel_cranks() -> CoupledModel:
    """A parallelogram with cranks of 0.2 m, one degree of freedom."""
    bodies = tuple(
        RigidBody(name=name, mass=1.0, inertia=(0.1, 0.1, 0.1), length=0.2, points={"end": along(1.0)})
        for name in ("left", "top", "right")
    )
    joints = (
        Revolute(name="A", parent="ground.A", child="left.origin", angle=1.0),
        Revolute(name="B", parent="left.end", child="top.origin", angle=-1.0),
        Revolute(name="D", parent="ground.D", child="right.origin", angle=1.0),
        Revolute(name="C", parent="right.end", child="top.end", cut=True),
    )
    ground = {"A": (0.0, 0.0, 0.0), "D": (0.2, 0.0, 0.0)}
    return CoupledModel(name="cranks", systems={"mechanism": Mechanism(ground=ground, bodies=bodies, joints=joints)})


def with_motion(model: CoupledModel, joint: str, position: float) -> CoupledModel:
    mechanism = model.systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    drive = PrescribedMotion(name="drive", joint=joint)
    moved = mechanism.model_copy(update={"constraints": (*mechanism.constraints, drive)})
    signal = SineSignal(amplitude=0.1, frequency=1.0, offset=position)
    return CoupledModel(name="moved", systems={"mechanism": moved}, signals={"mechanism.drive.position": signal})


@pytest.mark.parametrize("position", [0.5, 0.3])
def test_motion_of_a_locked_loop_is_refused(position: float) -> None:
    """Whether it begins where the loop is, or elsewhere."""
    told = r"drive \(prescribed-motion\) cannot move its joint, which is locked: .* the loop closed at B"
    with pytest.raises(InputError, match=told):
        with_motion(toggle(0.5).model, "A", position).simulation(formulation="dca", compiled=False)


def test_motion_beside_a_locked_loop_is_not_refused() -> None:
    with_motion(with_pendulum(0.3), "P", -0.5).simulation(compiled=False).run(0.01)


def test_motion_at_a_dead_centre_is_not_refused() -> None:
    """The slider's coordinate moves with nothing there, and nearby it does."""
    mechanism = driven_crank().systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    straight = {"A": {"angle": 0.0}, "B": {"angle": 0.0}, "slide": {"displacement": CRANK + ROD}, "C": {}}
    joints = tuple(joint.model_copy(update=straight[joint.name]) for joint in mechanism.joints)
    drive = PrescribedMotion(name="drive", joint="slide")
    moved = mechanism.model_copy(update={"joints": joints, "constraints": (drive,)})
    CoupledModel(name="dead-centre", systems={"mechanism": moved}).simulation(compiled=False)


def test_slow_motions_that_move_fast_ones_are_not_refused() -> None:
    """A slider drives a crank of 0.3 µm, by the law of cosines; beside a crank of 0.3 m, a rack a pinion of 0.1 µm."""
    size, speed, stop = 1e-6, 1e-7, 0.02
    crank = slider_crank(speed=0.0, size=size).systems["mechanism"]
    assert isinstance(crank, Mechanism)
    slide = PolynomialSignal(times=(0.0,), coefficients=((size, speed),))
    motor = PrescribedMotion(name="motor", joint="slide")
    found = driven(crank.model_copy(update={"constraints": (motor,)}), slide, stop)["crank.angle"][-1]
    place = size + speed * stop
    expected = np.arccos(((0.3 * size) ** 2 + place**2 - size**2) / (2.0 * 0.3 * size * place))
    assert found == pytest.approx(expected, abs=1e-6)
    large = slider_crank(speed=0.0).systems["mechanism"]
    assert isinstance(large, Mechanism)
    added = {
        "bodies": tuple(RigidBody(name=name, mass=1.0, inertia=(1.0, 1.0, 1.0)) for name in ("pinion", "rack")),
        "joints": (
            Revolute(name="turn", parent="ground.O", child="pinion.origin"),
            Prismatic(name="run", parent="ground.O", child="rack.origin"),
        ),
        "constraints": (
            RackAndPinion(name="gear", pinion="turn", rack="run", radius=1e-7),
            PrescribedMotion(name="motor", joint="run"),
        ),
    }
    both = large.model_copy(update={name: (*getattr(large, name), *parts) for name, parts in added.items()})
    moved = driven(both, PolynomialSignal(times=(0.0,), coefficients=((0.0, speed),)), stop)
    assert moved["pinion.angle"][-1] == pytest.approx(speed * stop / 1e-7, rel=1e-6)


def driven(mechanism: Mechanism, signal: PolynomialSignal, stop: float) -> Trajectory:
    systems = {"mechanism": mechanism}
    model = CoupledModel(name="driven", systems=systems, signals={"mechanism.motor.position": signal})
    return model.simulation(compiled=False).run(stop)


FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_freedom_is_prescribed_once(formulation: str) -> None:
    """The second motion has the position and velocity of the first at the start, and goes elsewhere later."""
    mechanism = parallel_cranks().systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    drives = tuple(PrescribedMotion(name=f"drive_{joint}", joint=joint) for joint in ("A", "D"))
    moved = CoupledModel(name="m", systems={"m": mechanism.model_copy(update={"constraints": drives})})
    told = r"drive_D \(prescribed-motion\) prescribes a freedom that drive_A \(prescribed-motion\) prescribes already"
    with pytest.raises(InputError, match=told):
        moved.simulation(formulation=formulation, compiled=False)
    once = CoupledModel(name="m", systems={"m": mechanism.model_copy(update={"constraints": drives[:1]})})
    once.simulation(formulation=formulation, compiled=False)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_points_that_coincide_at_the_start_are_named(formulation: str) -> None:
    """Whether the spring between them acts on a body that is free, or at a joint, where it does no work."""
    spring = SpringDamper(name="spring", start="ground.A", end="left.origin", stiffness=1e2, free_length=0.1)
    hinged = parallel_cranks().systems["mechanism"]
    assert isinstance(hinged, Mechanism)
    free = Mechanism(
        ground={"A": (0.0, 0.0, 0.0)},
        bodies=hinged.bodies[:1],
        joints=(Free(name="F", parent="ground.A", child="left.origin"),),
    )
    for mechanism in (hinged, free):
        model = CoupledModel(name="m", systems={"m": mechanism.model_copy(update={"forces": (spring,)})})
        simulation = model.simulation(formulation=formulation, compiled=False, step=1e-3)
        with pytest.raises(InputError, match=r"loads of m\.spring are undefined: do the points coincide"):
            simulation.initialize()
