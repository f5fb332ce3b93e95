"""Algebraic loops of connections: solved exactly if linear, otherwise by Newton's iteration."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.modelling import DataError
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.variables import Variable
from mbsfmu.systems.coupled.levels import At, ConnectionLevel, VariableConnection
from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.systems.system import SIZES, System, SystemContext, starts
from mbsfmu.tracing.linearity import is_linear
from mbsfmu.tracing.loop_solver import improved, newton
from mbsfmu.tracing.symbols import expression, symbolic_array

_NOTHING = 1e-12
"""Fraction of the largest singular value of I − A below which a loop is singular."""


class LinearLoop(ConnectionLevel):
    """Linear algebraic loop w = A w + b, solved as (I − A) w = b.

    b are the outputs at w = 0, and A their derivatives with respect to the loop's inputs, independent of w. If A
    changes with the motion, the determinant of I − A must stay positive, as without a loop: where it vanishes w is
    unbounded, and a step beyond has no valid numbers.

    Parameters
    ----------
    wires
        The connections, all from outputs.
    traced
        Expressions of the parts.

    Raises
    ------
    DataError
        When I − A is singular at the parts' own parameters.
    """

    def __init__(self, wires: Sequence[VariableConnection], traced: Sequence[SystemExpressions]) -> None:
        super().__init__(wires)
        sources = [traced[wire.source] for wire in wires]
        self._slopes: list[ca.Function] = []
        self._fixed = True
        for wire, source in zip(wires, sources, strict=True):
            slopes = ca.jacobian(source.outputs[wire.output], source.symbol_by_part["inputs"])
            own = [slopes[0, each.input] if each.target == wire.source else ca.SX(1, 1) for each in wires]
            row = ca.horzcat(*own)
            given = {part: source.symbol_by_part[part] for part in SIZES}
            self._slopes.append(ca.Function("slopes", list(given.values()), [row]))
            self._fixed &= not ca.depends_on(row, ca.veccat(*(given[part] for part in SIZES if part != "parameters")))
        if self._fixed:
            sizes = np.linalg.svd(self._matrix([_at_parameters(source.system) for source in sources]))[1]
            if sizes[-1] <= _NOTHING * sizes[0]:
                raise DataError(
                    f"connections close {description(wires, traced)}; its gain is one, so that nothing determines it"
                )

    def values(self, parts: Sequence[System], at: At, loop_iterates: Array) -> list[tuple[VariableConnection, Array]]:
        """Return the values of the connections."""
        without = [value for _, value in super().values(parts, at, loop_iterates)]
        instants = [at(wire.source) for wire in self._wires]
        arrays = [*without, *(getattr(instant, part) for instant in instants for part in SIZES)]
        if any(each.dtype == object for each in arrays):
            matrix = self._traced_matrix(instants)
            found = symbolic_array(ca.solve(matrix, ca.vertcat(*(expression(each) for each in without))))
            determinant = symbolic_array(ca.det(matrix))[0]
        else:
            matrix = self._matrix(instants)
            found, determinant = np.linalg.solve(matrix, np.stack(without)), np.linalg.det(matrix)
        if not self._fixed:
            found = np.where(determinant > 0.0, found, np.nan)
        return [(wire, found[index]) for index, wire in enumerate(self._wires)]

    def _matrix(self, instants: Sequence[SystemContext]) -> Array:
        """Return I − A from numbers."""
        rows = [slopes(*_parts(now)) for slopes, now in zip(self._slopes, instants, strict=True)]
        return np.eye(len(rows)) - np.concatenate([np.asarray(row) for row in rows])

    def _traced_matrix(self, instants: Sequence[SystemContext]) -> ca.SX:
        """Return I − A from symbols."""
        rows = [
            slopes.call([expression(array) for array in _parts(now)], True, False)[0]
            for slopes, now in zip(self._slopes, instants, strict=True)
        ]
        return ca.SX.eye(len(rows)) - ca.vertcat(*rows)


class NonlinearLoop(ConnectionLevel):
    """Nonlinear algebraic loop, solved by Newton's iteration in every evaluation.

    The unknowns are the fewest connections that open the loop, the first suitable one if one is enough; the others
    follow. The iteration starts at the solution of the last step, or at the start values of the inputs, and so stays on
    one solution branch. The result includes one more Newton increment, which gives it the derivatives of the solution.

    Parameters
    ----------
    wires
        The connections, all from outputs.
    traced
        Expressions of the parts.
    needs
        Which of them decide at once what each carries, shape (number of wires, number of wires).

    Attributes
    ----------
    description
        What the loop is called.
    """

    def __init__(
        self, wires: Sequence[VariableConnection], traced: Sequence[SystemExpressions], needs: NDArray[np.bool_]
    ) -> None:
        unknown = opening(needs)
        order = [*unknown, *_following(needs, unknown)]
        super().__init__([wires[index] for index in order])
        self.description = description(wires, traced)
        targets = [traced[wires[index].target].system.inputs[wires[index].input] for index in unknown]
        self.loop_iterates = tuple(Variable(each.name, unit=each.unit, start=each.start) for each in targets)
        self._sources = sorted({wire.source for wire in wires})
        given = [traced[source].symbol_by_part[part] for source in self._sources for part in SIZES]
        unknowns = ca.SX.sym("unknowns", len(unknown))
        # What does not depend on the unknowns is worked out once, and not in the iteration.
        every, new, made = ca.extract_parametric(self._carried(traced, unknowns), ca.veccat(*given))
        there = [symbol for symbol in ca.symvar(ca.veccat(*given)) if ca.depends_on(every, symbol)]
        numbers, off = ca.veccat(*new, *there), unknowns - every[: len(unknown)]
        self._made = ca.Function("numbers", given, [ca.veccat(*made, *there)])
        self._equations = ca.Function("equations", [unknowns, numbers], [off, ca.jacobian(off, unknowns)])
        self._following = ca.Function("following", [unknowns, numbers], [every[len(unknown) :]])
        name = f"loop_{self._wires[0].target}_{self._wires[0].input}"
        self._solve = newton(name, self._equations, [each.nominal or 1.0 for each in targets])

    def _carried(self, traced: Sequence[SystemExpressions], unknowns: ca.SX) -> ca.SX:
        """Return the values of all connections from those of the unknowns."""
        count = unknowns.numel()
        inputs = {(wire.target, wire.input): unknowns[index] for index, wire in enumerate(self._wires[:count])}
        carried: list[ca.SX] = []
        for wire in (*self._wires[count:], *self._wires[:count]):
            source, symbols = traced[wire.source], traced[wire.source].symbol_by_part["inputs"]
            there = [inputs.get((wire.source, index), symbols[index]) for index in range(symbols.numel())]
            carried.append(ca.substitute(source.outputs[wire.output], symbols, ca.vertcat(*there)))
            inputs.setdefault((wire.target, wire.input), carried[-1])
        return ca.vertcat(*carried[-count:], *carried[:-count])

    def values(self, parts: Sequence[System], at: At, loop_iterates: Array) -> list[tuple[VariableConnection, Array]]:  # noqa: ARG002
        """Return the values of the connections."""
        numbers, symbolic = self._numbers(at)
        guess = expression(loop_iterates) if symbolic else self._solve(ca.DM(loop_iterates), numbers)[0]
        found = improved(self._equations, guess, numbers)
        every = ca.vertcat(found, self._following.call([found, numbers], symbolic, False)[0])
        carried = symbolic_array(every) if symbolic else np.asarray(every)[:, 0]
        return [(wire, carried[index]) for index, wire in enumerate(self._wires)]

    def solution(self, at: At, loop_iterates: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the unknowns from their iterates, and the residual without convergence."""
        found, off = self._solve.call([loop_iterates, self._numbers(at)[0]], False, False)
        return found, off

    def _numbers(self, at: At) -> tuple[ca.SX | ca.DM, bool]:
        """Return the further arguments of the equations, and whether these are symbols."""
        arrays = [array for source in self._sources for array in _parts(at(source))]
        symbolic = any(each.dtype == object for each in arrays)
        given = [expression(each) if symbolic else ca.DM(each) for each in arrays]
        return self._made.call(given, symbolic, False)[0], symbolic


