"""Oil with air in it: the law of the mixture, and circuits with it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hydraulic_bench import (
    AIRY,
    AREA_2,
    AREA_3,
    HOSE,
    HOSE_1,
    HOSE_2,
    HOSE_3,
    OIL,
    PUMP,
    TANK,
    WALL,
    Bench,
    paper_circuit,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from hydraulics import Circuit, Oil, PressureSource, Tank, Throttle, Volume
from hydraulics.fluid import Mixture

ATMOSPHERE = 101325.0
ISOTHERMAL = Mixture(OIL, 0.01, None)
POLYTROPIC = Mixture(OIL, 0.01, 1.3)
pressures = st.floats(1e-3, 1e8)


def modulus(pressure: float, air: float = 0.01, index: float = 1.3, vapour: float = 200.0) -> float:
    """The law as it is printed, E (e + α (p_a/p)^(1/n)) / (e + α p_a^(1/n) E / (n p^((n+1)/n))), e = exp((p_a−p)/E)."""
    gas = pressure - vapour
    liquid = np.exp((ATMOSPHERE - gas) / OIL)
    share = air * (ATMOSPHERE / gas) ** (1.0 / index)
    softening = air * ATMOSPHERE ** (1.0 / index) * OIL / (index * gas ** ((index + 1.0) / index))
    return OIL * (liquid + share) / (liquid + softening)


@given(pressures)
def test_modulus_is_the_printed_law(pressure: float) -> None:
    at = np.asarray(pressure)
    assert 1.0 / ISOTHERMAL.compliance(at) == pytest.approx(modulus(pressure, index=1.0, vapour=0.0), rel=1e-12)
    assert 1.0 / POLYTROPIC.compliance(at) == pytest.approx(modulus(pressure, vapour=0.0), rel=1e-12)


def test_modulus_runs_from_the_gas_s_to_the_oil_s() -> None:
    assert 1.0 / ISOTHERMAL.compliance(np.asarray(1e-3)) == pytest.approx(1e-3, rel=1e-5)
    assert 1.0 / POLYTROPIC.compliance(np.asarray(1e-3)) == pytest.approx(1.3e-3, rel=1e-4)
    assert 1.0 / POLYTROPIC.compliance(np.asarray(1e9)) == pytest.approx(OIL, rel=1e-3)


@given(pressures)
def test_pressure_and_compression_are_each_other_s_inverse(pressure: float) -> None:
    for oil in (ISOTHERMAL, POLYTROPIC):
        assert oil.gas_pressure(oil.compression(np.asarray(pressure))) == pytest.approx(pressure, rel=1e-12)


@given(st.floats(-1e30, 1e30))
def test_any_compression_is_a_pressure(compression: float) -> None:
    gas = ISOTHERMAL.gas_pressure(np.asarray(compression))
    assert 0.0 < gas < np.inf
    assert 0.0 < ISOTHERMAL.compliance(gas) < np.inf


@given(st.floats(1.0, 1e8))
def test_slope_is_the_derivative(pressure: float) -> None:
    step = 1e-5 * pressure
    ends = [float(ISOTHERMAL.compression(np.asarray(pressure + moved))) for moved in (-step, step)]
    assert ISOTHERMAL.slope(np.asarray(pressure)) == pytest.approx((ends[1] - ends[0]) / (2.0 * step), rel=1e-6)


def volume(pressure: float, air: float = 0.01, index: float = 1.3, vapour: float = 200.0) -> float:
    """Volume of oil with its air by that of the oil alone at atmospheric pressure, exp((p_a−p)/E) + α (p_a/p)^(1/n)."""
    gas = pressure - vapour
    return np.exp((ATMOSPHERE - gas) / OIL) + air * (ATMOSPHERE / gas) ** (1.0 / index)


def passed(flow: float, before: float, after: float) -> tuple[float, float]:
    """What leaves one pressure and arrives at another of a flow that is counted upstream, of the same mass."""
    grows = volume(after) / volume(before)
    return (flow, flow * grows) if flow > 0.0 else (flow / grows, flow)


# -- whole circuits -----------------------------------------------------------------------------------------

BENCH = Bench(paper_circuit(oil=AIRY))
compressions = st.floats(-1e9, 2e7)


@given(compressions, compressions, compressions, st.floats(-10.0, 10.0), st.floats(0.9, 1.8), st.floats(-0.5, 0.5))
def test_power_is_stored_used_or_lost(
    one: float, two: float, three: float, spool: float, length: float, speed: float
) -> None:
    """Compression takes p V̇, with the capacity V w / K of the mixture and V / B of the walls, which have grown by w.

    Orifices take the difference of p V̇ on both sides, where V̇ grows like the mixture, and the bore of the cylinder
    p (w − 1) V̇.
    """
    at = {"V1__compression": one, "V2__compression": two, "V3__compression": three, "valve__spool": spool}
    at |= {"cylinder__length": length, "cylinder__velocity": speed}
    outputs, rates = BENCH.outputs(**at), BENCH.rates(**at)
    chambers = {"V1": 0.0, "V2": AREA_2 * (length - 0.9), "V3": AREA_3 * (1.8 - length)}
    pushed = {"V1": 0.0, "V2": AREA_2, "V3": -AREA_3}
    compression = 0.0
    for node, hose in (("V1", HOSE_1), ("V2", HOSE_2), ("V3", HOSE_3)):
        pressure, chamber = outputs[f"{node}.pressure"], chambers[node]
        assert pressure >= AIRY.vapour_pressure
        gas = pressure - AIRY.vapour_pressure
        rate = rates[f"{node}.compression"] / (1.0 + AIRY.air_content * OIL * ATMOSPHERE / gas**2)
        hose_grown, bore_grown = (1.0 + (pressure - ATMOSPHERE) / walls for walls in (HOSE, WALL))
        capacity = (hose * hose_grown + chamber * bore_grown) / modulus(pressure) + hose / HOSE + chamber / WALL
        compression += pressure * capacity * rate + pressure * (bore_grown - 1.0) * pushed[node] * speed
    p1, p2, p3 = (outputs[f"V{number}.pressure"] for number in (1, 2, 3))
    supplied = outputs["pump.power"] + outputs["tank.power"]
    out_of_1, into_2 = passed(outputs["throttle.flow"], p1, p2)
    throttle = p1 * out_of_1 - p2 * into_2
    at_a, at_b = (PUMP, TANK) if spool > 0.0 else (TANK, PUMP)
    valve = supplied - p1 * passed(outputs["valve.flow_a"], at_a, p1)[1]
    valve -= p3 * passed(outputs["valve.flow_b"], at_b, p3)[1]
    assert throttle >= 0.0
    assert valve >= -1e-8
    total = compression + outputs["cylinder.power"] + throttle + valve
    assert total == pytest.approx(supplied, rel=1e-7, abs=1e-4)


def test_start_has_the_pressures_that_are_asked_for() -> None:
    load = {"cylinder.initial_load": 11029.38}
    start = BENCH.start(load)
    outputs = BENCH.outputs(load, **{name.replace(".", "__"): value for name, value in start.items()})
    assert outputs["V3.pressure"] == pytest.approx(3.5e6, rel=1e-14)
    assert (
        outputs["V2.pressure"]
        == outputs["V1.pressure"]
        == pytest.approx((11029.38 + 3.5e6 * AREA_3) / AREA_2, rel=1e-12)
    )


@pytest.mark.parametrize("conserves", ["mass", "volume"])
def test_air_that_vanishes_leaves_the_law_without(conserves: Literal["mass", "volume"]) -> None:
    """The less air, the nearer the rates to those of oil without, by volume those of the paper."""
    at = {"V1": 5e6, "V2": 4e6, "V3": 3e6}
    airless = Oil(bulk_modulus=OIL, density=850.0, air_content=0.0, conserves=conserves)
    exact = Bench(paper_circuit(oil=airless)).rates(
        **{f"{node}__pressure": value for node, value in at.items()}, valve__spool=4.0, cylinder__velocity=0.1
    )
    off = []
    for content in (1e-3, 1e-5):
        oil = Oil(bulk_modulus=OIL, density=850.0, air_content=content, conserves=conserves)
        scale = content * OIL * ATMOSPHERE
        moved = {f"{node}__compression": value - scale / value for node, value in at.items()}
        rates = Bench(paper_circuit(oil=oil)).rates(**moved, valve__spool=4.0, cylinder__velocity=0.1)
        off.append(max(abs(rates[f"{node}.compression"] / exact[f"{node}.pressure"] - 1.0) for node in at))
    assert off[0] < 0.02
    assert off[1] < 0.011 * off[0]


# -- what is conserved --------------------------------------------------------------------------------------


def rigid_volumes(oil: Oil, pressures: tuple[float, float]) -> Bench:
    """Two volumes of 1 l and 3 l that exchange oil through a throttle; the first is filled through another one."""
    throttle = {"orifice_diameter": 2e-3, "discharge_coefficient": 0.7}
    components = (
        PressureSource(name="pump", node="P", pressure=2.1e6),
        Throttle(name="feed", inlet="P", outlet="A", **throttle),
        Throttle(name="link", inlet="B", outlet="A", **throttle),
        Volume(name="one", node="A", volume=1e-3),
        Volume(name="other", node="B", volume=3e-3),
    )
    return Bench(Circuit(oil=oil, components=components, initial_pressures=dict(zip("AB", pressures, strict=True))))


def amount(pressure: float, oil: Oil) -> float:
    """Oil in a litre of rigid walls, in litres at atmospheric pressure."""
    return 1.0 / volume(pressure, oil.air_content, oil.polytropic_index, oil.vapour_pressure)


@pytest.mark.parametrize("oil", [AIRY, Oil(bulk_modulus=OIL, density=850.0)])
@pytest.mark.parametrize("starts", [(3e2, 1e4), (1e6, 4e2)])
def test_amount_of_oil_is_conserved(oil: Oil, starts: tuple[float, float]) -> None:
    """What the pump gives, in its own volume, is what the torn volumes take, to round-off of the integration."""
    bench = rigid_volumes(oil, starts)

    def rates(_: float, state: NDArray[np.float64]) -> list[float]:
        at = {"A__compression": state[0], "B__compression": state[1]}
        return [*bench.rates(**at).values(), bench.outputs(**at)["pump.flow"]]

    begin = [*bench.start().values(), 0.0]
    end = solve_ivp(rates, (0.0, 60.0), begin, "LSODA", rtol=1e-8, atol=[1.0, 1.0, 1e-12]).y[:, -1]
    outputs = bench.outputs(A__compression=end[0], B__compression=end[1])
    ends = outputs["A.pressure"], outputs["B.pressure"]
    taken = sum(
        litres * 1e-3 * (amount(after, oil) - amount(before, oil))
        for litres, before, after in zip((1.0, 3.0), starts, ends, strict=True)
    )
    law = oil.air_content, oil.polytropic_index, oil.vapour_pressure
    assert end[2] == pytest.approx(taken * volume(2.1e6, *law), rel=1e-5)
    assert outputs["oil.mass"] - bench.outputs()["oil.mass"] == pytest.approx(850.0 * taken, rel=1e-9)
    assert min(ends) > 1e5
    assert end[2] > 5e-4


@given(compressions, compressions)
def test_throttle_gives_what_it_takes(one: float, two: float) -> None:
    """With either sign of the flow the change of both amounts is zero but for the pump's."""
    bench = rigid_volumes(AIRY, (1e5, 1e5))
    at = {"A__compression": one, "B__compression": two}
    outputs, rates = bench.outputs(**at), bench.rates(**at)
    change, exchanged = outputs["pump.flow"] / volume(2.1e6), 0.0
    for node, litres in (("A", 1e-3), ("B", 3e-3)):
        pressure = outputs[f"{node}.pressure"]
        gas = pressure - AIRY.vapour_pressure
        rate = rates[f"{node}.compression"] / (1.0 + AIRY.air_content * OIL * ATMOSPHERE / gas**2)
        each = litres * rate / (modulus(pressure) * volume(pressure))
        change -= each
        exchanged = max(exchanged, abs(each))
    assert change == pytest.approx(0.0, abs=1e-9 * exchanged + 1e-15)


def test_sources_without_pressure_are_named() -> None:
    """A tank at vacuum has vapour to give, not oil: it is among what must lie above the pressure of vapour."""
    circuit = Circuit(
        oil=AIRY,
        components=(
            Tank(name="tank", node="T", pressure=100.0),
            Throttle(name="throttle", inlet="T", outlet="A", orifice_diameter=2e-3, discharge_coefficient=0.7),
            Volume(name="volume", node="A", volume=1e-3),
        ),
        initial_pressures={"A": 1e5},
    )
    equations = Bench(circuit).equations
    parameters = np.array([each.start for each in equations.parameters])
    limits = equations.start_limits(np.zeros(0), parameters).reshape(-1, 3)
    found = dict(zip((each.name for each in equations.limited), limits[:, :2].tolist(), strict=True))
    assert found == {"A.pressure": [1e5, 200.0], "tank.pressure": [100.0, 200.0]}
