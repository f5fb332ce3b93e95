"""What the master adds to the units' own time: two units with three connections and a power bond, beside FMPy.

The units are the halves of the two-mass oscillator, native, with one explicit internal step, so that their own time
does not depend on what they are told. For each step of both: the calls of the FMI that any master makes, alone in a
loop (set, slopes where there are some, step, get); the master's run; and `fmpy.simulate_fmu` of each unit alone. The
overhead is the master's time less that of the calls. Least of many runs taken in turn, for what else the machine
does only adds.

    python benchmarks/master_overhead.py [--quick]
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import fmpy

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from cosim.linear_units import CONNECTIONS, LinearSystem, export_linear, halves

from mbsfmu import cosimulate
from mbsfmu.cosim.loading import instantiate, load_graph

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STEP, STOP, REPEATS = 1e-3, 0.05 if QUICK else 0.5, 2 if QUICK else 60
STEPS = round(STOP / STEP)
SETTINGS = [
    (algorithm, extrapolation)
    for algorithm in ("jacobi", "gauss-seidel")
    for extrapolation in ("zero", "linear", "quadratic", "derivatives")
]


def export_units() -> list[Path]:
    """Write both units; the second one also takes the position of the first, which it does not use."""
    folder = Path(tempfile.mkdtemp())
    one, two = halves()
    a, b, c, d = two.matrices
    widened = LinearSystem(
        "two",
        (a, b @ [[1, 0]], c, d @ [[1, 0]]),
        two.initial_states(None),
        {"velocity": "m/s", "other": "m"},
        {each.name: each.unit for each in two.outputs},
    )
    return [export_linear(system, folder, "rk4", STEP) for system in (one, widened)]


def calls_alone(units: list[Path], ramps: bool, rates: bool) -> float:
    """Return the time in s of the calls of the FMI alone."""
    with ExitStack() as stack:
        instances = stack.enter_context(instantiate(load_graph(units, stack)))
        work = []
        for instance in instances.values():
            instance.setup(0.0, STOP, None)
            instance.enter_initialization()
            instance.exit_initialization()
            inputs = [v.name for v in instance.variables.values() if v.causality == "input"]
            outputs = [v.name for v in instance.variables.values() if v.causality == "output"]
            work.append((instance, instance.port(inputs), instance.port(outputs)))
        begin = time.perf_counter()
        for index in range(STEPS):
            for instance, taken, given in work:
                taken.write()
                if ramps:
                    taken.write_slopes()
                instance.step(index * STEP, STEP)
                given.read()
                if rates:
                    given.read_rates()
        return time.perf_counter() - begin


def main() -> None:
    """Measure and print the table."""
    units = export_units()
    connections = (*CONNECTIONS, "one.position=two.other")
    least: dict[str, float] = {}

    def note(name: str, seconds: float) -> None:
        microseconds = 1e6 * seconds / STEPS
        least[name] = min(least.get(name, microseconds), microseconds)

    for _ in range(REPEATS):
        for name, ramps, rates in (("zero", False, False), ("linear", True, False), ("derivatives", True, True)):
            note(f"calls {name}", calls_alone(units, ramps, rates))
        for algorithm, extrapolation in SETTINGS:
            result = cosimulate(
                units,
                connections=connections,
                algorithm=algorithm,
                extrapolation=extrapolation,
                step=STEP,
                stop=STOP,
            )
            note(f"{algorithm} {extrapolation}", result.wall_seconds)
        begin = time.perf_counter()
        for unit in units:
            fmpy.simulate_fmu(str(unit), stop_time=STOP, step_size=STEP, output_interval=STEP)
        note("fmpy", time.perf_counter() - begin)
    least["calls quadratic"] = least["calls linear"]
    print(f"microseconds for a step of both units; least of {REPEATS} runs of {STEPS} steps")
    print(f"fmpy.simulate_fmu of each unit alone, unpacking and loading with it: {least['fmpy']:.1f}")
    for algorithm, extrapolation in SETTINGS:
        run, calls = least[f"{algorithm} {extrapolation}"], least[f"calls {extrapolation}"]
        print(f"{algorithm:13s} {extrapolation:12s} {run:6.1f}, calls {calls:5.1f}, overhead {run - calls:5.1f}")


if __name__ == "__main__":
    main()
