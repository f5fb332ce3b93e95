"""Counterbalance and reducing valves: their laws, a load that is held and lowered, and the load's motion by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hydraulic_bench import Bench
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from valves import ANTI_CAVITATION, COUNTERBALANCE, REDUCED, lift, orifice, rated, volumes

from hydraulics import (
    CheckValve,
    Circuit,
    Component,
    CounterbalanceValve,
    Cylinder,
    DataError,
    Oil,
    PressureSource,
    ProportionalValve,
    ReducingValve,
    ReliefValve,
    Tank,
    Throttle,
    Volume,
    balanced,
    closed_centre,
    float_centre,
)
from mbsfmu import Actuator, CoupledModel, Cuboid, LinearSignal, Mechanism, Prismatic

ATMOSPHERE = 101325.0
pressures = st.floats(0.0, 5e7)
three = st.tuples(pressures, pressures, pressures)


def bench(**fields: Any) -> Bench:
    valve = CounterbalanceValve(name="valve", load="A", valve="B", pilot="C", **{**COUNTERBALANCE, **fields})
    return Bench(volumes(valve, A=1e6, B=1e6, C=1e6))


STANDARD, VENTED = bench(), bench(back_pressure_ratio=0.0)


@given(three)
@pytest.mark.parametrize(("valve", "back"), [(STANDARD, 5.0), (VENTED, 0.0)])
def test_load_and_pilot_open_it_against_the_back_pressure(
    valve: Bench, back: float, at: tuple[float, float, float]
) -> None:
    a, b, c = at
    outputs = valve.outputs(A__pressure=a, B__pressure=b, C__pressure=c)
    acting = (a - ATMOSPHERE) + 4.0 * (c - ATMOSPHERE) - back * (b - ATMOSPHERE)
    open_ = lift(acting, 2.5e7, 3e7)
    expected = orifice(rated(1e-3, 2e6) * open_, a - b)
    assert outputs["valve.flow"] == pytest.approx(expected, rel=1e-8, abs=1e-15)
    free = orifice(rated(1e-3, 5e5) * lift(b - a, 5e4, 5e5), b - a)
    assert outputs["valve.free_flow"] == pytest.approx(free, rel=1e-8, abs=1e-15)
    assert outputs["valve.flow"] * (a - b) + outputs["valve.free_flow"] * (b - a) >= 0.0
    rates = valve.rates(A__pressure=a, B__pressure=b, C__pressure=c)
    assert rates["C.pressure"] == 0.0
    assert rates["A.pressure"] == pytest.approx(-1.5e12 * (expected - free), rel=1e-8, abs=1e-3)


@given(three)
def test_reducing_valve_closes_as_the_pressure_behind_it_rises(at: tuple[float, float, float]) -> None:
    a, b, c = at
    flow = REDUCING.outputs(A__pressure=a, B__pressure=b, C__pressure=c)["valve.flow"]
    behind = b - c
    expected = orifice(rated(1e-3, 1e6) * lift(-behind, -5e6, -4e6), a - b)
    assert flow == pytest.approx(expected, rel=1e-8, abs=1e-15)
    assert flow * (a - b) >= 0.0
    if behind >= 5e6:
        assert flow == 0.0


REDUCING = Bench(volumes(ReducingValve(name="valve", inlet="A", outlet="B", drain="C", **REDUCED), A=1e6, B=1e6, C=1e6))


def test_reducing_valve_keeps_the_pressure_behind_it() -> None:
    """At rest what flows out is what its opening lets through: closed form at two pressures of the pump."""
    leak = 0.7 * np.pi / 4.0 * 1e-3**2 * np.sqrt(2.0 / 850.0)
    for pump in (1e7, 3e7):
        circuit = volumes(
            PressureSource(name="pump", node="P", pressure=pump),
            ReducingValve(name="valve", inlet="P", outlet="A", drain="T", time_constant=3e-3, **REDUCED),
            Throttle(name="out", inlet="A", outlet="T", orifice_diameter=1e-3, discharge_coefficient=0.7),
            A=1e5,
        )

        def excess(p: float, pump: float = pump) -> float:
            out = orifice(leak, p - 1e5, 2e5)
            return orifice(rated(1e-3, 1e6) * lift(1e5 - p, -5e6, -4e6), pump - p) - out

        rest = brentq(excess, 1e5, 1e7, xtol=1e-6)
        result = CoupledModel(name="r", systems={"circuit": circuit}).simulation(step=1e-3).run(1.0)
        assert result["A.pressure"][-1] == pytest.approx(rest, rel=1e-8)
        assert 4e6 < rest - 1e5 < 5e6


# -- a load on a cylinder -----------------------------------------------------------------------------------

MASS, GRAVITY, PISTON, ROD, STROKE, SHORTEST = 8000.0, 9.81, 0.1, 0.06, 1.2, 1.4
AREA = np.pi / 4.0 * PISTON**2
RING = np.pi / 4.0 * (PISTON**2 - ROD**2)
SUPPLY, TANK, MODULUS, LINE, VALVE, VALVE_DROP, LAG = 2e7, 1e5, 1.5e9, 5e-4, 8e-4, 1e6, 0.02
LENGTH = 2.3
COMMANDS = LinearSignal(times=(0.0, 0.5, 0.6, 2.0, 2.2), values=(0.0, 0.0, -0.5, -0.5, 0.0))
"""Holds, lowers, holds."""
SETTING, OVERRIDE, RELIEF_LAG = 1.2e7, 3e6, 5e-3
GUARDS = (
    ReliefValve(
        name="relief",
        inlet="A",
        outlet="T",
        rated_flow=1e-3,
        setting=SETTING,
        override=OVERRIDE,
        time_constant=RELIEF_LAG,
    ),
    CheckValve(name="make_up", inlet="T", outlet="B", **ANTI_CAVITATION),
)
"""What limits the pressure of the load where it is stopped, and keeps oil behind the piston."""


def crane(
    counterbalance: Component | None, signal: LinearSignal = COMMANDS, guards: tuple[Component, ...] = ()
) -> CoupledModel:
    """A load on an upright cylinder, with a counterbalance valve at its piston's side."""
    held = "A" if counterbalance is None else "V"
    wide = {"outlet_share": 3.0}
    centre = closed_centre(0.02, **wide) if counterbalance is None else float_centre(0.02, 0.1, **wide)
    circuit = Circuit(
        oil=Oil(bulk_modulus=MODULUS, density=850.0, air_content=0.0, conserves="volume"),
        components=(
            PressureSource(name="pump", node="P", pressure=SUPPLY),
            Tank(name="tank", node="T", pressure=TANK),
            ProportionalValve(
                name="valve",
                supply="P",
                tank="T",
                a=held,
                b="B",
                edges=centre,
                rated_flow=VALVE,
                rated_drop=VALVE_DROP,
                time_constant=LAG,
            ),
            *guards,
            *(() if counterbalance is None else (counterbalance, Volume(name="hose_v", node="V", volume=LINE))),
            Volume(name="hose_a", node="A", volume=LINE),
            Volume(name="hose_b", node="B", volume=LINE),
            Cylinder(
                name="cylinder",
                piston="A",
                rod="B",
                piston_diameter=PISTON,
                rod_diameter=ROD,
                stroke=STROKE,
                retracted_length=SHORTEST,
                bulk_modulus=1e15,
                viscous_friction=2e4,
            ),
        ),
        initial_pressures={"A": balanced("cylinder"), "B": 1e5} | ({} if counterbalance is None else {"V": 1e5}),
    )
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -GRAVITY),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(Cuboid(name="load", length=0.2, mass=MASS),),
        joints=(
            Prismatic(name="guide", parent="ground.O", child="load.centre", axis=(0.0, 0.0, 1.0), displacement=LENGTH),
        ),
        forces=(Actuator(name="cylinder", start="ground.O", end="load.centre"),),
    )
    return CoupledModel(
        name="crane",
        systems={"mechanism": mechanism, "circuit": circuit},
        connections=(
            ("circuit.cylinder.force", "mechanism.cylinder.force"),
            ("mechanism.cylinder.length", "circuit.cylinder.length"),
            ("mechanism.cylinder.velocity", "circuit.cylinder.velocity"),
            ("mechanism.cylinder.static_force", "circuit.cylinder.initial_load"),
        ),
        signals={"circuit.valve.command": signal},
    )


