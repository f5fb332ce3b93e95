"""Statistics of a coupled run."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import ClassVar

logger = logging.getLogger(__name__)


@dataclass
class RunStatistics:
    """Run statistics.

    Attributes
    ----------
    algorithm, extrapolation, control
        As called.
    step
        Communication step in s, the first one where steps are controlled.
    steps
        Communication steps made and kept.
    smallest_step, largest_step
        Of these, in s.
    iterations
        Sweeps over all FMUs, those for steps that were not kept and for error estimates too.
    rollbacks
        How often all FMUs were brought back to an earlier state.
    rejected_steps
        Steps made again with a smaller length.
    unit_steps
        Steps that each FMU made.
    unit_events
        Events that were handled of each FMU that is run by model exchange: named and state events, and those that it
        has asked for.
    notes
        Sentences for the user: what FMUs could not do.
    undriven
        Inputs that neither a connection nor a signal nor a given value drives, as `unit.variable`.
    wall_seconds
        Time that the stepping took.
    energy_residual
        Residual energy of each power bond at the end in J; the signals `energy_residual.<bond>` have it over time.
    energy_residual_largest
        Largest magnitude of the residual energy of each bond in J.
    energy_exchanged
        Energy that went through each power bond in J, to and fro added up.
    texts
        For each String output, the times in s at which it changed, with the text from then on.
    pace
        Simulated seconds to a second of the clock that were aimed at; None where nothing is waited for.
    coupling_error, coupling_error_output
        Largest error of an output as a fraction of its range, by a second run with half the step; None and nothing
        without one.
    late_steps, lateness_max
        Of a paced run: steps that ended after their time, and by how many s of the clock the latest one did.
    """

    CHANGES: ClassVar = ("notes", "rejected_steps", "wall_seconds", "late_steps", "lateness_max")

    algorithm: str = ""
    extrapolation: str = ""
    control: str = "fixed"
    step: float = 0.0
    steps: int = 0
    smallest_step: float = 0.0
    largest_step: float = 0.0
    iterations: int = 0
    rollbacks: int = 0
    rejected_steps: int = 0
    unit_steps: dict[str, int] = field(default_factory=dict)
    unit_events: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    undriven: list[str] = field(default_factory=list)
    wall_seconds: float = 0.0
    energy_residual: dict[str, float] = field(default_factory=dict)
    energy_residual_largest: dict[str, float] = field(default_factory=dict)
    energy_exchanged: dict[str, float] = field(default_factory=dict)
    texts: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    coupling_error: float | None = None
    coupling_error_output: str = ""
    pace: float | None = None
    late_steps: int = 0
    lateness_max: float = 0.0

    def warn(self, sentence: str) -> None:
        """Store and log a warning."""
        self.notes.append(sentence)
        logger.warning("%s", sentence)
