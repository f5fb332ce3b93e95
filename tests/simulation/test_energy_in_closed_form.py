"""Energies, losses and inertias against closed forms: oscillators that are known at every instant."""

from __future__ import annotations

from math import pi
from pathlib import Path

import numpy as np
import pytest
from importer import Importer

import mbsfmu
from mbsfmu import Actuator, Beam, CoupledModel, Cuboid, Mechanism, Prismatic, Revolute, StepSignal
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.model.force import AnyForce
from mbsfmu.parts import AppliedMoment, Gain, JointDrive, JointSpringDamper, SpringDamper
from mbsfmu.simulation.run_result import Result

MASS, STIFFNESS, DAMPING = 2.0, 800.0, 6.0
STRETCH = 0.05
LENGTH = 0.3
STOP = 0.4


def sliding(force: AnyForce, gravity: float = 0.0) -> CoupledModel:
    """A mass on a guide along x, held by a force."""
    mechanism = Mechanism(
        gravity=(gravity, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0), "behind": (-1.0, 0.0, 0.0)},
        bodies=(Cuboid(name="mass", length=LENGTH, mass=MASS),),
        joints=(Prismatic(name="guide", parent="ground.O", child="mass.centre", displacement=STRETCH),),
        forces=(force,),
    )
    return CoupledModel(name="sliding", systems={"mechanism": mechanism})


def run(model: CoupledModel) -> Result:
    return model.simulation(solver="dop853", relative_tolerance=1e-12, absolute_tolerance=1e-12).run(STOP)


def oscillation(time: np.ndarray, inertia: float) -> tuple[np.ndarray, np.ndarray]:
    """Displacement and speed of a damped oscillator that is let go at STRETCH."""
    decay = DAMPING / (2.0 * inertia)
    frequency = np.sqrt(STIFFNESS / inertia - decay**2)
    cosine, sine = np.cos(frequency * time), np.sin(frequency * time)
    fading = STRETCH * np.exp(-decay * time)
    return fading * (cosine + decay / frequency * sine), -fading * (frequency + decay**2 / frequency) * sine


LINE = SpringDamper(
    name="spring", start="ground.behind", end="mass.centre", stiffness=STIFFNESS, damping=DAMPING, free_length=1.0
)
JOINT = JointSpringDamper(name="spring", joint="guide", stiffness=STIFFNESS, damping=DAMPING)


def check_energies(result: Result, displacement: np.ndarray, speed: np.ndarray, inertia: float) -> None:
    kinetic, stored = 0.5 * inertia * speed**2, 0.5 * STIFFNESS * displacement**2
    np.testing.assert_allclose(result["energy.kinetic"], kinetic, atol=1e-9)
    np.testing.assert_allclose(result["energy.potential"], stored, atol=1e-9)
    np.testing.assert_allclose(result["energy.dissipated"], stored[0] - stored - kinetic, atol=1e-9)
    assert result["energy.dissipated"][-1] > 0.3 * stored[0]


@pytest.mark.parametrize("force", [LINE, JOINT], ids=["line", "joint"])
def test_spring_stores_and_damper_takes_what_they_must(force: AnyForce) -> None:
    result = run(sliding(force))
    displacement, speed = oscillation(result.time, MASS)
    np.testing.assert_allclose(result["mass.displacement"], displacement, atol=1e-11)
    check_energies(result, displacement, speed, MASS)


