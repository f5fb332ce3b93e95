"""One coupled run, judged by the monolithic one where it was made."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mbsfmu.comparison.choices import parted
from mbsfmu.comparison.curves import RunCurves, curves_of
from mbsfmu.comparison.reference import load_reference
from mbsfmu.cosim import CosimulationError, cosimulate

LOST = 1.0
"""A run whose error exceeds the whole range of the reference counts as diverged."""


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
        For each output, the largest deviation from the monolithic run of the same internal step over time, relative to
        that one's range: what the coupling costs.
    error_total
        The same from the tight run: what coupling and step cost together; None for each output where that is not known.
    energy_residual, energy_residual_share
        Largest residual energy of the power bonds in J, and as a share of the energy exchanged; None without bonds.
    steps, rollbacks
        Communication steps made, and those made again (none with fixed steps).
    wall_seconds, cpu_seconds
        Time that the stepping took, and processor time of the whole run with loading its units; the latter says what
        it cost, the former also how busy the machine was.
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
    cpu_seconds: float = 0.0
    energy_residual_share: float | None = None
    error_total: Mapping[str, float | None] = field(default_factory=dict)
    curves: RunCurves = field(default_factory=RunCurves, repr=False)

    @property
    def label(self) -> str:
        """What curves call it: algorithm and step."""
        return _label(self.algorithm, self.step)

    @property
    def worst_error(self) -> float | None:
        """The largest of the errors of the coupling; None where the run diverged."""
        return self._worst(self.error)

    @property
    def worst_total(self) -> float | None:
        """The largest of the errors of coupling and step together; None where it diverged, or that is not known."""
        return self._worst(self.error_total)

    @property
    def judged(self) -> float | None:
        """The error that the run is judged by: of coupling and step, or of the coupling where only that is known."""
        return self.worst_error if self.worst_total is None else self.worst_total

    def _worst(self, errors: Mapping[str, float | None]) -> float | None:
        values = [value for value in errors.values() if value is not None]
        return max(values) if self.status == "ok" and values else None

    def to_dict(self) -> dict[str, Any]:
        """Return what `compare --json` writes of it."""
        return {key: value for key, value in vars(self).items() if key != "curves"}


@dataclass(frozen=True)
class Task:
    """What a worker process needs to make a run.

    Attributes
    ----------
    package, reference, tight
        The SSP file, and what `Reference.save` wrote of the monolithic and the tight run; None where there is no tight
        run.
    algorithm, step, stop
        One of `CHOICES`, communication step and end in s.
    """

    package: Path
    reference: Path
    tight: Path | None
    algorithm: str
    step: float
    stop: float


def make_run(task: Task) -> Run:
    """Make a coupled run and judge it."""
    algorithm, extrapolation = parted(task.algorithm)
    message, begin = "", clock.process_time()
    try:
        result = cosimulate(
            task.package, algorithm=algorithm, extrapolation=extrapolation, step=task.step, stop=task.stop
        )
    except CosimulationError as error:
        result, message = error.result, str(error)
    spent = clock.process_time() - begin
    reference = load_reference(task.reference)
    errors = reference.errors(result)
    message = message or lost_output(errors, reference.still)
    totals = dict.fromkeys(errors) if message or task.tight is None else load_reference(task.tight).errors(result)
    return Run(
        task.algorithm,
        task.step,
        "diverged" if message else "ok",
        dict.fromkeys(errors) if message else errors,
        _finite(result.energy_residual_max),
        result.steps,
        result.wall_seconds,
        message,
        rollbacks=result.rollbacks,
        cpu_seconds=spent,
        energy_residual_share=_finite(result.energy_residual_share),
        error_total=totals,
        curves=curves_of(result, reference, _label(task.algorithm, task.step)),
    )


def lost_output(errors: Mapping[str, float], still: Collection[str]) -> str:
    """Say which output left the range of the reference; nothing where none did.

    Parameters
    ----------
    errors
        Of each output, in shares of its range, or of its magnitude where it does not move.
    still
        The outputs that do not.
    """
    lost = next((output for output, error in errors.items() if not error <= LOST), "")
    of = "magnitude, where it does not move" if lost in still else "range"
    return f"{lost} is off by {100 * errors[lost]:.0f} % of its {of}" if lost else ""


def _label(algorithm: str, step: float) -> str:
    return f"{algorithm} {step:g} s"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
