"""Sensors tell what Pinocchio's frames, differences and rotations of SciPy tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pytest
from machine_of_parts import FORMULATIONS, SENSORS, mechanism, model
from scipy.spatial.transform import Rotation
from spatial import Floats, in_motion, random_tree

from mbsfmu import Array, Block, CoupledModel, DataError, Mechanism, Numbers, Prismatic, Quantity, RigidBody
from mbsfmu.parts import AppliedForce, DistanceSensor, OrientationSensor, PointSensor

pytest.importorskip("pinocchio")
from pinocchio_engine import PinocchioTree

EVERY_POINT = {"measures": ("position", "velocity", "acceleration")}
EVERY_TURN = {"measures": ("quaternion", "cardan_angle", "angular_velocity", "angular_acceleration")}


def vector(told: dict[str, float], name: str, axes: str = "xyz") -> Floats:
    return np.array([told[f"{name}.{axis}"] for axis in axes])


class Scene:
    """A tree in motion with sensors on its last body, and the same in Pinocchio."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        tree = random_tree(seed)
        sensors = (
            PointSensor(name="point", point="body_5.next", **EVERY_POINT),
            PointSensor(name="rider", point="body_5.next", relative_to="body_2.here", **EVERY_POINT),
            OrientationSensor(name="turn", point="body_5.centre", **EVERY_TURN),
            OrientationSensor(name="spin", point="body_5.here", relative_to="body_2.here", axes="body", **EVERY_TURN),
        )
        functions = in_motion(tree.model_copy(update={"sensors": sensors}), random)
        functions.accelerations[:] = random.normal(size=functions.accelerations.shape)
        names = [variable.name for variable in functions.system.outputs]
        self.told = dict(zip(names, functions.outputs()[0], strict=True))
        self._motion = functions.coordinates, functions.velocities, functions.accelerations
        self._places = {name: np.array(tree.point(f"{name}.{at}").position) for name, at in ENDS.items()}
        self._pinocchio = PinocchioTree(tree)

    def at(self, body: str, time: float = 0.0) -> tuple[Floats, Floats, Floats, Floats]:
        """What Pinocchio tells of a point, at constant rates of the rates."""
        q, v, a = self._motion
        moved = q + time * v + 0.5 * time**2 * a, v + time * a, a
        return self._pinocchio.point(body, self._places[body], *moved)

    def relative(self, time: float) -> Floats:
        """Placement of the one frame in the other, shape (4, 4)."""
        return np.linalg.inv(self.at("body_2", time)[0]) @ self.at("body_5", time)[0]


ENDS = {"body_5": "next", "body_2": "here"}


@pytest.mark.parametrize("seed", range(6))
def test_points_and_bodies_are_and_move_as_frames_of_pinocchio(seed: int) -> None:
    scene = Scene(seed)
    placement, velocity, acceleration, turning = scene.at("body_5")
    expected = {"position": placement[:3, 3], "velocity": velocity, "acceleration": acceleration}
    for what, value in expected.items():
        np.testing.assert_allclose(vector(scene.told, f"point.{what}"), value, rtol=1e-10, atol=1e-10, err_msg=what)
    for what, value in (("angular_velocity", turning[:3]), ("angular_acceleration", turning[3:])):
        np.testing.assert_allclose(vector(scene.told, f"turn.{what}"), value, rtol=1e-10, atol=1e-10, err_msg=what)
    turned = Rotation.from_matrix(placement[:3, :3])
    np.testing.assert_allclose(
        vector(scene.told, "turn.quaternion", "wxyz"), turned.as_quat(canonical=True, scalar_first=True), atol=1e-10
    )
    np.testing.assert_allclose(vector(scene.told, "turn.cardan_angle"), turned.as_euler("XYZ"), atol=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_who_rides_on_a_body_sees_differences_of_places_in_its_frame(seed: int) -> None:
    """Differences of fourth order of what Pinocchio places, in a frame that moves."""
    scene, step = Scene(seed), 1e-3
    ago, before, now, behind, later = (scene.relative(number * step) for number in (-2, -1, 0, 1, 2))
    rate = (ago - 8.0 * before + 8.0 * behind - later) / (12.0 * step)
    bend = (-ago + 16.0 * before - 30.0 * now + 16.0 * behind - later) / (12.0 * step**2)
    expected = {"position": now, "velocity": rate, "acceleration": bend}
    near = {"rtol": 1e-6, "atol": 1e-6 * max(1.0, np.max(np.abs(bend)))}
    for what, value in expected.items():
        np.testing.assert_allclose(vector(scene.told, f"rider.{what}"), value[:3, 3], **near, err_msg=what)
    turned, spin = now[:3, :3], now[:3, :3].T @ rate[:3, :3]
    changing = turned.T @ bend[:3, :3] + rate[:3, :3].T @ rate[:3, :3]  # the skew matrix of dω/dt in the body's axes
    for what, skew in (("angular_velocity", spin), ("angular_acceleration", changing)):
        value = [skew[2, 1], skew[0, 2], skew[1, 0]]
        np.testing.assert_allclose(vector(scene.told, f"spin.{what}"), value, **near, err_msg=what)
    seen = Rotation.from_matrix(turned)
    np.testing.assert_allclose(vector(scene.told, "spin.cardan_angle"), seen.as_euler("XYZ"), atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_quaternions_near_half_turns_are_those_of_the_rotation(seed: int) -> None:
    """All four rows of q qᵀ are the largest in turn; a half turn has w = 0."""
    axis = np.eye(3)[seed % 3] if seed < 3 else np.array([1.0, -2.0, 3.0])
    turn = Rotation.from_rotvec((np.pi - 1e-6) * axis / np.linalg.norm(axis))
    sensor = OrientationSensor(name="turn", point="body.origin", **EVERY_TURN)
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="body", mass=1.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(
            Prismatic(
                name="rail", parent="ground.O", child="body.origin", orientation=tuple(turn.as_rotvec().tolist())
            ),
        ),
        sensors=(sensor,),
    )
    simulation = CoupledModel(name="turned", systems={"mechanism": mechanism}).simulation(compiled=False)
    found = [simulation.get(f"turn.quaternion.{part}") for part in "wxyz"]
    np.testing.assert_allclose(found, turn.as_quat(canonical=True, scalar_first=True), atol=1e-14)
    angles = [simulation.get(f"turn.cardan_angle.{axis}") for axis in "xyz"]
    np.testing.assert_allclose(Rotation.from_euler("XYZ", angles).as_matrix(), turn.as_matrix(), atol=1e-14)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_rates_are_those_of_what_is_told_along_a_run(formulation: str) -> None:
    """With loops, in every formulation: central differences, whose error is of the second order of the step."""
    result = model(*SENSORS).simulation(formulation=formulation, compiled=False, step=5e-4).run(0.2)
    step = result.time[1]
    pairs = [("eye.position", "eye.velocity"), ("eye.velocity", "eye.acceleration")]
    pairs += [("rider.position", "rider.velocity"), ("rider.velocity", "rider.acceleration")]
    pairs += [("gyro.angular_velocity", "gyro.angular_acceleration")]
    names = [(f"{one}.{axis}", f"{other}.{axis}") for one, other in pairs for axis in "xyz"]
    for value, rate in (*names, ("tape.distance", "tape.rate"), ("encoder.coordinate", "encoder.rate")):
        difference = (result[value][4:] - result[value][2:-2]) / (2.0 * step)
        found = result[rate][3:-1]
        assert np.max(np.abs(difference - found)) < 2e-4 * max(1.0, np.max(np.abs(found))), (formulation, rate)


def test_distance_of_points_in_one_place_has_no_rate() -> None:
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="body", mass=1.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="rail", parent="ground.O", child="body.origin", velocity=1.0),),
        sensors=(DistanceSensor(name="tape", start="ground.O", end="body.origin"),),
    )
    simulation = CoupledModel(name="passing", systems={"mechanism": mechanism}).simulation(compiled=False)
    assert (simulation.get("tape.distance"), simulation.get("tape.rate")) == (0.0, 0.0)


