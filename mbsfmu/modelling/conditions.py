"""Conditions on the variables of a run that its user should know of, and the sentences on where they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mbsfmu.modelling.data import Array


class Remark(NamedTuple):
    """A sentence on a run.

    Attributes
    ----------
    sentence
        What happened, and when.
    doubtful
        Whether a real machine would hardly run like this: then it is a warning.
    """

    sentence: str
    doubtful: bool = False


@dataclass(frozen=True)
class Condition:
    """A condition on variables of a system or part: it holds where their weighted sum exceeds a bound.

    Being a sum, it is the same in Python, for whole runs, and in the C of FMUs, as the run goes on.

    Attributes
    ----------
    happens
        What happens where it holds: "cylinder 'lift' reaches its extended end stop".
    weights
        Factors by the names of variables and parameters.
    bound
        What the sum exceeds where the condition holds.
    lasts
        Whether it lasts from a time on, and does not happen at one.
    extent
        Continuation on how far it went, for runs that are over, with `{value}`, the first variable where the sum is
        greatest, or `{most}`, the greatest sum.
    advice
        Continuation on what it means, or what helps.
    doubtful
        Whether a real machine would hardly run like this: then it is a warning.
    numbers
        Values in the data of those names that are parameters.
    """

    happens: str
    weights: Mapping[str, float]
    bound: float = 0.0
    lasts: bool = False
    extent: str = ""
    advice: str = ""
    doubtful: bool = False
    numbers: Mapping[str, float] = field(default_factory=dict)

    def renamed(self, name_of: Callable[[str], str]) -> Condition:
        """Return the same condition with other names."""
        weights = {name_of(name): factor for name, factor in self.weights.items()}
        return replace(self, weights=weights, numbers={name_of(name): value for name, value in self.numbers.items()})

    def of(self, owner: str) -> Condition:
        """Return the condition of an owner's part, by the names that it has in the owner's system."""
        return self.renamed(lambda name: f"{owner}.{name}")

    @property
    def before_time(self) -> str:
        """The sentence up to the time in s."""
        return f"{self.happens} {'from' if self.lasts else 'at'} t = "

    @property
    def after_time(self) -> str:
        """The sentence behind the time in s, but for its extent."""
        return f" s{' on' if self.lasts else ''}"

    def remark(self, time: float | None, values: Array, sums: Array) -> Remark:
        """Return the remark on a run, or on a state at rest.

        Parameters
        ----------
        time
            When it held first, in s; None of a state.
        values, sums
            Values of the first variable, and weighted sums, shape (k,).
        """
        worst = int(sums.argmax())
        when = "" if time is None else f" {'from' if self.lasts else 'at'} t = {time:.6g}{self.after_time}"
        extent = self.extent.format(value=float(values[worst]), most=float(sums[worst]))
        return Remark(f"{self.happens}{when}{extent}{self.advice}", self.doubtful)


def remarks(
    conditions: Iterable[Condition], times: Array | None, values_of: Callable[[str], Array | float | None]
) -> Iterator[Remark]:
    """Yield a remark on each condition that held somewhere in a run.

    Parameters
    ----------
    conditions
        The conditions; those on what was not recorded are left out.
    times
        Times of the record in s, shape (k,); None of a state at rest, k = 1.
    values_of
        Function of a name that returns its values, shape (k,), or the number that a parameter has; None where it is
        not known.
    """
    for condition in conditions:
        found = ((name, values_of(name)) for name in condition.weights)
        known = {name: condition.numbers.get(name) if value is None else value for name, value in found}
        values = [np.atleast_1d(value) for value in known.values() if value is not None]
        if len(values) < len(known):
            continue
        sums = sum(
            (factor * value for factor, value in zip(condition.weights.values(), values, strict=True)), np.zeros(1)
        )
        holds = sums > condition.bound
        if holds.any():
            time = None if times is None else float(times[holds.argmax()])
            yield condition.remark(time, np.broadcast_to(values[0], sums.shape), sums)
