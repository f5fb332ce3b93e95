"""Inputs that are linear over a step, evaluated inside it."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_size_t, c_void_p

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.compiled.library import VariableBlock
from mbsfmu.cosim.fmus.library_instance import LibraryPort


class LinearInputs:
    """The Float64 inputs of a port, by values at the beginning of a step and slopes.

    Parameters
    ----------
    port
        The port.
    group
        Its variables as compiled code sees them; their buffer is one of their own from now on.
    length
        Of the buffer.

    Attributes
    ----------
    port, group
        As given.
    """

    def __init__(self, port: LibraryPort, group: VariableBlock, length: int) -> None:
        self.port, self.group = port, group
        self._buffer = np.zeros(length)
        group.buffer = self._buffer.ctypes.data
        places = np.array(group.places[: group.count])
        self._wanted = places >= 0
        self._chosen = places[self._wanted]
        dialect, counted = port.unit.dialect, (length,) if port.unit.dialect.counts else ()
        types = (c_void_p, c_void_p, c_size_t, c_void_p, *([c_size_t] * len(counted)))
        self._set: Callable[..., int] = port.unit.function(f"{dialect.prefix}Set{dialect.kinds[0][1]}", types)
        self._arguments = (port.unit.component, group.references, group.reference_count, group.buffer, *counted)

    def take(self, buffer: NDArray[np.float64]) -> None:
        """Take the elements of arrays that the port does not have from its buffer."""
        self._buffer[:] = buffer

    def set_after(self, time: float) -> int:
        """Set them to where they are a time in s after the beginning of the step; return the status."""
        chosen = self._chosen
        self._buffer[self._wanted] = self.port.values[chosen] + time * self.port.slopes[chosen]
        return self._set(*self._arguments)
