"""Units run in threads of others, whose stacks are short: matrices of steps are not on these."""

from __future__ import annotations

import subprocess
import sys

RUN = """
import sys, threading
import mbsfmu

simulation = mbsfmu.models.pendulum(16).simulation(formulation="dca-alm", code="straight", step=1e-3)
failed = []

def run():
    result = simulation.run(0.01)
    failed.extend([] if abs(result.time[-1] - 0.01) < 1e-12 else [result.time[-1]])

threading.stack_size(320 * 1024)  # also of the thread that the run makes
thread = threading.Thread(target=run)
thread.start()
thread.join()
sys.exit(bool(failed))
"""
"""A chain whose matrices have 176 rows in absolute coordinates."""


def test_steps_need_no_stack_for_matrices() -> None:
    command = [sys.executable, "-c", RUN]
    assert subprocess.run(command, capture_output=True, check=False, timeout=300).returncode == 0
