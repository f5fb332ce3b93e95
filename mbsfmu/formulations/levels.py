"""Connections by level: those of one level carry what follows from lower ones, or determine each other in a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbsfmu.data import DataError
from mbsfmu.equations.rotation import Array
from mbsfmu.formulations.expressions import SystemExpressions
from mbsfmu.formulations.system import SIZES, Instant, System, starts
from mbsfmu.tracing import expression, symbolic_array

_NOTHING = 1e-12
"""Smallest singular value of I − A, as a share of the largest, up to which a loop determines nothing."""


@dataclass(frozen=True)
class Wire:
    """A connection between variables of two parts, by their indices.

    Attributes
    ----------
    source, target
        Indices of the parts.
    output
        Index in the readings of the source (outputs, coordinates, velocities, states, discrete states, in this order).
    input
        Index of the target's input.
    """

    source: int
    output: int
    target: int
    input: int


class Level:
    """Connections that carry what follows from inputs of lower levels.

    Parameters
    ----------
    wires
        The connections.
    """

    def __init__(self, wires: Sequence[Wire]) -> None:
        self._wires = wires

    def values(self, parts: Sequence[System], at: Callable[[int], Instant]) -> list[tuple[Wire, Array]]:
        """Return what each connection carries.

        Parameters
        ----------
        parts
            The systems.
        at
            Gives the instant of a part by its index; inputs of this level and of higher ones are zero.
        """
        readings = {source: _read(parts[source], at(source)) for source in {wire.source for wire in self._wires}}
        return [(wire, readings[wire.source][wire.output]) for wire in self._wires]


class AlgebraicLoop(Level):
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
        When an output is not linear in the inputs, or I − A is singular at the parts' own parameters.
    """

    def __init__(self, wires: Sequence[Wire], traced: Sequence[SystemExpressions]) -> None:
        super().__init__(wires)
        sources = [traced[wire.source] for wire in wires]
        names = [source.system.outputs[wire.output].name for wire, source in zip(wires, sources, strict=True)]
        told = f"connections close an algebraic loop of {', '.join(names)}"
        self._slopes: list[ca.Function] = []
        self._fixed = True
        for wire, source, name in zip(wires, sources, names, strict=True):
            inputs, output = source.symbol_by_part["inputs"], source.outputs[wire.output]
            if not _linear(output, ca.vertcat(*(inputs[each.input] for each in wires if each.target == wire.source))):
                raise DataError(
                    f"{told}; it can be solved where all are linear in what drives them, and '{name}' is not: let it "
                    "follow from a state, as of a lag"
                )
            slopes = ca.jacobian(output, inputs)
            own = [slopes[0, each.input] if each.target == wire.source else ca.SX(1, 1) for each in wires]
            row = ca.horzcat(*own)
            given = {part: source.symbol_by_part[part] for part in SIZES}
            self._slopes.append(ca.Function("slopes", list(given.values()), [row]))
            self._fixed &= not ca.depends_on(row, ca.veccat(*(given[part] for part in SIZES if part != "parameters")))
        if self._fixed:
            sizes = np.linalg.svd(self._matrix([_at_parameters(source.system) for source in sources]))[1]
            if sizes[-1] <= _NOTHING * sizes[0]:
                raise DataError(f"{told}; what goes around it comes back as it was, so that nothing determines it")

    def values(self, parts: Sequence[System], at: Callable[[int], Instant]) -> list[tuple[Wire, Array]]:
        """Return what each connection carries."""
        without = [value for _, value in super().values(parts, at)]
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

    def _matrix(self, instants: Sequence[Instant]) -> Array:
        """Return I − A from numbers."""
        rows = [slopes(*_parts(now)) for slopes, now in zip(self._slopes, instants, strict=True)]
        return np.eye(len(rows)) - np.concatenate([np.asarray(row) for row in rows])

    def _traced_matrix(self, instants: Sequence[Instant]) -> ca.SX:
        """Return I − A from symbols."""
        rows = [
            slopes.call([expression(array) for array in _parts(now)], True, False)[0]
            for slopes, now in zip(self._slopes, instants, strict=True)
        ]
        return ca.SX.eye(len(rows)) - ca.vertcat(*rows)


def _linear(value: ca.SX, by: ca.SX) -> bool:
    """Tell whether a value is, as it is written, a sum of products with a vector and of what does not depend on it."""
    function = ca.Function("value", [by], [value], {"allow_free": True})
    degrees: dict[int, int] = {}
    for index in range(function.n_instructions()):
        operation, given = function.instruction_id(index), function.instruction_input(index)
        if operation == ca.OP_OUTPUT:
            return degrees[given[0]] < 2
        if operation in (ca.OP_CONST, ca.OP_PARAMETER, ca.OP_INPUT):
            degree = int(operation == ca.OP_INPUT)
        else:
            degree = _degree(operation, [degrees[each] for each in given])
        degrees[function.instruction_output(index)[0]] = degree
    return True


def _degree(operation: int, given: Sequence[int]) -> int:
    """Return in what degree a vector is in the result of an operation; 2 stands for all that is not linear.

    A step has slopes of zero, too, and is not linear: only what keeps products and sums does.
    """
    if operation in (ca.OP_ADD, ca.OP_SUB, ca.OP_NEG, ca.OP_TWICE, ca.OP_ASSIGN):
        return max(given)
    if operation == ca.OP_MUL:
        return sum(given)
    if operation == ca.OP_DIV and not given[1]:
        return given[0]
    if operation == ca.OP_IF_ELSE_ZERO and not given[0]:
        return given[1]
    return 2 if any(given) else 0


def _parts(instant: Instant) -> list[Array]:
    return [getattr(instant, part) for part in SIZES]


def _at_parameters(system: System) -> Instant:
    """Return an instant of a system's own parameters, where all else is zero."""
    return system.instant(lambda part, size: starts(system.parameters) if part == "parameters" else np.zeros(size))


def _read(part: System, instant: Instant) -> Array:
    """Return all that can be read from a part without knowing accelerations."""
    outputs = part.evaluate_outputs(instant)
    return np.concatenate([outputs, instant.coordinates, instant.velocities, instant.states, instant.discrete])
