"""Check, shuttle and relief valves: their laws written with branches, their motion by SciPy, what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hydraulic_bench import Bench
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from valves import ANTI_CAVITATION, CHECK, LEAN, MODULUS, RELIEF, VOLUME, lift, orifice, rated, volumes

from hydraulics import (
    AnnularGap,
    CheckValve,
    Circuit,
    Component,
    Cylinder,
    DataError,
    Oil,
    PilotCheckValve,
    PressureSource,
    ProportionalValve,
    ReliefValve,
    ShuttleValve,
    Tank,
    Throttle,
    Volume,
    two_way,
)
from hydraulics.circuit import plausibility_warnings
from mbsfmu import CoupledModel, LinearSignal, SimulationError, StepSignal

pressures = st.floats(0.0, 6e7) | st.floats(0.0, 5e5)
three = st.tuples(pressures, pressures, pressures)
LATE = {"time_constant": 4e-3}


def bench(valve: Component, *nodes: str) -> Bench:
    return Bench(volumes(valve, **dict.fromkeys(nodes, 1e6)))


def told(bench: Bench, **pressures: float) -> dict[str, float]:
    return bench.outputs(**{f"{node}__pressure": pressure for node, pressure in pressures.items()})


# -- laws ---------------------------------------------------------------------------------------------------

CHECKING = bench(CheckValve(name="valve", inlet="A", outlet="B", **CHECK), "A", "B")
RELIEVING = bench(ReliefValve(name="valve", inlet="A", outlet="B", **RELIEF), "A", "B")
HOLDING = bench(
    PilotCheckValve(name="valve", inlet="A", outlet="B", pilot="C", pilot_ratio=3.0, **CHECK), "A", "B", "C"
)
SHUTTLING = bench(ShuttleValve(name="valve", a="A", b="B", outlet="C", rated_flow=1e-4, rated_drop=1e6), "A", "B", "C")


def close_to(flow: float) -> Any:
    return pytest.approx(flow, rel=1e-9, abs=1e-16)


@given(three)
def test_check_valve_lets_oil_through_one_way(at: tuple[float, float, float]) -> None:
    a, b, _ = at
    outputs = told(CHECKING, A=a, B=b)
    expected = rated(1e-3, 3e5) * lift(a - b, 5e4, 3e5)
    assert outputs["valve.flow"] == close_to(orifice(expected, a - b))
    assert outputs["valve.lift"] == pytest.approx(lift(a - b, 5e4, 3e5), rel=1e-9, abs=1e-15)
    if a - b <= 5e4:
        assert outputs["valve.flow"] == 0.0
    assert outputs["valve.flow"] * (a - b) >= 0.0


@given(three)
def test_relief_valve_opens_beyond_its_setting(at: tuple[float, float, float]) -> None:
    a, b, _ = at
    flow = told(RELIEVING, A=a, B=b)["valve.flow"]
    assert flow == close_to(orifice(rated(1.5e-3, 2.15e7) * lift(a - b, 2e7, 2.15e7), a - b))
    assert flow * (a - b) >= 0.0
    if a - b <= 2e7:
        assert flow == 0.0


@given(st.floats(2e2, 1e5), st.floats(1.0, 6.0))
def test_check_valve_passes_its_rated_flow_also_where_that_is_laminar(full: float, beyond: float) -> None:
    given = {"valve.full_pressure": full, "valve.cracking_pressure": 0.1 * full}
    for drop, flow in ((full, 1e-3), (beyond * full, orifice(rated(1e-3, full), beyond * full))):
        at = {"A__pressure": 1e5 + drop, "B__pressure": 1e5}
        assert CHECKING.outputs(given, **at)["valve.flow"] == pytest.approx(flow, rel=1e-6)


@pytest.mark.parametrize(("begin", "lifted"), [(1e7, 0.0), (2.11e7, lift(2.1e7, 2e7, 2.15e7)), (4e7, 1.0)])
def test_poppet_begins_where_its_pressures_hold_it(begin: float, lifted: float) -> None:
    late = ReliefValve(name="valve", inlet="A", outlet="T", **RELIEF, **LATE)
    assert Bench(volumes(late, A=begin)).start()["valve.lift"] == pytest.approx(lifted, rel=1e-12)


@pytest.mark.parametrize("setting", [5e6, 2e7, 3.5e7])
def test_relief_valve_passes_its_rated_flow_at_any_setting(setting: float) -> None:
    set_to = {"valve.setting": setting}
    at = {"A__pressure": setting + 1.5e6 + 1e5, "B__pressure": 1e5}
    assert RELIEVING.outputs(set_to, **at)["valve.flow"] == pytest.approx(1.5e-3, rel=1e-12)


@given(three)
def test_pilot_pushes_the_check_valve_open_and_never_pulls(at: tuple[float, float, float]) -> None:
    a, b, c = at
    flow = told(HOLDING, A=a, B=b, C=c)["valve.flow"]
    acting = a - b + (3.0 * (c - a) if c > a else 0.0)
    assert flow == close_to(orifice(rated(1e-3, 3e5) * lift(acting, 5e4, 3e5), a - b))
    assert flow * (a - b) >= 0.0


def test_pilot_opens_where_the_areas_say() -> None:
    """A load of 150 bar against 1 bar: the pilot needs (150 − 1 + 0.5) / 3 bar above the inlet."""
    need = 1e5 + (149e5 + 5e4) / 3.0
    assert told(HOLDING, A=1e5, B=150e5, C=0.999 * need)["valve.flow"] == 0.0
    assert told(HOLDING, A=1e5, B=150e5, C=1.001 * need)["valve.flow"] < 0.0


@given(three)
def test_shuttle_valve_passes_the_higher_pressure_on(at: tuple[float, float, float]) -> None:
    a, b, c = at
    outputs = told(SHUTTLING, A=a, B=b, C=c)
    share = lift(a - b, -2e4, 2e4)
    assert outputs["valve.flow_a"] == close_to(orifice(rated(1e-4, 1e6) * share, a - c))
    assert outputs["valve.flow_b"] == close_to(orifice(rated(1e-4, 1e6) * (1.0 - share), b - c))
    assert outputs["valve.flow_a"] * (a - c) >= 0.0
    assert outputs["valve.flow_b"] * (b - c) >= 0.0
    if abs(a - b) >= 2e4:
        assert outputs["valve.flow_b" if a > b else "valve.flow_a"] == 0.0


@given(st.floats(-1.0, 2.0))
def test_lift_has_no_corner(share: float) -> None:
    """Its slope goes from 0 over 4/3 at most to 1, by no more than the slope's slope, 4 / 0.05, allows."""
    step, at = 1e-6, 1e5 + 2e7 + share * 1.5e6

    def slope(pressure: float) -> float:
        sides = (told(RELIEVING, A=pressure + sign * 1.5e6 * step, B=1e5)["valve.lift"] for sign in (1.0, -1.0))
        return float(np.subtract(*sides)) / (2.0 * step)

    here, beyond = slope(at), slope(at + 1e-3 * 1.5e6)
    assert -1e-6 <= here <= 4.0 / 3.0 + 1e-6
    assert abs(beyond - here) <= 1e-3 * 4.0 / 0.05 + 1e-5


