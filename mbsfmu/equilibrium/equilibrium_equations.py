"""Equations of static equilibrium with exact derivatives, and magnitudes of their unknowns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.modelling.variables import Variable
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.symbols import leaking
from mbsfmu.tracing.workspace import Floats, TracedFunction

_FOLLOWS = 1e-2
"""Rate in 1/s above which a state follows others; a slower one integrates them."""


def magnitudes(matrix: Floats, known: Floats, own: NDArray[np.intp], sizes: Floats) -> Floats:
    """Return magnitudes of all unknowns, unknown ones from the equations.

    The magnitude of a state that follows others, as in a filter, is |a_ij| s_j / |a_ii| at most. Otherwise, as for an
    integral or a set point, it gives the effect that other variables have in the same equations. A value in Pa is
    therefore larger by 10⁵ than the same in bar, and a search does not depend on the unit. Unknowns unrelated to known
    magnitudes have magnitude one.

    Parameters
    ----------
    matrix
        Derivatives of the equations by the unknowns, finite, shape (m, n).
    known
        Magnitudes that are known, and NaN; shape (n,).
    own
        Of each unknown the row of the equation in which it is at rest by itself, or −1; shape (n,).
    sizes
        Of each equation its magnitude where that is known beside its unknowns, as that of loads, and 0; shape (m,).
    """
    slopes, found = np.abs(matrix), known.copy()
    while np.isnan(found).any():
        effects = slopes * np.nan_to_num(found, nan=0.0)
        candidates = np.full(len(found), np.nan)
        for index in np.flatnonzero(np.isnan(found)).tolist():
            candidates[index] = _magnitude(slopes[:, index], effects, int(own[index]), sizes)
        if np.isnan(candidates).all():
            break
        found = np.where(np.isnan(found), candidates, found)
    return np.nan_to_num(found, nan=1.0)


def _magnitude(column: Floats, effects: Floats, own: int, sizes: Floats) -> float:
    """Return the magnitude of an unknown from those known so far, or NaN.

    Parameters
    ----------
    column
        Slopes of all equations by it, shape (m,).
    effects
        Those of all equations by all unknowns in their magnitudes, 0 of what is not known; shape (m, n).
    own, sizes
        As of `magnitudes`.
    """
    largest = np.maximum(np.max(effects, axis=1, initial=0.0), sizes)
    follows = own >= 0 and column[own] >= _FOLLOWS
    if follows and largest[own] > 0.0:
        return float(largest[own] / column[own])
    counts = (column > 0.0) & (largest > 0.0)
    if own >= 0 and follows:
        counts[own] = False
    return float(np.min(largest[counts] / column[counts])) if counts.any() else np.nan


PARTS = ("coordinates", "multipliers", "states", "discrete", "inputs", "parameters")
"""Parts of the unknowns in their order; of inputs and parameters, the free variables."""
KINDS = ("balance", "closure", "rates", "updates", "held")
"""Kinds of equations in their order."""
STILL = 1e-8
"""Tolerance of a state's rate relative to its magnitude, in 1/s."""
_READ = ("coordinates", "states", "discrete")
"""The parts that are readings, before the outputs."""
_ASIDE = (-1.3, 0.7)
"""Offset of a coordinate in rad or m, to test whether derivatives depend on it."""
_SAME = 1e-9
"""Fraction of an equation's largest derivative below which derivatives are equal."""
_SPREADS = (0.1, 1.0, 10.0, 100.0)
"""Variations of the guess in magnitudes, to test whether states can change."""


@dataclass(frozen=True)
class Held:
    """A fixed variable.

    Attributes
    ----------
    variable
        The reading.
    index
        Its place among `reading_variables`.
    value
        In its unit.
    """

    variable: Variable
    index: int
    value: float


@dataclass(frozen=True)
class Sought:
    """A free variable: an input or a parameter.

    Attributes
    ----------
    variable
        The input or parameter.
    part
        `inputs` or `parameters`.
    index
        Its place among those of the system.
    """

    variable: Variable
    part: str
    index: int


