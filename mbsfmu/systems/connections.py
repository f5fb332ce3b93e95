"""Connections between systems: wiring, levels, algebraic loops, order of updates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.equations.linear import RANK_TOLERANCE, null_space
from mbsfmu.modelling import DataError, closest_match
from mbsfmu.modelling.data import Array
from mbsfmu.modelling.variables import Variable, rated_names
from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import SIZES, Sampling, System, SystemContext, starts
from mbsfmu.tracing.kept_traces import Traces
from mbsfmu.tracing.solved_equations import improved, newton
from mbsfmu.tracing.symbols import expression, is_linear, symbolic_array
from mbsfmu.tracing.workspace import Floats

At = Callable[[int], SystemContext]
"""Returns the context of a part by its index; inputs of this and higher levels are zero in it."""


@dataclass(frozen=True)
class VariableConnection:
    """A connection between variables of two parts, by index.

    Attributes
    ----------
    source, target
        Indices of the parts.
    output
        Index in the readings of the source (outputs, coordinates, velocities, states, discrete states, accelerations,
        in this order).
    input
        Index of the target's input.
    """

    source: int
    output: int
    target: int
    input: int


class ConnectionLevel:
    """Connections whose values depend on inputs of lower levels.

    Parameters
    ----------
    wires
        The connections.

    Attributes
    ----------
    loop_iterates
        What is solved for by iteration, under the names of the inputs that take it.
    """

    loop_iterates: tuple[Variable, ...] = ()

    def __init__(self, wires: Sequence[VariableConnection]) -> None:
        self._wires = wires

    def values(self, parts: Sequence[System], at: At, loop_iterates: Array) -> list[tuple[VariableConnection, Array]]:  # noqa: ARG002
        """Return the values of the connections.

        Parameters
        ----------
        parts
            The systems.
        at
            Their instants.
        loop_iterates
            Values near those that are solved for, shape (number of guesses,); symbols stand for the solution itself.
        """
        readings = {source: _read(parts[source], at(source)) for source in {wire.source for wire in self._wires}}
        return [(wire, readings[wire.source][wire.output]) for wire in self._wires]


def _read(part: System, instant: SystemContext) -> Array:
    """Return all readings of a part."""
    outputs = part.evaluate_outputs(instant)
    moving = [instant.coordinates, instant.velocities, instant.states, instant.discrete, instant.accelerations]
    return np.concatenate([outputs, *moving])


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


LEAST = 1e-12
"""Fraction of the determinant of M without feed-through below which a motion has no inertia."""


def check_feedback(system: System, traces: Traces) -> None:
    """Check that forces are linear in the accelerations that connections transmit.

    Then M z̈ − Q is linear in z̈ with a modified M.

    Parameters
    ----------
    system
        The system.
    traces
        Has what was found out before.

    Raises
    ------
    DataError
        When the equations of motion are not linear in the accelerations.
    """
    if not system.fed_through:
        return

    def linear() -> bool:
        given = SystemExpressions(system)
        return is_linear(given.residual, given.symbol_by_part["accelerations"])

    if not traces.fact("linear in accelerations", linear):
        raise DataError(
            f"{system.name}: {_named(system)} depends on accelerations, and forces depend on it at once in a "
            "way that is not linear; let it follow from a state, as of a lag of first "
            "order, or from a sampled block"
        )


def check_inertia(functions: SystemFunctions, jacobian: Floats) -> None:
    """Check that acceleration feed-through leaves positive inertia.

    The determinant of M in the free directions is positive without these forces. It vanishes where one motion has no
    inertia left; beyond, the motion would respond in the opposite direction of a force.

    Parameters
    ----------
    functions
        Functions of the system; they hold the start.
    jacobian
        Φ_z there, shape (number of constraints, n).

    Raises
    ------
    DataError
        When they do not.
    """
    system = functions.system
    if not system.fed_through:
        return
    free = null_space(jacobian, RANK_TOLERANCE)
    mass, bare = (free.T @ each @ free for each in functions.masses())
    if not np.linalg.det(np.linalg.solve(bare, mass)) > LEAST:
        raise DataError(
            f"{system.name}: {_named(system)} depends on accelerations, and the forces that depend on it leave no "
            "inertia where the system starts; let it follow from a state, as of a lag of first order"
        )


def _named(system: System) -> str:
    names = "', '".join(system.fed_through)
    return f"what drives '{names}'"


@dataclass(frozen=True)
class Feed:
    """A calculated parameter of one part connected to a parameter of another one.

    Attributes
    ----------
    source, name
        Index of the part that calculates it, and its name there.
    target, parameter
        Index of the part that takes it, and the index of its parameter.
    """

    source: int
    name: str
    target: int
    parameter: int


class Wiring:
    """The validated connections of systems.

    Parameters
    ----------
    parts
        Systems by name.
    connections
        Pairs (`part.variable`, `part.variable`): source and target.

    Attributes
    ----------
    wires
        Connections from readings to inputs.
    feeds
        Connections from calculated parameters to parameters.
    free
        Indices of part and input of the inputs that no connection drives.
    fed_through
        Those of the wires that carry what depends on accelerations of their source to where it counts at once; known
        with the levels.

    Raises
    ------
    DataError
        When a connection names what is not there, drives something twice, or joins different units.
    """

    def __init__(self, parts: Mapping[str, System], connections: Iterable[tuple[str, str]]) -> None:
        self._names = tuple(parts)
        self._parts = tuple(parts.values())
        self._readings = [_readings(part) for part in self._parts]
        self._motions = [rated_names(part.inputs) for part in self._parts]
        self.wires: list[VariableConnection] = []
        self.feeds: list[Feed] = []
        self.fed_through: list[VariableConnection] = []
        for source, target in connections:
            self._connect(source, target)
        driven = {(wire.target, wire.input) for wire in self.wires}
        self.free = [
            (index, entry)
            for index, part in enumerate(self._parts)
            for entry in range(len(part.inputs))
            if (index, entry) not in driven
        ]

    def _connect(self, source: str, target: str) -> None:
        (from_part, output), (to_part, entry) = self._find(source), self._find(target)
        calculated = {variable.name: variable for variable, _ in self._parts[from_part].balances}
        parameters = [variable.name for variable in self._parts[to_part].parameters]
        inputs = [variable.name for variable in self._parts[to_part].inputs]
        readings = [variable.name for variable in self._readings[from_part]]
        if output in calculated and entry in parameters:
            index = parameters.index(entry)
            feed = Feed(from_part, output, to_part, index)
            given, taken = calculated[output], self._parts[to_part].parameters[index]
            taken_already = any((each.target, each.parameter) == (to_part, index) for each in self.feeds)
            self.feeds.append(feed)
        elif output in readings and entry in inputs:
            wire = VariableConnection(from_part, readings.index(output), to_part, inputs.index(entry))
            given, taken = self.source(wire), self._parts[to_part].inputs[wire.input]
            taken_already = any((each.target, each.input) == (to_part, wire.input) for each in self.wires)
            self.wires.append(wire)
        else:
            if output not in (known := [*readings, *calculated]):
                raise DataError(f"connection: there is no output '{source}'; {closest_match(output, known)}")
            takes = inputs if output in readings else parameters
            raise DataError(f"connection: '{target}' cannot be driven by '{source}'; {closest_match(entry, takes)}")
        if taken_already:
            raise DataError(f"connection: '{target}' is driven twice")
        if taken.name in self._motions[to_part]:
            raise DataError(
                f"connection: '{target}' is of a prescribed motion, which follows a signal or is set from outside; "
                "a connection cannot drive it"
            )
        if given.unit != taken.unit:
            raise DataError(f"connection: '{source}' is in {given.unit}, but '{target}' is in {taken.unit}")

    def _find(self, reference: str) -> tuple[int, str]:
        part, _, variable = reference.partition(".")
        if part not in self._names or not variable:
            raise DataError(f"connection: '{reference}' names no system; {closest_match(part, self._names)}")
        return self._names.index(part), variable

    def levels(self, traces: Traces) -> list[ConnectionLevel]:
        """Return the wires by level: the values of one level depend on inputs of lower levels, or of its loop.

        Parameters
        ----------
        traces
            Has what was found out before.

        Raises
        ------
        DataError
            When nothing determines a loop.
        """
        traced = [SystemExpressions(part) for part in self._parts]
        feeling = traces.fact("wires with accelerations", lambda: self._feeling(traced))
        self.fed_through = [wire for wire, feels in zip(self.wires, feeling, strict=True) if feels]
        needs = np.array(traces.fact("needs of wires", lambda: self._needs(traced)), dtype=bool)
        direct = needs = needs.reshape(len(self.wires), len(self.wires))
        for _ in range(len(self.wires).bit_length()):
            needs = needs | (needs.astype(int) @ needs.astype(int)).astype(bool)
        mutual = needs & needs.T
        depth = np.zeros(len(self.wires), dtype=int)
        # Those of a loop need the same; what needs a loop without being in one comes behind it.
        for index in sorted(range(len(depth)), key=lambda index: (needs[index].sum(), not mutual[index, index])):
            depth[index] = 1 + np.max(depth[needs[index] & ~mutual[index]], initial=0)
        result: list[ConnectionLevel] = []
        for level in range(1, 1 + int(np.max(depth, initial=0))):
            there = np.flatnonzero(depth == level).tolist()
            result.append(ConnectionLevel([self.wires[index] for index in there if not mutual[index, index]]))
            loops = dict.fromkeys(tuple(np.flatnonzero(mutual[index]).tolist()) for index in there)
            result += [
                solved([self.wires[index] for index in loop], traced, direct[np.ix_(loop, loop)])
                for loop in filter(None, loops)
            ]
        return result

    def _feeling(self, traced: Sequence[SystemExpressions]) -> list[bool]:
        """Return for each wire whether it has acceleration feed-through."""
        result = []
        for wire in self.wires:
            source = traced[wire.source]
            outputs, readings = len(source.system.outputs), len(self._readings[wire.source])
            direct = wire.output >= readings - len(source.system.accelerations)
            if wire.output < outputs:
                direct = bool(source.depends(source.outputs, "accelerations")[wire.output].any())
            # Updates know accelerations, and nothing else of a part without continuous states asks for what they read.
            target = self._parts[wire.target]
            result.append(direct and not (target.samplings and not target.states))
        return result

    def _needs(self, traced: Sequence[SystemExpressions]) -> list[list[bool]]:
        """Return for each wire the wires on which its value depends directly."""
        return [self._needed_by(wire, traced[wire.source]) for wire in self.wires]

    def _needed_by(self, wire: VariableConnection, source: SystemExpressions) -> list[bool]:
        """Return the wires on which the value of a wire depends directly."""
        if wire.output >= len(source.system.outputs):
            return [False] * len(self.wires)
        needed = source.depends(source.outputs, "inputs")[wire.output]
        return [each.target == wire.source and bool(needed[each.input]) for each in self.wires]

    def name(self, wire: VariableConnection) -> str:
        """Return the driven input of a wire, as `part.variable`."""
        return f"{self._names[wire.target]}.{self._parts[wire.target].inputs[wire.input].name}"

    def source(self, wire: VariableConnection) -> Variable:
        """Return the source variable of a wire."""
        return self._readings[wire.source][wire.output]

    def free_input(self, reference: str) -> tuple[int, str]:
        """Return the part, by index, and the name of an input given as `part.variable`.

        Raises
        ------
        DataError
            When it is no input, or driven by a connection.
        """
        part, name = self._find(reference)
        free = {(index, self._parts[index].inputs[entry].name) for index, entry in self.free}
        if (part, name) not in free:
            known = [f"{self._names[index]}.{variable}" for index, variable in sorted(free)]
            raise DataError(f"'{reference}' is no input that a signal can drive; {closest_match(reference, known)}")
        return part, name


def _readings(part: System) -> Sequence[Variable]:
    """Return all readings of a part."""
    moving = (part.coordinates, part.velocities, part.states, part.discrete, part.accelerations)
    return [*part.outputs, *(variable for kind in moving for variable in kind)]


def readers_first(samplings: Sequence[Sampling], pattern: NDArray[np.bool_]) -> tuple[Sampling, ...]:
    """Return updates with readers before writers; loops in the given order.

    Parameters
    ----------
    samplings
        The updates.
    pattern
        Which discrete states (rows) follow from which ones (columns), shape (d, d).
    """
    needs = _needs(pattern, samplings)
    left, ordered = list(range(len(samplings))), list[Sampling]()
    while left:
        free = next(each for each in left if all(needs[other, each] for other in left if needs[each, other]))
        ordered.append(samplings[free])
        left.remove(free)
    return tuple(ordered)


def _needs(pattern: NDArray[np.bool_], samplings: Sequence[Sampling]) -> NDArray[np.bool_]:
    """Return the transitive dependencies between updates; those of a loop depend on each other."""
    own = [slice(each.first, each.first + each.count) for each in samplings]
    needs = np.array([[bool(pattern[one, other].any()) for other in own] for one in own])
    for between in range(len(own)):
        needs |= np.outer(needs[:, between], needs[between])
    return needs
