"""Base of iterated coupling: a step is repeated until the interface values agree."""

from __future__ import annotations

from abc import abstractmethod
from ctypes import POINTER, c_double, c_ssize_t

import numpy as np

from mbsfmu.cosim.compiled.layout import IterationTable
from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.interface import Interface, InterfaceError
from mbsfmu.cosim.coupling.sweeps import START, Algorithm, Settings, predicted
from mbsfmu.cosim.fmus.fmu_instance import Floats


class Iterated(Algorithm):
    """Base of algorithms that repeat each step until inputs run to what the outputs become.

    Attributes
    ----------
    table
        Numbers and arrays of the iteration; compiled code works on the same.
    trial
        What inputs run to at the end of the step, shape (outputs,).
    residual, last, scales
        What the last sweep reached minus the trial, the same of the sweep before, and the scale of each interface
        value; shape (m,).
    """

    CHANGES = (*Algorithm.CHANGES, "_interface")
    iterates = True

    def __init__(self, exchange: CouplingData, settings: Settings) -> None:
        super().__init__(exchange, settings)
        self._interface = Interface(exchange, settings.order if self.in_turn else ())
        count = len(self._interface.columns)
        self.trial = np.zeros(len(exchange.names))
        self.residual, self.last, self.scales = np.zeros(count), np.zeros(count), np.ones(count)
        self.table = IterationTable(
            columns=self._interface.columns.ctypes.data_as(POINTER(c_ssize_t)),
            count=count,
            tolerance=settings.iteration_tolerance,
            maximum=settings.maximum_iterations,
            trial=pointer_to(self.trial),
            residual=pointer_to(self.residual),
            last=pointer_to(self.last),
            scales=pointer_to(self.scales),
            magnitudes=pointer_to(self._interface.magnitudes),
        )

    def _advance(self, history: OutputHistory, time: float, step: float) -> Floats:
        interface, columns = self._interface, self._interface.columns
        self.trial[:] = predicted(history, step)
        self.exchange.save(START, time)
        self._begin()
        for iteration in range(self.settings.maximum_iterations):
            if iteration:
                self._return()
            polynomials = self._complete(history.interpolate(step, self.trial), time, step)
            found = self._sweep(history, polynomials, time, step)
            np.subtract(found[columns], self.trial[columns], out=self.residual)
            self.scales[:] = interface.scales(found[columns])
            size = float(np.max(np.abs(self.residual) / self.scales, initial=0.0))
            if size <= self.settings.iteration_tolerance:
                self._converged()
                interface.take(found)
                return found.copy()
            self.trial[columns] += self._correction(iteration, size, history, time, step)
        raise self.failure(time)

    def failure(self, time: float) -> InterfaceError:
        """Return the error of the step from a time in s."""
        return self._interface.failure(time, self.residual, self.scales, self.settings.maximum_iterations)

    @abstractmethod
    def _sweep(self, history: OutputHistory, polynomials: Floats, time: float, step: float) -> Floats:
        """Let all members step once; return the outputs, which the next sweep overwrites."""

    def _begin(self) -> None:
        """Begin a step."""

    @abstractmethod
    def _correction(self, iteration: int, size: float, history: OutputHistory, time: float, step: float) -> Floats:
        """Return what is added to the interface values of the trial, shape (m,).

        Parameters
        ----------
        iteration
            Number of sweeps of this step before the last one.
        size
            Largest residual as a share of its scale.
        history, time, step
            As for `step`.
        """

    def _converged(self) -> None:
        """End a step."""


def pointer_to(array: Floats) -> object:
    """Return a pointer to an array, which has to be kept alive."""
    return array.ctypes.data_as(POINTER(c_double))
