"""Units in processes of their own: the same to the last bit, and nothing that they do takes the master down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS

from mbsfmu import Cosimulation, CosimulationError, InputError, SimulationError, cosimulate
from mbsfmu.cosim import SystemGraph
from mbsfmu.cosim.runs.load_fmus import instantiate
from mbsfmu.io.trajectory import Trajectory

Foreign = Callable[[str], Path]


def check_same(source: Any, isolated: list[str] | Literal["all"], **options: Any) -> None:
    """Run with units in this process and in others: no bit differs, nor what it has cost."""
    here, apart = (cosimulate(source, isolate=names, **options) for names in (None, isolated))
    np.testing.assert_array_equal(apart.time, here.time)
    np.testing.assert_array_equal(apart.values_by_column, here.values_by_column)
    for fact in ("iterations", "rollbacks", "rejected_steps", "unit_steps", "texts", "notes", "energy_residual"):
        assert getattr(apart, fact) == getattr(here, fact)


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "jacobi", "extrapolation": "quadratic", "energy_correction": True, "rates": {"one": 2}},
        {"algorithm": "gauss-seidel", "extrapolation": "derivatives"},
        {"algorithm": "newton", "extrapolation": "linear", "jacobian": "directional", "threads": 2},
        {"algorithm": "fixed-point", "extrapolation": "linear", "control": "error"},
    ],
    ids=lambda options: options["algorithm"],
)
def test_runs_are_the_same(halves_exact: list[Path], options: dict[str, Any]) -> None:
    check_same(halves_exact, ["all"], connections=CONNECTIONS, step=5e-3, stop=0.3, **options)


def test_types_texts_and_scenarios_are_the_same(foreign: Foreign) -> None:
    lines = ["source.sine=feed_through.real_in", "source.count=feed_through.integer_in"]
    lines += ["source.odd=feed_through.boolean_in", "source.word=feed_through.text_in"]
    scenario = {0.5: {"feed_through.mode_in": "locked"}}
    units = [foreign("source"), foreign("feed_through")]
    check_same(units, ["feed_through"], connections=lines, scenario=scenario, step=0.1, stop=2.0)


def test_what_was_read_with_a_step_is_read_again_after_a_change(foreign: Foreign) -> None:
    with instantiate(SystemGraph({"unit": foreign("feed_through")}), ["all"], 60.0) as instances:
        unit = instances["unit"]
        unit.setup(0.0, 1.0)
        unit.enter_initialization()
        unit.exit_initialization()
        port, seen = unit.port(["integer_in"]), []
        for time in (0.0, 0.1, 0.2):
            unit.step(time, 0.1)
            seen.append(port.read().item(0))
        unit.set_start("integer_in", 5)
        assert (*seen, port.read().item(0)) == (0.0, 0.0, 0.0, 5.0)


def test_units_of_version_3_are_the_same(foreign: Foreign) -> None:
    check_same(foreign("ticking"), ["all"], step=0.1, stop=1.0)


def test_units_that_end_are_the_same(foreign: Foreign) -> None:
    check_same(foreign("ending"), "all", step=0.1, stop=2.0)


def test_names_of_isolated_units_are_a_list(foreign: Foreign) -> None:
    with pytest.raises(InputError, match="the isolated FMUs are 'ending'; they must be a list, or 'all'"):
        cosimulate(foreign("ending"), isolate="ending")  # pyright: ignore[reportArgumentType]


def test_sentences_are_the_same(foreign: Foreign) -> None:
    sentences = []
    for isolate in (None, ["failing"]):
        with pytest.raises(CosimulationError) as ended:
            cosimulate(foreign("failing"), step=0.1, stop=1.0, isolate=isolate)
        sentences.append((str(ended.value), ended.value.result.time.tolist()))
    assert sentences[0] == sentences[1]
    with pytest.raises(InputError, match=r"dahlquist\.rate: 'fast' is refused: it must be a number"):
        cosimulate(foreign("dahlquist"), parameters={"dahlquist.rate": "fast"}, step=0.1, stop=1.0, isolate=["all"])


FAULTS = {
    1: ("csv", r"its process was ended by SIGSEGV in its step"),
    2: ("parquet", r"its process was ended by SIGABRT in its step"),
    3: ("csv", r"its process ended by itself with the status 3 in its step"),
    4: ("csv", r"did not come back within 1 s in its step, and was ended; a larger time limit gives it longer"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_loses_no_row(foreign: Foreign, tmp_path: Path, fault: int, caplog: pytest.LogCaptureFixture) -> None:
    """The other unit is in the process of the master, and goes with all of its rows. What is gone frees nothing."""
    suffix, sentence = FAULTS[fault]
    output = tmp_path / f"run.{suffix}"
    units = [foreign("misbehaving"), foreign("dahlquist")]
    with pytest.raises(CosimulationError, match=rf"misbehaving at t = 0\.5 s:? {sentence}") as ended:
        cosimulate(
            units, connections=["dahlquist.x=misbehaving.in"], parameters={"misbehaving.fault": fault}, step=0.1,
            stop=1.0, isolate=["misbehaving"], time_limit=1.0, output=output,
        )  # fmt: skip
    for rows in (Trajectory.from_file(output), ended.value.result):
        np.testing.assert_allclose(rows["now"], np.linspace(0.0, 0.5, 6), atol=1e-12)
        np.testing.assert_allclose(rows["x"], np.exp(-rows.time), rtol=1e-12)
    assert "while it was freed" not in caplog.text


@pytest.mark.parametrize(
    ("phase", "sentence"),
    [
        (1, r"misbehaving at t = 0\.4 s: its process was ended by SIGSEGV in its step"),
        (2, r"misbehaving at t = 0 s: its process was ended by SIGSEGV while its variables were set and read"),
    ],
)
def test_faults_in_reading(foreign: Foreign, phase: int, sentence: str) -> None:
    """After a step, with which its outputs are read, and in initialization."""
    given = {"misbehaving.phase": phase, "misbehaving.fault": 1}
    with pytest.raises(SimulationError, match=sentence):
        cosimulate(foreign("misbehaving"), parameters=given, step=0.1, stop=1.0, isolate=["all"])


def test_what_cannot_be_isolated(foreign: Foreign) -> None:
    with pytest.raises(InputError, match=r"there is no FMU 'dahlquisd' to be isolated; .*dahlquist"):
        cosimulate(foreign("dahlquist"), isolate=["dahlquisd"])
    with pytest.raises(InputError, match="time limit = 1 has no effect with FMUs in the process of the master"):
        cosimulate(foreign("dahlquist"), time_limit=1.0)


def children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in listed]


def alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_processes_end_with_the_master(foreign: Foreign, tmp_path: Path) -> None:
    """An FMU that hangs too: it would work for ever."""
    call = [sys.executable, "-m", "mbsfmu", "cosim", str(foreign("misbehaving")), "--isolate", "all", "--quiet"]
    call += ["--set", "misbehaving.fault=4", "--set", "misbehaving.when=0.2"]
    master = subprocess.Popen(call, env={**os.environ, "TMPDIR": str(tmp_path)})
    while not children(master.pid):
        assert master.poll() is None
        time.sleep(0.05)
    (unit,) = children(master.pid)
    time.sleep(2.0)
    assert alive(unit)
    master.send_signal(signal.SIGKILL)
    master.wait()
    until = time.monotonic() + 10.0
    while alive(unit) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(unit)


def test_an_interruption_in_a_call_ends_the_unit(foreign: Foreign) -> None:
    def interrupt(share: float) -> None:
        if share > 0.3:
            raise KeyboardInterrupt

    run = Cosimulation(foreign("dahlquist"), step=1e-3, stop=2.0, isolate=["all"], progress=interrupt)
    with run, pytest.raises(KeyboardInterrupt):
        run.run()
    assert run.result().time[-1] > 0.5


def test_what_units_say_reaches_the_log(foreign: Foreign, caplog: pytest.LogCaptureFixture) -> None:
    """A warning in each step, as from FMUs in the process of the master."""
    cosimulate(foreign("moody"), parameters={"moody.talks": True}, step=0.25, stop=1.0, isolate=["all"])
    assert caplog.text.count("the step from 0.25 s") == 1
