"""Random calls of native FMUs under sanitizers; by hand for longer than the suite has time for.

PYTHONPATH=tests:examples python tests/native/fuzzing.py --calls 1000000 --seed 7 four-bar:double-step four-bar:hdca
With --exchange FMUs are for model exchange too, and half of the calls are its own. Without models, all pairs of
CAMPAIGN are called, each --calls times.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from native_fmus import model_of
from runtime_sources import INCLUDES

import mbsfmu
from hydraulics import Circuit, LineEnd, Oil, PressureSource, Throttle, Volume
from mbsfmu import (
    AppliedForce,
    AppliedMoment,
    Beam,
    CoupledModel,
    Mechanism,
    OrientationSensor,
    PointSensor,
    Revolute,
)
from mbsfmu.compiling.compiler import CLOCKS, VERSIONS, Clocks, Fmi, Interface, host_platform
from mbsfmu.cosim.runs.coupling_options import CouplingOptions
from mbsfmu.exporting import coupled_export
from mbsfmu.exporting.coupled_export import coupled_code
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
    names
        Its variables, in the order of their value references.
    fmi
        The version that it speaks.
    resources
        Folder of its resources, where it needs them: the components of coupled FMUs.
    """

    library: Path
    guid: str
    names: Sequence[str]
    fmi: Fmi = 2
    resources: str = ""

    @property
    def arguments(self) -> list[str]:
        """What `fuzz.c` is told about it."""
        steps = [k for k, name in enumerate(self.names) if name.endswith(("coupling.step", "solver.step"))]
        own = sorted(steps, key=lambda k: self.names[k].count("."))
        return [str(self.library), self.guid, str(len(self.names)), ",".join(map(str, own)), self.resources]


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
    names = [each.variable.name for each in description.variables]
    return Checked(folder / "checked.so", description.identity, names, fmi)


def coupled(folder: Path, fmi: Fmi, algorithm: str) -> Checked:
    """Compile the coupled FMUs of a four-bar and its circuit with sanitizers, as one FMU; the components have none."""
    *_, package = mbsfmu.export(mbsfmu.models.four_bar(), folder / "parts", layout="separate", fmi=fmi)
    place, options = host_platform(fmi), CouplingOptions.of(None, {"algorithm": algorithm, "step": 1e-3}, ())
    with coupled_code(package, "whole", [place], options=options, fmi=fmi) as code:
        for name, text in {**code.sources, **coupled_export._platform_source(place)}.items():
            (folder / name).write_text(text)
        for name, content in code.components():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        flags = (*SANITIZERS, "-fPIC", "-shared", *code.mains, "-o", "checked.so", "-ldl", "-lm")
        compile_c(*flags, folder=folder)
        names = [each.variable.name for each in code.description.variables]
        return Checked(folder / "checked.so", code.description.identity, names, fmi, str(folder / "resources"))


def line_end() -> CoupledModel:
    """An end of a line with a delay, whose other end is in another FMU, behind a pump and a throttle."""
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0),
        components=(
            PressureSource(name="pump", node="P", pressure=1.2e7),
            Throttle(name="inlet", inlet="P", outlet="A", orifice_diameter=2e-3, discharge_coefficient=0.7),
            Volume(name="near", node="A", volume=1e-4),
            LineEnd(
                name="line", node="A", diameter=0.012, length=9.6, wave_speed=1200.0, viscosity=0.04, reaches=4,
                initial_flow=2e-4,
            ),
        ),
        initial_pressures={"A": 1e7},
    )  # fmt: skip
    return CoupledModel(name="end", systems={"end": circuit})


def joint_half() -> CoupledModel:
    """A pendulum with a handle, by which a joint holds it to a body in another FMU."""
    measures = ("quaternion", "angular_velocity", "angular_acceleration")
    half = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(Beam(name="link", length=1.0, mass=2.0),),
        joints=(Revolute(name="pin", parent="ground.O", child="link.start", axis=(0.0, 0.0, 1.0), angle=0.4),),
        forces=(AppliedForce(name="load", point="link.end"), AppliedMoment(name="turn", point="link.end")),
        sensors=(
            PointSensor(name="seen", point="link.end", measures=("position", "velocity", "acceleration")),
            OrientationSensor(name="facing", point="link.end", measures=measures),
        ),
    )
    return CoupledModel(name="half", systems={"half": half})


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


