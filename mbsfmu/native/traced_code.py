"""One traced function as C, in pieces that compilers can digest.

The time that compilers need for a function grows faster than its length. A long one is therefore cut into several that
hand over what they still need in an array.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from mbsfmu.tracing.solved_equations import NAME as LINEAR
from mbsfmu.tracing.solved_equations import TRIAL
from mbsfmu.tracing.workspace import TracedFunction

_BODY = re.compile(r"static int casadi_f0\([^)]*\) \{\n(.*?)  return 0;\n\}", re.DOTALL)
_NAMED = re.compile(r"^/\* (\w+):\(.*?\*/\nstatic int (casadi_f\d+)\(", re.MULTILINE)
_CALL = re.compile(r"if \((casadi_f\d+)\(arg\+(\d+), res\+(\d+), iw, w(?:\+\d+)?, 0\)\) return 1;")
_ARGUMENT = re.compile(r"arg\[(\d+)\]\? arg\[\d+\]\[(\d+)\] : 0")
_RESULT = re.compile(r"if \(res\[(\d+)\]!=0\) res\[\d+\]\[(\d+)\]=")
_HELPER = re.compile(r"^casadi_real (casadi_\w+)\(.*?\) \{.*?\}$", re.DOTALL | re.MULTILINE)
_WORDS = {
    "casadi_real": "double",
    "casadi_fmax(": "larger(",
    "casadi_fmin(": "smaller(",
    "casadi_nan": "NAN",
    "casadi_inf": "INFINITY",
}
"""What is called otherwise here than in CasADi's C."""
_LOCAL = re.compile(r"\ba\d+\b")
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_DECLARATION = re.compile(r"^  double a\d+[^=]*;$")
_HANDED = ("arg", "res", "between")
"""Arrays in which numbers are handed over to functions that are called."""
_TYPES = {"p": "const Parts *", "arg": "const double **", "res": "double **"}
_LONG = 5000  # statements from which on a function is cut
_PIECE = 400  # statements


def traced_code(traced: TracedFunction, helpers: dict[str, str], prefix: str = "") -> str:
    """Write a traced function; CasADi's C is used with the arguments' names instead of its pointers to pointers.

    Parameters
    ----------
    traced
        The function.
    helpers
        Gets the functions of CasADi that it calls.
    prefix
        Of its name.
    """
    own = traced.function.n_out() - len(traced.into)
    sources = [f"p->{name}" for name in traced.function.name_in()]
    targets = [*(f"result_{index}" for index in range(own)), *(f"p->{part}" for part in traced.into)]
    body, handed = _body(traced.function, sources, targets, helpers)
    return function_code(f"{prefix}{traced.function.name()}", ["p", *targets[:own]], body, handed)


def function_code(name: str, arguments: list[str], body: str, handed: str = "") -> str:
    """Write a function, or several where it is long.

    Parameters
    ----------
    name, arguments
        As it has them.
    body
        Its statements, a line each, with local variables a0, a1 and so on.
    handed
        What is declared before besides.
    """
    unused = [each for each in arguments if not re.search(rf"\b{each}\b", body + handed)]
    before = "".join(f"  (void){each};\n" for each in unused) + handed
    if body.count("\n") > _LONG:
        return _in_pieces(name, arguments, body, before)
    return f"static void {name}({parameters(arguments)}) {{\n{before}{body}}}"


def body_of(function: ca.Function, sources: Sequence[str], targets: Sequence[str], helpers: dict[str, str]) -> str:
    """Return the statements of a function that solves no algebraic loop; arguments as for traced functions."""
    return _body(function, sources, targets, helpers)[0]


def _body(
    function: ca.Function, sources: Sequence[str], targets: Sequence[str], helpers: dict[str, str]
) -> tuple[str, str]:
    """Return the statements of a function, and the arrays that it hands numbers over in to those that it calls.

    Parameters
    ----------
    function
        The function.
    sources, targets
        The arrays of its arguments and results.
    helpers
        Gets what it calls.
    """
    generator = ca.CodeGenerator("unit", {"casadi_int": "int", "with_header": False})
    generator.add(function)
    code = generator.dump()
    match = _BODY.search(code)
    assert match is not None, function.name()
    body = _ARGUMENT.sub(lambda found: f"{sources[int(found[1])]}[{found[2]}]", match[1])
    sparsities = [function.sparsity_out(index) for index in range(function.n_out())]
    places = [None if sparsity.is_dense() else sparsity.find() for sparsity in sparsities]
    body = _RESULT.sub(lambda found: _element(targets[int(found[1])], places[int(found[1])], int(found[2])), body)
    body = (
        "".join(
            f"  memset({target}, 0, {sparsity.numel()} * sizeof(double));\n"
            for target, sparsity in zip(targets, sparsities, strict=True)
            if not sparsity.is_dense()
        )
        + body
    )
    for word, own_word in _WORDS.items():
        body = body.replace(word, own_word)
    for found in _HELPER.finditer(code):
        if f"{found[1]}(" in body:
            helpers[found[1]] = "static " + found[0].replace("casadi_real", "double")
    named = {found[2]: found[1] for found in _NAMED.finditer(code)}
    solvers = {
        own: _solver(function.get_function(named[own]), helpers) for own in {found[1] for found in _CALL.finditer(body)}
    }
    if not solvers:
        return body, ""
    body = _CALL.sub(lambda found: _call(solvers[found[1]], int(found[2]), int(found[3])), body)
    body = re.sub(r"\bw(?=[\[+])", "between", body)
    first, last = ", ".join(sources), ", ".join(targets)
    handed = (
        f"  const double *arg[{function.sz_arg()}] = {{{first}}};\n  double *res[{function.sz_res()}] = {{{last}}};\n"
    )
    return body, f"{handed}  double between[{function.sz_w()}];\n"


