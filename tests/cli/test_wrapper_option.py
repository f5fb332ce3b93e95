"""The option of `mbsfmu export` for wrappers; what they contain is in `tests/fmu/test_wrappers.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ended_calls import Ended


def test_wrappers_are_written_and_named(in_process: Callable[..., Ended], tmp_path: Path) -> None:
    given = ["--backend", "python", "--naming", "flat", "--wrapper", "simulink, modelica"]
    ended = in_process("export", "pendulum-1", "-o", "out", *given)
    assert ended.status in (0, None)
    assert ended.stdout.split() == ["out/pendulum-1.fmu", "out/add_pendulum_1.m", "out/pendulum_1.mo"]
    assert all((tmp_path / each).is_file() for each in ended.stdout.split())


def test_wrong_wrappers_are_refused(in_process: Callable[..., Ended], tmp_path: Path) -> None:
    refused = in_process("export", "pendulum-1", "-o", "out", "--wrapper", "simulik")
    assert refused.status
    assert "there is no wrapper 'simulik'; did you mean 'simulink'?" in refused.stderr
    (tmp_path / "a.ssp").write_text("")
    refused = in_process("export", "a.ssp", "-o", "one.fmu", "--wrapper", "simulink")
    assert "the option wrapper has no effect in the export of an SSP package" in refused.stderr
