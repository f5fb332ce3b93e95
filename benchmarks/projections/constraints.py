"""The paper's two mechanisms with `dca-alm`: motion, constraint errors and energy, with and without projections.

Run: python benchmarks/projections/constraints.py [--quick]

10 s, rk45 with both tolerances 1e-6, penalty factor 1e6; without projections, Ω = μ = 1. Errors are taken where the
solver's steps end, as these are what is projected.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.integrate import RK45

import mbsfmu
from mbsfmu.formulations.dca_alm import DcaAlm, ProjectedForm
from mbsfmu.stepping.iteration import IterationCount
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import TracedFunction

sys.path.insert(0, str(Path(__file__).parents[1]))

from drawing import COLOURS, INK, REFERENCE, new_figure, series_colour, svg

Floats = NDArray[np.float64]

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
DOCS = Path(tempfile.mkdtemp()) if QUICK else Path(__file__).parents[2] / "docs" / "studies"
CASES = ("five-bar",) if QUICK else ("five-bar", "double-pentagon")
LEVELS = ("positions [m, rad]", "velocities [m/s, rad/s]", "accelerations [m/s², rad/s²]")
STOP = 0.05 if QUICK else 10.0
TOLERANCE = 1e-6
PENALTIES = (1e5,) if QUICK else (1e5, 1e6, 1e7)


@dataclass
class Run:
    """What a run gave at the ends of its steps.

    Attributes
    ----------
    time, errors, energies, angles
        Shapes (k,), (k, 3), (k, 2) and (k, number of links); energies are kinetic and potential ones.
    evaluations
        Right-hand sides.
    iterations
        Counts by level.
    """

    time: Floats
    errors: Floats
    energies: Floats
    angles: Floats
    evaluations: int
    iterations: dict[str, IterationCount]

    @property
    def drift(self) -> Floats:
        """Change of the total energy in J."""
        total = self.energies.sum(axis=1)
        return np.abs(total - total[0])


def run(case: str, *, projections: bool, penalty: float = 1e6) -> Run:
    """Run a mechanism with SciPy's Dormand-Prince and look at every end of a step."""
    options = {"solver": "rk45", "projections": projections, "penalty": penalty, "compiled": False}
    simulation = mbsfmu.models.built_in(case).simulation(formulation="dca-alm", **options)
    formulation = simulation.formulation
    assert isinstance(formulation, DcaAlm)
    violations = _violations(formulation.functions)
    outputs = [variable.name for variable in formulation.functions.system.outputs]
    links = [index for index, name in enumerate(outputs) if name.startswith("link_") and name.endswith(".angle")]
    energies = [outputs.index(f"energy.{kind}") for kind in ("kinetic", "potential")]
    simulation.initialize()
    state, no_inputs = simulation._started(), np.zeros(0)
    rows: list[tuple[float, list[float], Floats, Floats]] = []
    evaluations = 0

    def look(time: float) -> None:
        formulation.load(state)
        values = formulation.functions.outputs()[0]
        errors = [float(np.linalg.norm(each()[0])) for each in violations]
        rows.append((time, errors, values[energies].copy(), values[links].copy()))

    look(0.0)
    time = 0.0
    while time < STOP:
        form = formulation.explicit_form(state)

        def flow(_: float, values: Floats, form: ProjectedForm = form) -> Floats:
            nonlocal evaluations
            evaluations += 1
            return form.rates(values, no_inputs)

        solver: Any = RK45(flow, time, form.start, STOP, rtol=TOLERANCE, atol=TOLERANCE)
        lasts = True
        while lasts and solver.status == "running":
            solver.step()
            time, state = solver.t, form.accept(form.state_at(solver.y, no_inputs))
            look(time)
            lasts = form.lasts(state)
            if lasts and form.corrects:
                solver.y = form.start
                solver.f = flow(time, solver.y)
    columns = (np.array(column) for column in zip(*rows, strict=True))
    return Run(*columns, evaluations, formulation.iterations)


