"""Error against processor time of ways to run stiff and other machines, as docs/studies/speed.md tells them.

python benchmarks/work_precision.py [FOLDER] [--rounds 5] [--quick]

All ways take turns; of each the least and the median processor time of the rounds counts, which other work on the
machine disturbs less than the clock. Figures go into the folder. Without Exudyn, its lines are missing; without
SUNDIALS (the package `scikit-sundae`), those of CVODE and IDA.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
from fmpy.fmi1 import FMICallException
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from precise_machines import MACHINES, Machine
from precise_sundials import Rates, Sundials, libraries
from precise_ways import Exudyn, Radau, Unit, Way

from mbsfmu.base.errors import SimulationError

FORMULATIONS = ("double-step", "dca")
STEPS = (1.6e-2, 4e-3, 1e-3, 2.5e-4, 6.25e-5)
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
TIGHTEST = 1e-9
"""A tolerance of SUNDIALS' solvers beyond, whose errors are the larger ones."""
ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-5)
PIECES = (1, 50, 500)
"""Parts that communication steps are divided into."""
INPUTS, INPUT_SET = (1e-9, 2e-9), "an input set anew before each"
"""What is set in turn; the machine then rests but for its load."""
Measured = dict[tuple[str, float], tuple[float, list[float]]]
"""Error, and processor times in s, by way and setting."""


def ways_of(machine: Machine, folder: Path, *, quick: bool) -> list[Way]:
    """Prepare the ways to run a machine."""
    steps, tolerances = (STEPS[1:3], TOLERANCES[2:5:2]) if quick else (STEPS, TOLERANCES)
    formulations = FORMULATIONS[:1] if quick else FORMULATIONS
    solvers = {"trapezoidal": steps, "rodas5p": tolerances} | ({} if quick else {"rodas4": tolerances})
    if machine.smooth and not quick:
        solvers["rk45"] = tolerances
    made: list[Way] = [
        Unit(machine, formulation, solver, settings, folder)
        for solver, settings in solvers.items()
        for formulation in formulations
    ]
    made.append(Radau(machine, tolerances[-5::2]))
    if libraries():
        rates = Rates(machine, folder)
        made += [Sundials(rates, solver, (*tolerances, TIGHTEST)) for solver in ("CVODE", "IDA")]
    if machine.name in Exudyn.MODELLED and Exudyn.is_there():
        made += [Exudyn(machine, solver, steps[1:], 2e-5) for solver in ("TrapezoidalIndex2", "GeneralizedAlpha")]
    return made


def measure(machine: Machine, ways: list[Way], rounds: int) -> Measured:
    """Let all ways take turns."""
    errors: dict[tuple[str, float], float] = {}
    times: dict[tuple[str, float], list[float]] = defaultdict(list)
    for _ in range(rounds):
        for way in ways:
            for setting in way.settings:
                try:
                    found, seconds = way.run(setting)
                except (SimulationError, RuntimeError, FMICallException):  # too coarse for it
                    continue
                key = way.name, setting
                errors.setdefault(key, way.error(found, machine))
                times[key].append(seconds)
    return {key: (error, times[key]) for key, error in errors.items()}


def time_for(accuracy: float, measured: Measured, name: str) -> float:
    """Return the processor time in s of a way for an error, between its settings; NaN where none reaches it."""
    points = sorted((error, min(times)) for (way, _), (error, times) in measured.items() if way == name and error > 0)
    reached = [(error, seconds) for error, seconds in points if error <= accuracy]
    missed = [(error, seconds) for error, seconds in points if error > accuracy]
    if not reached:
        return np.nan
    best = min(seconds for _, seconds in reached)
    if not missed:
        return best
    error, seconds = missed[0]
    below, cost = max(reached)
    if not cost > seconds:
        return best
    between = np.interp(np.log(accuracy), np.log([below, error]), np.log([cost, seconds]))
    return float(min(best, np.exp(between)))


def print_machine(machine: Machine, measured: Measured) -> None:
    """Print all that was measured."""
    print(f"\n{machine.name}, {machine.variable}, {machine.stop:g} s; two references differ by {machine.doubt:.1e}\n")
    print("| way | step [s] or tolerance | error | least [ms] | median [ms] |\n|" + " --- |" * 5)
    for (name, setting), (error, times) in measured.items():
        print(
            f"| {name} | {setting:.3g} | {error:.1e} | {1e3 * min(times):.3g} | {1e3 * statistics.median(times):.3g} |"
        )


