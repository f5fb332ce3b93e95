"""Equations of the steps of a run: how w at the end of each follows from w at its start, parameters and inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from mbsfmu.analysis.state_equations import Indices, MapSlopes, Slopes, StateEquations, TangentSlopes, chunks
from mbsfmu.integration.rosenbrock import RosenbrockMethod
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class StepSlopes:
    """Derivatives along some steps.

    Attributes
    ----------
    part
        Which steps.
    forward
        Of w_{n+1} by w_n, shape (steps, size, size).
    read_begin, read_end
        Of what is read where steps begin by w_n, and where they end by w_{n+1}, each of shape (steps, rows, size).
    """

    part: slice
    forward: Floats
    read_begin: Floats
    read_end: Floats


@dataclass(frozen=True)
class Readings:
    """What is read along a run, over intervals that end with steps, and where something is read within these.

    Attributes
    ----------
    times
        Ends of the intervals in s, the start first; shape (N + 1,).
    begin, end
        What is read where they begin and end, shape (N, rows).
    """

    times: Floats
    begin: Floats
    end: Floats


class StepEquations(ABC):
    """The steps of a run: what w is, and the derivatives of w_{n+1} by w_n, parameters and inputs.

    Steps here are intervals between times at which something is read. Within a step of a solver w stays that at its
    start until the last of them.

    Parameters
    ----------
    states
        The equations at the points where steps begin and end.

    Attributes
    ----------
    at, size, states
        What evaluates functions at the points, the number of elements of w, and the equations.
    """

    formula_count: ClassVar[int] = 1
    """How many `formulas` there are."""

    def __init__(self, states: StateEquations) -> None:
        self.at, self.size, self.states = states.at, states.size, states

    @abstractmethod
    def complete(self, rows: Sequence[int]) -> Readings:
        """Find what the points lack; return what is read along the run.

        Parameters
        ----------
        rows
            Rows of what is computed, see `SystemExpressions.computed`.
        """

    def first_interval(self, step: int) -> int:
        """Return the first interval of a step of the solver."""
        return step

    @property
    def step_ends(self) -> Indices:
        """Indices of the times of `Readings` at which steps of the solver begin and end: inputs are linear between."""
        return np.arange(len(self.at.points.times))

    def chunks(self, first: int, last: int) -> list[slice]:
        """Return slices of intervals, few enough that their matrices fit into a cache."""
        return chunks(last, first)

    @abstractmethod
    def missed(self) -> tuple[Floats, Floats]:
        """Return by how much recorded steps miss the equations, (quantities, steps), and magnitudes, (quantities,)."""

    @abstractmethod
    def steps(self, part: slice, rows: Sequence[int]) -> StepSlopes:
        """Return derivatives by w of steps, and of rows of what is computed where they begin and end."""

    def formulas(self, steps: StepSlopes) -> Iterator[StepSlopes]:
        """Yield derivatives as they are, and those by the embedded formula in the same steps, where there is one.

        What differs tells how exact derivatives are, for step sizes are chosen for the run alone.

        Parameters
        ----------
        steps
            What `steps` gives.
        """
        yield steps

    @abstractmethod
    def steps_by_parameters(
        self, steps: StepSlopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats, Floats]:
        """Return derivatives by parameters.

        Parameters
        ----------
        steps
            What `steps` gives for the rows.
        columns, rows
            Indices of the parameters, and of what is computed.

        Returns
        -------
        steps, read_begin, read_end
            Of w_{n+1}, shape (steps, size, columns), and of what is read where steps begin and end, (steps, rows,
            columns).
        """

    @abstractmethod
    def steps_pulled_back(
        self, steps: StepSlopes, by_steps: Floats, row: int, weights: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Return products of rows with derivatives by all parameters and inputs.

        Parameters
        ----------
        steps
            What `steps` gives for the row alone.
        by_steps
            Rows of w_{n+1}, shape (steps, size).
        row, weights
            Index of what is computed, and its weights where steps begin and end, each of shape (steps,).

        Returns
        -------
        parameters, inputs_begin, inputs_end
            Sum over the steps, shape (all parameters,), and by the inputs where steps begin and end, (steps, inputs).
        """


