"""How well `fit` finds the characteristic curve of a valve: the four-bar from noisy pressures and its angle, by seeds.

The valve opens by a table of its command, of which all outputs but the one at zero are free. What is fitted starts from
a straight line. The error is the root mean square of the difference of both curves over the whole travel, in percent of
the largest opening.

Run as `python benchmarks/valve_curve.py [SEEDS] [--quick]`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import mbsfmu
from mbsfmu.parts.blocks import Table

NOISE = {"mechanism.boom.angle": 1e-4, "circuit.cylinder.pressure_piston": 2e4, "circuit.cylinder.pressure_rod": 2e4}
"""Standard deviations in rad and Pa: of an encoder, and of sensors of 0.1 % of 200 bar."""
PLACES = np.linspace(-10.0, 10.0, 9)
"""Commands of the table in V."""
STOP, SAMPLE = 10.0, 0.01


def curve(command: np.ndarray) -> np.ndarray:
    """Return the true opening in V: little near the centre, less than linear at the ends."""
    share = command / 10.0
    return 10.0 * np.sign(share) * np.abs(share) ** 1.5 * (1.15 - 0.25 * np.abs(share))


def machine(openings: np.ndarray) -> mbsfmu.CoupledModel:
    """Return the four-bar with a table before its valve, driven over the whole travel both ways."""
    model = mbsfmu.models.four_bar()
    points = tuple(zip(PLACES.tolist(), openings.tolist(), strict=True))
    signal = mbsfmu.SineSignal(amplitude=10.0, frequency=0.5)
    return model.model_copy(
        update={
            "systems": {**model.systems, "curve": Table(points=points, input_unit="V", output_unit="V")},
            "signals": {"curve.input": signal},
            "connections": (*model.connections, ("curve.output", "circuit.valve.command")),
        }
    )


def main(seeds: int, stop: float) -> None:
    """Print the errors of the curves found."""
    truth, line = curve(PLACES), PLACES.copy()
    run = (
        machine(truth)
        .simulation(solver="rodas5p", relative_tolerance=1e-9, absolute_tolerance=1e-9)
        .run(stop, output_step=SAMPLE)
    )
    free = {
        f"curve.points_{number}": (min(0.0, 1.5 * place), max(0.0, 1.5 * place))
        for number, place in enumerate(PLACES, start=1)
        if place
    }
    where, errors, begin = np.linspace(-10.0, 10.0, 401), [], time.process_time()
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        log = {"time": run.time}
        log |= {name: run[name] + size * random.standard_normal(len(run.time)) for name, size in NOISE.items()}
        found = machine(line).fit(log, free)
        openings = truth.copy()
        for name, value in zip(found.names, found.values, strict=True):
            openings[int(name.rpartition("_")[2]) - 1] = value
        off = np.interp(where, PLACES, openings) - np.interp(where, PLACES, truth)
        errors.append(100.0 * float(np.sqrt(np.mean(off**2))) / np.max(np.abs(truth)))
    print(f"{len(free)} outputs of the table, {len(run.time)} samples of {stop:g} s, {seeds} seeds")
    print(f"error of the curve: {np.median(errors):.3g} % in the median, at most {max(errors):.3g} %")
    print(f"{(time.process_time() - begin) / seeds:.2f} s of processor time per fit")


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    given = [each for each in sys.argv[1:] if each != "--quick"]
    main(1 if quick else int(given[0]) if given else 20, 2.0 if quick else STOP)