def holding(**fields: Any) -> CounterbalanceValve:
    return CounterbalanceValve(name="hold", load="A", valve="V", pilot="B", **{**COUNTERBALANCE, **fields})


def by_scipy(times: np.ndarray, lag: float) -> dict[str, np.ndarray]:
    """Length, velocity, pressures and openings of the crane with its guards, from equations written anew."""
    edge, wide = rated(VALVE, VALVE_DROP, 2e5), rated(1e-3, 2e6)

    def rates(time: float, state: np.ndarray) -> list[float]:
        length, velocity, p_a, p_b, p_v, opened, spool, relieved = state
        command = np.interp(time, COMMANDS.times, COMMANDS.values)
        up, down = max(spool - 0.02, 0.0) / 0.98, max(-spool - 0.02, 0.0) / 0.98
        from_v = orifice(3.0 * edge * max((0.1 - spool) / 1.1, 0.0), p_v - TANK, 2e5)
        from_b = orifice(3.0 * edge * max((0.1 + spool) / 1.1, 0.0), p_b - TANK, 2e5)
        to_v = orifice(edge * up, SUPPLY - p_v, 2e5) - from_v
        to_b = orifice(edge * down, SUPPLY - p_b, 2e5) - from_b
        acting = (p_a - ATMOSPHERE) + 4.0 * (p_b - ATMOSPHERE) - 5.0 * (p_v - ATMOSPHERE)
        lowered = orifice(wide * opened, p_a - p_v) - orifice(rated(1e-3, 5e5) * lift(p_v - p_a, 5e4, 5e5), p_v - p_a)
        spilled = orifice(rated(1e-3, SETTING + OVERRIDE) * relieved, p_a - TANK)
        made_up = orifice(rated(2e-3, 2e4) * lift(TANK - p_b, 2e3, 2e4), TANK - p_b)
        force = p_a * AREA - p_b * RING - 2e4 * velocity
        room_a, room_b = LINE + AREA * (length - SHORTEST), LINE + RING * (SHORTEST + STROKE - length)
        return [
            velocity,
            force / MASS - GRAVITY,
            MODULUS / room_a * (-lowered - spilled - AREA * velocity),
            MODULUS / room_b * (to_b + made_up + RING * velocity),
            MODULUS / LINE * (to_v + lowered),
            (lift(acting, 2.5e7, 3e7) - opened) / lag,
            (command - spool) / LAG,
            (lift(p_a - TANK, SETTING, SETTING + OVERRIDE) - relieved) / RELIEF_LAG,
        ]

    p_a = (MASS * GRAVITY + 1e5 * RING) / AREA
    start = [LENGTH, 0.0, p_a, 1e5, 1e5, 0.0, 0.0, 0.0]
    solution = solve_ivp(rates, (0.0, times[-1]), start, "Radau", times, rtol=1e-9, atol=1e-9, max_step=0.01)
    names = (
        "cylinder.length",
        "cylinder.velocity",
        "A.pressure",
        "B.pressure",
        "V.pressure",
        "hold.lift",
        "valve.spool",
    )
    return dict(zip((*names, "relief.lift"), solution.y, strict=True))


