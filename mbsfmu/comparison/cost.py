"""Cost of accuracy: interleaved timing, observed orders, and the least expensive setting."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from mbsfmu.base.repeated_warnings import muted
from mbsfmu.comparison.reference_run import CoupledReference, TightRun
from mbsfmu.comparison.run import Run, Task, run_timed
from mbsfmu.cosim.coupling.algorithms import parted
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.modelling.parameters import percent

RESOLUTION = 1.1
"""Ratio of costs below which they are equal. The ratio of the same two settings differs by 1 to 3 % between processes,
by memory layout, independent of the repetitions.
"""
LEAST, MOST = 6, 25
"""Numbers of repetitions of each run. Six are the fewest whose extremes enclose the median with 95 %."""
SECONDS = 5.0
"""Processor time in s for repetitions of short runs."""
_CONFIDENCE = 0.95
_BEYOND = 3.0
"""Cost ratio to the least expensive run above which runs are not repeated: parallel runs interact by less."""


@dataclass(frozen=True)
class Repetitions:
    """Runs to repeat in turn.

    Attributes
    ----------
    tasks
        The runs.
    seconds
        Processor time in s that this may take; each run is made once in any case.
    """

    tasks: Sequence[Task]
    seconds: float


def accurate_runs(runs: Sequence[Run], accuracy: float) -> list[Run]:
    """Return the runs with an error of at most `accuracy`, the least expensive first."""
    good = [run for run in runs if run.judged is not None and run.judged <= accuracy and run.costs]
    return sorted(good, key=lambda run: median(run.costs))


def cheapest_runs(runs: Sequence[Run], accuracy: float) -> list[Run]:
    """Return the least expensive runs with an error of at most `accuracy`, and equal ones; the most accurate first.

    As cheap is a run whose cost is not larger with 95 % confidence, by the quotients of repetitions made one after the
    other, or larger by less than `RESOLUTION`. No run where none is accurate enough.
    """
    good = accurate_runs(runs, accuracy)
    tied = [run for run in good if not costs_more(run.costs, good[0].costs)]
    return sorted(tied, key=lambda run: run.judged or 0.0)


def contenders(runs: Sequence[Run], accuracy: float) -> list[Run]:
    """Return the candidates of the least expensive accurate run, from parallel runs."""
    good = accurate_runs(runs, accuracy)
    return [run for run in good if median(run.costs) <= _BEYOND * median(good[0].costs)]


def costs_more(costs: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether a run costs more than another one, from interleaved repetitions."""
    return _bounds(costs, others)[0] > RESOLUTION


def repeated_costs(repetitions: Repetitions) -> list[list[float]]:
    """Return the cost of steps of each run in its repetitions, in s of processor time per simulated second.

    All runs are repeated in turn, so that what else the machine does meets all of them alike. Those that are dearer
    than the cheapest one are left out from then on. It ends where all others are known to be as cheap, after `MOST`
    repetitions, or where the next ones would take too long.
    """
    costs: list[list[float]] = [[] for _ in repetitions.tasks]
    if not costs:
        return costs
    racing, begin = list(range(len(costs))), clock.process_time()
    with muted():
        for done in range(1, MOST + 1):
            for index in racing:
                costs[index].append(run_timed(repetitions.tasks[index])[1].stepping)
            cheapest = min((costs[index] for index in racing), key=median)
            if done >= LEAST:
                racing = [index for index in racing if not costs_more(costs[index], cheapest)]
                if all(_bounds(costs[index], cheapest)[1] <= RESOLUTION for index in racing):
                    break
            if (clock.process_time() - begin) * (done + 1) / done > repetitions.seconds:
                break
    return costs


