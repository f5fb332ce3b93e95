"""A force of a user's file goes wherever built-in ones go, and does what its physics says."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from bushing import Bushing
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import mbsfmu
from mbsfmu import CoupledModel, DataError, Free, JointDrive, Mechanism, Prismatic, RigidBody
from mbsfmu.compiling.compiler import has_compiler

FILE = Path(__file__).with_name("bushing.py")
FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
STIFFNESS, TURNING = np.array([2000.0, 3000.0, 4000.0]), np.array([50.0, 60.0, 70.0])
DAMPING, TURNING_DAMPING = np.array([3.0, 5.0, 4.0]), np.array([0.2, 0.1, 0.3])
MASS, INERTIA = 2.0, np.array([0.1, 0.2, 0.15])
CENTRE, POINT = np.array([0.1, 0.05, 0.2]), np.array([0.2, 0.0, 0.1])

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


def bushing(parent: str, child: str) -> Bushing:
    return Bushing(
        name="rubber",
        parent=parent,
        child=child,
        stiffness=tuple(STIFFNESS),
        turning_stiffness=tuple(TURNING),
        damping=tuple(DAMPING),
        turning_damping=tuple(TURNING_DAMPING),
    )


def body(name: str) -> RigidBody:
    return RigidBody(name=name, mass=MASS, inertia=tuple(INERTIA), centre=tuple(CENTRE), points={"p": tuple(POINT)})


def hung(size: float) -> CoupledModel:
    """A body on a bushing, displaced, turned and thrown by `size`."""
    free = Free(
        name="free",
        parent="ground.O",
        child="body.p",
        displacement=(size, -2.0 * size, size),
        velocity=(3.0 * size, size, 2.0 * size),
        angles=(2.0 * size, size, -3.0 * size),
        angular_velocity=(5.0 * size, -4.0 * size, 6.0 * size),
    )
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(body("body"),),
        joints=(free,),
        forces=(bushing("ground.O", "body.p"),),
    )
    return CoupledModel(name="hung", systems={"mechanism": mechanism}, step=1e-3)


def pair() -> CoupledModel:
    """Two bodies that float, with a bushing between them, far from where it rests."""
    joints = (
        Free(
            name="one",
            parent="ground.O",
            child="a.p",
            angles=(0.3, -0.2, 0.4),
            velocity=(0.5, 0.1, -0.3),
            angular_velocity=(1.0, 4.0, -2.0),
        ),
        Free(
            name="two",
            parent="ground.O",
            child="b.p",
            displacement=(0.05, -0.02, 0.04),
            angles=(0.8, 0.5, -0.3),
            angular_velocity=(-3.0, 1.0, 2.0),
        ),
    )
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(body("a"), body("b")),
        joints=joints,
        forces=(bushing("a.p", "b.p"),),
    )
    return CoupledModel(name="pair", systems={"mechanism": mechanism}, step=1e-3)


def moved_data() -> dict[str, Any]:
    """A body on a slide with a drive, and one that a bushing hangs on it, as JSON."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="base", mass=1.0, inertia=(0.1, 0.1, 0.1)), body("body")),
        joints=(
            Prismatic(name="slide", parent="ground.O", child="base.origin"),
            Free(name="free", parent="base.origin", child="body.p", angles=(0.2, 0.1, 0.3)),
        ),
        forces=(bushing("base.origin", "body.p"), JointDrive(name="push", joint="slide")),
    )
    return CoupledModel(name="moved", systems={"mechanism": mechanism}, step=1e-3).to_dict()


@pytest.fixture(scope="module")
def moved_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("moved") / "moved.json"
    path.write_text(json.dumps(moved_data()))
    return path


@pytest.fixture(scope="module")
def moved(moved_file: Path) -> CoupledModel:
    return CoupledModel.from_file(moved_file, parts=[FILE])


# -- physics ------------------------------------------------------------------------------------------------


def small_vibration(times: np.ndarray, size: float) -> np.ndarray:
    """Deflections of the body's point over time by the matrix exponential of M q̈ + C q̇ + K q = 0.

    q are displacement and turn of the centre of mass, of which the point is `arm` away.
    """
    arm = POINT - CENTRE
    skew = np.cross(np.eye(3), arm).T  # skew @ θ = θ × arm
    to_point = np.block([[np.eye(3), skew], [np.zeros((3, 3)), np.eye(3)]])
    mass = np.diag([MASS] * 3 + list(INERTIA))
    stiffness = to_point.T @ np.diag([*STIFFNESS, *TURNING]) @ to_point
    damping = to_point.T @ np.diag([*DAMPING, *TURNING_DAMPING]) @ to_point
    there = size * np.array([1.0, -2.0, 1.0, 2.0, 1.0, -3.0])
    moving = size * np.array([3.0, 1.0, 2.0, 5.0, -4.0, 6.0])
    from_point = np.linalg.inv(to_point)
    system = np.block(
        [[np.zeros((6, 6)), np.eye(6)], [-np.linalg.solve(mass, stiffness), -np.linalg.solve(mass, damping)]]
    )
    start = np.concatenate([from_point @ there, from_point @ moving])
    return np.array([(to_point @ (expm(system * time) @ start)[:6])[:3] for time in times])


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_small_vibrations_are_those_in_closed_form(formulation: str) -> None:
    size = 1e-6
    result = hung(size).simulation(formulation=formulation, compiled=False, step=5e-4).run(0.1)
    expected = small_vibration(result.time, size)
    found = np.stack([result[f"rubber.deflection.{axis}"] for axis in "xyz"], axis=1)
    assert np.max(np.abs(found - expected)) < 4e-4 * size