def _element(target: str, places: Sequence[int] | None, index: int) -> str:
    """Write what assigns an element of a result; of a sparse one, given where the elements are that it has."""
    return f"{target}[{index if places is None else places[index]}]="


def _call(solver: str, first: int, last: int) -> str:
    results = [last] if solver.startswith(LINEAR) else [last, last + 1]
    return f"{solver}(arg[{first}], arg[{first + 1}], {', '.join(f'res[{each}]' for each in results)});"


def _solver(function: ca.Function, helpers: dict[str, str]) -> str:
    """Write what solves linear equations, or an algebraic loop with its trials as a function; return its name."""
    if function.name().startswith(LINEAR):
        return linear_solver(function, helpers)
    trial = function.find_function(TRIAL)
    body, _ = _body(trial, ["state", "numbers"], ["next"], helpers)
    ignored = "" if re.search(r"\bnumbers\b", body) else "  (void)numbers;\n"
    name = f"{function.name()}_{hashlib.sha256(body.encode()).hexdigest()[:12]}"
    size, state = function.numel_in(0), trial.numel_in(0)
    helpers[name] = (
        f"static void trial_of_{name}(const double *state, const double *numbers, double *next) {{\n"
        f"{ignored}{body}}}\n\n"
        f"static void {name}(const double *guess, const double *numbers, double *found, double *off) {{\n"
        f"  double room[{2 * state}];\n"
        f"  solve_loop({size}, trial_of_{name}, guess, numbers, room, found, off);\n}}"
    )
    return name


def linear_solver(function: ca.Function, helpers: dict[str, str]) -> str:
    """Write what solves linear equations, as a function of matrix, right sides and solutions; return its name."""
    name, unknowns = function.name(), math.isqrt(function.numel_in(0))
    helpers[name] = (
        f"static void {name}(const double *matrix, const double *right, double *found) {{\n"
        f"  double room[{unknowns**2}];\n"
        f"  int pivots[{unknowns}];\n"
        f"  solve_linear({unknowns}, {function.numel_in(1) // unknowns}, matrix, right, room, pivots, found);\n}}"
    )
    return name


def _in_pieces(name: str, arguments: list[str], body: str, ignored: str) -> str:
    """Write a function as a sequence of functions that transfer their live local variables."""
    outer = arguments
    lines = [line for line in body.splitlines() if not _DECLARATION.match(line)]
    pieces = [_Piece.of(lines[start : start + _PIECE]) for start in range(0, len(lines), _PIECE)]
    needed: list[frozenset[str]] = [frozenset()]  # before each piece, from the last to the first
    for piece in reversed(pieces):
        needed.append(piece.needed | (needed[-1] - piece.changed))
    needed.reverse()
    arguments = [*arguments, *(each for each in _HANDED if any(each in piece.words for piece in pieces))]
    shared = sorted(frozenset().union(*needed))
    place = {variable: index for index, variable in enumerate(shared)}
    functions, calls = [], []
    for number, piece in enumerate(pieces):
        before, after = needed[number], needed[number + 1]
        declared = [f"{each} = w[{place[each]}]" if each in before else each for each in sorted(piece.used)]
        stored = [f"  w[{place[each]}] = {each};" for each in sorted(after & piece.changed)]
        own = [each for each in arguments if each in piece.words]
        idle = "".join(f"  (void){each};\n" for each in ["w"] if not stored and not (before & piece.used))
        text = "\n".join([f"  double {', '.join(declared)};" if declared else "", *piece.lines, *stored])
        functions.append(f"static PIECE void {name}_{number}({parameters([*own, 'w'])}) {{\n{idle}{text}\n}}\n")
        calls.append(f"  {name}_{number}({', '.join([*own, 'w'])});\n")
    whole = f"static void {name}({parameters(outer)}) {{\n{ignored}  double w[{max(len(shared), 1)}];\n"
    return "\n".join(functions) + whole + "".join(calls) + "}"


@dataclass(frozen=True)
class _Piece:
    """Statements that become a function.

    Attributes
    ----------
    lines
        The statements.
    words
        All that they name.
    used
        The local variables among these.
    changed
        Those that get a value.
    needed
        Those that must have one before.
    """

    lines: list[str]
    words: frozenset[str]
    used: frozenset[str]
    changed: frozenset[str]
    needed: frozenset[str]

    @classmethod
    def of(cls, lines: list[str]) -> _Piece:
        """Read statements."""
        changed, needed = set[str](), set[str]()
        for line in lines:
            used = _LOCAL.findall(line)
            assigns = bool(used) and line.partition("=")[0].strip() == used[0]
            needed.update(each for each in used[assigns:] if each not in changed)
            changed.update(used[:assigns])
        words = frozenset(_WORD.findall("\n".join(lines)))
        return cls(lines, words, frozenset(changed | needed), frozenset(changed), frozenset(needed))


def parameters(arguments: Sequence[str]) -> str:
    """Write the parameters of a function."""
    return ", ".join(f"{_TYPES.get(argument, 'double *')}{argument}" for argument in arguments)
