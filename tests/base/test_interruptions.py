"""Interruptions: none is lost, what is there is kept, and no process goes on or waits for ever."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mbsfmu
from mbsfmu.base.executors import CallsInterrupted, InlineExecutor, Shares, _call, _Worker, process_pool, run_all
from mbsfmu.base.files import remove_folder
from mbsfmu.base.interruption import heeding_interruptions
from mbsfmu.cli.output import to_the_end
from mbsfmu.comparison import ComparisonInterrupted

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def lose() -> None:
    """As libraries do that clear errors."""
    with contextlib.suppress(KeyboardInterrupt):
        interrupt()


def turn_into_another_error() -> None:
    try:
        interrupt()
    except KeyboardInterrupt:
        raise ValueError("something was interrupted") from None


@pytest.mark.parametrize("interrupted", [interrupt, lose, turn_into_another_error])
def test_no_interruption_is_lost(interrupted: Callable[[], None]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        heeding_interruptions()(interrupted)()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_lost_interruption_comes_again() -> None:
    """As where CasADi has cleared it, and tracing would go on for a minute."""

    @heeding_interruptions()
    def trace() -> None:
        lose()
        lose_where_it_waits()

    def lose_where_it_waits() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(60.0)
        time.sleep(60.0)

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        trace()
    assert time.monotonic() - begin < 20.0


def test_what_the_system_ends_is_interrupted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    monkeypatch.setattr("test_interruptions.interrupt", lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        with pytest.raises(KeyboardInterrupt):
            heeding_interruptions()(lose)()
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_interruption_that_is_dealt_with_does_not_come_again() -> None:
    """It takes several times as long to clean up as a lost one takes to come again."""
    cleaned = []

    @contextlib.contextmanager
    def unpacked() -> Iterator[None]:
        try:
            yield
        finally:
            time.sleep(0.5)
            cleaned.append("folder")

    @heeding_interruptions()
    def work() -> None:
        with unpacked():
            try:
                interrupt()
            finally:
                time.sleep(0.5)
                cleaned.append("file")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert cleaned == ["file", "folder"]


def slow_compiler(folder: Path, at_once: str = "") -> dict[str, str]:
    """The environment of a compiler that takes a minute, and writes down in `calls` which process group it is in."""
    compiler = folder / "slow"
    noted = f"echo $(ps -o pgid= -p $$) >> {folder}/calls"
    compiler.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\n{at_once}\n{noted}\nsleep 60\n')
    compiler.chmod(0o755)
    (folder / "temporary").mkdir()
    return {
        **os.environ,
        "MBSFMU_CACHE": str(folder / "kept"),
        "TMPDIR": str(folder / "temporary"),
        "CC": str(compiler),
    }


def signalled(process: subprocess.Popen[str], number: signal.Signals, folder: Path) -> str:
    """Send a signal when it compiles, and return what it says then; no compiler may be left."""
    while not (folder / "calls").exists():
        assert process.poll() is None
        time.sleep(0.02)
    begin = time.monotonic()
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert time.monotonic() - begin < 20.0
    assert_no_compiler_is_left(folder)
    return told


def assert_no_compiler_is_left(folder: Path) -> None:
    """A machine that is busy takes a while to end what was told to."""
    begin = time.monotonic()
    while left := running(folder):
        assert time.monotonic() - begin < 20.0, left
        time.sleep(0.1)


def running(folder: Path) -> list[str]:
    """Return what ps says of the compilers in a folder, those that did not come to write down too, and their groups."""
    calls = folder / "calls"
    groups = calls.read_text().split() if calls.exists() else []
    listed = subprocess.run(["ps", "-wweo", "pgid,stat,args"], check=True, capture_output=True, text=True).stdout
    lines = [line for line in listed.splitlines() if line.split()[1][0] != "Z"]
    return [line for line in lines if line.split()[0] in groups or f"{folder}/slow" in line]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_script_that_a_signal_ends_takes_its_compilers_along(tmp_path: Path, number: signal.Signals) -> None:
    """Python handles no such signal by itself, and the script ends by it as it would without compilers."""
    script = "import mbsfmu; mbsfmu.models.built_in('pendulum-1').simulation()"
    command, environment = [sys.executable, "-c", script], slow_compiler(tmp_path)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        signalled(process, number, tmp_path)
    assert process.returncode == -number


_CALLS = "call_compilers([['{folder}/slow']] * 3, Path('{folder}'))"
_CALLER = """
import threading, time
from pathlib import Path
from mbsfmu.compiling.compilation import call_compilers
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("calls", [_CALLS, f"threading.Thread(target=lambda: {_CALLS}).start(); time.sleep(60)"])
def test_no_compiler_outlives_a_process_that_ends_as_it_begins(
    tmp_path: Path, calls: str, number: signal.Signals
) -> None:
    """The first compiler itself ends the process that is still calling others."""
    environment = slow_compiler(tmp_path, at_once=f"kill -{number} $PPID")
    command = [sys.executable, "-c", _CALLER + calls.format(folder=tmp_path)]
    ended = subprocess.run(command, env=environment, check=False, timeout=60, stderr=subprocess.DEVNULL)
    assert ended.returncode == -number
    assert_no_compiler_is_left(tmp_path)


