"""Runs with checkpoints by the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ended_calls import Ended


def test_checkpoint_needs_an_output_and_is_removed_in_the_end(in_process: Callable[..., Ended], tmp_path: Path) -> None:
    refused = in_process("simulate", "pendulum-1", "--stop", "0.1", "--checkpoint", "60")
    assert refused.status == 2
    assert "--checkpoint 60 needs --output: the run is saved beside it" in refused.stderr
    made = in_process("simulate", "pendulum-1", "--stop", "0.1", "--checkpoint", "1e-9", "-o", "run.csv")
    assert made.status == 0, made.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.csv"]
