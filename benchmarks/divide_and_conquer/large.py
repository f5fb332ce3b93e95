"""Right-hand sides of `dca` in loops over the size, beside unrolled code, Pinocchio, MuJoCo and Exudyn.

Run: python benchmarks/divide_and_conquer/large.py [--quick] [--write] [KIND …]

Kinds are planar, spatial, spherical, tree, floating and ladders; all where none is named. Prints the tables of
docs/studies/large-mechanisms.md; `--write` puts them there, and draws docs/studies/large-mechanisms.svg where all kinds
have been measured. Needs g++ and the packages `pin`, `mujoco` and `exudyn`; what is not installed is left out. With
`--quick` there are small machines only, without Pinocchio in C++, which takes long to compile.

Times are least ones of rounds that go through all that is quick in turn; what takes long has rounds of its own.
Engines are held against ours: where accelerations differ by more than round-off explains, tables say by how much.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from figures import DOCS, put_table
from measured import EXUDYN, LOOPS, MEASURES, MUJOCO, PINOCCHIO, STRAIGHT, Libraries, Row
from rates import QUICK

sys.path.insert(0, str(Path(__file__).parents[1]))

from drawing import COLOURS, new_figure, svg

SIZES = (4,) if QUICK else (4, 16, 64, 256, 512, 1024, 4096)
FLOATING = (4,) if QUICK else (4, 13, 25, 49)
"""Bodies of floating bases, with 1, 4 (a quadruped), 8 and 16 legs."""
LADDERS = (2,) if QUICK else (4, 8, 16, 32, 64, 128, 256, 512)
OWN_SIZES = {"floating": FLOATING, "ladders": LADDERS}
PAGE, FIGURE = "large-mechanisms.md", "large-mechanisms.svg"
FIRST = 256
"""Bodies from which exponents are found; a loop of a ladder has three."""
AGREEMENT, GROWN = 1e-8, 64
"""Share of the largest acceleration by which an engine may differ without a word, up to so many bodies; beyond as the
square of bodies, as chains lose digits."""
DIFFERENT = 1e-6
"""The same of Exudyn's implicit steps, whose accelerations are found from two steps."""


def cell(row: Row, name: str, digits: int = 2) -> str:
    """Return a time in µs for a table, with the deviation where it is not that of round-off."""
    if name not in row.times:
        return "–"
    share = row.deviations.get(name, 0.0)
    allowed = max(AGREEMENT * max(1.0, row.size / GROWN) ** 2, DIFFERENT if name == EXUDYN else 0.0)
    off = f" (off by {share:.0e})" if share > allowed else ""
    return f"{row.times[name]:.{digits}f}{off}"


def cells(kind: str, row: Row) -> list[str]:
    """Return what a table has of a machine."""
    memory = [f"{row.memory[name]:.0f}" if name in row.memory else "–" for name in (LOOPS, PINOCCHIO, MUJOCO)]
    own = f"{row.times[LOOPS] / row.size * 1e3:.0f}"
    times = [cell(row, name) for name in (STRAIGHT, LOOPS, PINOCCHIO, MUJOCO, EXUDYN)]
    if kind == "ladders":
        size = [str(row.size), str(row.kernels), str(row.code), memory[0], f"{row.made:.1f}"]
        return [*size, *times[:2], own, times[2], times[4]]
    ratio = f"{row.times[LOOPS] / row.times[PINOCCHIO]:.2f}" if PINOCCHIO in row.times else "–"
    return [str(row.size), str(row.operations), f"{row.made:.1f}", *memory, *times[:2], own, *times[2:], ratio]


HEADS = {
    "ladders": "loops | kernels | code [kB] | memory [kB] | made [s] | straight [µs] | loops [µs] | of a loop [ns] "
    "| Pinocchio [µs] | Exudyn's step [µs]"
}
OF_TREES = (
    "bodies | operations | made [s] | memory [kB] | Pinocchio's | MuJoCo's | straight [µs] | loops [µs] "
    "| of a body [ns] | aba [µs] | MuJoCo [µs] | Exudyn's step [µs] | loops/aba"
)


def table(kind: str, rows: Sequence[Row]) -> str:
    """Return the table of a kind, with the exponents under it."""
    head = HEADS.get(kind, OF_TREES)
    lines = [
        f"| {head} |",
        "|" + " --- |" * (head.count("|") + 1),
        *(f"| {' | '.join(cells(kind, row))} |" for row in rows),
    ]
    least = FIRST // 3 if kind == "ladders" else FIRST
    large = [row for row in rows if row.size >= least]
    if len(large) > 1:
        sizes = np.log([row.size for row in large])
        time, memory = (
            np.polyfit(sizes, np.log(values), 1)[0]
            for values in ([row.times[LOOPS] for row in large], [row.memory[LOOPS] for row in large])
        )
        lines += ["", f"From {large[0].size} on *loops* grow as n^{time:.2f}, their memory as n^{memory:.2f}."]
    return "\n".join(lines)


def load() -> str:
    """Return how busy the machine is."""
    return f"{os.getloadavg()[0]:.1f}"


def measure(kinds: Sequence[str]) -> dict[str, list[Row]]:
    """Measure machines of these kinds, and print their tables."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        libraries = Libraries(Path(folder))
        for kind in kinds:
            loads = [load()]
            found[kind] = [MEASURES[kind](size, libraries) for size in OWN_SIZES.get(kind, SIZES)]
            loads.append(load())
            print(f"\n{kind}, with {' to '.join(loads)} processes at work on {os.cpu_count()} processors\n")
            print(table(kind, found[kind]), flush=True)
    return found


def put(found: Mapping[str, Sequence[Row]]) -> None:
    """Put the tables into the page, each between the marks of its kind, and draw the figure."""
    for kind, rows in found.items():
        put_table(PAGE, kind, table(kind, rows))
    if len(found) == len(MEASURES):
        (DOCS / FIGURE).write_text(drawn(found), encoding="utf-8")


def drawn(found: Mapping[str, Sequence[Row]]) -> str:
    """Draw times of a body, and memory, over the number of bodies."""
    figure, axes = new_figure(2, 7.5)
    for colour, (kind, rows) in zip(COLOURS, found.items(), strict=False):
        links = 3 if kind == "ladders" else 1
        for name, style in ((LOOPS, "o-"), (STRAIGHT, "s:"), (PINOCCHIO, "--"), (MUJOCO, "-."), (EXUDYN, ":")):
            own = [row for row in rows if name in row.times]
            bodies = [links * row.size for row in own]
            exposed = {"color": colour, "linewidth": 1.2, "markersize": 3}
            label = f"{kind}, {name}" if name == LOOPS or kind == "spatial" else None
            axes[0].loglog(
                bodies, [1e3 * row.times[name] / links / row.size for row in own], style, label=label, **exposed
            )
            kept = [row for row in own if name in row.memory]
            axes[1].loglog([links * row.size for row in kept], [row.memory[name] for row in kept], style, **exposed)
    axes[0].set_ylabel("time of a body [ns]")
    axes[1].set_ylabel("memory [kB]")
    axes[1].set_xlabel("bodies")
    return svg(figure, axes)


def main() -> None:
    """Measure what is named."""
    named = [each for each in sys.argv[1:] if not each.startswith("--")]
    if unknown := set(named) - MEASURES.keys():
        sys.exit(f"{', '.join(sorted(unknown))}: no kind of machine; there are {', '.join(MEASURES)}")
    found = measure(named or list(MEASURES))
    if "--write" in sys.argv:
        put(found)
    elif QUICK:
        drawn(found)


if __name__ == "__main__":
    main()
