"""Lines between FMUs that are forgotten or crossed are warned of by name: the master knows units and names alone."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import mbsfmu
from mbsfmu.cosim.control.run_statistics import RunStatistics
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.runs.preparation import report_crossed
from mbsfmu.modelling.variables import Variable

LINES = [
    "circuit.cylinder.force=mechanism.cylinder.force",
    "mechanism.cylinder.length=circuit.cylinder.length",
    "mechanism.cylinder.velocity=circuit.cylinder.velocity",
]


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The mechanism and the circuit of the four-bar."""
    paths = mbsfmu.export(mbsfmu.models.four_bar(), tmp_path_factory.mktemp("lines"), layout="separate")
    return sorted(path for path in paths if path.suffix == ".fmu")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ((), None),
        ((1,), "circuit.cylinder.length, though other variables of circuit.cylinder are"),
        (
            (1, 2),
            "circuit.cylinder.length and circuit.cylinder.velocity, though other variables of circuit.cylinder are",
        ),
        ((0,), "mechanism.cylinder.force, though other variables of mechanism.cylinder are"),
    ],
)
def test_forgotten_lines_are_warned_of(
    units: list[Path], missing: tuple[int, ...], told: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    connections = [line for index, line in enumerate(LINES) if index not in missing]
    result = mbsfmu.cosimulate(units, connections=connections, step=1e-3, stop=2e-3)
    expected = f"nothing drives {told} connected: each keeps its start value, or follows a signal inside its FMU"
    assert [sentence for sentence in warnings(caplog) if "nothing drives" in sentence] == ([expected] if told else [])
    assert (expected in result.notes) == bool(told)


class Described:
    """All of an instance that is asked for: the units of its variables."""

    def __init__(self, **units: str) -> None:
        self.variables = {
            f"{thing}.{name}": Variable(name, unit=unit) for thing in "ab" for name, unit in units.items()
        }


@pytest.mark.parametrize(
    ("motion", "crossed"),
    [({"a": "a", "b": "b"}, False), ({"a": "b", "b": "a"}, True), ({"a": "a", "b": "a"}, True)],
)
def test_crossed_cylinders_are_warned_of(motion: dict[str, str], crossed: bool) -> None:
    instances = {"oil": Described(force="N", velocity="m/s"), "machine": Described(force="N", velocity="m/s")}
    connections = [Connection(("oil", f"{each}.force"), ("machine", f"{each}.force")) for each in "ab"]
    connections += [
        Connection(("machine", f"{mover}.velocity"), ("oil", f"{each}.velocity")) for each, mover in motion.items()
    ]
    statistics = RunStatistics()
    report_crossed(statistics, connections, instances)  # type: ignore[arg-type]
    assert bool(statistics.notes) == crossed
    if crossed:
        assert statistics.notes[-1] == (
            "oil.b pushes machine.b, but is moved by machine.a, which something else pushes: "
            "machine.a.velocity=oil.b.velocity; are connections crossed?"
        )
