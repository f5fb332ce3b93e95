"""Cost of accuracy: observed orders, and the least expensive setting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mbsfmu.comparison.coupled_reference import CoupledReference
from mbsfmu.comparison.run import Run
from mbsfmu.comparison.tight import TightRun
from mbsfmu.comparison.timing import RESOLUTION, cheapest_runs
from mbsfmu.cosim.coupling.algorithms import parted
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.modelling.ranges import percent

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
