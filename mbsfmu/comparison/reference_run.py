"""Reference runs with bounded errors: of a model, and of coupled FMUs without one."""

from __future__ import annotations

import logging
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.repeated_warnings import muted
from mbsfmu.base.times import SAME_TIME
from mbsfmu.comparison.run import CoupledFmus, ReferenceRun
from mbsfmu.cosim import Cosimulation, CosimulationError, CosimulationResult
from mbsfmu.formulations.formulation import FORMULATIONS
from mbsfmu.integration.rosenbrock import RODAS5P
from mbsfmu.modelling.parameters import percent
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variable_table import STEP
from mbsfmu.system_model.coupled_model import CoupledModel
from mbsfmu.system_model.model_simulation import formulation_of

_TOLERANCE_SHARE = 1e-2
"""Tolerance of solvers that choose their steps in refined runs, in shares of the usual one."""


@dataclass(frozen=True)
class InternalSteps:
    """What can be refined inside coupled FMUs.

    Attributes
    ----------
    steps
        By FMU, the parameter for its largest internal step, in s.
    tolerance
        Relative tolerance of the refined solvers that choose their steps; None where it stays.
    untold
        FMUs whose errors cannot be told from those of coupling.
    """

    steps: Mapping[str, float] = field(default_factory=dict)
    tolerance: float | None = None
    untold: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: Cosimulation) -> Self:
        """Return those of the FMUs of a run at its start.

        FMUs for co-simulation have them that have the parameter `solver.step`, as ours do. Tolerances are only
        tightened where that changes no FMU of other tools, which have nothing to be refined.
        """
        instances = {member.instance.name: member.instance for member in run.coupling.members}
        steps = {
            name: float(run[f"{name}.{STEP.name}"])
            for name, instance in instances.items()
            if not instance.is_exchanged and _is_step(instance.variables.get(STEP.name))
        }
        others = [name for name, instance in instances.items() if name not in steps and not instance.is_exchanged]
        if others:
            exchanged = [name for name, instance in instances.items() if instance.is_exchanged]
            return cls(steps, None, tuple(sorted(others + exchanged)))
        usual = [instance.suggested_tolerance for instance in instances.values()]
        given = run.options.unit_tolerance
        least = given if given is not None else min((each for each in usual if each is not None), default=None)
        return cls(steps, None if least is None else _TOLERANCE_SHARE * least)

    @property
    def are_told(self) -> bool:
        """Whether errors of any FMU are told from those of coupling."""
        return bool(self.steps) or self.tolerance is not None

    def refined(self, fmus: CoupledFmus, finest: float, halvings: int) -> tuple[CoupledFmus, dict[str, float]]:
        """Return the FMUs with refined internal steps, and these by FMU in s.

        Parameters
        ----------
        fmus
            The FMUs.
        finest
            Communication step in s, at which internal steps end.
        halvings
            How often the internal steps are halved.
        """
        steps = {name: min(step, finest) / 2**halvings for name, step in self.steps.items()}
        parameters = {**fmus.parameters, **{f"{name}.{STEP.name}": step for name, step in steps.items()}}
        tightened = {} if self.tolerance is None else {"unit_tolerance": self.tolerance}
        return replace(fmus, parameters=parameters, coupling={**fmus.coupling, **tightened}), steps


def _is_step(variable: Variable | None) -> bool:
    """Return whether a variable is the parameter of an internal step."""
    return variable is not None and variable.causality is Causality.PARAMETER and variable.unit == STEP.unit


