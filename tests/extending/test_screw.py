"""A joint of a user's file goes wherever built-in ones go, in the tree, cut and in absolute coordinates."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import fmpy
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from screw import Screw

import mbsfmu
from mbsfmu import (
    Array,
    BodyPoint,
    ClosureEquation,
    CoupledModel,
    Cylindrical,
    DataError,
    Direction,
    Gap,
    InputError,
    Joint,
    JointElement,
    JointSpringDamper,
    Mechanism,
    Revolute,
    RigidBody,
    gaps,
    offsets,
    tilts,
)
from mbsfmu.compiling.compiler import has_compiler

FILE = Path(__file__).with_name("screw.py")
FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
MASS, INERTIA, CENTRE, PITCH, GRAVITY = 2.0, (0.02, 0.025, 0.03), (0.1, -0.05, 0.04), 0.05, 9.81

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


def nut(**fields: Any) -> RigidBody:
    return RigidBody(**{"name": "nut", "mass": MASS, "inertia": INERTIA, "centre": CENTRE, **fields})


def hung(kind: str) -> CoupledModel:
    """A nut on a vertical screw, which turns as it sinks; also turned in the joint, seen from the other side, cut."""
    joints: dict[str, tuple[Joint, ...]] = {
        "tree": (Screw(name="screw", parent="ground.O", child="nut.origin", pitch=PITCH),),
        "turned": (
            Screw(name="screw", parent="ground.O", child="nut.origin", pitch=PITCH, orientation=(0.0, 0.0, 2.0)),
        ),
        "reversed": (Screw(name="screw", parent="nut.origin", child="ground.O", pitch=PITCH),),
        "cut": (
            Cylindrical(name="guide", parent="ground.O", child="nut.origin"),
            Screw(name="screw", parent="ground.O", child="nut.origin", pitch=PITCH, cut=True),
        ),
    }
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -GRAVITY), ground={"O": (0.0, 0.0, 0.0)}, bodies=(nut(),), joints=joints[kind]
    )
    return CoupledModel(name="hung", systems={"mechanism": mechanism}, step=1e-3)


def lever(*, cut: bool = False, spring: bool = False) -> CoupledModel:
    """A lever that turns about a horizontal axis, and a nut on a skew screw at its end."""
    axis, end = (0.6, 0.0, 0.8), {"parent": "lever.end", "child": "nut.origin"}
    screw = Screw(name="screw", axis=axis, pitch=PITCH, angular_velocity=20.0, cut=cut, **end)
    guide = Cylindrical(name="guide", axis=axis, angular_velocity=20.0, velocity=20.0 * PITCH, **end)
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -GRAVITY),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            RigidBody(name="lever", mass=1.0, inertia=(0.02, 0.1, 0.1), points={"end": (0.5, 0.1, -0.2)}),
            nut(),
        ),
        joints=(
            Revolute(name="O", parent="ground.O", child="lever.origin", axis=(0.0, 1.0, 0.0), angular_velocity=3.0),
            *((guide, screw) if cut else (screw,)),
        ),
        forces=(JointSpringDamper(name="spring", joint="screw", stiffness=0.5, damping=0.01),) if spring else (),
    )
    return CoupledModel(name="lever", systems={"mechanism": mechanism}, step=5e-4)


# -- physics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "formulation"),
    [
        *(("cut", each) for each in FORMULATIONS),
        ("tree", "dca-alm"),
        ("tree", "hdca"),
        ("turned", "dca"),
        ("reversed", "double-step"),
    ],
)
def test_nut_sinks_with_constant_acceleration(kind: str, formulation: str) -> None:
    """Turning and sinking masses are one inertia J + m r² + m p²; joint coordinates have no error then."""
    result = hung(kind).simulation(formulation=formulation, compiled=False).run(1.0)
    inertia = INERTIA[2] + MASS * (CENTRE[0] ** 2 + CENTRE[1] ** 2) + MASS * PITCH**2
    acceleration = -MASS * GRAVITY * PITCH / inertia
    seen = -1.0 if kind == "reversed" else 1.0
    turns = 0.5 * acceleration * result.time**2
    error = 1e-4 if formulation == "dca-alm" else 1e-6
    assert turns[-1] < -2.0 * np.pi
    np.testing.assert_allclose(seen * result["nut.angle"], turns, rtol=error, atol=error)
    np.testing.assert_allclose(result["nut.centre.z.position"], CENTRE[2] + PITCH * turns, atol=error)
    force = MASS * (GRAVITY + PITCH * acceleration)
    np.testing.assert_allclose(seen * result["screw.force.z"], force, rtol=error)
    np.testing.assert_allclose(seen * result["screw.moment.z"], -PITCH * force, rtol=error)
    assert np.max(np.abs(result["energy.drift"])) < 10.0 * error


def points_of_mass(angles: Array) -> Array:
    """Places of masses that are equimomental to lever and nut, in m, by geometry alone; shape (12, 3)."""
    lever_turn = Rotation.from_rotvec([0.0, angles[0], 0.0])
    axis = np.array([0.6, 0.0, 0.8])
    nut_turn = lever_turn * Rotation.from_rotvec(axis * angles[1])
    origin = lever_turn.apply(np.array([0.5, 0.1, -0.2]) + axis * PITCH * angles[1])
    lever_arms, nut_arms = arms(1.0, (0.02, 0.1, 0.1)), arms(MASS, INERTIA)
    return np.concatenate([lever_turn.apply(lever_arms), origin + nut_turn.apply(np.array(CENTRE) + nut_arms)])


def arms(mass: float, inertia: Sequence[float]) -> Array:
    """Arms of six equal masses with given moments of inertia."""
    squares = (0.5 * sum(inertia) - np.array(inertia)) * 3.0 / mass
    return np.concatenate([np.diag(np.sqrt(squares)), -np.diag(np.sqrt(squares))])


MASSES = np.repeat([1.0, MASS], 6) / 6.0


@cache
def by_scipy(times: tuple[float, ...]) -> Array:
    """Angles of lever and screw over time by Lagrange's equations of the points of mass, from differences."""
    small = 1e-4

    def slope(angles: Array, way: Array) -> Array:
        return (points_of_mass(angles + small * way) - points_of_mass(angles - small * way)) / (2.0 * small)

    def rates(_: float, state: Array) -> Array:
        angles, speeds = state[:2], state[2:]
        columns = [slope(angles, way) for way in np.eye(2)]
        inertia = np.array([[np.sum(MASSES[:, None] * one * other) for other in columns] for one in columns])
        middle, ahead, behind = (points_of_mass(angles + sign * small * speeds) for sign in (0.0, 1.0, -1.0))
        bending = (ahead - 2.0 * middle + behind) / small**2  # accelerations without angular accelerations
        missing = MASSES[:, None] * (np.array([0.0, 0.0, -GRAVITY]) - bending)
        loads = np.array([np.sum(missing * column) for column in columns])
        return np.concatenate([speeds, np.linalg.solve(inertia, loads)])

    start = np.array([0.0, 0.0, 3.0, 20.0])
    return solve_ivp(rates, (0.0, times[-1]), start, "DOP853", times, rtol=1e-9, atol=1e-9).y[:2]