class Recoil(Block):
    """A force that follows a motion at once."""

    type: Literal["test-recoil"] = "test-recoil"
    unit: str

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("felt", self.unit, 0.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("force", "N", shared=True),)

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"force": -0.3 * now["felt"]}


def recoiling(what: str, unit: str) -> CoupledModel:
    parts = PointSensor(name="eye", point="ball.p", **EVERY_POINT), AppliedForce(name="load", point="ball.p")
    return CoupledModel(
        name="recoiling",
        systems={"machine": mechanism(*parts), "recoil": Recoil(unit=unit)},
        connections=((f"machine.eye.{what}.x", "recoil.felt"), ("recoil.force", "machine.load.force.x")),
    )


def test_velocity_that_is_told_may_drive_the_mechanism_at_once_as_a_damper_does() -> None:
    result = recoiling("velocity", "m/s").simulation(compiled=False).run(0.2)
    lost = np.trapezoid(0.3 * result["eye.velocity.x"] ** 2, result.time)
    assert lost > 1e-4
    assert result["energy.work"][-1] == pytest.approx(-lost, rel=1e-4)


@pytest.mark.parametrize("formulation", ["double-step", "dca", "dca-alm"])
def test_acceleration_that_is_told_may_drive_the_mechanism_at_once_as_inertia_does(formulation: str) -> None:
    """A force of −m a along x takes the energy of a mass m that moves along."""
    simulation = recoiling("acceleration", "m/s2").simulation(formulation=formulation, solver="rk4", compiled=False)
    result = simulation.run(0.1, output_step=0.02)
    speed = result["eye.velocity.x"]
    taken = 0.15 * (speed**2 - speed[0] ** 2)
    assert np.ptp(taken) > 1e-3
    np.testing.assert_allclose(result["energy.work"], -taken, atol=1e-7)
    assert np.max(np.abs(result["energy.drift"])) < 1e-6


def test_wrong_sensors_are_refused_in_words() -> None:
    with pytest.raises(DataError, match="measures has 'position' twice"):
        PointSensor(name="eye", point="ball.p", measures=("position", "position"))
    with pytest.raises(DataError, match="measures"):
        PointSensor(name="eye", point="ball.p", measures=())
    sensor = PointSensor(name="eye", point="ball.p", relative_to="ball.origin")
    with pytest.raises(
        DataError, match=r"point-sensor 'eye' measures between 'ball.p' and 'ball.origin' of the same body"
    ):
        model(sensor)
    with pytest.raises(DataError, match=r"point-sensor 'eye': there is no body 'bal'; did you mean 'ball'\?"):
        model(PointSensor(name="eye", point="bal.p"))
    with pytest.raises(DataError, match="the name 'arm' is given to more than one body, force, constraint or sensor"):
        model(PointSensor(name="arm", point="ball.p"))
    with pytest.raises(DataError, match="the name 'rail' is given to a joint and to a sensor"):
        model(PointSensor(name="rail", point="ball.p"))
