"""The mass of the oil: equations of its own in masses, and circuits in which none may get lost."""

from __future__ import annotations

from collections.abc import Iterable
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
from scipy.optimize import brentq

from hydraulics import Circuit, ComponentContext, Cylinder, DataError, Oil, Space, Throttle, Volume
from mbsfmu import CoupledModel, LinearSignal, StepSignal

ATMOSPHERE = 101325.0
BULK = 1.5e9
PLAIN = Oil(bulk_modulus=BULK, density=850.0, air_content=0.0)


def density(pressure: float, oil: Oil) -> float:
    """That of the liquid at constant modulus, beside it air by its polytropic law."""
    gas = pressure - oil.vapour_pressure
    air = oil.air_content and oil.air_content * (ATMOSPHERE / gas) ** (1.0 / oil.polytropic_index)
    return oil.density / (np.exp((ATMOSPHERE - gas) / oil.bulk_modulus) + air)


def grown(pressure: float, walls: float) -> float:
    return 1.0 + (pressure - ATMOSPHERE) / walls


# -- a closed damper ----------------------------------------------------------------------------------------

PISTON, ROD = 0.25 * np.pi * 0.05**2, 0.25 * np.pi * (0.05**2 - 0.001**2)
ORIFICE = 0.7 * 0.25 * np.pi * 0.004**2 * np.sqrt(2.0 / 850.0)
BOTTLE, REST = 1e-3, 5e6


def damper(oil: Oil, walls: float) -> Circuit:
    """Both chambers of a cylinder, each with a litre beside it, joined by a throttle; no oil comes or goes."""
    return Circuit(
        oil=oil,
        components=(
            Volume(name="bottle_a", node="A", volume=BOTTLE),
            Volume(name="bottle_b", node="B", volume=BOTTLE),
            Throttle(name="throttle", inlet="A", outlet="B", orifice_diameter=4e-3, discharge_coefficient=0.7),
            Cylinder(
                name="cylinder",
                piston="A",
                rod="B",
                piston_diameter=0.05,
                rod_diameter=0.001,
                stroke=1.0,
                retracted_length=1.2,
                bulk_modulus=walls,
                initial_length=1.7,
            ),
        ),
        initial_pressures={"A": REST, "B": REST},
    )


