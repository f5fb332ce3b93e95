"""The excavator of the examples: agreement of formulations and solvers, energies, speed of its unit, cost of coupling.

Needs gcc. Errors are the largest differences from a tight run (rodas5p, 1e-8) as shares of each variable's range over
the cycle of 20 s. Run: python benchmarks/excavator.py [--quick] [agreement | precise | energy | speed | coupling …]
"""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from c_host import compile_host, host_command

import mbsfmu
from mbsfmu.base.errors import InputError, SimulationError

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from excavator import excavator

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STOP, ROW = (0.3, 0.02) if QUICK else (20.0, 0.02)
MOTION = ("boom_cylinder.length", "stick_cylinder.length", "bucket_cylinder.length", "house.angle")
PRESSURES = ("P.pressure", "boom_a.pressure", "stick_a.pressure", "bucket_a.pressure", "slew_a.pressure")
MEASURED, DRIFTING = (MOTION, PRESSURES), ("energy", "hydraulic_energy")
TIGHT: dict[str, Any] = {"solver": "rodas5p", "relative_tolerance": 1e-8, "absolute_tolerance": 1e-8}


def run(**options: Any) -> Any:
    """Return a run of the whole cycle."""
    return excavator().simulation(**options).run(STOP, output_step=ROW)


def error(result: Any, tight: Any, names: tuple[str, ...]) -> float:
    """Return the largest difference as a share of the range."""
    return max(float(np.max(np.abs(result[name] - tight[name])) / np.ptp(tight[name])) for name in names)


def mean_error(result: Any, tight: Any, names: tuple[str, ...]) -> float:
    """Return the largest root of a mean square of the difference as a share of the range."""
    return max(float(np.sqrt(np.mean((result[name] - tight[name]) ** 2)) / np.ptp(tight[name])) for name in names)


def tolerant(tolerance: float, solver: str = "rodas5p") -> dict[str, Any]:
    """Return options of an adaptive run."""
    return {"solver": solver, "relative_tolerance": tolerance, "absolute_tolerance": tolerance}


def agreement(tight: Any) -> None:
    """Print errors and drifts of formulations and solvers."""
    print("| formulation, solver | motion | pressures | machine's drift [J] | circuit's drift [J] | steps |")
    print("|" + " --- |" * 6)
    runs: list[dict[str, Any]] = [{"formulation": "double-step", "step": step} for step in (4e-3, 2e-3, 1e-3, 5e-4)]
    runs += [{"formulation": name, "step": 1e-3} for name in ("penalty", "dca", "hdca", "dca-alm")]
    runs += [{"formulation": "double-step", **tolerant(each)} for each in (1e-3, 1e-4, 1e-5, 1e-6)]
    runs += [{"formulation": "dca", **tolerant(1e-6)}, {"formulation": "hdca", **tolerant(1e-5)}]
    for options in runs[1:2] if QUICK else runs:
        solver = options.get("solver", "trapezoidal")
        told = f"{options['formulation']}, {solver} {options.get('step', options.get('relative_tolerance')):g}"
        try:
            result = run(**options)
        except (InputError, SimulationError) as problem:
            print(f"| {told} | {problem} |", flush=True)
            continue
        cells = [f"{error(result, tight, names):.1e}" for names in (MOTION, PRESSURES)]
        cells += [f"{result.largest(f'{kind}.drift'):.2g}" for kind in ("energy", "hydraulic_energy")]
        print(f"| {told} | {' | '.join(cells)} | {result.statistics.steps} |", flush=True)


def limits() -> dict[str, float]:
    """Return the settings of relief valves in Pa by the pressures that they limit."""
    valves = excavator().systems["circuit"].components
    return {f"{each.inlet}.pressure": each.setting for each in valves if each.type == "relief-valve"}


