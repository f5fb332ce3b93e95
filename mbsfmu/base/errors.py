"""What can go wrong, told in one sentence."""

from __future__ import annotations

from typing import Self


class InputError(ValueError):
    """The call or the input is wrong: the sentence names the thing, the value and what is allowed."""


class SimulationError(RuntimeError):
    """The work ran and failed: the sentence names the time and what did not hold."""


class LoopsOpenError(SimulationError):
    """A closed loop has come open: what follows cannot be trusted, and smaller steps from there do not mend it."""

    @classmethod
    def of(cls, joint: str, gap: str, remedy: str) -> Self:
        """Return the error for a loop equation's name, its violation with its unit, and what to do."""
        return cls(f"the loop has come open by {gap} at joint {joint}; {remedy}")

    def at(self, time: float) -> Self:
        """Return the error with the time in s at which it was found."""
        return type(self)(f"at t = {time:.9g} s {self}")
