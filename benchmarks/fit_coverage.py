"""How often 95 % intervals of a fit cover the truth: the four-bar from noisy pressures and its angle, by seeds.

Run as `python benchmarks/fit_coverage.py [SEEDS]`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import mbsfmu

TRUTH = {"valve.flow_coefficient": 2.1380899352993952e-08, "boom.mass": 225.0, "cylinder.viscous_friction": 196000.0}
FREE = {"valve.flow_coefficient": (1e-8, 6e-8), "boom.mass": (100.0, 400.0), "cylinder.viscous_friction": (5e4, 4e5)}
NOISE = {"boom.angle": 1e-4, "cylinder.pressure_piston": 2e4, "cylinder.pressure_rod": 2e4}
"""Standard deviations in rad and Pa: of an encoder, and of sensors of 0.1 % of 200 bar."""


def main(seeds: int) -> None:
    """Print the share of seeds in which each interval covers the truth, and the root mean square error of angle."""
    model = mbsfmu.models.built_in("four-bar")
    run = model.simulation(formulation="double-step", solver="trapezoidal").run(2.0, output_step=0.02)
    begin, covered = time.perf_counter(), []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        log = {"time": run.time}
        log |= {name: run[name] + size * random.standard_normal(len(run.time)) for name, size in NOISE.items()}
        found = model.fit(log, FREE)
        truth = np.array([TRUTH[name] for name in found.names])
        covered.append((found.lower < truth) & (truth < found.upper))
    for name, share in zip(FREE, np.mean(covered, axis=0), strict=True):
        print(f"{name}: {share:.1%} of {seeds} intervals cover the truth")
    print(f"{(time.perf_counter() - begin) / seeds:.2f} s per fit")


if __name__ == "__main__":
    main(3 if "--quick" in sys.argv else int(sys.argv[1]) if len(sys.argv) > 1 else 200)
