"""Forces as arrows: what the equations exert, by closed forms and by the balance of a body at rest."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydrostatic_machines import slewer
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import mbsfmu
from mbsfmu import (
    AppliedForce,
    AppliedMoment,
    Beam,
    Causality,
    CoupledModel,
    Gain,
    JointDrive,
    JointFriction,
    JointSpringDamper,
    LinearSignal,
    Mechanism,
    Prismatic,
    Revolute,
    RigidBody,
    Spherical,
    SpringDamper,
    Trajectory,
)
from mbsfmu.models import four_bar

Floats = NDArray[np.float64]


def values(arrow: dict[str, Any]) -> Floats:
    return np.frombuffer(base64.b64decode(arrow["values"]), dtype="<f4").astype(float).reshape(-1, 3)


def times(payload: dict[str, Any]) -> Floats:
    return np.linspace(payload["time"]["start"], payload["time"]["stop"], payload["time"]["count"])


@pytest.mark.parametrize("set_later", [None, 3e5])
def test_a_port_at_a_tank_has_the_pressure_of_the_tank(set_later: float | None) -> None:
    """Which is no signal, but a parameter: that of the drain of a slewing drive."""
    simulation = slewer().simulation(compiled=False)
    if set_later is not None:
        simulation.set("tank.pressure", set_later)
    made = simulation.run(0.002).animate().payload
    assert made["notes"] == []
    (name,) = (each for each in made["runs"][0]["pressures"] if each.endswith(".T"))
    shown = np.frombuffer(base64.b64decode(made["runs"][0]["pressures"][name]), "<f4")
    assert shown == pytest.approx(np.full(made["time"]["count"], (set_later or 2e5) / 1e5))


def test_spring_and_damper_pull_as_their_law_says() -> None:
    """Of a mass on a slide: −k (s − s₀) − d ṡ along the line, on the one body that is not the ground."""
    mass = RigidBody(name="mass", mass=2.0, inertia=(1.0, 1.0, 1.0))
    slide = Prismatic(name="slide", parent="ground.O", child="mass.origin", axis=(1.0, 0.0, 0.0), displacement=1.5)
    spring = SpringDamper(
        name="spring", start="ground.O", end="mass.origin", stiffness=80.0, damping=3.0, free_length=1.0
    )
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0), ground={"O": (0.0, 0.0, 0.0)}, bodies=(mass,), joints=(slide,), forces=(spring,)
    )
    result = CoupledModel(name="mass", systems={"mechanism": mechanism}).simulation(compiled=False).run(1.2)
    payload = result.animate(frame_rate=100.0).payload
    (arrow,) = payload["arrows"]
    at = times(payload)
    place, speed = (np.interp(at, result.time, result[f"mass.{each}"]) for each in ("displacement", "velocity"))
    np.testing.assert_allclose(values(arrow)[:, 0], -80.0 * (place - 1.0) - 3.0 * speed, atol=1e-4)
    np.testing.assert_array_equal(values(arrow)[:, 1:], 0.0)


def test_the_cylinder_holds_the_boom_at_first() -> None:
    """At rest the moment of its force about the rocker's pin is what the run calls its static force there."""
    result = four_bar().simulation().run(0.02)
    payload = result.animate().payload
    (arrow,) = payload["arrows"]
    assert payload["bodies"][arrow["body"]]["name"] == "rocker"
    first = values(arrow)[0]
    assert np.linalg.norm(first) == pytest.approx(abs(result["cylinder.force"][0]), rel=1e-6)
    # From G (0, −2) to the middle of the rocker at (1, −1): at 45°.
    np.testing.assert_allclose(first / np.linalg.norm(first), (2**-0.5, 2**-0.5, 0.0), atol=1e-6)


def driven() -> CoupledModel:
    arm = Beam(name="arm", length=1.0, mass=1.0)
    hinge = Revolute(name="hinge", parent="ground.O", child="arm.start")
    push = AppliedForce(name="push", point="arm.end", frame="body")
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(arm,), joints=(hinge,), forces=(push,))
    ramp = LinearSignal(times=(0.0, 1.0), values=(0.0, 50.0))
    signals = {"mechanism.push.force.y": ramp, "mechanism.push.force.x": LinearSignal(times=(0.0,), values=(0.0,))}
    signals["mechanism.push.force.z"] = signals["mechanism.push.force.x"]
    return CoupledModel(name="driven", systems={"mechanism": mechanism}, signals=signals)


