"""Units run in threads of others, whose stacks are short: matrices of steps are not on these."""

from __future__ import annotations

import subprocess
import sys

import pytest

RUN = """
import sys, threading
import mbsfmu

formulation, solver = sys.argv[1:]
simulation = mbsfmu.models.pendulum(24).simulation(formulation=formulation, solver=solver, code="straight", step=1e-3)
failed = []

def run():
    result = simulation.run(0.01)
    failed.extend([] if abs(result.time[-1] - 0.01) < 1e-12 else [result.time[-1]])

threading.stack_size(512 * 1024)  # also of the thread that the run makes
thread = threading.Thread(target=run)
thread.start()
thread.join()
sys.exit(bool(failed))
"""
"""A chain whose matrices have 264 rows in absolute coordinates, and 24 and 48 in those of joints."""


@pytest.mark.parametrize(("formulation", "solver"), [("dca-alm", "trapezoidal"), ("dca", "rodas5p")])
def test_steps_need_no_stack_for_matrices(formulation: str, solver: str) -> None:
    command = [sys.executable, "-c", RUN, formulation, solver]
    assert subprocess.run(command, capture_output=True, check=False, timeout=300).returncode == 0
