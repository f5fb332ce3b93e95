"""Share of its tolerance that error control uses, for what is hard to control; against closed forms.

Pairs of linear units, whose coupled motion is known by the modes of the whole: units that give their position only,
that hide their states or name them, or cannot save them; a force and a velocity; a force that depends directly on the
velocity; small amplitudes; motions that grow, and errors that grow where the motion does not. Each entry is the largest
error of any output over time as a share of the tolerance, `!` behind it where a sentence of the run says that the
error is beyond the tolerance, or what estimates lack.

    python benchmarks/coupling/error_shares.py [--quick]
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from cosim.coupled_pairs import Pair, force_and_velocity, masses, pendulum

from mbsfmu import cosimulate

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
TOLERANCES = (1e-2,) if QUICK else (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
ALGORITHMS = ("jacobi", "gauss-seidel", "newton")


def cases() -> Iterator[tuple[str, Pair, int, dict[str, bool]]]:
    """Yield what is run: name, units, growing modes that they start without, and how they are written."""
    yield "position only, states hidden", masses(), 0, {}
    yield "position only, states named", masses(), 0, {"named": True}
    yield "position only, states not saved", masses(), 0, {"saves": False}
    yield "position and velocity", masses(velocities=True), 0, {}
    yield "force and velocity", force_and_velocity(), 0, {}
    yield "force and velocity, not saved", force_and_velocity(), 0, {"saves": False}
    yield "force with feed-through", force_and_velocity(damping=4.0), 0, {}
    for amplitude in (1e-2, 1e-4, 1e-6):
        yield f"force and velocity, {amplitude:g} times", force_and_velocity(amplitude), 0, {}
    yield "the same, nominal value 1 declared", force_and_velocity(1e-4), 0, {"declared": True}
    yield "growing motion", pendulum(), 0, {}
    yield "growing errors alone", pendulum().without_growth(), 1, {}


def share(pair: Pair, units: list[Path], dropped: int, algorithm: str, tolerance: float) -> str:
    """Return an entry of the table."""
    result = cosimulate(
        units,
        connections=pair.connections,
        algorithm=algorithm,
        extrapolation="linear",
        step=0.01,
        stop=0.2 if QUICK else 2.0,
        control="error",
        tolerance=tolerance,
        smallest_step=1e-7,
    )
    told = any(
        part in note for note in result.notes for part in ("estimated at", "cannot save", "absolute tolerance decided")
    )
    return f"{pair.error(result, dropped) / tolerance:.2g}{'!' if told else ''}"


def main() -> None:
    """Print the table."""
    logging.disable(logging.WARNING)
    print(f"| | | {' | '.join(f'{each:g}' for each in TOLERANCES)} |")
    print(f"| --- | --- |{' --- |' * len(TOLERANCES)}")
    for name, pair, dropped, how in islice(cases(), 2 if QUICK else None):
        units = pair.export(Path(tempfile.mkdtemp()), **how)
        possible = ALGORITHMS if how.get("saves", True) else ALGORITHMS[:2]  # newton has to repeat steps
        for algorithm in possible[:1] if QUICK else possible:
            entries = [share(pair, units, dropped, algorithm, each) for each in TOLERANCES]
            called = name if algorithm == ALGORITHMS[0] else ""
            print(f"| {called} | {algorithm} | {' | '.join(entries)} |", flush=True)


if __name__ == "__main__":
    main()
