"""The reference of FMUs without a monolithic model: a coupled run with small steps, whose own error is estimated."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.muted import muted
from mbsfmu.comparison.coupled_fmus import CoupledFmus
from mbsfmu.comparison.internal_steps import InternalSteps
from mbsfmu.comparison.reference import ReferenceRun
from mbsfmu.comparison.tight import SHARE, divides
from mbsfmu.cosim import CosimulationError, CosimulationResult
from mbsfmu.modelling.ranges import percent
from mbsfmu.modelling.variables import Variable

ENOUGH = 0.1
"""Fraction of the wanted accuracy that the reference's own error may be at most for a verdict."""
ALGORITHMS = ("newton-linear", "gauss-seidel-linear", "gauss-seidel")
"""Algorithms of the reference, the best first: newton needs saved states, linear extrapolation smooth outputs."""
SECONDS = 60.0
"""Processor time in s beyond which no smaller step is tried."""
_MOST = 10  # times that the step is halved
_FALLING = 1.5  # least ratio of differences of successive halvings; 2 of first order, 4 of second
_SECOND_ORDER = 4.0
_WORSE = 2  # halvings with growing changes after which the best stays: tolerances and round-off, by small steps


@dataclass(frozen=True)
class CoupledReference:
    """A coupled run with steps so small that its error is negligible, or the reason why it is not.

    Attributes
    ----------
    algorithm, step
        One of `CHOICES`, and its communication step in s.
    uncertainty
        The error of each output, in shares of its range: by how much it changed where the step was halved, over the
        ratio of the last two changes less one (Richardson's estimate).
    doubt
        A sentence where it is too uncertain for a verdict.
    internal_steps
        Largest internal step in s of each FMU that has one for a parameter.
    untold
        FMUs whose own errors cannot be told from those of coupling.
    cost, cpu_seconds
        Processor time of its steps in s per simulated second, and that of all runs it took in s.
    """

    algorithm: str
    step: float
    uncertainty: Mapping[str, float] = field(default_factory=dict)
    doubt: str = ""
    cost: float = 0.0
    cpu_seconds: float = 0.0
    internal_steps: Mapping[str, float] = field(default_factory=dict)
    untold: tuple[str, ...] = ()

    @property
    def worst_uncertainty(self) -> float:
        """The largest uncertainty of all outputs."""
        return max(self.uncertainty.values(), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the data that `compare --json` writes of it."""
        return asdict(self)


@dataclass(frozen=True)
class _Made:
    """A run of FMUs with a step in s, its outputs, and the processor time of its steps in s."""

    fmus: CoupledFmus
    internal_steps: Mapping[str, float]
    step: float
    result: CosimulationResult
    outputs: ReferenceRun
    seconds: float


def coupled_reference(
    fmus: CoupledFmus,
    steps: Sequence[float],
    stop: float,
    accuracy: float,
    variables: Mapping[str, Variable],
    internal: InternalSteps,
) -> tuple[CoupledReference, CosimulationResult, ReferenceRun, CoupledFmus]:
    """Run FMUs with ever smaller steps until the estimated error is a hundredth of the wanted accuracy.

    The first algorithm that converges is taken; where none does, the smallest steps of the one that came nearest.
    Communication steps and internal ones are halved together, where FMUs have parameters for these.

    Returns
    -------
    found, result, reference
        The reference, its run, and its outputs.
    refined
        The FMUs with its internal steps.

    Parameters
    ----------
    fmus
        The FMUs.
    steps
        Communication steps in s of the runs that are compared.
    stop
        Stop time in s.
    accuracy
        Wanted of the outputs, in shares of their ranges.
    variables
        The compared outputs by `unit.variable`.
    internal
        What can be refined inside the FMUs.

    Raises
    ------
    SimulationError
        When no algorithm makes a run.
    """
    begin, reasons = clock.process_time(), list[str]()
    found: list[tuple[CoupledReference, _Made]] = []
    for algorithm in ALGORITHMS:
        search = _Search(fmus, algorithm, steps, stop, accuracy, variables, internal)
        try:
            with muted():
                made = search.run(begin + SECONDS)
        except (InputError, SimulationError) as error:
            reasons.append(f"{algorithm}: {error}")
            continue
        found.append(made)
        if not made[0].doubt:
            break
    if not found:
        raise SimulationError(f"there is no reference; no coupled run with small steps succeeds: {'; '.join(reasons)}")
    reference, last = min(found, key=_doubts)
    return replace(reference, cpu_seconds=clock.process_time() - begin), last.result, last.outputs, last.fmus


def _doubts(found: tuple[CoupledReference, _Made]) -> tuple[bool, float]:
    """Return what orders references, the best first."""
    return bool(found[0].doubt), found[0].worst_uncertainty


class _Search:
    """The runs of one algorithm, whose step is halved; arguments as for `coupled_reference`."""

    def __init__(
        self,
        fmus: CoupledFmus,
        algorithm: str,
        steps: Sequence[float],
        stop: float,
        accuracy: float,
        variables: Mapping[str, Variable],
        internal: InternalSteps,
    ) -> None:
        self._fmus, self._algorithm, self._stop, self._accuracy = fmus, algorithm, stop, accuracy
        self._variables, self._internal = variables, internal
        self._finest = min(steps)
        self._aligned = all(divides(self._finest, step) for step in steps)

    def run(self, until: float) -> tuple[CoupledReference, _Made]:
        """Halve the step until the error is small, or until a processor time in s; see `coupled_reference`."""
        before: _Made | None = None
        last: dict[str, float] = {}
        best: tuple[CoupledReference, _Made] | None = None
        worse = 0  # halvings since the best
        failure: SimulationError | None = None
        for halvings in range(_MOST + 1):
            try:
                made = self._make(halvings)
            except CosimulationError as error:  # explicit coupling of stiff FMUs is stable with small steps only
                failure = error
                if before is not None:  # larger steps succeed: the FMUs refuse this one
                    break
                continue
            changes = {} if before is None else self._changes(made, before)
            if last:
                found = self._judged(made, changes, last)
                best, worse = (found, 0) if best is None or _doubts(found) <= _doubts(best) else (best, worse + 1)
                if not best[0].doubt and (best[0].worst_uncertainty <= SHARE * self._accuracy or worse == _WORSE):
                    break
            before, last = made, changes
            if clock.process_time() + 2.0 * made.seconds > until and best is not None:
                break
        if best is None:
            raise failure or SimulationError("its runs succeed with one step alone, so that their error is not known")
        return best

    def _make(self, halvings: int) -> _Made:
        """Make the run with the finest step halved so many times."""
        step = self._finest / 2**halvings
        rows = 2**halvings if self._aligned else 1
        fmus, internal_steps = self._internal.refined(self._fmus, self._finest, halvings)
        with fmus.run(
            self._algorithm, step=step, stop=self._stop, record=list(self._variables), record_every=rows
        ) as run:
            begin = clock.process_time()
            result = run.run()
            seconds = clock.process_time() - begin
        if result.end < self._stop - 0.5 * step:
            raise SimulationError(f"an FMU ends the run at {result.end:.6g} s")
        nominals = {name: variable.nominal or 1.0 for name, variable in self._variables.items()}
        outputs = ReferenceRun.of(result, nominals, {name: name for name in nominals})
        return _Made(fmus, internal_steps, step, result, outputs, seconds)

    def _changes(self, made: _Made, before: _Made) -> dict[str, float]:
        """Return the largest change of each output from one run to the next, in shares of its range.

        Where times of compared runs are none of the reference's, those between its points count too.
        """
        return made.outputs.errors(before.result) if self._aligned else before.outputs.errors(made.result)

    def _judged(
        self, made: _Made, changes: Mapping[str, float], last: Mapping[str, float]
    ) -> tuple[CoupledReference, _Made]:
        """Return the reference that a run is, by the last two changes of outputs."""
        output = max(changes, key=lambda name: changes[name])
        change, earlier = changes[output], max(last.values())
        ratio = earlier / change if change > 0.0 else _SECOND_ORDER
        converges = ratio >= _FALLING
        # Round-off and tolerances of solvers do not fall, but may be small.
        factor = 1.0 / (min(ratio, _SECOND_ORDER) - 1.0) if converges else max(change, earlier) / change
        uncertainty = {name: factor * each for name, each in changes.items()}
        doubt, worst = "", factor * change
        if not converges and worst > SHARE * self._accuracy:
            doubt = (
                f"the reference does not converge: with {self._algorithm}, halving the step from {2 * made.step:.3g} "
                f"to {made.step:.3g} s changes {output} by {percent(change)} of its range, and the halving before "
                f"changed an output by {percent(earlier)}"
            )
        elif worst > ENOUGH * self._accuracy:
            doubt = (
                f"the reference itself ({self._algorithm} with a step of {made.step:.3g} s) is good to about "
                f"{percent(worst)} of {output} only"
            )
        cost = made.seconds / (float(made.result.time[-1]) - float(made.result.time[0]))
        found = CoupledReference(
            self._algorithm,
            made.step,
            uncertainty,
            doubt,
            cost,
            internal_steps=made.internal_steps,
            untold=self._internal.untold,
        )
        return found, made