@pytest.mark.parametrize("cut", [False, True], ids=["tree", "cut"])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_nut_on_a_moving_lever_moves_as_lagrange_says(formulation: str, cut: bool) -> None:
    result = lever(cut=cut).simulation(formulation=formulation, compiled=False).run(0.35)
    expected = by_scipy(tuple(result.time.tolist()))
    np.testing.assert_allclose(result["lever.angle"], expected[0], atol=5e-6)
    np.testing.assert_allclose(result["nut.angle"], expected[1], atol=8e-5)
    assert np.ptp(expected[1]) > 2.0 * np.pi
    assert np.max(np.abs(result["energy.drift"])) < 4e-4


def test_springs_load_a_screw_as_they_load_a_hinge() -> None:
    simulation = lever(spring=True).simulation(compiled=False)
    system = simulation.functions.system
    assert next(each for each in system.parameters if each.name == "spring.stiffness").unit == "N.m/rad"
    result = simulation.run(0.4)
    assert result["energy.dissipated"][-1] > 0.1
    assert np.max(np.abs(result["energy.drift"])) < 4e-4


# -- everywhere ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def from_json(tmp_path_factory: pytest.TempPathFactory) -> CoupledModel:
    path = tmp_path_factory.mktemp("hung") / "hung.json"
    path.write_text(json.dumps(hung("cut").to_dict()))
    return CoupledModel.from_file(path, parts=[FILE])


def test_json_means_the_joint_where_its_file_is_given(from_json: CoupledModel, tmp_path: Path) -> None:
    assert from_json.to_dict() == hung("cut").to_dict()
    path = tmp_path / "other.json"
    path.write_text(json.dumps(hung("tree").to_dict()).replace('"type": "screw"', '"type": "worm"'))
    with pytest.raises(DataError, match=r"joints\[0\].type is 'worm'; .*--parts FILE"):
        CoupledModel.from_file(path)


@needs_compiler
@pytest.mark.parametrize("backend", ["native", "python"])
def test_units_are_the_run_in_process(from_json: CoupledModel, backend: str, tmp_path: Path) -> None:
    (path,) = mbsfmu.export(from_json, tmp_path, backend=backend)
    with zipfile.ZipFile(path) as archive:
        taken = [name for name in archive.namelist() if name.endswith("screw.py")]
    assert taken == ([] if backend == "native" else ["resources/parts/screw.py"])
    expected = from_json.simulation(compiled=False).run(0.1)
    result = fmpy.simulate_fmu(str(path), stop_time=0.1, step_size=1e-3, output_interval=1e-3)
    np.testing.assert_allclose(result["nut.angle"], expected["nut.angle"], rtol=1e-8, atol=1e-10)


