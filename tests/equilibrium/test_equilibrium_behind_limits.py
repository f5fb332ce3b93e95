"""Rest that lies behind limits, dead zones, overlaps and shut valves; what is at fault where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import cos, pi, sin, sqrt

import casadi as ca
import numpy as np
import pytest
from rest_machines import (
    BAR,
    BORE,
    GRAVITY,
    OIL,
    chain,
    controlled,
    crane,
    pid,
    plungers,
    spool,
    table,
    thrust_of_crane,
    torques,
    turned_spring,
)

from hydraulics import CheckValve, PressureSource, Throttle, closed_centre
from mbsfmu import CoupledModel, Gain, Integrator, SimulationError
from mbsfmu.equilibrium import search
from mbsfmu.equilibrium.damped_newton import StaticEquilibrium, newton
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.initial_guess import fitted
from mbsfmu.equilibrium.search import carried, nearest
from mbsfmu.tracing.symbols import leaking
from mbsfmu.tracing.workspace import Floats


@pytest.mark.parametrize("limit", [100.0, 20.0])
@pytest.mark.parametrize("sampled", [False, True])
def test_command_that_the_guess_leaves_at_its_limit(limit: float, sampled: bool) -> None:
    """M = m g l cos φ from a setpoint that is 1.2 rad away: beyond its limits a command does not answer."""
    model = controlled(chain([0.3], [1.0], [10.0]), [pid(limit, sampled=sampled)])
    found = model.equilibrium({"machine.b0.angle": 1.2}, ["c0.setpoint"])
    assert found["c0.setpoint"] == pytest.approx(1.2, rel=1e-9)
    assert found["c0.command"] == pytest.approx(10.0 * GRAVITY * 0.5 * cos(1.2), rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_setpoints_of_arms_whose_rest_is_known(seed: int) -> None:
    """Random arms, tilted, with limits just above what statics say: the pose is chosen, then its controllers."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 4))
    lengths, masses = random.uniform(0.3, 2.0, count), 10.0 ** random.uniform(0.0, 3.0, count)
    tilt, pose = random.uniform(-pi, pi), random.uniform(-pi, pi, count)
    gravity = (GRAVITY * sin(tilt), -GRAVITY * cos(tilt), 0.0)
    needed = torques(pose, lengths, masses, gravity)
    gains = np.max(np.abs(needed)) * 10.0 ** random.uniform(0.0, 1.5, count)
    controllers = [
        pid(1.05 * abs(needed[k]) + 1e-3 * gains[k], proportional=gains[k], integral=0.0, derivative=0.0)
        for k in range(count)
    ]
    model = controlled(chain(pose + random.normal(0.0, 1.0, count), lengths, masses, gravity), controllers)
    held = {f"machine.b{k}.angle": float(pose[k]) for k in range(count)}
    found = model.equilibrium(held, [f"c{k}.setpoint" for k in range(count)])
    for k in range(count):
        assert found[f"c{k}.setpoint"] == pytest.approx(pose[k] + needed[k] / gains[k], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("guess", [0.0, -3.0])
def test_command_behind_a_limit_and_a_dead_zone(guess: float) -> None:
    """Of u, what is beyond 0.2 turns a spring: k φ = g (u − 0.2)."""
    found = turned_spring(0.2, 50.0, 80.0).equilibrium({"machine.wheel.angle": 0.5}, {"limit.input": guess})
    assert found["limit.input"] == pytest.approx(0.2 + 50.0 * 0.5 / 80.0, rel=1e-9)


ABSOLUTE = 1000.0 * GRAVITY / (pi / 4.0 * BORE**2) + 101325.0
"""What carries the mass, in Pa."""
DRAINED = 0.7 * pi / 4.0 * 1e-3**2 * sqrt(2.0 * (ABSOLUTE - BAR) / OIL.density)
"""What flows through the drain then, in m³/s."""


@pytest.mark.parametrize("guess", [0.0, -0.3])
def test_spool_that_begins_in_its_overlap(guess: float) -> None:
    """Oil for the drain comes through an edge that is open in proportion beyond 10 %: Q = Q_r x √(Δp / Δp_r)."""
    valve = spool("valve", closed_centre(0.1), "a", b="b")
    bleed = Throttle(name="bleed", inlet="b", outlet="T", orifice_diameter=2e-3, discharge_coefficient=0.7)
    parts = (PressureSource(name="pump", node="P", pressure=60.0 * BAR), valve, bleed)
    model = table(parts, {"a": 5.0 * BAR, "b": 2.0 * BAR}, {"circuit.valve.command": guess})
    found = model.equilibrium({"machine.load.displacement": 1.4}, ["circuit.valve.command"])
    opening = DRAINED / 1e-3 / sqrt((60.0 * BAR - ABSOLUTE) / (10.0 * BAR))
    assert found["circuit.valve.command"] == pytest.approx(0.1 + 0.9 * opening, rel=1e-3)
    assert found["circuit.a.pressure"] == pytest.approx(ABSOLUTE, rel=1e-9)


@pytest.mark.parametrize("guess", [0.0, 1.0])
def test_valves_that_are_open_by_what_leaks(guess: float) -> None:
    """Two commands at once, 0.5 and 2 % beyond the overlap: Q = Q_r x √(Δp / Δp_r), whatever is guessed."""
    diameters = (0.65e-3, 1.3e-3)
    asked = [f"circuit.valve{k}.command" for k in range(2)]
    model = plungers((1000.0, 1000.0), diameters, (0.05, 0.05), 40.0 * BAR)
    found = model.equilibrium("position", dict.fromkeys(asked, guess))
    for k, diameter in enumerate(diameters):
        drained = DRAINED * (diameter / 1e-3) ** 2
        opening = drained / 1e-3 / sqrt((60.0 * BAR - found[f"circuit.v{k}.pressure"]) / (10.0 * BAR))
        assert found[asked[k]] == pytest.approx(0.05 + 0.95 * opening, rel=1e-3)
        assert found[f"circuit.a{k}.pressure"] == pytest.approx(ABSOLUTE, rel=1e-9)


def test_check_valve_that_begins_shut() -> None:
    """The source has to be above the load before any of it counts; what flows is what the drain takes."""
    check = CheckValve(
        name="check", inlet="P", outlet="a", rated_flow=1e-4, cracking_pressure=1.0 * BAR, full_pressure=5.0 * BAR
    )
    pump = PressureSource(name="pump", node="P", pressure=2.0 * BAR)
    found = table((pump, check), {"a": 30.0 * BAR}, {}).equilibrium(
        {"machine.load.displacement": 1.4}, ["circuit.pump.pressure"]
    )
    assert found["circuit.pump.pressure"] - ABSOLUTE > 1.0 * BAR
    assert found["circuit.check.flow"] == pytest.approx(DRAINED, rel=1e-3)


@pytest.mark.parametrize(("begin", "angle"), [(0.3, 0.9), (0.7, 0.53)])
def test_setpoint_of_a_crane_far_from_the_guess(begin: float, angle: float) -> None:
    """The integral part leaves no error; the force by the lever of the cylinder."""
    found = crane(begin).equilibrium({"machine.boom.angle": angle}, ["pid.setpoint"])
    assert found["pid.setpoint"] == pytest.approx(angle, rel=1e-9)
    assert found["circuit.jack.force"] == pytest.approx(thrust_of_crane(angle), rel=1e-8)


def test_fixed_variables_are_led_from_where_nothing_holds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """From hanging straight down to M = m g l cos φ, where Newton's iteration reaches 0.4 rad only."""

    def near(equations: EquilibriumEquations, guess: Floats, *steps: int) -> StaticEquilibrium:
        rest = newton(equations, guess, *steps)
        if not equations.held or abs(equations.held[0].value - guess[0]) < 0.4:
            return rest
        return replace(rest, residual=rest.residual + np.inf)

    def led(equations: EquilibriumEquations, guess: Floats) -> Iterator[StaticEquilibrium]:
        monkeypatch.setattr(search, "nearest", nearest)  # without what is held, it is found
        monkeypatch.setattr(search, "fitted", fitted)
        rest = carried(equations, guess)
        assert rest is not None
        yield rest

    monkeypatch.setattr(search, "newton", near)
    monkeypatch.setattr(search, "fitted", lambda _, guess: guess)  # else it begins where it is to end
    monkeypatch.setattr(search, "nearest", near)
    monkeypatch.setattr(search, "other_ways", led)
    model = CoupledModel(name="bar", systems={"machine": chain([0.3], [1.0], [10.0])})
    found = model.equilibrium({"machine.b0.angle": 1.2}, ["machine.m0.torque"])
    assert found["machine.m0.torque"] == pytest.approx(10.0 * GRAVITY * 0.5 * cos(1.2), rel=1e-8)


# -- what is at fault where there is none -------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "angle"), [(100.0, 0.3), (100.0, 1.2), (20.0, 1.2)])
def test_integral_part_that_creeps_is_at_fault(limit: float, angle: float) -> None:
    """The drive could carry the load; the setpoint is elsewhere: İ = k_i (0 − φ), though it ends at its limit."""
    model = controlled(chain([0.3], [1.0], [10.0]), [pid(limit)])
    with pytest.raises(SimulationError) as told:
        model.equilibrium({"machine.b0.angle": angle})
    assert str(told.value).endswith(f"at the nearest point c0.integral_part would change by {-50.0 * angle:.3g} N.m/s")


def test_integral_part_that_creeps_at_instants_is_at_fault() -> None:
    """The same of a computer: by h k_i (0 − φ) each time."""
    model = controlled(chain([0.3], [1.0], [10.0]), [pid(100.0, sampled=True)])
    with pytest.raises(SimulationError, match=r"c0\.integral_part would change by -0\.3 N\.m with each update"):
        model.equilibrium({"machine.b0.angle": 0.6})


def test_load_beyond_a_limit_is_at_fault() -> None:
    """M = m g l cos φ less the limit is missing, whatever the guess leaves the controller at."""
    model = controlled(chain([-0.8], [1.0], [10.0]), [pid(20.0)])
    missing = 10.0 * GRAVITY * 0.5 * cos(0.3) - 20.0
    with pytest.raises(SimulationError) as told:
        model.equilibrium({"machine.b0.angle": 0.3}, ["c0.setpoint"])
    assert f"{missing:.4g} N.m are missing at machine.b0.angle" in str(told.value)
    assert "integral_part" not in str(told.value)


def test_integrator_that_is_fed_is_at_fault() -> None:
    """It could hold the load, and runs on by what it is fed."""
    systems = {
        "machine": chain([0.3], [1.0], [10.0]),
        "feed": Gain(gain=1.0, offset=2.0),
        "sum": Integrator(input_unit="1", output_unit="N.m"),
    }
    connections = [("feed.output", "sum.input"), ("sum.output", "machine.m0.torque")]
    model = CoupledModel(name="fed", systems=systems, connections=connections)
    with pytest.raises(SimulationError, match=r"at the nearest point sum\.value would change by 2 N\.m/s$"):
        model.equilibrium("position")


def test_leakage_is_at_fault_where_nothing_feeds_it() -> None:
    """Pressures carry the mass, and the drain lets it sink: ṗ = −Q / C, not a load that would be missing."""
    model = table((), {"a": 5.0 * BAR}, {})
    with pytest.raises(SimulationError, match=r"at the nearest point circuit\.a\.\S+ would change by -\S+ Pa/s$"):
        model.equilibrium("position")


@pytest.mark.parametrize(("limit", "angle", "find"), [(20.0, 0.3, ["c0.setpoint"]), (100.0, 0.3, [])])
def test_another_guess_is_suggested_where_there_is_something_to_guess(
    limit: float, angle: float, find: list[str]
) -> None:
    """Nothing claims that there is no rest; with nothing to be found there is no guess to give."""
    model = controlled(chain([-0.8], [1.0], [10.0]), [pid(limit)])
    with pytest.raises(SimulationError, match="no equilibrium is found from this guess; at the nearest") as told:
        model.equilibrium({"machine.b0.angle": angle}, find)
    suggested = "does not show that there is none" in str(told.value)
    assert suggested is bool(find)
    assert ("find={'c0.setpoint': …} or --find c0.setpoint=…" in str(told.value)) is bool(find)


# -- saturations that leak ----------------------------------------------------------------------------------


def test_leaking_lets_a_share_through() -> None:
    """max, min and a dead zone of them, against NumPy; without a share nothing changes."""
    x, share = ca.SX.sym("x"), ca.SX.sym("share")
    value = ca.vertcat(ca.fmax(x, 1.0), x - ca.fmin(ca.fmax(x, -2.0), 2.0), ca.sin(x))
    function = ca.Function("leaking", [x, share], [leaking(value, share)])

    def cut(sign: float, one: float, other: float, leak: float) -> float:
        return 0.5 * (one + other + sign * (1.0 - leak) * abs(one - other))

    for at in (-3.0, 0.5, 4.0):
        for leak in (0.0, 0.2, 1.0):
            inner = cut(-1.0, cut(1.0, at, -2.0, leak), 2.0, leak)
            expected = [cut(1.0, at, 1.0, leak), at - inner, sin(at)]
            assert function(at, leak).full().ravel() == pytest.approx(expected, rel=1e-14)
    assert leaking(ca.sin(x), share) is None
