"""Native units, Python units and runs in process beside each other over 10 s, monolithic and coupled.

Run: python benchmarks/agreement.py [FORMULATION ... | --quick]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import fmpy
import numpy as np

import mbsfmu

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STOP, STEP = 1.05 if QUICK else 10.0, 1e-3
FORMULATIONS = ("penalty",) if QUICK else sys.argv[1:] or ("double-step", "penalty", "dca-alm")
OUTPUTS = {
    "four-bar": ("boom.angle", "boom.angular_velocity", "cylinder.length", "cylinder.velocity", "cylinder.force"),
    "quick-return": ("crank.angle", "ram.angular_velocity", "cylinder.length", "cylinder.velocity", "cylinder.force"),
}


def difference(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> float:
    """Return the largest difference relative to the largest magnitude of its output."""
    return max(float(np.max(np.abs(one[name] - two[name])) / np.max(np.abs(two[name]))) for name in one)


def monolithic(path: Path, names: tuple[str, ...]) -> tuple[dict[str, np.ndarray], float]:
    """Run a unit with FMPy; return its outputs and the wall time in s."""
    begin = time.perf_counter()
    result = fmpy.simulate_fmu(
        str(path), stop_time=STOP, step_size=STEP, output_interval=STEP, output=names, fmi_type="CoSimulation"
    )
    return {name: np.asarray(result[name]) for name in names}, time.perf_counter() - begin


def main() -> None:
    """Print one row for each model and formulation."""
    columns = "in process, compiled | Python unit | native unit | coupled: native to Python"
    times = "times: interpreter, compiled, Python unit, native unit"
    print(f"| model | formulation | {columns} | {times} |\n|" + " --- |" * 7)
    for name, names in list(OUTPUTS.items())[: 1 if QUICK else None]:
        for formulation in FORMULATIONS:
            model = mbsfmu.models.built_in(name)
            slow = model.simulation(formulation=formulation, step=STEP, compiled=False).run(STOP)
            fast = model.simulation(formulation=formulation, step=STEP).run(STOP)
            expected = {each: slow[each] for each in names}
            cells = [difference({each: fast[each] for each in names}, expected)]
            times = [slow.wall_seconds, fast.wall_seconds]
            records = []
            for backend in ("python", "native"):
                with tempfile.TemporaryDirectory() as folder:
                    paths = mbsfmu.export(model, folder, formulation=formulation, step=STEP, backend=backend)
                    whole = next(path for path in paths if path.name == f"{name}.fmu")
                    found, seconds = monolithic(whole, names)
                    cells.append(difference(found, expected))
                    times.append(seconds)
                    records.append(mbsfmu.cosimulate(paths[-1], algorithm="gauss-seidel", step=STEP, stop=STOP))
            shared = [each for each in records[0] if each.endswith(("length", "velocity", "angle", "force"))]
            cells.append(
                difference({each: records[1][each] for each in shared}, {each: records[0][each] for each in shared})
            )
            row = " | ".join(f"{cell:.1e}" for cell in cells)
            print(f"| {name} | {formulation} | {row} | {', '.join(f'{each:.2f} s' for each in times)} |", flush=True)


if __name__ == "__main__":
    main()
