"""Parallel cranks that start where all their links are on a line go on as a pendulum."""

from __future__ import annotations

from math import cos, pi

import numpy as np
import pytest
from cranks import parallel_cranks
from scipy.integrate import solve_ivp

from mbsfmu import SimulationError
from mbsfmu.tracing.workspace import Floats

STOP, STEP, SPEED = 0.1, 1e-3, 3.0


def pendulum(angle: float, speed: float, count: int) -> Floats:
    """The crank's angle at the end by the pendulum's equation that the cranks come to, and its speed."""
    inertia, weight = count * (0.2 + 2.0 * 0.25) + 5.0, 9.81 * (count * 2.0 * 0.5 + 5.0)
    start = [angle - 0.5 * pi, speed]
    found = solve_ivp(lambda _, y: [y[1], -weight * cos(y[0]) / inertia], (0.0, STOP), start, rtol=1e-11, atol=1e-11)
    return np.asarray(found.y[:, -1])


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("off", [0.0, 1e-9, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("line", [0.5 * pi, 1.5 * pi])
def test_a_start_on_the_line_or_next_to_it(line: float, off: float, count: int) -> None:
    """Multipliers that grow without bound as the line is neared are no use to the steps that leave it."""
    model = parallel_cranks(line + off, speed=SPEED, count=count)
    result = model.simulation(formulation="penalty", step=STEP, compiled=False).run(STOP)
    angle, speed = pendulum(line + off, SPEED, count)
    assert result["crank_0.angle"][-1] == pytest.approx(angle, abs=2e-5)
    assert result["crank_0.angular_velocity"][-1] == pytest.approx(speed, abs=2e-3)


@pytest.mark.parametrize("count", [2, 3])
def test_compiled_steps_start_there_too(count: int) -> None:
    model = parallel_cranks(0.5 * pi, speed=SPEED, count=count)
    result, compiled = (
        model.simulation(formulation="penalty", step=STEP, compiled=each).run(STOP) for each in (False, True)
    )
    np.testing.assert_allclose(compiled["crank_0.angle"], result["crank_0.angle"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("speed", [1.0, -1.0])
@pytest.mark.parametrize("line", [0.5 * pi, 1.5 * pi])
def test_slow_starts_are_right_or_end_with_a_sentence(line: float, speed: float) -> None:
    """Two cranks under gravity, which hardly leave the line in a step."""
    simulation = parallel_cranks(line, speed=speed, count=2).simulation(
        formulation="penalty", step=STEP, compiled=False
    )
    try:
        result = simulation.run(STOP)
    except SimulationError as error:
        assert "take another formulation" in str(error)  # noqa: PT017 - either will do
    else:
        assert result["crank_0.angle"][-1] == pytest.approx(pendulum(line, speed, 2)[0], abs=2e-5)


def test_double_step_names_what_starts_there() -> None:
    with pytest.raises(SimulationError, match=r"the configuration is singular.*; take dca, hdca or dca-alm$"):
        parallel_cranks(0.5 * pi, speed=1.0, count=2).simulation(compiled=False).run(STOP)


@pytest.mark.parametrize("formulation", ["dca", "hdca", "dca-alm"])
def test_those_start_there(formulation: str) -> None:
    model = parallel_cranks(0.5 * pi, speed=1.0, count=2)
    result = model.simulation(formulation=formulation, solver="trapezoidal", compiled=False).run(STOP)
    assert result["crank_0.angle"][-1] == pytest.approx(pendulum(0.5 * pi, 1.0, 2)[0], abs=2e-5)
