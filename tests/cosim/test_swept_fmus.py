"""Studies of FMUs that are not ours: lags in a chain, whose closed form is known; crashes, resumption, refusals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.ssp_documents import binding, bindings, component, connector, system, value, wire
from documented import ROOT
from mortal import MORTAL
from started import run_python

import mbsfmu
from mbsfmu import InputError
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.io.formats import read_table
from mbsfmu.studies import OpenStudy

STEP, STOP = 0.05, 1.0
STARTS = "".join(value("x_start", "Real", "2.0"))
CHAIN = system(
    component("first", "dahlquist", connector("x", "output"), connector("u", "input"), connector("rate", "parameter"))
    + component(
        "second",
        "dahlquist",
        connector("u", "input"),
        connector("x", "output"),
        connector("x_start", "parameter"),
        bindings=bindings(binding(STARTS)),
    ),
    wire("first.x", "second.u"),
)
JACOBI: dict[str, Any] = {"settings": {"algorithm": ["jacobi"], "step": [STEP]}, "stop": STOP}
Make = Callable[..., Path]
Foreign = Callable[[str], Path]


def chain_ends(first: float, second: float, start: float = 2.0) -> tuple[float, float]:
    """Return what two lags with these rates end at, where each holds its input over a step.

    The first one, from 1, is a^n with a = exp(-rate h); the second one x' = b x + (1 - b) a^n.
    """
    a, b, n = np.exp(-first * STEP), np.exp(-second * STEP), round(STOP / STEP)
    forced = (1.0 - b) * (a**n - b**n) / (a - b) if a != b else (1.0 - b) * n * b ** (n - 1)
    return a**n, b**n * start + forced


MORE = """
    <ScalarVariable name="period" valueReference="3" causality="calculatedParameter" variability="fixed"><Real/>
    </ScalarVariable>
    <ScalarVariable name="one" valueReference="3" causality="local" variability="constant"><Real start="1"/>
    </ScalarVariable>
    <ScalarVariable name="note" valueReference="0" causality="parameter" variability="fixed"><String start=""/>
    </ScalarVariable>
  </ModelVariables>"""


TYPE = '<TypeDefinitions><SimpleType name="Rate"><Real min="0.1"/></SimpleType></TypeDefinitions>'


def bounded(fmu: Path, folder: Path) -> Path:
    """Write the lag with bounds for its rate, a calculated parameter, a constant and a text."""
    path = folder / "bounded.fmu"
    with zipfile.ZipFile(fmu) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "modelDescription.xml":
                text = content.decode().replace("  </ModelVariables>", MORE)
                rate = 'valueReference="2" causality="parameter" variability="fixed" initial="exact"><Real start="1"'
                assert rate in text
                text = text.replace(rate, f'{rate} max="5" declaredType="Rate"')
                content = text.replace("  <DefaultExperiment", f"{TYPE}\n  <DefaultExperiment").encode()
            target.writestr(name, content)
    return path


def test_rows_of_a_package_are_single_runs_and_the_closed_form(make: Make) -> None:
    package = make(CHAIN)
    vary = {"first.rate": [0.5, 1.0, 2.0], "second.rate": [1.0, 3.0]}
    study = mbsfmu.sweep(package, vary, workers=2, **JACOBI)
    assert study["status"].tolist() == ["ok"] * 6
    assert study.varied == ["first.rate", "second.rate"]
    for row in study.rows:
        run = mbsfmu.cosimulate(
            package,
            algorithm="jacobi",
            step=STEP,
            stop=STOP,
            parameters={name: row[name] for name in vary},
        )
        assert (row["final.first.x"], row["final.second.x"]) == (run["first.x"][-1], run["second.x"][-1])
        assert row["steps"] == run.steps == 20
        expected = chain_ends(row["first.rate"], row["second.rate"])
        np.testing.assert_allclose([row["final.first.x"], row["final.second.x"]], expected, rtol=1e-12)
    assert study.model == "package"
    assert study.to_xarray()["final.second.x"].sel({"first.rate": 2.0, "second.rate": 3.0}) == pytest.approx(
        chain_ends(2.0, 3.0)[1]
    )


def test_fmu_files_are_connected_and_a_single_one_is_enough(foreign: Foreign, make: Make, tmp_path: Path) -> None:
    fmu = foreign("dahlquist")
    files = [f"first={fmu}", f"second={fmu}"]
    options: dict[str, Any] = {"executor": InlineExecutor(), **JACOBI}
    study = mbsfmu.sweep(files, {"second.x_start": [-1.0, 2.0]}, connections=["first.x=second.u"], **options)
    np.testing.assert_allclose(
        study["final.second.x"], [chain_ends(1.0, 1.0, start)[1] for start in (-1.0, 2.0)], rtol=1e-12
    )
    alone = mbsfmu.sweep(fmu, {"rate": [1.0, 2.0], "u": [0.0, 3.0]}, stop=STOP, executor=InlineExecutor())
    rates, inputs = alone["dahlquist.rate"], alone["dahlquist.u"]
    np.testing.assert_allclose(alone["final.dahlquist.x"], inputs + (1.0 - inputs) * np.exp(-rates), rtol=1e-12)
    folder = tmp_path / "unpacked"
    zipfile.ZipFile(make(CHAIN)).extractall(folder)
    unpacked = mbsfmu.sweep(folder, {"first.rate": [2.0]}, **options)
    assert unpacked["final.second.x"][0] == pytest.approx(chain_ends(2.0, 1.0)[1], rel=1e-12)


def test_points_of_a_table_and_points_that_are_asked_for(make: Make) -> None:
    samples = {"first.rate": [0.5, 2.0], "second.rate": [3.0, 4.0]}
    study = mbsfmu.sweep(make(CHAIN), samples=samples, executor=InlineExecutor(), **JACOBI)
    asked = OpenStudy(make(CHAIN), *samples, **JACOBI)
    for index, rates in enumerate(zip(*samples.values(), strict=True)):
        row = asked.ask(*rates)
        assert row["final.second.x"] == study["final.second.x"][index]
        assert row["final.second.x"] == pytest.approx(chain_ends(*rates)[1], rel=1e-12)
    assert len(asked.result().rows) == 2


def test_inputs_follow_signals_at_every_point(foreign: Foreign, make: Make, tmp_path: Path) -> None:
    """A lag whose input jumps from 0 to 3 halfway: of an FMU, of a package, asked for, and by the command."""
    signal = mbsfmu.StepSignal(times=(0.5 * STOP,), values=(3.0,), initial=0.0)
    rates = np.array([0.5, 2.0])
    expected = 3.0 + (np.exp(-0.5 * rates) - 3.0) * np.exp(-0.5 * rates)
    fmu, options = foreign("dahlquist"), {"stop": STOP, "settings": {"step": [STEP]}}
    study = mbsfmu.sweep(fmu, {"rate": rates.tolist()}, inputs={"u": signal}, executor=InlineExecutor(), **options)
    np.testing.assert_allclose(study["final.dahlquist.x"], expected, rtol=1e-12)
    asked = OpenStudy(fmu, "rate", inputs={"dahlquist.u": signal}, **options)
    assert asked.ask(rates[1])["final.dahlquist.x"] == pytest.approx(expected[1], rel=1e-12)
    chain = mbsfmu.sweep(make(CHAIN), {"first.rate": rates.tolist()}, inputs={"first.u": signal}, workers=2, **JACOBI)
    np.testing.assert_allclose(chain["final.first.x"], expected, rtol=1e-12)
    (tmp_path / "u.csv").write_text("time,u\n0,0\n0.5,3\n", encoding="utf-8")
    table = ("--input", "dahlquist.u=u.csv:u:steps", "--vary", "rate=0.5,2", "--step", str(STEP), "--stop", str(STOP))
    done = run_python("-m", "mbsfmu", "sweep", str(fmu), *table, "-o", "rows.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(read_table(tmp_path / "rows.csv").columns["final.dahlquist.x"], expected, rtol=1e-12)


def test_signals_that_cannot_be_followed_are_refused_and_decide_on_points(
    foreign: Foreign, make: Make, tmp_path: Path
) -> None:
    one, other = (mbsfmu.StepSignal(times=(0.5,), values=(value,), initial=0.0) for value in (3.0, 4.0))
    fmu = foreign("dahlquist")
    with pytest.raises(InputError, match=r"dahlquist\.u cannot be varied: it follows a signal"):
        mbsfmu.sweep(fmu, {"u": [1.0]}, inputs={"u": one})
    with pytest.raises(InputError, match=r"dahlquist has no parameter 'v'"):
        mbsfmu.sweep(fmu, {"rate": [1.0]}, inputs={"v": one})
    with pytest.raises(InputError, match=r"second\.u cannot be varied: the connection first\.x=second\.u drives it"):
        mbsfmu.sweep(make(CHAIN), {"first.rate": [1.0]}, inputs={"second.u": one}, **JACOBI)
    with pytest.raises(InputError, match="the signals of pendulum-1 are its own; inputs are given for FMUs"):
        mbsfmu.sweep(mbsfmu.models.built_in("pendulum-1"), {"link_1.mass": [1.0]}, inputs={"u": one})
    kept: dict[str, Any] = {"output": tmp_path / "rows.csv", "executor": InlineExecutor(), "stop": STOP}
    mbsfmu.sweep(fmu, {"rate": [1.0]}, inputs={"u": one}, **kept)
    with pytest.raises(InputError, match="that this study has not"):
        mbsfmu.sweep(fmu, {"rate": [1.0]}, inputs={"u": other}, **kept)


def test_points_that_end_alike_are_told(foreign: Foreign, caplog: pytest.LogCaptureFixture) -> None:
    """A lag that begins where its input is stays there, whatever its rate."""
    samples = {"rate": [1.0, 2.0, 4.0], "x_start": [0.0, 0.0, 0.0]}
    options: dict[str, Any] = {"stop": STOP, "executor": InlineExecutor()}
    mbsfmu.sweep(foreign("dahlquist"), samples=samples, settings={"step": [STEP, 2.0 * STEP]}, **options)
    told = "all outputs end with the same values at every point: they do not depend on dahlquist.rate"
    assert [each.message for each in caplog.records if "do not depend" in each.message] == [told]
    caplog.clear()
    mbsfmu.sweep(foreign("dahlquist"), samples=samples | {"x_start": [0.0, 0.0, 1e-9]}, **options)
    mbsfmu.sweep(foreign("dahlquist"), {"rate": [1.0]}, settings={"step": [STEP, 2.0 * STEP]}, **options)
    assert "do not depend" not in caplog.text


def test_failures_are_rows(foreign: Foreign, tmp_path: Path) -> None:
    """Values beyond the bounds, and a value that is none of the type; the others are run."""
    fmu = bounded(foreign("dahlquist"), tmp_path)
    study = mbsfmu.sweep(fmu, {"rate": [0.05, 1.0, 6.0]}, stop=STOP, executor=InlineExecutor())
    assert study["status"].tolist() == ["failed", "ok", "failed"]
    assert study["message"].tolist() == [
        "bounded.rate = 0.05 is refused: it must be between 0.1 and 5",
        "",
        "bounded.rate = 6 is refused: it must be between 0.1 and 5",
    ]
    assert study["final.bounded.x"][1] == pytest.approx(np.exp(-1.0), rel=1e-12)
    assert np.isnan(study["final.bounded.x"][[0, 2]]).all()
    whole = mbsfmu.sweep(
        foreign("feed_through"),
        {"integer_in": [1.0, 1.5]},
        stop=0.1,
        settings={"step": [0.1]},
        executor=InlineExecutor(),
    )
    assert whole["status"].tolist() == ["ok", "failed"]
    assert "integer_in is 1.5; it must be an integer" in whole["message"][1]


def test_an_fmu_that_ends_its_process_costs_its_point(foreign: Foreign) -> None:
    study = mbsfmu.sweep(foreign("misbehaving"), {"fault": [0.0, 3.0]}, settings={"step": [0.1]}, stop=1.0, workers=1)
    assert study["status"].tolist() == ["ok", "failed"]
    assert study["message"][1] == "the process that ran it was killed"


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_a_killed_dask_worker_loses_nothing(make: Make) -> None:
    """Its points are run again by others, and their rows are those of runs in this process."""
    distributed = pytest.importorskip("distributed")
    package, rates = make(CHAIN), np.linspace(0.5, 2.0, 24).tolist()
    here = mbsfmu.sweep(package, {"first.rate": rates}, executor=InlineExecutor(), **JACOBI)
    killed: list[int] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill(_: float) -> None:
            if not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        there = mbsfmu.sweep(package, {"first.rate": rates}, executor=client.get_executor(), progress=kill, **JACOBI)
        assert pids[0] not in client.run(os.getpid).values()
    assert killed
    assert there["status"].tolist() == ["ok"] * len(rates)
    expected = np.array([chain_ends(rate, 1.0) for rate in rates])
    np.testing.assert_allclose(there["final.first.x"], expected[:, 0], rtol=1e-12)
    np.testing.assert_allclose(there["final.second.x"], expected[:, 1], rtol=1e-12)
    for name in here:
        if not name.endswith("_seconds"):
            np.testing.assert_array_equal(there[name], here[name], err_msg=name)


KILLED = (
    MORTAL
    + """
