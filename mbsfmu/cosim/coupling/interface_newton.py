"""Iterated coupling by Newton's method on the interface."""

from __future__ import annotations

import logging
from typing import ClassVar

import numpy as np

from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.interface_inverse import InterfaceInverse
from mbsfmu.cosim.coupling.iterated import Iterated, pointer_to
from mbsfmu.cosim.coupling.sweeps import OF_ITERATIONS, START, Settings
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuError

logger = logging.getLogger(__name__)

_PERTURBATION = 1e-6  # of a scale; units solve their own equations to about 1e-10 of theirs
_MOST = 30  # updates before the Jacobian is made anew
_SLOW = 0.3  # a Jacobian that shrinks the residual by less than this is worth a new one
_WORTH = 1e3  # changes below so many tolerances carry round-off, not curvature


class InterfaceNewton(Iterated):
    """Solves G(z) − z = 0 for the interface values z at the end of the step.

    The Jacobian dG/dz has a block for each FMU: how its outputs at the end follow from where its inputs run to.
    It is found by differences, each FMU stepping alone from its saved state; or from the FMU's directional
    derivatives, which see what passes directly but not what the step integrates, of order h. Broyden's updates
    keep it true over iterations and steps; it is made anew by differences where it converges slowly, or where there
    are more updates than are kept. (Interface Jacobians: Sicklinger et al. 2014, "Interface Jacobian-based
    co-simulation".)

    Attributes
    ----------
    inverse
        Inverse of the Jacobian of the residual.
    jacobians
        How often the Jacobian was made by differences.
    """

    CHANGES = (*Iterated.CHANGES, "inverse", "jacobians")
    options: ClassVar[tuple[str, ...]] = (*OF_ITERATIONS, "jacobian", "threads")

    def __init__(self, exchange: CouplingData, settings: Settings) -> None:
        super().__init__(exchange, settings)
        self.inverse = InterfaceInverse(len(self.residual), _MOST, self.table.inverse)
        self.table.inverse.worth = (_WORTH * settings.iteration_tolerance) ** 2
        self._change = np.zeros_like(self.residual)
        self.table.change = pointer_to(self._change)
        self.table.slow = _SLOW
        self._warned: set[str] = set()
        self.jacobians = 0

    def _sweep(self, history: OutputHistory, polynomials: Floats, time: float, step: float) -> Floats:
        del history
        return self._in_parallel(polynomials, time, step)

    def _begin(self) -> None:
        self.table.is_fresh = False

    def _correction(self, iteration: int, size: float, history: OutputHistory, time: float, step: float) -> Floats:
        table, inverse = self.table, self.inverse
        is_slow = iteration > 1 and size > _SLOW * table.size
        if not inverse.is_known or (not table.is_fresh and (is_slow or (iteration > 0 and inverse.is_full))):
            self.renew(history, time, step)
        elif iteration:
            inverse.update(self._change, self.residual - self.last, self.scales)
        table.size = size
        self._change[:] = -inverse.apply(self.residual)
        self.last[:] = self.residual
        return self._change

    def renew(self, history: OutputHistory, time: float, step: float) -> None:
        """Make the Jacobian anew, at the outputs that were read last; the first one as chosen."""
        found = self.exchange.outputs.copy()
        if not self.inverse.is_known and self.settings.jacobian == "directional":
            jacobian = self._from_units(history, self.trial, found, self.scales, time, step)
        else:
            jacobian = self._by_differences(self.exchange.members, history, self.trial, found, self.scales, time, step)
            self.table.is_fresh = True
        self.inverse.set(jacobian)

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
