"""One coupled run with its errors and cost, and the stability limit of its step."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.repeated_warnings import muted
from mbsfmu.cosim import Cosimulation, CosimulationError, CosimulationResult, CouplingOptions
from mbsfmu.cosim.coupling.algorithms import parted
from mbsfmu.cosim.coupling.coupling_data import Signal
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.runs.master import output_scales
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.parameters import compared_ranges, percent
from mbsfmu.view.plots.plot import Curve

KEYWORDS = (
    *("order", "rates", "unit_tolerance", "model_exchange", "unit_solver"),
    *("isolate", "time_limit", "strict", "start_time"),
)
"""Options of coupled runs that all runs of a comparison share."""


@dataclass(frozen=True)
class CoupledFmus:
    """FMUs with their connections, as `cosimulate` takes them; sent to worker processes.

    Attributes
    ----------
    source
        An SSP file, a folder that holds one, or FMU files.
    connections, parameters, inputs, bonds
        As for `cosimulate`.
    coupling
        Options of all runs, of `KEYWORDS`.

    Raises
    ------
    InputError
        When an option of the runs is none of `KEYWORDS`.
    """

    source: str | Path | Sequence[str | Path]
    connections: Sequence[str | tuple[str, str] | Connection] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Signal] = field(default_factory=dict)
    bonds: Sequence[str] = ()
    coupling: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.coupling:
            if name not in KEYWORDS:
                raise InputError(
                    f"there is no option '{name}' of all coupled runs of a comparison; {closest_match(name, KEYWORDS)}"
                )

    @property
    def name(self) -> str:
        """Name of the package, or names of the FMUs."""
        files = [self.source] if isinstance(self.source, str | Path) else list(self.source)
        return " and ".join(Path(str(file).partition("=")[2] or file).stem for file in files)

    def run(self, algorithm: str, **options: Any) -> Cosimulation:
        """Return a coupled run that has not begun.

        Parameters
        ----------
        algorithm
            One of `CHOICES`.
        options
            Options of `CouplingOptions`.

        Raises
        ------
        InputError
            When options do not go together.
        """
        name, extrapolation = parted(algorithm)
        chosen = {**self.coupling, "algorithm": name, "extrapolation": extrapolation, **options}
        return Cosimulation(
            self.source,
            options=CouplingOptions(**chosen),
            connections=self.connections,
            parameters=self.parameters,
            inputs=self.inputs,
            bonds=self.bonds,
        )

    @contextmanager
    def opened(self, step: float, **options: Any) -> Iterator[Cosimulation]:
        """Give a run at its start.

        Parameters
        ----------
        step
            Communication step in s where neither the package nor the FMUs suggest one.
        options
            As for `run`, but for the step.

        Raises
        ------
        InputError
            As `run`.
        """
        with ExitStack() as stack:
            try:
                run = stack.enter_context(self.run("jacobi", **options))
            except InputError:
                run = stack.enter_context(self.run("jacobi", step=step, **options))
            yield run

    def result(self, algorithm: str, **options: Any) -> CosimulationResult:
        """Return the result of a whole coupled run; arguments as for `run`.

        Raises
        ------
        InputError
            When options do not go together, or an FMU cannot do what is asked.
        SimulationError
            When it fails.
        """
        with self.run(algorithm, **options) as run:
            run.run()
            return run.result()


@dataclass(frozen=True)
class ReferenceRun:
    """Outputs over time.

    Attributes
    ----------
    time
        In s, shape (k,).
    outputs
        Each of shape (k,).
    scales
        What errors are shares of: each output's range; its magnitude where it does not move but for round-off, and what
        is usual for it where it stays at zero.
    sizes
        Sizes of the vectors that outputs are components of, which count where an output hardly varies.
    references
        Each output as `system.variable`, by which every run has it, whatever its own name for it is.
    """

    time: NDArray[np.float64]
    outputs: Mapping[str, NDArray[np.float64]]
    scales: Mapping[str, float]
    sizes: Mapping[str, float]
    references: Mapping[str, str]

    @classmethod
    def of(cls, run: Trajectory, nominals: Mapping[str, float], references: Mapping[str, str]) -> Self:
        """Return the outputs of a run that have a nominal value, with their ranges."""
        outputs = {name: run[name] for name in nominals}
        scales, sizes = (
            dict(zip(outputs, each.tolist(), strict=True)) for each in output_scales(outputs, run, nominals)
        )
        return cls(run.time, outputs, scales, sizes, {name: references[name] for name in nominals})

    @property
    def still(self) -> list[str]:
        """Names of constant outputs, whose errors are not relative to ranges."""
        return [name for name, values in self.outputs.items() if np.ptp(values) < self.scales[name]]

    @property
    def moves(self) -> bool:
        """Whether any output moves."""
        return len(self.still) < len(self.outputs)

    def save(self, path: Path) -> None:
        """Write it to a NumPy archive."""
        values = np.column_stack(list(self.outputs.values()))
        scales, sizes = (np.array(list(each.values())) for each in (self.scales, self.sizes))
        names, references = np.array(list(self.outputs)), np.array([self.references[name] for name in self.outputs])
        np.savez(path, time=self.time, names=names, references=references, values=values, scales=scales, sizes=sizes)

    def same_of(self, run: Trajectory, names: Mapping[str, str] | None = None) -> dict[str, NDArray[np.float64]]:
        """Return the same outputs of another run, each of shape (number of its times,).

        Parameters
        ----------
        run
            The run.
        names
            Names of its signals by `system.variable`; None for a coupled run, which calls them so.
        """
        return {
            name: run[reference if names is None else names[reference]] for name, reference in self.references.items()
        }

    def deviations(self, run: Trajectory, names: Mapping[str, str] | None = None) -> dict[str, NDArray[np.float64]]:
        """Return the deviation of each output of a run at the run's times, each of shape (number of its times,).

        The reference is interpolated linearly. Arguments as for `same_of`.
        """
        return {
            name: values - np.interp(run.time, self.time, self.outputs[name])
            for name, values in self.same_of(run, names).items()
        }

    def errors(self, run: Trajectory, names: Mapping[str, str] | None = None) -> dict[str, float]:
        """Return the largest deviation of each output over time, relative to its scale.

        Arguments as for `same_of`.
        """
        return self.relative(self.deviations(run, names))

    def relative(self, deviations: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
        """Return the largest deviation of each output over time, relative to its scale."""
        largest = np.array([np.max(np.abs(deviations[name])) for name in self.outputs])
        scales, sizes = (np.array(list(each.values())) for each in (self.scales, self.sizes))
        return dict(zip(self.outputs, (largest / compared_ranges(largest, scales, sizes)).tolist(), strict=True))


@lru_cache(maxsize=8)
def load_reference(path: Path) -> ReferenceRun:
    """Return the data of `ReferenceRun.save`, read once per process."""
    with np.load(path) as archive:
        names = archive["names"].tolist()
        outputs = dict(zip(names, archive["values"].T, strict=True))
        scales, sizes, references = (archive[each].tolist() for each in ("scales", "sizes", "references"))
        return ReferenceRun(
            archive["time"],
            outputs,
            dict(zip(names, scales, strict=True)),
            dict(zip(names, sizes, strict=True)),
            dict(zip(names, references, strict=True)),
        )


_MOST = 4000  # points of a curve
_RESIDUAL = "energy_residual."


@dataclass(frozen=True, eq=False)
class RunCurves:
    """Curves of one coupled run over time in s.

    Attributes
    ----------
    outputs, deviations
        Each output, and how far it is from the monolithic run, in its unit.
    energy_residual
        Residual energy of all power bonds together in J; None without bonds.
    """

    outputs: Mapping[str, Curve] = field(default_factory=dict)
    deviations: Mapping[str, Curve] = field(default_factory=dict)
    energy_residual: Curve | None = None


def curves_of(run: Trajectory, reference: ReferenceRun, label: str) -> RunCurves:
    """Return the curves of a coupled run compared with a monolithic one."""

    def curve(values: np.ndarray) -> Curve:
        return Curve.of(label, run.time, values).thinned(_MOST)

    residuals = [run[name] for name in run.names if name.startswith(_RESIDUAL)]
    return RunCurves(
        {name: curve(values) for name, values in reference.same_of(run).items()},
        {name: curve(values) for name, values in reference.deviations(run).items()},
        curve(np.sum(residuals, axis=0)) if residuals else None,
    )


LOST = 1.0
"""Error relative to the reference's range above which a run counts as diverged."""


