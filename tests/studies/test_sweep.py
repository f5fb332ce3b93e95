"""Studies of the four-bar: rows that are those of single runs, files that are whole, points that are not run twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from mortal import MORTAL

import mbsfmu
from mbsfmu.base.errors import InputError
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.studies import point_run, subject

MASSES = [150.0, 300.0]
STOP = 1.2


@pytest.fixture(scope="module")
def four_bar() -> mbsfmu.CoupledModel:
    return mbsfmu.models.four_bar()


@pytest.fixture(scope="module")
def pendulum() -> mbsfmu.CoupledModel:
    return mbsfmu.models.pendulum(1)


def test_monolithic_rows_are_single_runs(pendulum: mbsfmu.CoupledModel, monkeypatch: pytest.MonkeyPatch) -> None:
    # Points run one by one, whether the code of an ensemble is kept or not.
    monkeypatch.setattr(subject, "grouped", lambda _model, points, _stop: [(each,) for each in points])
    found = mbsfmu.sweep(pendulum, {"link_1.mass": MASSES}, settings={"step": [2e-3, 1e-3]}, stop=STOP, workers=2)
    np.testing.assert_array_equal(found["final.mechanism.link_1.angle"], found["final.link_1.angle"])
    table = found.to_arrow()
    rows = table.to_pylist()
    assert [(row["mechanism.link_1.mass"], row["step"]) for row in rows] == [
        (150.0, 2e-3), (150.0, 1e-3), (300.0, 2e-3), (300.0, 1e-3),
    ]  # fmt: skip
    for row in rows:
        simulation = pendulum.simulation(step=row["step"])
        simulation.set("link_1.mass", row["mechanism.link_1.mass"])
        result = simulation.run(STOP)
        assert row["status"] == "ok"
        assert row["final.link_1.angle"] == result["link_1.angle"][-1] != 0.0
        assert row["energy_drift_max"] == result.largest("energy.drift")
        assert row["steps"] == result.statistics.steps
    assert table.schema.field("mechanism.link_1.mass").metadata == {b"unit": b"kg"}
    assert table.schema.field("final.link_1.angle").metadata == {b"unit": b"rad"}


def test_rows_name_the_solver_and_the_error_of_their_run(pendulum: mbsfmu.CoupledModel, tmp_path: Path) -> None:
    """The solver follows from the formulation here; what is no setting is a column of words."""
    output = tmp_path / "rows.csv"
    settings = {"formulation": ["dca", "penalty"], "check_error": [True]}
    rows = mbsfmu.sweep(pendulum, {}, settings=settings, stop=STOP, workers=1, output=output).rows
    assert [row["solver"] for row in rows] == ["rodas5p", "trapezoidal"]
    for row in rows:
        run = pendulum.simulation(formulation=row["formulation"], check_error=True).run(STOP)
        assert row["error_estimate"] == run.error.share != 0.0
        assert row["error_variable"] == run.error.variable
    assert mbsfmu.sweep(pendulum, {}, settings=settings, stop=STOP, workers=1, output=output).rows == rows  # read again
    chosen = mbsfmu.sweep(pendulum, {}, settings={"solver": ["rosenbrock"]}, stop=STOP, workers=1).rows
    assert [row["solver"] for row in chosen] == ["rosenbrock"]


def test_coupled_rows_are_single_runs(four_bar: mbsfmu.CoupledModel, tmp_path: Path) -> None:
    settings = {"algorithm": ["gauss-seidel", "jacobi-linear"], "step": [2e-3]}
    options = {"settings": settings, "stop": STOP, "errors": True, "internal_step": 1e-3}
    table = mbsfmu.sweep(four_bar, {"mechanism.boom.mass": MASSES}, executor=InlineExecutor(), **options).to_arrow()
    package = mbsfmu.export(four_bar, tmp_path, layout="separate", step=1e-3)[-1]
    alone = four_bar.simulation(step=1e-3)
    assert table.num_rows == 4
    for row in table.to_pylist():
        assert row["status"] == "ok", row["message"]
        algorithm, linear, _ = row["algorithm"].partition("-linear")
        result = mbsfmu.cosimulate(
            package,
            algorithm=algorithm,
            extrapolation="linear" if linear else "zero",
            step=row["step"],
            stop=STOP,
            parameters={"mechanism.boom.mass": row["mechanism.boom.mass"]},
        )
        assert row["final.cylinder.length"] == result["cylinder.length"][-1]
        assert row["energy_residual_max"] == result.energy_residual_max
        alone.reset()
        alone.set("boom.mass", row["mechanism.boom.mass"])
        reference = alone.run(STOP)
        difference = result["cylinder.length"] - np.interp(result.time, reference.time, reference["cylinder.length"])
        share = np.max(np.abs(difference)) / np.ptp(reference["cylinder.length"])
        assert row["error.cylinder.length"] == pytest.approx(share, rel=1e-9)
        assert row["error"] >= row["error.cylinder.length"]


@pytest.mark.parametrize("coupled", [False, True])
def test_processor_time_is_that_of_the_run(
    four_bar: mbsfmu.CoupledModel, monkeypatch: pytest.MonkeyPatch, coupled: bool
) -> None:
    """No less than what runs take by themselves, no more than the study without what it makes for all points."""
    taken = {"run": 0.0, "made": 0.0}

    def timed(owner: Any, name: str, kind: str) -> None:
        function = getattr(owner, name)

        def timing(*arguments: Any, **options: Any) -> Any:
            begin = time.process_time()
            result = function(*arguments, **options)
            taken[kind] += time.process_time() - begin
            return result

        monkeypatch.setattr(owner, name, timing)

    timed(*((point_run, "cosimulate") if coupled else (Simulation, "run")), "run")
    timed(mbsfmu.CoupledModel, "simulation", "made")
    # Points run one by one, whether the code of an ensemble is kept or not.
    monkeypatch.setattr(point_run.Study, "_in_ensemble", lambda *_: {})
    settings = {"algorithm": ["jacobi"]} if coupled else {"step": [2.5e-3, 1.25e-3]}
    begin = time.process_time()
    table = mbsfmu.sweep(four_bar, {"boom.mass": MASSES}, settings=settings, stop=0.3, executor=InlineExecutor())
    whole = time.process_time() - begin
    spent = sum(row["cpu_seconds"] for row in table.to_arrow().to_pylist())
    assert 0.0 < taken["run"] <= spent <= whole - taken["made"]


def test_failed_points_are_rows(four_bar: mbsfmu.CoupledModel, tmp_path: Path) -> None:
    output = tmp_path / "rows.parquet"
    values = {"boom.mass": [-1.0, 200.0]}
    for settings in ({}, {"algorithm": ["gauss-seidel"]}):
        table = mbsfmu.sweep(
            four_bar, values, settings=settings, stop=0.1, output=output, workers=1, force=True
        ).to_arrow()
        assert table.column("status").to_pylist() == ["failed", "ok"]
        assert "boom.mass = -1 kg is refused: it must be at least" in table.column("message").to_pylist()[0]
        assert table.column("final.cylinder.length").to_pylist()[0] is None
        assert pyarrow.parquet.read_table(output).equals(table)


@pytest.mark.parametrize("suffix", ["csv", "h5", "mat", "nc", "parquet"])
@pytest.mark.parametrize("settings", [{}, {"newton_tolerance": [1e-7, 1e-8], "jacobian": ["exact"]}])
def test_rows_of_a_file_read_back_as_they_were(
    pendulum: mbsfmu.CoupledModel, tmp_path: Path, settings: dict[str, list[Any]], suffix: str
) -> None:
    """Numbers to the last bit, whole numbers, texts, and nothing where a run told nothing."""
    output = tmp_path / f"rows.{suffix}"
    values = {"link_1.mass": [-1.0, 1.0 / 3.0]}
    options: dict[str, Any] = {"settings": settings, "stop": 0.05, "output": output, "executor": InlineExecutor()}
    first = mbsfmu.sweep(pendulum, values, **options).rows
    before = output.read_bytes()
    again = mbsfmu.sweep(pendulum, values, **options).rows
    assert again == first
    if suffix in ("csv", "parquet"):  # the others have no whole numbers where one is missing
        assert [[type(value) for value in row.values()] for row in again] == [
            [type(value) for value in row.values()] for row in first
        ]
        assert output.read_bytes() == before
    assert {row["status"] for row in first} == {"failed", "ok"}
    pendulum.simulation().run(0.05).to_file(output)
    with pytest.raises(mbsfmu.InputError, match=rf"rows\.{suffix} has something else than a study"):
        mbsfmu.sweep(pendulum, values, **options)


def test_points_that_are_there_are_not_run_again(pendulum: mbsfmu.CoupledModel, tmp_path: Path) -> None:
    output = tmp_path / "rows.parquet"
    options: dict[str, Any] = {"stop": 0.05, "output": output, "executor": InlineExecutor()}
    first = mbsfmu.sweep(pendulum, {"link_1.mass": [1.0, 3.0]}, **options).rows
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]
    more = mbsfmu.sweep(pendulum, {"link_1.mass": [1.0, 2.0, 3.0]}, **options).rows
    assert [row["mechanism.link_1.mass"] for row in more] == [1.0, 2.0, 3.0]
    assert [more[0], more[2]] == first  # with the very times they took
    again = mbsfmu.sweep(pendulum, {"link_1.mass": [1.0, 2.0, 3.0]}, fresh=True, **options).rows
    assert again[0]["wall_seconds"] != first[0]["wall_seconds"]


@pytest.mark.parametrize(
    "other",
    [
        {"vary": {"link_1.mass": [1.0]}},
        {"vary": {"link_1.mass": [1.0, 3.0]}, "stop": 0.06},
        {"vary": {"link_1.length": [1.0, 3.0]}},
        {"vary": {"link_1.mass": [1.0]}, "fresh": True},
        {"vary": {"link_1.mass": [1.0, 3.0]}, "model": mbsfmu.models.pendulum(2)},
    ],
)
def test_rows_of_another_study_are_kept(pendulum: mbsfmu.CoupledModel, tmp_path: Path, other: dict[str, Any]) -> None:
    output = tmp_path / "rows.parquet"
    options: dict[str, Any] = {"stop": 0.05, "output": output, "executor": InlineExecutor()}
    mbsfmu.sweep(pendulum, {"link_1.mass": [1.0, 3.0]}, **options)
    before = output.read_bytes()
    call = {"model": pendulum, **options, **other}
    with pytest.raises(mbsfmu.InputError, match=r"rows\.parquet has [12] points that this study has not.*say --force"):
        mbsfmu.sweep(**call)
    assert output.read_bytes() == before
    table = mbsfmu.sweep(**call, force=True).to_arrow()
    assert pyarrow.parquet.read_table(output).equals(table)


def test_what_is_no_study_is_kept(pendulum: mbsfmu.CoupledModel, tmp_path: Path) -> None:
    output = tmp_path / "rows.parquet"
    options: dict[str, Any] = {"stop": 0.05, "output": output, "executor": InlineExecutor()}
    pendulum.simulation().run(0.05).to_file(output)
    before = output.read_bytes()
    for content in (before, b"something else"):
        output.write_bytes(content)
        with pytest.raises(mbsfmu.InputError, match="has something else than a study, which would be lost"):
            mbsfmu.sweep(pendulum, {"link_1.mass": [1.0]}, **options)
        assert output.read_bytes() == content
    assert mbsfmu.sweep(pendulum, {"link_1.mass": [1.0]}, **options, force=True).to_arrow().num_rows == 1


def test_a_journal_of_another_study_is_kept(pendulum: mbsfmu.CoupledModel, tmp_path: Path) -> None:
    journal = tmp_path / "rows.parquet.journal"
    journal.write_text('{"key": "another", "status": "ok"}\n', encoding="utf-8")
    with pytest.raises(mbsfmu.InputError, match="has 1 points that this study has not"):
        mbsfmu.sweep(pendulum, {"link_1.mass": [1.0]}, stop=0.05, output=tmp_path / "rows.parquet")
    assert journal.exists()


KILLED = (
    MORTAL
    + """
