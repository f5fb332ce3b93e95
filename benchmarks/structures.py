"""Structures without freedom that are near to moving, by statics: all formulations with all solvers.

Run: python benchmarks/structures.py [--quick]

`tests/rigid_structures.py` has the structures, and the reactions by hand.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from mbsfmu import InputError, SimulationError

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from rigid_structures import STRUCTURES, Structure

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
FORMULATIONS = ("double-step", "dca", "hdca", "dca-alm", "penalty")
RULES = ("trapezoidal", "bdf2", "generalized-alpha")
OTHERS = ("rk4", "rk23", "rk45", "dop853", "radau", "adams", "rodas4", "rodas5p")
SOLVERS = RULES[:1] if QUICK else (*RULES, *OTHERS)
NEAR = (1e-4,) if QUICK else (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
STOP = 0.02
"""In s, twenty steps of implicit solvers."""


def main() -> None:
    """Print the largest error of a reaction by structure, ε and formulation, and what was refused."""
    logging.disable(logging.WARNING)
    print(f"Largest error of a reaction over {len(SOLVERS)} solvers and {STOP} s, as a share of it; largest motion\n")
    print(f"| structure | ε | {' | '.join(FORMULATIONS)} | motion [rad] |\n|{' --- |' * (3 + len(FORMULATIONS))}")
    refused: Counter[str] = Counter()
    runs = 0
    for name, structure in list(STRUCTURES.items())[: 1 if QUICK else None]:
        for epsilon in NEAR:
            errors, motion = [], 0.0
            for formulation in FORMULATIONS:
                found = [_held(structure(epsilon), formulation, solver, refused) for solver in SOLVERS]
                made = [each for each in found if each is not None]
                runs += len(made)
                errors.append(max(error for error, _ in made))
                motion = max(motion, *(moved for _, moved in made))
            told = " | ".join(f"{error:.0e}" for error in errors)
            print(f"| {name} | {epsilon:.0e} | {told} | {motion:.0e} |", flush=True)
    print(f"\n{runs} runs; refused before the first step:\n")
    for sentence, count in refused.most_common():
        print(f"- {count} times: {sentence}")


def _held(structure: Structure, formulation: str, solver: str, refused: Counter[str]) -> tuple[float, float] | None:
    """Return the largest error of a reaction as a share of it, and the motion in rad; None of what is refused."""
    try:
        simulation = structure.model.simulation(formulation=formulation, solver=solver, compiled=False)
        result = simulation.run(STOP)
    except (InputError, SimulationError) as error:
        refused[f"`{formulation}`: {str(error).replace(repr(solver), '…')}"] += 1
        return None
    errors = [np.abs(result[name] / expected - 1.0).max() for name, expected in structure.reactions.items()]
    return float(max(errors)), float(np.ptp(result[structure.angle]))


if __name__ == "__main__":
    main()
