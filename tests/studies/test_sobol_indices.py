"""Sobol indices by the study command: Ishigami's in closed form; failures and refusals; open studies; pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documented import ROOT
from scipy.optimize import minimize_scalar
from studies.ishigami import A, B

import mbsfmu
from mbsfmu import InputError
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.cli import main
from mbsfmu.studies import OpenStudy, StudyOptions, StudyResult, draw
from mbsfmu.studies.points import saltelli_shares, sobol_indices

pytest.importorskip("SALib")
FILE = Path(__file__).with_name("ishigami.py")
BY_FIRST, BY_SECOND = 0.5 * (1.0 + B * np.pi**4 / 5.0) ** 2, A**2 / 8.0
BY_BOTH = 8.0 * B**2 * np.pi**8 / 225.0
"""Parts of the variance: of a, of b, and of a with c."""
VARIANCE = BY_FIRST + BY_SECOND + BY_BOTH
FIRST = np.array([BY_FIRST, BY_SECOND, 0.0]) / VARIANCE
TOTAL = np.array([BY_FIRST + BY_BOTH, BY_SECOND, BY_BOTH]) / VARIANCE


def test_ishigamis_indices_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Callable[[], object]
) -> None:
    """With 512 base samples; each closed form lies within twice the interval that is told of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.json").write_text(
        json.dumps({"name": "ishigami", "systems": {"f": {"type": "ishigami"}}, "stop_time": 1.0, "step": 1.0})
    )
    axes = [part for name in "abc" for part in ("--vary", f"f.{name}={-np.pi}:{np.pi}")]
    files = ["-o", "rows.csv", "--json", "rows.json", "--report", "rows.html", "--workers", "1"]
    sampled = ["--sample", "saltelli:512", "--seed", "3", "--stop", "1", "--step", "1"]
    monkeypatch.setattr("sys.argv", ["mbsfmu", "sweep", "model.json", "--parts", str(FILE), *axes, *sampled, *files])
    main()
    data = json.loads((tmp_path / "rows.json").read_text())
    assert len(data["rows"]) == 512 * 5
    (indices,) = data["sobol_indices"]
    assert (indices["output"], indices["samples"], indices["left_out"]) == ("final.y", 512, 0)
    assert indices["parameters"] == ["f.a", "f.b", "f.c"]
    for name, expected in (("first", FIRST), ("total", TOTAL)):
        assert np.all(np.abs(np.array(indices[name]) - expected) <= 2.0 * np.array(indices[f"{name}_error"]) + 1e-3)
        assert np.all(np.abs(np.array(indices[name]) - expected) < 0.1)
    page = (tmp_path / "rows.html").read_text()
    for heading in ("Sobol indices", "Distribution", "Influence of the parameters", "main effect"):
        assert heading in page


def test_samples_and_base_samples_with_failures() -> None:
    """Of y = 2 a + b on the unit square: a has 4/5 of the variance; blocks of which a value is missing do not count."""
    shares = saltelli_shares(2, 256, 1)
    assert shares.shape == (1024, 2)
    samples = {"a": shares[:, 0], "b": shares[:, 1]}
    values = 2.0 * shares[:, 0] + shares[:, 1]
    found = sobol_indices(samples, "y", values)
    np.testing.assert_allclose(found.first, [0.8, 0.2], atol=0.02)
    np.testing.assert_allclose(found.total, [0.8, 0.2], atol=0.02)
    values[5] = np.nan
    fewer = sobol_indices(samples, "y", values)
    assert (fewer.samples, fewer.left_out) == (255, 1)
    np.testing.assert_allclose(fewer.first, [0.8, 0.2], atol=0.02)
    assert np.all(np.isnan(sobol_indices(samples, "y", np.ones(1024)).first))
    with pytest.raises(InputError, match="need two base samples of which all runs came to the end"):
        sobol_indices(samples, "y", np.full(1024, np.nan))
    with pytest.raises(InputError, match="Sobol indices need samples of the method saltelli"):
        sobol_indices({"a": shares[1:, 0], "b": shares[1:, 1]}, "y", values[1:])
    with pytest.raises(InputError, match="Sobol indices need samples of the method saltelli"):
        sobol_indices(dict(samples, b=np.roll(shares[:, 1], 1)), "y", values)
    with pytest.raises(InputError, match="base samples is 100; for saltelli it must be a power of two"):
        draw({"a": (0.0, 1.0)}, 100, method="saltelli")


