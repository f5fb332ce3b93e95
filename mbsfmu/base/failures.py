"""Failures of runs, apart from `errors`: the help of the command line is written before what models need is loaded."""

from __future__ import annotations

from typing import Self


class SimulationError(RuntimeError):
    """Failed run: the message names the time and the failed condition."""


class LoopsOpenError(SimulationError):
    """Constraint drift beyond its tolerance: later results are invalid, and smaller steps from there do not help."""

    @classmethod
    def of(cls, joint: str, gap: str, remedy: str) -> Self:
        """Return the error from a loop equation's name, its violation with unit, and the advice."""
        return cls(f"the loop has come open by {gap} at joint {joint}; {remedy}")

    def at(self, time: float) -> Self:
        """Return the error with its time in s."""
        return type(self)(f"at t = {time:.9g} s {self}")
