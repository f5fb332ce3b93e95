"""The compiled right-hand side of a flow, timed."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import numpy as np
from flow import Floats, Flow
from machines import Machine, Point

from mbsfmu.compiling.compiler import compile_library
from mbsfmu.native.c_sources import StepSources

HERE = Path(__file__).parent
QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
ROUNDS, REPETITIONS = (2, 5) if QUICK else (200, 500)

_Doubles = ctypes.POINTER(ctypes.c_double)
Timed = Callable[[int], None]


def pointer(array: Floats) -> ctypes._Pointer[ctypes.c_double]:
    """Return the address of numbers."""
    return array.ctypes.data_as(_Doubles)


def compiled_rates(flow: Flow) -> ctypes.CDLL:
    """Compile a right-hand side with the flags of native units, for this machine."""
    sources = StepSources.of(flow.simulation).code() | {"timed.c": (HERE / "timed.c").read_text(encoding="utf-8")}
    return ctypes.CDLL(str(compile_library(sources, {"timed.c": "-O2"}, None, portable=False)))


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


def reached(machine: Machine, flow: Flow) -> Point:
    """Return the point of a flow with velocities, and the accelerations there."""
    values = point(flow)
    z, w = np.split(values, 2)
    return Point(machine, z, w, flow.rates(values)[len(z) :].copy())


def repeated(flow: Flow, library: ctypes.CDLL | None = None) -> Timed:
    """Return the compiled right-hand side as a function of how often it is evaluated; check what it gives."""
    library, values = library or compiled_rates(flow), point(flow)
    z, w = np.split(values, 2)
    parameters, rates = flow.functions.parameters.copy(), np.zeros(2 * len(z) + len(flow.functions.integrals))

    def run(repetitions: int) -> None:
        library.timed(pointer(parameters), pointer(z), pointer(w), repetitions, pointer(rates))

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
