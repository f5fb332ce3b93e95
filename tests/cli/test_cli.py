"""The command line as a user meets it: results, files, refusals and exit statuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mbsfmu


def call(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mbsfmu", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_models_lists_every_built_in() -> None:
    done = call("models")
    assert done.returncode == 0
    for name in (*mbsfmu.models.BUILT_IN, "pendulum-N"):
        assert name in done.stdout


def test_an_export_loads_no_library_that_it_does_without() -> None:
    code = "import sys, mbsfmu.cli.export; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "mbsfmu.exporting" in loaded
    assert loaded.isdisjoint({"fmpy", "rich", "matplotlib", "jinja2", "scipy.integrate", "scipy.optimize"})


def test_simulate_writes_what_it_promises(tmp_path: Path) -> None:
    done = call("simulate", "four-bar", "--stop", "0.05", "-o", "run.csv", "--json", "run.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "redundant and left out" in done.stderr
    facts = json.loads((tmp_path / "run.json").read_text())
    wanted = (
        "model formulation solver step stop wall_seconds steps newton_mean newton_max energy_drift_max "
        "actuator_work_max actuator_work_min constraint_position_max constraint_velocity_max final"
    )
    assert set(wanted.split()) <= set(facts)
    assert facts["steps"] == 50
    lines = (tmp_path / "run.csv").read_text().splitlines()
    assert lines[0].startswith("time [s],")
    assert "cylinder.length [m]" in lines[0]
    assert len(lines) == 52
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run.csv", "run.json"]


def test_export_validate_and_cosim(tmp_path: Path) -> None:
    done = call("export", "four-bar", "-o", "out", "--quiet", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        f"out/{name}" for name in ("mechanism.fmu", "circuit.fmu", "four-bar.fmu", "four-bar.ssp")
    ]
    again = call("export", "four-bar", "-o", "out", folder=tmp_path)
    assert (again.returncode, "exists; say --force" in again.stderr) == (2, True)
    checked = call("validate", "out/four-bar.fmu", folder=tmp_path)
    assert (checked.returncode, checked.stdout) == (0, "out/four-bar.fmu: no problem\n")
    run = call("cosim", "out", "--stop", "0.02", "-o", "run.csv", "--quiet", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "circuit.cylinder.force [N]" in (tmp_path / "run.csv").read_text().splitlines()[0]
    (tmp_path / "valve.csv").write_text("time,command\n0,10\n0.1,10\n")
    run = call(
        "cosim", "out", "--stop", "0.1", "--input", "circuit.valve.command=valve.csv:command", "-o", "run.parquet",
        folder=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    driven = mbsfmu.Trajectory.from_file(tmp_path / "run.parquet")
    assert driven.unit("circuit.cylinder.force") == "N"
    assert abs(driven["mechanism.cylinder.length"][-1] - driven["mechanism.cylinder.length"][0]) > 1e-4
    run = call(
        "cosim", "out", "--stop", "0.02", "--step", "0.002", "--algorithm", "newton", "--extrapolation", "linear",
        "--rates", "circuit=2", "--json", "run.json", "--quiet", folder=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    facts = json.loads((tmp_path / "run.json").read_text())
    assert (facts["steps"], facts["unit_steps"]["circuit"]) == (10, 2 * facts["unit_steps"]["mechanism"])


def test_compare_reports(tmp_path: Path) -> None:
    done = call(
        "compare", "four-bar", "--stop", "1.1", "--steps", "4e-3,2e-3", "--algorithms", "gauss-seidel",
        "--report", "page.html", "--json", "numbers.json", "--quiet", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert [run["status"] for run in numbers["runs"]] == ["ok", "ok"]
    assert done.stdout.splitlines()[-1] == numbers["verdict"]
    assert "cheapest is gauss-seidel" in numbers["verdict"] or "No run reaches" in numbers["verdict"]
    assert numbers["order"]["gauss-seidel"] == pytest.approx(1.0, abs=0.4)
    page = (tmp_path / "page.html").read_text()
    assert "gauss-seidel is off by at most" in page
    assert page.count("<svg") >= 3
    assert "http" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    ).replace("https://matplotlib.org", "")


def test_file_and_factory(tmp_path: Path) -> None:
    mbsfmu.models.pendulum(2).to_file(tmp_path / "two.json")
    (tmp_path / "mine.py").write_text("import mbsfmu\ndef two():\n    return mbsfmu.models.pendulum(2)\n")
    ends = []
    for model in ("two.json", "mine.py:two", "pendulum-2"):
        done = call("simulate", model, "--stop", "0.01", "--json", "r.json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        ends.append(json.loads((tmp_path / "r.json").read_text())["final"])
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["simulate", "nothing"], "there is no model 'nothing'"),
        (["simulate", "four-bar", "--step", "0"], "the step is 0; it must be positive"),
        (
            ["simulate", "four-bar", "--formulation", "x"],
            "there is no formulation 'x'; there are double-step, penalty",
        ),
        (["simulate", "four-bar", "--stop", "-1"], "the stop time is -1 s; it must be positive"),
        (
            ["simulate", "four-bar", "-o", "no/such/folder.csv"],
            "the folder of no/such/folder.csv is not there",
        ),
        (["simulate", "four-bar", "-o", "run.txt"], "its name must end in .csv or .parquet"),
        (["cosim", "none.ssp", "--input", "a.b"], "'a.b' is refused: it must read name=values"),
        (["cosim", "none.ssp", "--input", "a.b=t.csv"], "must read table.csv:column"),
        (["simulate", "broken.json"], "broken.json is not a JSON file"),
        (["simulate", "joint.json"], "joint 'joint_1': there is no body 'gnd'"),
        (["simulate", "mass.json"], "mass is -1.0; it must be greater than 0"),
        (["simulate", "missing.py:f"], "it must read file.py:factory"),
        (["simulate"], "Missing argument 'MODEL'"),
        (["fly"], "No such command 'fly'"),
        (["cosim", "none.ssp"], "there is no file none.ssp"),
        (["compare", "pendulum-2"], "there is nothing to couple"),
        (["compare", "four-bar", "--steps", "a,b"], "is no list of numbers"),
        (["cosim", "none.ssp", "--rates", "a"], "is no list of units and whole numbers such as a=4,b=1"),
        (["cosim", "none.ssp", "--relaxation", "best"], "is neither 'aitken' nor a number"),
        (["validate", "broken.json"], "is no FMU"),
        (["export", "four-bar", "--layout", "x"], "there is no layout 'x'"),
        (["simulate", "pendulum-0"], "it needs at least 1"),
    ],
)
def test_refusals(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    data = mbsfmu.models.pendulum(1).to_dict()
    (tmp_path / "broken.json").write_text("{")
    data["systems"]["mechanism"]["joints"][0]["parent"] = "gnd.O"
    (tmp_path / "joint.json").write_text(json.dumps(data))
    data["systems"]["mechanism"]["bodies"][0]["mass"] = -1.0
    (tmp_path / "mass.json").write_text(json.dumps(data))
    done = call(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if not line.startswith("INFO")]
    assert len(errors) == 1
    assert sentence in errors[0]


def test_quiet_and_debug_may_stand_before_the_command() -> None:
    loud, quiet = (call(*first, "simulate", "five-bar", "--stop", "0.002") for first in ((), ("--quiet",)))
    assert (loud.returncode, quiet.returncode) == (0, 0)
    assert "INFO" in loud.stderr
    assert quiet.stderr == ""
    debugged = call("--debug", "simulate", "nothing")
    assert debugged.returncode == 2
    assert debugged.stderr.startswith("Traceback")
    assert debugged.stderr.splitlines()[-1].startswith("mbsfmu: there is no model 'nothing'")
