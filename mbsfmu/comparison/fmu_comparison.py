"""Comparison runs of coupled FMUs that have no monolithic model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.base.patterns import means, nearest
from mbsfmu.comparison.comparison import Comparison, ComparisonInterrupted
from mbsfmu.comparison.comparison_options import ComparisonOptions
from mbsfmu.comparison.cost import observed_order
from mbsfmu.comparison.coupled_fmus import CoupledFmus
from mbsfmu.comparison.coupled_reference import CoupledReference, coupled_reference
from mbsfmu.comparison.coupled_runs import coupled_runs
from mbsfmu.comparison.internal_steps import InternalSteps
from mbsfmu.comparison.reference import ReferenceRun
from mbsfmu.comparison.tight import TightRun
from mbsfmu.cosim import CosimulationResult, CouplingOptions
from mbsfmu.cosim.coupling.algorithms import parted
from mbsfmu.cosim.joints.joint_equations import check_algorithm
from mbsfmu.modelling.variables import Variable

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
