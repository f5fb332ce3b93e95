"""What the language of steps does not have is refused by its line; what it has means the same in C."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mbsfmu.compiling.transpiler import Source, UntranslatableError

HEAD = """
from __future__ import annotations
import ctypes
from dataclasses import dataclass
from typing import Annotated, Protocol
from mbsfmu.stepping.language import *
LIMIT = 0.5

@dataclass
class Work:
    values: Annotated[Reals, "SIZE"]
    passing: Passing
    size: Real
    count: int

class Machine(Protocol):
    SIZE: int
    def evaluate(self, work: Work) -> Mask: ...
    @one_machine
    def fail(self, sentence: Text) -> None: ...

"""


def source(folder: Path, body: str) -> Source:
    path = folder / "steps_of_a_test.py"
    path.write_text(HEAD + textwrap.dedent(body))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return Source(module, {(path.stem, "LIMIT"): "LIMIT"})


@pytest.mark.parametrize(
    ("body", "line", "reason"),
    [
        ("    if work.size > 1.0:\n        work.count += 1", 2, "work.count is shared, and machines differ here"),
        ("    if work.size > 1.0:\n        work.count = 1", 2, "work.count is shared, and machines differ here"),
        ("    while work.size > 1.0:\n        work.size *= 0.5", 1, "work.size > 1.0 differs between machines"),
        ("    work.count = 1 if work.size > 1.0 else 2", 1, "work.size > 1.0 differs between machines"),
        ("    work.size = work.values[work.size]", 1, "work.size differs between machines"),
        ("    for k in range(3):\n        if work.size > 1.0:\n            continue", 3, "machines differ here"),
        ("    ok: Mask = work.size > 1.0 and machine.evaluate(work)", 1, "evaluate changes something"),
        ("    work.size = [1.0][0]", 1, "not in the language: [1.0]"),
        ("    work.size = work.size ** 2", 1, "not in the language: work.size ** 2"),
        ("    work.count = work.count / 2", 1, "whole numbers are divided otherwise in C"),
        ("    work.size = 0.0 < work.size < 1.0", 1, "not in the language: 0.0 < work.size < 1.0"),
        ("    work.size = work.weight", 1, "work.weight is not declared"),
        ("    work.size = sorted(work.values)", 1, "sorted is not in the language"),
        ("    with work:\n        pass", 1, "not in the language"),
        ("    for k in work.values:\n        pass", 1, "not in the language"),
        ("    machine.evaluate()", 1, "evaluate takes 1 arguments"),
        ("    work.size, work.passing = 0.0, 1.0", 1, "not in the language"),
    ],
)
def test_what_is_not_in_the_language_is_refused_by_its_line(tmp_path: Path, body: str, line: int, reason: str) -> None:
    first = len(HEAD.splitlines()) + 2
    steps = source(tmp_path, f"\ndef step(machine: Machine, work: Work) -> None:\n{body}\n")
    with pytest.raises(UntranslatableError) as refused:
        steps.code(lanes=True)
    assert f"line {first + line}: " in str(refused.value)
    assert reason in str(refused.value)


def test_branches_that_machines_take_differently_become_masks(tmp_path: Path) -> None:
    """By hand: both branches run, each for its machines; what one machine says is left out."""
    steps = source(
        tmp_path,
        '''
        def shrink(machine: Machine, work: Work) -> Mask:
            """Shrink what is too large."""
            if work.size > LIMIT:
                work.size = LIMIT * work.size
                work.passing = 2.0
            else:
                machine.fail("too small")
                return False
            work.passing = 1.0
            return True
        ''',
    )
    assert steps.code(lanes=True) == textwrap.dedent("""\
        /* Shrink what is too large. */
        static Mask shrink(Group *machine, Work *work, Mask active) {
            (void)machine;
            Mask on = active, gone = NOWHERE;
            Mask result = {0};
            const Mask on_1 = on & (work->size > LIMIT);
            if (any(on_1)) {
                work->size = select_lanes(on_1, LIMIT * work->size, work->size);
                work->passing = select_lanes(on_1, splat(2.0), work->passing);
            }
            const Mask not_on_1 = on & ~on_1;
            if (any(not_on_1)) {
                gone |= not_on_1;
            }
            on &= ~gone;
            if (!any(on)) return result;
            work->passing = splat(1.0);
            result |= on;
            return result;
        }
        """)
    assert steps.code(lanes=False) == textwrap.dedent("""\
        /* Shrink what is too large. */
        static int shrink(Instance *machine, Work *work) {
            if (work->size > LIMIT) {
                work->size = LIMIT * work->size;
                work->passing = 2.0;
            } else {
                fail(machine, "too small");
                return 0;
            }
            work->passing = 1.0;
            return 1;
        }
        """)


def test_structures_have_the_lengths_and_comments_of_fields(tmp_path: Path) -> None:
    steps = source(tmp_path, "")
    assert "    Lanes values[ROOM(SIZE)];\n" in steps.header(lanes=True)
    assert "    double passing;\n" in steps.header(lanes=False)


FILLED = """

class PartTable(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int), ("place", ctypes.c_double * 3), ("values", ctypes.POINTER(ctypes.c_double))]

class WholeTable(ctypes.Structure):
    _fields_ = [("parts", ctypes.POINTER(PartTable)), ("first", PartTable), ("turns", ctypes.POINTER(ctypes.c_int))]


def shift(part: PartTable, begin: int, by: Real) -> None:
    values: Reals = tail(part.values, begin)
    moved: Reals = zeros(3)
    for k in range(begin, part.count):
        moved[k - begin] = values[k - begin] + by / float(part.count)
        values[k - begin] = moved[k - begin] + part.place[0]


def shift_all(whole: WholeTable, count: int) -> int:
    for k in range(count):
        part: PartTable = whole.parts[whole.turns[k]]
        shift(part, 1, 6.0)
    shift(whole.first, 0, 0.0)
    if not whole.parts:
        return 1
    return 0
"""


def test_structures_that_python_fills_are_the_same_numbers_in_both(tmp_path: Path) -> None:
    """Arrays of structures, structures inside, arrays of fixed and of any length, another name for the rest of one."""
    steps = source(tmp_path, FILLED)
    module: Any = sys.modules["steps_of_a_test"]

    def filled() -> tuple[Any, list[Any]]:
        values = [(ctypes.c_double * 3)(*(10.0 * row + k for k in range(3))) for row in range(3)]
        parts = (module.PartTable * 2)(*(module.PartTable(3, (0.5, 0.0, 0.0), each) for each in values[:2]))
        whole = module.WholeTable(parts, module.PartTable(2, (100.0, 0.0, 0.0), values[2]), (ctypes.c_int * 2)(1, 0))
        return whole, [values, parts]

    whole, kept = filled()
    assert module.shift_all(whole, 2) == 0
    expected = [[0.0, 3.5, 4.5], [10.0, 13.5, 14.5], [120.0, 121.0, 22.0]]
    assert [list(each) for each in kept[0]] == expected
    layouts = "struct Part { int count; double place[3]; double *values; };\n"
    layouts += "struct Whole { struct Part *parts; struct Part first; int *turns; };\n"
    export = "int run(struct Whole *whole, int count) { return shift_all(whole, count); }\n"
    (tmp_path / "steps.c").write_text(layouts + steps.code(lanes=False) + export)
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIC", "-shared", "steps.c", "-o"]
    subprocess.run([*command, "steps.so"], cwd=tmp_path, check=True)
    whole, kept = filled()
    assert ctypes.CDLL(str(tmp_path / "steps.so")).run(ctypes.byref(whole), 2) == 0
    assert [list(each) for each in kept[0]] == expected
