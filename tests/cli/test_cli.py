"""The command line as a user meets it: results, files, refusals and exit statuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fmpy
import numpy as np
import pytest
from ended_calls import Ended
from scipy.integrate import solve_ivp
from started import run_python

import mbsfmu


def call(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "mbsfmu", *arguments, folder=folder)


def test_models_lists_every_built_in() -> None:
    done = call("models")
    assert done.returncode == 0
    for name in (*mbsfmu.models.BUILT_IN, "pendulum-N", "ladder-N"):
        assert name in done.stdout


def test_an_export_loads_no_library_that_it_does_without() -> None:
    code = "import sys, mbsfmu.cli.export; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "mbsfmu.exporting.fmu_export" in loaded
    assert loaded.isdisjoint({"fmpy", "rich", "matplotlib", "jinja2", "scipy.integrate", "scipy.optimize"})


def test_inputs_follow_a_file(tmp_path: Path) -> None:
    """The load's weight jumps from nothing to where it holds the bar: from the jump on, the bar's speed is kept."""
    (tmp_path / "load.csv").write_text("time,tip.force.y\n0,0\n0.25,49.05\n", encoding="utf-8")
    bar = mbsfmu.Beam(name="bar", length=2.0, mass=10.0)
    joint = mbsfmu.Revolute(name="pin", parent="ground.origin", child="bar.start")
    load = mbsfmu.AppliedForce(name="tip", point="bar.end")
    mechanism = mbsfmu.Mechanism(ground={"origin": (0.0, 0.0, 0.0)}, bodies=(bar,), joints=(joint,), forces=(load,))
    model = mbsfmu.CoupledModel(name="bar", systems={"mechanism": mechanism})
    model.to_file(tmp_path / "bar.json")
    table, one = f"{tmp_path}/load.csv:steps", f"tip.force.y={tmp_path}/load.csv:tip.force.y:steps"
    assert model.driven_by(one).signals == model.driven_by(table).signals
    with pytest.raises(
        mbsfmu.InputError, match=r"tip\.force\.y is given two signals, the second one by tip\.force\.y="
    ):
        model.driven_by(table, one)
    given = ("--input", "tip.force.y=load.csv:tip.force.y:steps", "--stop", "0.5", "--step", "1e-3")
    done = call("simulate", "bar.json", *given, "-o", "run.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    run = mbsfmu.Trajectory.from_file(tmp_path / "run.csv")
    speed = run["bar.angular_velocity"]
    assert speed[250] < -0.1
    np.testing.assert_allclose(speed[250:], speed[250], rtol=1e-6)
    refused = call("simulate", "bar.json", "--input", "none.csv", folder=tmp_path)
    assert refused.returncode == 2
    assert "none.csv" in refused.stderr


def test_simulate_writes_what_it_promises(tmp_path: Path) -> None:
    done = call("simulate", "four-bar", "--stop", "0.05", "-o", "run.csv", "--json", "run.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "loop equations are redundant" in done.stderr
    facts = json.loads((tmp_path / "run.json").read_text())
    wanted = (
        "model formulation solver step stop wall_seconds steps newton_mean newton_max energy_drift_max "
        "actuator_work_max actuator_work_min constraint_position_max constraint_velocity_max final"
    )
    assert set(wanted.split()) <= set(facts)
    assert facts["solver"] == "rodas5p"
    assert 0 < facts["steps"] < 50
    lines = (tmp_path / "run.csv").read_text().splitlines()
    assert lines[0].startswith("time [s],")
    assert "cylinder.length [m]" in lines[0]
    assert len(lines) == 52
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run.csv", "run.json"]


def test_outputs_are_chosen_on_the_command_line(in_process: Callable[..., Ended], tmp_path: Path) -> None:
    export = ("export", "pendulum-1", "--backend", "python", "--quiet", "--outputs")
    done = call(*export, "*_acceleration", "--outputs", "energy.*c", "--locals", "none", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    described = fmpy.read_model_description(str(tmp_path / "pendulum-1.fmu"))
    found = [each.name for each in described.modelVariables if each.causality not in ("input", "parameter")]
    assert found == ["link_1.angular_acceleration", "energy.kinetic"]
    refused = in_process(*export, "energie.*", "--force")
    assert refused.status == 2
    assert "there is no variable 'energie.*' to be an output; did you mean 'energy.*'?" in refused.stderr


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
        "--rates", "circuit=2", "--json", "run.json", "--report", "run.html", "--quiet", folder=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "2 FMUs ran to" in (tmp_path / "run.html").read_text(encoding="utf-8")
    facts = json.loads((tmp_path / "run.json").read_text())
    assert (facts["steps"], facts["unit_steps"]["circuit"]) == (10, 2 * facts["unit_steps"]["mechanism"])
    for record in ([], ["-o", "run.csv"]):
        pressed = call(
            "cosim", "out", "--stop", "0.02", "--set", "circuit.cylinder.retracted_length=1.4143", *record,
            folder=tmp_path,
        )  # fmt: skip
        assert pressed.returncode == 0, pressed.stderr  # the length is sqrt(2) m at the start
        assert "'cylinder' reaches its retracted end stop at t = 0 s" in pressed.stderr
        assert "what coupling costs in accuracy is not estimated: --check-error" in pressed.stderr


def test_compare_reports(tmp_path: Path) -> None:
    done = call(
        "compare", "four-bar", "--stop", "1.1", "--steps", "4e-3,2e-3", "--algorithms", "gauss-seidel",
        "--report", "page.html", "--json", "numbers.json", "--quiet", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert [run["status"] for run in numbers["runs"]] == ["ok", "ok"]
    assert done.stdout.splitlines()[-1] == numbers["verdict"]
    assert re.search("cheapest (is|are) gauss-seidel|No run reaches", numbers["verdict"])
    assert numbers["order"]["gauss-seidel"] == pytest.approx(1.0, abs=0.4)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Coupling costs" in page
    assert "--report</span> <span>page.html" in page, "the call"


def test_file_and_factory(tmp_path: Path) -> None:
    mbsfmu.models.pendulum(2).to_file(tmp_path / "two.json")
    (tmp_path / "mine.py").write_text("import mbsfmu\ndef two():\n    return mbsfmu.models.pendulum(2)\n")
    ends = []
    for model in ("two.json", "mine.py:two", "pendulum-2"):
        done = call("simulate", model, "--stop", "0.01", "--json", "r.json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        ends.append(json.loads((tmp_path / "r.json").read_text())["final"])
    assert ends[0] == ends[1] == ends[2]


FACTORIES = """
import sys
import mbsfmu

