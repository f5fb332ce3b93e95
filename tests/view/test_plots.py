"""Plots: thinning loses no extreme, numbers come back as they were, patterns mean what they mean elsewhere."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mbsfmu.base.errors import InputError
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.view.plots.plot import Curve, Kind, Panel, Plot, extremes, packed, packed_indices

EVIL = "</script><script>alert(1)</script>'\"&\u2028\N{CYRILLIC SMALL LETTER YA}"


def data_of(text: str) -> dict[str, Any]:
    """What the script of a page reads."""
    (found,) = re.findall(r'<script type="application/json" class="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


def places_of(grid: dict[str, Any]) -> np.ndarray:
    """The places that a script makes of what it reads; written apart from what packs them."""
    if "values" in grid:
        return np.frombuffer(base64.b64decode(grid["values"]), "<f8")
    jumps, pending = [], 0
    for each in base64.b64decode(grid["jumps"]):
        pending += each
        if each < 255:
            jumps.append(pending)
            pending = 0
    return grid["start"] + grid["step"] * np.concatenate([[0], np.cumsum(jumps)])


def values_of(curve: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(curve["values"]), "<f4")


@given(
    st.lists(st.floats(-1e9, 1e9) | st.just(float("nan")), min_size=1, max_size=400), st.integers(4, 60), st.integers(0)
)
@settings(max_examples=60)
def test_thinned_curves_cover_what_the_whole_one_covers(values: list[float], most: int, seed: int) -> None:
    """In whatever equal stretch, the least and the greatest value are among those that are kept; so are both ends."""
    whole = np.array(values)
    kept = extremes(whole, most)
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert kept[-1] == len(whole) - 1
    width = 1 if len(whole) <= max(most, 4) else -(-len(whole) // (most // 2))
    for begin in range(0, len(whole), width):
        stretch, left = whole[begin : begin + width], whole[kept[(kept >= begin) & (kept < begin + width)]]
        if np.isfinite(stretch).any():
            assert np.nanmin(stretch) == np.nanmin(left)
            assert np.nanmax(stretch) == np.nanmax(left)
        if np.isnan(stretch).any():
            assert np.isnan(left).any(), "a gap stays a gap"


def test_a_spike_of_one_point_in_a_million_survives() -> None:
    values = np.sin(np.linspace(0, 50, 1_000_001))
    values[654_321] = 7.0
    thin = Curve.of("x", np.arange(1_000_001) * 1e-5, values).thinned(2000)
    assert len(thin.x) <= 2002
    assert thin.y.max() == 7.0
    assert thin.x[thin.y.argmax()] == pytest.approx(6.54321)
    assert thin.whole == 1_000_001


@pytest.mark.parametrize(
    "x",
    [
        np.arange(1001) * 1e-3,
        5.0 + np.array([0, 1, 3, 254, 255, 256, 509, 510, 511, 1021, 5000]) * 0.1,
        np.geomspace(1e-4, 1, 50),
        np.array([2.0]),
        np.array([0.0, 1e-9, 1.0]),
    ],
    ids=["even", "even with leaps", "uneven", "one", "tiny first step"],
)
def test_places_come_back(x: np.ndarray) -> None:
    back = places_of(packed_indices(x))
    assert back == pytest.approx(x, rel=1e-14, abs=1e-14 * x[-1])


def test_even_places_take_a_byte_each() -> None:
    assert len(json.dumps(packed_indices(np.arange(10_001) * 1e-3))) < 1.4 * 10_001


def test_values_come_back_in_seven_digits() -> None:
    values = np.array([1e-30, -4.643662770389972e6, 0.0, 1e300])
    back = np.frombuffer(base64.b64decode(packed(values)), "<f4")
    assert back[:3] == pytest.approx(values[:3], rel=6e-8)
    assert np.isinf(back[3]), "what four bytes cannot hold is a gap"


def trajectory(count: int = 101) -> Trajectory:
    time = np.arange(count) * 1e-2
    names = ["mechanism.cylinder.length", "mechanism.cylinder.force", "mechanism.boom.length", "circuit.cylinder.force"]
    values = np.column_stack([np.sin(time), 1e4 * np.cos(time), time, 2e4 * np.cos(time)])
    return Trajectory(time, values, names, ["m", "N", "m", "N"])


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (("cylinder.*",), ["mechanism.cylinder.length", "mechanism.cylinder.force", "circuit.cylinder.force"]),
        (("boom.length", "*.force"), ["mechanism.boom.length", "mechanism.cylinder.force", "circuit.cylinder.force"]),
        (("length",), ["mechanism.cylinder.length", "mechanism.boom.length"]),
        (("mechanism.*", "mechanism.boom.*"), [each for each in trajectory().names if each.startswith("mechanism")]),
        ((), list(trajectory().names)),
    ],
)
def test_patterns_choose_signals(patterns: tuple[str, ...], names: list[str]) -> None:
    assert list(trajectory().chosen(patterns)) == names


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("cylindr.*", "there is no signal 'cylindr.*' to be drawn; did you mean 'cylinder.*'?"),
        ("boom.lenght", "there is no signal 'boom.lenght' to be drawn; did you mean"),
    ],
)
def test_a_pattern_that_means_nothing_is_told(pattern: str, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        trajectory().plot("boom.*", pattern)


def test_signals_of_one_unit_share_a_panel(tmp_path: Path) -> None:
    run = trajectory()
    plot = run.plot("cylinder.*", "boom.*")
    assert repr(plot) == "<Plot: cylinder.*, boom.*, 4 curves in 2 panels>"
    data = data_of(plot.save(tmp_path / "plot.html").read_text(encoding="utf-8"))
    assert [(panel["unit"], [curve["label"] for curve in panel["curves"]]) for panel in data["panels"]] == [
        ("m", ["mechanism.cylinder.length", "mechanism.boom.length"]),
        ("N", ["mechanism.cylinder.force", "circuit.cylinder.force"]),
    ]
    for panel in data["panels"]:
        for curve in panel["curves"]:
            assert places_of(data["grids"][curve["grid"]]) == pytest.approx(run.time, abs=1e-12)
            assert values_of(curve) == pytest.approx(run[curve["label"]], rel=1e-7)
    assert len(data["grids"]) == 1, "one grid serves all signals of a run"


def test_what_is_thinned_is_told_and_what_is_not_is_not() -> None:
    long = Curve.of("long", np.arange(30_000) * 1e-3, np.random.default_rng(1).normal(size=30_000))
    thin = Plot("long", (Panel("", "m", (long,)),), most=2000)
    text = thin.element().markup
    assert "the least and the greatest of each of 1\N{NARROW NO-BREAK SPACE}000 equal stretches" in text
    assert "up to 30\N{NARROW NO-BREAK SPACE}000 points" in text
    assert len(values_of(data_of(text)["panels"][0]["curves"][0])) <= 2002
    assert "stretches" not in Plot("long", (Panel("", "m", (long,)),)).element().markup


def test_notebooks_get_a_page_in_a_frame() -> None:
    shown = Plot(EVIL, (Panel(EVIL, EVIL, (Curve.of(EVIL, [0, 1], [0, 1], Kind.MARKED),)),))._repr_html_()
    assert shown.startswith("<iframe ")
    assert shown.count("<") == 2, "all of the page is in an attribute"
    inside = html.unescape(re.findall(r'srcdoc="(.*?)"', shown, re.DOTALL)[0])
    assert inside.startswith("<!doctype html>")
    data = data_of(inside)
    assert data["panels"][0]["curves"][0]["label"] == data["panels"][0]["unit"] == data["title"] == EVIL
    assert EVIL not in inside


def test_curves_without_a_value_for_each_place_are_refused() -> None:
    with pytest.raises(InputError, match="the curve 'x' has 2 values at 3 places"):
        Curve.of("x", [0, 1, 2], [0, 1])


def test_the_code_of_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "plots.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(code, {})  # the page is ours
    assert (tmp_path / "plot.html").stat().st_size > 100_000
