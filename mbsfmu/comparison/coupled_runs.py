"""Coupled runs of a comparison, in worker processes: all of a grid, their costs, stability limits."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

from mbsfmu.base.executors import CallsInterrupted, Shares, local_executor, run_all
from mbsfmu.comparison.comparison_options import ComparisonOptions
from mbsfmu.comparison.coupled_fmus import CoupledFmus
from mbsfmu.comparison.reference import ReferenceRun
from mbsfmu.comparison.run import Run, Task, make_run
from mbsfmu.comparison.stability import StabilityLimit, stability_limit
from mbsfmu.comparison.tight import TightRun
from mbsfmu.comparison.timing import SECONDS, Repetitions, contenders, repeated_costs
from mbsfmu.cosim.coupling.algorithms import ITERATED, parted

# How far beyond the steps of the grid a stability limit is looked for.
_FINER, _COARSER, _FEWEST_STEPS = 16.0, 64.0, 10


def coupled_runs(
    chosen: ComparisonOptions,
    fmus_in: Callable[[Path], CoupledFmus],
    reference: ReferenceRun,
    tight: TightRun,
    workers: int | None,
    progress: Callable[[float], None] | None,
    refined: CoupledFmus | None = None,
) -> tuple[list[Run], dict[str, StabilityLimit], bool]:
    """Return the coupled runs, the stability limits, and whether they were interrupted.

    Parameters
    ----------
    chosen
        Options of the comparison.
    fmus_in
        Gives the FMUs, which may be exported to a folder that is there as long as the runs are.
    reference, tight
        What the runs are compared with.
    workers, progress
        As for `compare`.
    refined
        The FMUs with refined internal steps, by which each run is made again; None for no such run.
    """
    wanted = [(name, step) for name in chosen.algorithms for step in sorted(chosen.steps, reverse=True)]
    workers = min(os.cpu_count() or 1, len(wanted)) if workers is None else workers
    runs: list[Run] = []
    limits: dict[str, StabilityLimit] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="mbsfmu-") as name, local_executor(workers) as executor:
            fmus, file = fmus_in(Path(name)), Path(name) / "reference.npz"
            reference.save(file)
            grids = {step: _saved(tight, step, Path(name)) for step in chosen.steps}
            tasks = [Task(fmus, file, grids[each[1]], *each, float(reference.time[-1]), refined) for each in wanted]
            limited = len(chosen.algorithms) if chosen.stability else 0
            shares = Shares(progress, len(tasks) + reference.moves + limited)
            runs = run_all(executor, make_run, tasks, shares)
            if reference.moves:
                _repeat(executor, tasks, runs, chosen.accuracy, shares)
            limits = _limits(executor, tasks, runs, shares) if chosen.stability else {}
    except CallsInterrupted as ended:
        return runs or ended.outcomes, limits, True
    return runs, limits, False


def _saved(tight: TightRun, step: float, folder: Path) -> Path | None:
    """Write the reference run on a grid with the times of a step in s; None without a reference run."""
    outputs = tight.on(step)
    if outputs is None:
        return None
    file = folder / f"tight-{step!r}.npz"
    outputs.save(file)
    return file


def of_coupling(runs: Sequence[Run], algorithm: str, internal: float) -> list[Run]:
    """Return the runs of an algorithm whose difference from the monolithic one is the coupling.

    An iterated run with communication steps equal to the internal ones is the monolithic run within the iteration
    tolerance.
    """
    own = [run for run in runs if run.algorithm == algorithm]
    return [run for run in own if run.step > internal] if parted(algorithm)[0] in ITERATED else own


def _repeat(executor: Executor, tasks: list[Task], runs: list[Run], accuracy: float, shares: Shares) -> None:
    """Repeat the runs that may be the least expensive, in one process."""
    racing = [id(run) for run in contenders(runs, accuracy)]
    chosen = [(task, run) for task, run in zip(tasks, runs, strict=True) if id(run) in racing]
    spent = sum(task.stop * (run.cost or 0.0) for task, run in zip(tasks, runs, strict=True))
    repetitions = Repetitions([task for task, _ in chosen], max(SECONDS, spent))
    (found,) = run_all(executor, repeated_costs, [repetitions], shares)
    for (_, run), costs in zip(chosen, found, strict=True):
        run.costs = costs


def _limits(executor: Executor, tasks: list[Task], runs: list[Run], shares: Shares) -> dict[str, StabilityLimit]:
    """Return the stability limit of each algorithm, starting from the runs of the grid."""
    first = {task.algorithm: task for task in tasks}
    known = [{run.step: run.status == "ok" for run in runs if run.algorithm == algorithm} for algorithm in first]
    limits = run_all(executor, _limit, list(zip(first.values(), known, strict=True)), shares)
    return dict(zip(first, limits, strict=True))


def _limit(search: tuple[Task, dict[float, bool]]) -> StabilityLimit:
    task, known = search

    def is_stable(step: float) -> bool:
        return make_run(replace(task, step=step, tight=None, refined=None)).status == "ok"

    coarsest = max(*known, min(_COARSER * max(known), task.stop / _FEWEST_STEPS))
    return stability_limit(is_stable, known, min(known) / _FINER, coarsest)
