"""What a solver pays for the Jacobian of an FMU for model exchange, and what CVODE gains by it.

First table: by columns, by differences, and with Pinocchio.
The unit of time is one right-hand side: states are set and derivatives are read. Columns are asked for one by one, of
all derivatives by one state, by a host in C. `off` is the largest difference to the Jacobian by differences as a share
of the largest element. The last column is Pinocchio's `computeABADerivatives` of the same chain, in µs.

Second table: runs by CVODE with a dense Jacobian by its own differences and of directional derivatives.

Needs gcc, and pin for the last column. Run: python benchmarks/model_exchange/jacobians.py [--quick] [MACHINE …]
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from timeit import repeat

import fmpy
import numpy as np
from machines import AXES, machine

import mbsfmu

QUICK = "--quick" in sys.argv
CASES = (
    [("spatial-2", "double-step")]
    if QUICK
    else [
        *(("four-bar", each) for each in ("double-step", "dca")),
        *(("crane", each) for each in ("double-step", "dca")),
        *(("spatial-4", each) for each in ("double-step", "dca", "hdca")),
        ("spatial-8", "double-step"),
        ("spatial-16", "double-step"),
        ("excavator", "double-step"),
    ]
)
REPEATS = 20 if QUICK else 200
HERE = Path(__file__).parent
LIBRARIES = [
    Path(fmpy.__file__).parent / "sundials" / "x86_64-linux" / f"sundials_{each}.so" for each in ("core", "cvode")
]
"""SUNDIALS as FMPy has it."""
TOLERANCE = 1e-6
RUNS = (
    {"spatial-2": 0.1}
    if QUICK
    else {"four-bar": 2.0, "crane": 2.0, "spatial-4": 2.0, "spatial-8": 2.0, "excavator": 5.0}
)
"""Machines that CVODE integrates, and to which time in s."""


def compiled_host(folder: Path) -> Path:
    """Compile the host in C."""
    host = folder / "exchange_host"
    include = Path(mbsfmu.__file__).parent / "native" / "runtime" / "fmi2"
    source = str(HERE / "exchange_host.c")
    subprocess.run(["gcc", "-std=c99", "-O2", f"-I{include}", source, "-o", str(host), "-ldl", "-lm"], check=True)
    return host


def hosted(host: Path, name: str, formulation: str, stop: float = 0.0) -> tuple[int, list[list[float]]]:
    """Return the number of states, and the lines that the host prints, of runs where a stop time is given."""
    with tempfile.TemporaryDirectory() as folder:
        (unit,) = mbsfmu.export(machine(name), folder, layout="monolithic", kind="me", formulation=formulation)
        with zipfile.ZipFile(unit) as archive:
            archive.extractall(folder)
        (library,) = (Path(folder) / "binaries" / fmpy.platform).iterdir()
        description = fmpy.read_model_description(str(unit))
        derivatives = [each.variable for each in description.derivatives]
        lists = [
            [each.derivative.valueReference for each in derivatives],
            [each.valueReference for each in derivatives],
        ]
        references = [",".join(map(str, each)) for each in lists]
        command = [str(host), str(library), description.guid, str(REPEATS), *references]
        if stop:
            command += [*map(str, LIBRARIES), repr(stop), repr(TOLERANCE)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return len(derivatives), [[float(each) for each in line.split()] for line in done.stdout.splitlines()]


def aba_derivatives(links: int) -> float | None:
    """Return the µs that Pinocchio takes for the derivatives of the accelerations of a chain; None without it."""
    if importlib.util.find_spec("pinocchio") is None:
        return None
    import pinocchio  # noqa: PLC0415 - an optional package

    model = pinocchio.Model()
    parent, place = 0, np.zeros(3)
    for k in range(links):
        joint = pinocchio.JointModelRevoluteUnaligned(np.array(AXES[k % 3]))
        parent = model.addJoint(parent, joint, pinocchio.SE3(np.eye(3), place), f"hinge_{k}")
        tensor = np.array([[0.02, 0.005, -0.004], [0.005, 0.10, 0.003], [-0.004, 0.003, 0.11]])
        inertia = pinocchio.Inertia(1.0 + 0.1 * (k % 3), np.array([0.5, 0.05, -0.03]), tensor)
        model.appendBodyToJoint(parent, inertia, pinocchio.SE3.Identity())
        place = np.array([1.0, 0.1, 0.05])
    data = model.createData()
    q, v, tau = 0.2 + 0.1 * np.arange(links), np.ones(links), np.zeros(links)
    count = 2000
    spent = min(repeat(lambda: pinocchio.computeABADerivatives(model, data, q, v, tau), number=count, repeat=5))
    return 1e6 * spent / count


def jacobians(host: Path, cases: list[tuple[str, str]]) -> None:
    """Print the first table."""
    titles = "right-hand side [µs] | all columns | one column | by differences | off | Pinocchio [µs]"
    print(f"| machine | formulation | states | {titles} |")
    print("|" + " --- |" * 9)
    for name, formulation in cases:
        count, ((rate, columns, column, differences, off),) = hosted(host, name, formulation)
        links = int(name.removeprefix("spatial-")) if name.startswith("spatial-") else 0
        other = aba_derivatives(links) if links else None
        print(
            f"| {name} | {formulation} | {count} | {rate:.2f} | {columns / rate:.1f} | {column / rate:.2f} | "
            f"{differences / rate:.1f} | {off:.0e} | {'' if other is None else f'{other:.1f}'} |",
            flush=True,
        )


def runs(host: Path, names: list[str]) -> None:
    """Print the second table."""
    print("| machine | Jacobian | run [ms] | steps | right-hand sides | Jacobians | first state at the end |")
    print("|" + " --- |" * 7)
    for name in names:
        _, lines = hosted(host, name, "double-step", RUNS[name])
        for kind, (spent, steps, rates, found, end) in zip(("differences", "directional"), lines, strict=True):
            print(
                f"| {name} | {kind} | {spent:.2f} | {steps:.0f} | {rates:.0f} | {found:.0f} | {end:.7g} |", flush=True
            )


def main() -> None:
    """Print both tables."""
    chosen = [each for each in sys.argv[1:] if not each.startswith("-")]
    with tempfile.TemporaryDirectory() as folder:
        host = compiled_host(Path(folder))
        jacobians(host, [each for each in CASES if not chosen or each[0] in chosen])
        print()
        runs(host, [each for each in RUNS if not chosen or each in chosen])


if __name__ == "__main__":
    main()