def _bounds(costs: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """Return between which bounds the median quotient of costs lies with 95 % confidence; by the extremes of few.

    By order statistics, whatever the distribution: the number of quotients below the median is binomial (Conover,
    Practical Nonparametric Statistics, 3.2).
    """
    quotients = sorted(one / other for one, other in zip(costs, others, strict=False))
    count = len(quotients)
    left_out, outside = 0, 2.0 * 0.5**count
    while (outside := outside + 2.0 * math.comb(count, left_out + 1) * 0.5**count) <= 1.0 - _CONFIDENCE:
        left_out += 1
    return quotients[left_out], quotients[-1 - left_out]


ITERATING = "newton-linear"
"""The algorithm that couples stiff FMUs with the largest steps."""


ROUND_OFF = 1e-9
"""Relative errors below this are round-off or iteration errors, and follow no power of the step."""


def observed_order(runs: Sequence[Run], least: float = 0.0) -> float | None:
    """Return the slope of log(error) over log(step), by least squares over runs without divergence.

    None if fewer than two steps have errors above round-off and above the least error that the reference can tell.
    """
    points = [(run.step, run.worst_error) for run in runs if (run.worst_error or 0.0) > max(ROUND_OFF, least)]
    if len({step for step, _ in points}) < 2:
        return None
    steps, errors = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(steps, errors, 1)[0])


def nothing_moves(reference: Mapping[str, Any], label: str) -> str:
    """Return the message that no output moves, so that all settings are equal."""
    return (
        f"Nothing moves: no output of the {label} run changes up to {reference['stop']:.6g} s, so that there is no "
        "cheapest setting and no order; take a later --stop (stop), or inputs that move the machine."
    )


def verdict(
    runs: Sequence[Run], order: Mapping[str, float | None], accuracy: float, reference: Mapping[str, Any]
) -> str:
    """Return the least expensive setting for an accuracy in one sentence, or the needs of the best one.

    Parameters
    ----------
    runs, order
        All runs, and the observed order by algorithm.
    accuracy
        Largest error wanted, relative to the range of an output.
    reference
        Summary of the monolithic run with its `cost`, or that of the reference run of FMUs with its `algorithm`.
    """
    wanted = f"an error of at most {percent(accuracy, 3)}"
    cheapest = cheapest_runs(runs, accuracy)
    if cheapest:
        loading = max(run.loading_seconds or 0.0 for run in cheapest)
        beside = "" if "algorithm" in reference else f", beside {_time(reference['cost'])} of the monolithic run"
        return f"For {wanted} {_named(cheapest)}{beside}; loading the FMUs takes {_time(loading)} once."
    left = [run for run in runs if run.judged is not None]
    if not left:
        return f"No run reaches {wanted}: all of them diverge; {remedy(runs)}."
    nearest = min(left, key=lambda run: run.judged or 0.0)
    error = nearest.judged or 0.0
    sentence = f"No run reaches {wanted}; nearest comes {_setting(nearest)} and {percent(error, 3)}"
    alone = _worst(reference)[1]
    if nearest.worst_total is not None and alone > accuracy:
        return f"{sentence}; the internal step alone costs {percent(alone, 3)}, so that smaller ones are needed first."
    inside = nearest.worst_inside
    if inside is not None and inside > accuracy:
        return (
            f"{sentence}; the internal steps of the FMUs alone cost {percent(inside, 3)}, so that smaller ones "
            "(solver.step) are needed first."
        )
    slope = order.get(nearest.algorithm)
    if slope is None or slope < 0.5:
        return f"{sentence}."
    return (
        f"{sentence}; by its observed order it takes a step of about {_needed(nearest.step, error, accuracy, slope)} s."
    )


def remedy(runs: Sequence[Run]) -> str:
    """Return advice if every run diverges.

    One exchange per step delays the interaction of stiff parts; Newton's iteration repeats the step until both agree.
    """
    steps = [run.step for run in runs]
    smaller = f"steps below {min(steps):.3g} s" if steps else "smaller steps"
    if any(parted(run.algorithm)[0] == parted(ITERATING)[0] for run in runs):
        return f"take {smaller}; --stability (stability=True) finds how small they have to be"
    return (
        f"take --algorithms {ITERATING} (algorithms=['{ITERATING}']), which repeats a step until the FMUs agree, as "
        f"stiff ones need it, or {smaller}"
    )


