"""What objects show of themselves in a notebook, and what the key of a mapping can be completed to."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import hydraulics
import mbsfmu
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.comparison import Comparison
from mbsfmu.io.trajectory import Trajectory

VOID = {"br", "hr", "img", "input", "meta"}


class Page(HTMLParser):
    """Reads HTML whose elements must be closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_run_shows_its_signals() -> None:
    times = np.array([0.0, 1.0, 2.0])
    values = np.column_stack([[1.0, -2.0, 3.0], [4.0, 5.0, 0.5]])
    page = Page(Trajectory(times, values, ["a.x", "b.y"], ["m", "N"])._repr_html_())
    assert page.rows[0] == ["signal", "unit", "at the start", "least", "greatest", "at the end"]
    assert page.rows[1:] == [["a.x", "m", "1", "-2", "3", "3"], ["b.y", "N", "4", "0.5", "5", "0.5"]]
    assert "2 signals at 3 times from 0 to 2 s" in page.text


def test_long_tables_are_cut_and_say_so() -> None:
    names = [f"x{index}" for index in range(1000)]
    text = Trajectory(np.zeros(1), np.zeros((1, 1000)), names, ["1"] * 1000)._repr_html_()
    assert len(text) < 20_000
    assert Page(text).rows[-1] == ["… and 960 more"]
    assert Page(Trajectory(np.zeros(0), np.zeros((0, 1)), ["x"], ["m"])._repr_html_()).rows[1][2:] == ["–"] * 4


def test_names_are_text_whatever_is_in_them() -> None:
    text = Trajectory(np.zeros(1), np.zeros((1, 1)), ["<script>x</script>"], ["<b>"])._repr_html_()
    assert Page(text).elements.count("script") == 0
    model = mbsfmu.models.pendulum(1).model_copy(update={"description": "a <img src=x> & more"})
    page = Page(model._repr_html_())
    assert "img" not in page.elements
    assert "a <img src=x> & more" in page.text


def test_a_model_shows_its_systems_and_their_parts() -> None:
    page = Page(mbsfmu.models.four_bar()._repr_html_())
    assert "CoupledModel four-bar" in page.text
    for told in ("systems (2)", "bodies (3)", "joints (4)", "components (", "signals (1)"):
        assert told in page.text, told
    found = {row[0]: row for row in page.rows}
    assert found["boom"][1] == "Beam"
    assert "mass=225" in found["boom"][2]
    assert found["stop_time"] == ["stop_time", "10", "s", "End and step of a run in s, where nothing else is said."]
    assert len(mbsfmu.models.pendulum(500)._repr_html_()) < 60_000


def test_a_part_shows_its_parameters_with_their_units() -> None:
    throttle = hydraulics.Throttle(
        name="orifice", inlet="A", outlet="B", orifice_diameter=1e-3, discharge_coefficient=0.7
    )
    found = {row[0]: row for row in Page(throttle._repr_html_()).rows}
    assert found["orifice_diameter"][1:3] == ["0.001", "m"]
    assert found["discharge_coefficient"][1:3] == ["0.7", "1"]
    assert found["inlet"][1:3] == ["A", ""]


def test_comparisons_and_studies_show_their_runs() -> None:
    run = mbsfmu.Run("jacobi", 1e-3, "ok", {"x": 0.02}, None, 10, 0.5, error_total={"x": 0.03}, costs=(0.25,))
    reference = {"cost": 0.1, "step": 1e-3, "error": {}}
    comparison = Comparison("four-bar", "", "penalty", reference, {"x": "m"}, [run], {"jacobi": 1.0}, {})
    page = Page(comparison._repr_html_())
    assert page.rows[1] == ["jacobi", "0.001", "ok", "2", "3", "0.25"]
    assert "nearest comes jacobi with a step of 0.001 s and 3 %" in page.text
    study = mbsfmu.sweep(mbsfmu.models.pendulum(1), {"link_1.mass": [1.0, 2.0]}, stop=0.01, executor=InlineExecutor())
    page = Page(study._repr_html_())
    assert page.rows[0][:3] == ["mechanism.link_1.mass [kg]", "formulation", "status"]
    assert [row[0] for row in page.rows[1:]] == ["1", "2"]
    assert repr(study) == "<StudyResult: pendulum-1, 2 points over mechanism.link_1.mass>"


def test_keys_are_completed_to_names_that_are_found() -> None:
    names = ["mechanism.boom.angle", "mechanism.link.angle", "circuit.boom.angle", "time_left"]
    result = Trajectory(np.zeros(1), np.zeros((1, 4)), names, ["rad"] * 4)
    offered = result._ipython_key_completions_()
    assert offered == [*names, "link.angle"]  # boom.angle is two of them
    for name in offered:
        assert result[name].shape == (1,)


@pytest.mark.parametrize("name", mbsfmu.__all__)
def test_public_names_are_in_the_directory(name: str) -> None:
    assert name in dir(mbsfmu)
