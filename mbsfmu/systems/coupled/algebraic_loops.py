"""Connections that determine each other at once: solved exactly where they are linear, else by Newton's iteration."""

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
"""Smallest singular value of I − A, as a share of the largest, up to which a loop determines nothing."""


class LinearLoop(ConnectionLevel):
    """Connections that determine each other: w = A w + b, solved as (I − A) w = b.

    b are the outputs where all w are zero, A their slopes by the inputs in the loop, which do not depend on w. Where A
    changes with the motion, the determinant of I − A has to stay positive, as it is without a loop: where it vanishes w
    has no bounds, and a step that lands behind that gets no numbers to go on with.

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
        """Return what each connection carries."""
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
    """Connections that determine each other and are not linear: solved by Newton's iteration at every instant.

    As few of them as open the loop are unknowns, the first that does where one is enough; what the others carry
    follows. The iteration begins at the solution where the last step ended, at the beginning of a run at the start
    values of the inputs: of several solutions it stays with the one that goes on from there. Values that are solved for
    are those behind one more of Newton's increments, so that they have the derivatives of the solution.

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
        """Return what each connection carries where the first ones carry the unknowns."""
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
        """Return what each connection carries."""
        numbers, symbolic = self._numbers(at)
        guess = expression(loop_iterates) if symbolic else self._solve(ca.DM(loop_iterates), numbers)[0]
        found = improved(self._equations, guess, numbers)
        every = ca.vertcat(found, self._following.call([found, numbers], symbolic, False)[0])
        carried = symbolic_array(every) if symbolic else np.asarray(every)[:, 0]
        return [(wire, carried[index]) for index, wire in enumerate(self._wires)]

    def solution(self, at: At, loop_iterates: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the unknowns, found from guesses, and how far the equations stay off where there is no solution."""
        found, off = self._solve.call([loop_iterates, self._numbers(at)[0]], False, False)
        return found, off

    def _numbers(self, at: At) -> tuple[ca.SX | ca.DM, bool]:
        """Return what the equations take besides the unknowns, and whether these are symbols."""
        arrays = [array for source in self._sources for array in _parts(at(source))]
        symbolic = any(each.dtype == object for each in arrays)
        given = [expression(each) if symbolic else ca.DM(each) for each in arrays]
        return self._made.call(given, symbolic, False)[0], symbolic


def solved(
    wires: Sequence[VariableConnection], traced: Sequence[SystemExpressions], needs: NDArray[np.bool_]
) -> LinearLoop | NonlinearLoop:
    """Return connections that determine each other with what solves them; arguments as for these."""
    for wire in wires:
        source = traced[wire.source]
        inputs = source.symbol_by_part["inputs"]
        inside = ca.vertcat(*(inputs[each.input] for each in wires if each.target == wire.source))
        if not is_linear(source.outputs[wire.output], inside):
            return NonlinearLoop(wires, traced, needs)
    return LinearLoop(wires, traced)


def description(wires: Sequence[VariableConnection], traced: Sequence[SystemExpressions]) -> str:
    """Return what a loop is called: by the outputs in it."""
    names = (traced[wire.source].system.outputs[wire.output].name for wire in wires)
    return f"an algebraic loop of {', '.join(names)}"


def opening(needs: NDArray[np.bool_]) -> list[int]:
    """Return indices of connections without which no other ones need themselves, shape of `needs` (k, k).

    One where one is enough, the first that does; else those that close a circle with the ones before, which may be
    more than the fewest.
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
    """Return the other connections, each behind those that it needs."""
    left, order = [each for each in range(len(needs)) if each not in unknown], list[int]()
    while left:
        order.append(next(each for each in left if not needs[each, left].any()))
        left.remove(order[-1])
    return order


def _circles(needs: NDArray[np.bool_], chosen: Sequence[int]) -> bool:
    """Tell whether some of the chosen need themselves by way of others."""
    reach = needs[np.ix_(chosen, chosen)].astype(int)
    return bool(np.linalg.matrix_power(reach, len(chosen)).any()) if len(chosen) else False


def _parts(instant: SystemContext) -> list[Array]:
    return [getattr(instant, part) for part in SIZES]


def _at_parameters(system: System) -> SystemContext:
    """Return an instant of a system's own parameters, where all else is zero."""
    return system.instant(lambda part, size: starts(system.parameters) if part == "parameters" else np.zeros(size))
