"""Time of one right-hand side in the batched numeric form over the number of bodies of an open chain.

Run: python benchmarks/divide_and_conquer/scaling.py [--quick]

Least times of interleaved rounds: other work on the machine only adds. The longest chain is put together in minutes.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from figures import DOCS, STYLES

from mbsfmu.divide_and_conquer.assembly import DivideAndConquer, LevelFactors
from mbsfmu.models import pendulum
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import LoopsInUse, SystemContext, starts

sys.path.insert(0, str(Path(__file__).parents[1]))

from drawing import COLOURS, REFERENCE, new_figure, svg

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
SIZES = [2**exponent for exponent in ((4, 5, 8, 9) if QUICK else range(4, 13))]


def moving(system: MechanismSystem) -> SystemContext:
    """Return an instant of an open chain in any motion."""
    random, none = np.random.default_rng(0), np.zeros(0)
    z, velocities, momenta = (random.normal(size=len(system.coordinates)) for _ in range(3))
    given = starts(system.parameters)
    return SystemContext(z, velocities, np.zeros(len(z)), none, np.zeros(3), none, given, none, momenta, none)


def dca(system: MechanismSystem, instant: SystemContext) -> None:
    """Evaluate the rates with accelerations."""
    system.forward_dynamics(instant, LoopsInUse(()), 0.0)


def hdca(system: MechanismSystem, instant: SystemContext) -> None:
    """Evaluate the rates with momenta."""
    velocities, impulses = system.impulsive_velocities(instant, LoopsInUse(()), 0.0)
    system.momentum_rates(replace(instant, velocities=velocities), LoopsInUse((), multipliers=impulses))


RIGHT_HAND_SIDES: dict[str, Callable[[MechanismSystem, SystemContext], None]] = {"dca": dca, "hdca": hdca}


def timed(system: MechanismSystem, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the least times in s of whole right-hand sides, and of assembly with disassembly alone."""
    inside = 0.0

    def watched(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal inside
            begin = time.perf_counter()
            result = method(*arguments)
            inside += time.perf_counter() - begin
            return result

        return call

    instant = moving(system)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in RIGHT_HAND_SIDES}
    factorize = mock.patch.object(DivideAndConquer, "factorize", watched(DivideAndConquer.factorize))
    with factorize, mock.patch.object(LevelFactors, "solve", watched(LevelFactors.solve)):
        for _ in range(rounds):
            for name, evaluate in RIGHT_HAND_SIDES.items():
                inside, begin = 0.0, time.perf_counter()
                evaluate(system, replace(instant))
                found[name].append((time.perf_counter() - begin, inside))
    return {name: (min(a for a, _ in each), min(b for _, b in each)) for name, each in found.items()}


def exponent(seconds: list[float], first: int) -> float:
    """Return the exponent of a power of n that fits from a size on."""
    chosen = [index for index, size in enumerate(SIZES) if size >= first]
    return float(np.polyfit(np.log([SIZES[k] for k in chosen]), np.log([seconds[k] for k in chosen]), 1)[0])


def main() -> None:
    """Print one row for each size and the exponents; draw the times."""
    columns = "| bodies | joined levels | log2 n | model and plan [s] | DCA [ms] | its solve [ms]"
    print(f"{columns} | HDCA [ms] | its solve [ms] |\n|" + " --- |" * 8)
    times: dict[str, list[float]] = {}
    levels = []
    for size in SIZES:
        begin = time.perf_counter()
        system = MechanismSystem(pendulum(size).systems["mechanism"])
        tree = system.dynamics.articulation(LoopsInUse(())).tree
        made = time.perf_counter() - begin
        levels.append(tree.joined)
        found = timed(system, max(3, (32 if QUICK else 1024) // size))
        for name, (whole, solving) in found.items():
            times.setdefault(f"{name}, right-hand side", []).append(whole)
            times.setdefault(f"{name}, kinematics and forces", []).append(whole - solving)
            times.setdefault(f"{name}, assembly and disassembly", []).append(solving)
        row = " | ".join(f"{whole * 1e3:.1f} | {solving * 1e3:.1f}" for whole, solving in found.values())
        print(f"| {size} | {tree.joined} | {math.ceil(math.log2(size))} | {made:.2f} | {row} |", flush=True)
    for name, seconds in times.items():
        print(f"{name}: n^{exponent(seconds, 16):.2f} over all, n^{exponent(seconds, 256):.2f} from 256 on")
    draw(times, levels)


def draw(times: dict[str, list[float]], levels: list[int]) -> None:
    """Draw times and levels over the number of bodies."""
    figure, axes = new_figure(2, 6.0, (3, 2))
    for colour, what in zip(COLOURS, ("right-hand side", "assembly and disassembly"), strict=False):
        for name, style in STYLES.items():
            label = f"{name}, {what}"
            milliseconds = [each * 1e3 for each in times[label]]
            axes[0].loglog(SIZES, milliseconds, f"o{style}", color=colour, linewidth=1.4, markersize=4, label=label)
    axes[0].set_ylabel("time [ms]")
    axes[1].plot(SIZES, np.log2(SIZES), color=REFERENCE, linewidth=4.0, alpha=0.5)
    axes[1].plot(SIZES, levels, "o", color=COLOURS[0], markersize=5)
    axes[1].set_ylabel("joined levels; line: log2 n")
    axes[1].set_xlabel("bodies")
    (DOCS / "dca-scaling.svg").write_text(svg(figure, axes), encoding="utf-8")


if __name__ == "__main__":
    main()
