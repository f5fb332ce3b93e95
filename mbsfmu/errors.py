"""What can go wrong, told in one sentence."""

from __future__ import annotations


class InputError(ValueError):
    """The call or the input is wrong: the sentence names the thing, the value and what is allowed."""


class SimulationError(RuntimeError):
    """The work ran and failed: the sentence names the time and what did not hold."""
