"""State equations of formulations of first order, in all coordinates, at the points of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import casadi as ca
import numpy as np

from mbsfmu.analysis.implicit_map import ImplicitMap
from mbsfmu.analysis.run_points import Indices, PointFunctions
from mbsfmu.analysis.start_derivatives import StartDerivatives
from mbsfmu.analysis.state_equations import Slopes, StateEquations
from mbsfmu.base.errors import InputError
from mbsfmu.formulations.first_order import FirstOrderFormulation
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.formulations.hdca import Hdca
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

_ROUND_OFF, _SAME = 1e-10, 1e-8
"""Share of the largest momentum and its change in a step: of round-off in M ż, and by which momenta before and after a
restart are the same."""
_ITERATIONS = 4
"""Of Newton's, from momenta of an explicit step: F is all but linear in them."""


class CoordinateStateEquations(StateEquations):
    """Equations with w = (z, ż, x, integrals) of `dca`, and (z, p, x, integrals) of `hdca`.

    Where momenta are restarted, p⁺ = M ż with ż of the momenta before; the momenta where the step before ended follow
    from its rule. Loops are in F, by accelerations or impulses, with the stabilisation of the formulation; derivatives
    are those of F with all of that. With other active loop equations F changes, and w does not.

    Parameters
    ----------
    at
        Evaluates functions at the points.
    formulation
        The formulation.
    """

    remembered: ClassVar[tuple[str, ...]] = ("momenta",)

    def __init__(self, at: PointFunctions, formulation: FirstOrderFormulation) -> None:
        functions = at.functions
        n = len(functions.coordinates)
        super().__init__(at, 2 * n + len(functions.states) + len(functions.integrals))
        self._formulation, self._derivatives = formulation, formulation.derivatives
        choices = np.array(at.points.choices, dtype=float)
        at.points.values["active"] = choices.reshape(len(choices), len(functions.rows)).T

    @staticmethod
    def choice(state: State) -> Floats:
        """Return ones for the loop equations in use."""
        return state.active

    @staticmethod
    def same(choice: Floats, other: Floats) -> bool:
        """Return whether the same are in use."""
        return choice is other or np.array_equal(choice, other)

    @staticmethod
    def may_begin_anew(formulation: Formulation, state: State, step: float) -> bool:
        """Return whether momenta are those without impulses, as where they were restarted."""
        if not (isinstance(formulation, Hdca) and formulation.restarts):
            return False
        formulation.load(state)
        formulation.initial_momenta()
        left = np.abs(formulation.functions.momenta - state.momenta)
        scale = np.max(np.abs(state.momenta) + step * np.abs(state.momentum_rates))
        return bool(np.all(left <= _ROUND_OFF * scale))

    def complete(self, rows: Sequence[int]) -> Floats:
        """Find F; see `StateEquations`."""
        flow, read = self.at.evaluate(self._derivatives.read(rows))
        self.rates = flow[:, :, 0].T
        return read[:, :, 0]

    def read(self, rows: Sequence[int]) -> Floats:
        """Return what is read; see `StateEquations`."""
        return self.at.evaluate(self._derivatives.read(rows))[1][:, :, 0]

    def _ended(self) -> Indices:
        """Return the steps at whose ends momenta may be restarted: those recorded there are the ones after it."""
        if not (isinstance(self._formulation, Hdca) and self._formulation.restarts):
            return np.empty(0, dtype=np.intp)
        points = self.at.points
        return np.flatnonzero(points.ends != np.append(points.begins[1:], -1))

    def end_steps(self, ends: Indices, motion: Floats) -> bool:
        """Take momenta from w where steps end, and the next one begins at another point."""
        n, taken = len(self.at.functions.coordinates), np.isin(ends, self.at.points.ends[self._ended()])
        self.at.points.values["momenta"][:, ends[taken]] = motion[n : 2 * n, taken]
        return bool(taken.any())

    def end_trapezoidal_steps(self) -> None:
        """Set the momenta where steps end, and the next one begins at another point, to those of the rule."""
        points, n = self.at.points, len(self.at.functions.coordinates)
        chosen = self._ended()
        if not len(chosen):
            return
        begins, ends, half = points.begins[chosen], points.ends[chosen], 0.5 * points.steps[chosen]
        flow, momenta = self._derivatives.read(()), points.values["momenta"]
        of_momenta = slice(n, 2 * n)
        pushed = self.at.evaluate(flow, begins)[0][:, of_momenta, 0]
        momenta[:, ends] = momenta[:, begins] + (2.0 * half[:, None] * pushed).T
        for _ in range(_ITERATIONS):
            there = self.at.evaluate(flow, ends)[0][:, of_momenta, 0]
            slopes = self.slopes(ends, ()).by_motion[:, of_momenta, of_momenta]
            left = momenta[:, ends].T - momenta[:, begins].T - half[:, None] * (pushed + there)
            matrix = np.eye(n) - half[:, None, None] * slopes
            momenta[:, ends] -= np.linalg.solve(matrix, left[:, :, None])[:, :, 0].T

    @property
    def _parts(self) -> tuple[str, ...]:
        return "coordinates", self._formulation.moving, "states", "integrals"

    def motion(self) -> Floats:
        """Return w at the points, shape (size, points)."""
        return np.vstack([self.at.points.values[part] for part in self._parts])

    def elsewhere(self, motion: Floats, inputs: Floats, near: Indices) -> CoordinateStateEquations:
        """Return the equations at other points; see `StateEquations`."""
        ends = np.cumsum([len(self.at.points.values[part]) for part in self._parts])[:-1]
        values = dict(zip(self._parts, np.split(motion, ends), strict=True))
        at = self.at.elsewhere({**values, "inputs": inputs}, near)
        found = CoordinateStateEquations(at, self._formulation)
        found.complete(())
        return found

    @property
    def traced(self) -> FirstOrderFormulation:
        """The formulation."""
        return self._formulation

    def _made_flow_map(self) -> ImplicitMap:
        """Return F, for which no equations have to be solved."""
        nothing, derivatives = ca.SX(0, 1), self._derivatives
        return ImplicitMap(self.at.functions, "flow", nothing, nothing, derivatives.flow, derivatives.values)

    def mapped(self, points: Indices) -> tuple[dict[str, Floats], Indices]:
        """Return nothing more; see `StateEquations`."""
        del points
        return {}, np.arange(self.size)

    def slopes(self, points: Indices, rows: Sequence[int]) -> Slopes:
        """Return derivatives by w at points; see `StateEquations`."""
        return Slopes(*self.at.evaluate(self._derivatives.along_states(rows), points))

    def by_parameters(
        self, points: Indices, slopes: Slopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """Return derivatives by parameters at points; see `StateEquations`."""
        del slopes
        by_rates, by_read = self.at.evaluate(self._derivatives.along_parameters(columns, rows), points)
        return by_rates, by_read

    def pulled_back(
        self, points: Indices, slopes: Slopes, by_rates: Floats, row: int, weights: Floats
    ) -> tuple[Floats, Floats]:
        """Return products of rows with derivatives by parameters and inputs; see `StateEquations`."""
        del slopes
        by_read = np.zeros((len(points), self.at.functions.expressions.computed.numel()))
        by_read[:, row] = weights
        found = self.at.evaluate(self._derivatives.pulled_back, points, by_flow=by_rates.T, by_read=by_read.T)
        return found[0][:, :, 0], found[1][:, :, 0]

    def rechosen(self, before: int, after: int) -> tuple[Floats, Floats] | None:
        """Return what a restart of momenta makes of changes; see `StateEquations`."""
        formulation, functions = self._formulation, self.at.functions
        if not (isinstance(formulation, Hdca) and formulation.restarts):
            return None
        momenta = self.at.points.values["momenta"]
        if np.allclose(momenta[:, before], momenta[:, after], rtol=_SAME, atol=_SAME * np.max(np.abs(momenta))):
            return None
        if functions.driven:
            raise InputError(
                f"{functions.system.name} has prescribed motion, and its momenta are restarted, which is not "
                "differentiated; set restart_momenta = False, or take another formulation"
            )
        n, everything = len(functions.coordinates), range(len(functions.parameters))
        first = len(functions.system.outputs) + n
        velocities, here = range(first, first + n), np.array([before])
        slopes = self.slopes(here, velocities)
        _, by = self.by_parameters(here, slopes, everything, velocities)
        of_motion, of_parameters = (each[0] for each in self.at.evaluate(formulation.momenta_slopes, here))
        matrix, by_parameters = np.eye(self.size), np.zeros((self.size, len(functions.parameters)))
        matrix[n : 2 * n] = of_motion[:, n:] @ slopes.read_by_motion[0]
        matrix[n : 2 * n, :n] += of_motion[:, :n]
        by_parameters[n : 2 * n] = of_motion[:, n:] @ by[0] + of_parameters
        return matrix, by_parameters

    def at_start(self, start: StartDerivatives) -> Floats:
        """Return the derivatives of w at the start, of p = M ż with all that M depends on."""
        if not isinstance(self._formulation, Hdca):
            return start.motion
        n = len(self.at.functions.coordinates)
        by_motion, by_parameters = (each[0] for each in self.at.evaluate(self._formulation.momenta_slopes, [0]))
        found = start.motion.copy()
        found[n : 2 * n] = by_motion @ start.motion[: 2 * n] + by_parameters @ start.parameters
        return found
