"""Schematics of circuits: every port at its node, nothing across a box, colours by pressure, and the keyboard."""

from __future__ import annotations

import json
import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accessibility import findings
from chromium import Chromium
from valves import RELIEF

import mbsfmu
from hydraulics import Circuit, Cylinder, FlowSource, Oil, PressureSource, ReliefValve, Tank, Throttle, Volume
from mbsfmu import CoupledModel, LinearSignal
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.view.circuit.circuit_diagram import circuit_diagrams, circuit_elements, levels
from mbsfmu.view.pages.page import write_page

MACHINES = ("four-bar", "crane", "press", "excavator")
CIRCUIT = "document.querySelector('.mbsfmu-circuit').circuit"
OIL = Oil(bulk_modulus=1.5e9, density=850.0, air_content=0.0, conserves="volume")
SIZES: dict[str, float] = {"stroke": 0.9, "retracted_length": 1.0, "bulk_modulus": 2e11, "initial_length": 1.4}
SIZES |= {"piston_diameter": 0.08, "rod_diameter": 0.035}
Corner = tuple[float, float]


def machine(name: str) -> CoupledModel:
    return mbsfmu.models.four_bar() if name == "four-bar" else mbsfmu.models.example(name)


def circuit_of(model: CoupledModel) -> Circuit:
    (found,) = (each for each in model.systems.values() if isinstance(each, Circuit))
    return found


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages with the circuits of machines, of which no run is known."""
    folder = tmp_path_factory.mktemp("circuits")
    nothing = Trajectory(np.linspace(0.0, 1.0, 3), np.zeros((3, 0)), [], [])
    pages = {}
    for name in MACHINES:
        (diagram,) = circuit_diagrams(Machine.of(machine(name)), nothing, str)
        pages[name] = write_page(name, circuit_elements([diagram]), folder / f"{name}.html")
    return pages


def corners(path: str) -> list[Corner]:
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", path)]


def on_border(place: Corner, box: list[float]) -> bool:
    x, y, width, height = box
    inside = x - 0.1 <= place[0] <= x + width + 0.1 and y - 0.1 <= place[1] <= y + height + 0.1
    ends = abs(place[0] - x), abs(place[0] - x - width), abs(place[1] - y), abs(place[1] - y - height)
    return inside and min(ends) < 0.1


def on_line(place: Corner, line: list[Corner]) -> bool:
    """Whether a place is on a line of pieces along the axes."""
    return any(
        min(a[0], b[0]) - 0.1 <= place[0] <= max(a[0], b[0]) + 0.1
        and min(a[1], b[1]) - 0.1 <= place[1] <= max(a[1], b[1]) + 0.1
        for a, b in pairwise(line)
    )


def seen(browser: Chromium) -> dict[str, Any]:
    """The boxes of components, and the lines with their nodes and ports, from the picture itself."""
    boxes = (
        "[...document.querySelectorAll('.component')].map((each) => [each.dataset.component, "
        "['x', 'y', 'width', 'height'].map((name) => Number(each.querySelector('rect').getAttribute(name)))])"
    )
    lines = (
        "[...document.querySelectorAll('.oil')].map((each) => "
        "[each.dataset.node, each.dataset.port ?? '', each.getAttribute('d')])"
    )
    return json.loads(browser.evaluate(f"JSON.stringify({{ boxes: {boxes}, lines: {lines} }})"))


@pytest.mark.parametrize("name", MACHINES)
def test_every_port_is_joined_to_its_node(browser: Chromium, drawn: dict[str, Path], name: str) -> None:
    browser.open(drawn[name])
    circuit, picture = circuit_of(machine(name)), seen(browser)
    boxes: dict[str, list[list[float]]] = {}
    for component, box in picture["boxes"]:
        boxes.setdefault(component, []).append(box)
    assert set(boxes) == {each.name for each in circuit.components}
    trunks = {node: corners(path) for node, port, path in picture["lines"] if not port}
    joined = {port: (node, corners(path)) for node, port, path in picture["lines"] if port}
    tanks = {each.node: each.name for each in circuit.components if isinstance(each, Tank)}
    of_tanks = {f"{each.name}.node" for each in circuit.components if isinstance(each, Tank)}
    ports = {f"{each.name}.{port}": node for each in circuit.components for port, node in each.ports().items()}
    assert {port: node for port, (node, _) in joined.items()} == {
        port: node for port, node in ports.items() if port not in of_tanks
    }
    assert set(trunks) == set(ports.values()) - set(tanks)
    for port, (node, line) in joined.items():
        (box,) = boxes[port.partition(".")[0]]
        assert on_border(line[0], box), port
        if node not in tanks:
            assert on_line(line[-1], trunks[node]), port
        else:
            assert any(x < line[-1][0] < x + w and y < line[-1][1] < y + h for x, y, w, h in boxes[tanks[node]]), port


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_is_drawn_across_a_component(browser: Chromium, drawn: dict[str, Path], name: str) -> None:
    browser.open(drawn[name])
    picture = seen(browser)
    for (one, (x, y, w, h)), (other, (x2, y2, w2, h2)) in combinations(picture["boxes"], 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y, (one, other)
    for _, port, path in picture["lines"]:
        line = corners(path)
        for a, b in pairwise(line):
            for component, (x, y, w, h) in picture["boxes"]:
                across = min(a[0], b[0]) < x + w - 0.5 and max(a[0], b[0]) > x + 0.5
                along = min(a[1], b[1]) < y + h - 0.5 and max(a[1], b[1]) > y + 0.5
                assert component == "tank" or not (across and along), (port, component)
    overflow = "[...document.querySelectorAll('.component')].filter((each) => { const box = each.querySelector('rect')"
    overflow += ".getBBox(); return box.height > 50 && [...each.querySelectorAll('text')].some((text) => { const own = "
    overflow += "text.getBBox(); return own.x + own.width > box.x + box.width; }); }).length"
    assert browser.evaluate(overflow) == 0


def test_levels_count_from_the_pump_and_put_actuators_above_their_nodes() -> None:
    components, nodes = levels(circuit_of(machine("four-bar")))
    assert nodes == {"P": 1, "V1": 3, "V3": 3, "V2": 5}
    assert {name: components[name] for name in ("pump", "valve", "throttle", "cylinder")} == {
        "pump": 0,
        "valve": 2,
        "throttle": 4,
        "cylinder": 6,
    }
    components, nodes = levels(circuit_of(machine("excavator")))
    assert (nodes["boom_v"], nodes["boom_a"]) == (3, 5)
    assert (components["boom_cylinder"], components["stick_cylinder"]) == (6, 4)


def test_levels_are_counted_around_actuators_where_there_is_another_way() -> None:
    """Through the cylinder the node at its rod would be on the third level."""
    opening = {"orifice_diameter": 2e-3, "discharge_coefficient": 0.7}
    parts = (
        PressureSource(name="pump", node="P", pressure=1e7),
        Throttle(name="first", inlet="P", outlet="A", **opening),
        Cylinder(name="lift", piston="A", rod="C", **SIZES),
        Throttle(name="second", inlet="A", outlet="B", **opening),
        Throttle(name="third", inlet="B", outlet="C", **opening),
        *(Volume(name=f"volume_{node}", node=node, volume=1e-3) for node in "ABC"),
    )
    components, nodes = levels(Circuit(oil=OIL, components=parts, initial_pressures=dict.fromkeys("ABC", 1e6)))
    assert nodes == {"P": 1, "A": 3, "B": 5, "C": 7}
    assert components["lift"] == 8


@pytest.mark.parametrize("name", MACHINES)
def test_lines_of_two_nodes_never_lie_on_each_other(browser: Chromium, drawn: dict[str, Path], name: str) -> None:
    browser.open(drawn[name])
    pieces = [(node, *piece) for node, _, path in seen(browser)["lines"] for piece in pairwise(corners(path))]
    for (one, *first), (other, *second) in combinations(pieces, 2):
        for along, across in ((0, 1), (1, 0)):
            places = {round(place[across]) for place in (*first, *second)}
            low = max(min(place[along] for place in piece) for piece in (first, second))
            high = min(max(place[along] for place in piece) for piece in (first, second))
            assert one == other or len(places) > 1 or high - low < 1.0, (one, other, first, second)


VOLUME, FLOW, BEGIN, OUTSIDE = 1e-2, 2e-4, 1e6, 1e5
"""In m³, m³/s after 1 s, Pa and Pa."""


def pressure_at(time: float) -> float:
    """The pressure in Pa of a volume that a flow Q t / s fills: dp/dt = K Q t / V."""
    return BEGIN + OIL.bulk_modulus * FLOW * time**2 / (2.0 * VOLUME)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a volume that a growing flow fills; its relief valve stays closed."""
    parts = (
        FlowSource(name="pump", node="A"),
        Volume(name="line", node="A", volume=VOLUME),
        ReliefValve(name="relief", inlet="A", outlet="T", **{**RELIEF, "setting": 5e7}),
        Tank(name="tank", node="T", pressure=OUTSIDE),
    )
    circuit = Circuit(oil=OIL, components=parts, initial_pressures={"A": BEGIN})
    flow = LinearSignal(times=(0.0, 1.0), values=(0.0, FLOW))
    model = CoupledModel(name="filled", systems={"circuit": circuit}, signals={"circuit.pump.flow": flow})
    result = model.simulation(compiled=False, solver="trapezoidal", step=5e-3).run(1.0)
    return mbsfmu.write_report(result, tmp_path_factory.mktemp("filled") / "filled.html")