def test_a_force_that_turns_with_its_body_and_follows_a_signal() -> None:
    """Also where inputs were not recorded: a coupled run knows outputs alone."""
    model = driven()
    result = model.simulation(compiled=False).run(1.0)
    kept = [name for name in result if name in ("arm.angle", "arm.angular_velocity")]
    outputs = Trajectory(result.time, np.stack([result[name] for name in kept], axis=1), kept, ["rad", "rad/s"])
    for run in (result, outputs):
        payload = mbsfmu.animate(run, model).payload
        (arrow,) = payload["arrows"]
        at = times(payload)
        angle = np.interp(at, result.time, result["arm.angle"])
        expected = 50.0 * at[:, None] * np.stack([-np.sin(angle), np.cos(angle), np.zeros_like(at)], axis=1)
        np.testing.assert_allclose(values(arrow), expected, atol=1e-4)


def test_a_force_that_nobody_knows_is_told() -> None:
    model = driven()
    result = model.simulation(compiled=False).run(0.1)
    kept = Trajectory(result.time, result["arm.angle"][:, None], ["arm.angle"], ["rad"])
    payload = mbsfmu.animate(kept, model).payload
    assert payload["arrows"] == []
    assert payload["notes"] == ["push is not drawn as arrows: the run has no velocities of the joints"]


def decoded(payload: dict[str, Any]) -> Floats:
    return np.frombuffer(base64.b64decode(payload["runs"][0]["poses"]), "<f4")


def test_a_unit_of_the_whole_moves_what_it_was_exported_from(tmp_path: Path) -> None:
    """Its outputs have the unit's name before theirs, which is that of no system."""
    model = driven()
    (unit, *_) = mbsfmu.export(model, tmp_path, layout="monolithic", backend="python")
    coupled, whole = mbsfmu.cosimulate([unit], step=2e-3, stop=0.5), model.simulation(compiled=False).run(0.5)
    assert "driven.arm.angle" in coupled
    one, other = coupled.animate(model).payload, whole.animate().payload
    assert one["notes"] == []
    np.testing.assert_allclose(decoded(one), decoded(other), atol=1e-4)
    np.testing.assert_allclose(values(one["arrows"][0]), values(other["arrows"][0]), atol=1e-3)


def test_units_of_systems_move_what_they_were_exported_from() -> None:
    """Their outputs have the system's name before theirs; pressures of nodes are none, but those of cylinders are."""
    model = four_bar()
    simulation = model.simulation()
    whole = simulation.run(0.05)
    shared = [each for each in simulation.variables if each.causality is Causality.OUTPUT and each.name in whole]
    names = [simulation.exposed.qualified[each.name] for each in shared]
    columns = np.stack([whole[each.name] for each in shared], axis=1)
    coupled = Trajectory(whole.time, columns, names, [each.unit for each in shared])
    one, other = mbsfmu.animate(coupled, model).payload, whole.animate().payload
    np.testing.assert_array_equal(decoded(one), decoded(other))
    np.testing.assert_array_equal(values(one["arrows"][0]), values(other["arrows"][0]))
    assert one["notes"] == []
    assert "circuit.V2.pressure" not in names
    assert set(other["runs"][0]["pressures"]) == {"circuit.V2", "circuit.V3"}
    assert one["runs"][0]["pressures"] == other["runs"][0]["pressures"]


def test_an_input_of_another_system_with_the_same_name_is_no_force_here() -> None:
    """A run of the whole has no signal of a connected input: that of the other arm has its system's name."""
    arm = driven().systems["mechanism"]
    ramp = LinearSignal(times=(0.0, 1.0), values=(0.0, 5.0))
    model = CoupledModel(
        name="arms",
        systems={"one": arm, "other": arm, "gain": Gain(gain=10.0, output_unit="N", input_unit="N")},
        connections=[("gain.output", "one.push.force.y")],
        signals={"gain.input": ramp, "other.push.force.y": LinearSignal(times=(0.0,), values=(-7.0,))},
    )
    result = model.simulation(compiled=False).run(0.2)
    assert "push.force.y" not in result.names
    assert "other.push.force.y" in result.names
    payload = result.animate().payload
    one, other = (values(arrow) for arrow in payload["arrows"])
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 50.0 * times(payload), atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(other, axis=1), 7.0, rtol=1e-6)


# -- moments, and loads in joints ---------------------------------------------------------------------------


def ramp(most: float) -> LinearSignal:
    return LinearSignal(times=(0.0, 1.0), values=(0.0, most))


