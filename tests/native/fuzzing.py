"""Random calls of native FMUs under sanitizers; by hand for longer than the suite has time for.

PYTHONPATH=tests:examples python tests/native/fuzzing.py --calls 1000000 --seed 7 four-bar:double-step four-bar:hdca
With --exchange FMUs are for model exchange too, and half of the calls are its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from native_fmus import model_of
from runtime_sources import INCLUDES

from mbsfmu.compiling.platforms import VERSIONS, Clocks, Fmi, Interface
from mbsfmu.native.c_sources import unit_files
from mbsfmu.native.native_package import described_sources
from mbsfmu.simulation.simulation import Simulation

HERE = Path(__file__).parent
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1", "-O0")


@dataclass(frozen=True)
class Checked:
    """A library that sanitizers watch.

    Attributes
    ----------
    library
        The file.
    guid
        What it is instantiated with.
    simulation
        What it was made from.
    fmi
        The version that it speaks.
    added
        How many variables it has beside those of the simulation.
    """

    library: Path
    guid: str
    simulation: Simulation
    fmi: Fmi = 2
    added: int = 0

    @property
    def arguments(self) -> list[str]:
        """What `fuzz.c` is told about it."""
        names = [variable.name for variable in self.simulation.variables]
        return [str(self.library), self.guid, str(len(names) + self.added), str(names.index("solver.step"))]


def compile_c(*arguments: str, folder: Path) -> None:
    """Run the compiler."""
    done = subprocess.run(["gcc", "-std=c99", *arguments], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-4000:]


def checked(
    simulation: Simulation,
    folder: Path,
    fmi: Fmi = 2,
    kind: tuple[Interface, ...] = ("cs",),
    clocks: Clocks = "none",
) -> Checked:
    """Compile an FMU with sanitizers."""
    folder.mkdir(parents=True, exist_ok=True)
    description, sources = described_sources(simulation, fmi, kind, arrays=fmi == 3, clocks=clocks)
    for name, text in sources.items():
        (folder / name).write_text(text)
    files = unit_files(fmi, sources)
    compile_c(*SANITIZERS, "-fPIC", "-shared", *files, "-o", "checked.so", "-lm", folder=folder)
    added = len(description.variables) - len(simulation.variables)
    return Checked(folder / "checked.so", description.identity, simulation, fmi, added)


def fuzz(one: Checked, other: Checked, calls: int, seed: int, *, exchange: bool = False) -> str:
    """Make random calls; return what became of them.

    Raises
    ------
    AssertionError
        When a sanitizer finds something, or a unit breaks a promise; the message is what was found.
    """
    program = one.library.with_name("fuzz")
    flags = ("-Wall", "-Wextra", "-Wno-misleading-indentation", "-D_GNU_SOURCE", *INCLUDES)
    flags += ("-DFMI3",) if one.fmi == 3 else ()
    compile_c(*flags, *SANITIZERS, str(HERE / "fuzz.c"), "-o", str(program), "-ldl", "-lm", folder=HERE)
    command = [str(program), str(calls), str(seed), *one.arguments, *other.arguments]
    warned = {**os.environ, "EXCHANGE": "1"} if exchange else None
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=warned)
    assert done.returncode == 0, f"seed {seed}: {done.stdout[-1000:]}{done.stderr[-6000:]}"
    return done.stdout.strip()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs=2, metavar="MODEL:FORMULATION[:SOLVER]")
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exchange", action="store_true")
    parser.add_argument("--fmi", type=int, choices=VERSIONS, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for number, text in enumerate(chosen.units):
            name, formulation, *solver = text.split(":")
            options = {"formulation": formulation, **({"solver": solver[0]} if solver else {})}
            made.append(
                checked(
                    model_of(name).simulation(compiled=False, **options),
                    Path(folder) / f"unit-{number}",
                    chosen.fmi,
                    ("cs", "me") if chosen.exchange else ("cs",),
                )
            )
        print(fuzz(*made, chosen.calls, chosen.seed, exchange=chosen.exchange))  # noqa: T201 - what it is run for


if __name__ == "__main__":
    main()
