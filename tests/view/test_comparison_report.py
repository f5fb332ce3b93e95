"""The report of a comparison: the answer first, every run as what it is, names as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from made_comparison import ERRORS, STEP_ERROR, UNITS, made_comparison, made_run
from pages import Page, plain, report_of

from mbsfmu.comparison import Comparison, StabilityLimit
from mbsfmu.comparison.reference_run import TightRun
from mbsfmu.comparison.run import RunCurves
from mbsfmu.view.report import Circumstances

EVIL = '</script><script>alert("1 & 2")</script><!-- \' \u2028 \N{CYRILLIC SMALL LETTER YA}'
Write = Callable[[Comparison], Page]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda made: report_of(made, tmp_path)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of the comparison as it stands."""
    return report_of(made_comparison(), tmp_path_factory.mktemp("report"))


def test_the_answer_comes_first_with_numbers_and_what_is_not_known(page: Page) -> None:
    """At 0.5 ms 0.4 % of the crank's range against 2 %: five times as much."""
    assert page.answer == [
        "Coupling costs 0.4 % of the range of an output at most (crank.angle) with gauss-seidel and a communication "
        "step of 0.0005 s; with jacobi it costs 2 %, 5 times as much.",
        "The step of 0.0005 s by itself costs 0.1 % (cylinder.length), measured against dca with rodas5p and a "
        "tolerance of 1e-06, which is right to 0.0004 %.",
        "For an error of at most 1 % the cheapest is gauss-seidel with a step of 0.001 s: 0.9 % for 500 ms of "
        "processor time per simulated second, beside 1.5 s of the monolithic run; loading the FMUs takes 20 ms once.",
        "Not known: what coupling costs at other steps than 0.0005 s, 0.001 s, with other inputs, or after 1 s; "
        "computing times are those of one machine.",
    ]
    assert [each.tag for each in page.tree.xpath("//main/*")][:3] == ["h1", "p", "section"]


def test_algorithms_stand_best_first(page: Page) -> None:
    assert page.rows("algorithm", "largest error") == [
        ["gauss-seidel", "0.4 %", "crank.angle", "0.5 %", "–", "none of those run"],
        ["jacobi", "2 %", "crank.angle", "2.1 %", "1.04", "none of those run"],
    ]


def test_table_of_runs_has_units_in_every_cell(page: Page) -> None:
    assert page.rows("algorithm", "step") == [
        ["gauss-seidel", "0.0005 s", "ok", "0.4 %", "0.5 %", "50 mJ", "–", "2 000", "1 s/s", "20 ms"],
        ["gauss-seidel", "0.001 s", "ok", "0.8 %", "0.9 %", "100 mJ", "–", "1 000", "500 ms/s", "20 ms"],
        ["jacobi", "0.0005 s", "ok", "2 %", "2.1 %", "250 mJ", "–", "2 000", "1 s/s", "20 ms"],
        ["jacobi", "0.001 s", "ok", "4 %", "4.1 %", "500 mJ", "–", "1 000", "500 ms/s", "20 ms"],
    ]


def test_cost_of_the_step_is_told_of_each_output(page: Page) -> None:
    assert page.rows("output", "cost of the step") == [
        ["cylinder.length", "0.1 %", "0.0004 %"],
        ["crank.angle", "0.05 %", "0.0002 %"],
    ]


def test_ticks_stand_at_the_steps_that_were_run(page: Page) -> None:
    (data,) = (
        each for each in page.data if isinstance(each, dict) and each.get("title", "").startswith("Error over com")
    )
    assert data["axis"]["ticks"] == [5e-4, 1e-3]
    assert data["axis"]["logarithmic"] is data["panels"][0]["logarithmic"] is True
    labels = [curve["label"] for curve in data["panels"][0]["curves"]]
    assert labels == ["jacobi: order 1.04", "gauss-seidel", "cost of the step alone"]


def test_outputs_are_drawn_with_their_errors_the_largest_first(page: Page) -> None:
    assert [title for title in page.plots if title in UNITS] == ["crank.angle", "cylinder.length"]
    signals, errors = page.plots["crank.angle"]
    assert [curve["label"] for curve in signals["curves"]] == ["monolithic", "jacobi 0.0005 s", "gauss-seidel 0.0005 s"]
    assert [curve["label"] for curve in errors["curves"]] == ["jacobi 0.0005 s", "gauss-seidel 0.0005 s"]
    assert signals["unit"] == errors["unit"] == "rad"


def test_numbers_can_be_saved(page: Page) -> None:
    numbers, table = (each for each in page.data if not isinstance(each, dict) or "runs" in each)
    assert numbers == json.loads(json.dumps(made_comparison().to_dict()))
    header, *lines = table.splitlines()
    assert header.startswith("algorithm,step,layout,status,message,error.crank.angle")
    assert lines[0].startswith("jacobi,0.001,separate,ok,,0.04,0.02,")
    assert len(lines) == 4


def test_page_without_power_bonds_has_no_energy_plot(write: Write) -> None:
    runs = [made_run(algorithm, step, bonds=False) for algorithm, steps in ERRORS.items() for step in steps]
    page = write(made_comparison(runs))
    assert "Residual energy" not in page.plots
    assert "Energy at the coupling" not in page.text


def test_stability_is_a_table_of_its_own(write: Write, page: Page) -> None:
    assert "Stability" not in page.text
    made = made_comparison()
    made.stability = {"jacobi": StabilityLimit(2e-3, 2.1e-3), "gauss-seidel": StabilityLimit(0.1, None)}
    assert write(made).rows("algorithm", "stable up to") == [
        ["jacobi", "0.002 s", "0.0021 s"],
        ["gauss-seidel", "0.1 s", "–"],
    ]