def test_a_drive_turns_the_outer_body_about_its_axis() -> None:
    """Whichever way the joint is written: written from the arm to the ground its angle and the moment are reversed."""
    tilted = (0.0, 0.6, 0.8)
    for parent, child, sign in (("ground.O", "arm.start", 1.0), ("arm.start", "ground.O", -1.0)):
        arm = Beam(name="arm", length=1.0, mass=1.0, axial_inertia=0.01)
        hinge = Revolute(name="hinge", parent=parent, child=child, axis=tilted)
        drive = JointDrive(name="drive", joint="hinge")
        mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(arm,), joints=(hinge,), forces=(drive,))
        model = CoupledModel(
            name="arm", systems={"mechanism": mechanism}, signals={"mechanism.drive.torque": ramp(3.0)}
        )
        payload = model.simulation(compiled=False).run(1.0).animate().payload
        (arrow,) = payload["arrows"]
        assert (arrow["kind"], arrow["body"], arrow["position"]) == ("moment", 0, [0.0, 0.0, 0.0])
        expected = 3.0 * sign * times(payload)[:, None] * np.array(tilted)
        np.testing.assert_allclose(values(arrow), expected, atol=1e-5)


def test_friction_in_a_slide_is_a_force_along_it() -> None:
    mass = RigidBody(name="mass", mass=2.0, inertia=(1.0, 1.0, 1.0))
    slide = Prismatic(name="slide", parent="ground.O", child="mass.origin", axis=(1.0, 0.0, 0.0), velocity=2.0)
    friction = JointFriction(name="friction", joint="slide", coulomb_load=3.0, damping=0.5)
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0), ground={"O": (0.0, 0.0, 0.0)}, bodies=(mass,), joints=(slide,), forces=(friction,)
    )
    result = CoupledModel(name="mass", systems={"mechanism": mechanism}).simulation(compiled=False).run(0.5)
    payload = result.animate().payload
    (arrow,) = payload["arrows"]
    speed = np.interp(times(payload), result.time, result["mass.velocity"])
    assert arrow["kind"] == "force"
    np.testing.assert_allclose(values(arrow)[:, 0], -3.0 - 0.5 * speed, atol=1e-4)
    np.testing.assert_array_equal(values(arrow)[:, 1:], 0.0)


def test_a_spring_about_an_angle_that_is_measured_does_the_work_of_its_moment() -> None:
    """Of a ball: moment · angular velocity is load · rate, with the rate of the recorded Cardan angle."""
    top = RigidBody(name="top", mass=2.0, inertia=(0.4, 0.3, 0.2))
    ball = Spherical(
        name="ball", parent="ground.O", child="top.origin", angles=(0.3, 0.4, -0.5), angular_velocity=(1.0, -2.0, 3.0)
    )
    spring = JointSpringDamper(name="spring", joint="ball.cardan_angle.x", stiffness=5.0)
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(top,), joints=(ball,), forces=(spring,))
    result = CoupledModel(name="top", systems={"mechanism": mechanism}).simulation(step=1e-3).run(0.4)
    payload = result.animate(frame_rate=500.0).payload
    (arrow,) = payload["arrows"]
    at = times(payload)
    quaternion = np.stack([np.interp(at, result.time, result[f"top.quaternion.{axis}"]) for axis in "xyzw"], axis=1)
    angles = Rotation.from_quat(quaternion).as_euler("XYZ")[:, 0]
    turning = np.stack([np.interp(at, result.time, result[f"top.angular_velocity.{axis}"]) for axis in "xyz"], axis=1)
    power = np.sum(values(arrow) * turning, axis=1)
    expected = -5.0 * angles * np.gradient(angles, at)
    assert arrow["kind"] == "moment"
    assert np.max(np.abs(expected)) > 0.5
    np.testing.assert_allclose(power[2:-2], expected[2:-2], atol=2e-3 * np.max(np.abs(expected)))


def test_a_moment_that_turns_with_its_body() -> None:
    arm = Beam(name="arm", length=1.0, mass=1.0)
    hinge = Revolute(name="hinge", parent="ground.O", child="arm.start", angular_velocity=1.0)
    twist = AppliedMoment(name="twist", point="arm.end", frame="body")
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(arm,), joints=(hinge,), forces=(twist,))
    signals = {f"mechanism.twist.moment.{axis}": ramp(2.0 if axis == "x" else 0.0) for axis in "xyz"}
    result = (
        CoupledModel(name="arm", systems={"mechanism": mechanism}, signals=signals).simulation(compiled=False).run(1.0)
    )
    payload = result.animate().payload
    (arrow,) = payload["arrows"]
    angle = np.interp(times(payload), result.time, result["arm.angle"])
    expected = 2.0 * times(payload)[:, None] * np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    assert (arrow["kind"], arrow["position"]) == ("moment", [1.0, 0.0, 0.0])
    np.testing.assert_allclose(values(arrow), expected, atol=1e-4)
