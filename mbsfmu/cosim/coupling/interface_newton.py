"""Iterated coupling by Newton's method on the interface."""

from __future__ import annotations

import logging
from typing import ClassVar

import numpy as np

from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.interface import Interface
from mbsfmu.cosim.coupling.sweeps import OF_ITERATIONS, START, Algorithm, Settings, predicted
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuError

logger = logging.getLogger(__name__)

_PERTURBATION = 1e-6  # of a scale; units solve their own equations to about 1e-10 of theirs
_SLOW = 0.3  # a Jacobian that shrinks the residual by less than this is worth a new one
_WORTH = 1e3  # changes below so many tolerances carry round-off, not curvature


class InterfaceNewton(Algorithm):
    """Solves G(z) − z = 0 for the interface values z at the end of the step.

    The Jacobian dG/dz has a block for each FMU: how its outputs at the end follow from where its inputs run to.
    It is found by differences, each FMU stepping alone from its saved state; or from the FMU's directional
    derivatives, which see what passes directly but not what the step integrates, of order h. Broyden's update
    keeps the Jacobian true over iterations and steps; it is made anew by differences where it converges slowly.
    (Interface Jacobians: Sicklinger et al. 2014, "Interface Jacobian-based co-simulation".)
    """

    CHANGES = (*Algorithm.CHANGES, "_interface", "_jacobian", "jacobians")
    iterates = True
    options: ClassVar[tuple[str, ...]] = (*OF_ITERATIONS, "jacobian", "threads")

    def __init__(self, exchange: CouplingData, settings: Settings) -> None:
        super().__init__(exchange, settings)
        self._interface = Interface(exchange)
        self._jacobian: Floats | None = None
        self._warned: set[str] = set()
        self.jacobians = 0

    def _advance(self, history: OutputHistory, time: float, step: float) -> Floats:
        interface, columns = self._interface, self._interface.columns
        trial = predicted(history, step)
        self.exchange.save(START, time)
        fresh = False
        change: Floats | None = None
        residual = last = scales = np.ones(0)
        size = 0.0
        for iteration in range(self.settings.maximum_iterations):
            if iteration:
                self._return()
            found = self._evaluate(history, trial, time, step).copy()
            residual = found[columns] - trial[columns]
            scales = interface.scales(found[columns])
            before, size = size, float(np.max(np.abs(residual) / scales, initial=0.0))
            if size <= self.settings.iteration_tolerance:
                interface.take(found)
                return found
            if self._jacobian is None and self.settings.jacobian == "directional":
                self._jacobian = self._from_units(history, trial, found, scales, time, step)
            elif self._jacobian is None or (not fresh and iteration > 1 and size > _SLOW * before):
                self._jacobian = self._by_differences(self.exchange.members, history, trial, found, scales, time, step)
                fresh = True
            elif change is not None:
                self._update(change, residual - last, scales)
            change, last = -self._solve(residual), residual
            trial[columns] += change
        raise interface.failure(time, residual, scales, self.settings.maximum_iterations)

    def _evaluate(self, history: OutputHistory, trial: Floats, time: float, step: float) -> Floats:
        polynomials = self._complete(history.interpolate(step, trial), time, step)
        return self._in_parallel(polynomials, time, step)

    def _solve(self, residual: Floats) -> Floats:
        assert self._jacobian is not None
        try:
            return np.asarray(np.linalg.solve(self._jacobian, residual), dtype=np.float64)
        except np.linalg.LinAlgError:
            return np.asarray(np.linalg.lstsq(self._jacobian, residual)[0], dtype=np.float64)

    def _update(self, change: Floats, difference: Floats, scales: Floats) -> None:
        """Return the Broyden update of the residual's Jacobian from the last change of the trial, scaled."""
        assert self._jacobian is not None
        weighted = change / scales**2
        squared = float(change @ weighted)
        if squared > (_WORTH * self.settings.iteration_tolerance) ** 2:
            self._jacobian += np.outer(difference - self._jacobian @ change, weighted) / squared

    # -- the Jacobian of the residual -------------------------------------------------------------------------

    def _by_differences(
        self,
        members: list[CoupledInstance],
        history: OutputHistory,
        trial: Floats,
        found: Floats,
        scales: Floats,
        time: float,
        step: float,
    ) -> Floats:
        """Return dG/dz − 1 with differences for some members, each stepping alone from its saved state."""
        columns = self._interface.columns
        self.jacobians += 1
        jacobian = -np.eye(len(columns))
        for member in members:
            rows = np.flatnonzero((columns >= member.place.start) & (columns < member.place.stop))
            if not len(rows):
                continue
            for index in np.flatnonzero(np.isin(columns, member.sources)):
                moved = trial.copy()
                moved[columns[index]] += _PERTURBATION * scales[index]
                member.instance.restore(START)
                polynomials = self._complete(history.interpolate(step, moved), time, step)
                member.advance(polynomials, None, time, step)
                reached = member.outputs.read()[columns[rows] - member.place.start]
                jacobian[rows, index] += (reached - found[columns[rows]]) / (_PERTURBATION * scales[index])
        return jacobian

    def _from_units(
        self, history: OutputHistory, trial: Floats, found: Floats, scales: Floats, time: float, step: float
    ) -> Floats:
        """Return dG/dz − 1 from directional derivatives, or differences for FMUs without them."""
        columns = self._interface.columns
        by_differences = []
        jacobian = np.zeros((len(columns), len(columns)))
        for member in self.exchange.members:
            rows = np.flatnonzero((columns >= member.place.start) & (columns < member.place.stop))
            taken = np.flatnonzero(np.isin(member.sources, columns))
            if not len(rows) or not len(taken):
                continue
            outputs = [self.exchange.names[columns[row]][1] for row in rows]
            try:
                if not member.instance.gives_directional_derivatives:
                    raise FmuError(f"{member.instance.name} gives no directional derivatives", False)
                block = member.instance.directional_derivative(outputs, [member.entries.names[k] for k in taken])
            except FmuError as error:
                self._warn(f"{error}; the Jacobian of {member.instance.name} is found by differences")
                by_differences.append(member)
                continue
            for entry, column in zip(taken, block.T, strict=True):
                index = int(np.flatnonzero(columns == member.sources[entry])[0])
                jacobian[rows, index] += column * member.factors[entry]
        return jacobian + self._by_differences(by_differences, history, trial, found, scales, time, step)

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            logger.info("%s", sentence)
