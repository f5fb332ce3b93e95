"""Threads that share kernel loops: results of one thread to the last bit, whatever else happens."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fmpy.fmi1
import numpy as np
import pytest
from importer import Importer
from lxml import etree
from numpy.typing import NDArray
from runtime_sources import RUNTIME

import mbsfmu
import mbsfmu.native
from mbsfmu import InputError
from mbsfmu.compiling.compiler import compile_library
from mbsfmu.native.program_code import program_code
from mbsfmu.systems.system import Code
from mbsfmu.tracing.kernels import in_section, kernel
from mbsfmu.tracing.tape.memory_layout import layout
from mbsfmu.tracing.tape.recorded_program import Program, program_of
from mbsfmu.tracing.tape.recording import Recorder
from mbsfmu.tracing.workspace import RecordedFunction

LIBRARIES = ("tables.h", "shares.h", "pool.h", "pool.c", "visibility.h", "prefix.h")
SIZE = 1500
MODEL = """
#ifndef MODEL
#define MODEL
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define THREADS 2
#define THREADS_MOST 64
#endif
"""
HOST = """
#include "model.h"
#include "tables.h"
#include "shares.h"
typedef struct {{ double *work, *x; const double *threads; struct Team **team; }} Parts;
{code}
EXPORT void run(double *work, double *x, double *result, double threads, struct Team **team) {{
    Parts parts = {{work, x, &threads, team}};
    recorded(&parts, result);
}}
EXPORT void leave(struct Team **team) {{ disband(*team); }}
"""
MAIN = """
int main(void) {{
    static double work[{work}], x[{size}], alone[{size}], result[{size}];
    struct Team *team = NULL;
    for (int k = 0; k < {size}; k++) x[k] = sin(k);
    run(work, x, alone, 1.0, &team);
    for (int k = 0; k < 30; k++) {{
        run(work, x, result, k % 5 == 4 ? 1.0 : 4.0, &team);
        if (memcmp(alone, result, sizeof result)) return 2;
    }}
    leave(&team);
    return 0;
}}
"""


@kernel
def _mixed(one: Any, other: Any, third: Any) -> Any:
    return np.sin(one) * other + np.cos(other * third) / (2.0 + np.sin(third)) + third


def wide(x: Any) -> Any:
    """Many sums over neighbours, some of which depend on others, with a chain between them."""
    value = x
    for _ in range(3):
        value = np.stack([_mixed(value[k], value[k - 1], x[k]) for k in range(len(x))])
    chain = [value[0]]
    for each in value[1:]:
        chain.append(np.cos(chain[-1]) + each)
    return np.stack([_mixed(one, other, one) for one, other in zip(chain, value[::-1], strict=True)])


def in_chains(x: Any) -> Any:
    """Three chains, each a section, which take what the ends of all of them have come to."""
    ends: list[Any] = []
    chains: list[list[Any]] = []
    for section in range(3):
        with in_section(x, section):
            chain = [x[0]]
            for each in x[section::3]:
                chain.append(_mixed(chain[-1], each, x[1]))
        chains.append(chain[1:])
        ends.append(chain[-1])
    with in_section(x, -1):
        joined = _mixed(*ends)
    found: list[Any] = []
    for section, chain in enumerate(chains):
        with in_section(x, section):
            last = joined
            for each in reversed(chain):
                last = _mixed(last, each, joined)
                found.append(last)
    return np.stack(found)


FUNCTIONS = {"batches": wide, "sections": in_chains}


@pytest.fixture(scope="module", params=FUNCTIONS)
def function(request: pytest.FixtureRequest) -> Any:
    return FUNCTIONS[request.param]


@pytest.fixture(scope="module")
def recorded(function: Any) -> Program:
    recorder = Recorder(sections=3)
    x = recorder.new(SIZE)
    return program_of("recorded", recorder, {"x": x}, [function(x)])


@pytest.fixture(scope="module")
def sources(recorded: Program) -> dict[str, str]:
    helpers: dict[str, str] = {}
    code = program_code(RecordedFunction(recorded, {"x": np.zeros(SIZE)}), helpers, shared=True)
    texts = {name: RUNTIME[name].read_text("utf-8") for name in LIBRARIES}
    return texts | {"model.h": MODEL, "main.c": HOST.format(code="\n".join([*helpers.values(), code]))}


class Shared:
    """The compiled function, with a team of its own."""

    def __init__(self, library: ctypes.CDLL, recorded: Program) -> None:
        self._library = library
        self._work = np.zeros(recorded.schedule.size)
        self._team = ctypes.c_void_p(None)

    def __call__(self, x: NDArray[np.float64], threads: int) -> NDArray[np.float64]:
        result = np.zeros(SIZE)
        arrays = (each.ctypes.data_as(ctypes.c_void_p) for each in (self._work, x, result))
        self._library.run(*arrays, ctypes.c_double(threads), ctypes.byref(self._team))
        return result

    def leave(self) -> None:
        self._library.leave(ctypes.byref(self._team))
        self._team.value = None


@pytest.fixture
def shared(sources: dict[str, str], recorded: Program) -> Iterator[Shared]:
    library = compile_library(sources, {"main.c": "-O1", "pool.c": "-O1"}, None, portable=False)
    function = Shared(ctypes.CDLL(str(library)), recorded)
    yield function
    function.leave()


def test_phases_are_shared_where_calls_are_independent(recorded: Program, function: Any) -> None:
    found = layout(recorded)
    assert sum(phase.shared for phase in found.phases) >= (3 if function is wide else 2)
    made: dict[int, tuple[int, int]] = {}
    for number, phase in enumerate(found.phases):
        own = np.repeat(np.arange(len(phase.sections)), phase.sections).tolist() or [0] * len(phase.stretches)
        for stretch, section in zip(phase.stretches, own, strict=True):
            for each in stretch.calls:
                fields, results = found.fields[each.kernel], recorded.kernels[each.kernel].results
                for repetition in range(stretch.count):
                    at = each.begin + repetition * each.distance
                    bases = [*at[1:], *each.listed[repetition], 0]
                    taken = [bases[k] + o for k, o in zip(fields.field, fields.offset, strict=True)]
                    makers = [made.get(int(place), (-1, 0)) for place in taken]
                    in_turn = not phase.shared or len(phase.sections) > 1
                    assert all(maker[0] < number or (in_turn and maker == (number, section)) for maker in makers)
                    made |= dict.fromkeys(range(int(at[0]), int(at[0]) + results), (number, section))


@pytest.mark.parametrize("threads", [2, 3, 64])
def test_results_are_those_of_one_thread_to_the_last_bit(shared: Shared, function: Any, threads: int) -> None:
    x = np.random.default_rng(threads).normal(size=SIZE)
    alone = shared(x, 1)
    np.testing.assert_allclose(alone, function(x), rtol=1e-10)
    for _ in range(20):
        assert shared(x, threads).tobytes() == alone.tobytes()


def test_threads_come_and_go(shared: Shared) -> None:
    def tasks() -> int:
        return len(os.listdir("/proc/self/task"))

    if not Path("/proc/self/task").is_dir() or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors of Linux")
    x, before = np.ones(SIZE), tasks()
    shared(x, 1)
    assert tasks() == before
    shared(x, 64)
    assert before < tasks() < before + len(os.sched_getaffinity(0))  # never more than there are processors
    shared(x, 1)
    assert tasks() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_threads_of_its_own(shared: Shared) -> None:
    x = np.linspace(-1.0, 1.0, SIZE)
    expected = shared(x, 2)
    child = os.fork()
    if not child:
        same = shared(x, 2).tobytes() == expected.tobytes()
        shared.leave()
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert shared(x, 2).tobytes() == expected.tobytes()


@pytest.mark.skipif(sys.platform != "linux", reason="the sanitizer is there on Linux")
def test_nothing_is_written_while_others_read_it(sources: dict[str, str], recorded: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        main = sources["main.c"] + MAIN.format(work=recorded.schedule.size, size=SIZE)
        for name, text in (sources | {"main.c": main}).items():
            (Path(folder) / name).write_text(text, "utf-8")
        call = [
            "gcc",
            "-std=c99",
            "-g",
            "-O1",
            "-fsanitize=thread",
            "main.c",
            "pool.c",
            "-o",
            "host",
            "-lm",
            "-lpthread",
        ]
        built = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
        if built.returncode:
            pytest.skip("there is no compiler with a sanitizer of threads")
        ran = subprocess.run(["./host"], cwd=folder, capture_output=True, text=True, check=False)
        if "unexpected memory mapping" in ran.stderr:
            pytest.skip("the sanitizer does not run here")
        assert ran.returncode == 0, ran.stderr[-2000:]


# -- units ------------------------------------------------------------------------------------------------------------

OPTIONS: dict[str, Any] = {"formulation": "dca", "solver": "rk45", "code": Code.LOOPS, "unit_threads": 2}


def test_units_have_a_parameter_that_changes_nothing(tmp_path: Path) -> None:
    path = mbsfmu.export(mbsfmu.models.pendulum(66), tmp_path, layout="monolithic", **OPTIONS)[0]
    unit = Importer(Path(path), tmp_path / "unpacked")
    variables = etree.parse(str(tmp_path / "unpacked" / "modelDescription.xml")).findall(".//ScalarVariable")
    (described,) = (each for each in variables if each.get("name") == "solver.threads")
    assert (described.get("causality"), described.get("variability")) == ("parameter", "fixed")
    reached = []
    for threads in (1.0, 2.0, 64.0):
        slave = unit.running(**{"solver.threads": threads})
        for step in range(3):
            slave.doStep(0.01 * step, 0.01)
        reached.append([unit.get(slave, name) for name in unit.reference if name != "solver.threads"])
        with pytest.raises(fmpy.fmi1.FMICallException):
            unit.set(slave, "solver.threads", 3.0)
        slave.freeInstance()
    slave = unit.instance()
    for refused in (0.0, 1.5, 65.0):
        with pytest.raises(fmpy.fmi1.FMICallException):
            unit.set(slave, "solver.threads", refused)
    assert reached[0] == reached[1] == reached[2]


def test_runs_in_process_are_those_of_one_thread() -> None:
    simulation = mbsfmu.models.pendulum(66).simulation(**OPTIONS)
    runs = []
    for threads in (1, 2):
        simulation.reset()
        simulation.set("solver.threads", threads)
        runs.append(simulation.run(stop=0.02))
    assert all(np.array_equal(runs[0][name], runs[1][name]) for name in runs[0])
    with pytest.raises(InputError, match="must be"):
        simulation.set("solver.threads", 65)


def test_threads_without_loops_are_refused() -> None:
    with pytest.raises(
        InputError, match="the code of four-bar is unrolled, the quicker one of 3 coordinates where none"
    ):
        mbsfmu.models.built_in("four-bar").simulation(formulation="dca", unit_threads=2)
    with pytest.raises(InputError, match="the code of four-bar is unrolled, as was chosen"):
        mbsfmu.models.built_in("four-bar").simulation(formulation="dca", unit_threads=2, code="straight")
    with pytest.raises(InputError, match="must be 1 to 64"):
        mbsfmu.models.pendulum(2).simulation(formulation="dca", unit_threads=65)