class EquilibriumEquations:
    """A system in static equilibrium, ż = z̈ = 0, with fixed and free variables.

    −Q + Φ_zᵀ λ = 0, Φ = 0, ẋ = 0, d₊ − d = 0, y = fixed, for z, λ, x, d and the free variables. States on which nothing
    depends, such as the angle of a rotating shaft, may change, and states that never change are constant: neither has
    an equation.

    Parameters
    ----------
    functions
        Functions of the start system with all its constraints, which hold the guess and all that is given.
    held, sought
        What is held, and what is asked for.

    Attributes
    ----------
    functions, held, sought
        As given.
    left
        Indices of the states without an equation.
    scales
        Usual magnitudes of the unknowns, shape (number of unknowns,).
    rates
        What the equations of the rates are made of: a row for each of them, a column for each state.
    """

    def __init__(self, functions: SystemFunctions, held: Sequence[Held], sought: Sequence[Sought]) -> None:
        self.functions = functions
        self._straight: dict[int, bool] = {}
        self.held, self.sought = tuple(held), tuple(sought)
        given, system = functions.expressions, functions.system
        readings = ca.vertcat(*(given.symbol_by_part[part] for part in _READ), given.outputs)
        updates = given.updates - given.symbol_by_part["discrete"] if system.discrete else ca.SX.zeros(0)
        moving = {
            "balance": given.balance,
            "closure": given.all_closure,
            "rates": -given.rates,
            "updates": updates,
            "held": readings[[each.index for each in self.held]],
        }
        # what velocities bring about, as gyroscopic loads, is most of the code of long chains
        self._rows = dict(zip(moving, self._still(list(moving.values())), strict=True))
        self._sought = {part: [each.index for each in self.sought if each.part == part] for part in PARTS[-2:]}
        self.scales = self._magnitudes()
        states = self.scales[self.unknowns("states")]
        constant = self._constant(states)
        self.left = tuple(sorted({*constant, *self._running(constant, moving)}))
        self.rates = np.delete(np.eye(len(states)), self.left, axis=0) / states

    @property
    def _zeros(self) -> ca.SX:
        return ca.SX.zeros(len(self.functions.system.coordinates))

    def _still(self, values: Sequence[ca.SX]) -> list[ca.SX]:
        """Return expressions with ż = z̈ = 0."""
        return self.functions.expressions.at(values, {"velocities": self._zeros, "accelerations": self._zeros})

    # -- others of the kind ---------------------------------------------------------------------------------

    def at_values(self, values: Floats) -> EquilibriumEquations:
        """Return the same with other values of the fixed variables, in their units."""
        other = copy(self)
        other.held = tuple(replace(each, value=float(value)) for each, value in zip(self.held, values, strict=True))
        return other

    def standing_still(self) -> EquilibriumEquations:
        """Return the same with all coordinates fixed at their present values."""
        here = zip(self.functions.system.coordinates, self.functions.coordinates.tolist(), strict=True)
        held = ca.vertcat(self._rows["held"], self.functions.symbol("coordinates"))
        other = self._with_rows({**self._rows, "held": held})
        other.held = (*self.held, *(Held(variable, index, value) for index, (variable, value) in enumerate(here)))
        return other

    def without_rates(self) -> EquilibriumEquations:
        """Return the equations of loads, loops and fixed variables alone, with free states."""
        other = self._with_rows({**self._rows, "updates": ca.SX.zeros(0)})
        other.rates = np.zeros((0, self.rates.shape[1]))
        return other

    def leaky(self) -> tuple[EquilibriumEquations, Floats] | None:
        """Return the same with regularised saturations, and the array of their slope; None without saturations."""
        return self._leaky

    @cached_property
    def _leaky(self) -> tuple[EquilibriumEquations, Floats] | None:
        sizes = [row.numel() for row in self._rows.values()]
        share, array = self.functions.add_part("leaking_share", 1)
        if (whole := leaking(ca.vertcat(*self._rows.values()), share)) is None:
            return None
        rows = ca.vertsplit(whole, np.cumsum([0, *sizes]).tolist())
        return self._with_rows(dict(zip(self._rows, rows, strict=True))), array

    def _with_rows(self, rows: dict[str, ca.SX]) -> EquilibriumEquations:
        other = copy(self)
        for name in ("_residual", "_jacobian", "_leaky"):
            other.__dict__.pop(name, None)
        other._rows = rows
        return other

    # -- sizes ----------------------------------------------------------------------------------------------

    def rows(self, kind: str) -> slice:
        """Return the rows of a kind of equations: `balance`, `closure`, `rates`, `updates` or `held`."""
        sizes = {each: len(self.rates) if each == "rates" else row.numel() for each, row in self._rows.items()}
        kinds = list(sizes)
        first = sum(sizes[each] for each in kinds[: kinds.index(kind)])
        return slice(first, first + sizes[kind])

    def counts(self, kind: str) -> bool:
        """Whether there are equations of a kind."""
        rows = self.rows(kind)
        return bool(rows.stop > rows.start)

    def unknowns(self, part: str) -> slice:
        """Return the columns of a part of the unknowns."""
        counts = [len(self._of(each)) for each in PARTS]
        first = sum(counts[: PARTS.index(part)])
        return slice(first, first + counts[PARTS.index(part)])

    def _of(self, part: str) -> NDArray[np.intp]:
        """Return the indices of a part's elements that are unknowns."""
        every = np.arange(self.functions.symbol(part).numel(), dtype=np.intp)
        return every[self._sought[part]] if part in self._sought else every

    def _magnitudes(self) -> Floats:
        """Return usual magnitudes of the unknowns: 1 rad, 1 m, the largest load, otherwise the nominal values.

        Without a nominal value, as for states of blocks, they follow from the equations.
        """
        system, load = self.functions.system, self.largest_load()
        asked = [
            each.variable.nominal or abs(each.variable.start or 0.0)
            for part in PARTS[-2:]
            for each in self.sought
            if each.part == part
        ]
        told = [each.nominal or 0.0 for each in (*system.states, *system.discrete)]
        moving, held = len(system.coordinates), len(self.functions.multipliers)
        known = np.concatenate([np.ones(moving), np.full(held, load), told, asked])
        own = np.concatenate([np.full(moving, -1), np.full(held, -1), moving + held + np.arange(len(told))])
        matrix = np.nan_to_num(self.unreduced_jacobian(), nan=0.0, posinf=0.0, neginf=0.0)
        return magnitudes(
            matrix,
            np.where(known > 0.0, known, np.nan),
            np.concatenate([own, np.full(len(asked), -1)]).astype(np.intp),
            np.where(np.arange(len(matrix)) < moving, load, 0.0),
        )

    def largest_load(self) -> float:
        """Return the largest load, or one N or N m."""
        return max(float(np.max(np.abs(self.functions.equilibrium()[1]), initial=0.0)), 1.0)

    # -- which states have an equation ----------------------------------------------------------------------

    def _constant(self, states: Floats) -> tuple[int, ...]:
        """Return the states that are constant at these parameters, such as an unused integral part of a controller.

        Their rates are zero in every evaluation.
        """
        functions, random = self.functions, np.random.default_rng(20211015)
        inputs = np.array([each.nominal or 1.0 for each in functions.system.inputs])
        ones = np.ones(len(functions.coordinates))
        varied = {"coordinates": ones, "velocities": ones, "states": states, "inputs": inputs}
        varied["discrete"] = self.scales[self.unknowns("discrete")]
        before = {part: functions.values(part).copy() for part in varied}
        seen, ever = np.zeros((2, len(states)), dtype=bool)
        for times in _SPREADS:
            for part, spread in varied.items():
                functions.write(part, before[part] + times * spread * random.standard_normal(len(spread)))
            rates = functions.state_rates()[0]
            seen |= rates == 0.0
            ever |= np.nan_to_num(rates) != 0.0
        for part, values in before.items():
            functions.write(part, values)
        return tuple(np.flatnonzero(seen & ~ever).tolist())

    def _running(self, constant: Sequence[int], moving: Mapping[str, ca.SX]) -> tuple[int, ...]:
        """Return the states in a moving system on which no equation depends, including their own."""
        given = self.functions.expressions
        before = sum(moving[kind].numel() for kind in ("balance", "closure"))
        pattern = given.depends(ca.vertcat(*given.at(list(moving.values()), {"accelerations": self._zeros})), "states")
        running: list[int] = []
        while True:
            rows = np.delete(pattern, [before + index for index in (*running, *constant)], axis=0)
            free = [each for each in np.flatnonzero(~rows.any(axis=0)).tolist() if each not in running]
            if not free:
                return tuple(running)
            running += free

    @property
    def untold(self) -> list[int]:
        """Indices of the states without a nominal value, such as integrals of blocks."""
        return [index for index, each in enumerate(self.functions.system.states) if not each.nominal]

    def let_slow_ones_stand(self, horizon: float, *, warned: bool = False) -> None:
        """Remove the equations of slow states, such as leaking ones: only changes within a time in s count.

        For ẋ = f(x), linearized at the present point, the rows of rates above 1 / horizon are kept, by the Schur form
        of the transposed Jacobian.

        Parameters
        ----------
        horizon
            The time in s.
        warned
            Whether that is so of states alone whose magnitude is told, as of pressures, but not of integrals of blocks.
        """
        from scipy.linalg import orth, schur  # noqa: PLC0415 - it takes long to load

        slope = self.jacobian()[self.rows("rates"), self.unknowns("states")]
        every = np.delete(np.arange(slope.shape[1]), self.left)
        matrix = slope[:, every] * self.scales[self.unknowns("states")][every]
        _, turned, fast = schur(matrix.T, sort=lambda real, imaginary: np.hypot(real, imaginary) > 1.0 / horizon)
        kept = turned[:, :fast]
        if warned:
            kept = orth(np.hstack([kept, np.eye(len(every))[:, np.isin(every, self.untold)]]))
        self.rates = kept.T @ self.rates

    # -- values ---------------------------------------------------------------------------------------------

    def present(self) -> Floats:
        """Return the present unknowns of the functions."""
        return np.concatenate([self.functions.values(part)[self._of(part)] for part in PARTS])

    def load(self, unknowns: Floats) -> None:
        """Write unknowns into the functions' arrays, and solve the algebraic loops.

        Raises
        ------
        SimulationError
            When one of these is not solved.
        """
        functions = self.functions
        for part in PARTS:
            functions.values(part)[self._of(part)] = unknowns[self.unknowns(part)]
        functions.follow_loops()

    def residual(self) -> Floats:
        """Return the residual at the present point; rates relative to magnitudes in 1/s."""
        off = self._counted(self._residual()[0])
        off[self.rows("held")] -= [each.value for each in self.held]
        return off

    def jacobian(self) -> Floats:
        """Return the Jacobian of the residual; states without an equation have no column."""
        matrix = self._counted(self._jacobian()[0])
        matrix[:, [self.unknowns("states").start + index for index in self.left]] = 0.0
        return matrix

    def finite_jacobian(self) -> Floats:
        """Return `jacobian` with zeros for non-finite elements."""
        return np.nan_to_num(self.jacobian(), nan=0.0, posinf=0.0, neginf=0.0)

    def is_straight(self, coordinate: int) -> bool:
        """Return whether no derivative depends on a coordinate, such as that of a shaft that drives a drum.

        Parameters
        ----------
        coordinate
            Its index.
        """
        if coordinate not in self._straight:
            coordinates, here = self.functions.coordinates, float(self.functions.coordinates[coordinate])
            before = self._jacobian()[0].copy()
            allowed = _SAME * np.max(np.abs(before), axis=1, initial=0.0)[:, None]
            straight = True
            for aside in _ASIDE:
                coordinates[coordinate] = here + aside
                straight = straight and bool(np.all(np.abs(self._jacobian()[0] - before) <= allowed))
            coordinates[coordinate] = here
            self._straight[coordinate] = straight
        return self._straight[coordinate]

    def unreduced_jacobian(self) -> Floats:
        """Return the Jacobian of all equations, of −ẋ in the units of states over s."""
        return self._jacobian()[0].copy()

    def standing(self) -> NDArray[np.bool_]:
        """Return which states are constant at the present point, shape (k,)."""
        scales = self.scales[self.unknowns("states")]
        rates = np.abs(self.functions.state_rates()[0])
        round_off = 1e-13 * np.abs(self.unreduced_jacobian()) @ np.abs(self.present())
        first = len(self.functions.coordinates) + len(self.functions.multipliers)
        return rates <= STILL * scales + round_off[first : first + len(scales)]

    def _counted(self, rows: Floats) -> Floats:
        """Return all equations with the active rows of the rates."""
        sizes = [row.numel() for row in self._rows.values()]
        balance, closure, rates, updates, held = np.split(rows, np.cumsum(sizes)[:-1])
        return np.concatenate([balance, closure, self.rates @ rates, updates, held])

    @cached_property
    def _residual(self) -> TracedFunction:
        return self.functions.traced("rest_residual", [ca.vertcat(*self._rows.values())])

    @cached_property
    def _jacobian(self) -> TracedFunction:
        symbols = [self.functions.symbol(part)[self._of(part).tolist()] for part in PARTS]
        (rows,) = ca.cse([ca.vertcat(*self._rows.values())])
        matrix = ca.horzcat(*(ca.jacobian(rows, symbol) for symbol in symbols))
        return self.functions.traced("rest_jacobian", [matrix], matrices=[0], merged=True)

    @cached_property
    def by_velocities(self) -> TracedFunction:
        """The derivatives of −Q and of ẋ by ż, and of ẋ by z̈, shapes (n, n), (k, n) and (k, n)."""
        given = self.functions.expressions
        found = [given.derivative(each, "velocities") for each in (given.rest, given.rates)]
        found.append(given.derivative(given.rates, "accelerations"))
        return self.functions.traced("rest_by_motion", self._still(found), matrices=[0, 1, 2])


def reading_variables(functions: SystemFunctions) -> tuple[Variable, ...]:
    """Return the variables that may be fixed: z, x, d and the outputs."""
    system = functions.system
    return (*system.coordinates, *system.states, *system.discrete, *system.outputs)


def readings(functions: SystemFunctions) -> Floats:
    """Return the present values of `reading_variables`."""
    return np.concatenate([*(functions.values(part) for part in _READ), functions.outputs()[0]])