def test_a_compiler_that_heeds_no_signal_is_ended_too(tmp_path: Path) -> None:
    environment = slow_compiler(tmp_path, at_once="trap '' HUP TERM; kill -TERM $PPID")
    command = [sys.executable, "-c", _CALLER + _CALLS.format(folder=tmp_path)]
    assert subprocess.run(command, env=environment, check=False, timeout=60).returncode == -signal.SIGTERM
    assert_no_compiler_is_left(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_ends_its_compilers(tmp_path: Path, number: signal.Signals) -> None:
    """The interruption comes to the command alone; what it began to compile would take a minute."""
    command, environment = [sys.executable, "-m", "mbsfmu", "simulate", "pendulum-1"], slow_compiler(tmp_path)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        told = signalled(process, number, tmp_path)
    assert (process.returncode, told.splitlines()[-1]) == (128 + number, "mbsfmu: interrupted")
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (tmp_path / "kept").exists()


def test_what_is_not_interrupted_goes_its_way() -> None:
    assert heeding_interruptions()(math.hypot)(3.0, 4.0) == 5.0
    with pytest.raises(ValueError, match=r"math domain|nonnegative"):
        heeding_interruptions()(math.sqrt)(-1.0)


def test_interruptions_of_a_simulation_that_is_made_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mbsfmu.system_model.model_simulation.coupled_system", lambda *_, **__: lose())
    with pytest.raises(KeyboardInterrupt):
        mbsfmu.models.pendulum(1).simulation(compiled=False)


def test_results_are_written_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    written = []

    def write() -> None:
        with to_the_end():
            interrupt()
            written.append("whole")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert written == ["whole"]
    assert "still being written; interrupt once more" in capsys.readouterr().err


def test_a_second_interruption_ends_the_writing() -> None:
    written = []

    def write() -> None:
        with to_the_end():
            interrupt()
            interrupt()
            written.append("whole")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert written == []


def test_a_folder_goes_though_its_removal_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    removed, calls = os.rmdir, []

    def interrupted_once(*arguments: object, **options: object) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        removed(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rmdir", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        remove_folder(folder)
    assert not folder.exists()


class _InterruptedLater(InlineExecutor):
    """Makes two calls; the next one is interrupted."""

    def __init__(self) -> None:
        self._made = 0

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        self._made += 1
        if self._made > 2:
            raise KeyboardInterrupt
        return super().submit(fn, *args, **kwargs)


def test_outcomes_that_are_there_are_kept() -> None:
    with pytest.raises(CallsInterrupted) as ended:
        run_all(_InterruptedLater(), math.sqrt, [4.0, 9.0, 16.0], Shares(None, 3))
    assert ended.value.outcomes == [2.0, 3.0]


def wait_for(folder: str) -> None:
    """Wait for minutes, and clean up when it is interrupted."""
    mark = Path(folder) / str(os.getpid())
    mark.write_text("waiting")
    try:
        time.sleep(300.0)
    finally:
        mark.unlink()


@pytest.mark.parametrize("all_processes", [False, True])
def test_workers_end_their_calls_when_interrupted(tmp_path: Path, all_processes: bool) -> None:
    """As from a terminal, where all processes are interrupted, or from elsewhere; more calls wait than are made."""

    def run() -> None:
        with process_pool(2) as pool:
            for _ in range(8):
                pool.submit(wait_for, str(tmp_path))
            while len(list(tmp_path.iterdir())) < 2:
                time.sleep(0.02)
            for mark in tmp_path.iterdir() if all_processes else ():
                os.kill(int(mark.name), signal.SIGINT)
            raise KeyboardInterrupt

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert time.monotonic() - begin < 60.0
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_comparison_has_its_runs() -> None:
    def stop(share: float) -> None:
        if share > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(ComparisonInterrupted) as ended:
        mbsfmu.compare(
            mbsfmu.models.four_bar(), steps=[2e-2, 1e-2], algorithms=["jacobi"], stop=0.1, workers=1, progress=stop
        )
    assert ended.value.wanted == 2
    (run,) = ended.value.comparison.runs
    assert run.step == 2e-2
    assert len(ended.value.comparison.to_dict()["runs"]) == 1


def test_an_interrupted_study_ends_and_goes_on(tmp_path: Path) -> None:
    """Ctrl-C in a terminal: the command and its workers are interrupted, while rows come in."""
    arguments = ["sweep", "pendulum-1", "--vary", "link_1.mass=1:2:2000", "--workers", "2", "-o", "rows.parquet"]
    command = [sys.executable, "-m", "mbsfmu", *arguments]
    journal = tmp_path / "rows.parquet.journal"
    with subprocess.Popen(
        [*command, "--stop", "0.1"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not (journal.is_file() and len(journal.read_text().splitlines()) > 20):
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert told.splitlines()[-1] == "mbsfmu: interrupted"
    assert "the same study goes on from there" in told
    assert len(journal.read_text().splitlines()) < 2000


def test_an_idle_worker_only_takes_no_more_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error where it waits for a call would break its pool."""
    monkeypatch.setattr(_Worker, "interrupted", False)
    assert _call(math.sqrt, 4.0) == 2.0
    _Worker.interrupt()
    with pytest.raises(KeyboardInterrupt):
        _call(math.sqrt, 4.0)
