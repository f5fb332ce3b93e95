"""What rewards and ends of episodes are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mbsfmu.simulation.run_result import MachineSignals
from mbsfmu.tracing.workspace import Floats


class SignalValues(MachineSignals):
    """Values of the outputs of machines at one point of each.

    Parameters
    ----------
    like
        Signals of the same names.
    values
        Shape (n, number of signals).
    """

    def __init__(self, like: MachineSignals, values: Floats) -> None:
        self.names, self._units, self._by_system = like.names, like._units, like._by_system
        self._values = values

    @property
    def values_by_column(self) -> Floats:
        """All values, shape (n, number of signals)."""
        return self._values


@dataclass(frozen=True)
class Transition:
    """A step of a learning environment, in all machines.

    Attributes
    ----------
    before, after
        Outputs by their names, each of shape (n,); behind the step NaN of machines that have failed in it.
    actions
        Values of the inputs by their names, each of shape (n,).
    time
        Time in s since the start of the episode, behind the step; shape (n,).
    """

    before: SignalValues
    after: SignalValues
    actions: Mapping[str, Floats]
    time: Floats