@pytest.mark.parametrize(
    ("body", "inertia"),
    [
        (Cuboid(name="mass", length=LENGTH, mass=MASS), MASS * LENGTH**2 / 6.0),
        (Beam(name="mass", length=LENGTH, mass=MASS), MASS * LENGTH**2 / 12.0),
    ],
    ids=["cuboid", "beam"],
)
@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0)])
def test_inertia_sets_the_period(body: Cuboid | Beam, inertia: float, axis: tuple[float, float, float]) -> None:
    """A body on a torsion spring about its centre; that of a cube of edge L is m L²/6, of a slender beam m L²/12."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(body,),
        joints=(Revolute(name="hinge", parent="ground.O", child="mass.centre", axis=axis, angle=STRETCH),),
        forces=(JointSpringDamper(name="spring", joint="hinge", stiffness=STIFFNESS, damping=0.01 * DAMPING),),
    )
    result = run(CoupledModel(name="torsion", systems={"mechanism": mechanism}))
    decay = 0.01 * DAMPING / (2.0 * inertia)
    frequency = np.sqrt(STIFFNESS / inertia - decay**2)
    time = result.time
    swing = STRETCH * np.exp(-decay * time) * (np.cos(frequency * time) + decay / frequency * np.sin(frequency * time))
    np.testing.assert_allclose(result["mass.angle"], swing, atol=1e-9)


@pytest.mark.parametrize(
    "force",
    [JointDrive(name="push", joint="guide"), Actuator(name="push", start="ground.behind", end="mass.centre")],
    ids=["drive", "actuator"],
)
def test_work_is_force_times_way(force: AnyForce) -> None:
    """30 N for 0.2 s: v = F t / m, W = F² t² / 2 m, and then neither changes."""
    model = sliding(force)
    signal = StepSignal(times=(0.0, 0.2), values=(30.0, 0.0))
    model = CoupledModel.from_dict({**model.to_dict(), "signals": {"mechanism.push.force": signal.to_dict()}})
    result = run(model)
    work = (30.0 * np.minimum(result.time, 0.2)) ** 2 / (2.0 * MASS)
    np.testing.assert_allclose(result["energy.work"], work, atol=1e-9)
    np.testing.assert_allclose(result["energy.kinetic"], work, atol=1e-9)


def two_links(second: float) -> CoupledModel:
    """Two beams end to end, the first level, carried by a cylinder on the first alone."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "below": (0.2, -1.0, 0.0)},
        bodies=(Beam(name="first", length=1.0, mass=3.0), Beam(name="second", length=0.8, mass=5.0)),
        joints=(
            Revolute(name="O", parent="ground.O", child="first.start"),
            Revolute(name="A", parent="first.end", child="second.start", angle=second),
        ),
        forces=(Actuator(name="cylinder", start="ground.below", end="first.centre"),),
    )
    return CoupledModel(name="two-links", systems={"mechanism": mechanism})


def motion_of_two_links() -> tuple[str, float]:
    """What is said of the two links, and the acceleration of the second one in rad/s².

    The moment of its weight, 5 g 0.4 = 19.62 N m, and the inertia of two rods in line about their joints, angles being
    relative.
    """
    by_second = 5.0 * 0.8**2 / 3.0
    across = by_second + 5.0 * 0.4
    inertia = np.array([[3.0 / 3.0 + 5.0 * (1.0 + 0.8) + by_second, across], [across, by_second]])
    begun = np.linalg.solve(inertia, [0.0, -9.81 * 5.0 * 0.4])
    assert abs(begun[1]) > abs(begun[0])
    sentence = (
        "mechanism: actuators alone cannot keep it in static equilibrium at the start; "
        f"second.angular_acceleration would be {begun[1]:.3g} rad/s2"
    )
    return sentence, float(begun[1])


