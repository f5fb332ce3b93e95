"""Course of a system in a run, and remarks on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from mbsfmu.modelling.fields import Array


class Remark(NamedTuple):
    """A sentence on what happened in a run.

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
class Course:
    """Recorded variables of a system, or of one of its parts, in a run.

    Attributes
    ----------
    times
        In s, shape (k,).
    values_of
        Function of a variable's whole name, which returns its values, shape (k,), or those of what drives it; None
        where they are not recorded.
    numbers
        Parameters that are not as in the data, by whole name.
    prefix
        What the names here have before them in whole names: empty, or `part.`.
    """

    times: Array
    values_of: Callable[[str], Array | None]
    numbers: Mapping[str, float]
    prefix: str = ""

    def __getitem__(self, name: str) -> Array | None:
        """Return the values of a variable; None where they are not recorded."""
        return self.values_of(self.prefix + name)

    def number(self, name: str, in_data: float) -> float:
        """Return the value of a parameter, which is that in the data unless the run had another one."""
        return self.numbers.get(self.prefix + name, in_data)

    def of(self, part: str) -> Course:
        """Return the course of a part."""
        return replace(self, prefix=f"{self.prefix}{part}.")

    def first(self, happened: Array) -> float | None:
        """Return the first time in s at which a condition of shape (k,) is true; None where it never is."""
        return float(self.times[happened.argmax()]) if happened.any() else None