# -- at rest and in motion ----------------------------------------------------------------------------------

DENSITY, BORE, DISCHARGE, PUMP = 850.0, 2.5e-3, 0.7, 2.6e7
FEED = DISCHARGE * np.pi / 4.0 * BORE**2 * np.sqrt(2.0 / DENSITY)


def rig(volume: float = VOLUME, setting: float = 2e7, **relief: Any) -> CoupledModel:
    """A volume that a pump feeds through a throttle, with its relief valve."""
    circuit = volumes(
        PressureSource(name="pump", node="P", pressure=PUMP),
        Throttle(name="feed", inlet="P", outlet="A", orifice_diameter=BORE, discharge_coefficient=DISCHARGE),
        ReliefValve(
            name="relief", inlet="A", outlet="T", **{**RELIEF, "rated_flow": 5e-4, "setting": setting}, **relief
        ),
        volume=volume,
        A=1.9e7,
    )
    return CoupledModel(name="rig", systems={"circuit": circuit})


def by_scipy(times: np.ndarray, volume: float, lag: float | None) -> np.ndarray:
    """Pressure, and the lift where it lags, of the rig."""
    coefficient = rated(5e-4, 2.15e7)

    def rates(_: float, state: np.ndarray) -> list[float]:
        drop = state[0] - 1e5
        wanted = lift(drop, 2e7, 2.15e7)
        out = orifice(coefficient * (wanted if lag is None else state[1]), drop)
        flow = (orifice(FEED, PUMP - state[0], 2e5) - out) * MODULUS / volume
        return [flow] if lag is None else [flow, (wanted - state[1]) / lag]

    start = [1.9e7] if lag is None else [1.9e7, 0.0]
    return solve_ivp(rates, (0.0, times[-1]), start, "Radau", times, rtol=1e-10, atol=1e-10, max_step=times[-1] / 200).y