def potential(place: np.ndarray, turned: Rotation, other: np.ndarray, other_turned: Rotation) -> float:
    """Energy of the bushing between two points, from its definition."""
    shift = turned.inv().apply(other - place)
    vector = (turned.inv() * other_turned).as_rotvec()
    angle = np.linalg.norm(vector)
    return 0.5 * float(STIFFNESS @ shift**2 + TURNING @ (vector * np.sin(angle) / angle) ** 2)


def by_scipy(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centres of mass of both bodies over time by Newton and Euler, the bushing's loads from differences of its energy.

    Without dampers, and the energy lost in them therefore zero.
    """
    arm, small = POINT - CENTRE, 1e-6

    def loads(centres: np.ndarray, turns: list[Rotation]) -> np.ndarray:
        """Forces on and moments about the centres of mass: what the energy loses along each motion."""
        result = np.zeros((2, 6))
        for moved, direction in ((one, way) for one in range(2) for way in range(6)):
            energies = []
            for sign in (1.0, -1.0):
                there, turned = centres.copy(), list(turns)
                if direction < 3:
                    there[moved, direction] += sign * small
                else:
                    turned[moved] = Rotation.from_rotvec(sign * small * np.eye(3)[direction - 3]) * turns[moved]
                points = [there[index] + turned[index].apply(arm) for index in range(2)]
                energies.append(potential(points[0], turned[0], points[1], turned[1]))
            result[moved, direction] = -(energies[0] - energies[1]) / (2.0 * small)
        return result

    def rates(_: float, state: np.ndarray) -> np.ndarray:
        centres, velocities, quaternions, spins = np.split(state, [6, 12, 20])
        turns = [Rotation.from_quat(each) for each in quaternions.reshape(2, 4)]
        acting = loads(centres.reshape(2, 3), turns)
        turning, spinning = [], []
        for turn, quaternion, spin, load in zip(
            turns, quaternions.reshape(2, 4), spins.reshape(2, 3), acting, strict=True
        ):
            vector, scalar = quaternion[:3], quaternion[3]
            turning.append(0.5 * np.append(scalar * spin + np.cross(vector, spin), -vector @ spin))
            moment = turn.inv().apply(load[3:])
            spinning.append((moment - np.cross(spin, INERTIA * spin)) / INERTIA)
        return np.concatenate([velocities, (acting[:, :3] / MASS).ravel(), *turning, *spinning])

    start = [
        (np.zeros(3), (0.3, -0.2, 0.4), (0.5, 0.1, -0.3), (1.0, 4.0, -2.0)),
        (np.array([0.05, -0.02, 0.04]), (0.8, 0.5, -0.3), np.zeros(3), (-3.0, 1.0, 2.0)),
    ]
    turns = [Rotation.from_euler("XYZ", angles) for _, angles, _, _ in start]
    arms = [turn.apply(-arm) for turn in turns]
    state = np.concatenate(
        [
            *(place + away for (place, *_), away in zip(start, arms, strict=True)),
            *(np.add(speed, np.cross(spin, away)) for (_, _, speed, spin), away in zip(start, arms, strict=True)),
            *(turn.as_quat() for turn in turns),
            *(turn.inv().apply(spin) for turn, (*_, spin) in zip(turns, start, strict=True)),
        ]
    )
    solution = solve_ivp(rates, (0.0, times[-1]), state, "DOP853", times, rtol=1e-8, atol=1e-9)
    return solution.y[:3].T, solution.y[3:6].T


def undamped(model: CoupledModel) -> CoupledModel:
    mechanism = model.systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    rubber = mechanism.forces[0].model_copy(update={"damping": (0.0, 0.0, 0.0), "turning_damping": (0.0, 0.0, 0.0)})
    return model.model_copy(update={"systems": {"mechanism": mechanism.model_copy(update={"forces": (rubber,)})}})


@pytest.mark.parametrize("formulation", ["dca", "dca-alm"])
def test_two_bodies_move_as_newton_and_euler_say(formulation: str) -> None:
    given = {"solver": "dop853", "relative_tolerance": 1e-10, "absolute_tolerance": 1e-10}
    result = undamped(pair()).simulation(formulation=formulation, compiled=False, **given).run(0.4)
    for name, expected in zip("ab", by_scipy(result.time), strict=True):
        found = np.stack([result[f"{name}.centre.{axis}.position"] for axis in "xyz"], axis=1)
        np.testing.assert_allclose(found, expected, atol=2e-6)
    assert np.max(np.abs(result["energy.drift"])) < 1e-6


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_what_is_lost_is_what_the_dampers_take(formulation: str) -> None:
    result = pair().simulation(formulation=formulation, compiled=False, step=5e-4).run(0.5)
    energy = result["energy.kinetic"] + result["energy.potential"]
    assert result["energy.dissipated"][-1] > 0.2 * energy[0]
    assert energy[0] - energy[-1] == pytest.approx(result["energy.dissipated"][-1], rel=2e-4)
    momentum = np.array([result[f"{name}.centre.{axis}.position"] for name in "ab" for axis in "xyz"]).reshape(2, 3, -1)
    middle = momentum.mean(axis=0)
    straight = middle[:, :1] + (middle[:, -1:] - middle[:, :1]) * result.time / result.time[-1]
    np.testing.assert_allclose(middle, straight, atol=3e-6)


# -- everywhere ---------------------------------------------------------------------------------------------


def test_quantities_are_those_that_the_class_declares(moved: CoupledModel) -> None:
    system = moved.simulation(compiled=False).functions.system
    own = {each.name: each for each in system.parameters if each.name.startswith("rubber.")}
    assert list(own)[:4] == [
        "rubber.stiffness.x",
        "rubber.stiffness.y",
        "rubber.stiffness.z",
        "rubber.turning_stiffness.x",
    ]
    stiffness, damping = own["rubber.stiffness.y"], own["rubber.damping.z"]
    assert (stiffness.unit, stiffness.start, stiffness.minimum) == ("N/m", 3000.0, 0.0)
    assert (stiffness.variability.value, damping.variability.value) == ("fixed", "tunable")
    assert stiffness.description == "stiffness, y"
    assert [each.name for each in system.outputs if each.name.startswith("rubber.")] == [
        f"rubber.deflection.{axis}" for axis in "xyz"
    ]


def test_numbers_that_are_zero_are_parameters_where_they_may_change(moved: CoupledModel) -> None:
    mechanism = moved.systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    zeros = (0.0, 0.0, 0.0)
    stiff, push = mechanism.forces
    loose = stiff.model_copy(update={"turning_stiffness": zeros, "turning_damping": zeros})
    changed = mechanism.model_copy(update={"forces": (loose, push)})
    system = moved.model_copy(update={"systems": {"mechanism": changed}}).simulation(compiled=False).functions.system
    names = [each.name for each in system.parameters if each.name.startswith("rubber.turning")]
    assert names == [f"rubber.turning_damping.{axis}" for axis in "xyz"]


def test_json_means_the_force_where_its_file_is_given(moved_file: Path, tmp_path: Path) -> None:
    again = CoupledModel.from_file(moved_file, parts=[FILE])
    assert again.to_dict() == moved_data()
    other = tmp_path / "other.json"
    other.write_text(moved_file.read_text().replace('"soft-bushing"', '"mount"'))
    with pytest.raises(DataError, match=r"forces\[0\].type is 'mount'; .*--parts FILE"):
        CoupledModel.from_file(other)


@needs_compiler
@pytest.mark.parametrize("backend", ["native", "python"])
def test_units_are_the_run_in_process(moved: CoupledModel, backend: str, tmp_path: Path) -> None:
    (path,) = mbsfmu.export(moved, tmp_path, backend=backend, solver="trapezoidal")
    with zipfile.ZipFile(path) as archive:
        taken = [name for name in archive.namelist() if name.endswith("parts/bushing.py") and "mbsfmu" not in name]
    assert taken == ([] if backend == "native" else ["resources/parts/bushing.py"])
    expected = moved.simulation(compiled=False, solver="trapezoidal").run(0.1)
    result = fmpy.simulate_fmu(str(path), stop_time=0.1, step_size=1e-3, output_interval=1e-3)
    for axis in "xyz":
        name = f"rubber.deflection.{axis}"
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-8, atol=1e-12)
    assert np.ptp(expected["rubber.deflection.y"]) > 1e-3


@needs_compiler
def test_packages_of_units_are_the_run_in_process(moved: CoupledModel, tmp_path: Path) -> None:
    package = next(each for each in mbsfmu.export(moved, tmp_path, layout="separate") if each.suffix == ".ssp")
    expected = moved.simulation(compiled=False, solver="trapezoidal").run(0.1)
    result = mbsfmu.cosimulate(package, step=1e-3, stop=0.1)
    name = "rubber.deflection.y"
    np.testing.assert_allclose(result[f"mechanism.{name}"], expected[name], rtol=1e-8, atol=1e-12)
