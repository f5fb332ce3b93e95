"""Exactness of gradients: against differences of fourth order of the same runs, with tight tolerances.

Run as `python benchmarks/gradient_accuracy.py [--quick]`; what comes of it is in `docs/guides/sensitivities.md`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import mbsfmu

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

TIGHT, STEP = 1e-13, 1e-3
FAR, NEAR, NEXT = 2e-3, 3e-5, 3e-6
"""Relative distances of a parameter to either side. Differences are off by its fourth power, and by round-off over it;
with a valve that opens only a near one sees the slope.
"""


def compare(model: mbsfmu.CoupledModel, output: str, distances: dict[str, float], stop: float) -> None:
    """Print the derivatives of an output's end value by parameters with their distances, and differences."""
    options = {"step": STEP, "newton_tolerance": TIGHT}
    found = model.gradient(f"end({output})", list(distances), stop=stop, **options)
    simulation = model.simulation(formulation="double-step", solver="trapezoidal", **options)
    for (name, exact), distance in zip(found.parameters.items(), distances.values(), strict=True):
        simulation.reset()
        value = simulation.get(name)
        ends = []
        for moved in (-2, -1, 1, 2):
            simulation.reset()
            simulation.set(name, value * (1.0 + moved * distance))
            ends.append(float(simulation.run(stop, output_step=0.02)[output][-1]))
        difference = float(np.dot([1.0, -8.0, 8.0, -1.0], ends)) / (12.0 * distance * value)
        cells = (f"`{model.name}`", f"`{output}`", f"{stop:g}", f"`{name}`", f"{exact:.9g}", f"{difference:.9g}")
        print(f"| {' | '.join(cells)} | {abs(exact / difference - 1.0):.1e} |", flush=True)


def main(*, quick: bool) -> None:
    """Print a table for machines with loops and with valves."""
    from excavator import excavator  # noqa: PLC0415 - an example

    built_in = mbsfmu.models.built_in
    print("| machine | end of | after s | by | gradient | differences | deviation |\n|---|---|---|---|---|---|---|")
    compare(built_in("loop-8"), "link_1.angle", dict.fromkeys(("link_2.mass", "link_3.inertia_zz"), FAR), 0.2)
    if quick:
        return
    hydraulic = ("boom.mass", "valve.flow_coefficient", "throttle.orifice_diameter")
    compare(built_in("four-bar"), "boom.angle", dict.fromkeys(hydraulic, FAR), 2.6)
    compare(built_in("ladder-16"), "left_1.angle", dict.fromkeys(("rung_1.mass", "right_2.inertia_zz"), FAR), 0.1)
    compare(excavator(), "boom.angle", {"boom.mass": NEAR, "boom_cylinder.piston_diameter": NEXT}, 2.0)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
