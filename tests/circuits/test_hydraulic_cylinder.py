"""Friction and end stops of the cylinder: closed forms, and that neither gives energy away."""

from __future__ import annotations

from math import exp, pi, tanh

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from hydraulics.cylinders import end_stop_force, friction, ring

STROKE, STIFFNESS = 0.9, 1e6
SEALS = {
    "viscous": 300.0,
    "coulomb": 120.0,
    "static": 200.0,
    "stribeck_velocity": 0.02,
    "smoothing_velocity": 1e-4,
}
velocities = st.floats(-5.0, 5.0)
dampings = st.floats(0.0, 50.0)


def seals(velocity: float, **changes: float) -> float:
    return float(friction(np.asarray(velocity), **{**SEALS, **changes}))


def stop(chamber: float, velocity: float, damping: float) -> float:
    return float(end_stop_force(np.asarray(chamber), STROKE, np.asarray(velocity), STIFFNESS, damping))


def test_areas_are_of_disc_and_ring() -> None:
    piston, rod = (float(ring(np.asarray(0.08), inner)) for inner in (0.0, 0.035))
    assert piston == pytest.approx(pi * 0.04**2, rel=1e-14)
    assert rod == pytest.approx(pi * (0.04 + 0.0175) * (0.04 - 0.0175), rel=1e-14)


@given(velocities)
def test_friction_is_odd_and_dissipates(velocity: float) -> None:
    assert seals(-velocity) == -seals(velocity)
    assert seals(velocity) * velocity >= 0.0


def test_friction_falls_from_static_to_coulomb() -> None:
    # Far above the smoothing velocity the sign is 1, and the curve is Stribeck's.
    dry = {"viscous": 0.0}
    assert seals(1e-3, **dry) == pytest.approx(120.0 + 80.0 * exp(-((1e-3 / 0.02) ** 2)), rel=1e-7)
    assert seals(0.02, **dry) == pytest.approx(120.0 + 80.0 / exp(1.0), rel=1e-12)
    assert seals(1.0, **dry) == pytest.approx(120.0, rel=1e-12)
    assert seals(1.0) == pytest.approx(120.0 + 300.0, rel=1e-12)


def test_friction_is_smooth_through_standstill() -> None:
    assert seals(0.0) == 0.0
    slope = (seals(1e-9) - seals(-1e-9)) / 2e-9
    assert slope == pytest.approx(300.0 + 200.0 / 1e-4, rel=1e-6)
    assert seals(1e-4, viscous=0.0) == pytest.approx(200.0 * tanh(1.0), rel=1e-4)


@given(st.floats(0.0, STROKE), velocities, dampings)
def test_stops_are_silent_within_the_stroke(chamber: float, velocity: float, damping: float) -> None:
    assert stop(chamber, velocity, damping) == 0.0


@given(st.floats(1e-9, 0.05), velocities, dampings)
def test_stops_only_push_back(depth: float, velocity: float, damping: float) -> None:
    assert stop(-depth, velocity, damping) >= 0.0
    assert stop(STROKE + depth, velocity, damping) <= 0.0


@given(st.floats(1e-6, 0.05), dampings)
def test_stops_at_rest_are_springs(depth: float, damping: float) -> None:
    assert stop(-depth, 0.0, damping) == pytest.approx(STIFFNESS * depth, rel=1e-9)
    assert stop(STROKE + depth, 0.0, damping) == pytest.approx(-STIFFNESS * depth, rel=1e-9)


@given(st.floats(1e-6, 0.05), st.floats(1e-3, 5.0), st.floats(0.1, 50.0))
def test_stops_resist_more_going_in_than_out(depth: float, speed: float, damping: float) -> None:
    assert stop(-depth, -speed, damping) > stop(-depth, speed, damping)
    assert stop(STROKE + depth, speed, damping) < stop(STROKE + depth, -speed, damping)


def rebound(start: float, velocity: float, damping: float) -> float:
    """Return the speed with which a mass of 100 kg comes back from a stop."""

    def rates(_: float, state: np.ndarray) -> list[float]:
        return [state[1], stop(state[0], state[1], damping) / 100.0]

    run = solve_ivp(rates, (0.0, 0.2), [start, velocity], rtol=1e-9, atol=1e-12, max_step=1e-3)
    assert 0.0 < run.y[0, -1] < STROKE, "it has not come back"
    return float(-run.y[1, -1] / velocity)


@pytest.mark.parametrize(("start", "velocity"), [(0.0, -0.5), (STROKE, 0.5)])
def test_stops_take_energy_only_through_damping(start: float, velocity: float) -> None:
    assert rebound(start, velocity, 0.0) == pytest.approx(1.0, rel=1e-6)
    assert 0.0 < rebound(start, velocity, 1.0) < 0.8
