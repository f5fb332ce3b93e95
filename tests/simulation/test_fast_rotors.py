"""Rotors that spin by a seventh of a radian in a step, against the equations of a top in its body's frame."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from mbsfmu import CoupledModel, Free, Mechanism, OrientationSensor, PointSensor, RigidBody, Spherical
from mbsfmu.simulation.run_result import Result

Floats = NDArray[np.float64]
FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
MASS, GRAVITY, STOP = 15.0, np.array([0.0, 0.0, -9.81]), 0.2
# A disc on an arm of 1 m, as the benchmark of heavy tops has it: the axis, its moment of inertia, and those across.
SPIN, AXIAL, ACROSS = 150.0, 0.46875, 0.234375
TILTING = -4.61538


def axes(axis: int) -> tuple[Floats, Floats]:
    """Return the axis of the spin and that of the tilt, cyclically after it."""
    return np.eye(3)[axis], np.eye(3)[(axis + 1) % 3]


def heavy_top(axis: int = 1) -> CoupledModel:
    """A top whose axis lies along x, y or z of its body at first."""
    along, across = axes(axis)
    inertia = np.where(along > 0.0, AXIAL, ACROSS)
    gravity = GRAVITY if axis == 1 else np.linalg.norm(GRAVITY) * -across
    body = RigidBody(name="rotor", mass=MASS, inertia=tuple(inertia), centre=tuple(along), points={"tip": tuple(along)})
    mechanism = Mechanism(
        gravity=tuple(gravity),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(body,),
        joints=(
            Spherical(
                name="ball",
                parent="ground.O",
                child="rotor.origin",
                angular_velocity=tuple(SPIN * along + TILTING * across),
            ),
        ),
        sensors=(
            PointSensor(name="tip", point="rotor.tip", measures=("position",)),
            OrientationSensor(name="turn", point="rotor.origin", axes="body"),
        ),
    )
    return CoupledModel(name="top", systems={"mechanism": mechanism})


@cache
def tip_of(stop: float, count: int, axis: int = 1) -> Floats:
    """Return where the tip is, shape (count, 3): J ω̇ + ω × J ω = m c × Rᵀ g, with the quaternion of R."""
    along, across = axes(axis)
    inertia = np.where(along > 0.0, AXIAL, ACROSS) + MASS * (1.0 - along)
    gravity = GRAVITY if axis == 1 else np.linalg.norm(GRAVITY) * -across

    def rates(_: float, y: Floats) -> Floats:
        quaternion, spin = y[:4], y[4:]
        weight = Rotation.from_quat(quaternion, scalar_first=True).inv().apply(MASS * gravity)
        w, vector = quaternion[0], quaternion[1:]
        turning = 0.5 * np.concatenate([[-vector @ spin], w * spin + np.cross(vector, spin)])
        return np.concatenate([turning, (np.cross(along, weight) - np.cross(spin, inertia * spin)) / inertia])

    start = np.concatenate([[1.0, 0.0, 0.0, 0.0], SPIN * along + TILTING * across])
    found = solve_ivp(rates, (0.0, stop), start, "DOP853", np.linspace(0.0, stop, count), rtol=1e-11, atol=1e-11)
    return Rotation.from_quat(found.y[:4].T, scalar_first=True).apply(along)


def error_of(result: Result, axis: int = 1) -> float:
    tip = np.stack([result[f"tip.position.{each}"] for each in "xyz"], axis=1)
    return float(np.abs(tip - tip_of(float(result.time[-1]), len(result.time), axis)).max())


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_fast_spin_costs_no_accuracy_about_any_axis(axis: int, formulation: str) -> None:
    """The axis falls and precesses by a radian; what spins evenly adds nothing to the error of that."""
    simulation = heavy_top(axis).simulation(formulation=formulation, solver="trapezoidal", step=1e-3, compiled=False)
    result = simulation.run(STOP)
    assert error_of(result, axis) < 1e-5
    assert result.largest("energy.drift") < 0.01


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_error_of_a_rotor_is_of_second_order_and_as_it_is_told(formulation: str) -> None:
    """References change in the run, and the estimate goes through."""
    errors = []
    for step in (2e-3, 1e-3):
        simulation = heavy_top().simulation(formulation=formulation, solver="trapezoidal", step=step)
        result = simulation.run(0.5, output_step=2e-3)
        errors.append(error_of(result))
        assert result.error.share is not None
        record = simulation.solver.error_record
        assert record is not None
        index = record.measure.names.index("tip.position.z")
        told = simulation.run_loop.present.error_record[index]
        off = np.abs(result["tip.position.z"] - tip_of(float(result.time[-1]), len(result.time))[:, 2]).max()
        assert off / 3.0 < told < 3.0 * off
    assert 3.5 < errors[0] / errors[1] < 4.5


def short_pendulum() -> CoupledModel:
    """A ball on 5 cm that falls about the first of its axes: by more than a radian when it turns by 0.01 in a step."""
    place = (0.0, 0.0, 0.05)
    body = RigidBody(name="rotor", mass=1.0, inertia=(1e-4,) * 3, centre=place)
    joint = Spherical(name="ball", parent="ground.O", child="rotor.origin", angular_velocity=(2.0, 0.5, 0.5))
    mechanism = Mechanism(gravity=tuple(GRAVITY), ground={"O": (0.0, 0.0, 0.0)}, bodies=(body,), joints=(joint,))
    return CoupledModel(name="pendulum", systems={"mechanism": mechanism})


@pytest.mark.parametrize("model", [partial(heavy_top, 0), short_pendulum], ids=["top", "pendulum"])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_python_and_c_move_references_alike(formulation: str, model: Callable[[], CoupledModel]) -> None:
    runs = [
        model().simulation(formulation=formulation, solver="trapezoidal", step=1e-3, compiled=compiled).run(STOP)
        for compiled in (True, False)
    ]
    for name in runs[0].names:
        largest = np.abs(runs[1][name]).max()
        np.testing.assert_allclose(runs[0][name], runs[1][name], rtol=0.0, atol=1e-9 * largest + 1e-7, err_msg=name)
    assert runs[0].error.share == pytest.approx(runs[1].error.share, rel=1e-4)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_tumbling_body_is_right_as_told_or_told(formulation: str) -> None:
    """Free of loads about its middle axis it flips; the angular momentum stays, the energy too."""
    body = RigidBody(name="body", mass=1.0, inertia=(1.0, 2.0, 3.0))
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(body,),
        joints=(Free(name="free", parent="ground.O", child="body.origin", angular_velocity=(0.01, 5.0, 0.02)),),
        sensors=(OrientationSensor(name="turn", point="body.origin", axes="body"),),
    )
    model = CoupledModel(name="tumbling", systems={"mechanism": mechanism})
    options: dict[str, Any] = {"formulation": formulation, "solver": "trapezoidal", "step": 2e-3}
    simulation = model.simulation(**options)
    result = simulation.run(5.0, output_step=0.01)
    inertia = np.array([1.0, 2.0, 3.0])

    def rates(_: float, spin: Floats) -> Floats:
        return -np.cross(spin, inertia * spin) / inertia

    exact = solve_ivp(rates, (0.0, 5.0), [0.01, 5.0, 0.02], "DOP853", result.time, rtol=1e-12, atol=1e-12).y
    record = simulation.solver.error_record
    assert record is not None
    for row, each in zip(exact, "xyz", strict=True):
        name = f"turn.angular_velocity.{each}"
        off = np.abs(result[name] - row).max()
        told = simulation.run_loop.present.error_record[record.measure.names.index(name)]
        assert off / 3.0 < told < 3.0 * off
