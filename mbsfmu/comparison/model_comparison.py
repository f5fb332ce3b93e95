"""Comparison runs of a model: monolithic, and coupled over algorithms and communication steps."""

from __future__ import annotations

import os
import tempfile
import time as clock
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from mbsfmu.base.errors import InputError
from mbsfmu.base.executors import CallsInterrupted, Shares, local_executor, run_all
from mbsfmu.comparison.comparison import Comparison, ComparisonInterrupted
from mbsfmu.comparison.comparison_options import ComparisonKeywords, ComparisonOptions
from mbsfmu.comparison.cost import observed_order
from mbsfmu.comparison.reference import ReferenceRun
from mbsfmu.comparison.run import Run, Task, make_run
from mbsfmu.comparison.stability import StabilityLimit, stability_limit
from mbsfmu.comparison.tight import TightRun, tight_run
from mbsfmu.comparison.timing import SECONDS, Repetitions, contenders, repeated_costs
from mbsfmu.cosim.coupling.algorithms import ITERATED
from mbsfmu.cosim.coupling.choices import parted
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.exporting.fmu_export import export
from mbsfmu.modelling.variables import Causality

# How far beyond the steps of the grid a stability limit is looked for.
_FINER, _COARSER, _FEWEST_STEPS = 16.0, 64.0, 10


def compare(
    model: CoupledModel,
    *,
    options: ComparisonOptions | None = None,
    workers: int | None = None,
    progress: Callable[[float], None] | None = None,
    **given: Unpack[ComparisonKeywords],
) -> Comparison:
    """Run a model monolithically and coupled, with every algorithm and communication step.

    The monolithic run with the same internal step gives the coupling error; a reference run with an adaptive solver
    gives the error of step and coupling together.

    Parameters
    ----------
    model
        A model of at least two systems.
    options, given
        Options, and those of them that are given by name; `ComparisonOptions` says what they are.
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
    chosen = ComparisonOptions.of(options, given, ("workers", "progress"))
    if len(model.systems) < 2:
        raise InputError(f"{model.name} has one system; there is nothing to couple")
    inner = {name: getattr(chosen, name) for name in ("formulation", "newton_tolerance")}
    inner["step"] = internal = min(chosen.steps)
    whole = _Monolithic(model, chosen.stop, inner)
    inner["formulation"] = formulation = whole.result.formulation
    tight = tight_run(model, formulation, chosen.steps, chosen.accuracy, whole.reference)
    export_fmus = partial(export, model, layout="separate", backend=chosen.backend, **inner)
    runs, limits, interrupted = _coupled_runs(chosen, export_fmus, whole.reference, tight, workers, progress)
    made = Comparison(
        model.name,
        model.description,
        formulation,
        whole.summary(tight.on(internal)),
        whole.units,
        runs,
        {name: observed_order(_coupled(runs, name, internal)) for name in chosen.algorithms},
        whole.result,
        chosen.accuracy,
        limits,
        tight,
        whole.simulation.machine,
    )
    if interrupted:
        raise ComparisonInterrupted(made, len(chosen.steps) * len(chosen.algorithms))
    return made


class _Monolithic:
    """The monolithic run for comparison.

    Parameters
    ----------
    model
        The model.
    stop
        End of the run in s; None for the model's own.
    inner
        Options of its steps.

    Attributes
    ----------
    simulation, result
        What ran, and what came of it.
    units
        Units of the outputs by their names.
    reference
        The outputs.
    """

    def __init__(self, model: CoupledModel, stop: float | None, inner: Mapping[str, Any]) -> None:
        self.simulation = model.simulation(**inner)
        self.result = self.simulation.run(stop)
        names = self.simulation.exposed
        outputs = [
            variable
            for variable in self.simulation.variables
            if variable.causality is Causality.OUTPUT and variable.name in names.qualified
        ]
        self.units = {output.name: output.unit for output in outputs}
        nominal = {output.name: output.nominal or 1.0 for output in outputs}
        self.reference = ReferenceRun.of(self.result, nominal, names.qualified)

    def summary(self, tight: ReferenceRun | None) -> dict[str, Any]:
        """Return its cost, and its errors against a reference run of its step."""
        found = tight.errors(self.result, self.simulation.exposed.by_system) if tight else dict.fromkeys(self.units)
        return {**self.result.summary(), "cost": self._cost(), "error": found, "still": self.reference.still}

    def _cost(self) -> float:
        """Return the cost of steps in s of processor time per simulated second, from a second run without loading."""
        simulation, stop = self.simulation, float(self.result.time[-1])
        simulation.initialize()
        begin = clock.process_time()
        simulation.step(0.0, stop)
        return (clock.process_time() - begin) / stop


def _coupled_runs(
    chosen: ComparisonOptions,
    export_fmus: Callable[[Path], list[Path]],
    reference: ReferenceRun,
    tight: TightRun,
    workers: int | None,
    progress: Callable[[float], None] | None,
) -> tuple[list[Run], dict[str, StabilityLimit], bool]:
    """Return the coupled runs, the stability limits, and whether they were interrupted."""
    wanted = [(name, step) for name in chosen.algorithms for step in sorted(chosen.steps, reverse=True)]
    workers = min(os.cpu_count() or 1, len(wanted)) if workers is None else workers
    runs: list[Run] = []
    limits: dict[str, StabilityLimit] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="mbsfmu-") as name, local_executor(workers) as executor:
            package, file = export_fmus(Path(name))[-1], Path(name) / "reference.npz"
            reference.save(file)
            grids = {step: _saved(tight, step, Path(name)) for step in chosen.steps}
            tasks = [Task(package, file, grids[each[1]], *each, float(reference.time[-1])) for each in wanted]
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


def _coupled(runs: Sequence[Run], algorithm: str, internal: float) -> list[Run]:
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
        return make_run(replace(task, step=step, tight=None)).status == "ok"

    coarsest = max(*known, min(_COARSER * max(known), task.stop / _FEWEST_STEPS))
    return stability_limit(is_stable, known, min(known) / _FINER, coarsest)
