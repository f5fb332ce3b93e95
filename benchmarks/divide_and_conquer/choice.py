"""unrolled code against kernel loops, round by round in turn: where loops are the faster ones, and what is chosen.

Run: python benchmarks/divide_and_conquer/choice.py [--quick] [--write] [planar] [spatial] [spherical] [tree] [ladders]

One right-hand side of `dca`. Rounds go through all machines in turn, and through both forms of each, so that what else
runs for some seconds disturbs few rounds of each; ratios are taken within a round. Prints the table of
docs/studies/large-mechanisms.md; `--write` puts it there.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Self

from figures import put_table
from flow import Flow
from large import PAGE
from machines import TREES
from measured import taken
from rates import QUICK, Timed, repeated

from mbsfmu.models import ladder
from mbsfmu.systems.system import Code

SIZES: dict[str, tuple[int, ...]] = {
    "planar": (16, 32, 64, 80),
    **dict.fromkeys(("spatial", "spherical", "tree"), (4, 6, 8, 12, 16)),
    "ladders": (4, 8, 12, 16, 20),
}
QUICK_SIZES = {"planar": (2,)}
"""Sizes to be measured, by kind."""
HEAD = (
    "machine | coordinates | operations, straight | in loops | straight [µs] | loops [µs] | straight/loops "
    "| its quartiles | chosen"
)
ROUNDS, ROUND = (3, 1e-4) if QUICK else (400, 2e-3)
"""How many rounds there are, and how long each goes on with one function in s."""
GUESSED = 20
"""Calls from which the number of those in a round follows."""


@dataclass
class Measured:
    """A machine in both forms, and what was measured of it.

    Attributes
    ----------
    name
        Its kind and size.
    coordinates
        How many joint coordinates it has.
    operations
        Of its right-hand side, straight and in loops.
    chosen
        The form of its code where nothing is said.
    functions
        The right-hand side in either form, with how often it is called in a round.
    rounds
        Times of one evaluation in s in either form, by round.
    """

    name: str
    coordinates: int
    operations: tuple[int, ...]
    chosen: Code
    functions: tuple[tuple[Timed, int], ...]
    rounds: list[tuple[float, ...]] = field(default_factory=list)

    @classmethod
    def of(cls, kind: str, size: int) -> Self:
        """Make a machine of a size."""
        model = ladder(size) if kind == "ladders" else TREES[kind](size).model()
        flows = [Flow(model, "dca", code=code, compiled=False) for code in Code]
        functions = [repeated(flow) for flow in flows]
        chosen = model.simulation(formulation="dca", solver="rk45").functions
        return cls(
            f"{kind}, {size}",
            len(chosen.coordinates),
            tuple(flow.formulation.explicit.operations for flow in flows),
            Code.LOOPS if chosen.in_loops else Code.STRAIGHT,
            tuple((each, max(1, round(ROUND / taken(each, GUESSED)))) for each in functions),
        )

    def measure(self) -> None:
        """Add a round."""
        self.rounds.append(tuple(taken(function, count) for function, count in self.functions))

    @property
    def line(self) -> str:
        """Its line of the table."""
        times = [f"{1e6 * median(each):.2f}" for each in zip(*self.rounds, strict=True)]
        low, middle, high = quantiles((straight / loops for straight, loops in self.rounds), n=4)
        numbers = self.coordinates, *self.operations, *times, f"{middle:.2f}", f"{low:.2f} to {high:.2f}", self.chosen
        return f"| {self.name} | {' | '.join(map(str, numbers))} |"


def main() -> None:
    """Measure the kinds that are named, all by default."""
    sizes = QUICK_SIZES if QUICK else SIZES
    named = [each for each in sys.argv[1:] if not each.startswith("--")] or list(sizes)
    machines = [Measured.of(kind, size) for kind in named for size in sizes[kind]]
    for _ in range(ROUNDS):
        for machine in machines:
            machine.measure()
    table = "\n".join([f"| {HEAD} |", "|" + " --- |" * (HEAD.count("|") + 1), *(each.line for each in machines)])
    print(table)
    if "--write" in sys.argv:
        put_table(PAGE, "choice", table)


if __name__ == "__main__":
    main()
