"""One right-hand side in compiled C, beside Pinocchio's articulated-body algorithm in the same run.

Run: python benchmarks/divide_and_conquer/compiled.py [--quick]

Needs g++; Pinocchio's headers come with the package `pin`, Eigen's with CasADi. Compiling takes some minutes; with
`--quick` Pinocchio's algorithm is left out.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import casadi
import numpy as np
import pinocchio
from flow import Floats, Flow

from mbsfmu.compiling.compiler import compile_library
from mbsfmu.coupled import CoupledModel
from mbsfmu.model import Mechanism
from mbsfmu.models import built_in, pendulum
from mbsfmu.native.sources import step_sources
from mbsfmu.parts import Revolute

HERE = Path(__file__).parent
QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
LINKS, ROUNDS, REPETITIONS = (4, 2, 5) if QUICK else (16, 200, 500)
AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
FLAGS = {} if QUICK else {"-O2": ("-O2",), "-O3 -march=native": ("-O3", "-march=native")}

_Doubles = ctypes.POINTER(ctypes.c_double)
Timed = Callable[[int], None]


def _pointer(array: Floats) -> ctypes._Pointer[ctypes.c_double]:
    return array.ctypes.data_as(_Doubles)


def compiled_rates(flow: Flow) -> ctypes.CDLL:
    """Compile a right-hand side with the flags of native units, for this machine."""
    sources = step_sources(flow.simulation) | {"timed.c": (HERE / "timed.c").read_text(encoding="utf-8")}
    return ctypes.CDLL(str(compile_library(sources, {"timed.c": "-O2", "pool.c": "-O2"}, None, portable=False)))


def point(flow: Flow) -> Floats:
    """Return a y that moves, the same motion with any formulation."""
    functions = flow.functions
    random = np.random.default_rng(0)
    flow.functions.coordinates[:] = flow.start[: len(functions.coordinates)] + random.normal(
        scale=0.1, size=len(functions.coordinates)
    )
    functions.velocities[:] = random.normal(size=len(functions.velocities))
    if flow.formulation.moving == "momenta":
        flow.formulation.initial_momenta()
    return np.concatenate([functions.coordinates, flow.moving])


def repeated(flow: Flow, library: ctypes.CDLL | None = None) -> Timed:
    """Return the compiled right-hand side as a function of how often it is evaluated; check what it gives."""
    library, values = library or compiled_rates(flow), point(flow)
    z, w = np.split(values, 2)
    parameters, rates = flow.functions.parameters.copy(), np.zeros(2 * len(z) + len(flow.functions.integrals))

    def run(repetitions: int) -> None:
        library.timed(_pointer(parameters), _pointer(z), _pointer(w), repetitions, _pointer(rates))

    run(1)
    np.testing.assert_allclose(rates[: 2 * len(z)], flow.rates(values), rtol=1e-12, atol=1e-12)
    return run


def interleaved(
    functions: Mapping[str, Timed], rounds: int = ROUNDS, repetitions: int = REPETITIONS
) -> dict[str, tuple[float, float]]:
    """Return median and least time of one evaluation in µs; rounds go through all functions in turn."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.perf_counter()
            function(repetitions)
            times[name].append((time.perf_counter() - begin) / repetitions * 1e6)
    return {name: (median(each), min(each)) for name, each in times.items()}


def spatial_chain(links: int = LINKS) -> CoupledModel:
    """Return the chain with hinges about Z, Y and X in turn."""
    mechanism = pendulum(links).systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    joints = [
        Revolute(name=joint.name, parent=joint.parent, child=joint.child, axis=AXES[index % 3])
        for index, joint in enumerate(mechanism.joints)
    ]
    changed = mechanism.model_copy(update={"joints": tuple(joints)})
    return CoupledModel(name=f"spatial-{links}", systems={"mechanism": changed})


def articulated_body(folder: Path, flags: tuple[str, ...]) -> ctypes.CDLL:
    """Compile Pinocchio's algorithm."""
    prefix = next(parent for parent in Path(pinocchio.__file__).parents if parent.name == "cmeel.prefix")
    library = folder / f"aba{''.join(flags)}.so"
    call = [
        os.environ.get("CXX", "g++"), "-std=c++17", *flags, "-DNDEBUG", "-fPIC", "-shared",
        "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "-w",
        f"-I{prefix / 'include'}", f"-I{Path(casadi.__file__).parent / 'include' / 'eigen3'}",
        str(HERE / "aba.cpp"), "-o", str(library),
        f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lpinocchio_default", "-lboost_serialization",
    ]  # fmt: skip
    subprocess.run(call, check=True)
    return ctypes.CDLL(str(library))


def pinocchios(library: ctypes.CDLL, flow: Flow, *, spatial: bool, world: bool) -> Timed:
    """Return Pinocchio's algorithm on the chain of a flow with velocities; check what it gives."""
    values = point(flow)
    z, w = np.split(values, 2)
    accelerations = np.zeros(len(z))

    def run(repetitions: int) -> None:
        library.timed(len(z), int(spatial), int(world), _pointer(z), _pointer(w), repetitions, _pointer(accelerations))

    run(1)
    np.testing.assert_allclose(accelerations, flow.rates(values)[len(z) :], rtol=1e-9, atol=1e-9)
    return run


def main() -> None:
    """Print the times of one evaluation and how long the traced functions are."""
    with tempfile.TemporaryDirectory() as folder:
        libraries = {label: articulated_body(Path(folder), flags) for label, flags in FLAGS.items()}
        for model, spatial in ((built_in(f"pendulum-{LINKS}"), False), (spatial_chain(), True)):
            flows = {name: Flow(model, name) for name in ("dca", "hdca")}
            functions = {name: repeated(flow) for name, flow in flows.items()}
            for label, library in libraries.items():
                for world in (False, True):
                    name = f"aba, {label}, {'WORLD' if world else 'LOCAL'}"
                    functions[name] = pinocchios(library, flows["dca"], spatial=spatial, world=world)
            times = interleaved(functions)
            reference = times["dca" if QUICK else "aba, -O2, LOCAL"][0]
            print(
                f"\n| {model.name} | instructions | median [µs] | least [µs] | to aba, -O2, LOCAL |\n|" + " --- |" * 5
            )
            for name, (middle, least) in times.items():
                count = flows[name].formulation.explicit.operations if name in flows else "–"
                print(f"| {name} | {count} | {middle:.2f} | {least:.2f} | {middle / reference:.2f} |", flush=True)


if __name__ == "__main__":
    main()
