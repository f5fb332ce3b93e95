"""The report page: one file that loads nothing, shows its plots and takes names as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mbsfmu.comparison import Comparison, Run, StabilityLimit
from mbsfmu.comparison.tight import TightRun
from mbsfmu.report import write_report

TIMES = [0.0, 0.5, 1.0]
MONOLITHIC = {"crank.angle": [0.0, 1.0, 2.0], "cylinder.length": [1.0, 1.5, 1.2]}
UNITS = {"crank.angle": "rad", "cylinder.length": "m"}
COLUMNS = 8  # algorithm, step, status, two outputs, both with the step's, residual energy, time
ERRORS = {"jacobi": {1e-3: 0.04, 5e-4: 0.02}, "gauss-seidel": {1e-3: 0.008, 5e-4: 0.004}}
STEP_ERROR = 0.001


def run(algorithm: str, step: float, message: str = "") -> Run:
    worst = ERRORS[algorithm][step]
    curves = {name: [value + worst for value in values] for name, values in MONOLITHIC.items()}
    errors: dict[str, float | None] = {"crank.angle": worst, "cylinder.length": worst / 2}
    return Run(
        algorithm,
        step,
        "diverged" if message else "ok",
        dict.fromkeys(errors) if message else errors,
        None if message else 12.5 * worst,
        round(1.0 / step),
        0.25,
        message,
        cpu_seconds=0.5 * 1e-3 / step,
        error_total=dict.fromkeys(errors) if message else {"crank.angle": worst, "cylinder.length": worst + STEP_ERROR},
        curves=curves,
    )


def comparison(
    runs: Sequence[Run] | None = None, model: str = "four-bar", description: str = "four links", bonds: bool = True
) -> Comparison:
    """Two algorithms with two steps each on two outputs, made up: errors as in `ERRORS`."""
    if runs is None:
        runs = [run(algorithm, step) for algorithm, steps in ERRORS.items() for step in steps]
    keys = {f"{each.algorithm} {each.step:g} s": each for each in runs}
    reference = {
        "step": 5e-4,
        "stop": 1.0,
        "newton_mean": 2.25,
        "newton_max": 4,
        "energy_drift_max": 3e-7,
        "actuator_work_max": 812.0,
        "actuator_work_min": -31.0,
        "wall_seconds": 1.75,
        "cpu_seconds": 1.5,
        "error": {**dict.fromkeys(UNITS, 0.0), "crank.angle": STEP_ERROR / 2, "cylinder.length": STEP_ERROR},
    }
    signals = {
        name: {"monolithic": values, **{key: each.curves[name] for key, each in keys.items()}}
        for name, values in MONOLITHIC.items()
    }
    residual = {key: [0.0, 0.1, 0.2] for key, each in keys.items() if bonds and each.energy_residual is not None}
    order = {"jacobi": 1.04, "gauss-seidel": None}
    curves = {"time": TIMES, "signals": signals, "energy_residual": residual}
    tight = TightRun(
        "dca", "rodas5p", 1e-6, {**dict.fromkeys(UNITS, 0.0), "crank.angle": 2e-6, "cylinder.length": 4e-6}
    )
    return Comparison(model, description, "double-step", reference, UNITS, list(runs), dict(order), curves, tight=tight)


class Page(HTMLParser):
    """What is on a page: its tags with attributes, its text outside of SVG, and the comments in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.comments: list[str] = []
        self.styles: list[str] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "link", "br", "img"):
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            self.styles.append(data)
        elif "svg" not in self._open:
            self.words.append(data)
            if self._open and self._open[-1] in ("td", "th"):
                self.rows[-1][-1] += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def runs(self) -> list[list[str]]:
        """The rows of the table of coupled runs and what follows; those of the outputs stand before it."""
        (first,) = (index for index, row in enumerate(self.rows) if row[:2] == ["algorithm", "step [s]"])
        return self.rows[first:]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Comparison], Page]:
    def make(made: Comparison) -> Page:
        path = write_report(made.to_dict(curves=True), tmp_path / "report.html")
        return Page(path.read_text(encoding="utf-8"))

    return make


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of the comparison as it stands."""
    path = write_report(comparison().to_dict(curves=True), tmp_path_factory.mktemp("report") / "report.html")
    return Page(path.read_text(encoding="utf-8"))


Write = Callable[[Comparison], Page]


def test_page_loads_nothing(page: Page) -> None:
    loading = {"script", "link", "iframe", "img", "image", "object", "embed", "base", "video", "audio", "form"}
    assert not loading & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            if name in ("src", "srcset", "href", "xlink:href", "data", "poster", "action", "background"):
                assert value.startswith("#"), f"<{tag} {name}={value!r}> leads out of the page"
            assert not name.startswith("on"), f"<{tag}> runs a script {name}"
            if "//" in value:
                assert name.startswith("xmlns") or name == "rdf:resource", f"<{tag} {name}={value!r}>"
    assert "@import" not in page.source
    assert all(target.startswith("#") for target in re.findall(r"url\(\s*['\"]?([^)]*)", page.source))


def test_parts_of_plots_that_are_referred_to_are_there(page: Page) -> None:
    known = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    referred = set(re.findall(r"url\(#([^)]+)\)", page.source)) | set(re.findall(r'href="#([^"]+)"', page.source))
    assert referred, "the plots refer to their clip paths and glyphs"
    assert referred <= known


def test_page_is_a_document_in_utf_8(page: Page) -> None:
    assert page.source.lower().startswith("<!doctype html>")
    assert page.source.lower().count("<!doctype") == 1
    assert "<?xml" not in page.source
    assert ("meta", {"charset": "utf-8"}) in page.tags
    assert page.count("html") == page.count("head") == page.count("body") == page.count("h1") == 1


def test_every_plot_is_there_and_described(page: Page) -> None:
    """Errors over steps, errors over cost, energy, and one of each of two outputs."""
    assert page.count("svg") == page.count("figure") == 5
    labels = [attributes["aria-label"] for tag, attributes in page.tags if tag == "figure"]
    assert all(labels)
    for name in UNITS:
        assert sum(name in label for label in labels) == 1
    assert "Residual energy of the coupling over time" in labels


def test_plots_are_labelled(page: Page) -> None:
    """Matplotlib draws text as outlines and leaves what it says as comments."""
    comments = page.comments
    for label in ("crank.angle [rad]", "cylinder.length [m]", "communication step [s]", "residual energy [J]"):
        assert label in comments
    assert "jacobi: order 1.04" in comments
    assert "gauss-seidel" in comments
    assert comments.count("monolithic") == 2


def test_only_the_smallest_step_is_drawn_over_time(page: Page) -> None:
    comments = page.comments
    assert comments.count("jacobi 0.0005 s") == 3  # two outputs and the energy
    assert comments.count("jacobi 0.001 s") == 0


def test_page_without_power_bonds_has_no_energy_plot(write: Write) -> None:
    page = write(comparison(bonds=False))
    assert page.count("svg") == 4
    assert "Energy at the coupling" not in page.text


def test_table_has_a_row_a_run_with_errors_in_percent(page: Page) -> None:
    header, *rows = page.runs
    assert header[3:5] == ["crank.angle [%]", "cylinder.length [%]"]
    assert rows == [
        ["jacobi", "0.001", "ok", "4", "2", "4.1", "0.5", "0.25"],
        ["jacobi", "0.0005", "ok", "2", "1", "2.1", "0.25", "0.25"],
        ["gauss-seidel", "0.001", "ok", "0.8", "0.4", "0.9", "0.1", "0.25"],
        ["gauss-seidel", "0.0005", "ok", "0.4", "0.2", "0.5", "0.05", "0.25"],
    ]


def test_headline_tells_the_best_and_by_how_much(page: Page) -> None:
    """At 0.5 ms: 0.4 % of the crank's range against 2 %."""
    assert (
        "With a communication step of 0.0005 s, gauss-seidel is off by at most 0.4 % of the range of any output "
        "(crank.angle), 5 times less than jacobi."
    ) in page.text