@needs_compiler
def test_native_units_in_absolute_coordinates_are_the_run_in_process(from_json: CoupledModel, tmp_path: Path) -> None:
    (path,) = mbsfmu.export(from_json, tmp_path, formulation="dca-alm")
    expected = from_json.simulation(compiled=False, formulation="dca-alm").run(0.1)
    result = fmpy.simulate_fmu(str(path), stop_time=0.1, step_size=1e-3, output_interval=1e-3)
    np.testing.assert_allclose(result["nut.angle"], expected["nut.angle"], rtol=1e-8, atol=1e-9)


@needs_compiler
def test_packages_of_units_are_the_run_in_process(from_json: CoupledModel, tmp_path: Path) -> None:
    package = next(each for each in mbsfmu.export(from_json, tmp_path, layout="separate") if each.suffix == ".ssp")
    expected = from_json.simulation(compiled=False).run(0.1)
    result = mbsfmu.cosimulate(package, step=1e-3, stop=0.1)
    np.testing.assert_allclose(result["mechanism.nut.angle"], expected["nut.angle"], rtol=1e-8, atol=1e-10)


# -- refusals -----------------------------------------------------------------------------------------------


class Odd(Joint):
    """A hinge whose elements and equations are what a test says."""

    type: Literal["test-odd-joint"] = "test-odd-joint"
    axis: Direction = (0.0, 0.0, 1.0)
    case: str

    @property
    def elements(self) -> tuple[JointElement, ...]:
        axis = (0.0, 1.0, 0.0) if self.case == "other axis" else self.axis
        hinge = JointElement(False, axis, "", 0.0, 0.0, 0.1 if self.case in ("pitch", "two with a pitch") else 0.0)
        slide = JointElement(True, axis, "", 0.0, 0.0)
        return {"two": (hinge, slide), "two with a pitch": (hinge, slide), "slide": (slide,)}.get(self.case, (hinge,))

    def equations(self) -> Mapping[str, ClosureEquation]:
        hinged = {**gaps(), **tilts(self.axis, self.orientation)}
        if self.case == "two with a pitch":
            return {**offsets(self.axis), **tilts(self.axis, self.orientation)}
        if self.case == "twice":
            return {**hinged, "z": hinged["y"]}
        if self.case in ("rates", "wrenches", "branch"):
            return {**hinged, "z": Wrong(np.array([0.0, 0.0, 1.0]), self.case)}
        return hinged


class Wrong(Gap):
    """A gap whose functions do what a test says."""

    def __init__(self, direction: Array, case: str) -> None:
        super().__init__(direction)
        object.__setattr__(self, "case", case)
        self.case: str

    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        value = super().value(parent, child)
        if self.case == "branch" and value > 0.0:  # branches
            return 2.0 * value
        return value

    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        on_parent, on_child = super().wrenches(parent, child)
        return on_parent, (2.0 if self.case == "wrenches" else 1.0) * on_child

    def wrench_rates(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        on_parent, on_child = super().wrench_rates(parent, child)
        return on_parent, (-1.0 if self.case == "rates" else 1.0) * on_child


def run_odd(case: str) -> None:
    joint = Odd(name="odd", parent="ground.O", child="nut.origin", case=case)
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(nut(),), joints=(joint,))
    CoupledModel(name="odd", systems={"mechanism": mechanism}).simulation(compiled=False)


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("two", "it has 2 elements and 5 equations; together they must be 6"),
        ("two with a pitch", "it has an element with a pitch; that must be a hinge, and the joint's only element"),
        ("slide", "what its elements allow violates its equation 'z' by"),
        ("pitch", "what its elements allow violates its equation 'z' by"),
        ("other axis", "what its elements allow violates its equation 'tilt 2' by"),
        ("twice", "its 5 equations are not independent of each other"),
        ("wrenches", "its equation 'z' has wrenches that its value does not have"),
        ("rates", "its equation 'z' has wrench_rates that its value does not have"),
        ("branch", "branches on a value"),
    ],
)
def test_joints_that_do_wrong_are_refused(case: str, sentence: str) -> None:
    with pytest.raises((DataError, InputError)) as caught:
        run_odd(case)
    assert "'odd'" in str(caught.value)
    assert sentence in str(caught.value)


def test_joints_that_do_right_are_taken() -> None:
    run_odd("none")


def test_screw_without_a_pitch_is_refused() -> None:
    with pytest.raises(DataError, match="pitch is 0 m/rad"):
        Screw(name="screw", parent="ground.O", child="nut.origin", pitch=0.0)


def test_joint_without_motion_or_constraint_is_refused() -> None:
    def define() -> None:
        class Nothing(Joint):
            type: Literal["test-nothing"] = "test-nothing"

    with pytest.raises(DataError, match="class Nothing: a joint has elements, equations, or both"):
        define()