def precise(_: Any) -> None:
    """Print what all formulations come to with short steps, equal and controlled, against a run with 1e-9."""
    exact, settings = run(**tolerant(1e-9)), limits()
    print("| formulation | solver | motion | pressures | machine's drift | circuit's drift | pressures from, to |")
    print("|" + " --- |" * 7)
    runs: list[tuple[str, dict[str, Any]]] = []
    for name in ("double-step", "penalty", "dca", "hdca", "dca-alm"):
        runs.append((name, {"step": 1.25e-4}))
        if name != "penalty":  # it has no explicit form
            runs.append((name, tolerant(1e-7)))
    for name, options in runs:
        result = run(formulation=name, **options)
        turned = np.ptp(result["energy.work"]), np.max(result["hydraulic_energy.supplied"])
        drifts = [result.largest(f"{kind}.drift") / each for kind, each in zip(DRIFTING, turned, strict=True)]
        least = min(np.min(result[each]) for each in result.names if each.endswith(".pressure"))
        most = max(np.max(result[each]) / setting for each, setting in settings.items())
        cells = [options.get("solver", "trapezoidal"), *(f"{error(result, exact, each):.1e}" for each in MEASURED)]
        cells += [*(f"{each:.1e}" for each in drifts), f"{least / 1e5:.1f} bar, {most:.3f} of relief"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def energy(tight: Any) -> None:
    """Print what is turned over, and between which pressures the circuit works."""
    supplied, work = np.max(tight["hydraulic_energy.supplied"]), np.ptp(tight["energy.work"])
    print(
        f"energy into the circuit {supplied / 1e3:.0f} kJ, work on the machine between its extremes {work / 1e3:.0f} kJ"
    )
    for kind, turned in (("energy", work), ("hydraulic_energy", supplied)):
        print(f"{kind}.drift: {tight.largest(f'{kind}.drift') / turned:.1e} of it")
    flows = tight["pump.flow"] * 6e4
    print(f"pump: at most {np.max(flows):.0f} l/min; swash full for {np.mean(tight['pump.swash'] > 0.99) * STOP:.1f} s")
    for name in sorted(each for each in tight.names if each.endswith(".pressure")):
        print(f"{name}: {np.min(tight[name]) / 1e5:.1f} to {np.max(tight[name]) / 1e5:.1f} bar")


def speed(tight: Any) -> None:
    """Print how fast the native unit is in a host in C, and its error."""
    print("| solver | communication step [ms] | motion | pressures | their mean | s for the cycle | times real time |")
    print("|" + " --- |" * 7)
    choices = [({"step": step}, step) for step in (4e-3, 2e-3, 1e-3)]
    choices += [(tolerant(each), 1e-2) for each in (1e-3, 1e-4, 1e-5, 1e-6)]
    choices += [(tolerant(3e-6, "rodas4"), each) for each in (1e-2, 5e-2)]
    with tempfile.TemporaryDirectory() as name:
        host = compile_host(Path(name))
        for index, (options, step) in enumerate(choices[1:2] if QUICK else choices):
            folder = Path(name) / str(index)
            unit = mbsfmu.export(excavator(), folder, layout="monolithic", **options)[0]
            # The least of each step over the runs: what else the machine does meanwhile does not count.
            command = host_command(host, unit, folder / "unpacked", step, round(STOP / step), 1 if QUICK else 20)
            done = subprocess.run([*command, "each"], check=True, capture_output=True, text=True)
            seconds = 1e-6 * sum(map(float, done.stdout.split()))
            result = run(**options)
            told = (
                f"trapezoidal, {step * 1e3:g} ms"
                if "step" in options
                else f"{options['solver']}, {options['relative_tolerance']:g}"
            )
            cells = [f"{error(result, tight, names):.1e}" for names in (MOTION, PRESSURES)]
            cells.append(f"{mean_error(result, tight, PRESSURES):.1e}")
            print(
                f"| {told} | {step * 1e3:g} | {' | '.join(cells)} | {seconds:.3f} | {STOP / seconds:.0f} |", flush=True
            )


def commanded(tight: Any) -> mbsfmu.CoupledModel:
    """Return the machine and its circuit without controllers: valves get the commands of the tight run."""
    model = excavator()
    fields = {name: getattr(model, name) for name in type(model).model_fields}
    controllers = [name for name in model.systems if name.endswith("_controller")]
    alone = {
        f"circuit.{name.removesuffix('_controller')}_section.command": mbsfmu.LinearSignal(
            times=tuple(tight.time.tolist()), values=tuple(tight[f"{name}.command"].tolist())
        )
        for name in controllers
    }
    fields["systems"] = {name: data for name, data in model.systems.items() if name not in controllers}
    fields["connections"] = tuple(each for each in model.connections if not any("_controller" in end for end in each))
    kept = {name: signal for name, signal in model.signals.items() if "_controller" not in name}
    return mbsfmu.CoupledModel(**{**fields, "signals": {**kept, **alone}})


def coupling(tight: Any) -> None:
    """Print what coupling costs: machine, circuit and controllers as units, and machine and circuit without these."""
    models = {"with controllers": excavator(), "without controllers": commanded(tight)}
    for told, model in models.items():
        compared = mbsfmu.compare(
            model,
            steps=[1e-3] if QUICK else [2e-3, 1e-3, 5e-4],
            algorithms=["jacobi", "gauss-seidel"],
            stop=STOP if QUICK else 4.0,
        )
        print(f"{told}\n\n| algorithm | step [ms] | status | coupling | with the step | energy residual | cost [s/s] |")
        print("|" + " --- |" * 7)
        for each in compared.runs:
            numbers = (each.worst_error, each.worst_total, each.energy_residual_share, each.cost)
            cells = " | ".join("" if number is None else f"{number:.2g}" for number in numbers)
            print(f"| {each.algorithm} | {each.step * 1e3:g} | {each.status} | {cells} |")
        print(f"\n{compared.step_verdict} {compared.verdict}\n", flush=True)


def main() -> None:
    """Print what was asked for, or all."""
    logging.disable(logging.WARNING)
    parts = {"agreement": agreement, "precise": precise, "energy": energy, "speed": speed, "coupling": coupling}
    chosen = [each for each in sys.argv[1:] if each in parts] or (["energy"] if QUICK else list(parts))
    tight = run(**(tolerant(1e-6) if QUICK else TIGHT))
    for name in chosen:
        print(f"\n{name}\n", flush=True)
        parts[name](tight)


if __name__ == "__main__":
    main()
