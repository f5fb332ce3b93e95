"""Dense matrices of loop equations and of steps are not on the stack, which is short in threads: hosts would end."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from runtime_sources import RUNTIME

SIZES = {
    "MOST_COORDINATES": 400, "MOST_CONSTRAINTS": 600,
    "COORDINATES": 400, "CONSTRAINTS": 600, "ALL_CONSTRAINTS": 600, "RANK": 399, "PLAY": 201, "REACTIONS": 3000,
    "OWN_MOTION": 0, "CHANGES": 0, "ABSOLUTE": 0, "LEAVES_OUT": 1, "CLOSES_LOOPS": 0,
    "SOLVER": 1, "IMPLICIT": 1, "ITERATION_MATRIX": 1000000, "GRADIENTS": 0, "RECOMPUTES_REACTIONS": 0,
}  # fmt: skip
NUMBERS = {"AS_LONG": 1e-9, "NEGLIGIBLE": 1e-20, "WORSE": 0.3, "RANK_TOLERANCE": 1e-8, "NEAR_CHANGE": 1e-3}
SURROUNDINGS = """
#include <math.h>
#include <string.h>
#define FLAT inline
#define ROOM(size) ((size) > 0 ? (size) : 1)
#define MOST(a, b) ((a) > (b) ? (a) : (b))
#define COPY(to, from, count) memcpy((to), (from), sizeof(double) * (size_t)(count))
typedef struct { double *scratch, *shared_multipliers; } Parts;
typedef enum { NOTHING, OUTPUTS_KNOWN, EVERYTHING_KNOWN } Known;
typedef struct { Parts parts; double outputs[1], violation[2], reactions[REACTIONS]; Known known; } Instance;
extern const struct { void (*outputs)(const Parts *, double *, double *); } step_functions;
extern const double element_scales[CONSTRAINTS * COORDINATES];
static inline double larger(double a, double b) { return a > b ? a : b; }
void closure(const Parts *, double *, double *);
void all_closure_jacobian(const Parts *, double *);
void shared_reactions(const Parts *, double *);
void reactions(const Parts *, double *);
void load(Instance *);
"""
FILES = ("scratch.h", "linear.c", "orthogonal.c", "rows.c", "saddle.c", "readings.c")
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


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_matrices_of_many_loops_are_not_on_the_stack(tmp_path: Path) -> None:
    defined = "\n".join(f"#define {name} {value}" for name, value in {**SIZES, **NUMBERS}.items())
    included = "\n".join(f'#include "{RUNTIME[name]}"' for name in FILES)
    used = (
        "solve_saddle(parts, numbers, 0.0, numbers); shorten_reactions(parts, numbers); choose_rows(parts, numbers, 0);"
    )
    called = f"void call(Parts *parts, double *numbers) {{ {used} }}"
    (tmp_path / "all.c").write_text("\n".join([defined, SURROUNDINGS, included, called]))
    call = ("gcc", "-std=c99", "-O0", "-Wframe-larger-than=65536", "-Werror", "-c", "all.c")
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_steps_need_no_stack_for_matrices() -> None:
    command = [sys.executable, "-c", RUN]
    assert subprocess.run(command, capture_output=True, check=False, timeout=300).returncode == 0
