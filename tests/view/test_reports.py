"""Reports of runs, coupled runs and studies: what came of them, what was not reached, where they come from."""

from __future__ import annotations

import getpass
import platform
import re
from pathlib import Path

import numpy as np
import pytest
from pages import report_of

import mbsfmu
from mbsfmu.cosim.control.run_statistics import RunStatistics
from mbsfmu.cosim.runs.run_recorder import CosimulationResult
from mbsfmu.integration.solver import Statistics
from mbsfmu.simulation.run_result import Result
from mbsfmu.view.report import Circumstances, report_sections

EVIL = "</script><script>alert(1)</script><!-- '\"&"


def made_result(solver: str = "trapezoidal", wall: float = 0.5) -> Result:
    """Two seconds of a machine whose loops opened by 2e-9, and whose actuators did 400 J."""
    time = np.linspace(0.0, 2.0, 201)
    signals = {
        "crank.angle": (np.sin(time), "rad"),
        "crank.angular_velocity": (np.cos(time), "rad/s"),
        "slider.position": (time, "m"),
        "slider.offset": (np.full_like(time, 0.25), "m"),
        EVIL: (time**2, EVIL),
        "energy.drift": (-0.04 * time, "J"),
        "energy.work": (200.0 * time, "J"),
        "constraint.position": (1e-9 * time, "1"),
    }
    values = np.column_stack([each for each, _ in signals.values()])
    return Result(
        time, values, list(signals), [unit for _, unit in signals.values()], model="crank", formulation="dca",
        solver=solver, step=1e-2, wall_seconds=wall, statistics=Statistics(steps=200, newton_total=450, newton_max=4),
    )  # fmt: skip


def test_a_run_tells_what_stayed_closed_and_conserved(tmp_path: Path) -> None:
    page = report_of(made_result(), tmp_path)
    assert page.answer == [
        "2 s of motion took 500 ms to compute, 4 times faster than the machine itself.",
        "Loops of the mechanism opened by 2e−9 (m and rad together) at most.",
        "The energy drifted by 80 mJ at most, 0.02 % of the 400 J that actuators did.",
        "The error is not estimated: what a step of 0.01 s costs is not known from one run. --check-error, in Python "
        "check_error=True, makes a second run that tells it; mbsfmu compare measures it, for machines of several "
        "systems.",
    ]
    assert "2.25 / 4" in page.text
    assert "Constant: slider.offset = 250 mm." in page.text
    assert page.rows("signal", "start")[0] == ["crank.angle", "0 rad", "0 rad", "1 rad", "0.9093 rad"]
    assert EVIL not in page.source


def test_time_before_the_code_was_optimized_is_told_apart(tmp_path: Path) -> None:
    made = made_result(wall=3.0)
    made.interim_seconds = 2.5
    assert report_of(made, tmp_path).answer[0] == (
        "2 s of motion took 3 s to compute; 2.5 s of it passed in code that was not optimized yet, which runs are "
        "spared once optimized code is kept."
    )


def test_an_adaptive_run_says_that_its_tolerance_decides(tmp_path: Path) -> None:
    assert (
        "from the exact solution is not known from one run. --check-error"
        in report_of(made_result("rodas5p"), tmp_path).answer[-1]
    )


def test_a_slow_run_boasts_of_nothing(tmp_path: Path) -> None:
    assert report_of(made_result(wall=3.0), tmp_path).answer[0] == "2 s of motion took 3 s to compute."


def test_a_run_that_ended_says_so_first(tmp_path: Path) -> None:
    page = report_of(made_result(), tmp_path, Circumstances("mbsfmu simulate x.json", ["beware"], "the step failed"))
    assert page.answer[0] == "The run ended at 2 s: the step failed"
    assert page.tree.xpath("//section[@class='answer']/p")[0].get("class") == "bad"
    assert "times faster" not in page.text
    assert "beware" in page.text


def coupled(largest: float = 0.3) -> CosimulationResult:
    """A second of two FMUs that exchanged 100 J."""
    time = np.linspace(0.0, 1.0, 11)
    values = np.column_stack([time, np.cos(time), largest * time])
    names = ["left.position", "right.force", "energy_residual.spring"]
    result = CosimulationResult(time, values, names, ["m", "N", "J"])
    result.statistics = RunStatistics(
        "jacobi", "zero", "fixed", 0.1, 10, 0.1, 0.1, 10, unit_steps={"left": 10, "right": 20}, undriven=["left.gust"],
        notes=["right takes no derivatives"], wall_seconds=0.02, energy_residual={"spring": -largest},
        energy_residual_largest={"spring": largest}, energy_exchanged={"spring": 100.0},
    )  # fmt: skip
    return result


