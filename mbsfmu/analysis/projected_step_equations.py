"""Equations of the steps of penalty, which end with projections, at the points of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np

from mbsfmu.analysis.implicit_map import ImplicitMap, MapSlopes
from mbsfmu.analysis.run_points import Indices, PointFunctions, chunks
from mbsfmu.analysis.start_derivatives import StartDerivatives
from mbsfmu.analysis.state_equations import RunStates
from mbsfmu.analysis.step_equations import Readings, StepEquations, StepSlopes
from mbsfmu.base.errors import SimulationError
from mbsfmu.equations.linear import RANK_TOLERANCE, LuFactors
from mbsfmu.formulations.penalty import Penalty, projection_stiffening
from mbsfmu.formulations.projected_step import ProjectedStep
from mbsfmu.integration.implicit import SHORT
from mbsfmu.stepping.state import State
from mbsfmu.stepping.step_history import BEGUN
from mbsfmu.tracing.workspace import Floats

_PARTS: tuple[str, ...] = (
    "coordinates",
    "velocities",
    "accelerations",
    "states",
    "rates",
    "integrals",
    "integral_rates",
)
"""w."""
_OPEN = 1e-6
"""Share of Φ̈ by which accelerations that were found anew may miss it: all of it, where an equation was left out."""


class _Maps:
    """Traced maps of a formulation: its steps, w that is found anew, and what is read."""

    def __init__(self, formulation: Penalty) -> None:
        self._functions = functions = formulation.functions
        step, given = ProjectedStep(functions, formulation.equations), functions.expressions
        self.step = ImplicitMap(functions, "projected_step", step.equations, step.unknowns, step.end, step.begin)
        unknowns = ca.vertcat(functions.symbol("accelerations"), functions.symbol("multipliers"))
        found = self._symbols(rates=given.rates, integral_rates=given.integral_rates)
        before = self._symbols(accelerations=ca.SX.sym("before", len(functions.coordinates)))
        equations = ca.vertcat(given.balance, given.closure_acceleration)
        self.anew = ImplicitMap(functions, "begun_anew", equations, unknowns, found, before)
        self._reads: dict[tuple[int, ...], ImplicitMap] = {}

    def _symbols(self, **others: ca.SX) -> ca.SX:
        return ca.vertcat(*(others.get(part, self._functions.symbol(part)) for part in _PARTS))

    def read(self, rows: Sequence[int]) -> ImplicitMap:
        """Return the map to rows of what is computed."""
        key = tuple(rows)
        if key not in self._reads:
            read, nothing = self._functions.expressions.computed[list(rows)], ca.SX(0, 1)
            self._reads[key] = ImplicitMap(self._functions, "read", nothing, nothing, read, self._symbols())
        return self._reads[key]


_made: WeakKeyDictionary[Penalty, _Maps] = WeakKeyDictionary()
"""Those of formulations whose runs have been differentiated: fits do so again and again."""


@dataclass(frozen=True)
class _ProjectedSlopes(StepSlopes):
    """Derivatives along steps, and what they are made of.

    Attributes
    ----------
    step
        Of the steps themselves.
    reads
        Of what is read where steps begin and end.
    begun, anew
        Which steps begin with w that is found anew, and its derivatives.
    """

    step: MapSlopes
    reads: tuple[MapSlopes, MapSlopes]
    begun: Indices
    anew: MapSlopes


class ProjectedStepEquations(StepEquations, RunStates):
    """Steps with w = (z, ż, z̈, x, ẋ, integrals and their rates), which the next step of `penalty` goes on from.

    A step solves (M z̈ − Q + Φ_zᵀ λ, ẋ − f, Φ) = 0 at its end, with ż, z̈ and ẋ by the trapezoidal rule, and projects ż
    and z̈; see `ProjectedStep`. At the start, and where inputs jump, z̈, ẋ and the rates of integrals are found anew from
    (M z̈ − Q + Φ_zᵀ λ, Φ̈) = 0; so they are behind very short steps, where that is what these end with. Derivatives are
    those of these equations; the penalty factor of projections counts as constant.

    Parameters
    ----------
    at
        Evaluates functions at the points.
    formulation
        The formulation.
    step
        Size of internal steps in s.
    """

    remembered: ClassVar[tuple[str, ...]] = ("accelerations", "rates", "integral_rates")

    def __init__(self, at: PointFunctions, formulation: Penalty, step: float) -> None:
        functions = at.functions
        sizes = [functions.symbol(part).numel() for part in _PARTS]
        super().__init__(at, sum(sizes))
        self._formulation = formulation
        self._places: dict[str, Indices] = dict(
            zip(_PARTS, np.split(np.arange(self.size), np.cumsum(sizes)[:-1]), strict=True)
        )
        points = at.points
        self._followed = points.steps < SHORT * step
        self._fresh = np.isin(np.arange(len(points.choices)), points.ends, invert=True)
        self._step_values: dict[str, Floats] = {}
        if formulation not in _made:
            _made[formulation] = _Maps(formulation)
        self._maps = _made[formulation]
        at.constants["penalty"] = formulation.equations.penalty.copy()

    @staticmethod
    def choice(state: State) -> None:
        """Return None: there is no choice."""

    @staticmethod
    def same(choice: None, other: None) -> bool:
        """Return whether two choices are the same."""
        return choice is other

    # -- the points -----------------------------------------------------------------------------------------

    def complete(self, rows: Sequence[int]) -> Readings:
        """Find what steps solved and projected; see `StepEquations`."""
        values = self.at.points.values
        values["multipliers"] = np.zeros((len(self.at.functions.rows), len(self.at.points.choices)))
        for point in np.flatnonzero(self._fresh).tolist():
            self._begin_anew(point)
        self._solve_again()
        self._end_before_jumps()
        return self.readings(self._maps.read(rows).values(self.at, np.arange(len(self._fresh)), {})[1])

    def _begin_anew(self, point: int) -> None:
        """Find accelerations, rates and multipliers at a point, as runs do."""
        functions, values = self.at.functions, self.at.points.values
        for part, constant in self.at.constants.items():
            functions.write(part, constant)
        for part, numbers in values.items():
            functions.write(part, numbers[:, point])
        found = dict(zip(("accelerations", "multipliers", "rates"), self._formulation.fitting_motion(), strict=True))
        for part, numbers in found.items():
            functions.write(part, numbers)
            values[part][:, point] = numbers
        values["integral_rates"][:, point] = functions.integral_rates()[0]
        if len(functions.rows):
            jacobian, turning = functions.closure()[1], functions.quadratic()[0]
            moved, sizes = jacobian @ found["accelerations"], np.abs(jacobian) @ np.abs(found["accelerations"])
            if not np.max(np.abs(moved + turning)) <= _OPEN * max(1.0, np.max(sizes)):
                raise SimulationError(
                    f"{functions.system.name} is near a change point where inputs jump, and 'penalty' leaves out a "
                    "loop equation there, which is not differentiated; take another formulation"
                )

    def _solve_again(self) -> None:
        """Find what the steps had found: unknowns, multipliers, and projected motion with its forces."""
        at, points, functions, equations = self.at, self.at.points, self.at.functions, self._formulation.equations
        values, begins, ends = points.values, points.begins, points.ends
        m = len(functions.rows)
        given = {
            "begin": np.vstack([values["coordinates"], values["states"]])[:, begins],
            "begin_rates": np.vstack([values["velocities"], values["rates"]])[:, begins],
            "begin_accelerations": values["accelerations"][:, begins],
            BEGUN + "integrals": values["integrals"][:, begins],
            BEGUN + "integral_rates": values["integral_rates"][:, begins],
            "unknowns": np.vstack([values["coordinates"], values["states"]])[:, ends],
            "step": points.steps[None, :],
        }
        landed = [each[:, :, 0].T for each in at.evaluate(equations.landing, ends, **given)]
        motion = {"velocities": landed[1], "accelerations": landed[2], "multipliers": np.zeros((m, len(ends)))}
        given |= {"multipliers": motion["multipliers"], "projected": np.vstack(landed[1:3])}
        given |= {"forces": np.zeros((2 * m, len(ends))), "softness": np.zeros((1, len(ends)))}
        if m:
            self._project(motion, given)
        self._step_values = given

    def _end_before_jumps(self) -> None:
        """Set what jumps to its values before, where steps end and inputs may jump: states have those after it."""
        points = self.at.points
        jumped = np.append(np.flatnonzero(points.ends[:-1] != points.begins[1:]), len(points.ends) - 1)
        given = {name: values[:, jumped] for name, values in self._step_values.items()}
        ends = self._maps.step.values(self.at, points.ends[jumped], given)[1].T
        for part in self.remembered:
            points.values[part][:, points.ends[jumped]] = ends[self._places[part]]

    def _project(self, motion: dict[str, Floats], given: dict[str, Floats]) -> None:
        """Add the multipliers of steps, and the projections."""
        at, functions, formulation = self.at, self.at.functions, self._formulation
        ends, equations, n = at.points.ends, formulation.equations, len(functions.coordinates)
        unbalanced = at.evaluate(equations.unbalanced, ends, **motion)[0]
        jacobian = at.evaluate(functions.closure, ends)[1]
        held = np.linalg.pinv(jacobian.transpose(0, 2, 1), rcond=RANK_TOLERANCE)
        motion["multipliers"] = given["multipliers"] = -(held @ unbalanced)[:, :, 0].T
        matrices, sides = at.evaluate(equations.projection, ends, **motion, step=given["step"])
        softness, columns = -matrices[:, -1, -1], []
        for step, (matrix, right) in enumerate(zip(matrices, sides, strict=True)):
            factors = LuFactors(matrix)
            solution = factors.solve(right)
            if formulation.stiffens:
                before = np.column_stack([motion["velocities"][:, step], motion["accelerations"][:, step]])
                factor = projection_stiffening(factors, softness[step], solution, before)
                if factor > 1.0:
                    softness[step] /= factor
                    matrix[range(n, len(matrix)), range(n, len(matrix))] = -softness[step]
                    solution = LuFactors(matrix).solve(right)
            columns.append(solution)
        solutions = np.stack(columns)
        if functions.driven:
            projected = {"velocities": solutions[:, :n, 0].T, "accelerations": solutions[:, :n, 1].T}
            left = at.evaluate(equations.unbalanced, ends, **projected, multipliers=motion["multipliers"])[0]
            right = np.concatenate([-left, np.zeros((len(ends), len(functions.rows), 1))], axis=1)
            solutions = np.concatenate([solutions, np.linalg.solve(matrices, right)], axis=2)
        stacked = solutions.transpose(2, 1, 0)
        for name, each in (("projected", stacked[:, :n]), ("forces", stacked[:, n:])):
            given[name] = np.concatenate(each).astype(np.float64)
        given["softness"] = softness[None, :]

    def missed(self) -> tuple[Floats, Floats]:
        """Return by how much recorded steps miss w, and magnitudes; rates by what they move in the step."""
        points, system = self.at.points, self.at.functions.system
        open_, ends = self._maps.step.values(self.at, points.ends, self._step_values)
        for part in chunks(len(points.ends)):
            ends[part] -= np.einsum("ijk,ik->ij", self._step_slopes(part).by_equations, open_[part])
        motion = np.vstack([points.values[part] for part in _PARTS])
        off, sizes = np.abs(ends.T - motion[:, points.ends]), np.asarray(np.abs(motion).max(axis=1), dtype=np.float64)
        nominal = {"states": system.states, "integrals": system.integrals}
        for part, variables in nominal.items():
            least = [each.nominal or 1.0 for each in variables]
            sizes[self._places[part]] = np.maximum(sizes[self._places[part]], least)
        for part in ("coordinates", "velocities"):
            sizes[self._places[part]] = np.maximum(sizes[self._places[part]], 1.0)
        for part, rates in (("velocities", "accelerations"), ("states", "rates"), ("integrals", "integral_rates")):
            off[self._places[rates]] *= points.steps
            sizes[self._places[rates]] = sizes[self._places[part]]
        off[:, self._followed] = 0.0  # they go on with the rates where they begin, and not far
        return off, sizes

    def _basis(self, points: Indices, first: int, size: int) -> Floats | None:
        """Return the combinations of equations, the loop equations of which begin at an index, that are independent."""
        functions = self.at.functions
        if not functions.redundant:
            return None
        m, rank = len(functions.rows), functions.rank
        jacobian = self.at.evaluate(functions.closure, points)[1]
        found = np.zeros((len(points), size, size - m + rank))
        found[:, :first, :first] = np.eye(first)
        found[:, first : first + m, first : first + rank] = np.linalg.svd(jacobian)[0][:, :, :rank]
        found[:, first + m :, first + rank :] = np.eye(size - first - m)
        return found

    # -- derivatives ----------------------------------------------------------------------------------------

    def _step_slopes(self, part: slice) -> MapSlopes:
        functions, points = self.at.functions, self.at.points.ends[part]
        given = {name: values[:, part] for name, values in self._step_values.items()}
        first = len(functions.coordinates) + len(functions.states)
        size = sum(len(given[each]) for each in ("unknowns", "multipliers", "projected", "forces"))
        return self._maps.step.slopes(self.at, points, given, self._basis(points, first, size))

    def steps(self, part: slice, rows: Sequence[int]) -> _ProjectedSlopes:
        """Return derivatives by w of steps; see `StepEquations`."""
        begins, ends = self.at.points.begins[part], self.at.points.ends[part]
        step = self._step_slopes(part)
        begin, end = (self._maps.read(rows).slopes(self.at, each, {}) for each in (begins, ends))
        begun = np.flatnonzero(self._fresh[begins])
        n = len(self.at.functions.coordinates)
        basis = self._basis(begins[begun], n, n + len(self.at.functions.rows))
        anew = self._maps.anew.slopes(self.at, begins[begun], {}, basis)
        right, read = step.by_sources.copy(), begin.by_sources.copy()
        right[begun], read[begun] = right[begun] @ anew.by_sources, read[begun] @ anew.by_sources
        left = np.broadcast_to(np.eye(self.size), right.shape)
        return _ProjectedSlopes(part, left, right, read, end.by_sources, step, (begin, end), begun, anew)

    def steps_by_parameters(
        self, steps: StepSlopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats, Floats]:
        """Return derivatives by parameters; see `StepEquations`."""
        assert isinstance(steps, _ProjectedSlopes)
        added = self._maps.step.by_parameters(self.at, steps.step, columns)
        begin, end = (self._maps.read(rows).by_parameters(self.at, each, columns) for each in steps.reads)
        entering = self._maps.anew.by_parameters(self.at, steps.anew, columns)
        added[steps.begun] += steps.step.by_sources[steps.begun] @ entering
        begin[steps.begun] += steps.reads[0].by_sources[steps.begun] @ entering
        return added, begin, end

    def steps_pulled_back(
        self, steps: StepSlopes, by_steps: Floats, row: int, weights: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Return products of rows with derivatives by parameters and inputs; see `StepEquations`."""
        assert isinstance(steps, _ProjectedSlopes)
        by_begin, by_end = (weight[:, None] for weight in weights)
        read, (at_begin, at_end) = self._maps.read([row]), steps.reads
        stepped = self._maps.step.pulled_back(self.at, steps.step, by_steps)
        begin, end = read.pulled_back(self.at, at_begin, by_begin), read.pulled_back(self.at, at_end, by_end)
        entering = np.einsum("ij,ijk->ik", by_steps, steps.step.by_sources) + by_begin * at_begin.by_sources[:, 0]
        anew = self._maps.anew.pulled_back(self.at, steps.anew, entering[steps.begun])
        begin[1][steps.begun] += anew[1]
        by_parameters = sum(each[0].sum(axis=0) for each in (stepped, begin, end, anew))
        return np.asarray(by_parameters), begin[1], stepped[1] + end[1]

    def at_start(self, start: StartDerivatives) -> Floats:
        """Return the derivatives of w at the start, where what follows from (z, ż, x) is found anew."""
        found = np.zeros((self.size, start.motion.shape[1]))
        parts = ("coordinates", "velocities", "states", "integrals")
        found[np.concatenate([self._places[part] for part in parts])] = start.motion
        return found
