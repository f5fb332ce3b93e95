"""A recorded function as C: one function for each kernel, loops over them, and tables of where their numbers lie."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

import numpy as np

from mbsfmu.native.literals import numbers
from mbsfmu.native.traced_code import body_of
from mbsfmu.tracing.tape.memory_layout import Fields, Stretch, layout, repetitions
from mbsfmu.tracing.tape.recorded_program import Program
from mbsfmu.tracing.tape.recording import Kernel
from mbsfmu.tracing.workspace import RecordedFunction

_LONG = 3000
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
    is_long = len(text) > _LONG
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