def share_of(colour: str) -> float:
    """The place of a colour between blue and yellow, from the amounts of green, which grow all along."""
    green = float(re.findall(r"[\d.]+", colour)[1])
    return float(np.interp(green, [0x3A, 0x68, 0x91, 0xB7, 0xE7], np.linspace(0.0, 1.0, 5)))


def test_colours_and_arrows_follow_pressure_and_flow(browser: Chromium, filled: Path) -> None:
    browser.open(filled)
    oil = "document.querySelector('.oil[data-port=\"{}\"]')"
    for time in (0.25, 0.5, 0.95, 0.5):
        browser.evaluate(f"mbsfmuPlots.groups.get('time').point({time})")
        expected = (pressure_at(time) - OUTSIDE) / (pressure_at(1.0) - OUTSIDE)
        for port in ("pump.node", "line.node", "relief.inlet"):
            colour = browser.evaluate(f"getComputedStyle({oil.format(port)}).stroke")
            assert share_of(colour) == pytest.approx(expected, abs=0.01), (time, port)
        label = browser.evaluate("document.querySelector('.pressure').textContent")
        assert label == f"A{pressure_at(time) / 1e5:.3g}\N{NO-BREAK SPACE}bar"
        assert share_of(browser.evaluate(f"getComputedStyle({oil.format('relief.outlet')}).stroke")) == 0.0
        width = browser.evaluate(f"parseFloat({oil.format('pump.node')}.style.strokeWidth)")
        assert width == pytest.approx(3.0 + 5.0 * time, rel=1e-3)
    # The pump stands below its node: its arrow points upwards, and the closed valve has none.
    shown = browser.evaluate(
        "[...document.querySelectorAll('.arrow')].filter((each) => each.style.display !== 'none')"
        ".map((each) => each.getAttribute('d'))"
    )
    ((head, *tail),) = (corners(each) for each in shown)
    assert all(head[1] < y for _, y in tail)
    legend = "document.querySelector('.circuit-legend').textContent"
    assert (
        browser.evaluate(legend)
        == "pressure 1  160\N{NO-BREAK SPACE}bar; widest line: flow of 12\N{NO-BREAK SPACE}L/min"
    )
    browser.evaluate("document.querySelector('.circuit-tools [data-do=units]').click()")
    assert browser.evaluate(legend).startswith("pressure 0.1  16\N{NO-BREAK SPACE}MPa")
    assert browser.evaluate("document.querySelector('.pressure').textContent") == "A4.75\N{NO-BREAK SPACE}MPa"