def hanging() -> mbsfmu.CoupledModel:
    return mbsfmu.models.pendulum(1)


def test_points_are_asked_for_one_by_one() -> None:
    """An optimizer finds the length whose run ends at a wanted angle; its rows are those of a sweep."""
    options = StudyOptions(settings={"step": (1e-3,)}, stop=0.3)
    study = OpenStudy(hanging(), "link_1.length", options=options)
    wanted = float(mbsfmu.sweep(hanging(), {"link_1.length": [0.8]}, options=options)["final.link_1.angle"][0])

    def off(length: float) -> float:
        return (study.ask(length)["final.link_1.angle"] - wanted) ** 2

    found = minimize_scalar(off, bounds=(0.5, 1.5), options={"xatol": 1e-6})
    assert found.x == pytest.approx(0.8, abs=1e-4)
    result = study.result()
    assert isinstance(result, StudyResult)
    assert len(result.rows) == found.nfev
    before = study.ask(float(result["link_1.length"][0]))
    assert before["wall_seconds"] == result["wall_seconds"][0], "it was not run again"
    lengths = {"link_1.length": result["link_1.length"].tolist()}
    swept = mbsfmu.sweep(hanging(), samples=lengths, options=options, executor=InlineExecutor())
    np.testing.assert_allclose(result["final.link_1.angle"], swept["final.link_1.angle"], rtol=1e-7)
    failed = study.ask(-1.0)
    assert failed["status"] == "failed"
    assert "link_1.length = -1 m is refused" in failed["message"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: OpenStudy(hanging()), "an open study needs the name of a parameter"),
        (lambda: OpenStudy(hanging(), "link_1.width"), "has no parameter 'link_1.width'"),
        (lambda: OpenStudy(hanging(), "link_1.mass", settings={"step": [1e-3, 2e-3]}), "the setting step has 2 values"),
        (lambda: OpenStudy(hanging(), "link_1.mass").ask(1.0, 2.0), "the point has 2 values; the study has mechanism"),
        (lambda: OpenStudy(hanging(), "link_1.mass").ask(float("nan")), "it must be finite"),
        (lambda: OpenStudy(hanging(), "link_1.mass").result(), "no point of the study was asked for"),
    ],
)
def test_refusals(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()


def test_pages_tell_where_points_failed(tmp_path: Path) -> None:
    """Masses below zero are refused: the greatest of them is the greatest that failed."""
    masses = np.linspace(-1.0, 2.0, 16)
    masses = masses[masses != 0.0].tolist()
    study = mbsfmu.sweep(hanging(), samples={"link_1.mass": masses}, stop=0.05, executor=InlineExecutor())
    mbsfmu.write_report(study, tmp_path / "page.html")
    text = re.sub(r"<[^>]*>", " ", (tmp_path / "page.html").read_text())
    assert "Failures" in text
    assert f"{sum(mass < 0.0 for mass in masses)} of {len(masses)} points did not run to the end." in text


def test_the_page_has_a_study_that_runs() -> None:
    """docs/guides/parameter-studies.md: the mass with which the cylinder carries 10 kN is found by the optimizer."""
    page = (ROOT / "docs" / "guides" / "parameter-studies.md").read_text(encoding="utf-8")
    code = next(each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "OpenStudy" in each)
    names: dict[str, Any] = {}
    exec(code, names)  # the page is ours
    simulation = mbsfmu.models.four_bar().simulation(step=2e-3)
    simulation.set("boom.mass", names["best"].x)
    assert simulation.run(0.1)["cylinder.force"][-1] == pytest.approx(1e4, abs=1.0)