def two():
    return mbsfmu.models.pendulum(2)

def key():
    return {}["boom"]

def kind(size):
    return two()

def leaves():
    sys.exit(3)

def number():
    return 2

def field():
    return mbsfmu.Beam(name="a", lenght=1.0, mass=1.0)
"""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["simulate", "nothing"], "there is no model 'nothing'"),
        (["simulate", "four-bar", "--step", "0"], "the step is 0 s; it must be positive"),
        (
            ["simulate", "four-bar", "--formulation", "x"],
            "there is no formulation 'x'; there are double-step, dca, ",
        ),
        (["simulate", "four-bar", "--stop", "-1"], "the stop time is -1 s; it must be positive"),
        (["simulate", "no-model", "--stop", "-1"], "the stop time is -1 s; it must be positive"),
        (
            ["simulate", "four-bar", "-o", "no/such/folder.csv"],
            "the folder of no/such/folder.csv is not there",
        ),
        (["simulate", "four-bar", "-o", "run.txt"], "its name must end in .csv, .h5, .hdf5, .mat, .nc or .parquet"),
        (["cosim", "none.ssp", "--input", "a.b"], "'a.b' is refused: it must read name=values"),
        (["cosim", "none.ssp", "--input", "a.b=t.csv"], "must read table.csv:column"),
        (["simulate", "broken.json"], "broken.json is not a JSON file"),
        (["simulate", "joint.json"], "joint 'joint_1': there is no body 'gnd'"),
        (["simulate", "mass.json"], "mass is -1.0; it must be greater than or equal to 0"),
        (["simulate", "missing.py:f"], "there is no file missing.py; a model in a file is file.py:factory"),
        (["simulate", "missing.py"], "there is no file missing.py; a model in a file is file.py:factory"),
        (["simulate", "wrong.py"], "it must name a function of the file that returns the model, as wrong.py:FUNCTION"),
        (["simulate", "wrong.py:"], "it must name a function of the file that returns the model, as wrong.py:FUNCTION"),
        (["simulate"], "Missing argument 'MODEL'"),
        (["fly"], "there is no command 'fly'; there are compare"),
        (["cosim", "none.ssp"], "there is no file none.ssp"),
        (["cosim", "none.ssp", "a.fmu"], "none.ssp is a package of FMUs that stands alone; give it alone"),
        (["simulate", "four-bar", "--projections"], "projections = True has no effect with the formulation 'double-st"),
        (["compare", "pendulum-2"], "there is nothing to couple"),
        (["compare", "four-bar", "--steps", "a,b"], "is no list of numbers"),
        (["cosim", "none.ssp", "--rates", "a"], "is no list of FMUs and integers such as a=4,b=1"),
        (["cosim", "none.ssp", "--relaxation", "best"], "is neither 'aitken' nor a number"),
        (["validate", "broken.json"], "is no FMU"),
        (["export", "four-bar", "--layout", "x"], "there is no layout 'x'"),
        (["simulate", "pendulum-0"], "it needs at least 1"),
        (
            ["show", "pendulum-999999999"],
            "a pendulum with 999999999 links is refused: it needs at least 1 and has 10000",
        ),
        (["simulate", "four-bar", "--step", "1e300"], "the step is 1e+300 s; it must be positive, between 1e-12 and"),
        (["simulate", "four-bar", "--step", "1e-200"], "the step is 1e-200 s; it must be positive, between 1e-12 and"),
        (["show", "combine"], "ladder-N; a model of your own is file.py:factory or model.json"),
        (["simulate", "four-bra"], "there is no model 'four-bra'; did you mean 'four-bar'?"),
        (["simulat", "four-bar"], "there is no command 'simulat'; did you mean 'simulate'?"),
        (
            ["simulate", "four-bar", "--formulatoin", "dca"],
            "No such option '--formulatoin'. Did you mean '--formulation'?",
        ),
        (["simulate", "four-bar", "--formulation", "dca_alm"], "did you mean 'dca-alm'?"),
        (["simulate", "four-bar", "--solver", "trapezodal"], "did you mean 'trapezoidal'?"),
        (
            ["simulate", "four-bar", "--solver", "trapezoidal", "--rtol", "1e-8"],
            "relative tolerance = 1e-08 has no effect with the solver 'trapez",
        ),
        (
            ["simulate", "four-bar", "--solver", "rk4", "--atol", "1e-8"],
            "absolute tolerance = 1e-08 has no effect with",
        ),
        (["simulate", "four-bar", "--json", "run.csv"], "run.csv is refused: its name must end in .json"),
        (
            ["simulate", "mass.json", "--json", "mass.json"],
            "mass.json is named twice; a result needs a file of its own",
        ),
        (["simulate", "four-bar", "-o", "folder.csv"], "folder.csv is a folder"),
        (["compare", "four-bar", "--report", "x.pdf"], "x.pdf is refused: its name must end in .html or .htm"),
        (["compare", "four-bar", "--algorithms", "jacobi-linar"], "did you mean 'jacobi-linear'?"),
        (["cosim", "none.ssp", "--threads", "2"], "threads = 2 has no effect with the algorithm 'gauss-seidel'"),
        (["cosim", "none.ssp", "--tolerance", "1e-3"], "tolerance = 0.001 has no effect with the control 'fixed'"),
        (
            ["export", "four-bar", "--solver", "trapezoidal", "--rtol", "1e-3"],
            "relative tolerance = 0.001 has no effect with the solver 'trapezoidal'",
        ),
        (["export", "four-bar", "--no-execution-tool"], "is said of FMUs of 'python'"),
        (["export", "four-bar", "--platform", "linux-64"], "did you mean 'linux64'?"),
        (["show", "four-bar", "--json", "x.html"], "x.html is refused: its name must end in .json"),
        (["simulate", "mine.py:twoo"], "mine.py has no function 'twoo'; did you mean 'two'?"),
        (["simulate", "mine.py:key"], "key of mine.py gives no model: KeyError: 'boom'"),
        (["simulate", "mine.py:kind"], "kind of mine.py gives no model: TypeError: kind() missing 1 required"),
        (["simulate", "mine.py:leaves"], "leaves of mine.py gives no model: SystemExit: 3"),
        (["simulate", "mine.py:number"], "number of mine.py gives a int; it must give a CoupledModel or a Mechanism"),
        (
            ["simulate", "mine.py:field"],
            "field of mine.py gives no model: Beam 'a': there is no field lenght; did you mean",
        ),
        (["simulate", "wrong.py:two"], "wrong.py cannot be loaded: ZeroDivisionError: division by zero"),
    ],
)
def test_refusals(in_process: Callable[..., Ended], tmp_path: Path, arguments: list[str], sentence: str) -> None:
    data = mbsfmu.models.pendulum(1).to_dict()
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "wrong.py").write_text("1 / 0\n")
    (tmp_path / "mine.py").write_text(FACTORIES)
    data["systems"]["mechanism"]["joints"][0]["parent"] = "gnd.O"
    (tmp_path / "joint.json").write_text(json.dumps(data))
    data["systems"]["mechanism"]["bodies"][0]["mass"] = -1.0
    (tmp_path / "mass.json").write_text(json.dumps(data))
    done = in_process(*arguments)
    assert done.status == 2
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


def test_debug_shows_where_a_factory_failed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FACTORIES)
    done = call("simulate", "mine.py:key", "--debug", folder=tmp_path)
    assert done.returncode == 2
    assert "line 9, in key" in done.stderr
    assert done.stderr.splitlines()[-1] == "mbsfmu: key of mine.py gives no model: KeyError: 'boom'"


def test_a_run_names_inputs_that_nothing_drives(tmp_path: Path) -> None:
    plain = mbsfmu.models.pendulum(1).systems["mechanism"]
    driven = plain.model_copy(update={"forces": (mbsfmu.JointDrive(name="motor", joint="joint_1"),)})
    mbsfmu.CoupledModel(name="driven", systems={"mechanism": driven}).to_file(tmp_path / "driven.json")
    done = call("simulate", "driven.json", "--stop", "0.01", "--quiet", folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("WARNING: nothing drives motor.torque (stays 0 N.m)")


def test_show_lists_what_there_is(tmp_path: Path) -> None:
    done = call("show", "four-bar", "--variables", "--json", "four-bar.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("boom, link, rocker", "circuit.cylinder.force", "1, 2.5, 5, 8", "times [s]", "m3/(s.V)"):
        assert word in done.stdout
    shown = json.loads((tmp_path / "four-bar.json").read_text())
    model = mbsfmu.models.four_bar()
    described = {each["name"]: each for each in shown["variables"]}
    assert len(described) == len(shown["variables"])
    mass = described["mechanism.boom.mass"]
    assert (mass["kind"], mass["unit"], mass["default"]) == ("parameter", "kg", 225.0)
    assert described["circuit.valve.command"]["driven_by"] == "a signal"
    assert described["circuit.cylinder.initial_load"]["driven_by"] == "mechanism.cylinder.static_force"
    forces = [name for name, each in described.items() if (each["kind"], each["unit"]) == ("reaction", "N")]
    assert sorted(forces) == [f"mechanism.{joint}.force.{axis}" for joint in "CDEO" for axis in "xyz"]
    simulation = model.simulation(compiled=False)
    for each in simulation.variables:  # what an importer of the whole sees is there, with the same unit
        if each.causality in ("parameter", "output", "input") and each.name not in ("solver.step", "next_event"):
            found = [own for name, own in described.items() if f".{name}".endswith(f".{each.name}")]
            assert (each.causality, each.unit) in [(own["kind"], own["unit"]) for own in found], each.name


@pytest.mark.parametrize(
    "command",
    [["simulate"], ["export"], ["compare"], ["sweep", "--vary", "boom.mass=200,220", "-o", "rows.parquet"]],
    ids=lambda command: command[0],
)
def test_newton_tolerance_reaches_the_equations(
    command: list[str], in_process: Callable[..., Ended], tmp_path: Path
) -> None:
    name, *more = command
    ended = in_process(name, "four-bar", *more, "--newton-tolerance", "1")
    assert ended.status == 2
    assert "the Newton tolerance is 1; it must lie between" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_standard_output_that_is_full_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "mbsfmu", "models"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "mbsfmu: the standard output cannot be written: No space left on device\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are closed in another way there")
def test_a_reader_that_has_enough_is_no_error() -> None:
    for arguments in ("models", "show five-bar --variables"):
        command = f"'{sys.executable}' -m mbsfmu {arguments} | true"
        done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=True)
        assert done.stderr == ""


def test_set_gives_values_with_units_before_the_run(tmp_path: Path) -> None:
    """A link falls from the horizontal; its moment of inertia of 1 kg m² is a parameter of its own."""
    options = ("simulate", "pendulum-1", "--rtol", "1e-10", "--atol", "1e-10", "--stop", "0.2", "--quiet")
    done = call(*options, "--set", "link_1.mass=2500 g", "--json", "r.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    final = json.loads((tmp_path / "r.json").read_text())["final"]
    mass, arm, gravity = 2.5, 0.5, 9.81
    inertia = 1.0 + mass * arm**2

    def rates(_: float, y: np.ndarray) -> tuple[float, float]:
        return y[1], -mass * gravity * arm * np.cos(y[0]) / inertia

    fall = solve_ivp(rates, (0.0, 0.2), (0.0, 0.0), rtol=1e-11, atol=1e-12)
    assert final["link_1.angle"] == pytest.approx(fall.y[0, -1], rel=1e-6)
    assert final["energy.kinetic"] == pytest.approx(0.5 * inertia * fall.y[1, -1] ** 2, rel=1e-6)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["link_1.mass=5 m"], "link_1.mass: '5 m' is refused: 'm' and 'kg' are units of different quantities"),
        (["link_1.mass=1_000"], "link_1.mass: '1_000' is refused: it must be a number, in kg"),
        (["link_1.mas=5"], "there is no variable 'link_1.mas' in pendulum-1; did you mean 'link_1.mass'"),
        (["link_1.mass=1", "mechanism.link_1.mass=2"], "link_1.mass is given twice"),
        (["link_1.mass"], "must read name=values"),
        (
            ["link_1.angle=1"],
            "link_1.angle is computed and cannot be set; its value at the start is link_1.angle_start",
        ),
    ],
)
def test_values_that_cannot_be_set_are_refused(
    in_process: Callable[..., Ended], given: list[str], sentence: str
) -> None:
    options = [word for each in given for word in ("--set", each)]
    done = in_process("simulate", "pendulum-1", "--stop", "0.1", "--quiet", *options)
    assert done.status == 2
    assert sentence in done.stderr
