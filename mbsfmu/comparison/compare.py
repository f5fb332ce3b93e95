"""Runs a model monolithically and coupled over a grid of algorithms and communication steps."""

from __future__ import annotations

import math
import os
import tempfile
import time as clock
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

from mbsfmu.comparison.choices import USUAL, parted
from mbsfmu.comparison.comparison import ACCURACY, Comparison, ComparisonInterrupted, gather_curves
from mbsfmu.comparison.cost import observed_order
from mbsfmu.comparison.reference import Reference
from mbsfmu.comparison.run import Run, Task, make_run
from mbsfmu.comparison.stability import StabilityLimit, stability_limit
from mbsfmu.cosim.algorithms import ITERATED
from mbsfmu.coupled import CoupledModel
from mbsfmu.errors import InputError
from mbsfmu.executors import CallsInterrupted, Shares, local_executor, run_all
from mbsfmu.exporting import Backend, export
from mbsfmu.variables import Causality

# How far beyond the steps of the grid a stability limit is looked for.
_FINER, _COARSER, _FEWEST_STEPS = 16.0, 64.0, 10


def compare(
    model: CoupledModel,
    *,
    steps: Sequence[float] = (2e-3, 1e-3, 5e-4),
    algorithms: Sequence[str] = USUAL,
    formulation: str | None = None,
    newton_tolerance: float | None = None,
    backend: Backend = "native",
    stop: float | None = None,
    accuracy: float = ACCURACY,
    stability: bool = False,
    workers: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Run a model monolithically and coupled, with every algorithm and communication step.

    All runs take the same largest internal step, the smallest communication step, so that what differs is the
    coupling alone.

    Parameters
    ----------
    model
        A model of at least two systems.
    steps
        Communication steps in s.
    algorithms
        Some of `CHOICES`.
    formulation, newton_tolerance, backend
        As for `export`.
    stop
        End time in s; the model's by default.
    accuracy
        Largest error wanted, relative to the range of an output: which setting is cheapest for it is told.
    stability
        Whether to look for the largest step at which each algorithm does not diverge.
    workers
        Number of processes that runs are shared over; that of the cores by default, no more than there are runs.
    progress
        Called with the share that is done.

    Raises
    ------
    InputError
        When a word or number is wrong, or the model has only one system.
    SimulationError
        When the monolithic run fails.
    ComparisonInterrupted
        When it is interrupted after the monolithic run; it has the runs that were done.
    """
    _check(model, steps, algorithms, accuracy)
    workers = min(os.cpu_count() or 1, len(steps) * len(algorithms)) if workers is None else workers
    internal = min(steps)
    options: dict[str, Any] = {"formulation": formulation, "newton_tolerance": newton_tolerance, "step": internal}
    simulation = model.simulation(**options)
    begin = clock.process_time()
    result = simulation.run(stop)
    spent = clock.process_time() - begin
    outputs = {v.name: v.unit for v in simulation.variables if v.causality is Causality.OUTPUT}
    wanted = [(algorithm, step) for algorithm in algorithms for step in sorted(steps, reverse=True)]
    runs: list[Run] = []
    limits: dict[str, StabilityLimit] = {}
    interrupted = False
    try:
        with tempfile.TemporaryDirectory(prefix="mbsfmu-") as name, local_executor(workers) as executor:
            folder = Path(name)
            package = export(model, folder, layout="separate", backend=backend, **options)[-1]
            reference = folder / "reference.npz"
            Reference(result.time, {output: result[output] for output in outputs}).save(reference)
            tasks = [Task(package, reference, *each, float(result.time[-1])) for each in wanted]
            shares = Shares(progress, len(tasks) + (len(algorithms) if stability else 0))
            runs = run_all(executor, make_run, tasks, shares)
            limits = _limits(executor, tasks, runs, shares) if stability else {}
    except CallsInterrupted as ended:
        runs, interrupted = runs or ended.outcomes, True
    made = Comparison(
        model.name,
        model.description,
        result.formulation,
        {**result.summary(), "cpu_seconds": spent},
        outputs,
        runs,
        {name: observed_order(_coupled(runs, name, internal)) for name in algorithms},
        gather_curves(result, outputs, runs),
        accuracy,
        limits,
    )
    if interrupted:
        raise ComparisonInterrupted(made, len(wanted))
    return made


def _coupled(runs: Sequence[Run], algorithm: str, internal: float) -> list[Run]:
    """Return the runs of an algorithm that differ from the monolithic one by coupling.

    Iterated to the end of steps that are the units' own, a run is the monolithic one to the iteration tolerance.
    """
    own = [run for run in runs if run.algorithm == algorithm]
    return [run for run in own if run.step > internal] if parted(algorithm)[0] in ITERATED else own


def _check(model: CoupledModel, steps: Sequence[float], algorithms: Sequence[str], accuracy: float) -> None:
    if len(model.systems) < 2:
        raise InputError(f"{model.name} has one system; there is nothing to couple")
    for name in algorithms:
        parted(name)
    for what, value in (*(("step", step) for step in steps), ("accuracy", accuracy)):
        if not (value > 0 and math.isfinite(value)):
            raise InputError(f"the {what} is {value:g}; it must be positive and finite")
    if not steps or not algorithms:
        raise InputError("a comparison needs at least one step and one algorithm")
    for what, values in (("step", steps), ("algorithm", algorithms)):
        if len(set(values)) < len(values):
            raise InputError(f"a {what} is given twice: {', '.join(str(value) for value in values)}")


def _limits(executor: Executor, tasks: list[Task], runs: list[Run], shares: Shares) -> dict[str, StabilityLimit]:
    """Find the stability limit of each algorithm, beginning with what the runs of the grid have shown."""
    first = {task.algorithm: task for task in tasks}
    known = [{run.step: run.status == "ok" for run in runs if run.algorithm == algorithm} for algorithm in first]
    limits = run_all(executor, _limit, list(zip(first.values(), known, strict=True)), shares)
    return dict(zip(first, limits, strict=True))


def _limit(search: tuple[Task, dict[float, bool]]) -> StabilityLimit:
    task, known = search

    def is_stable(step: float) -> bool:
        return make_run(replace(task, step=step)).status == "ok"

    coarsest = max(*known, min(_COARSER * max(known), task.stop / _FEWEST_STEPS))
    return stability_limit(is_stable, known, min(known) / _FINER, coarsest)
