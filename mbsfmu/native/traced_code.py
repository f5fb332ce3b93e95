"""Traced and recorded functions as C, in pieces that compilers can digest.

One traced function as C, in pieces that compilers can digest.

The time that compilers need for a function grows faster than its length. A long one is therefore cut into several that
hand over what they still need in an array.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbsfmu.tracing.solved_equations import NAME as LINEAR
from mbsfmu.tracing.solved_equations import TRIAL
from mbsfmu.tracing.tape.recorded_program import Fields, Program, Stretch, layout, repetitions
from mbsfmu.tracing.tape.recording import Kernel
from mbsfmu.tracing.workspace import RecordedFunction, TracedFunction

_ESCAPED = frozenset('"\\?')
"""What has a meaning in a string; question marks begin trigraphs, by which `??/` would end no string."""


def number(value: float) -> str:
    """Write a number of C with all its digits."""
    if math.isfinite(value):
        return repr(float(value))
    return "NAN" if math.isnan(value) else "HUGE_VAL" if value > 0.0 else "-HUGE_VAL"


def numbers(values: Iterable[float]) -> str:
    """Write the initial values of an array; C has none of length zero."""
    return "{" + (", ".join(number(value) for value in values) or "0.0") + "}"


def string(text: str) -> str:
    """Write a C string, with octal bytes of UTF-8 for non-ASCII characters."""
    if text.isascii() and text.isprintable() and not _ESCAPED.intersection(text):
        return f'"{text}"'
    plain = (character.isascii() and character.isprintable() and character not in _ESCAPED for character in text)
    octal = ("".join(f"\\{byte:03o}" for byte in character.encode()) for character in text)
    return '"' + "".join(c if is_plain else o for c, is_plain, o in zip(text, plain, octal, strict=True)) + '"'


def strings(texts: Iterable[str]) -> str:
    """Write the initial values of an array of strings."""
    return "{" + (", ".join(string(text) for text in texts) or '""') + "}"


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


_LONG_PROGRAM = 3000
"""Characters from which on a kernel is written once for all files."""
_TAKEN = re.compile(r"\btaken\[(\d+)\]")
_FIELD = re.compile(r"\bfield_\d+\b")


def program_code(function: RecordedFunction, helpers: dict[str, str], prefix: str = "") -> str:
    """Write a recorded function, with the arguments that `traced_code` gives it.

    Parameters
    ----------
    function
        The function.
    helpers
        Gets the kernels that it calls, which others may call too, behind the functions of CasADi that these call.
    prefix
        Of its name.
    """
    program, name = function.program, f"{prefix}{function.name}"
    lies = layout(program)
    used = sorted(lies.fields)
    kernels = {index: _kernel(program.kernels[index], lies.fields[index], helpers) for index in used}
    numbered = {index: number for number, index in enumerate(used)}
    own = len(program.results) - len(function.into)
    targets = [*(f"result_{index}" for index in range(own)), *(f"p->{part}" for part in function.into)]
    constants = f"static const double {name}_constants[] = {numbers(program.constants)};"
    table = [number for stretch in lies.stretches for number in _row(stretch, numbered)]
    cases = [
        f"  case {number}: return {kernels[index]}(work, at + 1, count, begin, end);"
        for index, number in numbered.items()
    ]
    tables, taken = _copied(name, program, targets)
    calls = _switch(name, cases, table) if used else []
    run = f"  run_table(work, {name}_table, {name}_call);"
    statements = [*_given(name, program), *([run] if used else []), *taken]
    unused = [
        f"  (void){target};" for target, places in zip(targets[:own], program.results, strict=False) if not places.size
    ]
    arguments = ", ".join(["const Parts *p", *(f"double *{target}" for target in targets[:own])])
    head = [f"static void {name}({arguments}) {{", f"  double *work = p->{program.memory_name};"]
    return "\n\n".join([*calls, constants, *tables, "\n".join([*head, *unused, *statements, "}"])])


def _switch(name: str, cases: Sequence[str], table: Sequence[int]) -> list[str]:
    """Write the table, and what calls a kernel by its number there."""
    return [
        f"static const int {name}_table[] = {{\n{_rows((*table, 0))}}};",
        "\n".join(
            [
                f"static const int *{name}_call(double *work, const int *at, int count, int begin, int end) {{",
                "  switch (*at) {",
                *cases,
                "  }",
                "  return at;",
                "}",
            ]
        ),
    ]


def _given(name: str, program: Program) -> Iterator[str]:
    """Write how a memory gets what the program is given, and the constants."""
    first = program.schedule.first
    for part, size in program.given.items():
        if size:
            yield f"  memcpy(work + {first}, p->{part}, {size} * sizeof(double));"
        first += size
    yield f"  memcpy(work + {first}, {name}_constants, {len(program.constants)} * sizeof(double));"


def _copied(name: str, program: Program, targets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return tables of where results are, and statements that copy them."""
    tables, statements = [], []
    for index, (target, shaped) in enumerate(zip(targets, program.results, strict=True)):
        places = shaped.ravel(order="F")
        if not places.size:
            continue
        if np.all(np.diff(places) == 1):
            statements.append(f"  memcpy({target}, work + {places[0]}, {places.size} * sizeof(double));")
            continue
        table = []
        for found in repetitions(places[:, np.newaxis], np.zeros(len(places), dtype=np.int64)):
            rows = places[found.begin : found.begin + 2 * found.length]
            table += [found.length, found.count, *rows[: found.length].tolist()]
            if found.count > 1:
                table += (rows[found.length :] - rows[: found.length]).tolist()
        tables.append(f"static const int {name}_result_{index}[] = {{\n{_rows((*table, 0))}}};")
        statements.append(f"  copy_results(work, {name}_result_{index}, {target});")
    return tables, statements