@dataclass(frozen=True)
class BondEnergy:
    """Energy at a power bond over a coupled run, in J.

    Attributes
    ----------
    exchanged
        What went through it, to and fro added up.
    residual, largest
        What the coupling brought in (positive) or took out until the end, and its largest magnitude over time.
    """

    exchanged: float
    residual: float
    largest: float

    @property
    def share(self) -> float | None:
        """The largest residual as a share of the exchanged energy; None where nothing was exchanged."""
        return self.largest / self.exchanged if self.exchanged > 0.0 else None


@dataclass
class Run:
    """One coupled run.

    Attributes
    ----------
    algorithm, step
        One of `CHOICES`, and the communication step in s.
    layout
        `separate`: one unit per system.
    status
        `ok`, or `diverged` with the reason in `message`.
    error
        For each output, the largest deviation over time from the monolithic run of the same internal step, relative to
        that one's range: what the coupling costs. Of FMUs without a model, that of the same run with refined internal
        steps from the reference run; of the run itself where FMUs have none that can be refined.
    error_total
        The same from the tight run: what coupling and step cost together; None for each output where that is not known.
        Of FMUs without a model, that of the run itself from the reference run.
    error_inside
        Of FMUs without a model, the largest difference over time from the same run with refined internal steps: what
        the FMUs' own steps cost; None for each output, or nothing, where that is not known.
    energy_residual, energy_residual_share
        Largest residual energy of the power bonds in J, and as a share of the energy exchanged; None without bonds.
    bonds
        Energy at each power bond.
    steps, rollbacks
        Communication steps made, and those made again (none with fixed steps).
    wall_seconds
        Time on the clock that the stepping took.
    costs
        Processor time of stepping in s per simulated second: of the run itself, or of its repetitions where it was
        repeated, in turn with the other settings that are accurate enough. Empty where the run diverged.
    loading_seconds
        Processor time that loading and initializing the units took, with the first step.
    curves
        What is drawn of it.
    """

    algorithm: str
    step: float
    status: str
    error: Mapping[str, float | None]
    energy_residual: float | None
    steps: int
    wall_seconds: float
    message: str = ""
    layout: str = "separate"
    rollbacks: int = 0
    costs: Sequence[float] = ()
    loading_seconds: float | None = None
    energy_residual_share: float | None = None
    error_total: Mapping[str, float | None] = field(default_factory=dict)
    error_inside: Mapping[str, float | None] = field(default_factory=dict)
    bonds: Mapping[str, BondEnergy] = field(default_factory=dict)
    curves: RunCurves = field(default_factory=RunCurves, repr=False)

    @property
    def label(self) -> str:
        """Label of its curves: algorithm and step."""
        return _label(self.algorithm, self.step)

    @property
    def cost(self) -> float | None:
        """The median of `costs`; None if the run diverged."""
        return median(self.costs) if self.costs else None

    @property
    def worst_error(self) -> float | None:
        """The largest coupling error; None if the run diverged."""
        return self._worst(self.error)

    @property
    def worst_total(self) -> float | None:
        """The largest error of coupling and step together; None if diverged or unknown."""
        return self._worst(self.error_total)

    @property
    def worst_inside(self) -> float | None:
        """The largest error inside FMUs; None if diverged or unknown."""
        return self._worst(self.error_inside)

    @property
    def judged(self) -> float | None:
        """The error used for evaluation: of coupling and step, or of the coupling if only that is known."""
        return self.worst_error if self.worst_total is None else self.worst_total

    def _worst(self, errors: Mapping[str, float | None]) -> float | None:
        values = [value for value in errors.values() if value is not None]
        return max(values) if self.status == "ok" and values else None

    def to_dict(self) -> dict[str, Any]:
        """Return the data that `compare --json` writes of it."""
        bonds = {name: {**asdict(energy), "share": energy.share} for name, energy in self.bonds.items()}
        told = {key: value for key, value in vars(self).items() if key != "curves"}
        return {**told, "cost": self.cost, "bonds": bonds}


