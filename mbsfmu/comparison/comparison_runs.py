"""Runs of a comparison: of models and of coupled FMUs, over algorithms and communication steps."""

from __future__ import annotations

import os
import tempfile
import time as clock
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from mbsfmu.base.errors import InputError
from mbsfmu.base.executors import CallsInterrupted, Shares, local_executor, run_all
from mbsfmu.base.name_patterns import means, nearest
from mbsfmu.base.repeated_warnings import each_once
from mbsfmu.comparison.comparison import Comparison, ComparisonInterrupted, ComparisonKeywords, ComparisonOptions
from mbsfmu.comparison.cost import SECONDS, Repetitions, contenders, observed_order, repeated_costs
from mbsfmu.comparison.reference_run import CoupledReference, InternalSteps, TightRun, coupled_reference, tight_run
from mbsfmu.comparison.run import CoupledFmus, ReferenceRun, Run, StabilityLimit, Task, make_run, stability_limit
from mbsfmu.compiling.compiler import optimized
from mbsfmu.cosim import CosimulationResult, CouplingOptions
from mbsfmu.cosim.coupling.algorithms import ITERATED, parted
from mbsfmu.cosim.coupling.coupling_data import Signal
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.joints.joint_equations import check_algorithm
from mbsfmu.exporting.fmu_export import export
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.system_model.coupled_model import CoupledModel

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


_OF_MODELS = ("formulation", "newton_tolerance", "backend")
_MULTIPLES = (2.0, 1.0, 0.5)
"""Default communication steps, in steps that the package or the FMUs suggest."""
_ABOVE = 3.0
"""Times the reference's own error from which on errors count for the observed order."""


@dataclass(frozen=True)
class _Start:
    """What is known of FMUs at their start.

    Attributes
    ----------
    stop, step
        Stop time and suggested communication step in s.
    compared
        Continuous outputs by `unit.variable`.
    left_out
        Names of the other numeric outputs.
    internal
        What can be refined inside the FMUs.
    joints_alone
        Whether joints alone couple them.
    """

    stop: float
    step: float
    compared: Mapping[str, Variable]
    left_out: tuple[str, ...]
    internal: InternalSteps
    joints_alone: bool


def compare_fmus(
    fmus: CoupledFmus,
    chosen: ComparisonOptions,
    outputs: Sequence[str] | None,
    workers: int | None,
    progress: Callable[[float], None] | None,
) -> Comparison:
    """Compare coupled runs of FMUs with a reference run of them; see `compare`."""
    for name in _OF_MODELS:
        value = getattr(chosen, name)
        if value != chosen.default(name):
            raise InputError(f"{name.replace('_', ' ')} = {value} has no effect with FMUs; it has with a model")
    given = "steps" in chosen.model_fields_set
    start = _start(fmus, chosen, outputs, given=given)
    same = _same_runs(chosen.algorithms) if start.joints_alone else {}
    steps = chosen.steps if given else tuple(multiple * start.step for multiple in _MULTIPLES)
    others: dict[str, Any] = {"stop": chosen.stop, "accuracy": chosen.accuracy, "stability": chosen.stability}
    listed = tuple(each for each in chosen.algorithms if each not in same)
    chosen = ComparisonOptions(steps=steps, algorithms=listed, **others)
    found, result, reference, refined = coupled_reference(
        fmus, chosen.steps, start.stop, chosen.accuracy, start.compared, start.internal
    )
    again = refined if start.internal.are_told else None
    runs, limits, interrupted = coupled_runs(chosen, lambda _: fmus, reference, TightRun(), workers, progress, again)
    least = _ABOVE * found.worst_uncertainty
    made = Comparison(
        fmus.name,
        "coupled FMUs",
        "",
        _summary(found, result, reference),
        {name: variable.unit for name, variable in start.compared.items()},
        runs,
        {name: observed_order([run for run in runs if run.algorithm == name], least) for name in chosen.algorithms},
        result,
        chosen.accuracy,
        limits,
        coupled_reference=found,
        left_out=start.left_out,
        same_runs=same,
    )
    if interrupted:
        raise ComparisonInterrupted(made, len(chosen.steps) * len(chosen.algorithms))
    return made


def _start(fmus: CoupledFmus, chosen: ComparisonOptions, patterns: Sequence[str] | None, *, given: bool) -> _Start:
    """Load FMUs and check that they can do what the algorithms need, with given steps; see `compare` for errors."""
    options: dict[str, Any] = {"step": min(chosen.steps), "stop": chosen.stop}
    with fmus.run("jacobi", **options) if given else fmus.opened(**options) as run:
        members = {member.instance.name: member for member in run.coupling.members}
        instances = {name: member.instance for name, member in members.items()}
        for algorithm in chosen.algorithms:
            name, extrapolation = parted(algorithm)
            CouplingOptions(algorithm=name, extrapolation=extrapolation).settings(instances)
            if run.joints:
                check_algorithm(name)
        if not run.coupling.connections and not run.result().names:
            raise InputError(f"{fmus.name} has no outputs; there is nothing to compare")
        if not run.coupling.connections and not run.joints:
            raise InputError(f"nothing connects the FMUs of {fmus.name}; there is no coupling to compare")
        held = set(run.coupling.held)
        compared: dict[str, Variable] = {}
        others: list[str] = []
        for place, (unit, name) in enumerate(run.coupling.names):
            if place in held:
                others.append(f"{unit}.{name}")
            else:
                compared[f"{unit}.{name}"] = instances[unit].variables[name]
        step, stop = run.statistics.step, run.stop
        internal, joints_alone = InternalSteps.of(run), not run.coupling.connections
    if not compared:
        raise InputError(f"{fmus.name} has no continuous Real output; there is nothing to compare")
    for pattern in patterns or ():
        if not any(means(pattern, [name]) for name in compared):
            discrete = "; discrete outputs are not compared" if any(means(pattern, [name]) for name in others) else ""
            near = nearest(pattern, list(compared), lambda name: [name])
            raise InputError(f"no continuous output is called '{pattern}'{discrete}; {near}")
    if patterns:
        compared = {
            name: variable for name, variable in compared.items() if any(means(pattern, [name]) for pattern in patterns)
        }
        others = []
    return _Start(stop, step, compared, tuple(others), internal, joints_alone)