def test_motion_that_no_force_can_hold_is_told_once(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Nothing holds the second link."""
    sentence, begun = motion_of_two_links()
    with caplog.at_level("WARNING", logger="mbsfmu"):
        simulation = two_links(0.0).simulation(compiled=False)
        simulation.initialize()
    assert caplog.text.count(sentence) == 1
    simulation.set("cylinder.force", simulation.get("cylinder.static_force"))
    assert simulation.get("second.angular_acceleration") == pytest.approx(begun, rel=1e-9)


def test_load_that_is_held_is_not(caplog: pytest.LogCaptureFixture) -> None:
    """Hanging straight down it needs no force; the cylinder carries the rest, by moments about O."""
    with caplog.at_level("WARNING", logger="mbsfmu"):
        simulation = two_links(-0.5 * pi).simulation(compiled=False)
        simulation.initialize()
    assert "cannot keep" not in caplog.text
    direction = np.array([0.3, 1.0]) / np.hypot(0.3, 1.0)
    moment = 9.81 * (3.0 * 0.5 + 5.0 * 1.0)
    assert simulation.get("cylinder.static_force") == pytest.approx(moment / (0.5 * direction[1]), rel=1e-9)


def two_driven_links(share: float) -> CoupledModel:
    """The same with a drive in the second joint, which a signal lets carry a share of the second one's weight."""
    mechanism = two_links(0.0).systems["mechanism"]
    driven = mechanism.model_copy(update={"forces": (*mechanism.forces, JointDrive(name="motor", joint="A"))})
    held = StepSignal(times=(0.0, 1.0), values=(share * 9.81 * 5.0 * 0.4, 0.0))
    return CoupledModel(name="driven", systems={"mechanism": driven}, signals={"mechanism.motor.torque": held})


@pytest.mark.parametrize(
    "backend",
    ["python", pytest.param("native", marks=pytest.mark.skipif(not has_compiler(), reason="needs a C compiler"))],
)
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_what_signals_hold_at_the_start_is_not_told(backend: str, share: float, tmp_path: Path) -> None:
    """Half of it leaves half of the motion."""
    importer = Importer(
        mbsfmu.export(two_driven_links(share), tmp_path, layout="monolithic", backend=backend)[0], tmp_path / "unpacked"
    )
    importer.running()
    begun = (1.0 - share) * motion_of_two_links()[1]
    sentence = (
        "mechanism: actuators and inputs as they are given cannot keep it in static equilibrium at the start; "
        f"second.angular_acceleration would be {begun:.3g} rad/s2"
    )
    warned = [message for _, message in importer.messages if "cannot keep" in message]
    assert warned == ([] if share == 1.0 else [sentence])


def two_links_on_a_block(share: float) -> CoupledModel:
    """The same links with a moment on the second one, a share of what it needs, that a block carries to it.

    By moments about O the cylinder carries the rest where the share is whole.
    """
    mechanism = two_links(0.0).systems["mechanism"]
    moment = AppliedMoment(name="pull", point="second.end")
    arm = 0.5 / np.hypot(0.3, 1.0)
    rest = 9.81 * (3.0 * 0.5 + 5.0 * 1.4) - 9.81 * 5.0 * 0.4
    return CoupledModel(
        name="pulled",
        systems={
            "mechanism": mechanism.model_copy(update={"forces": (*mechanism.forces, moment)}),
            "hand": Gain(gain=1.0, offset=share * 9.81 * 5.0 * 0.4, output_unit="N.m"),
        },
        connections=[("hand.output", "mechanism.pull.moment.z")],
        signals={"mechanism.cylinder.force": StepSignal(times=(0.0, 1.0), values=(rest / arm, 0.0))},
    )


@pytest.mark.parametrize(
    "backend",
    ["python", pytest.param("native", marks=pytest.mark.skipif(not has_compiler(), reason="needs a C compiler"))],
)
def test_what_connections_hold_at_the_start_is_not_told(backend: str, tmp_path: Path) -> None:
    """What they carry is known to the whole alone: it stays at rest, or moves."""
    for share in (1.0, 0.5):
        folder = tmp_path / str(share)
        unit = mbsfmu.export(two_links_on_a_block(share), folder, layout="monolithic", backend=backend)[0]
        importer = Importer(unit, folder / "unpacked")
        importer.running()
        warned = [message for _, message in importer.messages if "cannot keep" in message]
        assert warned == ([] if share == 1.0 else [motion_of_two_links()[0]])


def test_python_unit_tells_it_once(tmp_path: Path) -> None:
    """However often the start is found: values may be set and read in initialization mode."""
    importer = Importer(mbsfmu.export(two_links(0.0), tmp_path, backend="python")[0], tmp_path / "unpacked")
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    for mass in (3.0, 4.0, 3.0):
        importer.set(slave, "first.mass", mass)
        importer.get(slave, "second.angular_acceleration")
    slave.exitInitializationMode()
    warned = [message for _, message in importer.messages if motion_of_two_links()[0] in message]
    assert len(warned) == 1


@pytest.mark.skipif(not has_compiler(), reason="needs a C compiler")
def test_native_unit_tells_the_motion_too(tmp_path: Path) -> None:
    path = mbsfmu.export(two_links(0.0), tmp_path, layout="monolithic")[0]
    importer = Importer(path, tmp_path / "unpacked")
    importer.running()
    sentence = motion_of_two_links()[0]
    assert sum(sentence in message for _, message in importer.messages) == 1