@dataclass(frozen=True)
class Task:
    """Arguments of a run in a worker process.

    Attributes
    ----------
    fmus
        The FMUs.
    reference, tight
        What `ReferenceRun.save` wrote of the monolithic and the tight run, or of the reference of FMUs without a model;
        None where there is no tight run.
    algorithm, step, stop
        One of `CHOICES`, communication step and end in s.
    refined
        The FMUs with refined internal steps; None where there are none.
    """

    fmus: CoupledFmus
    reference: Path
    tight: Path | None
    algorithm: str
    step: float
    stop: float
    refined: CoupledFmus | None = None


@dataclass(frozen=True)
class Timing:
    """Processor times of a coupled run.

    Attributes
    ----------
    loading
        Of loading and initializing the units, with the first step, in s: that step lays out the grid of times, and
        finds the Jacobian of an iteration.
    stepping
        Of the steps after the first one, in s per simulated second; where there is no other step, of that one.
    """

    loading: float
    stepping: float


def run_timed(task: Task) -> tuple[CosimulationResult, Timing]:
    """Make a coupled run and return it with its cost.

    Raises
    ------
    CosimulationError
        When the run fails; it has what was recorded.
    """
    begin = clock.process_time()
    with task.fmus.run(task.algorithm, step=task.step, stop=task.stop) as run:
        loaded, start = clock.process_time(), run.time
        run.step()
        if not run.done:
            loaded, start = clock.process_time(), run.time
            run.run()
        stepping = (clock.process_time() - loaded) / (run.time - start)
        return run.result(), Timing(loaded - begin, stepping)


