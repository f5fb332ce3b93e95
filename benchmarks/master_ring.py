"""Rings of many small units, beside libcosim: what a step of all of them takes.

Each unit is a lag of first order, native, with one explicit internal step, and takes what the one before it gives: all
are of one FMU. Jacobi with held inputs, which is what libcosim does with steps of one length; ours records all outputs,
libcosim observes none. Besides, the calls of the FMI alone in a loop of C. Processor time, that of libcosim's threads
added up, for other work on the machine does not count there; of ours, the difference between a run and one of a single
step. Least of many runs taken in turn.

    python benchmarks/master_ring.py [--quick]
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from pathlib import Path

import fmpy
import numpy as np
from calls_alone import calls_alone
from libcosimpy.CosimExecution import CosimExecution
from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
from libcosimpy.CosimObserver import CosimObserver
from libcosimpy.CosimSlave import CosimLocalSlave

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from cosim.linear_units import LinearSystem, export_linear

from mbsfmu import cosimulate
from mbsfmu.compiling.compiler import SWITCH
from mbsfmu.cosim import Connection, write_ssp

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STEP, STEPS, REPEATS = 1e-3, 50 if QUICK else 5000, 2 if QUICK else 10
COUNTS = (2, 5) if QUICK else (2, 10, 50)
WAYS = ("calls", "compiled", "python", "libcosim")


def export_ring(folder: Path, count: int) -> tuple[Path, Path]:
    """Write the unit and a package of a ring of it."""
    matrices = [np.array([[value]]) for value in (-2.0, 2.0, 1.0, 0.0)]
    unit = export_linear(LinearSystem("lag", matrices, [1.0], {"u": "1"}, {"x": "1"}), folder, "rk4", STEP)
    names = [f"lag_{index}" for index in range(count)]
    wires = [Connection((names[index - 1], "x"), (names[index], "u")) for index in range(count)]
    return unit, write_ssp(folder / f"ring_{count}.ssp", "ring", dict.fromkeys(names, unit), wires, STEPS * STEP)


def in_libcosim(unit: Path, count: int) -> tuple[float, float]:
    """Return the time in s that the steps take in libcosim, and where the first unit is after them."""
    references = {each.name: each.valueReference for each in fmpy.read_model_description(str(unit)).modelVariables}
    execution = CosimExecution.from_step_size(step_size=STEP * 1e9)
    slaves = [
        execution.add_local_slave(CosimLocalSlave(fmu_path=str(unit), instance_name=f"lag_{index}"))
        for index in range(count)
    ]
    for index in range(count):
        execution.connect_real_variables(slaves[index - 1], references["x"], slaves[index], references["u"])
    execution.step(1)
    begin = time.process_time()
    execution.step(STEPS)
    seconds = time.process_time() - begin
    observer = CosimObserver.create_last_value()
    execution.add_observer(observer)
    execution.step(1)
    return seconds, observer.last_real_values(slaves[0], [references["x"]])[0]


def in_ours(package: Path, way: str, steps: int) -> tuple[float, float]:
    """Return the same of a whole run of our master, whose steps are made by compiled code or by Python."""
    os.environ[SWITCH] = way
    begin = time.process_time()
    result = cosimulate(package, algorithm="jacobi", step=STEP, stop=steps * STEP)
    return time.process_time() - begin, float(result["lag_0.x"][-1])


def main() -> None:
    """Measure and print the table."""
    logging.disable(logging.WARNING)
    log_output_level(CosimLogLevel.WARNING)
    print(f"| units | {' | '.join(f'{way} [µs]' for way in WAYS)} | compiled / libcosim |\n|" + " --- |" * 6)
    with tempfile.TemporaryDirectory() as name:
        for count in COUNTS:
            unit, package = export_ring(Path(name), count)
            least: dict[str, float] = {}
            for _ in range(REPEATS):
                runs = {
                    "calls": (calls_alone(package, STEPS, STEP), 1.0),
                    "compiled": in_ours(package, "1", STEPS),
                    "one compiled": in_ours(package, "1", 1),
                    "python": in_ours(package, "0", STEPS),
                    "one in python": in_ours(package, "0", 1),
                    "libcosim": in_libcosim(unit, count),
                }
                assert np.allclose([found for _, found in runs.values()], 1.0)  # all are where they stay
                least = {way: min(least.get(way, seconds), seconds) for way, (seconds, _) in runs.items()}
            least["compiled"] -= least["one compiled"]
            least["python"] -= least["one in python"]
            cells = [f"{1e6 * least[way] / STEPS:.2f}" for way in WAYS]
            print(f"| {count} | {' | '.join(cells)} | {least['compiled'] / least['libcosim']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
