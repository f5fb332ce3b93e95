"""The equations of a system with their exact derivatives, traced once and fast to call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.formulations.system import Instant, System
from mbsfmu.tracing import SymbolicArray, expression, symbols

Floats = NDArray[np.float64]

_PARTS = tuple(field.name for field in fields(Instant))


class TracedFunction:
    """A CasADi function bound to arrays: it reads shared ones and writes its own.

    What a call returns is overwritten by the next call; whoever keeps a result copies it.

    Parameters
    ----------
    name
        Name of the function, for messages.
    symbol_by_part, memory
        Symbols of all parts and the arrays that hold their values.
    results
        Expressions; those of one column come back with shape (k,), unless they are named in `matrices`.
    matrices
        Indices of results that come back with shape (k, l) whatever their size.
    """

    def __init__(
        self,
        name: str,
        symbol_by_part: dict[str, ca.SX],
        memory: dict[str, Floats],
        results: Sequence[ca.SX],
        matrices: Sequence[int] = (),
    ) -> None:
        dense = ca.cse([ca.densify(result) for result in results])
        self.function = ca.Function(name, list(symbol_by_part.values()), dense)
        self._buffer, self._evaluate = self.function.buffer()
        for index, part in enumerate(symbol_by_part):
            self._buffer.set_arg(index, memoryview(memory[part]))
        self._results: list[Floats] = []
        for index, result in enumerate(dense):
            array = np.zeros(result.shape, order="F")
            self._buffer.set_res(index, memoryview(array.reshape(-1, order="F")))
            self._results.append(array if index in matrices else array[:, 0])

    def __call__(self) -> list[Floats]:
        """Evaluate at what the shared arrays hold."""
        self._evaluate()
        return self._results


class SystemFunctions:
    """A system's functions and derivatives at the values in its arrays.

    A caller writes the arrays (`functions.coordinates[:] = …`) and calls a function.

    Attributes
    ----------
    system
        The system.
    rows
        Indices of the constraints in use, those left out being redundant.
    coordinates, velocities, accelerations, states, integrals, inputs, parameters
        The parts of an `Instant`.
    multipliers
        λ, shape (number of rows,).
    """

    def __init__(self, system: System, rows: Sequence[int] | None = None) -> None:
        self.system = system
        self.rows = tuple(range(len(system.constraints)) if rows is None else rows)
        self._symbol_by_part: dict[str, ca.SX] = {}
        self._instant = system.instant(self._symbol)
        self._lambda = self._symbol("multipliers", len(self.rows))
        self._memory = {part: np.zeros(symbol.numel()) for part, symbol in self._symbol_by_part.items()}
        self.coordinates, self.velocities, self.accelerations = (self._memory[part] for part in _PARTS[:3])
        self.states, self.integrals, self.inputs, self.parameters = (self._memory[part] for part in _PARTS[3:])
        self.multipliers = self._memory["multipliers"]

    def _symbol(self, part: str, size: int) -> SymbolicArray:
        self._symbol_by_part[part], array = symbols(part, size)
        return array

    def numeric_instant(self) -> Instant:
        """Return an instant of copies of the arrays, for calls of the system's own NumPy functions."""
        return Instant(*(self._memory[part].copy() for part in _PARTS))

    def _function(self, name: str, results: Sequence[ca.SX], matrices: Sequence[int] = ()) -> TracedFunction:
        return TracedFunction(name, self._symbol_by_part, self._memory, results, matrices)

    # -- expressions ----------------------------------------------------------------------------------------

    def _with_respect_to(self, value: ca.SX, part: str) -> ca.SX:
        return ca.jacobian(value, self._symbol_by_part[part])

    @cached_property
    def _residual(self) -> ca.SX:
        return expression(self.system.residual(self._instant))

    @cached_property
    def _rates(self) -> ca.SX:
        return expression(self.system.rates(self._instant))

    @cached_property
    def _all_closure(self) -> ca.SX:
        return expression(self.system.closure(self._instant))

    @cached_property
    def _closure(self) -> ca.SX:
        return self._all_closure[list(self.rows)]

    @cached_property
    def _closure_jacobian(self) -> ca.SX:
        return self._with_respect_to(self._closure, "coordinates")

    @cached_property
    def _closure_rate(self) -> ca.SX:
        """Φ_z ż."""
        return ca.mtimes(self._closure_jacobian, self._symbol_by_part["velocities"])

    @cached_property
    def _quadratic(self) -> ca.SX:
        """Φ̇_z ż, the part of Φ̈ without accelerations."""
        rate = self._closure_rate
        return ca.mtimes(self._with_respect_to(rate, "coordinates"), self._symbol_by_part["velocities"])

    # -- functions ------------------------------------------------------------------------------------------

    @cached_property
    def closure(self) -> TracedFunction:
        """Φ, shape (m,), and Φ_z, shape (m, n), of the constraints in use."""
        return self._function("closure", [self._closure, self._closure_jacobian], matrices=[1])

    @cached_property
    def all_closure(self) -> TracedFunction:
        """Φ and Φ_z of all constraints, redundant ones included."""
        jacobian = self._with_respect_to(self._all_closure, "coordinates")
        return self._function("all_closure", [self._all_closure, jacobian], matrices=[1])

    @cached_property
    def quadratic(self) -> TracedFunction:
        """Φ̇_z ż, shape (m,)."""
        return self._function("quadratic", [self._quadratic])

    @cached_property
    def dynamics(self) -> TracedFunction:
        """M z̈ − Q, shape (n,), and ẋ, shape (k,)."""
        return self._function("dynamics", [self._residual, self._rates])

    @cached_property
    def equilibrium(self) -> TracedFunction:
        """M, shape (n, n), −Q, shape (n,), ẋ, and ∂(M z̈ − Q)/∂u, shape (n, number of inputs)."""
        mass = self._with_respect_to(self._residual, "accelerations")
        rest = ca.substitute(self._residual, self._symbol_by_part["accelerations"], ca.SX.zeros(len(self.coordinates)))
        by_inputs = self._with_respect_to(self._residual, "inputs")
        return self._function("equilibrium", [mass, rest, self._rates, by_inputs], matrices=[0, 3])

    @cached_property
    def residual_tangent(self) -> TracedFunction:
        """Derivatives of M z̈ − Q + Φ_zᵀ λ, λ being kept: by (z, ż, z̈), shape (n, 3 n), and by x."""
        balance = self._residual + ca.mtimes(self._closure_jacobian.T, self._symbol_by_part["multipliers"])
        motion = [self._with_respect_to(balance, part) for part in _PARTS[:3]]
        results = [ca.horzcat(*motion), self._with_respect_to(balance, "states")]
        return self._function("residual_tangent", results, matrices=[0, 1])

    @cached_property
    def rates_tangent(self) -> TracedFunction:
        """Derivatives of ẋ by (z, ż), shape (k, 2 n), and by x, shape (k, k)."""
        motion = [self._with_respect_to(self._rates, part) for part in _PARTS[:2]]
        results = [ca.horzcat(*motion), self._with_respect_to(self._rates, "states")]
        return self._function("rates_tangent", results, matrices=[0, 1])

    @cached_property
    def closure_tangent(self) -> TracedFunction:
        """Derivatives of Φ_z ż by z, shape (m, n), and of Φ_z z̈ + Φ̇_z ż by (z, ż), shape (m, 2 n)."""
        acceleration = ca.mtimes(self._closure_jacobian, self._symbol_by_part["accelerations"]) + self._quadratic
        motion = [self._with_respect_to(acceleration, part) for part in _PARTS[:2]]
        results = [self._with_respect_to(self._closure_rate, "coordinates"), ca.horzcat(*motion)]
        return self._function("closure_tangent", results, matrices=[0, 1])

    @cached_property
    def integral_rates(self) -> TracedFunction:
        """Rates of the integrals, shape (i,)."""
        return self._function("integral_rates", [expression(self.system.integral_rates(self._instant))])

    @cached_property
    def outputs(self) -> TracedFunction:
        """Outputs y, and the magnitudes of Φ and Φ_z ż over all constraints, shape (2,)."""
        jacobian = self._with_respect_to(self._all_closure, "coordinates")
        violation = ca.vertcat(
            ca.norm_2(self._all_closure),
            ca.norm_2(ca.mtimes(jacobian, self._symbol_by_part["velocities"])),
        )
        if not self.system.constraints:
            violation = ca.SX.zeros(2)
        return self._function("outputs", [self._outputs, violation])

    @cached_property
    def _outputs(self) -> ca.SX:
        return expression(self.system.evaluate_outputs(self._instant))

    @cached_property
    def start(self) -> TracedFunction:
        """Z and ż as the user gave them, each of shape (n,), and x at the start, shape (k,)."""
        parameters = self._instant.parameters
        coordinates, velocities = self.system.initial_coordinates(parameters)
        states = self.system.initial_states(parameters)
        return self._function("start", [expression(part) for part in (coordinates, velocities, states)])

    @cached_property
    def initial_integrals(self) -> TracedFunction:
        """The integrals at the start, shape (i,)."""
        return self._function("initial_integrals", [expression(self.system.initial_integrals(self._instant))])

    # -- structure ------------------------------------------------------------------------------------------

    def depends(self, what: str, part: str) -> NDArray[np.bool_]:
        """Return which elements of one thing depend on which elements of a part of the instant.

        Parameters
        ----------
        what
            `outputs`, `residual`, `closure`, `rates`, `coordinates`, `velocities` or `states` (the last three
            at the start, as given).
        part
            `inputs`, `parameters`, `coordinates`, …
        """
        parameters = self._instant.parameters
        if what in ("coordinates", "velocities"):
            start = self.system.initial_coordinates(parameters)[what == "velocities"]
            value = expression(start)
        elif what == "states":
            value = expression(self.system.initial_states(parameters))
        else:
            value = getattr(self, "_all_closure" if what == "closure" else f"_{what}")
        sparsity = ca.jacobian_sparsity(value, self._symbol_by_part[part])
        pattern = np.zeros(sparsity.shape, dtype=bool)
        pattern[sparsity.get_triplet()[0], sparsity.get_triplet()[1]] = True
        return pattern