@pytest.mark.parametrize("lag", [None, 4e-3])
def test_relief_valve_limits_as_equations_written_anew_say(lag: float | None) -> None:
    model = rig(time_constant=lag)
    result = model.simulation(solver="radau", relative_tolerance=1e-9, absolute_tolerance=1e-9).run(0.1)
    expected = by_scipy(result.time, VOLUME, lag)
    np.testing.assert_allclose(result["A.pressure"], expected[0], rtol=1e-6)
    if lag is not None:
        np.testing.assert_allclose(result["relief.lift"], expected[1], atol=1e-6)
    assert result["A.pressure"][-1] > 2e7


def resting(setting: float) -> float:
    """Pressure of the rig at which the flow of the throttle is that of the relief valve."""
    full = setting + 1.5e6

    def excess(pressure: float) -> float:
        drop = pressure - 1e5
        return orifice(FEED, PUMP - pressure, 2e5) - orifice(rated(5e-4, full) * lift(drop, setting, full), drop)

    return brentq(excess, 1e6, PUMP, xtol=1e-6)


@pytest.mark.parametrize("lag", [None, 4e-3])
def test_relief_valve_rests_where_flows_balance(lag: float | None) -> None:
    result = rig(time_constant=lag).simulation(step=1e-3).run(1.0)
    assert result["A.pressure"][-1] == pytest.approx(resting(2e7), rel=1e-8)


def test_relief_valve_at_a_small_volume_rings_as_it_must() -> None:
    """A poppet that lags behind a volume of 5 cm³ overshoots and rings; the default rule has the same."""
    volume, lag = 5e-6, 4e-3
    result = rig(volume, time_constant=lag).simulation(step=1e-4).run(0.03)
    pressure, _ = by_scipy(result.time, volume, lag)
    assert pressure.max() > 1.08 * pressure[-1]
    np.testing.assert_allclose(result["A.pressure"], pressure, atol=0.01 * np.ptp(pressure))


@pytest.mark.parametrize("lag", [None, 4e-3])
def test_relief_valve_at_a_tiny_volume_is_right_with_steps_of_its_own(lag: float | None) -> None:
    """A tenth of a cm³ follows within microseconds: adaptive steps are right, and equal ones too long say so."""
    model, solver = rig(1e-7, time_constant=lag), {"solver": "rodas5p"}
    result = model.simulation(**solver, step=1e-3).run(0.05)
    np.testing.assert_allclose(result["A.pressure"], by_scipy(result.time, 1e-7, lag)[0], rtol=1e-4)
    with pytest.raises(SimulationError, match=r"the step at t = \S+ s fails even with .* A.pressure still moves"):
        model.simulation(step=5e-3).run(0.05)


def test_setting_changes_while_it_works() -> None:
    simulation = rig(setting=1.5e7).simulation(step=1e-3)
    simulation.initialize()
    for begin, setting in ((0, 1.5e7), (200, 1.8e7)):
        simulation.set("relief.setting", setting)
        for index in range(begin, begin + 200):
            simulation.step(index * 1e-3, 1e-3)
        assert simulation.get("A.pressure") == pytest.approx(resting(setting), rel=1e-6)


# -- what they are for --------------------------------------------------------------------------------------


def pulled(*valves: Component) -> CoupledModel:
    """A cylinder that a load pulls out while nothing is fed to its chambers but by valves."""
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0),
        components=(
            Tank(name="tank", node="T", pressure=1.2e5),
            Volume(name="line_a", node="A", volume=1e-4),
            Volume(name="line_b", node="B", volume=1e-4),
            Throttle(name="return", inlet="B", outlet="T", orifice_diameter=5e-3, discharge_coefficient=0.7),
            Cylinder(
                name="cylinder",
                piston="A",
                rod="B",
                piston_diameter=0.08,
                rod_diameter=0.05,
                stroke=0.5,
                retracted_length=0.6,
                bulk_modulus=3e10,
            ),
            *valves,
        ),
        initial_pressures={"A": 2e6, "B": 2e6},
    )
    return CoupledModel(
        name="pulled",
        systems={"circuit": circuit},
        signals={
            "circuit.cylinder.length": LinearSignal(times=(0.0, 1.0), values=(0.7, 1.0)),
            "circuit.cylinder.velocity": StepSignal(times=(0.0,), values=(0.3,)),
        },
        step=1e-3,
    )


