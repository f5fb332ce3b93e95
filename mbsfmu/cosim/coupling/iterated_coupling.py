"""Iterated coupling: interface equations, solved by fixed-point iteration or by Newton's method."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.cosim.compiled.library import ExchangeTable, InverseTable, IterationTable, pointer_to
from mbsfmu.cosim.compiled.member_step import advance, interpolate
from mbsfmu.cosim.compiled.members import restore_member
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.sweeps import AITKEN, OF_ITERATIONS, Algorithm, Settings
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuError


class InterfaceError(SimulationError):
    """Interface equations without convergence in a step."""


class Interface:
    """Values z of outputs at the end of a step that other FMUs take, and the equations G(z) − z = 0 for them.

    G gives the outputs that FMUs reach when their inputs run to z. A residual is measured by the scale of its
    variable: the greater of its nominal value and the largest magnitude that it has had.

    Parameters
    ----------
    exchange
        The members and their values.
    order
        Names of instances that step one after the other, so that outputs of earlier ones need not be known
        beforehand; empty where all step at once.

    Attributes
    ----------
    columns
        Which outputs they are, shape (m,).
    magnitudes
        Largest magnitudes that were accepted, at least the nominal values, shape (m,).
    """

    CHANGES: ClassVar = ("magnitudes",)

    def __init__(self, exchange: CouplingData, order: Sequence[str] = ()) -> None:
        self._exchange = exchange
        turn = {name: index for index, name in enumerate(order)}
        found = [
            exchange.columns[each.source]
            for each in exchange.connections
            if exchange.columns[each.source] not in exchange.held
            and (not order or turn[each.target[0]] <= turn[each.source[0]])
        ]
        self.columns: NDArray[np.intp] = np.array(sorted(set(found)), dtype=np.intp)
        self.magnitudes = exchange.nominals()[self.columns]

    def failure(self, time: float, residual: Floats, scales: Floats, iterations: int) -> InterfaceError:
        """Return the error with the largest residual, at a time in s."""
        worst = int(np.argmax(np.abs(residual) / scales))
        name = ".".join(self._exchange.names[self.columns[worst]])
        return InterfaceError(
            f"the interface does not converge in the step from t = {time:.9g} s: {name} still changes by "
            f"{abs(residual[worst]):.3g}, {abs(residual[worst]) / scales[worst]:.2g} of its scale, after "
            f"{iterations} iterations; take a smaller step or another algorithm"
        )


class Iterated(Algorithm):
    """Base of algorithms that repeat each step until inputs run to what the outputs become.

    Attributes
    ----------
    iteration
        Numbers and arrays of the iteration.
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
        self.iteration = IterationTable(
            columns=pointer_to(self._interface.columns),
            count=count,
            tolerance=settings.iteration_tolerance,
            maximum=settings.maximum_iterations,
            trial=pointer_to(self.trial),
            residual=pointer_to(self.residual),
            last=pointer_to(self.last),
            scales=pointer_to(self.scales),
            magnitudes=pointer_to(self._interface.magnitudes),
        )

    @property
    def iteration_table(self) -> IterationTable:
        """Numbers and arrays of the iteration."""
        return self.iteration

    def failure(self, time: float) -> InterfaceError:
        """Return the error of the step from a time in s."""
        return self._interface.failure(time, self.residual, self.scales, self.settings.maximum_iterations)


_LEAST = 1e-3


class InterfaceInverse:
    """Inverse H of a Jacobian, as a matrix that was made once and the updates since (`compiled.interface_inverse`).

    Parameters
    ----------
    count
        Number of unknowns m.
    most
        Number of updates that are kept before no more are added.
    table
        Its numbers, with pointers to its arrays.

    Attributes
    ----------
    columns
        Columns of the matrix, one after the other, shape (m, m).
    moves, weights
        p and w of each update, shape (most, m).
    """

    CHANGES: ClassVar = ("columns", "moves", "weights", "updates", "is_known")

    def __init__(self, count: int, most: int, table: InverseTable) -> None:
        self.columns = np.zeros((count, count))
        self.moves, self.weights = np.zeros((most, count)), np.zeros((most, count))
        self._room = np.zeros((4, count))  # updates need two vectors, learning four
        self.table = table
        table.count, table.most, table.least = count, most, _LEAST
        table.columns, table.room = pointer_to(self.columns), pointer_to(self._room)
        table.moves, table.weights = pointer_to(self.moves), pointer_to(self.weights)

    @property
    def updates(self) -> int:
        """Number of updates."""
        return self.table.updates

    @updates.setter
    def updates(self, count: int) -> None:
        self.table.updates = count

    @property
    def is_known(self) -> bool:
        """Whether there is a matrix."""
        return bool(self.table.is_known)

    @is_known.setter
    def is_known(self, known: bool) -> None:
        self.table.is_known = known

    def set(self, jacobian: Floats) -> None:
        """Set the Jacobian, without updates; the pseudo-inverse takes the place of an inverse that is not there."""
        try:
            inverse = np.linalg.inv(jacobian)
        except np.linalg.LinAlgError:
            inverse = np.linalg.pinv(jacobian)
        self.set_inverse(np.asarray(inverse, dtype=np.float64))

    def set_inverse(self, inverse: Floats) -> None:
        """Set the inverse itself, without updates."""
        self.columns[:] = inverse.T
        self.updates, self.is_known = 0, True


