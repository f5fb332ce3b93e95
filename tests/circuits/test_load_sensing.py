"""Valves that tell a pump of their loads: who wins the line, what the pump gives, who goes short where it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from valves import orifice, rated, volumes

from hydraulics import LoadSensingPump, PressureSource, ProportionalValve, Throttle, closed_centre
from mbsfmu import CoupledModel, StepSignal

FLOW, DROP, LAMINAR = 1e-3, 5e5, 2e5


def sensing(first: float, second: float) -> float:
    """The pressure in a load-sensing line that two valves with loads share."""
    edges = closed_centre(0.05)
    own = {"edges": edges, "rated_flow": FLOW, "rated_drop": DROP, "supply": "P", "tank": "T", "load_sense": "LS"}
    circuit = volumes(
        PressureSource(name="pump", node="P", pressure=2.5e7),
        PressureSource(name="load_1", node="A1", pressure=1.8e7),
        PressureSource(name="load_2", node="A2", pressure=1.2e7),
        PressureSource(name="free_1", node="B1", pressure=1e6),
        PressureSource(name="free_2", node="B2", pressure=9e6),
        ProportionalValve(name="valve_1", a="A1", b="B1", **own),
        ProportionalValve(name="valve_2", a="A2", b="B2", **own),
        Throttle(name="bleed", inlet="LS", outlet="T", orifice_diameter=2e-4, discharge_coefficient=0.7),
        LS=1e5,
        volume=2e-5,
    )
    commands = {"circuit.valve_1.command": first, "circuit.valve_2.command": second}
    signals = {name: StepSignal(times=(0.0,), values=(value,)) for name, value in commands.items()}
    model = CoupledModel(name="sensing", systems={"circuit": circuit}, signals=signals)
    return float(model.simulation(step=1e-3).run(1.0)["LS.pressure"][-1])


@pytest.mark.parametrize(
    ("first", "second", "load"),
    [(0.5, 0.5, 1.8e7), (0.5, 0.0, 1.8e7), (0.0, 0.5, 1.2e7), (-0.5, 0.5, 1.2e7), (-0.5, -0.5, 9e6), (0.0, 0.0, 1e5)],
)
def test_load_sensing_line_has_the_highest_load_that_is_fed(first: float, second: float, load: float) -> None:
    """But for what the bleed takes: at rest its flow goes through the sensing edge."""
    sense, bleed = rated(2e-5, DROP, LAMINAR), 0.7 * np.pi / 4.0 * 2e-4**2 * np.sqrt(2.0 / 850.0)

    def excess(line: float) -> float:
        return orifice(sense, load - line, LAMINAR) - orifice(bleed, line - 1e5, LAMINAR)

    expected = 1e5 if load == 1e5 else brentq(excess, 1e5, load, xtol=1e-3)
    assert sensing(first, second) == pytest.approx(expected, rel=1e-6)
    assert expected > 0.99 * load


# -- with a pump --------------------------------------------------------------------------------------------

MARGIN, RANGE, DISPLACEMENT, SPEED, KEPT = 2.2e6, 4e5, 1e-5, 200.0, 8e5
LOADS = {"high": 1.8e7, "low": 1.1e7}


def machine(high: float, low: float) -> Any:
    """Two compensated sections with loads, and a pump that keeps its margin above the higher one of these."""
    sections = (
        ProportionalValve(
            name=name,
            supply="P",
            a=f"A_{name}",
            b="T",
            load_sense="LS",
            edges=closed_centre(0.05)[:1] + closed_centre(0.05)[2:3],
            compensation=KEPT,
            load_check=True,
            rated_flow=FLOW,
            rated_drop=DROP,
        )
        for name in LOADS
    )
    circuit = volumes(
        LoadSensingPump(
            name="pump",
            inlet="T",
            outlet="P",
            load_sense="LS",
            displacement=DISPLACEMENT,
            speed=SPEED,
            time_constant=0.02,
            cut_off=3e7,
            cut_off_range=1e6,
            margin=MARGIN,
            margin_range=RANGE,
        ),
        *(PressureSource(name=f"load_{name}", node=f"A_{name}", pressure=load) for name, load in LOADS.items()),
        *sections,
        Throttle(name="bleed", inlet="LS", outlet="T", orifice_diameter=2e-4, discharge_coefficient=0.7),
        P=1e5 + MARGIN,
        LS=1e5,
        volume=1e-4,
    )
    commands = {"circuit.high.command": high, "circuit.low.command": low}
    signals = {name: StepSignal(times=(0.0,), values=(value,)) for name, value in commands.items()}
    model = CoupledModel(name="machine", systems={"circuit": circuit}, signals=signals)
    return model.simulation(solver="rodas5p", step=0.01).run(3.0)


def demanded(command: float) -> float:
    """Flow of a section at the drop that its compensator keeps, whatever the load is."""
    return orifice(max(command - 0.05, 0.0) / 0.95 * rated(FLOW, DROP, LAMINAR), KEPT, LAMINAR)


def bled(result: Any) -> float:
    """Flow that the bleed takes of the load sensed, from its own orifice."""
    return 0.7 * np.pi / 4.0 * 2e-4**2 * np.sqrt(2.0 / 850.0 * (result["LS.pressure"][-1] - 1e5))


def test_pump_gives_what_sections_demand_at_its_margin_above_the_load() -> None:
    result = machine(0.4, 0.5)
    flows = {name: result[f"{name}.flow_a"][-1] for name in LOADS}
    assert flows["low"] == pytest.approx(demanded(0.5), rel=1e-6)
    assert flows["high"] == pytest.approx(demanded(0.4) - bled(result), rel=1e-6)
    swash = result["pump.swash"][-1]
    assert swash * DISPLACEMENT * SPEED == pytest.approx(demanded(0.4) + demanded(0.5), rel=1e-5)
    above = result["P.pressure"][-1] - result["LS.pressure"][-1]
    assert above == pytest.approx(MARGIN - swash * RANGE, rel=1e-5)
    assert result["LS.pressure"][-1] == pytest.approx(LOADS["high"], rel=0.01)


def test_highest_load_goes_short_where_the_pump_has_no_more() -> None:
    """Compensators before the valves do not share: the lower load takes all that it demands."""
    result = machine(0.9, 1.0)
    most = DISPLACEMENT * SPEED
    assert demanded(0.9) + demanded(1.0) > 1.1 * most
    assert result["pump.swash"][-1] == pytest.approx(1.0, abs=1e-9)
    assert result["low.flow_a"][-1] == pytest.approx(demanded(1.0), rel=1e-6)
    assert result["high.flow_a"][-1] == pytest.approx(most - demanded(1.0) - bled(result), rel=1e-6)
    assert result["P.pressure"][-1] - LOADS["high"] < KEPT


def test_pump_stands_by_at_its_margin() -> None:
    result = machine(0.0, 0.0)
    assert result["P.pressure"][-1] - 1e5 == pytest.approx(MARGIN, rel=1e-4)
    assert np.abs(result["pump.swash"][-1]) < 1e-6