def make_run(task: Task) -> Run:
    """Make a coupled run and compute its errors."""
    message, timing = "", None
    try:
        result, timing = run_timed(task)
    except CosimulationError as error:
        result, message = error.result, str(error)
    reference = load_reference(task.reference)
    errors = reference.errors(result)
    message = message or lost_output(errors, reference.still)
    unknown: dict[str, float | None] = dict.fromkeys(errors)
    coupling: Mapping[str, float | None] = unknown if message else errors
    totals = unknown if message or task.tight is None else load_reference(task.tight).errors(result)
    inside = unknown
    if task.refined is not None and not message:
        totals, (coupling, inside) = errors, _parted_errors(task, reference, result)
    return Run(
        task.algorithm,
        task.step,
        "diverged" if message else "ok",
        coupling,
        _finite(result.energy_residual_max),
        result.steps,
        result.wall_seconds,
        message,
        rollbacks=result.rollbacks,
        costs=() if message or timing is None else (timing.stepping,),
        loading_seconds=None if timing is None else timing.loading,
        energy_residual_share=_finite(result.energy_residual_share),
        error_total=totals,
        error_inside=inside,
        bonds=_bonds(result),
        curves=curves_of(result, reference, _label(task.algorithm, task.step)),
    )


def _parted_errors(
    task: Task, reference: ReferenceRun, result: CosimulationResult
) -> tuple[Mapping[str, float | None], Mapping[str, float | None]]:
    """Return the errors of coupling and inside FMUs, by a run with refined internal steps; None where it fails."""
    assert task.refined is not None
    unknown: dict[str, float | None] = dict.fromkeys(reference.outputs)
    try:
        with muted():
            refined = task.refined.result(task.algorithm, step=task.step, stop=task.stop)
    except CosimulationError:
        return unknown, unknown
    own, others = reference.same_of(result), reference.same_of(refined)
    rows = min(len(result.time), len(refined.time))
    inside = reference.relative({name: own[name][:rows] - others[name][:rows] for name in own})
    return reference.errors(refined), inside


def _bonds(result: CosimulationResult) -> dict[str, BondEnergy]:
    """Return the energies at the bonds of a run that are finite."""
    run = result.statistics
    found = {
        name: BondEnergy(exchanged, run.energy_residual[name], run.energy_residual_largest[name])
        for name, exchanged in run.energy_exchanged.items()
    }
    return {name: each for name, each in found.items() if all(map(math.isfinite, vars(each).values()))}


def lost_output(errors: Mapping[str, float], still: Collection[str]) -> str:
    """Return the output that left the range of the reference, in words; empty without one.

    Parameters
    ----------
    errors
        Of each output, in shares of its range, or of its magnitude where it does not move.
    still
        The outputs that do not.
    """
    lost = next((output for output, error in errors.items() if not error <= LOST), "")
    of = "magnitude, where it does not move" if lost in still else "range"
    return f"{lost} is off by {percent(errors[lost])} of its {of}" if lost else ""


def _label(algorithm: str, step: float) -> str:
    return f"{algorithm} {step:g} s"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


CLOSE = 1.05
"""Ratio of the smallest diverging to the largest stable step at which the bisection ends."""


@dataclass(frozen=True)
class StabilityLimit:
    """Stability limit of an algorithm between two steps in s.

    Attributes
    ----------
    stable
        The largest step found at which it does not diverge; None where all that were tried do.
    diverging
        The smallest step found at which it diverges, above `stable`; None where none of them does.
    """

    stable: float | None
    diverging: float | None


def stability_limit(
    is_stable: Callable[[float], bool],
    known: Mapping[float, bool],
    smallest: float,
    largest: float,
    close: float = CLOSE,
) -> StabilityLimit:
    """Return the limit between stable and diverging steps.

    Known steps are used first, then doubled up to the largest or halved down to the smallest until the limit is
    enclosed, then bisected on a logarithmic scale. The result is the first limit from below; stability above a
    diverging step is not searched.

    Parameters
    ----------
    is_stable
        Whether a step in s does not diverge.
    known
        Some steps for which that is known; at least one.
    smallest, largest
        Between which steps in s to look.
    close
        Quotient of the two steps at which the search ends.
    """
    diverging = min((step for step, stable in known.items() if not stable), default=None)
    below = [step for step, stable in known.items() if stable and (diverging is None or step < diverging)]
    stable = max(below, default=None)
    while diverging is None and stable is not None and stable < largest:
        step = min(2.0 * stable, largest)
        stable, diverging = (step, None) if is_stable(step) else (stable, step)
    while stable is None and diverging is not None and diverging > smallest:
        step = max(0.5 * diverging, smallest)
        stable, diverging = (step, diverging) if is_stable(step) else (None, step)
    while stable is not None and diverging is not None and diverging > close * stable:
        middle = math.sqrt(stable * diverging)
        stable, diverging = (middle, diverging) if is_stable(middle) else (stable, middle)
    return StabilityLimit(stable, diverging)