def test_anti_cavitation_valve_feeds_a_chamber_that_is_pulled() -> None:
    """Without it the chamber is torn; with it the pressure is what drives the chamber's flow through the valve."""
    torn = pulled().simulation().run(1.0)["A.pressure"]
    assert torn[-1] < 1e4
    fed = pulled(CheckValve(name="make_up", inlet="T", outlet="A", **ANTI_CAVITATION)).simulation().run(1.0)
    flow = 0.3 * np.pi / 4.0 * 0.08**2
    drop = brentq(lambda each: orifice(rated(2e-3, 2e4) * lift(each, 2e3, 2e4), each) - flow, 0.0, 1e5)
    assert fed["make_up.flow"][-1] == pytest.approx(flow, rel=5e-3)  # the oil expands a little on its way
    assert fed["A.pressure"][-1] == pytest.approx(1.2e5 - drop, rel=2e-3)
    assert fed["A.pressure"].min() > 9e4


def test_oil_behind_check_valves_stays_there() -> None:
    circuit = volumes(
        PilotCheckValve(name="hold", inlet="A", outlet="B", pilot="C", pilot_ratio=3.0, **CHECK),
        CheckValve(name="check", inlet="A", outlet="B", **LATE, **CHECK),
        A=1e5,
        B=1.5e7,
        C=1e5,
    )
    result = CoupledModel(name="held", systems={"circuit": circuit}).simulation(step=0.01).run(10.0)
    assert result["B.pressure"][-1] == pytest.approx(1.5e7, rel=1e-14)


# -- words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("valve", "sentence"),
    [
        (
            lambda: CheckValve(name="v", inlet="A", outlet="B", **{**CHECK, "full_pressure": 5e4}),
            "CheckValve 'v': full_pressure is 50000.0; it must be greater than the cracking pressure, 50000.0",
        ),
        (
            lambda: CheckValve(name="v", inlet="A", outlet="B", time_constant=0.0, **CHECK),
            "CheckValve 'v': time_constant is 0.0; it must be greater than 0",
        ),
        (
            lambda: ReliefValve(name="v", inlet="A", outlet="B", **{**RELIEF, "override": 0.0}),
            "ReliefValve 'v': override is 0.0; it must be greater than 0",
        ),
        (
            lambda: PilotCheckValve(name="v", inlet="A", outlet="B", pilot_ratio=3.0, **CHECK),
            "PilotCheckValve 'v': pilot is missing",
        ),
    ],
)
def test_wrong_data_are_refused(valve: Any, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        valve()
    assert str(caught.value) == sentence


def test_other_units_are_doubted() -> None:
    circuit = volumes(
        ReliefValve(name="bar", inlet="A", outlet="T", rated_flow=90.0, setting=200.0, override=15.0),
        CheckValve(name="good", inlet="A", outlet="T", **CHECK),
        ProportionalValve(
            name="hertz",
            supply="A",
            a="T",
            edges=two_way(),
            rated_flow=1e-3,
            rated_drop=10.0,
            natural_frequency=0.1,
            damping_ratio=70.0,
        ),
        AnnularGap(name="micron", inlet="A", outlet="T", diameter=80.0, length=0.04, viscosity=46.0, clearance=20.0),
        A=1e6,
    )
    said = list(plausibility_warnings(circuit))
    assert [each.split(" is ")[0] for each in said] == [
        *(f"relief-valve 'bar': {field}" for field in ("rated_flow", "setting", "override")),
        *(f"proportional-valve 'hertz': {field}" for field in ("rated_drop", "natural_frequency", "damping_ratio")),
        *(f"annular-gap 'micron': {field}" for field in ("diameter", "viscosity", "clearance")),
    ]


def test_valves_go_through_json() -> None:
    circuit = volumes(
        CheckValve(name="check", inlet="A", outlet="T", **CHECK),
        ReliefValve(name="relief", inlet="A", outlet="T", time_constant=1e-3, **RELIEF),
        oil=LEAN,
        A=1e6,
    )
    assert Circuit.from_dict(circuit.to_dict()) == circuit
    assert "time_constant" not in circuit.to_dict()["components"][2]
