"""Random machines with one and two closed loops, all formulations beside `double-step`: positions and reactions.

Run: MBSFMU_COMPILED=0 python benchmarks/random_loops.py [FIRST] [COUNT] [--append FILE] | --quick | --table FILE ...

A row of FILE is a machine; chunks of seeds can run beside each other, and `--table` sums up what is in their files.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from random_machines import FORMULATIONS, Disagreement, disagreements, random_machine

from mbsfmu import InputError, SimulationError

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
LONGEST = 6.0
"""Processor time in s after which a run is ended; most take less than one."""
TOO_LONG = f"not done after {LONGEST:g} s of processor time"
Row = dict[str, Any]
"""Of a machine: its seed and joints, and by formulation positions and reactions, or a sentence."""


def main() -> None:
    """Run machines, or print the table of those that have been run."""
    if "--table" in sys.argv:
        files = [Path(each) for each in sys.argv[sys.argv.index("--table") + 1 :]]
        show([json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()])
        return
    logging.disable(logging.WARNING)  # what is said of the start is no refusal
    file = sys.argv[sys.argv.index("--append") + 1] if "--append" in sys.argv else None
    numbers = [int(each) for each in sys.argv[1:3] if each.isdigit()]
    first, count = (0, 1) if QUICK else (*numbers, 0, 1000)[:2] if len(numbers) == 2 else (0, 1000)
    rows = []
    for seed in range(first, first + count):
        rows.append(row_of(seed))
        if file:
            with Path(file).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(rows[-1]) + "\n")
    show(rows)


@contextmanager
def limited() -> Iterator[None]:
    """End a run that takes too long, wherever it is."""

    def end(*_: object) -> None:
        raise SimulationError(TOO_LONG)

    signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST, 1.0)  # again where a solver takes it for a step that fails
    try:
        yield
    except SystemError as error:  # what libraries make of it
        raise SimulationError(TOO_LONG) from error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def row_of(seed: int) -> Row:
    """Compare the formulations for the machine of a seed."""
    model, begin = random_machine(seed), time.perf_counter()
    joints = [f"{joint.type}{'*' if joint.cut else ''}" for joint in model.systems["mechanism"].joints]
    row: Row = {"seed": seed, "joints": joints}
    try:
        found = disagreements(model, limited)
    except (InputError, SimulationError) as error:
        return row | {"double-step": str(error)}
    for name, each in found.items():
        row[name] = [each.positions, each.reactions] if isinstance(each, Disagreement) else each
    return row | {"seconds": time.perf_counter() - begin}


def show(rows: Iterable[Row]) -> None:
    """Print quantiles and the largest disagreements, and every sentence."""
    rows = list(rows)
    print(f"{len(rows)} machines\n")
    spread = "median, 99 %, largest (seed)"
    print(f"| formulation | compared | positions: {spread} | reactions: {spread} | ends |")
    print("|" + " --- |" * 5)
    for name in FORMULATIONS:
        compared = [row for row in rows if isinstance(row.get(name), list)]
        cells = [_spread([(row[name][kind], row["seed"]) for row in compared]) for kind in range(2)]
        ends = sum(isinstance(row.get(name), str) for row in rows)
        print(f"| `{name}` | {len(compared)} | {' | '.join(cells)} | {ends} |")
    print()
    for row in rows:
        for name in ("double-step", *FORMULATIONS):
            if isinstance(row.get(name), str):
                print(f"- seed {row['seed']} ({', '.join(row['joints'])}), `{name}`: {row[name]}")


def _spread(values: list[tuple[float, int]]) -> str:
    """Return median, 99th percentile, and the largest value with its seed."""
    if not values:
        return "none"
    sizes = [value for value, _ in values]
    largest, seed = max(values)
    return f"{np.median(sizes):.1e}, {np.quantile(sizes, 0.99):.1e}, {largest:.1e} ({seed})"


if __name__ == "__main__":
    main()
