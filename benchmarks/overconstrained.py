"""Loops whose independent equations change on the way, with all formulations: errors, orders, openings, reactions.

Run: python benchmarks/overconstrained.py [--quick]

The reference is double-step with DOP853 at 1e-12; the tests hold the same motions against closed forms.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from mbsfmu import CoupledModel, SimulationError
from mbsfmu.models import bennett, slewing_four_bar
from mbsfmu.stepping.iteration import NewtonTolerances

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")[:: 2 if QUICK else 1]
SLEWS = (45,) if QUICK else (0, 45, 60, 90)
"""In degrees."""
STEPS = (5e-3, 2.5e-3) if QUICK else (2.5e-3, 1.25e-3, 6.25e-4)
MODELS: dict[str, tuple[Callable[[], CoupledModel], str, float]] = {
    "bennett": (bennett, "link_1.angle", 0.02 if QUICK else 1.25),
    "slewing-four-bar at 4 rad/s": (lambda: slewing_four_bar(speed=4.0), "crank.angle", 0.02 if QUICK else 0.5),
}
"""With a variable to compare, and the end in s: behind where other equations count."""


def main() -> None:
    """Print a table for the motions, one for the closing force at rest, and one for three turns of the house."""
    print("Trapezoidal rule, largest errors of an angle in rad at steps of", *STEPS, "s\n")
    print("| case | formulation | errors [rad] | order | largest opening [m, rad] |")
    print("|" + " --- |" * 5)
    for name, (model, variable, stop) in list(MODELS.items())[: 1 if QUICK else None]:
        tight = {"solver": "dop853", "relative_tolerance": 1e-12, "absolute_tolerance": 1e-12}
        reference = model().simulation(compiled=False, step=STEPS[0], **tight).run(stop)
        for formulation in FORMULATIONS:
            errors, opening = [], 0.0
            for step in STEPS:
                options = {"formulation": formulation, "step": step, "tolerances": NewtonTolerances(coordinates=1e-9)}
                result = model().simulation(compiled=not QUICK, **options).run(stop, output_step=STEPS[0])
                errors.append(float(np.max(np.abs(result[variable] - reference[variable]))))
                opening = result.largest("constraint.position")
            order = np.log2(errors[-2] / errors[-1])
            print(f"| {name} | {formulation} | {_numbers(errors)} | {order:.2f} | {opening:.1e} |", flush=True)
    print(f"\nClosing force [N] and moment [N m] at rest at slews of {', '.join(map(str, SLEWS))} degrees\n")
    print("| formulation | force | largest moment |\n| --- | --- | --- |")
    for formulation in FORMULATIONS:
        found = [_closing(formulation, np.radians(slew)) for slew in SLEWS]
        forces = ", ".join(f"{force:.5f}" for force, _ in found)
        print(f"| {formulation} | {forces} | {max(moment for _, moment in found):.1e} |", flush=True)
    turns = 0.02 if QUICK else 12.0
    print(f"\nSlewing four-bar until {turns} s at 1 ms\n")
    print("| formulation | house [turns] | largest opening [m, rad] | energy drift [J] | changes of description |")
    print("|" + " --- |" * 5)
    for formulation in FORMULATIONS:
        simulation = slewing_four_bar().simulation(formulation=formulation, step=1e-3, compiled=not QUICK)
        try:
            result = simulation.run(turns)
        except SimulationError as error:
            print(f"| {formulation} | ends: {error} | | | |", flush=True)
            continue
        turned = result["house.angle"][-1] / (2.0 * np.pi)
        opening, drift = (result.largest(each) for each in ("constraint.position", "energy.drift"))
        changes = simulation.statistics.repartitions
        print(f"| {formulation} | {turned:.6f} | {opening:.1e} | {drift:.3f} | {changes} |", flush=True)


def _closing(formulation: str, slew: float) -> tuple[float, float]:
    """Return the magnitudes of force and moment in the closing joint at rest."""
    simulation = slewing_four_bar(slew, 0.0).simulation(formulation=formulation, compiled=False)
    simulation.initialize()
    force, moment = (
        float(np.linalg.norm([simulation.get(f"C.{kind}.{axis}") for axis in "xyz"])) for kind in ("force", "moment")
    )
    return force, moment


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:.2e}" for value in values)


if __name__ == "__main__":
    main()
