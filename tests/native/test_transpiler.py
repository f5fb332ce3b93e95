"""What the language of steps does not have is refused by its line; what it has means the same in C."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from mbsfmu.compiling.transpiler import Source, UntranslatableError

HEAD = """
from __future__ import annotations
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