def print_accuracies(results: dict[str, Measured]) -> None:
    """Print what the accuracies cost, and how many times as much as `rodas5p` others take."""
    print(
        "\n| machine | error | rodas5p [ms] | rodas4 | rk45 | trapezoidal | CVODE | IDA | Radau | Exudyn "
        "| trapezoidal/rodas5p | CVODE/rodas5p | IDA/rodas5p |"
    )
    print("|" + " --- |" * 13)
    for name, measured in results.items():
        ways = {way for way, _ in measured}
        for accuracy in ACCURACIES:
            least = {
                kind: min((time_for(accuracy, measured, way) for way in ways if kind in way), default=np.nan)
                for kind in ("rodas5p", "rodas4", "rk45", "trapezoidal", "CVODE", "IDA", "Radau", "Exudyn")
            }
            cells = [_milliseconds(seconds) for seconds in least.values()]
            ratios = [least[kind] / least["rodas5p"] for kind in ("trapezoidal", "CVODE", "IDA")]
            cells += ["–" if np.isnan(ratio) else f"{ratio:.2g}" for ratio in ratios]
            print(f"| {name} | {accuracy:.0e} | {' | '.join(cells)} |")


def _milliseconds(seconds: float) -> str:
    return "–" if np.isnan(seconds) else f"{1e3 * seconds:.3g}"


def print_communication(machine: Machine, ways: list[Way], rounds: int) -> None:
    """Print what short communication steps cost, FMPy's calls included; inputs that are set end longer steps."""
    print(f"\n{machine.name}, all communication steps with FMPy's calls, least processor time in ms\n")
    kinds = {f"every {1e3 * machine.communication / pieces:g} ms": (pieces, ()) for pieces in PIECES}
    kinds |= {f"{title}, {INPUT_SET}": (pieces, INPUTS) for title, (pieces, _) in list(kinds.items())[-1:]}
    print("| way | step [s] or tolerance | " + " | ".join(kinds) + " |")
    print("|" + " --- |" * (2 + len(kinds)))
    chosen = {"trapezoidal": STEPS[2], "rodas5p": 1e-4, "rodas4": 1e-4}
    units = [way for way in ways if isinstance(way, Unit)]
    times: dict[tuple[str, str], float] = defaultdict(lambda: float("inf"))
    for _ in range(rounds):
        for way in units:
            for title, (pieces, inputs) in kinds.items():
                _, seconds = way.run(chosen[way.solver], pieces, inputs)
                times[way.name, title] = min(times[way.name, title], seconds)
    for way in units:
        cells = " | ".join(_milliseconds(times[way.name, title]) for title in kinds)
        print(f"| {way.name} | {chosen[way.solver]:g} | {cells} |")


def draw(results: dict[str, Measured], path: Path) -> None:
    """Draw error against time for each machine."""
    mpl.rcParams.update({"svg.hashsalt": "mbsfmu", "svg.fonttype": "none"})
    figure = Figure(figsize=(16, 8.5), layout="constrained")
    names = sorted({way for measured in results.values() for way, _ in measured})
    kinds = sorted({name.partition(",")[0] for name in names})
    axes = figure.subplots(2, 4).ravel()
    handles: dict[str, Line2D] = {}
    for axis, (title, measured) in zip(axes, results.items(), strict=False):
        for name in names:
            points = [(1e3 * min(times), error) for (way, _), (error, times) in measured.items() if way == name]
            if points:
                kind = kinds.index(name.partition(",")[0])
                style = "-" if name.endswith(("dca", "TrapezoidalIndex2")) else "--"
                look = {"marker": "osD^Xv*P"[kind % 8], "color": f"C{kind}", "linestyle": style}
                (handles[name],) = axis.loglog(
                    *zip(*points, strict=True), markersize=4, linewidth=1, label=name, **look
                )
        axis.set_title(title, fontsize=10)
        axis.set_ylim(1e-9, 2.0)
        axis.grid(True, linewidth=0.3)
        axis.set_xlabel("processor time [ms]")
        axis.set_ylabel("error, share of the span")
    for axis in axes[len(results) :]:
        axis.axis("off")
    figure.legend(handles=[handles[name] for name in sorted(handles)], loc="lower right", bbox_to_anchor=(0.98, 0.1))
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where the figure goes; kept nowhere by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one machine and few settings")
    given = parser.parse_args()
    results: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for machine in (replace(MACHINES[3], stop=1.0),) if given.quick else MACHINES:
            ways = ways_of(machine, folder, quick=given.quick)
            results[machine.name] = measure(machine, ways, 1 if given.quick else given.rounds)
            print_machine(machine, results[machine.name])
            if machine is MACHINES[0]:
                print_communication(machine, ways, given.rounds)
        print_accuracies(results)
        draw(results, (given.folder or folder) / "work-precision.svg")


if __name__ == "__main__":
    main()
