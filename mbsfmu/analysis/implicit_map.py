"""Derivatives of a map that is given by equations, at points of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    by_sources
        Of the results by the sources, shape (points, results, sources).
    by_equations
        Of the results by what is missing in the equations, shape (points, results, equations).
    """

    points: Indices
    given: dict[str, Floats]
    by_sources: Floats
    by_equations: Floats


class ImplicitMap:
    """Results g(y, s, p, u), where unknowns y solve equations E(y, s, p, u) = 0.

    Derivatives follow from the theorem of implicit functions, ∂g/∂s − ∂g/∂y (∂E/∂y)⁻¹ ∂E/∂s, those by parameters p and
    inputs u as well, or by passes of reverse differentiation, whose cost does not depend on their number.

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
    """

    def __init__(
        self, functions: SystemFunctions, name: str, equations: ca.SX, unknowns: ca.SX, results: ca.SX, sources: ca.SX
    ) -> None:
        self._functions, self._name = functions, name
        self._both = ca.vertcat(equations, results)
        self._count = equations.numel()
        self._slopes = functions.traced(
            f"{name}_slopes", [ca.jacobian(self._both, each) for each in (unknowns, sources)], matrices=(0, 1)
        )
        self._values = functions.traced(f"{name}_values", [self._both])
        rows = functions.add_part(f"by_{name}", self._both.numel())[0]
        parts = [functions.symbol(part) for part in ("parameters", "inputs")]
        product = ca.dot(rows, self._both)
        self._back = functions.traced(f"{name}_pulled_back", [ca.gradient(product, each) for each in parts])
        self._along: dict[tuple[int, ...], TracedFunction] = {}

    def values(self, at: PointFunctions, points: Indices, given: dict[str, Floats]) -> tuple[Floats, Floats]:
        """Return what is missing in the equations, and the results; shapes (points, sizes)."""
        both = at.evaluate(self._values, points, **given)[0][:, :, 0]
        return both[:, : self._count], both[:, self._count :]

    def slopes(
        self, at: PointFunctions, points: Indices, given: dict[str, Floats], basis: Floats | None = None
    ) -> MapSlopes:
        """Return the derivatives by the sources.

        Parameters
        ----------
        at, points, given
            Evaluates functions, where, and the values of parts there that points have not, shape (size, points).
        basis
            Where equations are redundant, the combinations of them and of unknowns that count, shape (points,
            equations, rank).
        """
        by_unknowns, by_sources = at.evaluate(self._slopes, points, **given)
        count = self._count
        square, rest = by_unknowns[:, :count], by_unknowns[:, count:]
        if basis is None:
            solved: Floats = np.asarray(
                np.linalg.solve(square.transpose(0, 2, 1), rest.transpose(0, 2, 1)), dtype=float
            )
            by_equations = solved.transpose(0, 2, 1)
        else:
            turned = basis.transpose(0, 2, 1)
            by_equations = rest @ basis @ np.linalg.inv(turned @ square @ basis) @ turned
        return MapSlopes(points, given, by_sources[:, count:] - by_equations @ by_sources[:, :count], by_equations)

    def by_parameters(self, at: PointFunctions, slopes: MapSlopes, columns: Sequence[int]) -> Floats:
        """Return the derivatives of the results by some parameters, shape (points, results, columns)."""
        key = tuple(columns)
        if key not in self._along:
            functions = self._functions
            parameters = functions.symbol("parameters")
            along = ca.SX.eye(parameters.numel())[:, list(columns)]
            found = [ca.jtimes(self._both, parameters, along)]
            self._along[key] = functions.traced(f"{self._name}_by_parameters", found, matrices=(0,))
        found = at.evaluate(self._along[key], slopes.points, **slopes.given)[0]
        return found[:, self._count :] - slopes.by_equations @ found[:, : self._count]

    def pulled_back(self, at: PointFunctions, slopes: MapSlopes, rows: Floats) -> tuple[Floats, Floats]:
        """Return products of rows, shape (points, results), with the derivatives by all parameters and inputs."""
        of_equations = -np.einsum("ij,ijk->ik", rows, slopes.by_equations)
        given = {**slopes.given, f"by_{self._name}": np.hstack([of_equations, rows]).T}
        by_parameters, by_inputs = at.evaluate(self._back, slopes.points, **given)
        return by_parameters[:, :, 0], by_inputs[:, :, 0]
