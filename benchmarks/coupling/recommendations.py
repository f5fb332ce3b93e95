"""Recommended settings of coupled runs against the best measured ones, on linear systems and machines.

Each algorithm runs with its recommended step and with powers of two of it. The recommended setting is held against the
least expensive setting that is as accurate as wanted, by processor time of stepping. Errors of linear systems are those
against the closed form, errors of machines those against a coupled run with small steps.

python benchmarks/coupling/recommendations.py [--quick]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from cosim.coupled_pairs import Pair, force_and_velocity, masses
from cosim.linear_units import CONNECTIONS, LinearSystem, halves

import mbsfmu
from mbsfmu import CosimulationError, CosimulationResult, recommend
from mbsfmu.base.repeated_warnings import muted
from mbsfmu.comparison.recommendation import CouplingSetting
from mbsfmu.comparison.reference_run import InternalSteps, coupled_reference
from mbsfmu.comparison.run import CoupledFmus, Task, run_timed
from mbsfmu.compiling.compiler import host_platform
from mbsfmu.native.native_package import export_native
from mbsfmu.simulation.simulation import make_simulation

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
ACCURACY, INTERNAL, REPETITIONS = 0.01, 1e-3, 3
POWERS = (0,) if QUICK else (-3, -2, -1, 0, 1, 2)
MACHINES = ("four-bar", "four-bar-frictionless", "quick-return")
Errors = Callable[[CosimulationResult], float]


def linear_pairs() -> Iterator[tuple[str, Pair, float]]:
    """Yield linear systems with the ends of their runs in s."""
    yield "oscillator, force and velocity", force_and_velocity(), 2.0
    yield "the same with a damper across", force_and_velocity(damping=4.0), 2.0
    yield "positions of two masses", masses(), 2.0
    yield "positions, stiff spring across", masses(spring=400.0), 2.0
    yield "positions, soft spring across", masses(spring=2.0), 4.0
    stiff = halves(stiffnesses=(40.0, 4000.0))
    yield "oscillator, stiff spring across", Pair(tuple(stiff), CONNECTIONS), 2.0
    light = halves(masses=(1.0, 0.02))
    yield "oscillator, light second mass", Pair(tuple(light), CONNECTIONS), 2.0
    damped = halves(damping=6.0)
    yield "oscillator, damped", Pair(tuple(damped), CONNECTIONS), 4.0
    for seed in range(8):
        yield f"random, seed {seed}", random_pair(seed), 4.0


def random_pair(seed: int) -> Pair:
    """Return two random stable FMUs of two to four states, each an output and an input or two, coupled both ways."""
    random = np.random.default_rng(seed)
    width = int(random.integers(1, 3))
    systems = []
    for name in ("one", "two"):
        size = int(random.integers(2, 5))
        a = random.normal(size=(size, size)) * 3.0
        a -= (max(np.linalg.eigvals(a).real.max(), 0.0) + 0.5) * np.eye(size)
        b, c = random.normal(size=(size, width)), random.normal(size=(width, size))
        inputs, outputs = ({f"{letter}{k}": "1" for k in range(width)} for letter in "uy")
        matrices = [a, b, c, np.zeros((width, width))]
        systems.append(LinearSystem(name, matrices, random.normal(size=size).tolist(), inputs, outputs))
    lines = [f"{one}.y{k}={two}.u{k}" for one, two in (("one", "two"), ("two", "one")) for k in range(width)]
    pair = Pair(tuple(systems), tuple(lines))
    growth = np.linalg.eigvals(pair._matrices()[0]).real.max()
    return pair if growth < 0.5 else random_pair(seed + 1000)


def exported(system: LinearSystem, folder: Path) -> Path:
    """Write a linear system as an FMU for co-simulation and model exchange."""
    simulation = make_simulation(system, name=system.name, signals={}, solver="rk4", step=INTERNAL)
    path = folder / f"{system.name}.fmu"
    return export_native(simulation, path, platforms=[host_platform()], kind=("cs", "me"), force=True)


def linear_cases(folder: Path) -> Iterator[tuple[str, CoupledFmus, float, Errors]]:
    """Yield names, FMUs, ends in s and errors of linear systems."""
    for number, (name, pair, stop) in enumerate(linear_pairs()):
        if QUICK and number:
            return
        inside = folder / str(number)
        inside.mkdir()
        paths = [exported(system, inside) for system in pair.systems]
        ranges = {each: np.ptp(values) for each, values in pair.exact(np.linspace(0.0, stop, 2001)).items()}

        def error(result: CosimulationResult, pair: Pair = pair, ranges: dict[str, float] = ranges) -> float:
            return max(
                float(np.max(np.abs(result[each] - values)) / ranges[each])
                for each, values in pair.exact(result.time).items()
            )

        yield name, CoupledFmus(paths, pair.connections), stop, error


def machine_cases(folder: Path) -> Iterator[tuple[str, CoupledFmus, float, Errors]]:
    """Yield the same of machines that are cut into FMUs."""
    from crane import crane  # noqa: PLC0415
    from press import press  # noqa: PLC0415

    models = [mbsfmu.models.built_in(name) for name in MACHINES] + [crane(), press()]
    for model in [] if QUICK else models:
        package = mbsfmu.export(model, folder / model.name, layout="separate", kind=("cs", "me"))[-1]
        fmus, stop = CoupledFmus(package), 2.0
        with fmus.run("jacobi", step=1e-3, stop=stop) as run:
            held = set(run.coupling.held)
            instances = {member.instance.name: member.instance for member in run.coupling.members}
            names = [end for place, end in enumerate(run.coupling.names) if place not in held]
            variables = {f"{unit}.{name}": instances[unit].variables[name] for unit, name in names}
        found, _, reference, _ = coupled_reference(fmus, [1e-3], stop, ACCURACY, variables, InternalSteps())
        if found.doubt:
            print(f"{model.name}: {found.doubt}", file=sys.stderr)
            continue
        yield model.name, fmus, stop, lambda result, reference=reference: max(reference.errors(result).values())


def measured(
    fmus: CoupledFmus, stop: float, setting: CouplingSetting, step: float, error: Errors
) -> tuple[float, float]:
    """Return error and cost of a setting with a step in s; both infinite where it fails."""
    own = replace(fmus, coupling={"order": setting.order} if setting.order else {})
    task = Task(own, Path(), None, setting.algorithm, step, stop)
    try:
        with muted():
            runs = [run_timed(task) for _ in range(REPETITIONS)]
    except CosimulationError:
        return np.inf, np.inf
    return error(runs[0][0]), median(timing.stepping for _, timing in runs)


def main() -> None:
    """Print a row for each system."""
    print(
        "| system | recommended | error | best measured | error | cost ratio |\n| --- | --- | --- | --- | --- | --- |"
    )
    within, wrong, count = 0, 0, 0
    folder = Path(tempfile.mkdtemp())
    for cases in (linear_cases(folder), machine_cases(folder)):
        for name, fmus, stop, error in cases:
            advice = recommend(fmus.source, connections=fmus.connections, accuracy=ACCURACY, stop=stop)
            tried: list[tuple[float, float, str, float]] = []
            for setting in advice.alternatives:
                for power in POWERS:
                    step = setting.step * 2.0**power
                    if step >= INTERNAL / 16 and step <= stop / 10:
                        tried.append((*measured(fmus, stop, setting, step, error), setting.algorithm, step))
            off, cost, algorithm, step = next(
                each for each in tried if each[2:] == (advice.best.algorithm, advice.best.step)
            )
            good = [each for each in tried if each[0] <= ACCURACY]
            best = min(good or tried, key=lambda each: each[1] if good else each[0])
            count += 1
            wrong += off > ACCURACY
            within += off <= ACCURACY and cost <= 2.0 * best[1]
            ratio = f"{cost / best[1]:.2f}" if off <= ACCURACY else "–"
            print(
                f"| {name} | {algorithm} {1e3 * step:.3g} ms | {100.0 * off:.2g} % "
                f"| {best[2]} {1e3 * best[3]:.3g} ms | {100.0 * best[0]:.2g} % | {ratio} |",
                flush=True,
            )
    print(f"\n{within} of {count} are accurate and within twice the cost; {wrong} are beyond {100 * ACCURACY:g} %")


if __name__ == "__main__":
    main()
