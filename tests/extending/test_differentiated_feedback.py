"""Sensitivities of runs with acceleration feed-through, or a nonlinear loop, against complex steps of their rule."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from looping import GIVEN, SLOPE, Feeling, Gain, Tank
from oscillator_in_closed_form import DAMPING, MASS, START, STIFFNESS, oscillator

from mbsfmu import CoupledModel
from mbsfmu.native import many_points

COMPLEX, STEP, STOP = 1e-30, 1e-3, 0.2
ADDED, LAG, SQUARE = 1.5, 0.01, -0.5


@pytest.fixture(params=[True, False], ids=["compiled", "interpreted"])
def options(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Options of a run, with functions that are compiled at once or never."""
    monkeypatch.setattr(many_points, "_NOTICED", -1.0 if request.param else 1e9)
    monkeypatch.setattr(many_points, "_PATIENCE", (-1.0, 0.0))
    return {"stop": STOP, "step": STEP, "newton_tolerance": 1e-13}


def felt(mass: Any = MASS, added: Any = ADDED) -> tuple[Any, Any]:
    """x, v and what follows a, shape (times, 3), and a, by trapezoidal steps of the linear equations."""
    row = np.array([-STIFFNESS, -DAMPING, 0.0]) / (mass + added)
    matrix = np.array([[0.0, 1.0, 0.0], row, (row - np.array([0.0, 0.0, 1.0])) / LAG])
    forward = np.linalg.solve(np.eye(3) - 0.5 * STEP * matrix, np.eye(3) + 0.5 * STEP * matrix)
    states = [np.array([START, 1.0, 0.0], dtype=complex)]
    for _ in range(round(STOP / STEP)):
        states.append(forward @ states[-1])
    return np.array(states), np.array(states) @ row


def test_a_force_that_follows_the_acceleration(options: dict[str, Any]) -> None:
    """By the mass, and by what the force adds to it; ẋ of a state depends on the acceleration."""
    lines = (("mechanism.slider.acceleration", "feeling.acceleration"), ("feeling.force", "mechanism.motor.force"))
    systems = {"mechanism": oscillator(driven=False).systems["mechanism"], "feeling": Feeling()}
    model = CoupledModel(name="felt", systems=systems, connections=lines)
    outputs = ["slider.displacement", "*followed", "slider.acceleration"]
    names = ["slider.mass", "feeling.inertia"]
    found = model.sensitivities(names, outputs, **options)
    for name, given in zip(names, ({"mass": MASS + COMPLEX * 1j}, {"added": ADDED + COMPLEX * 1j}), strict=True):
        states, accelerations = felt(**given)
        for output, exact in (
            ("slider.displacement", states[:, 0]),
            ("followed", states[:, 2]),
            ("slider.acceleration", accelerations),
        ):
            scale = np.abs(exact.imag / COMPLEX).max()
            derivative = found.derivative(output, name)
            np.testing.assert_allclose(derivative, exact.imag / COMPLEX, atol=1e-9 * scale)
    gradient = model.gradient("end(slider.acceleration)", names, **options).parameters
    np.testing.assert_allclose(list(gradient.values()), found.derivatives[-1, -1], rtol=1e-9)


def ring(gain: Any, upper: bool) -> Any:
    """x of ẋ = u, u = given + gain y², y = x + slope u, on one branch, by trapezoidal steps."""
    sign = 1.0 if upper else -1.0

    def rate(x: Any) -> Any:
        y = (1.0 - sign * np.sqrt(1.0 - 4.0 * SLOPE * gain * (x + SLOPE * GIVEN))) / (2.0 * SLOPE * gain)
        return GIVEN + gain * y**2

    found = [0.0 + 0.0j]
    for _ in pairwise(range(round(STOP / STEP) + 1)):
        before, x = found[-1], found[-1]
        for _ in range(60):  # a contraction by some hundredths
            x = before + 0.5 * STEP * (rate(before) + rate(x))
        found.append(x)
    return np.array(found)


@pytest.mark.parametrize(("begin", "upper"), [(0.0, True), (-8.0, False)])
def test_a_loop_that_is_solved_by_iteration_stays_on_its_branch(
    options: dict[str, Any], begin: float, upper: bool
) -> None:
    """The solution depends on where its iteration begins."""
    systems = {"tank": Tank(), "gain": Gain(how="square", gain=SQUARE, begin=begin)}
    lines = (("tank.y", "gain.measured"), ("gain.told", "tank.u"))
    model = CoupledModel(name="ring", systems=systems, connections=lines, step=STEP)
    found = model.sensitivities(["gain.gain"], ["*x"], **options)
    exact = ring(SQUARE + COMPLEX * 1j, upper)
    np.testing.assert_allclose(found["x"], exact.real, atol=1e-9)
    np.testing.assert_allclose(found.derivative("x", "gain.gain"), exact.imag / COMPLEX, rtol=1e-7, atol=1e-10)