def test_keys_go_from_component_to_component(browser: Chromium, filled: Path) -> None:
    browser.open(filled)
    browser.evaluate("mbsfmuPlots.groups.get('time').point(0.5)")
    browser.evaluate("document.querySelector('.circuit-field').focus()")
    detail = "document.querySelector('.circuit-detail output').textContent"
    told = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "End", "Escape"):
        browser.key(key)
        told.append(browser.evaluate(detail))
        if key == "End":
            assert browser.evaluate("document.querySelectorAll('.chosen').length") == 1
    pump, line, relief = (
        "pump, flow-source: node at A.",
        "line, volume: node at A.",
        "relief, relief-valve: inlet at A, outlet at T.",
    )
    assert told == [pump, line, relief, line, "tank, tank: node at T.", ""]
    browser.key("Home")
    now = browser.evaluate("document.querySelector('.circuit-now').textContent").replace("\N{NO-BREAK SPACE}", " ")
    assert now == "node 47.5 bar, out 6 L/min"
    assert browser.evaluate("document.activeElement.className") == "circuit-field"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_pages_with_circuits_are_quiet_and_readable(
    browser: Chromium, drawn: dict[str, Path], filled: Path, width: int, dark: bool
) -> None:
    for page in (drawn["excavator"], filled):
        browser.open(page, width, dark=dark)
        assert browser.said == []
        assert browser.asked == []
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert findings(browser) == []
        sizes = (
            "[...document.querySelectorAll('.circuit-field text')].map((each) => each.getBoundingClientRect().height)"
        )
        assert min(browser.evaluate(sizes)) > 9.0
    browser.open(drawn["excavator"], width)
    browser.evaluate("document.querySelector('[data-do=fit]').click()")
    assert (
        browser.evaluate(
            "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.circuit-field'))"
        )
        <= 0
    )