def _same_runs(algorithms: Sequence[str]) -> dict[str, str]:
    """Return algorithms whose runs are those of an earlier one, where joints alone couple FMUs.

    `jacobi` and `gauss-seidel` leave joints to the same solution, so that only the extrapolation tells runs apart.
    """
    first: dict[str, str] = {}
    return {
        name: first[extrapolation]
        for name in algorithms
        if first.setdefault(extrapolation := parted(name)[1], name) != name
    }


def _summary(found: CoupledReference, result: CosimulationResult, reference: ReferenceRun) -> dict[str, Any]:
    return {
        "algorithm": found.algorithm,
        "step": found.step,
        "stop": float(result.time[-1]),
        "steps": result.steps,
        "wall_seconds": result.wall_seconds,
        "cost": found.cost,
        "still": reference.still,
        "uncertainty": dict(found.uncertainty),
    }


@each_once()
def compare(
    model: CoupledModel | str | Path | Sequence[str | Path],
    *,
    options: ComparisonOptions | None = None,
    connections: Sequence[str | tuple[str, str] | Connection] = (),
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Signal] | None = None,
    bonds: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    coupling: Mapping[str, Any] | None = None,
    workers: int | None = None,
    progress: Callable[[float], None] | None = None,
    **given: Unpack[ComparisonKeywords],
) -> Comparison:
    """Run a model monolithically and coupled, with every algorithm and communication step; or coupled FMUs of any tool.

    The monolithic run with the same internal step gives the coupling error; a reference run with an adaptive solver
    gives the error of step and coupling together. FMUs have no monolithic model: their reference is a coupled run whose
    step is halved until its own estimated error is small. Errors inside FMUs with the parameter `solver.step`, as ours
    have it, are told from those of coupling by a second run with internal steps of the reference. Those of others count
    as errors of coupling where their steps end with communication steps, or are not seen, and a sentence says so.

    Parameters
    ----------
    model
        A model of at least two systems; or an SSP file, a folder that holds one, or FMU files as for `cosimulate`.
    options, given
        Options, and those of them that are given by name; `ComparisonOptions` says what they are.
    connections, parameters, inputs, bonds
        Of FMUs, as for `cosimulate`.
    outputs
        Of FMUs: patterns of the outputs to compare, such as `a.*`; by default all that are Real and continuous.
    coupling
        Of FMUs: options of `CouplingOptions` that all runs share, such as `{"model_exchange": ["plant"]}`.
    workers
        Number of processes that runs are shared over; that of the cores by default, no more than there are runs.
    progress
        Called with the share that is done.

    Raises
    ------
    InputError
        When a word or number is wrong, the model has only one system, or FMUs cannot do what is asked.
    SimulationError
        When the monolithic run fails, or no reference run of FMUs succeeds.
    ComparisonInterrupted
        When it is interrupted after the reference run; it has the runs that were done.
    """
    of_fmus = {
        "connections": connections,
        "parameters": parameters,
        "inputs": inputs,
        "bonds": bonds,
        "outputs": outputs,
        "coupling": coupling,
    }
    chosen = ComparisonOptions.of(options, given, ("workers", "progress", *of_fmus))
    if not isinstance(model, CoupledModel):
        fmus = CoupledFmus(model, connections, parameters or {}, inputs or {}, bonds, coupling or {})
        return compare_fmus(fmus, chosen, outputs, workers, progress)
    for name, value in of_fmus.items():
        if value:
            raise InputError(f"{name} = {value!r} has no effect with the model {model.name}; it has with FMUs")
    if len(model.systems) < 2:
        raise InputError(f"{model.name} has one system; there is nothing to couple")
    inner = {name: getattr(chosen, name) for name in ("formulation", "newton_tolerance")}
    inner["step"] = internal = min(chosen.steps)
    whole = _Monolithic(model, chosen.stop, inner)
    inner["formulation"] = formulation = whole.result.formulation
    tight = tight_run(model, formulation, chosen.steps, chosen.accuracy, whole.reference)
    export_fmus = partial(export, model, layout="separate", backend=chosen.backend, **inner)
    runs, limits, interrupted = coupled_runs(
        chosen, lambda folder: CoupledFmus(export_fmus(folder)[-1]), whole.reference, tight, workers, progress
    )
    made = Comparison(
        model.name,
        model.description,
        formulation,
        whole.summary(tight.on(internal)),
        whole.units,
        runs,
        {name: observed_order(of_coupling(runs, name, internal)) for name in chosen.algorithms},
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
        with optimized():
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