def solved(
    wires: Sequence[VariableConnection], traced: Sequence[SystemExpressions], needs: NDArray[np.bool_]
) -> LinearLoop | NonlinearLoop:
    """Return connections of an algebraic loop with their solver; arguments as for these."""
    for wire in wires:
        source = traced[wire.source]
        inputs = source.symbol_by_part["inputs"]
        inside = ca.vertcat(*(inputs[each.input] for each in wires if each.target == wire.source))
        if not is_linear(source.outputs[wire.output], inside):
            return NonlinearLoop(wires, traced, needs)
    return LinearLoop(wires, traced)


def description(wires: Sequence[VariableConnection], traced: Sequence[SystemExpressions]) -> str:
    """Return the name of a loop: its outputs."""
    names = (traced[wire.source].system.outputs[wire.output].name for wire in wires)
    return f"an algebraic loop of {', '.join(names)}"


def opening(needs: NDArray[np.bool_]) -> list[int]:
    """Return indices of connections that open the loop, with `needs` of shape (k, k).

    One if one is enough, the first such; otherwise the closing connections of cycles in order, which may be more than
    the minimum.
    """
    every = range(len(needs))
    for index in every:
        if not _circles(needs, [each for each in every if each != index]):
            return [index]
    kept: list[int] = []
    for index in reversed(every):
        if not _circles(needs, [*kept, index]):
            kept.append(index)
    return [index for index in every if index not in kept]


def _following(needs: NDArray[np.bool_], unknown: Sequence[int]) -> list[int]:
    """Return the other connections in the order of evaluation."""
    left, order = [each for each in range(len(needs)) if each not in unknown], list[int]()
    while left:
        order.append(next(each for each in left if not needs[each, left].any()))
        left.remove(order[-1])
    return order


def _circles(needs: NDArray[np.bool_], chosen: Sequence[int]) -> bool:
    """Return whether some of the chosen connections depend on themselves through others."""
    reach = needs[np.ix_(chosen, chosen)].astype(int)
    return bool(np.linalg.matrix_power(reach, len(chosen)).any()) if len(chosen) else False


def _parts(instant: SystemContext) -> list[Array]:
    return [getattr(instant, part) for part in SIZES]


def _at_parameters(system: System) -> SystemContext:
    """Return a context with a system's own parameters, zero otherwise."""
    return system.instant(lambda part, size: starts(system.parameters) if part == "parameters" else np.zeros(size))