def pressures_from_masses(oil: Oil, walls: float, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pressures of both chambers of a damper that moves by 0.1 sin 2 π t; its states are the masses alone."""

    lowest = oil.vapour_pressure + 1.0 if oil.air_content else -1e8

    def chambers(time: float) -> tuple[float, float]:
        moved = 0.5 + 0.1 * np.sin(2.0 * np.pi * time)
        return PISTON * moved, ROD * (1.0 - moved)

    def held(pressure: float, chamber: float) -> float:
        return density(pressure, oil) * (BOTTLE + chamber * grown(pressure, walls))

    def pressures(time: float, masses: NDArray[np.float64]) -> list[float]:
        return [
            brentq(lambda p, m=mass, c=chamber: held(p, c) - m, lowest, 1e9, xtol=1e-6, rtol=1e-14)
            for mass, chamber in zip(masses, chambers(time), strict=True)
        ]

    def flow(time: float, masses: NDArray[np.float64]) -> list[float]:
        one, other = pressures(time, masses)
        drop = one - other
        volume = ORIFICE * drop / np.sqrt(max(abs(drop), 2e5))
        passed = volume * density(one if volume > 0.0 else other, oil)
        return [-passed, passed]

    begin = [held(REST, chamber) for chamber in chambers(0.0)]
    end = solve_ivp(flow, (0.0, times[-1]), begin, "LSODA", times, rtol=1e-9, atol=1e-12)
    return np.array([pressures(*each) for each in zip(times, end.y.T, strict=True)]).T


@pytest.mark.parametrize("oil", [PLAIN, AIRY])
def test_damper_moves_as_its_masses_do(oil: Oil) -> None:
    """Bores of 2 GPa grow by up to 2 % here; the piston makes room in them as they are."""
    bench, times = Bench(damper(oil, 2e9)), np.linspace(0.0, 1.0, 21)
    unit = "compression" if oil.air_content else "pressure"

    def at(time: float, state: NDArray[np.float64]) -> dict[str, float]:
        motion = {"length": 1.7 + 0.1 * np.sin(2.0 * np.pi * time)}
        motion["velocity"] = 0.2 * np.pi * np.cos(2.0 * np.pi * time)
        moved = {f"cylinder__{name}": value for name, value in motion.items()}
        return {f"A__{unit}": state[0], f"B__{unit}": state[1], **moved}

    begin = list(bench.start().values())
    end = solve_ivp(
        lambda time, state: list(bench.rates(**at(time, state)).values()),
        *((0.0, 1.0), begin, "LSODA", times),
        rtol=1e-9,
        atol=1e-2,
    )
    told = [{**bench.outputs(**at(*each)), **at(*each)} for each in zip(times, end.y.T, strict=True)]
    name = "{}.pressure" if oil.air_content else "{}__pressure"
    found = np.array([[each[name.format(node)] for each in told] for node in "AB"])
    np.testing.assert_allclose(found, pressures_from_masses(oil, 2e9, times), rtol=2e-6)
    assert np.ptp(found) > 8e6
    masses = [each["oil.mass"] for each in told]
    assert np.ptp(masses) < 1e-8 * masses[0]


def driven(oil: Oil, cycles: int) -> CoupledModel:
    """A damper that is driven to and fro, back to where it began, and left to rest for a second."""
    times, lengths = [0.0], [1.7]
    for cycle in range(cycles):
        times += [0.4 * (cycle + part) for part in (0.25, 0.75, 1.0)]
        lengths += [1.8, 1.6, 1.7]
    speeds = [*(np.diff(lengths) / np.diff(times)), 0.0]
    return CoupledModel(
        name="damper",
        systems={"c": damper(oil, 1e15)},
        signals={
            "c.cylinder.length": LinearSignal(times=(*times, times[-1] + 1.0), values=(*lengths, 1.7)),
            "c.cylinder.velocity": StepSignal(times=tuple(times), values=tuple(speeds)),
        },
        stop_time=times[-1] + 1.0,
    )


def test_damper_comes_to_rest_at_the_pressure_it_began_with() -> None:
    """What it has turned into heat is 13 kJ a cycle; by volume it would have lost as much by the volume in pressure."""
    result = driven(PLAIN, 2).simulation(step=2e-3, compiled=False).run()
    assert result["A.pressure"].max() > 1.2e7
    assert [result[f"{node}.pressure"][-1] for node in "AB"] == pytest.approx([REST, REST], rel=1e-5)
    assert np.ptp(result["oil.mass"]) < 1e-6 * result["oil.mass"][0]


def test_by_volume_a_damper_loses_the_work_that_is_done_on_it() -> None:
    """[Jaiswal2021, eq. 22] takes Δp / K of each flow: ∫ Q Δp dt / K misses, and ∫ Q Δp dt is the work."""
    oil = PLAIN.model_copy(update={"conserves": "volume"})
    result = driven(oil, 1).simulation(step=2e-3, compiled=False).run()
    force, length = result["cylinder.force"], result["cylinder.length"]
    work = -np.sum(0.5 * (force[1:] + force[:-1]) * np.diff(length))
    lost = REST - result["A.pressure"][-1]
    assert lost == pytest.approx(work / (2.0 * BOTTLE + 0.5 * (PISTON + ROD)), rel=0.01)
    assert lost > 3e6
    assert result["oil.mass"][-1] < (1.0 - 2e-3) * result["oil.mass"][0]


# -- circuits with sources ----------------------------------------------------------------------------------

BENCH = Bench(paper_circuit(oil=AIRY))
compressions = st.floats(-1e8, 2e7)


def mass(pressures: dict[str, float], length: float) -> float:
    """Mass of the oil between the sources, by hand."""
    chambers = {"V1": 0.0, "V2": AREA_2 * (length - 0.9), "V3": AREA_3 * (1.8 - length)}
    hoses = {"V1": HOSE_1, "V2": HOSE_2, "V3": HOSE_3}
    return sum(
        density(p, AIRY) * (hoses[node] * grown(p, HOSE) + chambers[node] * grown(p, WALL))
        for node, p in pressures.items()
    )


@given(compressions, compressions, compressions, st.floats(-10.0, 10.0), st.floats(0.95, 1.75), st.floats(-0.5, 0.5))
def test_mass_changes_by_what_sources_give(
    one: float, two: float, three: float, spool: float, length: float, speed: float
) -> None:
    at = {"V1__compression": one, "V2__compression": two, "V3__compression": three, "valve__spool": spool}
    at |= {"cylinder__length": length, "cylinder__velocity": speed}
    outputs, rates = BENCH.outputs(**at), BENCH.rates(**at)
    pressures = {node: outputs[f"{node}.pressure"] for node in ("V1", "V2", "V3")}
    assert outputs["oil.mass"] == pytest.approx(mass(pressures, length), rel=1e-12)

    change, scale, held = 0.0, 1e-9, mass(pressures, length)
    for node, pressure in pressures.items():
        gas = pressure - AIRY.vapour_pressure
        rate = rates[f"{node}.compression"] / (1.0 + AIRY.air_content * BULK * ATMOSPHERE / gas**2)
        step = 1e-5 * gas
        ends = [mass({**pressures, node: pressure + each}, length) for each in (-step, step)]
        change += rate * (ends[1] - ends[0]) / (2.0 * step)
        scale += abs(rate) * (ends[1] - ends[0]) / (2.0 * step)
    ends = [mass(pressures, length + each) for each in (-1e-4, 1e-4)]
    change += speed * (ends[1] - ends[0]) / 2e-4
    supplied = outputs["pump.flow"] * density(PUMP, AIRY) + outputs["tank.flow"] * density(TANK, AIRY)
    assert change == pytest.approx(supplied, rel=1e-6, abs=1e-6 * scale + 1e-7 * held)


class TwoChambers(Cylinder):
    """A cylinder that counts a hose of its own at the port where its piston moves."""

    type: Literal["test-two-chambers"] = "test-two-chambers"  # type: ignore[assignment]

    def volumes(self, now: ComponentContext) -> Iterable[Space]:
        return (*super().volumes(now), Space("piston", 1e-4 * now["stroke"], now["bulk_modulus"]))


def test_what_moves_in_one_of_several_volumes_is_asked_for() -> None:
    two = damper(PLAIN, 2e9)
    cylinder = TwoChambers(**{**two.components[-1].to_dict(), "type": "test-two-chambers"})
    bench = Bench(Circuit.from_dict({**two.to_dict(), "components": (*two.components[:-1], cylinder)}))
    with pytest.raises(DataError) as caught:
        bench.rates()
    assert str(caught.value) == (
        "test-two-chambers 'cylinder': something moves at port 'piston', where it has 2 volumes; which of them changes "
        "is not known, so leave it one there, and make the others hoses"
    )