def test_a_coupled_run_tells_what_the_coupling_did_to_the_energy(tmp_path: Path) -> None:
    page = report_of(coupled(), tmp_path)
    assert page.answer[:3] == [
        "2 FMUs ran to 1 s in 10 steps of 0.1 s, which took 20 ms.",
        "The coupling itself brought in or took out 300 mJ at most, 0.3 % of the energy that was exchanged.",
        "Nothing drives left.gust: each keeps its start value, or follows a signal inside its FMU.",
    ]
    assert page.answer[-1].startswith("What coupling costs in accuracy is not estimated")
    assert page.tree.xpath("//section[@class='answer']/p")[1].get("class") == "warn", "0.3 % is beyond 0.2 %"
    assert "right takes no derivatives" in page.text
    assert page.rows("bond") == [["spring", "100 J", "−300 mJ", "300 mJ"]]


def test_a_small_residual_is_no_warning(tmp_path: Path) -> None:
    found = report_of(coupled(0.1), tmp_path).tree.xpath("//section[@class='answer']/p")
    assert found[1].get("class") is None


def study(statuses: list[str], said: str | list[str] = f"{EVIL} broke") -> mbsfmu.StudyResult:
    """Masses of 1 to 3 kg whose slider ends at twice as many m; those that failed say why."""
    count = len(statuses)
    good = [status == "ok" for status in statuses]
    masses = [float(each + 1) for each in range(count)]
    columns = {
        "slider.mass": masses,
        "status": statuses,
        "message": ["" if each else said for each in good] if isinstance(said, str) else said,
        "final.slider.position": [2.0 * mass if each else None for mass, each in zip(masses, good, strict=True)],
        "final.crank.angle": [1e-16 * mass if each else None for mass, each in zip(masses, good, strict=True)],
        "cpu_seconds": [0.01 if each else None for each in good],
        "key": [str(each) for each in range(count)],
    }
    units = {"slider.mass": "kg", "final.slider.position": "m", "final.crank.angle": "rad", "cpu_seconds": "s"}
    return mbsfmu.StudyResult(columns, units, {"model": '{"name": "crank"}'}, {"slider.mass": masses})


def test_a_study_tells_what_varies_and_where(tmp_path: Path) -> None:
    page = report_of(study(["ok", "ok", "ok"]), tmp_path)
    assert page.answer == [
        "3 of 3 points ran to the end.",
        "At the end slider.position is between 2 m (slider.mass 1 kg) and 6 m (slider.mass 3 kg).",
        "Not known: what is between the points and beyond them, and how far each run is from the exact solution.",
    ]
    assert page.rows("output", "least") == [["slider.position", "2 m", "slider.mass 1 kg", "6 m", "slider.mass 3 kg"]]
    assert [panel["label"] for panel in page.plots["slider.mass varied"]] == ["slider.position"], "no round-off"
    assert page.rows("slider.mass", "status")[0] == ["1 kg", "ok", "10 ms"]


def test_points_that_failed_come_first_and_say_why(tmp_path: Path) -> None:
    page = report_of(study(["ok", "failed", "ok"]), tmp_path)
    assert page.answer[0] == "2 of 3 points ran to the end, 1 failed."
    assert page.answer[1] == f"{EVIL} broke"
    assert page.rows("slider.mass", "status")[0] == ["2 kg", "failed", f"{EVIL} broke"]
    assert EVIL not in page.source


def test_the_three_sentences_that_most_points_say_are_told_with_their_numbers(tmp_path: Path) -> None:
    said = ["slips"] * 3 + ["jams"] * 2 + ["breaks"] + ["is lost", "ends"]
    assert report_of(study(["failed"] * len(said), said), tmp_path).answer[1:4] == [
        "3 times: slips",
        "2 times: jams",
        "breaks",
    ]


def test_a_study_of_which_every_point_failed_has_a_page(tmp_path: Path) -> None:
    page = report_of(study(["failed", "failed"]), tmp_path)
    assert page.answer[0] == "0 of 2 points ran to the end, 2 failed."
    assert page.plots == {}


def test_provenance_names_no_folder_user_or_machine(tmp_path: Path) -> None:
    files = ["/home/ann/secret/machine.py:factory", "--set", "parts=/data/x.csv:a", "-o", "C:\\Users\\ann\\x.parquet"]
    others = ["--scheduler", "tcp://ann-desk:8786", "--vary", "boom.mass=1:2:3"]
    call = report_sections.command_line(["sweep", *files, *others])
    assert call == (
        "mbsfmu sweep machine.py:factory --set parts=x.csv:a -o x.parquet --scheduler ... --vary boom.mass=1:2:3"
    )
    text = report_of(made_result(), tmp_path, Circumstances(call)).text
    assert call in text
    assert platform.node() not in report_sections.machine()
    assert getpass.getuser() not in report_sections.machine()
    assert f"mbsfmu {mbsfmu.__version__}" in text
    assert f"Python {platform.python_version()}" in text
    assert re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", text)


def test_what_has_no_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mbsfmu.InputError, match="there is no report of a dict; there is one of Comparison, Result"):
        mbsfmu.write_report({}, tmp_path / "x.html")  # pyright: ignore[reportArgumentType]
    assert not list(tmp_path.iterdir())
