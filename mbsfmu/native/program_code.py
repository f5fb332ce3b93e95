"""A recorded function as C: one function for each kernel, loops over them, and tables of where their numbers lie.

A loop's calls are cut into stretches in which every place moves on by an equal distance from call to call: a stretch is
the places of its first call and the distances. Along a chain, all of a loop is one stretch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from mbsfmu.formulations.workspace import RecordedFunction
from mbsfmu.native.literals import numbers
from mbsfmu.native.traced_code import body_of
from mbsfmu.programs.program import Program
from mbsfmu.programs.recording import Kernel
from mbsfmu.programs.schedule import Loop, Places

_TAKEN = re.compile(r"\btaken\[(\d+)\]")


def program_code(function: RecordedFunction, helpers: dict[str, str], prefix: str = "") -> str:
    """Write a recorded function, with the arguments that `traced_code` gives it.

    Parameters
    ----------
    function
        The function.
    helpers
        Gets the functions of CasADi that it calls.
    prefix
        Of its name.
    """
    program, name = function.program, f"{prefix}{function.name}"
    used = sorted({loop.kernel for loop in program.schedule.loops})
    kernels = [_kernel(name, program.kernels[index], helpers) for index in used]
    stretches = (each for loop in program.schedule.loops for each in _stretches(loop, program, used.index(loop.kernel)))
    own = len(program.results) - len(function.into)
    targets = [*(f"result_{index}" for index in range(own)), *(f"p->{part}" for part in function.into)]
    constants = f"static const double {name}_constants[] = {numbers(program.constants)};"
    table = f"static const int {name}_table[] = {{\n{_rows((*stretches, -1))}}};"
    cases = [
        f"      case {number}: next = {name}_{program.kernels[index].name}(work, next); break;"
        for number, index in enumerate(used)
    ]
    tables, taken = _copied(name, program, targets)
    statements = [
        *_given(name, program),
        *(["  while (*next >= 0) {", "    switch (*next) {", *cases, "    }", "  }"] if used else ["  (void)next;"]),
        *taken,
    ]
    unused = [
        f"  (void){target};" for target, places in zip(targets[:own], program.results, strict=False) if not places.size
    ]
    arguments = ", ".join(["const Parts *p", *(f"double *{target}" for target in targets[:own])])
    head = [f"static void {name}({arguments}) {{", "  double *work = p->work;", f"  const int *next = {name}_table;"]
    return "\n\n".join([*kernels, table, constants, *tables, "\n".join([*head, *unused, *statements, "}"])])


def _given(name: str, program: Program) -> Iterator[str]:
    """Write how a memory gets what the program is given, and the constants."""
    first = 0
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
        tables.append(f"static const int {name}_result_{index}[] = {{\n{_rows(places.tolist())}}};")
        statements.append(f"  for (int i = 0; i < {places.size}; i++) {target}[i] = work[{name}_result_{index}[i]];")
    return tables, statements


def _rows(values: Sequence[int]) -> str:
    return "".join(", ".join(map(str, values[begin : begin + 24])) + ",\n" for begin in range(0, len(values), 24))


def _kernel(owner: str, kernel: Kernel, helpers: dict[str, str]) -> str:
    """Write a loop over calls of a kernel; it returns where the table goes on."""
    body = body_of(kernel.function, ["taken"], ["made"], helpers)
    body = _TAKEN.sub(lambda found: f"work[at[{found[1]}]]", body)
    count = kernel.arguments
    return (
        f"static const int *{owner}_{kernel.name}(double *work, const int *table) {{\n"
        f"  const int calls = table[1], *distance = table + 3 + {count};\n"
        f"  double *made = work + table[2];\n"
        f"  int at[ROOM({count})];\n"
        f"  for (int k = 0; k < {count}; k++) at[k] = table[3 + k];\n"
        f"  for (int call = 0;;) {{\n{body}"
        f"  if (++call == calls) break;\n"
        f"  made += {kernel.results};\n"
        f"  for (int k = 0; k < {count}; k++) at[k] += distance[k];\n"
        f"  }}\n"
        f"  return calls > 1 ? distance + {count} : distance;\n}}"
    )


def _stretches(loop: Loop, program: Program, number: int) -> Iterator[int]:
    """Return a loop's part of the table.

    Of each stretch it has kernel, calls, first result, places of the first call, and distances if there are more.
    """
    results, places = program.kernels[loop.kernel].results, loop.arguments
    begin = 0
    for end in _ends(places):
        yield from (number, end - begin, loop.first + begin * results)
        yield from places[begin].tolist()
        if end - begin > 1:
            yield from (places[begin + 1] - places[begin]).tolist()
        begin = end


def _ends(places: Places) -> Sequence[int]:
    """Return where stretches end."""
    count = len(places)
    if count < 2:
        return [count]
    distances = np.diff(places, axis=0)
    same = np.concatenate([[False], np.all(distances[1:] == distances[:-1], axis=1)])  # step k is as step k − 1
    ends, begin = [], 0
    while begin < count:
        end = begin + 1
        if end < count:
            end += 1
            while end < count and same[end - 1]:
                end += 1
            if end - begin == 2 and end < count:  # a pair saves nothing; the second may begin a longer one
                end = begin + 1
        ends.append(end)
        begin = end
    return ends
