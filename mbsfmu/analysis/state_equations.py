"""State equations ẇ = F(w, u, p) and their derivatives at points of a run, also where a map is given by equations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.analysis.start_derivatives import StartDerivatives
from mbsfmu.base.errors import SimulationError
from mbsfmu.formulations.double_step import ReducedEquations
from mbsfmu.initialization.coordinates import Partition
from mbsfmu.native.many_points import CHUNK, at_points
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import AnyFunction, Floats, TracedFunction

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class RunPoints:
    """A run from step to step. Each step begins at one point and ends at another; inputs jump between steps.

    Attributes
    ----------
    times
        Ends of the steps in s, the start first; shape (N + 1,).
    begins, ends
        Index of the point where each step begins and ends, shape (N,).
    choices, chosen
        Choices of independent coordinates, and which of them each point has.
    values
        Values at the points by the name of the part of the functions; shape (size, points), of matrices
        (points, rows, columns).
    """

    times: Floats
    begins: Indices
    ends: Indices
    choices: Sequence[Partition]
    chosen: Indices
    values: dict[str, Floats]

    @cached_property
    def independent(self) -> Indices:
        """Indices of the independent coordinates at each point, shape (n − r, points)."""
        return np.array([each.independent for each in self.choices], dtype=np.intp)[self.chosen].T

    def groups(self) -> Iterator[tuple[Partition, Indices]]:
        """Yield the choices of coordinates that points have, with these points."""
        for index in np.unique(self.chosen).tolist():
            yield self.choices[index], np.flatnonzero(self.chosen == index)

    @property
    def steps(self) -> Floats:
        """Sizes of the steps in s, shape (N,)."""
        return np.diff(self.times)


class PointFunctions:
    """Traced functions of a system, evaluated at points of a run.

    Parameters
    ----------
    functions
        Of the system.
    points
        The points.
    constants
        Values of parts that stay as they are in a run.
    """

    def __init__(self, functions: SystemFunctions, points: RunPoints, constants: Mapping[str, Floats]) -> None:
        self.functions, self.points, self.constants = functions, points, dict(constants)

    def evaluate(
        self, function: AnyFunction, chosen: Sequence[int] | Indices | None = None, **given: Floats
    ) -> list[Floats]:
        """Return the results of a traced function at points, each of shape (points, rows, columns).

        Parameters
        ----------
        function
            A `TracedFunction` in unrolled code.
        chosen
            Indices of the points; all of them by default.
        given
            Values of further parts, shape (size, number of points).
        """
        assert isinstance(function, TracedFunction)
        places = np.arange(len(self.points.chosen)) if chosen is None else np.asarray(chosen, dtype=np.intp)
        arguments = [self._argument(name, places, given) for name in function.function.name_in()]
        return at_points(function, arguments, len(places))

    def elsewhere(self, values: Mapping[str, Floats], near: Indices) -> PointFunctions:
        """Return the functions at other points, given values of parts there, shape (size, points).

        Parameters
        ----------
        values
            What these points have.
        near
            Points of this one next to which they are, with the same choices.
        """
        nowhere = np.empty(0, dtype=np.intp)
        own = self.points
        points = RunPoints(np.empty(0), nowhere, nowhere, own.choices, own.chosen[near], dict(values))
        return PointFunctions(self.functions, points, self.constants)

    def _argument(self, name: str, places: Indices, given: dict[str, Floats]) -> Floats:
        """Return the values of a part at points, one after the other, of matrices column by column."""
        if name in given:
            return np.ascontiguousarray(given[name].T)
        if name not in self.points.values:
            return np.tile(self.constants[name].ravel(order="F"), (len(places), 1))
        values = self.points.values[name]
        if values.ndim == 2:
            return np.ascontiguousarray(values[:, places].T)
        return np.ascontiguousarray(values[places].transpose(0, 2, 1))


@contextmanager
def regular() -> Iterator[None]:
    """Decorate what solves equations at points of a run.

    Raises
    ------
    SimulationError
        When they are singular at one of them.
    """
    try:
        yield
    except np.linalg.LinAlgError:
        raise SimulationError("the equations are singular at a point of the run: it is not differentiated") from None


def chunks(stop: int, start: int = 0) -> list[slice]:
    """Return slices of so many steps, few enough that their matrices fit into a cache."""
    return [slice(first, min(first + CHUNK, stop)) for first in range(start, stop, CHUNK)]


@dataclass(frozen=True)
class MapSlopes:
    """Derivatives at points.

    Attributes
    ----------
    points, given
        The points, and the values of parts there that points have not.
    by_equations
        Of the results by what is missing in the equations, shape (points, results, equations).
    inverse
        Of the derivatives of the equations by the unknowns, shape (points, unknowns, equations).
    unknowns_by_sources
        Of the unknowns by the sources, shape (points, unknowns, sources).
    """

    points: Indices
    given: dict[str, Floats]
    by_equations: Floats
    inverse: Floats
    unknowns_by_sources: Floats


@dataclass(frozen=True)
class MapTangent:
    """Changes of results at points along directions of sources and inputs.

    Attributes
    ----------
    slopes
        Derivatives there.
    given
        Values of parts, directions with them.
    values
        Of the changes, shape (points, results).
    """

    slopes: MapSlopes
    given: dict[str, Floats]
    values: Floats


@dataclass(frozen=True)
class TangentSlopes:
    """Derivatives of changes along constant directions: second derivatives of the results.

    Attributes
    ----------
    tangent
        The changes.
    by_sources
        Derivatives by the sources, shape (points, results, sources).
    by_unknowns
        The same by the unknowns, at constant sources, shape (points, results, unknowns).
    """

    tangent: MapTangent
    by_sources: Floats
    by_unknowns: Floats


class ImplicitMap:
    """Results g(y, s, p, u), where unknowns y solve equations E(y, s, p, u) = 0.

    Derivatives follow from the theorem of implicit functions, ∂g/∂s − ∂g/∂y (∂E/∂y)⁻¹ ∂E/∂s. Those of changes along a
    direction by parameters p and inputs u are as exact, or come by passes of reverse differentiation, whose cost does
    not depend on their number.

    Parameters
    ----------
    functions
        Functions of the system; they get a part for rows.
    name
        Of its functions.
    equations, unknowns
        Expressions, and symbols in the same number.
    results, sources
        Expressions, and symbols.

    Attributes
    ----------
    size
        Number of sources.
    """

    def __init__(
        self, functions: SystemFunctions, name: str, equations: ca.SX, unknowns: ca.SX, results: ca.SX, sources: ca.SX
    ) -> None:
        self._functions, self._name = functions, name
        self._both, self._unknowns, self._sources = ca.vertcat(equations, results), unknowns, sources
        self._count, self.size = equations.numel(), sources.numel()
        self._slopes = functions.traced(
            f"{name}_slopes", [ca.jacobian(self._both, each) for each in (unknowns, sources)], matrices=(0, 1)
        )
        self._values = functions.traced(f"{name}_values", [self._both])
        rows = functions.add_part(f"by_{name}", self._both.numel())[0]
        parts = [functions.symbol(part) for part in ("parameters", "inputs")]
        product = ca.dot(rows, self._both)
        self._back = functions.traced(f"{name}_pulled_back", [ca.gradient(product, each) for each in parts])
        self._along: dict[tuple[int, ...], TracedFunction] = {}
        self._tangents_along: dict[tuple[int, ...], TracedFunction] = {}

    def values(self, at: PointFunctions, points: Indices, given: dict[str, Floats]) -> tuple[Floats, Floats]:
        """Return what is missing in the equations, and the results; shapes (points, sizes)."""
        both = at.evaluate(self._values, points, **given)[0][:, :, 0]
        return both[:, : self._count], both[:, self._count :]

    def slopes(self, at: PointFunctions, points: Indices, given: dict[str, Floats]) -> MapSlopes:
        """Return the derivatives of the unknowns, and of the results by what is missing in the equations.

        Parameters
        ----------
        at, points, given
            Evaluates functions, where, and the values of parts there that points have not, shape (size, points).
        """
        by_unknowns, by_sources = at.evaluate(self._slopes, points, **given)
        count = self._count
        inverse: Floats = np.asarray(np.linalg.inv(by_unknowns[:, :count]), dtype=np.float64)
        return MapSlopes(points, given, by_unknowns[:, count:] @ inverse, inverse, -inverse @ by_sources[:, :count])

    def _directly(self, at: PointFunctions, slopes: MapSlopes, columns: Sequence[int]) -> Floats:
        """Return the derivatives of equations and results by some parameters, at constant unknowns."""
        key = tuple(columns)
        if key not in self._along:
            functions = self._functions
            parameters = functions.symbol("parameters")
            along = ca.SX.eye(parameters.numel())[:, list(columns)]
            found = [ca.jtimes(self._both, parameters, along)]
            self._along[key] = functions.traced(f"{self._name}_by_parameters", found, matrices=(0,))
        return at.evaluate(self._along[key], slopes.points, **slopes.given)[0]

    def _rows_back(
        self, at: PointFunctions, slopes: MapSlopes, of_equations: Floats, rows: Floats
    ) -> tuple[Floats, Floats]:
        given = {**slopes.given, f"by_{self._name}": np.hstack([of_equations, rows]).T}
        by_parameters, by_inputs = at.evaluate(self._back, slopes.points, **given)
        return by_parameters[:, :, 0], by_inputs[:, :, 0]

    @cached_property
    def _directions(self) -> list[ca.SX]:
        """Parts for directions of unknowns, sources and inputs."""
        ends = {"unknowns": self._unknowns, "sources": self._sources, "inputs": self._functions.symbol("inputs")}
        return [self._functions.add_part(f"{self._name}_{each}_along", of.numel())[0] for each, of in ends.items()]

    @cached_property
    def _tangent(self) -> ca.SX:
        """Change of equations and results along directions."""
        moved = ca.vertcat(self._unknowns, self._sources, self._functions.symbol("inputs"))
        return ca.jtimes(self._both, moved, ca.vertcat(*self._directions))

    @cached_property
    def _tangent_values(self) -> TracedFunction:
        return self._functions.traced(f"{self._name}_tangent", [self._tangent])

    @cached_property
    def _tangent_slopes(self) -> TracedFunction:
        found = [ca.jacobian(self._tangent, each) for each in (self._unknowns, self._sources)]
        return self._functions.traced(f"{self._name}_tangent_slopes", found, matrices=(0, 1))

    @cached_property
    def _tangent_back(self) -> TracedFunction:
        rows = self._functions.add_part(f"by_{self._name}_tangent", self._tangent.numel())[0]
        sources = [self._unknowns, *(self._functions.symbol(part) for part in ("parameters", "inputs"))]
        product = ca.dot(rows, self._tangent)
        found = [ca.gradient(product, each) for each in sources]
        return self._functions.traced(f"{self._name}_tangent_pulled_back", found)

    def tangent(self, at: PointFunctions, slopes: MapSlopes, sources: Floats, inputs: Floats) -> MapTangent:
        """Return the change of the results along directions ṡ and u̇.

        Parameters
        ----------
        at, slopes
            Evaluates functions, and the derivatives at the points.
        sources, inputs
            Directions, shapes (points, sources) and (points, inputs).
        """
        name, count = self._name, self._count
        given = {**slopes.given, f"{name}_sources_along": sources.T, f"{name}_inputs_along": inputs.T}
        still = np.zeros((self._unknowns.numel(), len(slopes.points)))
        moved = at.evaluate(self._tangent_values, slopes.points, **given, **{f"{name}_unknowns_along": still})
        opened, found = moved[0][:, :count, 0], moved[0][:, count:, 0]
        given[f"{name}_unknowns_along"] = -np.einsum("ijk,ik->ji", slopes.inverse, opened)
        return MapTangent(slopes, given, found - np.einsum("ijk,ik->ij", slopes.by_equations, opened))

    def tangent_slopes(self, at: PointFunctions, tangent: MapTangent) -> TangentSlopes:
        """Return the derivatives of the change, at constant directions.

        With E_y ẏ + E_s ṡ + E_u u̇ = 0 for the change of the unknowns, its own derivatives cancel: what is left of those
        of ġ are those of the changes of g and E at constant ẏ, with the multipliers −∂g/∂y (∂E/∂y)⁻¹ of the equations.
        """
        slopes = tangent.slopes
        by_unknowns, by_sources = at.evaluate(self._tangent_slopes, slopes.points, **tangent.given)
        by_unknowns = self._combined(slopes, by_unknowns)
        found = self._combined(slopes, by_sources) + by_unknowns @ slopes.unknowns_by_sources
        return TangentSlopes(tangent, found, by_unknowns)

    def _combined(self, slopes: MapSlopes, both: Floats) -> Floats:
        return both[:, self._count :] - slopes.by_equations @ both[:, : self._count]

    def tangent_by_parameters(self, at: PointFunctions, found: TangentSlopes, columns: Sequence[int]) -> Floats:
        """Return the derivatives of the change by some parameters, shape (points, results, columns)."""
        key, slopes = tuple(columns), found.tangent.slopes
        if key not in self._tangents_along:
            parameters = self._functions.symbol("parameters")
            along = ca.SX.eye(parameters.numel())[:, list(columns)]
            made = [ca.jtimes(self._tangent, parameters, along)]
            self._tangents_along[key] = self._functions.traced(
                f"{self._name}_tangent_by_parameters", made, matrices=(0,)
            )
        directly = at.evaluate(self._tangents_along[key], slopes.points, **found.tangent.given)[0]
        unknowns = -slopes.inverse @ self._directly(at, slopes, columns)[:, : self._count]
        return self._combined(slopes, directly) + found.by_unknowns @ unknowns

    def tangent_pulled_back(self, at: PointFunctions, tangent: MapTangent, rows: Floats) -> tuple[Floats, Floats]:
        """Return products of rows with the derivatives of the change by all parameters and inputs."""
        slopes = tangent.slopes
        both = np.hstack([-np.einsum("ij,ijk->ik", rows, slopes.by_equations), rows])
        given = {**tangent.given, f"by_{self._name}_tangent": both.T}
        by_unknowns, by_parameters, by_inputs = at.evaluate(self._tangent_back, slopes.points, **given)
        of_equations = -np.einsum("ij,ijk->ik", by_unknowns[:, :, 0], slopes.inverse)
        others = self._rows_back(at, slopes, of_equations, np.zeros_like(rows))
        return by_parameters[:, :, 0] + others[0], by_inputs[:, :, 0] + others[1]


_MOST, _CLOSED = 30, 1e-13
"""Iterations of the closure of loops, and the last increment as a share of the coordinates."""

_flow_maps: WeakKeyDictionary[ReducedEquations, ImplicitMap] = WeakKeyDictionary()
"""Those of formulations whose runs have been differentiated: fits do so again and again."""


@dataclass(frozen=True)
class Slopes:
    """Derivatives at points of a run by the motion, and what those by parameters are found with.

    Attributes
    ----------
    by_motion
        Of F by w, shape (points, size, size).
    read_by_motion
        Of what is read by w, through accelerations too, shape (points, rows, size).
    mass
        M'', shape (points, f, f).
    flow_by_accelerations, read_by_accelerations
        Of (ẋ, rates of the integrals) and of what is read by z̈^i.
    """

    by_motion: Floats
    read_by_motion: Floats
    mass: Floats
    flow_by_accelerations: Floats
    read_by_accelerations: Floats


class StateEquations:
    """Equations ẇ = F(w, u, p) with w = (z^i, ż^i, x, integrals), those of `double-step`, and what is read there.

    Accelerations are those of the equations of motion [Jaiswal2021, eqs. 33 and 34]. The motion is that of all
    formulations, and so are its derivatives.

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
    at
        As given.
    size
        Number of elements of w.
    rates
        F at the points, shape (size, points), once they are completed.
    """

    rates: Floats

    def __init__(self, at: PointFunctions, equations: ReducedEquations, freedom: int) -> None:
        functions = at.functions
        self.at, self.size = at, 2 * freedom + len(functions.states) + len(functions.integrals)
        self.equations, self._freedom = equations, freedom

    def complete(self, rows: Sequence[int]) -> Floats:
        """Find independent velocities, accelerations, multipliers and F; return what is read there, (points, rows).

        Parameters
        ----------
        rows
            Rows of what is computed, see `SystemExpressions.computed`.
        """
        values, points = self.at.points.values, self.at.points
        values["independent_velocities"] = np.take_along_axis(values["velocities"], points.independent, axis=0)
        self.accelerate()
        return self.read(rows)

    def read(self, rows: Sequence[int]) -> Floats:
        """Return what is read at completed points, shape (points, rows)."""
        return self._evaluate(self.equations.read(rows))[0][:, :, 0]

    def elsewhere(self, motion: Floats, inputs: Floats, near: Indices) -> StateEquations:
        """Return the completed equations at as many other points, where loops are closed.

        Parameters
        ----------
        motion, inputs
            w and the inputs there, shapes (size, points) and (inputs, points).
        near
            Points of this one, next to which these are.

        Raises
        ------
        SimulationError
            When they cannot be closed.
        """
        values, free, states = self.at.points.values, self._freedom, len(self.at.functions.states)
        independent, moving, of_states, integrals = np.split(motion, [free, 2 * free, 2 * free + states])
        chosen = self.at.points.independent[:, near]
        coordinates = values["coordinates"][:, near].copy()
        moved = independent - np.take_along_axis(coordinates, chosen, axis=0)
        coordinates += np.einsum("ijk,ki->ji", values["basis"][near], moved)
        np.put_along_axis(coordinates, chosen, independent, axis=0)
        own = {"coordinates": coordinates, "states": of_states, "integrals": integrals, "inputs": inputs}
        at = self.at.elsewhere(own, near)
        found = StateEquations(at, self.equations, free)
        found.close_loops()
        at.points.values["independent_velocities"] = moving
        found.accelerate()
        return found

    def close_loops(self) -> None:
        """Move dependent coordinates onto the loop equations, by Newton's iteration."""
        functions, coordinates = self.at.functions, self.at.points.values["coordinates"]
        if not len(functions.rows):
            return
        left = np.arange(coordinates.shape[1])
        for _ in range(_MOST):
            gaps, jacobian = self.at.evaluate(functions.closure, left)
            moved = np.empty((len(left), len(coordinates)))
            for choice, here in self.at.points.groups():
                inside = np.isin(left, here)
                lift = self._lift(jacobian[inside], choice)
                moved[inside] = np.einsum("ijk,ik->ij", lift, gaps[inside, :, 0])
            coordinates[:, left] -= moved.T
            left = left[np.abs(moved).max(axis=1) > _CLOSED * (1.0 + np.abs(coordinates[:, left]).max(axis=0))]
            if not len(left):
                return
        raise SimulationError(
            f"{functions.system.name}: loops cannot be closed inside a step, which is not differentiated; take a "
            "smaller tolerance"
        )

    @property
    def flow_map(self) -> ImplicitMap:
        """F as a map from all coordinates, velocities, states and integrals, for its second derivatives."""
        if self.equations not in _flow_maps:
            _flow_maps[self.equations] = self._made_flow_map()
        return _flow_maps[self.equations]

    def _made_flow_map(self) -> ImplicitMap:
        """Return F from all coordinates and velocities, of which independent ones count.

        With the part `independent` D, ones for these, z and ż solve D (z − ζ) + G Φ = 0 and D (ż − ζ̇) + G Φ̇ = 0, z̈ and
        λ = Gᵀ κ solve M z̈ − Q + Φ_zᵀ λ = 0 and D κ + G Φ̈ = 0. G is constant: where loop equations hold, derivatives do
        not depend on what combines them.
        """
        functions, given = self.at.functions, self.at.functions.expressions
        n, symbol = len(functions.coordinates), functions.symbol
        names = ("independent", "given_coordinates", "given_velocities", "dependent_forces")
        chosen, coordinates, velocities, forces = (functions.add_part(name, n)[0] for name in names)
        lift = symbol("lift") if len(functions.rows) else ca.SX(n, 0)
        motion = [symbol(part) for part in ("coordinates", "velocities", "accelerations")]
        equations = [
            chosen * (motion[0] - coordinates) + ca.mtimes(lift, given.closure),
            chosen * (motion[1] - velocities) + ca.mtimes(lift, given.closure_rate),
            given.balance,
            chosen * forces + ca.mtimes(lift, given.closure_acceleration),
        ]
        flow = [*motion[1:], given.rates, given.integral_rates]
        held = {"multipliers": ca.mtimes(lift.T, forces)}
        found = given.at([ca.vertcat(*equations), ca.vertcat(*flow)], held)
        sources = ca.vertcat(coordinates, velocities, symbol("states"), symbol("integrals"))
        return ImplicitMap(functions, "reduced_flow", found[0], ca.vertcat(*motion, forces), found[1], sources)

    def mapped(self, points: Indices) -> tuple[dict[str, Floats], Indices]:
        """Return what `flow_map` needs beside the parts of points with one choice, and the indices of w in it.

        Values have the shape (size, points).
        """
        values, independent = self.at.points.values, self.at.points.independent[:, points[0]]
        n = len(self.at.functions.coordinates)
        chosen = np.zeros((n, len(points)))
        chosen[independent] = 1.0
        given = {"independent": chosen, "dependent_forces": np.zeros((n, len(points)))}
        given |= {f"given_{part}": values[part][:, points] for part in ("coordinates", "velocities")}
        unbalanced = self.flow_map.values(self.at, points, given)[0][:, 2 * n : 3 * n].T
        given["dependent_forces"] = -(1.0 - chosen) * unbalanced
        rest = np.arange(2 * n, 2 * n + self.size - 2 * self._freedom)
        return given, np.concatenate([independent, n + independent, rest])

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
        count, n, m = len(points.chosen), len(functions.coordinates), len(functions.rows)
        basis, lift = np.zeros((count, n, self._freedom)), np.zeros((count, n, m))
        jacobian = self.at.evaluate(functions.closure)[1]
        for chosen, here in points.groups():
            lift[here] = self._lift(jacobian[here], chosen)
            basis[here[:, None], chosen.independent] = np.eye(self._freedom)
            by_independent = lift[here] @ jacobian[here][:, :, chosen.independent]
            basis[here[:, None], chosen.dependent] = -by_independent[:, chosen.dependent]
        values["basis"], values["lift"] = basis, lift

    @staticmethod
    def _lift(jacobian: Floats, chosen: Partition) -> Floats:
        """Return G of Φ_z with one choice, shape (points, n, m)."""
        points, m, n = jacobian.shape
        dependent = jacobian[:, :, chosen.dependent]
        lift = np.zeros((points, n, m))
        lift[:, chosen.dependent] = (
            np.linalg.inv(dependent) if m == len(chosen.dependent) else np.linalg.pinv(dependent)
        )
        return lift

    def accelerate(self) -> None:
        """Add accelerations, multipliers and F, where positions and independent velocities are known."""
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
        values = self.at.points.values
        coordinates = np.take_along_axis(values["coordinates"], self.at.points.independent, axis=0)
        return np.vstack([coordinates, values["independent_velocities"], values["states"], values["integrals"]])

    def slopes(self, points: Indices, rows: Sequence[int]) -> Slopes:
        """Return derivatives by w at points, of F and of rows of what is computed."""
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
        return Slopes(matrix, read, mass, by_accelerations, read_by)

    def by_parameters(
        self, points: Indices, slopes: Slopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """Return derivatives by parameters at points, (points, size, columns) and (points, rows, columns).

        Parameters
        ----------
        points, slopes
            The points, and what `slopes` gives there.
        columns, rows
            Indices of the parameters, and of what is computed.
        """
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
        """Return products of rows with derivatives by all parameters and inputs, (points, parameters or inputs).

        Parameters
        ----------
        points, slopes
            The points, and what `slopes` gives there for the row alone.
        by_rates
            Rows of F, shape (points, size).
        row, weights
            Index of what is computed, and its weights at the points.
        """
        free = self._freedom
        by_read = np.zeros((len(points), self.at.functions.expressions.computed.numel()))
        by_read[:, row] = weights
        by_flow = by_rates[:, 2 * free :]
        pushed = by_rates[:, free : 2 * free] + np.einsum("ij,ijk->ik", by_flow, slopes.flow_by_accelerations)
        if weights.any():
            pushed = pushed + weights[:, None] * slopes.read_by_accelerations[:, 0]
        by_load = np.linalg.solve(slopes.mass.transpose(0, 2, 1), pushed[:, :, None])[:, :, 0]
        rows = {"by_load": by_load.T, "by_flow": by_flow.T, "by_read": by_read.T}
        first, second = (
            self._evaluate(function, points, **rows)[-2:]
            for function in (self.equations.pulled_back, self.equations.read_back)
        )
        return (first[0] + second[0])[:, :, 0], (first[1] + second[1])[:, :, 0]

    def rechosen(self, before: int, after: int) -> tuple[Floats, Floats]:
        """Return how changes of w, and parameters, enter w where another choice is made.

        Parameters
        ----------
        before, after
            Indices of the point where a step ends, and of that where the next one begins.

        Returns
        -------
        by_motion, by_parameters
            Shapes (size, size) and (size, all parameters).
        """
        free, n = self._freedom, len(self.at.functions.coordinates)
        chosen = self.at.points.independent[:, after]
        moved, by = self._evaluate(self.equations.moved, [before])
        rows = np.concatenate([chosen, n + chosen])
        matrix = np.eye(self.size)
        matrix[: 2 * free, : 2 * free] = moved[0][rows]
        return matrix, np.vstack([by[0][rows], np.zeros((self.size - 2 * free, by.shape[2]))])

    def at_start(self, start: StartDerivatives) -> Floats:
        """Return the derivatives of w at the start: the rows of those of (z, ż, x, integrals) that w has."""
        n, first = len(self.at.functions.coordinates), self.at.points.independent[:, 0]
        return start.motion[[*first, *(n + first), *range(2 * n, len(start.motion))]]

    @property
    def magnitudes(self) -> Floats:
        """Largest magnitudes of w at the points, nominal values of states and integrals at least; shape (size,)."""
        system = self.at.functions.system
        nominal = np.ones(self.size)
        nominal[2 * self._freedom :] = [each.nominal or 1.0 for each in (*system.states, *system.integrals)]
        return np.maximum(np.abs(self.motion()).max(axis=1), nominal)