SHARE = 0.01
"""Fraction of the wanted accuracy: first tolerance, and allowed difference of two reference runs."""
FINER = 0.1
"""Tolerance of the second of two runs relative to the first."""
_EXPLICIT = "rk45"  # native, where there are no derivatives of the rates
_DECIDED = 1.25  # times as many steps with the smaller tolerance; 1.6 where it decides on each of them
_MOST_RUNS = 9
_LEAST_TOLERANCE = 1e-12
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class TightRun:
    """A run with errors negligible relative to the wanted accuracy, or the reason why there is none.

    Attributes
    ----------
    formulation, solver, tolerance
        How it was made; empty and zero where there is none. The tolerance is relative and absolute.
    uncertainty
        By how much each output differs from a run with ten times the tolerance, in shares of its range: an upper bound
        of its error, which falls with the tolerance. Where tolerances decide on few steps, the sum of those of all
        steps at least.
    doubt
        A sentence where it is missing, or less certain than it should be.
    cpu_seconds
        Processor time of all runs it took.
    outputs
        The outputs by the grid's step in s.
    """

    formulation: str = ""
    solver: str = ""
    tolerance: float = 0.0
    uncertainty: Mapping[str, float] = field(default_factory=dict)
    doubt: str = ""
    cpu_seconds: float = 0.0
    outputs: Mapping[float, ReferenceRun] = field(default_factory=dict, repr=False)

    @property
    def worst_uncertainty(self) -> float:
        """The largest uncertainty of all outputs."""
        return max(self.uncertainty.values(), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the data that `compare --json` writes of it."""
        return {name: value for name, value in asdict(self).items() if name != "outputs"}

    def on(self, step: float) -> ReferenceRun | None:
        """Return the outputs on a grid with all times of another grid of a given step in s."""
        return next((each for own, each in self.outputs.items() if divides(own, step)), None)


def tight_run(
    model: CoupledModel, formulation: str, steps: Sequence[float], accuracy: float, monolithic: ReferenceRun
) -> TightRun:
    """Make runs with decreasing tolerance until two agree to a hundredth of the wanted accuracy.

    Parameters
    ----------
    model
        What is run, as one system.
    formulation
        What is taken where the usual one of the model cannot be: `double-step`, which keeps loops closed, or that of
        large models.
    steps
        Steps in s of the grids on which outputs are wanted.
    accuracy
        In shares of the outputs' ranges.
    monolithic
        The outputs whose ranges count, and the run's end.
    """
    begin, reasons = clock.process_time(), list[str]()
    for name, solver in _candidates(formulation_of(model), formulation):
        try:
            made = _agreeing(model.simulation(formulation=name, solver=solver), steps, accuracy, monolithic)
        except (InputError, SimulationError) as error:
            reasons.append(f"{name} with {solver}: {error}")
            continue
        tolerance, uncertainty, outputs = made
        doubt = _doubt(uncertainty, tolerance, accuracy)
        return TightRun(name, solver, tolerance, uncertainty, doubt, clock.process_time() - begin, outputs)
    doubt = f"what the step costs is not known, for no adaptive solver makes the run ({'; '.join(reasons)})"
    return TightRun(doubt=doubt, cpu_seconds=clock.process_time() - begin)


def _candidates(usual: str, formulation: str) -> Iterator[tuple[str, str]]:
    """Yield formulations and adaptive solvers, the best first; formulations differ by round-off only."""
    kind = FORMULATIONS.find(formulation)
    yield usual, RODAS5P.name
    if formulation == usual:
        return
    if kind.has_stages:
        yield formulation, RODAS5P.name
    if kind.has_explicit_form and not kind.has_jacobian:  # some systems have no stages with it
        yield formulation, _EXPLICIT


def _agreeing(
    simulation: Simulation, steps: Sequence[float], accuracy: float, monolithic: ReferenceRun
) -> tuple[float, dict[str, float], dict[float, ReferenceRun]]:
    """Return the last tolerance, its difference from the previous one, and its outputs by grid.

    Two runs with the same steps, as with halts closer than the tolerance requires, agree for any error: tolerances are
    decreased until the steps differ.
    """
    tolerance, before, failure = min(SHARE * accuracy, SHARE), None, ""
    for number in range(_MOST_RUNS):
        simulation.set_tolerance(tolerance)
        last = number == _MOST_RUNS - 1 or tolerance <= _LEAST_TOLERANCE
        try:
            made = _Made({step: _recorded(simulation, step, monolithic) for step in _finest(steps)}, simulation)
        except SimulationError as error:  # loops that drift open by the tolerance do not by a smaller one
            before, failure = None, str(error)
        else:
            decided = before is not None and made.steps >= _DECIDED * before.steps
            if before is not None and (last or decided):
                uncertainty = _difference(made.outputs, before.outputs)
                if last or max(uncertainty.values(), default=0.0) <= SHARE * accuracy:
                    least = 0.0 if decided else made.steps * tolerance
                    return tolerance, {name: max(each, least) for name, each in uncertainty.items()}, made.outputs
            before = made
        if last:
            break
        tolerance = max(FINER * tolerance, _LEAST_TOLERANCE)
    raise SimulationError(failure)


class _Made:
    """A completed run: outputs by grid, and number of steps."""

    def __init__(self, outputs: dict[float, ReferenceRun], simulation: Simulation) -> None:
        self.outputs, self.steps = outputs, simulation.statistics.steps


def _recorded(simulation: Simulation, step: float, monolithic: ReferenceRun) -> ReferenceRun:
    with muted():  # what is to be said of the machine is said of the run that is measured, and its tolerances are ours
        result = simulation.run(float(monolithic.time[-1]), output_step=step)
    return replace(monolithic, time=result.time, outputs=monolithic.same_of(result, simulation.exposed.by_system))


def _difference(outputs: Mapping[float, ReferenceRun], others: Mapping[float, ReferenceRun]) -> dict[str, float]:
    """Return the largest difference of each output of two runs, relative to its range."""
    result = dict[str, float]()
    for step, reference in outputs.items():
        others_outputs = others[step].outputs
        shares = reference.relative({name: each - others_outputs[name] for name, each in reference.outputs.items()})
        result = {name: max(result.get(name, 0.0), share) for name, share in shares.items()}
    return result


def _doubt(uncertainty: Mapping[str, float], tolerance: float, accuracy: float) -> str:
    output = max(uncertainty, key=lambda name: uncertainty[name], default="")
    if not output or uncertainty[output] <= SHARE * accuracy:
        return ""
    return (
        f"the tight run itself is certain to {percent(uncertainty[output])} only: by so much {output} differs "
        f"between tolerances of {tolerance / FINER:.1g} and {tolerance:.1g}"
    )


def _finest(steps: Sequence[float]) -> list[float]:
    """Return a minimal subset of steps in s of which all are multiples."""
    finest = list[float]()
    for step in sorted(steps):
        if not any(divides(each, step) for each in finest):
            finest.append(step)
    return finest


def divides(step: float, other: float) -> bool:
    """Return whether a step in s is a multiple of another one."""
    count = round(other / step)
    return count > 0 and abs(other - count * step) <= SAME_TIME * step


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
class _CoupledRun:
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
    found: list[tuple[CoupledReference, _CoupledRun]] = []
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


def _doubts(found: tuple[CoupledReference, _CoupledRun]) -> tuple[bool, float]:
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

    def run(self, until: float) -> tuple[CoupledReference, _CoupledRun]:
        """Halve the step until the error is small, or until a processor time in s; see `coupled_reference`."""
        before: _CoupledRun | None = None
        last: dict[str, float] = {}
        best: tuple[CoupledReference, _CoupledRun] | None = None
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

    def _make(self, halvings: int) -> _CoupledRun:
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
        return _CoupledRun(fmus, internal_steps, step, result, outputs, seconds)

    def _changes(self, made: _CoupledRun, before: _CoupledRun) -> dict[str, float]:
        """Return the largest change of each output from one run to the next, in shares of its range.

        Where times of compared runs are none of the reference's, those between its points count too.
        """
        return made.outputs.errors(before.result) if self._aligned else before.outputs.errors(made.result)

    def _judged(
        self, made: _CoupledRun, changes: Mapping[str, float], last: Mapping[str, float]
    ) -> tuple[CoupledReference, _CoupledRun]:
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
