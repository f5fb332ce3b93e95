"""One coupled run with its errors and cost."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from mbsfmu.base.muted import muted
from mbsfmu.comparison.coupled_fmus import CoupledFmus
from mbsfmu.comparison.curves import RunCurves, curves_of
from mbsfmu.comparison.reference import ReferenceRun, load_reference
from mbsfmu.cosim import CosimulationError, CosimulationResult
from mbsfmu.modelling.ranges import percent

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
