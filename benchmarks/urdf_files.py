"""Accelerations of the robots in URDF files compared with those of Pinocchio, and the sentence of each refusal.

Run: python benchmarks/urdf_files.py PATH... [-o table.md]

A PATH is a URDF file, a folder, or a wheel of PyPI, of which the URDF files are read:
`pip download --no-deps -d wheels example-robot-data pybullet rtb-data`, then
`python benchmarks/urdf_files.py wheels/*.whl`.

Each robot is at a random place, moves and is driven at random, without friction and mimic joints. The accelerations of
Pinocchio are those of its articulated-body algorithm, ours those of the mass matrix of the equations in joint
coordinates (double-step), of articulated bodies and of the balanced assembly of divide and conquer (dca). Errors are
relative to the largest acceleration. Files of one content count once.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pinocchio
from numpy.typing import NDArray

from mbsfmu import DataError, InputError, Mechanism, mechanism_from_urdf
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.parts import JointDrive
from mbsfmu.systems.concatenated_system import CoupledSystem
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import LoopsInUse, starts

Floats = NDArray[np.float64]
STILL = "nothing moves"
"""What is refused of objects that are fixed to the ground."""
WRONG = 1e-6
"""Relative error above which a file counts as wrong."""


@dataclass
class Row:
    """What came of a file: bodies and coordinates with the largest relative error, or a sentence."""

    package: str
    file: str
    sentence: str = ""
    bodies: int = 0
    coordinates: int = 0
    error: float = np.nan


def urdf_files(paths: list[str], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the package and the path of each URDF file, files of one content once."""
    seen: set[bytes] = set()
    for path in map(Path, paths):
        root, package = path, path.name
        if path.suffix == ".whl":
            package = path.name.partition("-")[0]
            root = folder / package
            with zipfile.ZipFile(path) as wheel:
                wheel.extractall(root, [name for name in wheel.namelist() if name.endswith(".urdf")])
        files = [root] if root.suffix == ".urdf" else sorted(root.rglob("*.urdf"))
        for file in files:
            digest = hashlib.sha256(file.read_bytes()).digest()
            if digest not in seen:
                seen.add(digest)
                yield package, file


def reference(model: pinocchio.Model, mechanism: Mechanism, random: np.random.Generator) -> tuple[Floats, ...]:
    """Return coordinates and rates of our joints, then loads, accelerations, and where ours are among Pinocchio's."""
    q, v, loads = pinocchio.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    names = {re.sub(r"[^A-Za-z0-9_]", "_", name): index for index, name in enumerate(model.names)}
    places: list[float] = []
    rates: list[float] = []
    rows: list[int] = []
    for joint in (tree.joint for tree in mechanism.topology.tree):
        if len(joint.elements) == 0:
            continue
        index = names.get(joint.name, names.get(joint.name.removeprefix("_"), 1))
        own = model.joints[index]
        if len(joint.elements) > 1:  # at rest where they are: planar, floating
            places += [0.0] * len(joint.elements)
            rates += [0.0] * len(joint.elements)
            rows += [-1] * len(joint.elements)
            continue
        place, rate = random.uniform(-1.5, 1.5), random.uniform(-2.0, 2.0)
        q[own.idx_q : own.idx_q + own.nq] = [np.cos(place), np.sin(place)] if own.nq == 2 else [place]
        v[own.idx_v], loads[own.idx_v] = rate, random.uniform(-1.0, 1.0)
        places.append(place)
        rates.append(rate)
        rows.append(own.idx_v)
    accelerations = pinocchio.aba(model, model.createData(), q, v, loads)
    return np.array(places), np.array(rates), loads, accelerations, np.array(rows)


