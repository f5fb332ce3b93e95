"""Oil with air in it: the law of the mixture, and circuits with it."""

from __future__ import annotations

import numpy as np
import pytest
from hydraulic_bench import (
    AIRLESS,
    AIRY,
    AREA_2,
    AREA_3,
    HOSE,
    HOSE_1,
    HOSE_2,
    HOSE_3,
    OIL,
    WALL,
    Bench,
    paper_circuit,
    untimed,
)
from hypothesis import given
from hypothesis import strategies as st

from hydraulics import Oil
from hydraulics.fluid import Mixture

ATMOSPHERE = 101325.0
ISOTHERMAL = Mixture(OIL, 0.01, None)
POLYTROPIC = Mixture(OIL, 0.01, 1.3)
pressures = st.floats(1e-3, 1e8)


def modulus(pressure: float, air: float = 0.01, index: float = 1.3, vapour: float = 200.0) -> float:
    """The law as it is usually printed, E (1 + α (p_a/p)^(1/n)) / (1 + α p_a^(1/n) E / (n p^((n+1)/n)))."""
    gas = pressure - vapour
    share = air * (ATMOSPHERE / gas) ** (1.0 / index)
    softening = air * ATMOSPHERE ** (1.0 / index) * OIL / (index * gas ** ((index + 1.0) / index))
    return OIL * (1.0 + share) / (1.0 + softening)


@untimed
@given(pressures)
def test_modulus_is_the_printed_law(pressure: float) -> None:
    at = np.asarray(pressure)
    assert 1.0 / ISOTHERMAL.compliance(at) == pytest.approx(modulus(pressure, index=1.0, vapour=0.0), rel=1e-12)
    assert 1.0 / POLYTROPIC.compliance(at) == pytest.approx(modulus(pressure, vapour=0.0), rel=1e-12)


def test_modulus_runs_from_the_gas_s_to_the_oil_s() -> None:
    assert 1.0 / ISOTHERMAL.compliance(np.asarray(1e-3)) == pytest.approx(1e-3, rel=1e-5)
    assert 1.0 / POLYTROPIC.compliance(np.asarray(1e-3)) == pytest.approx(1.3e-3, rel=1e-4)
    assert 1.0 / POLYTROPIC.compliance(np.asarray(1e9)) == pytest.approx(OIL, rel=1e-3)


@untimed
@given(pressures)
def test_pressure_and_compression_are_each_other_s_inverse(pressure: float) -> None:
    for oil in (ISOTHERMAL, POLYTROPIC):
        assert oil.gas_pressure(oil.compression(np.asarray(pressure))) == pytest.approx(pressure, rel=1e-12)


@untimed
@given(st.floats(-1e30, 1e30))
def test_any_compression_is_a_pressure(compression: float) -> None:
    gas = ISOTHERMAL.gas_pressure(np.asarray(compression))
    assert 0.0 < gas < np.inf
    assert 0.0 < ISOTHERMAL.compliance(gas) < np.inf


@untimed
@given(st.floats(1.0, 1e8))
def test_slope_is_the_derivative(pressure: float) -> None:
    step = 1e-5 * pressure
    ends = [float(ISOTHERMAL.compression(np.asarray(pressure + moved))) for moved in (-step, step)]
    assert ISOTHERMAL.slope(np.asarray(pressure)) == pytest.approx((ends[1] - ends[0]) / (2.0 * step), rel=1e-6)


# -- whole circuits -----------------------------------------------------------------------------------------

BENCH = Bench(paper_circuit(oil=AIRY))
compressions = st.floats(-1e9, 2e7)


@untimed
@given(compressions, compressions, compressions, st.floats(-10.0, 10.0), st.floats(0.9, 1.8), st.floats(-0.5, 0.5))
def test_power_is_stored_used_or_lost(
    one: float, two: float, three: float, spool: float, length: float, speed: float
) -> None:
    """Compression takes p V̇, with the capacity V / K of the mixture and V / B of the walls."""
    at = {"V1__compression": one, "V2__compression": two, "V3__compression": three, "valve__spool": spool}
    at |= {"cylinder__length": length, "cylinder__velocity": speed}
    outputs, rates = BENCH.outputs(**at), BENCH.rates(**at)
    chambers = {"V1": 0.0, "V2": AREA_2 * (length - 0.9), "V3": AREA_3 * (1.8 - length)}
    compression = 0.0
    for node, hose in (("V1", HOSE_1), ("V2", HOSE_2), ("V3", HOSE_3)):
        pressure, chamber = outputs[f"{node}.pressure"], chambers[node]
        assert pressure >= AIRY.vapour_pressure
        gas = pressure - AIRY.vapour_pressure
        rate = rates[f"{node}.compression"] / (1.0 + AIRY.air_content * OIL * ATMOSPHERE / gas**2)
        capacity = (hose + chamber) / modulus(pressure) + hose / HOSE + chamber / WALL
        compression += pressure * capacity * rate
    p1, p2, p3 = (outputs[f"V{number}.pressure"] for number in (1, 2, 3))
    supplied = outputs["pump.power"] + outputs["tank.power"]
    throttle = (p1 - p2) * outputs["throttle.flow"]
    valve = supplied - p1 * outputs["valve.flow_a"] - p3 * outputs["valve.flow_b"]
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


def test_air_that_vanishes_leaves_the_paper_s_law() -> None:
    """The less air, the nearer the rates to those of oil without, which are the paper's."""
    at = {"V1": 5e6, "V2": 4e6, "V3": 3e6}
    exact = Bench(paper_circuit(oil=AIRLESS)).rates(
        **{f"{node}__pressure": value for node, value in at.items()}, valve__spool=4.0, cylinder__velocity=0.1
    )
    off = []
    for content in (1e-3, 1e-5):
        oil = Oil(bulk_modulus=OIL, density=850.0, air_content=content)
        scale = content * OIL * ATMOSPHERE
        moved = {f"{node}__compression": value - scale / value for node, value in at.items()}
        rates = Bench(paper_circuit(oil=oil)).rates(**moved, valve__spool=4.0, cylinder__velocity=0.1)
        off.append(max(abs(rates[f"{node}.compression"] / exact[f"{node}.pressure"] - 1.0) for node in at))
    assert off[0] < 0.02
    assert off[1] < 0.011 * off[0]
