"""Tables of where calls find their numbers: C by tables is what NumPy computes, and what is regular is short."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from code_length import length_of_code
from numpy.typing import NDArray
from runtime_sources import RUNTIME

from mbsfmu.compiling.compiler import compile_library
from mbsfmu.native.traced_code import program_code
from mbsfmu.tracing.tape.recorded_program import Program, layout, program_of, repetitions
from mbsfmu.tracing.tape.recording import Recorder
from mbsfmu.tracing.workspace import RecordedFunction

HOST = """
#include <math.h>
#include <stddef.h>
#include <string.h>
#include "tables.h"
typedef struct {{ double *work, *x; }} Parts;
{code}
__declspec_export void run(double *work, double *x, double *result) {{
    Parts parts = {{work, x}};
    recorded(&parts, result);
}}
"""


def alternating(x: Any) -> Any:
    """A chain of three functions in turn, each of what the one before gave."""
    value, found = x[0], []
    for index, each in enumerate(x):
        value = [np.sin(value + each), value * each + 0.5 * each, np.cos(value) - each][index % 3]
        found.append(value)
    return np.stack(found)


def halved(x: Any) -> Any:
    """Sums of neighbours until one is left, and what came to each number on the way back, as disassembly gives it."""
    levels = [list(x)]
    while len(levels[-1]) > 1:
        last = levels[-1]
        levels.append([np.sin(one) + 0.3 * other for one, other in zip(last[::2], last[1::2], strict=True)])
    given = [levels[-1][0] * 0.1]
    for level in reversed(levels[:-1]):
        given = [np.cos(each) * given[index // 2] + 0.2 * given[-1 - index // 2] for index, each in enumerate(level)]
    return np.stack(given)


def shuffled(x: Any) -> Any:
    """Products of numbers that lie nowhere regularly, twice over."""
    random = np.random.default_rng(3)
    once = [x[i] * np.sin(x[j]) for i, j in random.permutation(len(x)).reshape(-1, 2)]
    order = random.permutation(len(once))
    return np.stack([once[i] * once[j] + x[k] for i, j, k in zip(order, np.roll(order, 3), order[::-1], strict=True)])


def program(function: Any, count: int) -> Program:
    recorder = Recorder()
    x = recorder.new(count)
    return program_of("recorded", recorder, {"x": x}, [function(x)])


def by_tables(recorded: Program, x: NDArray[np.float64]) -> NDArray[np.float64]:
    helpers: dict[str, str] = {}
    code = program_code(RecordedFunction(recorded, {"x": x}), helpers)
    exported = '__attribute__((visibility("default")))'
    text = HOST.format(code="\n".join([*helpers.values(), code])).replace("__declspec_export", exported)
    sources = {"main.c": text, "tables.h": RUNTIME["tables.h"].read_text("utf-8")}
    library = ctypes.CDLL(str(compile_library(sources, {"main.c": "-O1"}, None, portable=False)))
    work, result = np.zeros(recorded.schedule.size), np.zeros(recorded.results[0].size)
    library.run(*(each.ctypes.data_as(ctypes.c_void_p) for each in (work, x, result)))
    return result


@pytest.mark.parametrize(("function", "count"), [(alternating, 100), (halved, 64), (shuffled, 80)])
def test_c_by_tables_is_numpy(function: Any, count: int) -> None:
    x = np.random.default_rng(0).normal(size=count)
    np.testing.assert_allclose(by_tables(program(function, count), x), function(x), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("function", [alternating, halved])
def test_regular_tables_do_not_grow_as_what_is_called(function: Any) -> None:
    few, many = (length_of_code(RecordedFunction(program(function, n), {"x": np.zeros(n)})) for n in (64, 1024))
    assert many < 1.6 * few


def test_irregular_fields_are_listed_and_others_are_not() -> None:
    stretches = layout(program(shuffled, 800)).stretches
    assert len(stretches) < 40
    listed = sum(each.listed.size for stretch in stretches for each in stretch.calls)
    assert 1500 < listed < 2500  # two fields of 400 products, three of as many sums


def test_calls_of_a_layout_are_those_of_the_schedule() -> None:
    for function, count in ((alternating, 100), (halved, 64), (shuffled, 80)):
        recorded = program(function, count)
        found = layout(recorded)
        expected = {
            (loop.kernel, loop.first + recorded.kernels[loop.kernel].results * index): row.tolist()
            for loop in recorded.schedule.loops
            for index, row in enumerate(loop.arguments)
        }
        for stretch in found.stretches:
            for each in stretch.calls:
                fields = found.fields[each.kernel]
                for repetition in range(stretch.count):
                    at = each.begin + repetition * each.distance
                    bases = [*at[1:], *each.listed[repetition], 0]
                    places = [bases[k] + o for k, o in zip(fields.field, fields.offset, strict=True)]
                    assert places == expected.pop((each.kernel, int(at[0])))
        assert not expected


def test_rows_that_come_in_turn_are_repetitions() -> None:
    rows = np.array([[7, 7], *([row[0] + 10 * k, row[1] + k] for k in range(5) for row in ((0, 3), (4, 1), (5, 9)))])
    kinds = np.array([0, *([0, 1, 0] * 5)])
    found = [(each.begin, each.length, each.count) for each in repetitions(rows, kinds)]
    assert found == [(0, 1, 1), (1, 3, 5)]


def test_many_rows_that_come_in_turn_are_one_repetition() -> None:
    """As calls are that eliminate iteration matrices: many for each link."""
    period, count, random = 40, 5, np.random.default_rng(2)
    first, moved, kinds = random.integers(1000, size=(2, period, 3)), 7, random.integers(6, size=period)
    rows = np.concatenate([first[0] + moved * k * first[1] for k in range(count)])
    found = [(each.begin, each.length, each.count) for each in repetitions(rows, np.tile(kinds, count))]
    assert found == [(0, period, count)]