def test_page_says_what_the_wanted_accuracy_costs(page: Page) -> None:
    assert (
        "For an error of at most 1 % the cheapest is gauss-seidel with a step of 0.001 s: 0.9 % in 0.5 s of processor "
        "time, beside 1.5 s of the monolithic run."
    ) in page.text
    assert "processor time [s]" in page.comments


def test_stability_is_a_table_of_its_own(write: Write, page: Page) -> None:
    assert "Stability" not in page.text
    made = comparison()
    made.stability = {"jacobi": StabilityLimit(2e-3, 2.1e-3), "gauss-seidel": StabilityLimit(0.1, None)}
    rows = write(made).rows
    assert rows[-3:] == [
        ["algorithm", "stable up to [s]", "diverges from [s]"],
        ["jacobi", "0.002", "0.0021"],
        ["gauss-seidel", "0.1", "–"],
    ]


def test_reference_is_summed_up(page: Page) -> None:
    text = page.text
    for fact in ("0.0005 s step", "2.25 / 4 Newton", "3e-07 J largest energy drift", "812 J", "1.75 s computing time"):
        assert fact in text


def test_cost_of_the_step_is_told(page: Page) -> None:
    """Of each output, in percent, and of the worst one in a sentence; a line among the errors of the coupling."""
    assert page.rows[:3] == [
        ["output", "cost of the step [%]", "known to [%]"],
        ["crank.angle", "0.05", "0.0002"],
        ["cylinder.length", "0.1", "0.0004"],
    ]
    assert (
        "The step of 0.0005 s by itself costs 0.1 % (cylinder.length), measured against dca with rodas5p and a "
        "tolerance of 1e-06, which is right to 0.0004 %."
    ) in page.text
    assert "cost of the step" in page.comments


