"""The reference run: outputs with a bounded error, which gives the error of a step."""

from __future__ import annotations

import logging
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import SAME_TIME
from mbsfmu.comparison.reference import ReferenceRun
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.coupled.model_simulation import formulation_of
from mbsfmu.formulations.formulation import FORMULATIONS
from mbsfmu.integration.rosenbrock_methods import RODAS5P
from mbsfmu.modelling.ranges import percent
from mbsfmu.simulation.simulation import Simulation

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