def _rows(values: Sequence[int]) -> str:
    return "".join(", ".join(map(str, values[begin : begin + 24])) + ",\n" for begin in range(0, len(values), 24))


def _kernel(kernel: Kernel, fields: Fields, helpers: dict[str, str]) -> str:
    """Write a loop over calls of a kernel, which returns where what belongs to them in the table ends; return its name.

    It is known by what it does: functions in which the arguments of a kernel lie alike call the same one.
    """
    body = body_of(kernel.function, ["taken"], ["made"], helpers)
    body = _TAKEN.sub(lambda found: _place(fields, int(found[1])), body)
    regular, listed = len(fields.regular), fields.listed
    pointers = [f"field_{index}" for index in range(len(fields.first))]
    used = {"made", *_FIELD.findall(body)}  # a kernel may take what it has no use for
    own = {each: index for index, each in enumerate(["made", *pointers[:regular]]) if each in used}
    begins = [f"  const double *{each} = work + at[{index}];" for each, index in own.items()]
    begins[0] = begins[0].replace("const ", "")
    moved = " ".join(f"{each} += begin * (ptrdiff_t)by[{index}];" for each, index in own.items())
    listing = [(index, each) for index, each in enumerate(pointers[regular:]) if each in used]
    taken = [f"  const double *{each} = work + next[{index}];" for index, each in listing]
    following = [f"  next += {listed};"] * bool(listing)
    lines = [
        "(double *work, const int *at, int count, int begin, int end) {",
        *begins,
        f"  const int *by = at + {1 + regular}, *list = count > 1 ? by + {1 + regular} : by;",
        *[f"  const int *next = list + {listed} * begin;"] * bool(listing),
        f"  if (begin) {{ {moved} }}",
        "  for (;;) {",
        *taken,
        f"{body}  if (++begin >= end) return list + {listed} * count;",
        *(f"  {each} += by[{index}];" for each, index in own.items()),
        *following,
        "  }",
        "}",
    ]
    text = "\n".join(lines)
    name = f"{kernel.name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    is_long = len(text) > _LONG_PROGRAM
    called = f"NAMED({name})" if is_long else name
    helpers[name] = f"{'INTERNAL' if is_long else 'static'} const int *{called}{text}"
    return called


def declared(kernel: str) -> str:
    """Return the declaration of a kernel defined in another file; a short kernel itself."""
    head, _, _ = kernel.partition(" {")
    return f"{head};" if "INTERNAL" in head else kernel


def _place(fields: Fields, argument: int) -> str:
    field, offset = fields.field[argument], fields.offset[argument]
    return f"work[{offset}]" if field < 0 else f"field_{field}[{offset}]"


def _row(stretch: Stretch, numbered: dict[int, int]) -> Iterator[int]:
    """Return a stretch's part of the table; `tables.h` says what it is."""
    yield from (len(stretch.calls), stretch.count)
    for each in stretch.calls:
        yield from (numbered[each.kernel], *each.begin.tolist())
        if stretch.count > 1:
            yield from each.distance.tolist()
        yield from each.listed.ravel().tolist()