def test_load_is_held_lowered_and_held_as_equations_written_anew_say() -> None:
    """Its relief valve opens as it is stopped, and the check valve where its counterbalance valve runs ahead."""
    model = crane(holding(time_constant=0.02), guards=GUARDS)
    result = model.simulation(solver="radau", relative_tolerance=1e-8, absolute_tolerance=1e-8).run(3.0)
    expected = by_scipy(result.time, 0.02)
    for name, values in expected.items():
        scale = np.ptp(values)
        np.testing.assert_allclose(result[name], values, atol=1e-4 * scale, err_msg=name)
    assert expected["cylinder.length"][-1] < LENGTH - 0.1
    assert np.max(expected["relief.lift"]) > 0.2
    assert np.max(result["make_up.flow"]) > 1e-5


def test_load_does_not_creep_while_the_spool_is_in_the_middle() -> None:
    """The load rests on the seats of the valve for a minute."""
    still = LinearSignal(times=(0.0, 1.0), values=(0.0, 0.0))
    result = crane(holding(time_constant=0.02), still).simulation(step=0.02).run(60.0)
    assert np.ptp(result["cylinder.length"]) < 1e-9
    assert np.ptp(result["A.pressure"]) < 1.0


def test_load_is_lowered_no_faster_than_oil_is_fed_behind_it() -> None:
    """The counterbalance valve keeps the fed chamber under pressure, where the bare valve lets the load tear it."""
    controlled = crane(holding(time_constant=0.02)).simulation(step=1e-3).run(2.0)
    torn = crane(None).simulation(step=1e-3).run(2.0)
    lowering = controlled.time > 1.0
    room = -controlled["cylinder.velocity"][lowering] * RING
    assert np.mean(room) == pytest.approx(np.mean(controlled["valve.flow_b"][lowering]), rel=0.02)
    assert controlled["B.pressure"].min() > 0.9e5
    assert torn["B.pressure"].min() < 0.0
    assert torn["cylinder.velocity"][-1] < 1.5 * controlled["cylinder.velocity"][-1]


def test_wrong_data_are_refused() -> None:
    with pytest.raises(DataError) as caught:
        holding(check_full_pressure=5e4)
    assert str(caught.value) == (
        "CounterbalanceValve 'hold': check_full_pressure is 50000.0; it must be greater than the cracking pressure, "
        "50000.0"
    )
    with pytest.raises(DataError, match=r"override is 5000000.0; it must be less than the setting, 5000000.0"):
        ReducingValve(name="valve", inlet="A", outlet="B", drain="C", **{**REDUCED, "override": 5e6})
    with pytest.raises(DataError, match=r"back_pressure_ratio is -1.0; it must be greater than or equal to 0"):
        holding(back_pressure_ratio=-1.0)
