"""What is measured of machines of one size: code, memory and times of our right-hand side and of other engines."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from engines import Engine, articulated_body, compiled_articulated_body, compiled_forward, explicit_step, forward
from flow import Flow
from ladders import constrained, implicit_step, moving_ladder
from machines import TREES, Machine, Point
from rates import QUICK, Timed, reached, repeated

from mbsfmu.models import ladder
from mbsfmu.system_model.coupled_model import CoupledModel
from mbsfmu.systems.system import Code
from mbsfmu.tracing.workspace import RecordedFunction

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from code_length import length_of_code

PINOCCHIO, MUJOCO, EXUDYN, LOOPS, STRAIGHT = "Pinocchio", "MuJoCo", "Exudyn", "loops", "straight"
UNROLLED_UP_TO, PLANAR_UP_TO = (4, 4) if QUICK else (16, 64)
"""Bodies up to which unrolled code is measured too, of planar chains more: beyond, compilers take long."""
MOST = {PINOCCHIO: 512, MUJOCO: 512, EXUDYN: 256}
"""Coordinates up to which engines are measured: Pinocchio's memory grows as the cube, times of the others do."""
UNROLLED_LADDERS_UP_TO = 8
MOST_LOOPS = {PINOCCHIO: 64, EXUDYN: 512}
ROUNDS, ROUND = (2, 1e-4) if QUICK else (20, 4e-3)
"""How many rounds there are, and how long each goes on with one function in s at least."""
SLOW, SLOW_ROUNDS = 3e-3, 3
"""Functions that take longer in s have so many rounds of their own, of one evaluation each."""


@dataclass(frozen=True)
class Row:
    """What is measured of a machine.

    Attributes
    ----------
    size
        Number of bodies, or of loops.
    operations, kernels, code
        Of our right-hand side in loops: their numbers, and the length of the code in kB.
    made
        Processor time in s that the model, the recording and the code take.
    memory
        In kB, by name.
    times
        Of one right-hand side in µs, by name.
    deviations
        From our accelerations, as a share of the largest one, by name of an engine.
    """

    size: int
    operations: int
    kernels: int
    code: int
    made: float
    memory: Mapping[str, float]
    times: Mapping[str, float]
    deviations: Mapping[str, float]


class Libraries:
    """Compiled loops around engines that are there, by name.

    Parameters
    ----------
    folder
        Where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._makers: dict[str, Callable[[Point], Engine]] = {}
        if _is_there("pinocchio") and not QUICK:
            library = compiled_articulated_body(folder)
            self._makers[PINOCCHIO] = lambda point: articulated_body(library, point)
        if _is_there("mujoco"):
            loop = compiled_forward(folder)
            self._makers[MUJOCO] = lambda point: forward(loop, point)
        if _is_there("exudyn"):
            self._makers[EXUDYN] = explicit_step

    def engines(self, point: Point) -> dict[str, Engine]:
        """Return those that are for machines as large."""
        size = len(point.coordinates)
        return {name: maker(point) for name, maker in self._makers.items() if size <= MOST[name]}


def _is_there(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def measured_tree(machine: Machine, libraries: Libraries) -> Row:
    """Measure a tree."""
    model = machine.model()
    flow, told = _made(model)
    engines = libraries.engines(reached(machine, flow))
    straight = len(machine.parents) <= (PLANAR_UP_TO if set(machine.joints) == {0} else UNROLLED_UP_TO)
    return _measured(len(machine.parents), flow, told, engines, straight=straight)


def measured_ladder(loops: int) -> Row:
    """Measure a ladder."""
    flow, told = _made(ladder(loops))
    point, engines = moving_ladder(flow, loops), {}
    if _is_there("pinocchio") and loops <= MOST_LOOPS[PINOCCHIO]:
        engines[PINOCCHIO] = constrained(point)
    if _is_there("exudyn") and loops <= MOST_LOOPS[EXUDYN]:
        engines[EXUDYN] = implicit_step(point)
    return _measured(loops, flow, told, engines, straight=loops <= UNROLLED_LADDERS_UP_TO)


def _made(model: CoupledModel) -> tuple[Flow, dict[str, Any]]:
    """Return a flow in loops, and what its code and making it come to."""
    begin = time.process_time()
    flow = Flow(model, "dca", code=Code.LOOPS, compiled=False)
    function = flow.formulation.explicit
    assert isinstance(function, RecordedFunction)
    schedule = function.program.schedule
    code = length_of_code(function) // 1000
    made = time.process_time() - begin
    kernels = len({loop.kernel for loop in schedule.loops})
    memory = {LOOPS: schedule.size * 8 / 1000}
    return flow, {
        "operations": function.operations, "kernels": kernels, "code": code, "made": made, "memory": memory,
    }  # fmt: skip


def _measured(size: int, flow: Flow, told: dict[str, Any], engines: Mapping[str, Engine], *, straight: bool) -> Row:
    functions = {LOOPS: repeated(flow)}
    if straight:
        functions[STRAIGHT] = repeated(Flow(flow.model, "dca", code=Code.STRAIGHT, compiled=False))
    functions |= {name: engine.run for name, engine in engines.items() if name != EXUDYN}
    times = least_times(functions)
    if EXUDYN in engines:
        times[EXUDYN] = least_of_steps(engines[EXUDYN].run)
    memory = told.pop("memory") | {name: engine.memory / 1000 for name, engine in engines.items() if engine.memory}
    deviations = {name: engine.deviation for name, engine in engines.items()}
    return Row(size, memory=memory, times=times, deviations=deviations, **told)


def taken(function: Timed, repetitions: int) -> float:
    """Return the time in s that one of several evaluations takes."""
    begin = time.perf_counter()
    function(repetitions)
    return (time.perf_counter() - begin) / repetitions


def least_times(functions: Mapping[str, Timed]) -> dict[str, float]:
    """Return the least time of one evaluation in µs of each function."""
    guesses = {name: min(taken(function, 1) for _ in range(2)) for name, function in functions.items()}
    counts = {name: max(1, round(ROUND / guess)) for name, guess in guesses.items()}
    found = {name: [guess] for name, guess in guesses.items()}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            if guesses[name] < SLOW:
                found[name].append(taken(function, counts[name]))
    for name, function in functions.items():
        if guesses[name] >= SLOW:
            found[name] += [taken(function, 1) for _ in range(SLOW_ROUNDS)]
    return {name: 1e6 * min(each) for name, each in found.items()}


def least_of_steps(steps: Timed) -> float:
    """Return the least time of a step in µs: the difference of many and few, without what beginning a run takes."""
    few = 2
    many = few + max(2, round(10.0 * ROUND / taken(steps, 20)))
    times = [[taken(steps, count) * count for count in (few, many)] for _ in range(SLOW_ROUNDS)]
    less, more = np.min(times, axis=0)
    return 1e6 * float(more - less) / (many - few)


MEASURES: dict[str, Callable[[int, Libraries], Row]] = {
    **{kind: lambda size, libraries, made=made: measured_tree(made(size), libraries) for kind, made in TREES.items()},
    "ladders": lambda size, _: measured_ladder(size),
}
"""What measures a machine of a size, by kind."""