def test_models_without_a_circuit_have_no_schematic(tmp_path: Path) -> None:
    page = mbsfmu.write_report(mbsfmu.models.pendulum(1).simulation(compiled=False).run(0.1), tmp_path / "run.html")
    assert "mbsfmu-circuit" not in page.read_text(encoding="utf-8")


SHOWN_AT = 1.25  # s, when the valve of the four-bar is open
NODES = ("V1", "V2", "V3")


def shown_pressures(browser: Chromium) -> dict[str, float]:
    """Seek the motion, and return the pressures in bar that the circuit shows then."""
    browser.evaluate(f"document.querySelector('.mbsfmu-scene').scene.seek({SHOWN_AT})")
    found = re.findall(r"(V\d)([\d.]+)\u00a0bar", " ".join(browser.evaluate(LABELS)))
    return {name: float(value) for name, value in found}


LABELS = "[...document.querySelectorAll('.pressure')].map((each) => each.textContent)"


@pytest.fixture(scope="module")
def pressures() -> dict[str, float]:
    """What a run in process has then, in bar."""
    run = mbsfmu.models.four_bar().simulation(solver="trapezoidal", step=1e-4).run(1.5)
    return {node: float(np.interp(SHOWN_AT, run.time, run[f"{node}.pressure"])) / 1e5 for node in NODES}


@pytest.mark.parametrize("outputs", [(), ("*",)])
def test_reports_of_coupled_runs_have_the_circuit(
    browser: Chromium, tmp_path: Path, pressures: dict[str, float], outputs: tuple[str, ...]
) -> None:
    """With what the outputs of the FMUs tell; the coupling costs less than a hundredth here."""
    package = mbsfmu.export(mbsfmu.models.four_bar(), tmp_path, layout="separate", outputs=outputs, step=1e-3)[-1]
    run = mbsfmu.cosimulate(package, step=1e-3, stop=1.5)
    browser.open(mbsfmu.write_report(run, tmp_path / "run.html"))
    known = NODES if outputs else ("V2", "V3")  # cylinder's pressures
    assert shown_pressures(browser) == {node: pytest.approx(pressures[node], rel=1e-2) for node in known}
    flows = "[...document.querySelectorAll('.mbsfmu-circuit')][0].circuit.data.most"
    assert (browser.evaluate(flows) > 0.0) == bool(outputs)
    assert ("no fmu has flows" in browser.evaluate("document.body.innerText").lower()) != bool(outputs)
    assert browser.said == []


def test_reports_of_comparisons_have_the_circuit(
    browser: Chromium, tmp_path: Path, pressures: dict[str, float]
) -> None:
    """Of the monolithic run, whose signals the page plots for it, folded."""
    found = mbsfmu.compare(mbsfmu.models.four_bar(), steps=[1e-3], algorithms=["jacobi"], stop=1.5)
    browser.open(mbsfmu.write_report(found, tmp_path / "run.html"))
    assert shown_pressures(browser) == {node: pytest.approx(pressures[node], rel=5e-3) for node in NODES}
    assert browser.evaluate("document.querySelector('.mbsfmu-circuit').circuit.data.most") > 1e-5  # m³/s
    assert "Monolithic, at the time of the motion" in browser.evaluate("document.body.innerText")
    assert browser.said == []
