"""Levels of connections: each depends on lower levels, or is an algebraic loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.variables import Variable
from mbsfmu.systems.system import System, SystemContext

At = Callable[[int], SystemContext]
"""Returns the context of a part by its index; inputs of this and higher levels are zero in it."""


@dataclass(frozen=True)
class VariableConnection:
    """A connection between variables of two parts, by index.

    Attributes
    ----------
    source, target
        Indices of the parts.
    output
        Index in the readings of the source (outputs, coordinates, velocities, states, discrete states, accelerations,
        in this order).
    input
        Index of the target's input.
    """

    source: int
    output: int
    target: int
    input: int


class ConnectionLevel:
    """Connections whose values depend on inputs of lower levels.

    Parameters
    ----------
    wires
        The connections.

    Attributes
    ----------
    loop_iterates
        What is solved for by iteration, under the names of the inputs that take it.
    """

    loop_iterates: tuple[Variable, ...] = ()

    def __init__(self, wires: Sequence[VariableConnection]) -> None:
        self._wires = wires

    def values(self, parts: Sequence[System], at: At, loop_iterates: Array) -> list[tuple[VariableConnection, Array]]:  # noqa: ARG002
        """Return the values of the connections.

        Parameters
        ----------
        parts
            The systems.
        at
            Their instants.
        loop_iterates
            Values near those that are solved for, shape (number of guesses,); symbols stand for the solution itself.
        """
        readings = {source: _read(parts[source], at(source)) for source in {wire.source for wire in self._wires}}
        return [(wire, readings[wire.source][wire.output]) for wire in self._wires]


def _read(part: System, instant: SystemContext) -> Array:
    """Return all readings of a part."""
    outputs = part.evaluate_outputs(instant)
    moving = [instant.coordinates, instant.velocities, instant.states, instant.discrete, instant.accelerations]
    return np.concatenate([outputs, *moving])
