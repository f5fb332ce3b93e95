"""What the master adds to the units' own time: two native units with three connections, held against FMPy.

Three times for each step of both units, medians over runs taken in turn: the calls of fmi2SetReal, fmi2DoStep and
fmi2GetReal that any master makes, alone in a loop; the master's run; and `fmpy.simulate_fmu` of each unit alone.
The overhead is the master's time less that of the calls it makes.

    python benchmarks/master_overhead.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from ctypes import c_double
from pathlib import Path

import fmpy
import numpy as np

import mbsfmu
from mbsfmu.cosim.graph import check_connections
from mbsfmu.cosim.loading import instantiate, load_graph

STEP, STOP, REPEATS = 1e-4, 2.0, 7
STEPS = round(STOP / STEP)
SETTINGS = (
    ("jacobi", "zero"),
    ("jacobi", "linear"),
    ("jacobi", "quadratic"),
    ("jacobi", "derivatives"),
    ("gauss-seidel", "zero"),
    ("gauss-seidel", "linear"),
)


def calls_alone(package: Path, ramps: bool) -> float:
    """Return the time in s of the calls of the FMI alone, with inputs as they stand at the start."""
    from contextlib import ExitStack  # noqa: PLC0415

    with ExitStack() as stack:
        graph = load_graph(package, stack)
        instances = stack.enter_context(instantiate(graph))
        check_connections(graph, instances)
        work = []
        for instance in instances.values():
            instance.setup(0.0, STOP)
            instance.enter_initialization()
        for instance in instances.values():
            instance.exit_initialization()
            inputs = [v.name for v in instance.variables.values() if v.causality == "input" and "cylinder" in v.name]
            outputs = [v.name for v in instance.variables.values() if v.causality == "output"]
            taken, given = instance.port(inputs), instance.port(outputs)
            starts = {"cylinder.length": 1.4, "cylinder.force": 0.0}
            work.append((instance, taken, given, np.array([starts.get(name, 0.0) for name in inputs])))
        # The units at rest where they start: their own work is that of a smooth stretch of the run.
        mechanism, circuit = work
        mechanism[3][:] = mechanism[0].port(["cylinder.static_force"]).read()
        circuit[3][: len(circuit[3])] = [
            mechanism[0].port([name]).read()[0] if name in mechanism[0].variables else 0.0 for name in circuit[1].names
        ]
        begin = time.perf_counter()
        for index in range(STEPS):
            for instance, taken, given, values in work:
                taken.values[:] = values
                taken.write()
                if ramps:
                    taken.write_slopes()
                instance.step(index * STEP, STEP)
                given.read()
        return time.perf_counter() - begin


def main() -> None:
    """Measure and print the table."""
    folder = Path(tempfile.mkdtemp())
    paths = mbsfmu.export(mbsfmu.models.four_bar(), folder, layout="separate", step=STEP)
    package = paths[-1]
    quiet = {"circuit.valve.command": lambda _: 0.0}
    alone: dict[bool, list[float]] = {False: [], True: []}
    runs: dict[tuple[str, str], list[float]] = {setting: [] for setting in SETTINGS}
    fmpys: list[float] = []
    for _ in range(REPEATS):
        for ramps in alone:
            alone[ramps].append(calls_alone(package, ramps))
        for algorithm, extrapolation in SETTINGS:
            result = mbsfmu.cosimulate(
                package, algorithm=algorithm, extrapolation=extrapolation, step=STEP, stop=STOP, inputs=quiet
            )
            runs[algorithm, extrapolation].append(result.wall_seconds)
        begin = time.perf_counter()
        for path in paths[:-1]:
            fmpy.simulate_fmu(str(path), stop_time=STOP, step_size=STEP, output_interval=STEP)
        fmpys.append(time.perf_counter() - begin)
    per_step = {key: 1e6 * statistics.median(values) / STEPS for key, values in runs.items()}
    print(f"{STEPS} steps; median of {REPEATS} runs; microseconds for a step of both units")
    print(f"fmpy.simulate_fmu, each unit alone: {1e6 * statistics.median(fmpys) / STEPS:.1f}")
    for ramps, values in alone.items():
        print(f"calls alone{' with slopes' if ramps else ''}: {1e6 * statistics.median(values) / STEPS:.1f}")
    for (algorithm, extrapolation), value in per_step.items():
        calls = 1e6 * statistics.median(alone[extrapolation != "zero"]) / STEPS
        print(f"{algorithm:13s} {extrapolation:12s} {value:6.1f}, overhead {value - calls:5.1f}")


if __name__ == "__main__":
    assert c_double
    main()