def chained(forward: Floats, added: Floats, first: Floats) -> Floats:
    """Return x_0, …, x_N of x_{n+1} = A_n x_n + b_n, with A of shape (N, size, size)."""
    found = np.empty((len(forward) + 1, *first.shape))
    found[0] = first
    found[1:] = added
    for before, matrix, after in zip(found, forward, found[1:], strict=False):
        np.add(after, matrix @ before, out=after)
    return found


@dataclass(frozen=True)
class _TrapezoidalSlopes(StepSlopes):
    """Derivatives along steps, and what they are made of.

    Attributes
    ----------
    points, at_begin, at_end
        Points where the steps begin and end, and which of them each step begins and ends at.
    slopes
        Derivatives there.
    half, inverse
        h/2 of the steps, shape (steps,), and (I − h/2 A_{n+1})⁻¹.
    """

    points: Indices
    at_begin: Indices
    at_end: Indices
    slopes: Slopes
    half: Floats
    inverse: Floats


class TrapezoidalStepEquations(StepEquations):
    """Steps w_{n+1} = w_n + h/2 (F_n + F_{n+1}).

    With A = ∂F/∂w and B = ∂F/∂p they are differentiated as (I − h/2 A_{n+1}) δw_{n+1} = (I + h/2 A_n) δw_n + h/2 (B_n +
    B_{n+1}) δp.
    """

    def complete(self, rows: Sequence[int]) -> Readings:
        """Find F at the points; see `StepEquations`."""
        points, read = self.at.points, self.states.complete(rows)
        return Readings(points.times, read[points.begins], read[points.ends])

    def missed(self) -> tuple[Floats, Floats]:
        """Return by how much steps miss the rule, and magnitudes; see `StepEquations`."""
        points, motion, rates = self.at.points, self.states.motion(), self.states.rates
        moved = 0.5 * points.steps * (rates[:, points.begins] + rates[:, points.ends])
        return np.abs(motion[:, points.ends] - motion[:, points.begins] - moved), self.states.magnitudes

    def steps(self, part: slice, rows: Sequence[int]) -> _TrapezoidalSlopes:
        """Return derivatives by w of steps; see `StepEquations`."""
        points, half = self.at.points, 0.5 * self.at.points.steps[part]
        both = np.concatenate([points.begins[part], points.ends[part]])
        places, inverse = np.unique(both, return_inverse=True)
        at_begin, at_end = np.split(inverse, 2)
        slopes = self.states.slopes(places, rows)
        one, read = np.eye(self.size), slopes.read_by_motion
        inverse = np.asarray(np.linalg.inv(one - half[:, None, None] * slopes.by_motion[at_end]), dtype=np.float64)
        forward = inverse @ (one + half[:, None, None] * slopes.by_motion[at_begin])
        return _TrapezoidalSlopes(
            part, forward, read[at_begin], read[at_end], places, at_begin, at_end, slopes, half, inverse
        )

    def steps_by_parameters(
        self, steps: StepSlopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats, Floats]:
        """Return derivatives by parameters; see `StepEquations`."""
        assert isinstance(steps, _TrapezoidalSlopes)
        by_rates, by_read = self.states.by_parameters(steps.points, steps.slopes, columns, rows)
        added = steps.half[:, None, None] * (by_rates[steps.at_begin] + by_rates[steps.at_end])
        return steps.inverse @ added, by_read[steps.at_begin], by_read[steps.at_end]

    def steps_pulled_back(
        self, steps: StepSlopes, by_steps: Floats, row: int, weights: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Return products of rows with derivatives by parameters and inputs; see `StepEquations`."""
        assert isinstance(steps, _TrapezoidalSlopes)
        # What enters each point: rows for F and for what is read.
        by_rates, weights_there = np.zeros((len(steps.points), self.size)), np.zeros(len(steps.points))
        half = steps.half[:, None] * np.einsum("ij,ijk->ik", by_steps, steps.inverse)
        for place, weight in zip((steps.at_begin, steps.at_end), weights, strict=True):
            np.add.at(by_rates, place, half)
            np.add.at(weights_there, place, weight)
        by_parameters, by_inputs = self.states.pulled_back(steps.points, steps.slopes, by_rates, row, weights_there)
        # A point that one step ends at and the next begins at enters once, where the step ends.
        at_end = by_inputs[steps.at_end]
        begun = np.isin(steps.at_begin, steps.at_end, invert=True)
        return by_parameters.sum(axis=0), np.where(begun[:, None], by_inputs[steps.at_begin], 0.0), at_end


_CHUNK = 64
"""Steps that are differentiated at once: each has as many points as stages, with several matrices."""


@dataclass(frozen=True)
class StepInputs:
    """Inputs inside the steps of a run.

    Attributes
    ----------
    stages
        Their values at the stages, shape (steps, stages, inputs).
    slopes
        Their derivatives by time where steps begin, shape (steps, inputs).
    inside, share
        Values where something is read inside steps, shape (readings, inputs), and at which share of the step, shape
        (readings,).
    step
        Which step each of these is in, ascending.
    """

    stages: Floats
    slopes: Floats
    inside: Floats
    share: Floats
    step: Indices


@dataclass(frozen=True)
class _Stages:
    """Stages of some steps.

    Attributes
    ----------
    first, begins, sizes
        The first step, points where they begin, and their sizes in s, shape (steps, 1, 1).
    matrices
        Derivatives of F and of what is read where steps begin.
    inverse
        Of the matrix (1/(h γ) − J), shape (steps, size, size).
    at
        Equations at the stages behind the first, which is where the step begins.
    increments
        uᵢ, each of shape (steps, size).
    end
        w at the end, shape (steps, size).
    """

    first: int
    begins: Indices
    sizes: Floats
    matrices: Slopes
    inverse: Floats
    at: list[StateEquations]
    increments: list[Floats]
    end: Floats


@dataclass(frozen=True)
class _RosenbrockSlopes(StepSlopes):
    """Derivatives along intervals, and what they are made of.

    Attributes
    ----------
    stages
        The stages of the steps.
    lasts
        Which of the intervals end with a step.
    slopes
        Derivatives at the stages behind the first.
    indices, tangents
        The indices of w in the map of F, and derivatives of its changes along (uᵢ, γᵢ h u̇).
    ends, inside
        Derivatives where steps end, and where something is read inside them.
    readings, read_at
        Which readings are inside the steps, and the equations there.
    moved
        Changes of the increments with w_n, shape (stages, steps, size, size).
    weights
        Factors of the increments in w_{n+1}, shape (stages,).
    """

    stages: _Stages
    lasts: Indices
    slopes: list[Slopes]
    indices: Indices
    tangents: list[TangentSlopes]
    ends: Slopes
    inside: Slopes
    readings: Indices
    read_at: StateEquations
    moved: Floats
    weights: Floats


class RosenbrockStepEquations(StepEquations):
    """Accepted steps of a Rosenbrock method for ẇ = F(w, u, p), differentiated with their sizes as they are.

    Stages are (1/(h γ) − J) uᵢ = F(Yᵢ) + Σ cᵢⱼ uⱼ / h + γᵢ h ∂F/∂t with Yᵢ = w_n + Σ aᵢⱼ uⱼ and J = ∂F/∂w at w_n. So
    δuᵢ follows from (1/(h γ) − J) δuᵢ = δF(Yᵢ) + Σ cᵢⱼ δuⱼ / h + δ(J uᵢ + γᵢ h ∂F/∂u u̇), where the last bracket is a
    change of F along a direction, whose derivative is exact, too [Hairer1996, sect. IV.7; Sandu 2006; Zhang, Sandu:
    FATODE, SIAM J. Sci. Comput. 36 (2014) C504]. What is read inside steps follows the method's interpolant.

    Parameters
    ----------
    states
        F at the points where steps begin and end.
    method
        The method.
    inputs
        Inputs inside steps.
    """

    formula_count: ClassVar[int] = 2

    def __init__(self, states: StateEquations, method: RosenbrockMethod, inputs: StepInputs) -> None:
        super().__init__(states)
        self._method, self._inputs = method, inputs
        count = method.stages
        self._couplings, self._rate_couplings = np.zeros((2, count, count))
        for stage in range(count):
            self._couplings[stage, :stage] = method.couplings[stage]
            self._rate_couplings[stage, :stage] = method.rate_couplings[stage]
        self._at_end = self._couplings[-1] + np.eye(count)[-1]
        steps = np.arange(len(states.at.points.steps))
        self._firsts = steps + np.searchsorted(inputs.step, steps)
        self._step_of = np.sort(np.concatenate([steps, inputs.step]))
        self._missed = np.zeros((self.size, len(steps)))

    # -- intervals ------------------------------------------------------------------------------------------

    def first_interval(self, step: int) -> int:
        """Return the first interval of a step."""
        return int(self._firsts[step]) if step < len(self._firsts) else len(self._step_of)

    @property
    def step_ends(self) -> Indices:
        """Indices of the times at which steps begin and end."""
        return np.append(self._firsts, len(self._step_of))

    @cached_property
    def _bounds(self) -> list[int]:
        """The first step of each part with one choice of coordinates, and that behind the last one."""
        chosen = self.at.points.chosen[self.at.points.begins]
        return [0, *(1 + np.flatnonzero(np.diff(chosen))).tolist(), len(chosen)]

    def _parts(self, first: int, last: int) -> list[slice]:
        """Return slices of steps with one choice each."""
        bounds = sorted({first, last, *(each for each in self._bounds if first < each < last)})
        return [
            slice(begin, min(begin + _CHUNK, bound))
            for start, bound in pairwise(bounds)
            for begin in range(start, bound, _CHUNK)
        ]

    def chunks(self, first: int, last: int) -> list[slice]:
        """Return slices of intervals that begin and end with steps."""
        steps = int(self._step_of[first]), int(self._step_of[last - 1]) + 1
        parts = self._parts(*steps)
        return [slice(self.first_interval(each.start), self.first_interval(each.stop)) for each in parts]

    def _readings_in(self, first: int, last: int) -> Indices:
        return np.arange(*np.searchsorted(self._inputs.step, [first, last]))

    def _share(self, readings: Indices, weights: Floats) -> tuple[Floats, Indices]:
        """Return the factors of increments in w where something is read, shape (readings, stages), and their steps.

        Parameters
        ----------
        readings
            Which readings.
        weights
            The factors where steps end.
        """
        share = self._inputs.share[readings, None]
        bent = np.zeros((len(readings), self._method.stages))
        for row in self._method.interpolation[::-1]:
            bent = row + share * bent
        return share * weights + share * (1.0 - share) * bent, self._inputs.step[readings]

    # -- steps ----------------------------------------------------------------------------------------------

    def complete(self, rows: Sequence[int]) -> Readings:
        """Make the steps once more for what runs do not tell of them; see `StepEquations`."""
        points, states = self.at.points, self.states
        read_at = states.complete(rows)
        read_inside = np.empty((len(self._inputs.step), len(rows)))
        for part in self._parts(0, len(points.steps)):
            stages = self._stages(part, ())
            self._missed[:, part] = np.abs(stages.end.T - states.motion()[:, points.ends[part]])
            readings, inside = self._inside(stages)
            read_inside[readings] = inside.read(rows)
        lasts, count = self.step_ends[1:] - 1, len(self._step_of)
        begin, end = self._spread(lasts, count, read_at[points.begins], read_at[points.ends], read_inside)
        return Readings(self._times(), begin, end)

    def _times(self) -> Floats:
        points, inputs = self.at.points, self._inputs
        times = np.empty(len(self._step_of) + 1)
        times[self.step_ends] = points.times
        between = np.setdiff1d(np.arange(len(times)), self.step_ends)
        times[between] = points.times[inputs.step] + inputs.share * points.steps[inputs.step]
        return times

    def missed(self) -> tuple[Floats, Floats]:
        """Return by how much recorded steps miss those that were made once more; see `StepEquations`."""
        return self._missed, self.states.magnitudes

    def _stages(self, part: slice, rows: Sequence[int]) -> _Stages:
        """Make steps once more, from their recorded begins."""
        states, method, points = self.states, self._method, self.at.points
        begins, sizes = points.begins[part], points.steps[part, None, None]
        matrices = states.slopes(begins, rows)
        inverse = np.asarray(
            np.linalg.inv(np.eye(self.size) / (sizes * method.diagonal) - matrices.by_motion), dtype=np.float64
        )
        start, drift = states.motion()[:, begins].T, self._drift(begins, self._inputs.slopes[part])
        at: list[StateEquations] = []
        increments: list[Floats] = []
        rates, step = states.rates[:, begins].T, sizes[:, :, 0]
        for stage in range(method.stages):
            if stage:
                values = start + np.tensordot(self._couplings[stage, :stage], np.array(increments), 1)
                at.append(states.elsewhere(values.T, self._inputs.stages[part, stage].T, begins))
                rates = at[-1].rates.T
            right = rates + step * method.slopes[stage] * drift
            if stage:
                right = right + np.tensordot(self._rate_couplings[stage, :stage], np.array(increments), 1) / step
            increments.append(np.einsum("ijk,ik->ij", inverse, right))
        end = start + np.tensordot(self._at_end, np.array(increments), 1)
        return _Stages(part.start, begins, sizes, matrices, inverse, at, increments, end)

    def _mapped(self, begins: Indices) -> tuple[MapSlopes, Indices]:
        """Return the derivatives of the map of F at points, and the indices of w in it."""
        given, indices = self.states.mapped(begins)
        return self.states.flow_map.slopes(self.at, begins, given), indices

    def _drift(self, begins: Indices, slopes: Floats) -> Floats | float:
        """Return ∂F/∂u u̇ where steps begin."""
        if not slopes.any():
            return 0.0
        mapped, indices = self._mapped(begins)
        still = np.zeros((len(begins), self.states.flow_map.size))
        return self.states.flow_map.tangent(self.at, mapped, still, slopes).values[:, indices]

    def _tangents(self, stages: _Stages) -> tuple[Indices, list[TangentSlopes]]:
        """Return the indices of w in the map of F, and derivatives of its changes along (uᵢ, γᵢ h u̇)."""
        mapped, indices = self._mapped(stages.begins)
        slopes = self._inputs.slopes[stages.first : stages.first + len(stages.begins)]
        found: list[TangentSlopes] = []
        for increment, factor in zip(stages.increments, self._method.slopes, strict=True):
            along = np.zeros((len(stages.begins), self.states.flow_map.size))
            along[:, indices] = increment
            tangent = self.states.flow_map.tangent(self.at, mapped, along, stages.sizes[:, :, 0] * factor * slopes)
            found.append(self.states.flow_map.tangent_slopes(self.at, tangent))
        return indices, found

    def _inside(self, stages: _Stages) -> tuple[Indices, StateEquations]:
        """Return which readings are inside steps, and the equations there."""
        readings = self._readings_in(stages.first, stages.first + len(stages.begins))
        factors, steps = self._share(readings, self._at_end)
        own = steps - stages.first
        motion = self.states.motion()[:, stages.begins[own]]
        motion = motion + np.einsum("ij,jik->ki", factors, np.array(stages.increments)[:, own])
        return readings, self.states.elsewhere(motion, self._inputs.inside[readings].T, stages.begins[own])

    # -- derivatives ----------------------------------------------------------------------------------------

    def steps(self, part: slice, rows: Sequence[int]) -> _RosenbrockSlopes:
        """Return derivatives by w of intervals; see `StepEquations`."""
        first, last = int(self._step_of[part.start]), int(self._step_of[part.stop - 1]) + 1
        stages = self._stages(slice(first, last), rows)
        every = np.arange(len(stages.begins))
        slopes = [each.slopes(every, ()) for each in stages.at]
        indices, tangents = self._tangents(stages)
        one = np.broadcast_to(np.eye(self.size), stages.inverse.shape)
        directly = [each.by_sources[:, indices[:, None], indices] for each in tangents]
        moved = self._increments(stages, slopes, one, directly, stages.matrices.by_motion)
        readings, read_at = self._inside(stages)
        inside = read_at.slopes(np.arange(len(readings)), rows)
        ends = self.states.slopes(self.at.points.ends[first:last], rows)
        lasts = self.step_ends[first + 1 : last + 1] - 1 - part.start
        still = np.broadcast_to(np.eye(self.size), (part.stop - part.start, self.size, self.size))
        found = _RosenbrockSlopes(
            part, still, stages.matrices.read_by_motion, ends.read_by_motion, stages, lasts, slopes, indices,
            tangents, ends, inside, readings, read_at, moved, self._at_end,
        )  # fmt: skip
        return self._by_weights(found, self._at_end)

    def formulas(self, steps: StepSlopes) -> Iterator[_RosenbrockSlopes]:
        """Yield derivatives, and those by the embedded formula, which omits the last increment; see `StepEquations`."""
        assert isinstance(steps, _RosenbrockSlopes)
        yield steps
        yield self._by_weights(steps, self._couplings[-1])

    def _by_weights(self, steps: _RosenbrockSlopes, weights: Floats) -> _RosenbrockSlopes:
        """Return the derivatives of steps that end with these factors of the increments."""
        one = np.broadcast_to(np.eye(self.size), steps.stages.inverse.shape)
        factors, own = self._share(steps.readings, weights)
        own = own - steps.stages.first
        moved = one[own] + np.einsum("ij,jikl->ikl", factors, steps.moved[:, own])
        forward = np.tile(np.eye(self.size), (len(steps.forward), 1, 1))
        forward[steps.lasts] += np.tensordot(weights, steps.moved, 1)
        begin, end = steps.stages.matrices.read_by_motion, steps.ends.read_by_motion
        read = self._spread(steps.lasts, len(forward), begin, end, steps.inside.read_by_motion @ moved)
        return replace(steps, forward=forward, read_begin=read[0], read_end=read[1], weights=weights)

    def _increments(
        self, stages: _Stages, slopes: list[Slopes], start: Floats | float, directly: list[Floats], begin: Floats
    ) -> Floats:
        """Return the changes of increments with something, shape (stages, steps, size, columns).

        Parameters
        ----------
        stages, slopes
            The stages, and derivatives of F by w at those behind the first.
        start
            The change of w_n.
        directly
            Those of J uᵢ + γᵢ h ∂F/∂t, and of F(Yᵢ) at constant Yᵢ.
        begin
            That of F(w_n).
        """
        moved: list[Floats] = []
        for stage, own in enumerate(directly):
            through = begin
            if stage:
                before = np.array(moved)
                values = start + np.tensordot(self._couplings[stage, :stage], before, 1)
                coupled = np.tensordot(self._rate_couplings[stage, :stage], before, 1) / stages.sizes
                through = slopes[stage - 1].by_motion @ values + coupled
            moved.append(stages.inverse @ (own + through))
        return np.array(moved)

    def steps_by_parameters(
        self, steps: StepSlopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats, Floats]:
        """Return derivatives by parameters; see `StepEquations`."""
        assert isinstance(steps, _RosenbrockSlopes)
        stages, states, flow_map = steps.stages, self.states, self.states.flow_map
        every = np.arange(len(stages.begins))
        begin, read_begin = states.by_parameters(stages.begins, stages.matrices, columns, rows)
        directly = [flow_map.tangent_by_parameters(self.at, each, columns)[:, steps.indices] for each in steps.tangents]
        for stage, (each, slopes) in enumerate(zip(stages.at, steps.slopes, strict=True), start=1):
            directly[stage] = directly[stage] + each.by_parameters(every, slopes, columns, ())[0]
        moved = self._increments(stages, steps.slopes, 0.0, directly, begin)
        factors, own = self._share(steps.readings, steps.weights)
        by_inside = steps.read_at.by_parameters(np.arange(len(own)), steps.inside, columns, rows)[1]
        by_inside = by_inside + steps.inside.read_by_motion @ np.einsum(
            "ij,jikl->ikl", factors, moved[:, own - stages.first]
        )
        ends = self.at.points.ends[stages.first : stages.first + len(every)]
        read_end = states.by_parameters(ends, steps.ends, columns, rows)[1]
        count = steps.part.stop - steps.part.start
        added = np.zeros((count, self.size, len(columns)))
        added[steps.lasts] = np.tensordot(steps.weights, moved, 1)
        return added, *self._spread(steps.lasts, count, read_begin, read_end, by_inside)

    @staticmethod
    def _spread(lasts: Indices, count: int, at_begin: Floats, at_end: Floats, inside: Floats) -> tuple[Floats, Floats]:
        """Return values where intervals begin and end, from those where steps begin and end, and inside these.

        Parameters
        ----------
        lasts, count
            Which of the intervals end with a step, and the number of intervals.
        at_begin, at_end, inside
            The values.
        """
        between = np.setdiff1d(np.arange(count), lasts)
        begin, end = np.empty((2, count, *at_end.shape[1:]))
        begin[np.setdiff1d(np.arange(count), between + 1)], end[lasts] = at_begin, at_end
        begin[between + 1] = end[between] = inside
        return begin, end

    def steps_pulled_back(
        self, steps: StepSlopes, by_steps: Floats, row: int, weights: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Return products of rows with derivatives by parameters and inputs; see `StepEquations`."""
        assert isinstance(steps, _RosenbrockSlopes)
        stages, states, method, points = steps.stages, self.states, self._method, self.at.points
        count, every = len(weights[0]), np.arange(len(stages.begins))
        between = np.setdiff1d(np.arange(count), steps.lasts)
        firsts = np.setdiff1d(np.arange(count), between + 1)
        factors, own = self._share(steps.readings, steps.weights)
        own = own - stages.first
        of_inside = weights[1][between] + weights[0][between + 1]
        rows_inside = of_inside[:, None] * steps.inside.read_by_motion[:, 0]
        # Rows of the increments, from those of the end and of what is read inside.
        of_increments = steps.weights[:, None, None] * by_steps[steps.lasts]
        np.add.at(of_increments.swapaxes(0, 1), own, factors[:, :, None] * rows_inside[:, None])
        of_stages = np.empty_like(of_increments)
        for stage in range(method.stages - 1, -1, -1):
            of_stages[stage] = np.einsum("ij,ijk->ik", of_increments[stage], stages.inverse)
            if stage:
                through = np.einsum("ij,ijk->ik", of_stages[stage], steps.slopes[stage - 1].by_motion)
                of_increments[:stage] += self._couplings[stage, :stage, None, None] * through
                coupled = self._rate_couplings[stage, :stage, None, None] * of_stages[stage]
                of_increments[:stage] += coupled / stages.sizes[:, :, 0]
        nothing = np.zeros(len(every))
        weighted = weights[0][firsts], weights[1][steps.lasts]
        found = [states.pulled_back(stages.begins, stages.matrices, of_stages[0], row, weighted[0])]
        found += [
            each.pulled_back(every, slopes, of_stages[stage], row, nothing)
            for stage, (each, slopes) in enumerate(zip(stages.at, steps.slopes, strict=True), start=1)
        ]
        ends = points.ends[stages.first : stages.first + len(every)]
        still = np.zeros((len(every), self.size))
        at_end = states.pulled_back(ends, steps.ends, still, row, weighted[1])
        there = np.zeros((len(own), self.size))
        at_inside = steps.read_at.pulled_back(np.arange(len(own)), steps.inside, there, row, of_inside)
        by_parameters = sum(each[0].sum(axis=0) for each in (*found, at_end, at_inside))
        # Inputs are linear inside steps: what enters at a share of a step belongs to both its ends.
        begin, end = np.zeros((2, len(every), found[0][1].shape[1]))
        for node, (_, by_inputs) in zip(method.nodes, found, strict=True):
            begin += (1.0 - node) * by_inputs
            end += node * by_inputs
        share = self._inputs.share[steps.readings, None]
        np.add.at(begin, own, (1.0 - share) * at_inside[1])
        np.add.at(end, own, share * at_inside[1])
        end += at_end[1]
        by_slopes = np.zeros((len(every), self.size))
        for stage, slopes in enumerate(steps.tangents):
            rows = np.zeros(slopes.tangent.values.shape)
            rows[:, steps.indices] = of_stages[stage]
            of_parameters, of_inputs = states.flow_map.tangent_pulled_back(self.at, slopes.tangent, rows)
            by_parameters = by_parameters + of_parameters.sum(axis=0)
            begin += of_inputs
            by_slopes += method.slopes[stage] * of_stages[stage]
        # With the drift γᵢ h ∂F/∂u u̇ the rate u̇ = (u_{n+1} − u_n) / h enters.
        by_rates = states.pulled_back(stages.begins, stages.matrices, by_slopes, row, nothing)[1]
        begin, end = begin - by_rates, end + by_rates
        inputs_begin, inputs_end = np.zeros((2, count, begin.shape[1]))
        inputs_begin[firsts], inputs_end[steps.lasts] = begin, end
        return np.asarray(by_parameters), inputs_begin, inputs_end