masses = [1.0 + index for index in range(6)]
model = mbsfmu.models.pendulum(1)
mbsfmu.sweep(model, {"link_1.mass": masses}, stop=0.1, output="rows.parquet", executor=Mortal())
"""
)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_killed_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def call(calls: int) -> int:
        return subprocess.run([sys.executable, "-c", KILLED, str(calls)], cwd=tmp_path, check=False).returncode

    journal, output = tmp_path / "rows.parquet.journal", tmp_path / "rows.parquet"
    assert call(3) == -signal.SIGKILL
    assert not output.exists()
    kept = {row["key"]: row for row in map(json.loads, journal.read_text().splitlines())}
    assert len(kept) == 3
    with journal.open("a") as stream:
        stream.write('{"key": "cut o')
    assert call(3) == 0  # the three that were left
    rows = pyarrow.parquet.read_table(output).to_pylist()
    assert [row["mechanism.link_1.mass"] for row in rows] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert {row["status"] for row in rows} == {"ok"}
    assert [row["wall_seconds"] for row in rows[:3]] == [row["wall_seconds"] for row in kept.values()]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_order_of_the_points_does_not_change_them(four_bar: mbsfmu.CoupledModel) -> None:
    """Workers keep a simulation for several points; what one leaves behind must not reach the next."""
    finals = []
    for masses in ([100.0, 400.0], [400.0, 100.0]):
        with ThreadPoolExecutor(1) as executor:
            table = mbsfmu.sweep(four_bar, {"boom.mass": masses}, stop=STOP, executor=executor).to_arrow()
        names = [name for name in table.column_names if name.startswith("final.")]
        finals.append({row["mechanism.boom.mass"]: [row[name] for name in names] for row in table.to_pylist()})
    assert finals[0] == finals[1]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"solver": ["rodas5p", "trapezoidal"], "relative_tolerance": [1e-6]},
            "relative tolerance = 1e-06 has no effect with the solver 'trapezoidal'",
        ),
        ({"formulation": ["dca", "penalty"], "solver": ["rk45"]}, "the solver 'rk45' needs an explicit form"),
        (
            {"algorithm": ["jacobi"], "control": ["energy", "fixed"], "tolerance": [1e-3]},
            "tolerance = 0.001 has no effect with the control 'fixed'",
        ),
    ],
)
def test_settings_without_effect_together_are_refused_before_anything_is_built(
    settings: dict[str, list[Any]], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mbsfmu.CoupledModel, "simulation", lambda *_, **__: pytest.fail("it was built"))
    with pytest.raises(InputError, match=sentence):
        mbsfmu.sweep(mbsfmu.models.four_bar(), settings=settings)


@pytest.mark.parametrize(
    ("vary", "options", "sentence"),
    [
        ({"boom.weight": [1.0]}, {}, "four-bar has no parameter 'boom.weight'; there are circuit."),
        ({"mass": [1.0]}, {}, "the parameter 'mass' is ambiguous: it may be mechanism."),
        ({"boom.mass": [1.0], "mechanism.boom.mass": [2.0]}, {}, "mechanism.boom.mass is varied twice"),
        ({"cylinder.initial_load": [1.0]}, {}, "has no parameter 'cylinder.initial_load'"),
        ({}, {"settings": {"tempo": [1]}}, "there is no setting 'tempo'; there are"),
        ({}, {"settings": {"algorithm": ["euler"]}}, "there is no algorithm 'euler'"),
        ({}, {"settings": {"formulation": ["x"]}}, "there is no formulation 'x'"),
        ({}, {"settings": {"solver": ["x"]}}, "there is no solver 'x'"),
        ({}, {"settings": {"step": [0.0]}}, "the step is 0 s; it must be positive"),
        ({}, {"stop": -1.0}, "the stop time is -1 s"),
        ({}, {"internal_step": 1e-3}, "internal step = 0.001 has no effect on monolithic runs"),
        ({}, {"backend": "python"}, "backend = python has no effect on monolithic runs"),
        (
            {},
            {"output": "rows.txt"},
            "rows.txt is refused as the file of a study: its name must end in .csv, .h5, .hdf5, .mat, .nc",
        ),
        ({}, {"executor": InlineExecutor(), "workers": 2}, "workers = 2 has no effect with an executor"),
        ({}, {"errors": True}, "errors are those of coupled runs"),
        (
            {},
            {"tempo": 1},
            "there is no option 'tempo' of a study; there are vary, samples, connections, inputs",
        ),
        ({}, {"settings": {"step": 1e-3}}, "the settings are {'step': 0.001}; they must be lists of values by name"),
        ({}, {"settings": {"solver": "rk45"}}, "they must be lists of values by name"),
        ({}, {"stop": float("nan")}, "the stop time is nan; it must be finite"),
        ({}, {"newton_tolerance": 1.0}, "the Newton tolerance is 1; it must lie between"),
        ({"boom.mass": [1.0]}, {"output": "no/such/folder.parquet"}, "the folder of no/such/folder.parquet is not"),
    ],
)
def test_refusals(
    four_bar: mbsfmu.CoupledModel, vary: dict[str, list[float]], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        mbsfmu.sweep(four_bar, vary, **options)


def test_options_are_one_object(pendulum: mbsfmu.CoupledModel) -> None:
    """What is given by name goes before it; rows are those of the same options by name."""
    options = mbsfmu.StudyOptions(settings={"step": [2e-3, 1e-3]}, stop=0.1)
    tables = [
        mbsfmu.sweep(pendulum, {"link_1.mass": [1.0]}, executor=InlineExecutor(), **given).to_arrow()
        for given in ({"options": options, "stop": 0.05}, {"settings": {"step": [2e-3, 1e-3]}, "stop": 0.05})
    ]
    own = [name for name in tables[0].column_names if not name.endswith("_seconds")]
    assert tables[0].select(own).equals(tables[1].select(own))
    assert tables[0]["stop"].to_pylist() == [0.05, 0.05]


def test_one_system_has_no_coupling() -> None:
    with pytest.raises(InputError, match="nothing to couple"):
        mbsfmu.sweep(mbsfmu.models.pendulum(1), {}, settings={"algorithm": ["jacobi"]})


def test_points_run_on_a_dask_cluster(four_bar: mbsfmu.CoupledModel) -> None:
    """Workers of a cluster get all they need with the point: they may see none of this machine's files."""
    distributed = pytest.importorskip("distributed")
    settings = {"algorithm": ["gauss-seidel"], "step": [2e-3]}
    vary = {"boom.mass": [100.0, 200.0, 300.0]}
    here = mbsfmu.sweep(four_bar, vary, settings=settings, stop=0.2, executor=InlineExecutor()).to_arrow()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        there = mbsfmu.sweep(four_bar, vary, settings=settings, stop=0.2, executor=client.get_executor()).to_arrow()
    # What is warned of depends on what this process has logged before.
    names = [name for name in here.column_names if not name.endswith("_seconds")]
    assert [name for name in names if not there[name].equals(here[name])] == []


def test_what_points_warn_of_is_in_their_rows() -> None:
    """The boom reaches 0.1 rad and not 1.2: the loop cannot be closed there, and the run starts elsewhere."""
    result = mbsfmu.sweep(mbsfmu.models.built_in("four-bar"), {"boom.angle_start": [0.1, 1.2]}, stop=0.01, workers=1)
    reached, missed = result["warnings"]
    assert reached == ""
    assert "boom.angle starts at" in missed
    assert "instead of 1.2 rad" in missed
