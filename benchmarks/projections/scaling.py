"""Cost of `dca-alm` over the number of bodies: matrices once, then one iteration after the other.

Run: python benchmarks/projections/scaling.py [--quick]

Batched NumPy on open chains, least times of interleaved rounds.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np

from mbsfmu.models import pendulum
from mbsfmu.systems.mechanism.absolute_system import AbsoluteSystem
from mbsfmu.systems.system import NO_LOOPS, SystemContext, starts

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
SIZES = [2**exponent for exponent in ((3, 4, 5, 6, 7, 8) if QUICK else range(4, 12))]


def instant_of(system: AbsoluteSystem) -> SystemContext:
    """Return an instant of the chain where it starts."""
    parameters, none = starts(system.parameters), np.zeros(0)
    z, velocities = system.start_system.initial_coordinates(parameters)
    n = len(system.coordinates)
    empty = SystemContext(
        np.zeros(n), np.zeros(n), np.zeros(n), none, np.zeros(len(system.integrals)), none, parameters,
        system.start_references(z), np.zeros(n), none,
    )  # fmt: skip
    coordinates, rates = system.place(z, velocities, empty)
    return SystemContext(
        coordinates, rates, np.zeros(n), none, empty.integrals, none, parameters, empty.references, empty.momenta, none
    )


def least(call: Callable[[], object], rounds: int) -> float:
    """Return the least time in s."""
    found = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return min(found)


def exponent(seconds: list[float], first: int = 0) -> float:
    """Return the exponent of a power of n that fits."""
    return float(np.polyfit(np.log(SIZES[first:]), np.log(seconds[first:]), 1)[0])


def main() -> None:
    """Print one row for each size, and the exponents."""
    print("| bodies | joined levels | ⌈log₂ n⌉ | matrices [ms] | one iteration [ms] |\n|" + " --- |" * 5)
    matrices, iterations = [], []
    for size in SIZES:
        system = AbsoluteSystem(pendulum(size).systems["mechanism"])
        instant = instant_of(system)
        corrections = system.corrections(instant, NO_LOOPS, 1e6)
        violation = np.random.default_rng(1).normal(size=len(system.constraints))
        rounds = max(3, 256 // size)
        matrices.append(least(lambda: system.corrections(instant, NO_LOOPS, 1e6), rounds))  # noqa: B023
        iterations.append(least(lambda: corrections.solve(violation), rounds))  # noqa: B023
        levels = system.bodies.tree.joined
        print(
            f"| {size} | {levels} | {math.ceil(math.log2(size))} | {matrices[-1] * 1e3:.1f}"
            f" | {iterations[-1] * 1e3:.2f} |",
            flush=True,
        )
    for name, seconds in (("matrices", matrices), ("one iteration", iterations)):
        print(f"{name}: n^{exponent(seconds):.2f} over all, n^{exponent(seconds, 4):.2f} from {SIZES[4]} on")


if __name__ == "__main__":
    main()
