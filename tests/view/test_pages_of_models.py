"""Every page of every command, of the models of the documents, with parts of users and with controllers."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pages import Page, plain

import mbsfmu
from mbsfmu import CoupledModel, JointDrive, Mechanism, PidController, Prismatic, RigidBody
from mbsfmu.cli.commands import main
from mbsfmu.comparison import cost

ROOT = Path(__file__).parents[2]
OWN = {
    "relieved.json": ROOT / "tests" / "extending" / "relief_valve.py",
    "controlled.json": ROOT / "tests" / "extending" / "controllers.py",
}
"""Models with parts of users, and the files of these."""
ALONE = ("slewing-four-bar", "ladder-2")
"""Models of one system, which nothing is coupled to."""
MODELS = (
    "four-bar",
    *ALONE,
    f"{ROOT}/examples/crane.py:crane",
    f"{ROOT}/examples/press.py:press",
    *OWN,
    "positioned.json",
)
Call = Callable[..., None]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Call]:
    """A command in this process and a folder of its own; nothing is compiled."""
    monkeypatch.setenv("MBSFMU_COMPILED", "0")
    monkeypatch.setattr(cost, "MOST", 1)  # repetitions of runs, each of which loads its units
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("mbsfmu")
    before = list(logger.handlers), logger.level
    write_models(tmp_path)

    def run(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["mbsfmu", *arguments, "--quiet"])
        main()  # which ends the process where the command fails

    yield run
    logger.handlers[:], level = before
    logger.setLevel(level)


def write_models(folder: Path) -> None:
    """A four-bar with a relief valve of a user's, and a carriage with a controller of a user's, and with a PID."""
    data = mbsfmu.models.four_bar().to_dict()
    data["systems"]["circuit"]["components"].append(
        {"type": "pilot-relief-valve", "name": "relief", "inlet": "V2", "outlet": "T", "flow_coefficient": 2e-8}
        | {"cracking_pressure": 5e6, "full_pressure": 7e6}
    )
    (folder / "relieved.json").write_text(json.dumps(data))
    carriage = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="carriage", mass=20.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="rail", parent="ground.O", child="carriage.origin"),),
        forces=(JointDrive(name="motor", joint="rail"),),
    )
    model = CoupledModel(
        name="positioned",
        systems={
            "machine": carriage,
            "controller": PidController(proportional=4e3, measured_unit="m", command_unit="N"),
        },
        connections=[
            ("machine.carriage.displacement", "controller.measured"),
            ("controller.command", "machine.motor.force"),
        ],
        start={"controller.setpoint": 0.1},
    )
    model.to_file(folder / "positioned.json")
    data = model.to_dict()
    data["systems"]["controller"] = {"type": "pid", "proportional": 4e3}
    (folder / "controlled.json").write_text(json.dumps(data))


def headed(file: str) -> Page:
    """A page with a title and no picture that could not be drawn."""
    page = Page(Path(file))
    assert [plain(each) for each in page.tree.xpath("//h1")] != [""]
    assert "No moving picture" not in page.text
    return page


@pytest.mark.parametrize("model", MODELS, ids=lambda model: Path(model).name)
def test_every_page_is_made(model: str, call: Call) -> None:
    parts = ("--parts", str(OWN[model])) if model in OWN else ()
    run = (model, *parts, "--stop", "0.004")
    call("simulate", *run, "--report", "run.html")
    assert "The machine in motion" in headed("run.html").text
    call("show", *run, "--html", "motion.html")
    assert headed("motion.html").data
    call("sweep", *run, "--step", "2e-3,1e-3", "--workers", "1", "-o", "rows.csv", "--report", "study.html")
    assert "2 of 2 points ran to the end" in headed("study.html").text
    if model in ALONE:
        return
    steps = ("--steps", "2e-3,1e-3", "--algorithms", "gauss-seidel")
    call("compare", *run, *steps, "--report", "comparison.html")
    assert "All coupled runs" in headed("comparison.html").text
    call("export", model, *parts, "-o", "out", "--layout", "separate")
    (package,) = map(str, Path("out").glob("*.ssp"))
    call("cosim", package, *parts, "--stop", "0.004", "--step", "1e-3", "--report", "coupled.html")
    assert "The machine in motion" in headed("coupled.html").text
    if parts:  # in a process that knows no parts of users from before
        alone = [sys.executable, "-m", "mbsfmu", "cosim", package, "--stop", "0.004", "--report", "coupled.html"]
        subprocess.run(alone, check=True, capture_output=True)
        assert "needs the file that defines it: --parts FILE" in Page(Path("coupled.html")).text
