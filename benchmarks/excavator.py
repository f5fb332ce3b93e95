"""The excavator of the examples: agreement of formulations and solvers, energies, speed of its unit, cost of coupling.

Needs gcc. Errors are the largest differences from a tight run (rodas5p, 1e-8) as shares of each variable's range over
the cycle of 20 s. Run: python benchmarks/excavator.py [--quick] [agreement | energy | speed | coupling …]
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
from mbsfmu.errors import InputError, SimulationError

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from excavator import excavator

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STOP, ROW = (0.3, 0.02) if QUICK else (20.0, 0.02)
MOTION = ("boom_cylinder.length", "stick_cylinder.length", "bucket_cylinder.length", "house.angle")
PRESSURES = ("P.pressure", "boom_a.pressure", "stick_a.pressure", "bucket_a.pressure", "slew_a.pressure")
TIGHT: dict[str, Any] = {"solver": "rodas5p", "relative_tolerance": 1e-8, "absolute_tolerance": 1e-8}


def run(**options: Any) -> Any:
    """Return a run of the whole cycle."""
    return excavator().simulation(**options).run(STOP, output_step=ROW)


def error(result: Any, tight: Any, names: tuple[str, ...]) -> float:
    """Return the largest difference as a share of the range."""
    return max(float(np.max(np.abs(result[name] - tight[name])) / np.ptp(tight[name])) for name in names)


def tolerant(tolerance: float) -> dict[str, Any]:
    """Return options of an adaptive run."""
    return {"solver": "rodas5p", "relative_tolerance": tolerance, "absolute_tolerance": tolerance}


def agreement(tight: Any) -> None:
    """Print errors and drifts of formulations and solvers."""
    print("| formulation, solver | motion | pressures | machine's drift [J] | circuit's drift [J] | steps |")
    print("|" + " --- |" * 6)
    runs: list[dict[str, Any]] = [{"formulation": "double-step", "step": step} for step in (4e-3, 2e-3, 1e-3, 5e-4)]
    runs += [{"formulation": name, "step": 1e-3} for name in ("penalty", "dca", "hdca", "dca-alm")]
    runs += [{"formulation": "double-step", **tolerant(each)} for each in (1e-3, 1e-4, 1e-5, 1e-6)]
    runs += [{"formulation": name, **tolerant(1e-5)} for name in ("dca", "hdca")]
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
    print("| solver | communication step [ms] | motion | pressures | s for the cycle | times real time |")
    print("|" + " --- |" * 6)
    choices = [({"step": step}, step) for step in (4e-3, 2e-3, 1e-3)]
    choices += [(tolerant(each), 1e-2) for each in (1e-2, 1e-3, 1e-4, 1e-5)]
    with tempfile.TemporaryDirectory() as name:
        host = compile_host(Path(name))
        for index, (options, step) in enumerate(choices[1:2] if QUICK else choices):
            folder = Path(name) / str(index)
            unit = mbsfmu.export(excavator(), folder, layout="monolithic", **options)[0]
            command = host_command(host, unit, folder / "unpacked", step, round(STOP / step), 1 if QUICK else 7)
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            seconds = min(map(float, done.stdout.split())) * 1e-6 * round(STOP / step)
            result = run(**options)
            told = (
                f"trapezoidal, {step * 1e3:g} ms"
                if "step" in options
                else f"rodas5p, {options['relative_tolerance']:g}"
            )
            cells = [f"{error(result, tight, names):.1e}" for names in (MOTION, PRESSURES)]
            print(
                f"| {told} | {step * 1e3:g} | {' | '.join(cells)} | {seconds:.3f} | {STOP / seconds:.0f} |", flush=True
            )


def coupling(tight: Any) -> None:  # noqa: ARG001 - compare has its own
    """Print what coupling costs, with the controllers beside the machine and its circuit."""
    compared = mbsfmu.compare(
        excavator(),
        steps=[1e-3] if QUICK else [2e-3, 1e-3, 5e-4],
        algorithms=["jacobi", "gauss-seidel"],
        stop=STOP if QUICK else 4.0,
    )
    print(compared)


def main() -> None:
    """Print what was asked for, or all."""
    logging.disable(logging.WARNING)
    parts = {"agreement": agreement, "energy": energy, "speed": speed, "coupling": coupling}
    chosen = [each for each in sys.argv[1:] if each in parts] or (["energy"] if QUICK else list(parts))
    tight = run(**(tolerant(1e-6) if QUICK else TIGHT))
    for name in chosen:
        print(f"\n{name}\n", flush=True)
        parts[name](tight)


if __name__ == "__main__":
    main()
