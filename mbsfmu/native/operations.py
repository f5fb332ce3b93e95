"""Traced functions as lists of operations: tables, which `runtime/core/operations.c` goes through, and C later on.

No compiler has to read a table operation by operation: it is done at once with it, and steps take half as long again.
C is made of the same list, so that both compute the same to the last bit, and nothing is traced again for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.native.traced_code import function_code, linear_solver, number, parameters
from mbsfmu.tracing.solved_equations import NAME as LINEAR
from mbsfmu.tracing.workspace import TracedFunction

_RESULT_OF: dict[int, str] = {
    ca.OP_ASSIGN: "{a}",
    ca.OP_ADD: "{a} + {b}",
    ca.OP_SUB: "{a} - {b}",
    ca.OP_MUL: "{a} * {b}",
    ca.OP_DIV: "{a} / {b}",
    ca.OP_NEG: "-{a}",
    ca.OP_EXP: "exp({a})",
    ca.OP_LOG: "log({a})",
    ca.OP_POW: "pow({a}, {b})",
    ca.OP_CONSTPOW: "pow({a}, {b})",
    ca.OP_SQRT: "sqrt({a})",
    ca.OP_SQ: "{a} * {a}",
    ca.OP_TWICE: "2.0 * {a}",
    ca.OP_SIN: "sin({a})",
    ca.OP_COS: "cos({a})",
    ca.OP_TAN: "tan({a})",
    ca.OP_ASIN: "asin({a})",
    ca.OP_ACOS: "acos({a})",
    ca.OP_ATAN: "atan({a})",
    ca.OP_LT: "{a} < {b}",
    ca.OP_LE: "{a} <= {b}",
    ca.OP_EQ: "{a} == {b}",
    ca.OP_NE: "{a} != {b}",
    ca.OP_NOT: "!{a}",
    ca.OP_AND: "{a} && {b}",
    ca.OP_OR: "{a} || {b}",
    ca.OP_FLOOR: "floor({a})",
    ca.OP_CEIL: "ceil({a})",
    ca.OP_FABS: "fabs({a})",
    ca.OP_SIGN: "{a} < 0.0 ? -1.0 : {a} > 0.0 ? 1.0 : {a}",
    ca.OP_COPYSIGN: "copysign({a}, {b})",
    ca.OP_IF_ELSE_ZERO: "{a} ? {b} : 0.0",
    ca.OP_FMIN: "smaller({a}, {b})",
    ca.OP_FMAX: "larger({a}, {b})",
    ca.OP_INV: "1.0 / {a}",
    ca.OP_SINH: "sinh({a})",
    ca.OP_COSH: "cosh({a})",
    ca.OP_TANH: "tanh({a})",
    ca.OP_ASINH: "asinh({a})",
    ca.OP_ACOSH: "acosh({a})",
    ca.OP_ATANH: "atanh({a})",
    ca.OP_ATAN2: "atan2({a}, {b})",
    ca.OP_LOG1P: "log1p({a})",
    ca.OP_EXPM1: "expm1({a})",
    ca.OP_HYPOT: "hypot({a}, {b})",
}
"""What operations make of numbers a and b, as C says it."""
_RESULT_IN_LANES: dict[int, str] = {
    **{operation: re.sub(r"\b(\w+)\(", r"lanes_\1(", result) for operation, result in _RESULT_OF.items()},
    ca.OP_LT: "truth({a} < {b})",
    ca.OP_LE: "truth({a} <= {b})",
    ca.OP_EQ: "truth({a} == {b})",
    ca.OP_NE: "truth({a} != {b})",
    ca.OP_NOT: "truth(~is_true({a}))",
    ca.OP_AND: "truth(is_true({a}) & is_true({b}))",
    ca.OP_OR: "truth(is_true({a}) | is_true({b}))",
    ca.OP_SIGN: "lanes_sign({a})",
    ca.OP_IF_ELSE_ZERO: "where_true({a}, {b})",
}
"""The same of numbers of several machines, by `runtime/ensemble/lanes.h`."""
_OF_ONE_MACHINE = {"double": "Lanes", "Parts": "LaneParts"}
"""Types of numbers of one machine, and those of several."""
_OTHERS = {"CONSTANT": ca.OP_CONST, "GIVEN": ca.OP_INPUT, "RESULT": ca.OP_OUTPUT, "CALL": ca.OP_CALL}
"""Those that write a constant or an element of an argument, or an element of a result, or call what solves linear
equations."""
_OCTAL = np.array([list(f"\\{byte:03o}".encode()) for byte in range(256)], dtype=np.uint8)
_HELD = re.compile(r"/\* operations of (\w+) \*/")


@dataclass(frozen=True)
class Operations:
    """Operations of a function in sequence.

    Attributes
    ----------
    name
        Its name.
    given, results
        The arrays that it takes numbers from and writes them to.
    own
        How many of the results, the first ones, are arguments; the others are parts.
    cleared
        By result how many elements are set to zero before, as only some of them are written.
    room
        How many numbers are at work.
    constants
        The constants.
    solvers
        Names of the functions that solve linear equations.
    rows
        For each operation which one it is, where its result goes, and what it takes, four numbers of two bytes in
        hexadecimal digits; behind a call stand rows of what `runtime/core/operations.c` says.
    """

    name: str
    given: list[str]
    results: list[str]
    own: int
    cleared: list[int]
    room: int
    constants: list[float]
    solvers: list[str]
    rows: str

    @classmethod
    def of(cls, traced: TracedFunction, helpers: dict[str, str], prefix: str = "") -> Operations | None:
        """Return those of a traced function; None where there are others among them, or too many numbers.

        Parameters
        ----------
        traced
            The function.
        helpers
            Gets the functions that solve linear equations.
        prefix
            Of its name.
        """
        function = traced.function
        called = function.find_functions(0)
        if not all(each.name().startswith(LINEAR) for each in called):
            return None
        solvers = {(each.numel_in(0) + each.numel_in(1), each.numel_out(0)): each for each in called}
        found = _Found(function, traced.sparsities, list(solvers))
        if not found.complete:
            return None
        table = np.array(found.rows, dtype=np.int64).reshape(-1, 4)
        if np.any((table < 0) | (table > np.iinfo(np.uint16).max)):
            return None
        own = function.n_out() - len(traced.into)
        return cls(
            f"{prefix}{function.name()}",
            [f"p->{part}" for part in function.name_in()],
            [*(f"result_{index}" for index in range(own)), *(f"p->{part}" for part in traced.into)],
            own,
            [0 if sparsity.is_dense() else sparsity.numel() for sparsity in traced.sparsities],
            found.room,
            found.constants,
            [linear_solver(each, helpers) for each in solvers.values()],
            table.astype("<u2").tobytes().hex(),
        )

    @property
    def place(self) -> str:
        """Placeholder of the function in a file."""
        return f"/* operations of {self.name} */"

    @property
    def _arguments(self) -> list[str]:
        return ["p", *self.results[: self.own]]

    @property
    def _clearing(self) -> str:
        sized = zip(self.results, self.cleared, strict=True)
        return "".join(f"  memset({each}, 0, {size} * sizeof(double));\n" for each, size in sized if size)

    @property
    def _numbers(self) -> np.ndarray[Any, np.dtype[np.uint16]]:
        return np.frombuffer(bytes.fromhex(self.rows), dtype="<u2").reshape(-1, 4)

    def table(self) -> str:
        """Write the function with a table that is gone through."""
        rows = self._numbers
        octal = _OCTAL[np.frombuffer(rows.astype(np.uint16).tobytes(), dtype=np.uint8)].tobytes().decode()
        constants = ", ".join(map(_constant, self.constants)) or "0.0"
        unused = ["  (void)p;"] * (not self.given and len(self.results) == self.own)
        arrays = f"{self.name}_constants, given, results, solvers, work"
        return "\n".join(
            [
                f'static const char {self.name}_table[] = "{octal}";',
                f"static const double {self.name}_constants[] = {{{constants}}};",
                f"static void {self.name}({parameters(self._arguments)}) {{",
                f"  const double *const given[] = {{{', '.join([*self.given, 'NULL'])}}};",
                f"  double *const results[] = {{{', '.join([*self.results, 'NULL'])}}};",
                f"  static const Solver solvers[] = {{{', '.join([*self.solvers, 'NULL'])}}};",
                f"  double work[{max(self.room, 1)}];",
                *unused,
                f"{self._clearing}  operate({self.name}_table, {len(rows)}, {arrays});",
                "}",
            ]
        )

    def code(self) -> str:
        """Write the function as C."""
        return self._code(self.name, _RESULT_OF, "{}", "{solver}(between, between + {right}, between + {made});")

    def lanes(self) -> str:
        """Write the function as C for several machines at once, each in a lane; `lanes_` begins its name."""
        solve = "solve_by_lane({solver}, {taken}, {count}, between, between + {made}, (double[{room}]){{0.0}});"
        text = self._code(f"lanes_{self.name}", _RESULT_IN_LANES, "splat({})", solve)
        return re.sub(r"\b(double|Parts)\b(?!\[)", lambda found: _OF_ONE_MACHINE[found[0]], text)

    def _code(self, name: str, results: Mapping[int, str], constant: str, solve: str) -> str:
        """Write the function with a name, by what its operations make, how constants are written, equations solved."""
        written = {operation: f"  a{{made}} = {result};" for operation, result in results.items()}
        lines, used = [], set[int]()
        rows = iter(self._numbers.tolist())
        for operation, made, a, b in rows:
            if operation == ca.OP_OUTPUT:
                lines.append(f"  {self.results[made]}[{b}] = a{a};")
                continue
            if operation == ca.OP_CALL:
                listed = [number for _ in range(_rows_of_call(a, b)) for number in next(rows)]
                places = listed[2 : 2 + a + b]
                lines += [f"  between[{index}] = a{place};" for index, place in enumerate(places[:a])]
                sizes = {"right": listed[0], "made": a, "taken": a, "count": b, "room": a + b}
                lines.append("  " + solve.format(solver=self.solvers[made], **sizes))
                kept = {index: place for index, place in enumerate(places[a:], a) if place < listed[1]}
                lines += [f"  a{place} = between[{index}];" for index, place in kept.items()]
                used.update(kept.values())
                continue
            used.add(made)
            if operation == ca.OP_CONST:
                lines.append(f"  a{made} = {constant.format(_constant(self.constants[a]))};")
            elif operation == ca.OP_INPUT:
                lines.append(f"  a{made} = {self.given[a]}[{b}];")
            else:
                lines.append(written[operation].format(made=made, a=f"a{a}", b=f"a{b}"))
        names = f"  double {', '.join(f'a{each}' for each in sorted(used))};\n" if used else ""
        between = f"  double between[{self.room}];\n" if self.solvers else ""
        return function_code(name, self._arguments, names + self._clearing + "\n".join([*lines, ""]), between)


def _constant(value: float) -> str:
    if math.isfinite(value):
        return number(value)
    return "NAN" if math.isnan(value) else "INFINITY" if value > 0.0 else "-INFINITY"


def _rows_of_call(taken: int, made: int) -> int:
    """Return how many rows stand behind a call."""
    return -(-(2 + taken + made) // 4)


class _Found:
    """The operations of a function, as `Operations` has them.

    Parameters
    ----------
    function
        The function.
    sparsities
        Where its results have elements.
    solvers
        Of functions that it calls, which solve linear equations, how many numbers each takes and gives.

    Attributes
    ----------
    rows, constants, room
        The operations, the constants, and how many numbers are at work.
    complete
        Whether all operations are known here.
    """

    def __init__(
        self, function: ca.Function, sparsities: Sequence[ca.Sparsity], solvers: Sequence[tuple[int, int]]
    ) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.constants: list[float] = []
        self.room: int = function.sz_w() + max(map(sum, solvers), default=0)
        self.complete = True
        self._first_between: int = function.sz_w()
        self._places = [sparsity.find() for sparsity in sparsities]
        self._solvers = solvers
        for index in range(function.n_instructions()):
            operation, made = function.instruction_id(index), function.instruction_output(index)
            if operation == ca.OP_CONST:
                self.rows.append((operation, made[0], len(self.constants), 0))
                self.constants.append(function.instruction_constant(index))
            else:
                self._add(operation, made, function.instruction_input(index))

    def _add(self, operation: int, made: list[int], taken: list[int]) -> None:
        if operation == ca.OP_INPUT:
            self.rows.append((operation, made[0], *taken))
        elif operation == ca.OP_OUTPUT:
            self.rows.append((operation, made[0], taken[0], self._places[made[0]][made[1]]))
        elif operation in _RESULT_OF:
            self.rows.append((operation, made[0], taken[0], taken[-1]))
        elif operation == ca.OP_CALL:
            size = len(taken), len(made)
            self.rows.append((operation, self._solvers.index(size), *size))
            # What nobody needs stays where the solver has put it.
            stays = (self._first_between + len(taken) + element for element in range(len(made)))
            kept = (there if place < 0 else place for place, there in zip(made, stays, strict=True))
            listed = [len(taken) - len(made), self._first_between, *taken, *kept]  # of right sides there are as many
            listed += [0] * (4 * _rows_of_call(*size) - len(listed))
            self.rows += [tuple(listed[first : first + 4]) for first in range(0, len(listed), 4)]
        else:
            self.complete = False


def operations_header() -> str:
    """Write `operations.h`: the numbers of operations, and what they make."""
    results = (f"    OF({operation}, {result.format(a='a', b='b')})" for operation, result in _RESULT_OF.items())
    return "\n".join(
        [
            "#ifndef MBSFMU_OPERATIONS_H",
            "#define MBSFMU_OPERATIONS_H",
            *(f"#define OPERATION_{name} {operation}" for name, operation in _OTHERS.items()),
            " \\\n".join(["#define OPERATIONS(OF)", *results]),
            "typedef void (*Solver)(const double *matrix, const double *right, double *found);",
            "void operate(const char *table, int count, const double *constants, const double *const *given, "
            "double *const *results, const Solver *solvers, double *work);",
            "#endif",
            "",
        ]
    )


def filled(files: Mapping[str, str], functions: Mapping[str, str]) -> dict[str, str]:
    """Return files with functions, by their names, where they belong."""
    return {name: _HELD.sub(lambda found: functions[found[1]], text) for name, text in files.items()}