def step_verdict(reference: Mapping[str, Any], tight: TightRun) -> str:
    """Return the error of a monolithic run's step in one sentence, or why it is unknown.

    Parameters
    ----------
    reference
        Summary of the monolithic run; `error` has how far its outputs are from the tight run.
    tight
        The tight run.
    """
    if not tight.solver:
        return f"{tight.doubt[:1].upper()}{tight.doubt[1:]}." if tight.doubt else ""
    output, error = _worst(reference)
    if not output:
        return ""
    of = f"{output}, of its magnitude, for it does not move" if output in reference.get("still", ()) else output
    doubt = f"; {tight.doubt}" if tight.doubt else f", which is right to {percent(tight.worst_uncertainty, 1)}"
    return (
        f"The step of {reference['step']:.3g} s by itself costs {percent(error, 3)} ({of}), measured against "
        f"{tight.formulation} with {tight.solver} and a tolerance of {tight.tolerance:.1g}{doubt}."
    )


def reference_verdict(reference: CoupledReference) -> str:
    """Return how good the reference of FMUs is, and whether errors inside FMUs are told from those of coupling."""
    output = max(reference.uncertainty, key=lambda name: reference.uncertainty[name])
    return (
        f"The reference is {reference.algorithm} with a step of {reference.step:.3g} s; it is itself good to about "
        f"{percent(reference.worst_uncertainty, 1)} ({output}), by halving its step. {_told_apart(reference)}"
    )


def _told_apart(reference: CoupledReference) -> str:
    """Return whether errors inside FMUs are told from those of coupling, in one sentence or two."""
    sentences = []
    told = [f"{step:.3g} s in {name}" for name, step in reference.internal_steps.items()]
    if told or not reference.untold:
        steps = f" ({names_of(told)})" if told else ""
        sentences.append(
            f"The error of coupling is that of the same run with the internal steps of the reference{steps}; what the "
            "usual ones add is the error inside the FMUs."
        )
    if reference.untold:
        names, have = names_of(list(reference.untold)), "has" if len(reference.untold) == 1 else "have"
        sentences.append(
            f"Errors inside {names}, which {have} no parameter solver.step, cannot be told from those of coupling: "
            "they count as such where internal steps end with communication steps; others are not seen."
        )
    return " ".join(sentences)


def same_runs(same: Mapping[str, str]) -> str:
    """Return which algorithms make the runs of others, in one sentence; empty without them."""
    if not same:
        return ""
    each = names_of([f"{name} that of {other}" for name, other in same.items()])
    return f"Joints alone couple the FMUs: to the last bit, the run of {each}, which is listed."


def _named(cheapest: Sequence[Run]) -> str:
    """Return the least expensive setting, or all equal ones, the most accurate first."""
    unit = "of processor time per simulated second"
    if len(cheapest) == 1:
        (run,) = cheapest
        return f"the cheapest is {_setting(run)}: {percent(run.judged or 0.0, 3)} for {_time(run.cost)} {unit}"
    each = [f"{_setting(run)} ({percent(run.judged or 0.0, 3)} for {_time(run.cost)})" for run in cheapest]
    return (
        f"the cheapest are {', '.join(each[:-1])} and {each[-1]} {unit}, a tie: their costs differ by less than "
        f"{percent(RESOLUTION - 1)}, or by less than repetitions tell"
    )


def _setting(run: Run) -> str:
    return f"{run.algorithm} with a step of {run.step:.3g} s"


def _time(seconds: float | None) -> str:
    seconds = seconds or 0.0
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"


def _worst(reference: Mapping[str, Any]) -> tuple[str, float]:
    """Return the output with the largest step error, and this error; empty and zero if unknown."""
    errors = {name: error for name, error in reference.get("error", {}).items() if error is not None}
    output = max(errors, key=lambda name: errors[name], default="")
    return output, errors.get(output, 0.0)


def _needed(step: float, error: float, accuracy: float, order: float) -> str:
    return f"{rounded_down(step * (accuracy / error) ** (1.0 / order)):.2g}"


def rounded_down(step: float) -> float:
    """Return a step in s rounded down to two digits: a rounded one shall not be larger."""
    if step <= 0.0:
        return 0.0
    digit = 10.0 ** (math.floor(math.log10(step)) - 1.0)
    return float(f"{math.floor(step / digit * (1.0 + 1e-9)) * digit:.2g}")