mbsfmu.sweep("package.ssp", {"first.rate": [1.0, 2.0, 3.0, 4.0]}, stop=0.5, output="rows.csv", executor=Mortal())
"""
)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_a_killed_study_goes_on_and_another_file_is_another_study(make: Make, tmp_path: Path) -> None:
    package, journal = make(CHAIN), tmp_path / "rows.csv.journal"

    def call(calls: int) -> int:
        return subprocess.run([sys.executable, "-c", KILLED, str(calls)], cwd=tmp_path, check=False).returncode

    assert call(2) == -signal.SIGKILL
    kept = [row["key"] for row in map(json.loads, journal.read_text().splitlines())]
    assert len(kept) == 2
    assert call(2) == 0, "the two that were left"
    assert not journal.exists()
    options: dict[str, Any] = {"output": tmp_path / "rows.csv", "executor": InlineExecutor(), "stop": 0.5}
    rates = {"first.rate": [1.0, 2.0, 3.0, 4.0]}
    assert [row["key"] for row in mbsfmu.sweep(package, rates, **options).rows][:2] == kept
    changes: list[dict[str, Any]] = [{"stop": 0.6}, {"connections": ["second.x=first.u"]}]
    changes.append({"settings": {"step": [0.1]}})
    for changed in changes:
        with pytest.raises(InputError, match="has 4 points that this study has not"):
            mbsfmu.sweep(package, rates, **(options | changed))
    with zipfile.ZipFile(package, "a") as archive:
        archive.writestr("more.txt", "another package")
    with pytest.raises(InputError, match="has 4 points that this study has not"):
        mbsfmu.sweep(package, rates, **options)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("first.rat", "package has no parameter 'first.rat'; did you mean 'first.rate'"),
        ("x_start", "the parameter 'x_start' is ambiguous: it may be first.x_start or second.x_start"),
        ("second.u", "second.u cannot be varied: the connection first.x=second.u drives it"),
        ("first.x", r"first.x cannot be varied: the FMU calculates it \(causality output\)"),
    ],
)
def test_what_a_package_cannot_vary_is_refused(make: Make, name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        mbsfmu.sweep(make(CHAIN), {name: [1.0]}, **JACOBI)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("one", "bounded.one cannot be varied: it is a constant"),
        ("period", r"bounded.period cannot be varied: the FMU calculates it \(causality calculatedPar"),
        ("note", "bounded.note cannot be varied: it is of type String, and no number"),
    ],
)
def test_what_an_fmu_does_not_take_before_the_start_is_refused(
    foreign: Foreign, tmp_path: Path, name: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        mbsfmu.sweep(bounded(foreign("dahlquist"), tmp_path), {name: [1.0]})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"errors": True}, "errors = True has no effect on FMUs; it is for studies of models"),
        ({"backend": "python"}, "backend = python has no effect on FMUs"),
        ({"internal_step": 1e-3}, r"internal step = 0\.001 has no effect on FMUs"),
        ({"newton_tolerance": 1e-8}, "Newton tolerance = 1e-08 has no effect on FMUs"),
        ({"settings": {"formulation": ["dca"]}}, "there is no setting 'formulation'; there are"),
        ({"settings": {"control": ["eror"]}}, "'eror'"),
        ({"settings": {"algorithm": ["euler"]}}, "there is no algorithm 'euler'"),
        ({"connections": ["second.x"]}, "the connection 'second.x' is refused: it must read a.y=b.u"),
    ],
)
def test_options_without_effect_are_refused(make: Make, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        mbsfmu.sweep(make(CHAIN), {"first.rate": [1.0]}, executor=InlineExecutor(), **options)


def test_files_that_cannot_be_run_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*none\.fmu"):
        mbsfmu.sweep(tmp_path / "none.fmu", {"a": [1.0]})
    with pytest.raises(InputError, match="the connections of pendulum-1 are its own"):
        mbsfmu.sweep(mbsfmu.models.pendulum(1), {}, connections=["a.y=b.u"])


def test_outputs_with_a_start_value_are_varied_and_others_refused(foreign: Foreign) -> None:
    """A rod of no weight that turns on from the rate it is given."""
    settings = {"step": [0.1]}
    light = {"length": [1.0], "mass": [1.0], "fy": [0.5 * 9.81]}
    study = mbsfmu.sweep(
        foreign("rocker"), {"rate": [0.5, 1.0], **light}, stop=0.2, settings=settings, executor=InlineExecutor()
    )
    np.testing.assert_allclose(study["final.rocker.angle"], [0.1, 0.2], rtol=1e-12)
    with pytest.raises(InputError, match=r"lag\.x cannot be varied: it is an output without a start value"):
        mbsfmu.sweep(foreign("lag"), {"x": [1.0]})


def test_flat_names_mean_the_same_variables(tmp_path: Path) -> None:
    (fmu,) = mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="monolithic", naming="flat")
    study = mbsfmu.sweep(fmu, {"pendulum-1.link_1_mass": [1.0, 2.0]}, stop=0.1, executor=InlineExecutor())
    assert study.varied == ["pendulum-1.link_1.mass"]
    assert study["status"].tolist() == ["ok", "ok"]


def test_bounds_hold_for_single_runs_too(foreign: Foreign, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"bounded\.rate = 6 is refused: it must be between 0\.1 and 5"):
        mbsfmu.cosimulate(bounded(foreign("dahlquist"), tmp_path), parameters={"bounded.rate": 6.0}, stop=0.1)


def test_the_command_runs_fmus(make: Make, foreign: Foreign, tmp_path: Path) -> None:
    make(CHAIN)
    call = ["-m", "mbsfmu", "sweep", "--step", "0.05", "--stop", "1", "--algorithm", "jacobi", "--quiet"]
    (tmp_path / "samples.csv").write_text("first.rate,second.rate\n0.5,3\n2,4\n")
    for rows, source in {
        "package.csv": ["package.ssp"],
        "files.csv": [
            f"first={foreign('dahlquist')}",
            f"second={foreign('dahlquist')}",
            "--connect",
            "first.x=second.u",
        ],
    }.items():
        done = run_python(
            *call, *source, "--points", "samples.csv", "-o", rows, "--report", "rows.html", folder=tmp_path
        )
        assert done.returncode == 0, done.stderr
        ends = read_table(tmp_path / rows).columns["final.second.x"]
        start = 2.0 if rows == "package.csv" else 1.0
        np.testing.assert_allclose(ends, [chain_ends(0.5, 3.0, start)[1], chain_ends(2.0, 4.0, start)[1]], rtol=1e-12)
    refused = run_python(*call, "package.ssp", "four-bar", "-o", "r.csv", folder=tmp_path)
    assert refused.returncode == 2
    assert "four-bar is given with other models; a study has one model, or FMU files" in refused.stderr


def test_the_page_has_a_package_that_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/guides/parameter-studies.md: the rows of the page's package are those of the model's own coupled study."""
    page = (ROOT / "docs" / "guides" / "parameter-studies.md").read_text(encoding="utf-8")
    code = next(each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "paths[-1]" in each)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code, names)  # the page is ours
    settings = {"algorithm": ["gauss-seidel"], "step": [2e-3]}
    own = mbsfmu.sweep(
        mbsfmu.models.four_bar(),
        {"boom.mass": [200.0, 300.0]},
        settings=settings,
        stop=0.2,
        internal_step=1e-3,
        executor=InlineExecutor(),
    )
    np.testing.assert_allclose(
        names["package"]["final.mechanism.cylinder.length"], own["final.cylinder.length"], rtol=1e-5
    )