_FIRST_RELAXATION = 1.0
_RELAXATION_RANGE = (0.05, 2.0)


class FixedPoint(Iterated):
    """Relaxed sweeps until interface values converge.

    What each sweep changes is taken over with a factor, given or found by Aitken's rule
    (`compiled.coupled_step.correct_by_relaxation`).
    """

    CHANGES = (*Iterated.CHANGES, "_kept_relaxation")
    in_turn = True
    options: ClassVar[tuple[str, ...]] = ("order", *OF_ITERATIONS, "relaxation")

    def __init__(self, exchange: CouplingData, settings: Settings) -> None:
        super().__init__(exchange, settings)
        table = self.iteration
        table.adapts = settings.relaxation == AITKEN
        table.kept_relaxation = _FIRST_RELAXATION if table.adapts else float(settings.relaxation)
        table.least_relaxation, table.most_relaxation = _RELAXATION_RANGE

    @property
    def _kept_relaxation(self) -> float:
        """Relaxation factor that the next step begins with."""
        return self.iteration.kept_relaxation

    @_kept_relaxation.setter
    def _kept_relaxation(self, value: float) -> None:
        self.iteration.kept_relaxation = value


_DRIFT = 0.01
"""What the variance of the Jacobian gains in a correction along each direction: much less makes no difference over
hundreds of steps, ten times more forgets as Broyden's update does."""
_NOISE = 1e-4
"""Variance of what a correction of unit length says, in that of a direction that nothing is known of: corrections are
nearly exact."""


class LearnedInverse(InterfaceInverse):
    """Inverse H of a Jacobian that drifts, learned by recursive least squares (`compiled.interface_inverse`).

    Parameters
    ----------
    count, table
        As for `InterfaceInverse`.

    Attributes
    ----------
    covariance
        P, whose diagonal is at most 1, shape (m, m).
    """

    CHANGES: ClassVar = (*InterfaceInverse.CHANGES, "covariance")

    def __init__(self, count: int, table: InverseTable) -> None:
        super().__init__(count, 0, table)
        self.covariance = np.eye(count)
        table.covariance, table.drift, table.noise = pointer_to(self.covariance), _DRIFT, _NOISE

    def set_inverse(self, inverse: Floats) -> None:
        """Set the inverse itself, of which nothing is known better than the rest."""
        super().set_inverse(inverse)
        self.covariance[:] = np.eye(len(inverse))


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
        self.inverse = InterfaceInverse(len(self.residual), _MOST, self.iteration.inverse)
        self.iteration.inverse.worth = (_WORTH * settings.iteration_tolerance) ** 2
        self._change = np.zeros_like(self.residual)
        self.iteration.change = pointer_to(self._change)
        self.iteration.slow = _SLOW
        self._warned: set[str] = set()
        self.jacobians = 0

    def make_jacobian(self, table: ExchangeTable) -> None:
        """Make the Jacobian, at the outputs that were read last; the first one as chosen."""
        found = self.exchange.outputs.copy()
        if not self.inverse.is_known and self.settings.jacobian == "directional":
            jacobian = self._from_units(table, found)
        else:
            jacobian = self._by_differences(self.exchange.members, table, found)
            self.iteration.is_fresh = True
        self.inverse.set(jacobian)
        self.iteration.is_renewed = True

    # -- the Jacobian of the residual -------------------------------------------------------------------------

    def _by_differences(self, members: Sequence[CoupledInstance], table: ExchangeTable, found: Floats) -> Floats:
        """Return dG/dz − 1 with differences for some members, each stepping alone from its saved state."""
        columns = self._interface.columns
        self.jacobians += 1
        jacobian = -np.eye(len(columns))
        for turn, member in enumerate(table.units):
            rows = np.flatnonzero((columns >= member.place.start) & (columns < member.place.stop))
            if member not in members or not len(rows):
                continue
            for index in np.flatnonzero(np.isin(columns, member.sources)):
                moved, perturbation = self.trial.copy(), _PERTURBATION * self.scales[index]
                moved[columns[index]] += perturbation
                restore_member(table, table.members[turn])
                interpolate(table, pointer_to(moved), 0, len(moved))
                advance(table, table.members[turn])
                reached = member.outputs.read()[columns[rows] - member.place.start]
                jacobian[rows, index] += (reached - found[columns[rows]]) / perturbation
        return jacobian

    def _from_units(self, table: ExchangeTable, found: Floats) -> Floats:
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
        return jacobian + self._by_differences(by_differences, table, found)

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            logger.info("%s", sentence)
