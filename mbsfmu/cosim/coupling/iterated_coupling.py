"""Iterated coupling: interface equations, solved by fixed-point iteration or by Newton's method."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_ssize_t
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.cosim.compiled.library import InverseTable, IterationTable
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.sweeps import AITKEN, OF_ITERATIONS, START, Algorithm, Settings, predicted
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

    def take(self, outputs: Floats) -> None:
        """Increase the scales to the magnitudes of accepted outputs."""
        np.maximum(self.magnitudes, np.abs(outputs[self.columns]), out=self.magnitudes)

    def scales(self, values: Floats) -> Floats:
        """Return the scale of each value, shape (m,)."""
        return np.maximum(self.magnitudes, np.abs(values))

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


_LEAST = 1e-3


class InterfaceInverse:
    """Inverse H of a Jacobian, as a matrix that was made once and the updates since.

    Broyden's update as a product, H ← (1 + p wᵀ) H with p = (Δz − H Δr) / (wᵀ H Δr), w being Δz over the squared
    scales, so that H Δr = Δz for the last change Δz of the iterates and Δr of the residual (Kelley 1995, "Iterative
    methods for linear and nonlinear equations", section 7.3). An update adds two vectors, and takes a number of
    operations proportional to that of the unknowns; a matrix that is updated would have to be inverted every time.

    Sums are made in order, as compiled code makes them, for the same result to the last bit.

    Parameters
    ----------
    count
        Number of unknowns m.
    most
        Number of updates that are kept before no more are added.
    table
        Its numbers, with pointers to its arrays; compiled code works on the same.

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
        self._room = np.zeros((2, count))
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

    @property
    def is_full(self) -> bool:
        """Whether no update can be added."""
        return self.updates == self.table.most

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

    def apply(self, vector: Floats) -> Floats:
        """Return H times a vector, shape (m,)."""
        result = np.add.reduce(self.columns * vector[:, np.newaxis], 0, initial=0.0)
        for move, weight in zip(self.moves[: self.updates], self.weights, strict=False):
            result += move * inner_product(weight, result)
        return result

    def update(self, change: Floats, difference: Floats, scales: Floats) -> None:
        """Add the update for changes of iterates and residual, unless it is full.

        Changes whose scaled square is not above `table.worth`, and those along which H would turn singular, say
        nothing.
        """
        weight = change / scales**2
        squared = inner_product(change, weight)
        if self.is_full or not squared > self.table.worth:
            return
        expected = self.apply(difference)
        along = inner_product(weight, expected)
        if not abs(along) > _LEAST * squared:
            return
        self.moves[self.updates] = (change - expected) / along
        self.weights[self.updates] = weight
        self.updates += 1


def inner_product(one: Floats, other: Floats) -> float:
    """Return the inner product of two vectors, summed in order."""
    return float(np.add.accumulate(one * other)[-1]) if len(one) else 0.0


_FIRST_RELAXATION = 1.0
_RELAXATION_RANGE = (0.05, 2.0)


class FixedPoint(Iterated):
    """Relaxed sweeps until interface values converge.

    What each sweep changes is taken over with a factor ω, given or found by Aitken's rule
    ω ← −ω rᵀ(r' − r)/|r' − r|² from the last two residuals (Küttler and Wall 2008, "Fixed-point fluid–structure
    interaction solvers with dynamic relaxation"), in scaled residuals and kept from one step to the next.
    """

    CHANGES = (*Iterated.CHANGES, "_kept_relaxation")
    in_turn = True
    options: ClassVar[tuple[str, ...]] = ("order", *OF_ITERATIONS, "relaxation")

    def __init__(self, exchange: CouplingData, settings: Settings) -> None:
        super().__init__(exchange, settings)
        table = self.table
        table.adapts = settings.relaxation == AITKEN
        table.kept_relaxation = _FIRST_RELAXATION if table.adapts else float(settings.relaxation)
        table.least_relaxation, table.most_relaxation = _RELAXATION_RANGE

    @property
    def _kept_relaxation(self) -> float:
        """Relaxation factor that the next step begins with."""
        return self.table.kept_relaxation

    @_kept_relaxation.setter
    def _kept_relaxation(self, value: float) -> None:
        self.table.kept_relaxation = value

    def _sweep(self, history: OutputHistory, polynomials: Floats, time: float, step: float) -> Floats:
        return self._in_turn(history, polynomials.copy(), time, step)

    def _begin(self) -> None:
        self.table.relaxation = self.table.kept_relaxation

    def _correction(self, iteration: int, size: float, history: OutputHistory, time: float, step: float) -> Floats:
        del size, history, time, step
        table = self.table
        scaled = self.residual / self.scales
        if iteration and table.adapts:
            change = scaled - self.last
            squared = inner_product(change, change)
            if squared > 0.0:
                table.relaxation *= -inner_product(self.last, change) / squared
            table.relaxation = float(np.clip(table.relaxation, *_RELAXATION_RANGE))
        self.last[:] = scaled
        return table.relaxation * self.residual

    def _converged(self) -> None:
        self.table.kept_relaxation = self.table.relaxation


_DRIFT = 0.01
"""What the variance of the Jacobian gains in a correction along each direction: much less makes no difference over
hundreds of steps, ten times more forgets as Broyden's update does."""
_NOISE = 1e-4
"""Variance of what a correction of unit length says, in that of a direction that nothing is known of: corrections are
nearly exact."""


class LearnedInverse(InterfaceInverse):
    """Inverse H of a Jacobian that drifts, by recursive least squares.

    Broyden's update takes the least change of the Jacobian J for which J Δz = Δr, and so loses what corrections along
    other directions have told before. Here the change is the least one in the metric of the covariance P of the rows of
    J, which falls along directions as they are seen, and rises by a random walk in between:

        w = P d, s = noise + dᵀ w, J ← J + (Δr/|Δz| − J d) wᵀ / s, P ← P − w wᵀ / s + drift

    with d = Δz/|Δz| (Ljung 1999, "System Identification", section 11.2; P = 1 without noise is Broyden's update,
    projections for P are those of Gay and Schnabel 1978). H follows by the formula of Sherman and Morrison.

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
        self.covariance, self._wide = np.eye(count), np.zeros((4, count))
        table.room = pointer_to(self._wide)
        table.covariance, table.drift, table.noise = pointer_to(self.covariance), _DRIFT, _NOISE

    def set_inverse(self, inverse: Floats) -> None:
        """Set the inverse itself, of which nothing is known better than the rest."""
        super().set_inverse(inverse)
        self.covariance[:] = np.eye(len(inverse))

    def learn(self, change: Floats, difference: Floats) -> None:
        """Take in that a change of the iterates changed the residual by a difference, each of shape (m,).

        Nothing is learned where there is no change, or where H would turn singular.
        """
        squared = inner_product(change, change)
        if not squared > 0.0:
            return
        length = np.sqrt(squared)
        direction = change / length
        weight = np.add.accumulate(self.covariance * direction, axis=1)[:, -1]
        variance = _NOISE + inner_product(direction, weight)
        missed = direction - self.apply(difference / length)
        along = variance - inner_product(weight, missed)
        if not abs(along) > self.table.least * variance:
            return
        shares = np.add.accumulate(self.columns * weight, axis=1)[:, -1:]
        self.columns += missed / along * shares
        self.covariance -= weight[:, np.newaxis] * weight / variance
        self.covariance[np.diag_indices(len(weight))] += _DRIFT
        largest = float(np.max(np.diag(self.covariance)))
        if largest > 1.0:
            self.covariance /= largest


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