def _violations(functions: SystemFunctions) -> list[TracedFunction]:
    given = functions.expressions
    values = (given.closure, given.closure_rate, given.closure_acceleration)
    return [functions.traced(f"looked_at_{level}", [value]) for level, value in enumerate(values)]


def told(counts: dict[str, IterationCount]) -> str:
    """Write mean and largest number of iterations of the levels."""
    return " | ".join(f"{c.total / c.solutions:.2f}, {c.most}" if c.solutions else "–" for c in counts.values())


def main() -> None:
    """Print largest errors and iterations; draw motion, errors and energy."""
    print("| case | projections | steps | right-hand sides | positions | velocities | accelerations | energy [J]")
    print("| position | velocity | acceleration |\n|" + " --- |" * 11)
    runs: dict[str, dict[bool, Run]] = {}
    for case in CASES:
        runs[case] = {}
        for projections in (True, False):
            found = runs[case][projections] = run(case, projections=projections)
            worst = " | ".join(f"{each:.1e}" for each in found.errors.max(axis=0))
            print(
                f"| {case} | {'with' if projections else 'without'} | {len(found.time) - 1} | {found.evaluations}"
                f" | {worst} | {found.drift.max():.1e} | {told(found.iterations)} |",
                flush=True,
            )
        for penalty in PENALTIES:
            found = run(case, projections=True, penalty=penalty)
            print(f"{case}, penalty {penalty:.0e}: {told(found.iterations)}", flush=True)
        draw_motion(case, runs[case])
        draw_errors(case, runs[case])


def draw_motion(case: str, runs: dict[bool, Run]) -> None:
    """Draw angles and energies over time."""
    figure, axes = new_figure(3, 7.0, (3, 2, 2))
    found = runs[True]
    for index, angles in enumerate(found.angles.T):
        style = "-" if index < len(COLOURS) else "--"
        axes[0].plot(found.time, angles, style, color=series_colour(index), linewidth=1.2, label=f"link {index + 1}")
    axes[0].set_ylabel("joint angles [rad]")
    for index, name in enumerate(("kinetic", "potential")):
        axes[1].plot(found.time, found.energies[:, index], color=COLOURS[index], linewidth=1.2, label=name)
    axes[1].plot(found.time, found.energies.sum(axis=1), color=REFERENCE, linewidth=1.6, label="total")
    axes[1].set_ylabel("energy [J]")
    _energy_change(axes[2], runs)
    for axis in axes[1:]:
        axis.legend(fontsize=8, frameon=False, ncols=3, labelcolor=INK)
    (DOCS / f"dca-alm-{case}-motion.svg").write_text(svg(figure, axes), encoding="utf-8")


def _energy_change(axis: Axes, runs: dict[bool, Run]) -> None:
    for projections, colour in zip(runs, COLOURS, strict=False):
        label = f"{'with' if projections else 'without'} projections"
        found = runs[projections]
        axis.semilogy(found.time[1:], found.drift[1:], color=colour, linewidth=1.2, label=label)
    axis.set_ylabel("energy error [J]")
    axis.set_xlabel("time [s]")


def draw_errors(case: str, runs: dict[bool, Run]) -> None:
    """Draw the constraint errors at the three levels over time."""
    figure, axes = new_figure(3, 7.0)
    for level, axis in enumerate(axes):
        for projections, colour in zip(runs, COLOURS, strict=False):
            label = f"{'with' if projections else 'without'} projections"
            errors = np.maximum(runs[projections].errors[:, level], 1e-17)
            axis.semilogy(runs[projections].time, errors, color=colour, linewidth=1.2, label=label)
        axis.set_ylabel(LEVELS[level])
    axes[-1].set_xlabel("time [s]")
    (DOCS / f"dca-alm-{case}-constraints.svg").write_text(svg(figure, axes), encoding="utf-8")


if __name__ == "__main__":
    main()