def test_page_without_a_tight_run_says_why(write: Write) -> None:
    made = comparison()
    made.tight = TightRun(doubt="what the step costs is not known, for it is so")
    made.reference["error"] = dict.fromkeys(UNITS)
    for each in made.runs:
        each.error_total = dict.fromkeys(UNITS)
    page = write(made)
    assert "What the step costs is not known, for it is so." in page.text
    assert [row[5] for row in page.runs[1:]] == ["–"] * 4
    assert "cost of the step" not in page.comments
    assert "0.8 % in 0.5 s of processor time" in page.text, "judged by the coupling alone"


def test_reference_without_a_drift_has_a_dash(write: Write) -> None:
    made = comparison()
    made.reference["energy_drift_max"] = None
    assert "– J largest energy drift" in write(made).text


def test_diverged_run_says_why(write: Write) -> None:
    runs = [run("jacobi", 1e-3, "crank.angle is off by 140 % of its range"), run("gauss-seidel", 1e-3)]
    page = write(comparison(runs))
    assert page.runs[1] == ["jacobi", "0.001", "diverged", "crank.angle is off by 140 % of its range", "–", "0.25"]
    spans = [int(attributes["colspan"]) for tag, attributes in page.tags if "colspan" in attributes]
    assert spans == [3]
    assert len(page.runs[0]) == COLUMNS == len(page.runs[1]) - 1 + 3
    assert "jacobi diverges at 0.001 s." in page.text
    assert "times less" not in page.text


def test_page_is_made_where_every_run_diverged(write: Write) -> None:
    page = write(comparison([run("jacobi", 5e-4, "lost"), run("jacobi", 1e-3, "lost")]))
    assert [row[2:4] for row in page.runs[1:]] == [["diverged", "lost"], ["diverged", "lost"]]
    assert "jacobi diverges at 0.0005 s." in page.text
    assert "off by at most" not in page.text


def test_run_that_broke_off_is_drawn_as_far_as_it_came(write: Write) -> None:
    broken = run("jacobi", 5e-4, "broke off")
    broken.curves = {name: values[:1] for name, values in broken.curves.items()}
    assert write(comparison([broken, run("gauss-seidel", 5e-4)])).count("svg") == 5


EVIL = '<script>alert("1 & 2")</script>'


@pytest.mark.parametrize("field", ["model", "description", "formulation", "message", "output", "unit", "algorithm"])
def test_names_are_text_and_never_markup(field: str, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    if field == "output":
        monkeypatch.setitem(UNITS, EVIL, "m")
        monkeypatch.setitem(MONOLITHIC, EVIL, [0.0, 1.0, 2.0])
    if field == "unit":
        monkeypatch.setitem(UNITS, "crank.angle", EVIL)
    runs = [run("jacobi", 1e-3, EVIL if field == "message" else "lost"), run("gauss-seidel", 1e-3)]
    for each in runs:
        if field == "output" and each.status == "ok":
            each.error[EVIL] = 0.5
    made = comparison(runs)
    if field in ("model", "description", "formulation"):
        setattr(made, field, EVIL)
    if field == "algorithm":
        made = renamed(made)
    page = write(made)
    assert page.count("script") == 0
    assert EVIL.lower() not in page.source.lower()
    if field == "unit":
        assert f"crank.angle [{EVIL}]" in unescaped_comments(page)
    else:
        assert EVIL in page.text


def renamed(made: Comparison) -> Comparison:
    """The comparison with an algorithm of a bad name."""
    for each in made.runs:
        each.algorithm = each.algorithm.replace("gauss-seidel", EVIL)
    made.order = {EVIL: None, "jacobi": 1.0}
    for curves in (*made.curves["signals"].values(), made.curves["energy_residual"]):
        for key in [key for key in curves if key.startswith("gauss-seidel")]:
            curves[key.replace("gauss-seidel", EVIL)] = curves.pop(key)
    return made


def unescaped_comments(page: Page) -> list[str]:
    return [each.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for each in page.comments]


def test_page_is_replaced_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write_report(comparison().to_dict(curves=True), path) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_page_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_report(comparison(description="\ud800").to_dict(curves=True), path)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_runs_without_curves_are_what_json_gets() -> None:
    data: dict[str, Any] = comparison().to_dict()
    assert "curves" not in data
    assert all("curves" not in each for each in data["runs"])
    assert data["outputs"] == [{"name": "crank.angle", "unit": "rad"}, {"name": "cylinder.length", "unit": "m"}]
