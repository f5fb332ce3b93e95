"""Second derivatives of a map that is given by equations, at points of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from mbsfmu.analysis.run_points import Indices, PointFunctions
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats, TracedFunction


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