def test_page_without_a_tight_run_says_why(write: Write) -> None:
    made = made_comparison()
    made.tight = TightRun(doubt="what the step costs is not known, for it is so")
    made.reference["error"] = dict.fromkeys(UNITS)
    for each in made.runs:
        each.error_total = dict.fromkeys(UNITS)
    page = write(made)
    assert "What the step costs is not known, for it is so." in page.answer
    assert {row[4] for row in page.rows("algorithm", "step")} == {"–"}
    labels = [curve["label"] for curve in page.plots["Error over communication step"][0]["curves"]]
    assert "cost of the step alone" not in labels
    assert "0.8 % for 500 ms of processor time" in page.text, "judged by the coupling alone"


def test_diverged_run_says_why(write: Write) -> None:
    why = "crank.angle is off by 140 % of its range"
    page = write(made_comparison([made_run("jacobi", 1e-3, why), made_run("gauss-seidel", 1e-3)]))
    assert page.rows("algorithm", "step")[1] == ["jacobi", "0.001 s", "diverged", why, "–", "–", "1 000", "–", "20 ms"]
    assert page.rows("algorithm", "largest error")[1][:2] == ["jacobi", "diverged"]
    assert "jacobi diverges at 0.001 s." in page.answer
    assert "times as much" not in page.text


def test_errors_that_are_alike_are_told_once(write: Write) -> None:
    """2 % and 2.04 % are one number to a reader, not 1 times as much."""
    runs = [made_run("jacobi", 1e-3), made_run("gauss-seidel", 1e-3)]
    for run, error in zip(runs, (0.0204, 0.02), strict=True):
        run.error = {"crank.angle": error}
    page = write(made_comparison(runs))
    assert page.answer[0].endswith(
        "2 % of the range of an output at most (crank.angle) with gauss-seidel and a communication step of 0.001 s."
    )


def test_page_of_a_machine_at_rest_says_so(write: Write) -> None:
    made = made_comparison()
    made.reference["still"] = list(UNITS)
    page = write(made)
    assert page.answer[0].startswith("Nothing moves: no output of the monolithic run changes up to 1 s")
    assert "cheapest is" not in page.text
    assert not any(title.startswith("Error over") for title in page.plots)


def test_page_is_made_where_every_run_diverged(write: Write) -> None:
    page = write(made_comparison([made_run("jacobi", 5e-4, "lost"), made_run("jacobi", 1e-3, "lost")]))
    assert [row[2:4] for row in page.rows("algorithm", "step")] == [["diverged", "lost"], ["diverged", "lost"]]
    assert page.answer[0] == "jacobi diverges at 0.0005 s and 0.001 s."
    assert "Coupling costs" not in page.text
    assert "Error over communication step" not in page.plots


def test_page_is_made_without_any_run(tmp_path: Path) -> None:
    page = report_of(made_comparison([]), tmp_path, Circumstances(ended="The comparison was interrupted: 0 of 4 runs."))
    assert page.answer[0] == "The comparison was interrupted: 0 of 4 runs."


def test_run_that_broke_off_is_drawn_as_far_as_it_came(write: Write) -> None:
    page = write(made_comparison([made_run("jacobi", 5e-4, "broke off", reached=1), made_run("gauss-seidel", 5e-4)]))
    (data,) = (each for each in page.data if isinstance(each, dict) and each.get("title") == "crank.angle")
    grids = [curve["grid"] for curve in data["panels"][0]["curves"]]
    assert grids[0] == grids[2] != grids[1]


def test_warnings_and_the_call_are_told(tmp_path: Path) -> None:
    page = report_of(made_comparison(), tmp_path, Circumstances("mbsfmu compare x.json", ["the brake is off"]))
    assert [plain(each) for each in page.tree.xpath("//section[@class='notes']//li")] == ["the brake is off"]
    assert "mbsfmu compare x.json" in page.text


@pytest.mark.parametrize("field", ["model", "description", "formulation", "message", "output", "unit", "algorithm"])
def test_names_are_text_and_never_markup(field: str, write: Write, page: Page) -> None:
    made = made_comparison(
        [made_run("jacobi", 1e-3, EVIL if field == "message" else "lost"), made_run("gauss-seidel", 1e-3)]
    )
    if field == "output":
        _call_an_output_so(made)
    if field == "unit":
        made.outputs["crank.angle"] = EVIL
    if field in ("model", "description", "formulation"):
        setattr(made, field, EVIL)
    if field == "algorithm":
        for each in made.runs:
            each.algorithm = each.algorithm.replace("gauss-seidel", EVIL)
        made.order = {EVIL: None, "jacobi": 1.0}
    evil = write(made)
    assert EVIL not in evil.source
    assert evil.scripts == page.scripts
    if field == "unit":
        assert evil.plots["crank.angle"][0]["unit"] == EVIL
    else:
        assert " ".join(EVIL.split()) in evil.text


def _call_an_output_so(made: Comparison) -> None:
    made.outputs[EVIL] = "m"
    made.reference_run.add(EVIL, made.reference_run["crank.angle"], "m")
    made.reference["error"][EVIL] = STEP_ERROR
    for each in made.runs:
        drawn = each.curves
        each.curves = RunCurves(
            {**drawn.outputs, EVIL: drawn.outputs["crank.angle"]},
            {**drawn.deviations, EVIL: drawn.deviations["crank.angle"]},
            drawn.energy_residual,
        )
        each.error = {**each.error, EVIL: 0.5 if each.status == "ok" else None}


def test_a_report_needs_nothing_that_is_not_always_installed(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pyarrow", "pyarrow.parquet", "pandas", "xarray"):
        monkeypatch.setitem(sys.modules, package, None)
    assert write(made_comparison()).answer
