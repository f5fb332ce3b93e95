"""State equations of double-step, in independent coordinates, at the points of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mbsfmu.analysis.run_points import Indices, PointFunctions
from mbsfmu.analysis.start_derivatives import StartDerivatives
from mbsfmu.analysis.trapezoidal_equations import Slopes, TrapezoidalEquations
from mbsfmu.formulations.reduced_equations import ReducedEquations
from mbsfmu.initialization.independent_coordinates import Partition
from mbsfmu.native.point_library import PointArrays, PointLibrary
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import AnyFunction, Floats


@dataclass(frozen=True)
class _ReducedSlopes(Slopes):
    """Derivatives by the motion, and what those by parameters are found with.

    Attributes
    ----------
    mass
        M'', shape (points, f, f).
    flow_by_accelerations, read_by_accelerations
        Of (ẋ, rates of the integrals) and of what is read by z̈^i.
    """

    mass: Floats
    flow_by_accelerations: Floats
    read_by_accelerations: Floats


class ReducedStateEquations(TrapezoidalEquations):
    """Equations with w = (z^i, ż^i, x, integrals).

    Accelerations are those of the equations of motion, and positions, velocities and states follow the trapezoidal rule
    [Jaiswal2021, eqs. 33 and 34].

    Parameters
    ----------
    at
        Evaluates functions at the points.
    equations
        Of the formulation.
    freedom
        Number of independent coordinates.

    Attributes
    ----------
    arrays
        The points for compiled code, where this completes them.
    """

    def __init__(self, at: PointFunctions, equations: ReducedEquations, freedom: int) -> None:
        functions = at.functions
        super().__init__(at, 2 * freedom + len(functions.states) + len(functions.integrals))
        self.equations, self._freedom = equations, freedom

    @staticmethod
    def choice(state: State) -> Partition:
        """Return the choice of independent coordinates."""
        assert state.partition is not None
        return state.partition

    @staticmethod
    def same(choice: Partition, other: Partition) -> bool:
        """Return whether two choices are the same."""
        return choice is other or choice.same_as(other)

    @cached_property
    def _groups(self) -> list[Indices]:
        """Points of each choice of coordinates."""
        groups: dict[int, list[int]] = {}
        for index, each in enumerate(self.at.points.choices):
            groups.setdefault(id(each), []).append(index)
        return [np.array(group) for group in groups.values()]

    def complete_in(self, library: PointLibrary, rows: Sequence[int]) -> Floats:
        """Do the same as `complete` in compiled code."""
        self.arrays = self._arrays()
        return library.complete(self.arrays, rows)

    def _arrays(self) -> PointArrays:
        """Return the arrays of compiled code, and add those that it completes."""
        points, functions = self.at.points, self.at.functions
        count, n = len(points.choices), len(functions.coordinates)
        values, free = points.values, self._freedom
        sizes = {"independent_velocities": free, "independent_accelerations": free, "accelerations": n}
        for name, size in {**sizes, "multipliers": len(functions.rows)}.items():
            values[name] = np.empty((count, size)).T
        self.rates = np.empty((count, self.size)).T
        dependent = np.zeros((len(self._groups), n), dtype=np.intc)
        choices = np.empty(count, dtype=np.intc)
        for place, group in enumerate(self._groups):
            dependent[place, points.choices[group[0]].dependent] = 1
            choices[group] = place
        at_points = {name: np.ascontiguousarray(each.T) for name, each in values.items() if each.ndim == 2}
        values.update({name: each.T for name, each in at_points.items()})  # compiled code writes into them
        return PointArrays({**self.at.constants, **at_points, "rates": self.rates.T}, dependent, choices)

    def complete(self, rows: Sequence[int]) -> Floats:
        """Find independent velocities, accelerations, multipliers and F; see `StateEquations`."""
        values, points = self.at.points.values, self.at.points
        velocities = np.empty((self._freedom, len(points.choices)))
        for group in self._groups:
            chosen = points.choices[group[0]].independent
            velocities[:, group] = values["velocities"][chosen[:, None], group]
        values["independent_velocities"] = velocities
        self._accelerate()
        return self._evaluate(self.equations.read(rows))[0][:, :, 0]

    def _evaluate(
        self, function: AnyFunction, points: Indices | Sequence[int] | None = None, **given: Floats
    ) -> list[Floats]:
        """Return the results of a function at points, for which R_z and G are found when it is the first."""
        if "basis" not in self.at.points.values:
            self._reduce()
        return self.at.evaluate(function, points, **given)

    def _reduce(self) -> None:
        """Add R_z and G at the points."""
        values, points, functions = self.at.points.values, self.at.points, self.at.functions
        count, n, m = len(points.choices), len(functions.coordinates), len(functions.rows)
        basis, lift = np.zeros((count, n, self._freedom)), np.zeros((count, n, m))
        jacobian = self.at.evaluate(functions.closure)[1]
        for here in self._groups:
            chosen = points.choices[here[0]]
            dependent = jacobian[here][:, :, chosen.dependent]
            inverse = np.linalg.inv(dependent) if m == len(chosen.dependent) else np.linalg.pinv(dependent)
            basis[here[:, None], chosen.independent] = np.eye(self._freedom)
            basis[here[:, None], chosen.dependent] = -inverse @ jacobian[here][:, :, chosen.independent]
            lift[here[:, None], chosen.dependent] = inverse
        values["basis"], values["lift"] = basis, lift

    def _accelerate(self) -> None:
        """Add accelerations, multipliers and F."""
        values, functions = self.at.points.values, self.at.functions
        mass, load = self._evaluate(self.equations.explicit)[:2]
        values["independent_accelerations"] = np.asarray(np.linalg.solve(mass, load)[:, :, 0].T, dtype=np.float64)
        for part, found in zip(self.equations.motion.into, self._evaluate(self.equations.motion), strict=True):
            values[part] = found[:, :, 0].T
        rates = [values["independent_velocities"], values["independent_accelerations"]]
        own = (functions.state_rates, functions.integral_rates)
        rates.extend(self._evaluate(each)[0][:, :, 0].T for each in own)
        self.rates = np.vstack(rates)

    def motion(self) -> Floats:
        """Return w at the points, shape (size, points)."""
        values, choices = self.at.points.values, self.at.points.choices
        chosen = np.array([each.independent for each in choices], int).reshape(len(choices), self._freedom).T
        coordinates = np.take_along_axis(values["coordinates"], chosen, axis=0)
        return np.vstack([coordinates, values["independent_velocities"], values["states"], values["integrals"]])

    def slopes(self, points: Indices, rows: Sequence[int]) -> _ReducedSlopes:
        """Return derivatives by w at points; see `TrapezoidalEquations`."""
        free = self._freedom
        found = self._evaluate(self.equations.along_states(rows), points)
        mass, load, flow, by_accelerations, read, read_by = found
        pushed = np.linalg.solve(mass, load)
        count, states = len(points), load.shape[2]
        matrix = np.zeros((count, self.size, self.size))
        matrix[:, :free, free : 2 * free] = np.eye(free)
        matrix[:, free : 2 * free, :states] = pushed
        matrix[:, 2 * free :, :states] = flow + by_accelerations @ pushed
        read = read.copy()
        read[:, :, :states] += read_by @ pushed
        return _ReducedSlopes(matrix, read, mass, by_accelerations, read_by)

    def by_parameters(
        self, points: Indices, slopes: Slopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """Return derivatives by parameters at points; see `TrapezoidalEquations`."""
        assert isinstance(slopes, _ReducedSlopes)
        load, flow, read = self._evaluate(self.equations.along_parameters(columns, rows), points)
        pushed: Floats = np.asarray(np.linalg.solve(slopes.mass, load), dtype=np.float64)
        flow = flow + slopes.flow_by_accelerations @ pushed
        return (
            np.concatenate([np.zeros_like(pushed), pushed, flow], axis=1),
            np.asarray(read + slopes.read_by_accelerations @ pushed),
        )

    def pulled_back(
        self, points: Indices, slopes: Slopes, by_rates: Floats, row: int, weights: Floats
    ) -> tuple[Floats, Floats]:
        """Return products of rows with derivatives by parameters and inputs; see `TrapezoidalEquations`."""
        assert isinstance(slopes, _ReducedSlopes)
        free = self._freedom
        by_read = np.zeros((len(points), self.at.functions.expressions.computed.numel()))
        by_read[:, row] = weights
        by_flow = by_rates[:, 2 * free :]
        pushed = by_rates[:, free : 2 * free] + np.einsum("ij,ijk->ik", by_flow, slopes.flow_by_accelerations)
        pushed = pushed + weights[:, None] * slopes.read_by_accelerations[:, 0]
        by_load = np.linalg.solve(slopes.mass.transpose(0, 2, 1), pushed[:, :, None])[:, :, 0]
        rows = {"by_load": by_load.T, "by_flow": by_flow.T, "by_read": by_read.T}
        first, second = (
            self._evaluate(function, points, **rows)[-2:]
            for function in (self.equations.pulled_back, self.equations.read_back)
        )
        return (first[0] + second[0])[:, :, 0], (first[1] + second[1])[:, :, 0]

    def rechosen(self, before: int, after: int) -> tuple[Floats, Floats] | None:
        """Return what another choice of coordinates makes of changes; see `StateEquations`."""
        choices, free, n = self.at.points.choices, self._freedom, len(self.at.functions.coordinates)
        if choices[before] is choices[after]:
            return None
        chosen = choices[after].independent
        moved, by = self._evaluate(self.equations.moved, [before])
        rows = np.concatenate([chosen, n + chosen])
        matrix = np.eye(self.size)
        matrix[: 2 * free, : 2 * free] = moved[0][rows]
        return matrix, np.vstack([by[0][rows], np.zeros((self.size - 2 * free, by.shape[2]))])

    def at_start(self, start: StartDerivatives) -> Floats:
        """Return the derivatives of w at the start: the rows of those of (z, ż, x, integrals) that w has."""
        n, first = len(self.at.functions.coordinates), self.at.points.choices[0].independent
        return start.motion[[*first, *(n + first), *range(2 * n, len(start.motion))]]