@dataclass(frozen=True)
class Pair:
    """Two FMUs whose states must not be mixed up, as the arguments of the command line name them."""

    one: str
    other: str
    fmi: Fmi = 2
    exchange: bool = False
    clocks: Clocks = "none"

    def fuzz(self, calls: int, seed: int) -> str:
        """Make random calls; return what became of them."""
        kind: tuple[Interface, ...] = ("cs", "me") if self.exchange else ("cs",)
        with tempfile.TemporaryDirectory() as folder:
            made = [
                coupled(place, self.fmi, text.removeprefix("coupled:"))
                if text.startswith("coupled:")
                else checked(_simulation(text), place, self.fmi, kind, self.clocks)
                for place, text in zip(
                    (Path(folder, "one"), Path(folder, "other")), (self.one, self.other), strict=True
                )
            ]
            return fuzz(made[0], made[1], calls, seed, exchange=self.exchange)


CAMPAIGN = (
    Pair("ball-pendulum:dca-alm", "ball-pendulum:hdca"),
    Pair("four-bar:double-step:rodas5p", "four-bar:penalty"),
    Pair("sampled:double-step", "ball-pendulum:double-step", exchange=True),
    Pair("four-bar:dca", "ball-pendulum:hdca", exchange=True),
    Pair("ball-pendulum:dca-alm:rk45:loops", "loop-4:dca-alm:rk45:loops", exchange=True),
    Pair("ball-pendulum:penalty", "ball-pendulum:dca-alm", 3),
    Pair("four-bar:dca-alm", "four-bar:double-step:rk4", 3),
    Pair("sampled:double-step", "ball-pendulum:dca", 3, exchange=True),
    Pair("four-bar:double-step", "four-bar:hdca", 3, exchange=True),
    Pair("ball-pendulum:dca-alm:rk45:loops", "loop-4:dca-alm:rk45:loops", 3, exchange=True),
    Pair("sampled:double-step:rk4", "sampled:double-step:rk45", 3, exchange=True, clocks="periodic"),
    Pair("sampled:double-step:rk4", "sampled:double-step:rk45", 3, exchange=True, clocks="triggered"),
    Pair("coupled:gauss-seidel", "coupled:jacobi"),
    Pair("coupled:gauss-seidel", "coupled:jacobi", 3),
    Pair("coupled:jacobi", "ball-pendulum:double-step", 3),
    Pair("line-end:double-step:rodas5p", "joint-half:double-step:rodas5p", exchange=True),
    Pair("line-end:double-step", "joint-half:dca", 3),
)
"""Both versions, both kinds of use, all formulations, clocks. A million calls of a pair take two to four minutes."""


def _simulation(text: str) -> Simulation:
    """Return the simulation of MODEL:FORMULATION[:SOLVER[:CODE]]."""
    name, formulation, *others = text.split(":")
    options = {"formulation": formulation, **dict(zip(("solver", "code"), others, strict=False))}
    own = {"line-end": line_end, "joint-half": joint_half}
    model = own[name]() if name in own else model_of(name)
    return model.simulation(compiled=False, **options)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs="*", metavar="MODEL:FORMULATION[:SOLVER[:CODE]]")
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exchange", action="store_true")
    parser.add_argument("--fmi", type=int, choices=VERSIONS, default=2)
    parser.add_argument("--clocks", choices=CLOCKS, default="none")
    chosen = parser.parse_args()
    if len(chosen.units) not in (0, 2):
        parser.error("two FMUs are called, or those of the campaign")
    named = [Pair(*chosen.units, chosen.fmi, chosen.exchange, chosen.clocks)] if chosen.units else CAMPAIGN
    for pair in named:
        print(pair.one, pair.other, pair.fuzz(chosen.calls, chosen.seed), flush=True)  # noqa: T201 - what it is run for


if __name__ == "__main__":
    main()