def compared(path: Path, seed: int) -> tuple[Mechanism, float]:
    """Return the mechanism and the largest relative error of its accelerations."""
    mechanism = mechanism_from_urdf(path)
    drives = tuple(force for force in mechanism.forces if isinstance(force, JointDrive))
    followers = (JointDrive(name=f"{each.name}_drive", joint=each.joint) for each in mechanism.constraints)
    mechanism = Mechanism.from_dict({**mechanism.to_dict(), "forces": [], "constraints": []})
    mechanism = mechanism.model_copy(update={"forces": (*drives, *followers)})
    model = pinocchio.buildModelFromUrdf(str(path))
    places, rates, loads, expected, rows = reference(model, mechanism, np.random.default_rng(seed))
    system = MechanismSystem(mechanism)
    Initialization(CoupledSystem.of(system))  # refuses motion without kinetic energy
    functions = SystemFunctions(system)
    functions.parameters[:] = starts(system.parameters)
    functions.coordinates[:], functions.velocities[:] = places, rates
    functions.references[:] = system.start_references(places)
    coordinates = {tree.joint.name: tree.coordinates for tree in mechanism.topology.tree}
    driven = [coordinates[drive.joint][0] for drive in mechanism.forces if isinstance(drive, JointDrive)]
    functions.inputs[:] = loads[rows[driven]] if driven else 0.0
    found: list[Floats] = [by_mass_matrix(functions)]
    for sequential in (True, False):
        in_use = LoopsInUse((), sequential=sequential)
        found.append(functions.system.forward_dynamics(functions.numeric_instant(), in_use, 0.0)[0])
    single = rows >= 0
    scale = float(np.max(np.abs(expected), initial=1e-9))
    errors = [float(np.max(np.abs(each[single] - expected[rows[single]]), initial=0.0)) / scale for each in found]
    return mechanism, float(np.max(errors))


def by_mass_matrix(functions: SystemFunctions) -> Floats:
    """Return the accelerations that the residual of the equations in joint coordinates gives, column by column."""
    count = len(functions.coordinates)
    columns = []
    for unit in [np.zeros(count), *np.eye(count)]:
        functions.accelerations[:] = unit
        columns.append(np.asarray(functions.system.residual(functions.numeric_instant()), dtype=float))
    functions.accelerations[:] = 0.0
    return np.linalg.solve(np.stack(columns[1:], axis=1) - columns[0][:, np.newaxis], -columns[0])


def row_of(package: str, path: Path, root: Path) -> Row:
    """Return what comes of a file."""
    name = str(path.relative_to(root)) if path.is_relative_to(root) else path.name
    row = Row(package, name)
    try:
        mechanism, row.error = compared(path, seed=1)
        row.bodies = len(mechanism.bodies)
        row.coordinates = sum(len(joint.elements) for joint in mechanism.joints)
    except (DataError, InputError) as error:
        row.sentence = str(error).replace(str(path), path.name)
    except np.linalg.LinAlgError as error:
        row.sentence = f"FAULT {type(error).__name__}: {error}"
    except ValueError as error:
        row.sentence = f"Pinocchio: {' '.join(str(error).split())}"
    except Exception as error:  # a fault of ours, which the table shows
        row.sentence = f"FAULT {type(error).__name__}: {error}"
    return row


def table(rows: list[Row], reading: dict[str, Counter[str]]) -> str:
    """Return the results as Markdown."""
    head = ("package", "files", "nothing moves", "compared", "largest error", "refused", "refused by Pinocchio")
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for package, counts in reading.items():
        errors = [row.error for row in rows if row.package == package and not row.sentence]
        worst = f"{max(errors):.1e}" if errors else "–"
        lines.append(
            f"| `{package}` | {sum(counts.values())} | {counts['nothing moves']} | {counts['compared']} | {worst} | "
            f"{counts['refused']} | {counts['Pinocchio']} |"
        )
    lines += ["", "| package | file | sentence |", "| --- | --- | --- |"]
    lines += [
        f"| `{row.package}` | `{row.file}` | {row.sentence} |"
        for row in rows
        if row.sentence and STILL not in row.sentence
    ]
    wrong = [row for row in rows if not (row.sentence or row.error <= WRONG)]
    lines += [f"| `{row.package}` | `{row.file}` | WRONG {row.error:.2e} |" for row in wrong]
    return "\n".join(lines) + "\n"


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--quick", is_flag=True, help="The example of the repository alone.")
@click.option("-o", "output", help="File of the table; on the screen by default.")
def main(paths: tuple[str, ...], quick: bool, output: str | None) -> None:
    """Compare the robots of URDF files with Pinocchio."""
    if quick:
        paths = (str(Path(__file__).parents[1] / "examples" / "arm.urdf"),)
    if not paths:
        raise click.UsageError("no PATH: give URDF files, folders or wheels")
    logging.disable(logging.WARNING)
    rows: list[Row] = []
    reading: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for package, path in urdf_files(list(paths), Path(folder)):
            row = row_of(package, path, Path(folder) / package)
            rows.append(row)
            kinds = (kind for kind in (STILL, "Pinocchio") if kind in row.sentence)
            kind = next(kinds, "refused") if row.sentence else "compared"
            reading.setdefault(package, Counter())[kind] += 1
            print(f"{row.package} {row.file} {row.error:.1e} {row.sentence}", file=sys.stderr)
    text = table(rows, reading)
    if output is None:
        print(text)
    else:
        Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
