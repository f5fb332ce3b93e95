"""Our kernel loops beside CasADi's `MX` calls of `SX` kernels: rates, outputs and derivatives of trees, over the size.

Run: python benchmarks/divide_and_conquer/casadi_calls.py [--quick]

Both compute ẏ of `dca`, the outputs, and the derivative of both along one direction, with all parameters of the bodies
as arguments. The other way is written by hand as briefly as it can be: the articulated-body algorithm
[Featherstone2008, table 7.1] with three kernels for each axis of hinges, poses and energies as outputs, derivatives by
CasADi's forward mode. Accelerations and their derivatives are compared. Times are least ones of interleaved rounds;
*made* is processor time of model, tracing and C code, *compiler* that of the compiler with -O2.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from flow import Floats, Flow
from machines import TREES, Machine
from rates import QUICK, Timed, interleaved, point, pointer

from mbsfmu.compiling.compiler import compile_library
from mbsfmu.native.c_sources import StepSources
from mbsfmu.native.traced_code import program_code
from mbsfmu.systems.system import Code
from mbsfmu.tracing.workspace import RecordedFunction

SIZES = (3,) if QUICK else (15, 50, 200)
KINDS = ("spatial",) if QUICK else ("planar", "spatial", "tree")
WHAT = ("rates", "outputs", "derivatives")
NUMBERS = 10
"""Parameters of a body: mass, three moments of inertia, centre, place of the next joint."""
GRAVITY = 9.81


@dataclass(frozen=True)
class Made:
    """A way to compute the functions.

    Attributes
    ----------
    timed
        The functions by name.
    rates, change
        Second half of ẏ, and of its derivative along ones in z and w.
    made, compiler
        Processor time in s.
    code
        Length of the C code in kB.
    """

    timed: dict[str, Timed]
    rates: Floats
    change: Floats
    made: float
    compiler: float
    code: float


def clocked(function: Callable[[], object]) -> tuple[float, object]:
    """Return the processor time of a function in s, and what it gives."""
    begin = time.process_time()
    given = function()
    return time.process_time() - begin, given


def compiled(sources: dict[str, str], folder: Path) -> tuple[float, Path]:
    """Compile `timed.c` for this machine; return the processor time of compilers in s too."""
    os.environ["MBSFMU_CACHE"] = str(folder)  # nothing is compiled before
    begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    library = compile_library(sources, {"timed.c": "-O2"}, None, portable=False)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin, library


def timed_library(
    path: Path, parameters: Floats, values: Floats, rates: Floats
) -> tuple[dict[str, Timed], list[Floats]]:
    """Return what repeats each of `WHAT` in a library, and its accelerations and their changes at (z, w)."""
    library = ctypes.CDLL(str(path))
    z, w = np.split(values, 2)

    def run(what: int) -> Timed:
        def repeat(repetitions: int) -> None:
            library.timed(pointer(parameters), pointer(z), pointer(w), what, repetitions, pointer(rates))

        return repeat

    timed = {name: run(index) for index, name in enumerate(WHAT)}
    found = []
    for name in ("rates", "derivatives"):
        timed[name](1)
        found.append(rates[len(z) : 2 * len(z)].copy())
    return timed, found


def _defined(text: str) -> str:
    """Return name and opening bracket of the first function of a text."""
    found = re.search(r"\b\w+\((?=const|double)", text)
    return text if found is None else found[0]


# -- ours ---------------------------------------------------------------------------------------------------

_OURS = """
#include "steps.c"
static Instance instance;
static double found[%(results_count)d][%(size)d];
%(change)s
EXPORT void timed(const double *parameters, const double *z, const double *w, int what, int repetitions,
                  double *rates) {
    Parts *parts = &instance.parts;
    connect_memory(&instance);
    COPY(parts->parameters, parameters, PARAMETERS);
    COPY(parts->references, instance.unturned, REFERENCES);
    COPY(parts->coordinates, z, COORDINATES);
    COPY(parts->velocities, w, COORDINATES);
    for (int k = 0; k < COORDINATES; k++) parts->d_coordinates[k] = parts->d_velocities[k] = 1.0;
    for (int k = 0; k < repetitions; k++) {
        parts->coordinates[0] = z[0] + 1e-12 * k;
        if (what == 0) first_order_rates(parts, rates);
        if (what == 1) outputs(parts, found[0], found[1]);
        if (what == 2) %(name)s(parts, %(results)s);
    }
    if (what == 2) COPY(rates, found[0], 2 * COORDINATES);
}
"""


def ours(machine: Machine, folder: Path) -> tuple[Made, Floats]:
    """Return our kernel loops, and (z, w) where they are timed."""

    def made() -> tuple[Flow, dict[str, str]]:
        flow = Flow(machine.model(), "dca", code=Code.LOOPS)
        change = flow.formulation.change
        assert isinstance(change, RecordedFunction)
        sources = StepSources.of(flow.simulation).code()
        helpers: dict[str, str] = {}
        code = program_code(change, helpers)
        own = [text for text in helpers.values() if _defined(text) not in sources["model_steps.c"]]
        sizes = [each.size for each in change()]
        results = ", ".join(f"found[{index}]" for index in range(len(sizes)))
        size = max(*sizes, *(each.size for each in flow.functions.outputs()))
        texts = {"change": "\n".join([*own, code]), "name": change.name, "results": results}
        # The memory of the kernels is that of the steps; derivatives need more.
        name = change.program.memory_name.upper()
        sources["model.h"] = re.sub(
            rf"#define {name} (\d+)",
            lambda found: f"#define {name} {max(int(found[1]), change.program.schedule.size)}",
            sources["model.h"],
        )
        return flow, sources | {"timed.c": _OURS % {**texts, "size": size, "results_count": max(2, len(sizes))}}

    seconds, (flow, sources) = clocked(made)  # pyright: ignore[reportGeneralTypeIssues]
    compiler, path = compiled(sources, folder)
    values = point(flow)
    rates = np.zeros(len(values) + len(flow.functions.integrals))
    timed, found = timed_library(path, flow.functions.parameters.copy(), values, rates)
    code = sum(len(sources[name]) for name in ("model_steps.c", "timed.c")) / 1e3
    return Made(timed, *found, seconds, compiler, code), values


# -- CasADi's calls -----------------------------------------------------------------------------------------


def _moved(turn: ca.SX, place: ca.SX) -> ca.SX:
    """Return the transformation of motions from the parent's frame to the child's."""
    return ca.blockcat([[turn, ca.SX(3, 3)], [-turn @ ca.skew(place), turn]])


def _inertia(numbers: ca.SX) -> ca.SX:
    mass, own, centre = numbers[0], ca.diag(numbers[1:4]), ca.skew(numbers[4:7])
    return ca.blockcat([[own - mass * centre @ centre, mass * centre], [-mass * centre, mass * ca.SX.eye(3)]])


def kernels(axis: int) -> dict[str, ca.Function]:
    """Return the kernels of a hinge about Z, Y or X."""
    place, numbers = ca.SX.sym("place", 3), ca.SX.sym("numbers", NUMBERS)
    q, rate, before = ca.SX.sym("q"), ca.SX.sym("rate"), ca.SX.sym("before", 6)
    unit = ca.SX.eye(3)[:, 2 - axis]
    cross = ca.skew(unit)
    turn = (ca.SX.eye(3) + ca.sin(q) * cross + (1 - ca.cos(q)) * cross @ cross).T
    along = ca.vertcat(unit, ca.SX(3, 1))
    velocity = _moved(turn, place) @ before + along * rate
    angular, linear = velocity[:3], velocity[3:]
    crossed = ca.blockcat([[ca.skew(angular), ca.SX(3, 3)], [ca.skew(linear), ca.skew(angular)]])
    momentum = _inertia(numbers) @ velocity
    bias, force = crossed @ along * rate, -crossed.T @ momentum
    outward = ca.Function(f"outward_{axis}", [q, rate, before, place, numbers], [turn, velocity, bias, force])

    turned, inertia = ca.SX.sym("turn", 3, 3), ca.SX.sym("inertia", 6, 6)
    forced, biased = ca.SX.sym("force", 6), ca.SX.sym("bias", 6)
    whole = _inertia(numbers) + inertia
    seen = whole @ along
    pivot, push = along.T @ seen, -along.T @ forced
    left = whole - seen @ seen.T / pivot
    onward = forced + left @ biased + seen * (push / pivot)
    motion = _moved(turned, place)
    inward = ca.Function(
        f"inward_{axis}",
        [turned, place, numbers, inertia, forced, biased],
        [seen, pivot, push, motion.T @ left @ motion, motion.T @ onward],
    )
    seen_, pivot_, push_ = ca.SX.sym("seen", 6), ca.SX.sym("pivot"), ca.SX.sym("push")
    at = motion @ before + biased
    second = (push_ - seen_.T @ at) / pivot_
    again = ca.Function(
        f"again_{axis}", [turned, place, before, biased, seen_, pivot_, push_], [second, at + along * second]
    )
    frame, origin, moving = ca.SX.sym("frame", 3, 3), ca.SX.sym("origin", 3), ca.SX.sym("velocity", 6)
    own_frame, own_origin = frame @ turned.T, origin + frame @ place
    kinetic = 0.5 * moving.T @ _inertia(numbers) @ moving
    height = (own_origin + own_frame @ numbers[4:7])[1]
    told = ca.vertcat(own_origin, own_frame @ moving[3:], kinetic, numbers[0] * GRAVITY * height)
    output = ca.Function(
        f"output_{axis}", [turned, place, numbers, frame, origin, moving], [own_frame, own_origin, told]
    )
    return {"outward": outward, "inward": inward, "again": again, "output": output}


def calls(machine: Machine) -> dict[str, ca.Function]:
    """Return rates, outputs and their derivative along a direction as calls of kernels."""
    count, axes = len(machine.parents), {axis: kernels(axis) for axis in set(machine.joints)}
    parameters, z, w = ca.MX.sym("parameters", NUMBERS, count), ca.MX.sym("z", count), ca.MX.sym("w", count)
    numbers, turns, speeds = ca.horzsplit(parameters), ca.vertsplit(z), ca.vertsplit(w)
    places = [ca.MX(3, 1) if parent < 0 else numbers[parent][7:10] for parent in machine.parents]
    own = [axes[axis] for axis in machine.joints]
    still, ground = ca.MX(6, 1), ca.MX.eye(3)
    moved, inertias, forces = [], [ca.MX(6, 6)] * count, []
    for k, parent in enumerate(machine.parents):
        before = still if parent < 0 else moved[parent][1]
        moved.append(own[k]["outward"](turns[k], speeds[k], before, places[k], numbers[k]))
        forces.append(moved[k][3])
    inward: list[tuple[ca.MX, ...]] = [()] * count
    for k in reversed(range(count)):
        inward[k] = own[k]["inward"](moved[k][0], places[k], numbers[k], inertias[k], forces[k], moved[k][2])
        if (parent := machine.parents[k]) >= 0:
            inertias[parent] = inertias[parent] + inward[k][3]
            forces[parent] = forces[parent] + inward[k][4]
    base = ca.MX(ca.DM([0, 0, 0, 0, GRAVITY, 0]))
    seconds, accelerations = [], []
    for k, parent in enumerate(machine.parents):
        before = base if parent < 0 else accelerations[parent]
        second, own_acceleration = own[k]["again"](moved[k][0], places[k], before, moved[k][2], *inward[k][:3])
        seconds.append(second)
        accelerations.append(own_acceleration)
    frames: list[tuple[ca.MX, ca.MX]] = []
    told = []
    for k, parent in enumerate(machine.parents):
        before = (ground, ca.MX(3, 1)) if parent < 0 else frames[parent]
        *frame, values = own[k]["output"](moved[k][0], places[k], numbers[k], *before, moved[k][1])
        frames.append((frame[0], frame[1]))
        told.append(values)
    rates, outputs = ca.vertcat(w, *seconds), ca.vertcat(*told)
    arguments = [parameters, z, w]
    both, names = ca.Function("both", arguments, [rates, outputs]), ("d_z", "d_w")
    directions = [ca.MX.sym(name, count) for name in names]
    still_parameters = ca.MX(NUMBERS, count)
    changed = both.forward(1)(*arguments, ca.MX(2 * count, 1), ca.MX(outputs.numel(), 1), still_parameters, *directions)
    return {
        "rates": ca.Function("tree_rates", arguments, [rates]),
        "outputs": ca.Function("tree_outputs", arguments, [outputs]),
        "derivatives": ca.Function("tree_derivatives", [*arguments, *directions], changed),
    }


_CALLS = """
static double work[%(work)d], found[2][%(size)d], ones[%(size)d];
static casadi_int whole[%(whole)d];
__attribute__((visibility("default")))
void timed(const double *parameters, double *z, const double *w, int what, int repetitions, double *rates) {
    const double *arguments[%(arguments)d] = {parameters, z, w, ones, ones};
    double *results[%(results)d] = {what == 1 ? found[0] : rates, found[1]};
    double begin = z[0];
    for (int k = 0; k < %(size)d; k++) ones[k] = 1.0;
    for (int k = 0; k < repetitions; k++) {
        z[0] = begin + 1e-12 * k;
        if (what == 0) tree_rates(arguments, results, whole, work, 0);
        if (what == 1) tree_outputs(arguments, results, whole, work, 0);
        if (what == 2) tree_derivatives(arguments, results, whole, work, 0);
    }
    z[0] = begin;
}
"""


def theirs(machine: Machine, values: Floats, folder: Path) -> Made:
    """Return the calls of kernels, at a point of ours."""

    def made() -> tuple[dict[str, ca.Function], str]:
        functions = calls(machine)
        generator = ca.CodeGenerator("calls.c", {"with_header": False})
        for function in functions.values():
            generator.add(function)
        return functions, generator.dump()

    seconds, (functions, code) = clocked(made)  # pyright: ignore[reportGeneralTypeIssues]
    sizes = {
        "work": max(each.sz_w() for each in functions.values()) + 1,
        "whole": max(each.sz_iw() for each in functions.values()) + 1,
        "arguments": max(each.sz_arg() for each in functions.values()) + 5,
        "results": max(each.sz_res() for each in functions.values()) + 2,
        "size": max(each.numel_out(k) for each in functions.values() for k in range(each.n_out())) + 1,
    }
    compiler, path = compiled({"timed.c": code + _CALLS % sizes}, folder)
    count = len(machine.parents)
    one = [1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0]
    timed, found = timed_library(path, np.tile(one, count), values.copy(), np.zeros(2 * count))
    return Made(timed, *found, seconds, compiler, len(code) / 1e3)


def main() -> None:
    """Print a row for each machine."""
    head = [f"{name} [µs]" for name in WHAT] + ["made [s]", "compiler [s]", "code [kB]"]
    print(f"| machine | {' | '.join(f'{each}: ours, calls' for each in head)} |\n|{' --- |' * (1 + len(head))}")
    with tempfile.TemporaryDirectory() as name:
        for kind in KINDS:
            for size in SIZES:
                machine = TREES[kind](size)
                own, values = ours(machine, Path(name))
                other = theirs(machine, values, Path(name))
                for found, expected in ((other.rates, own.rates), (other.change, own.change)):
                    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-8 * np.max(np.abs(expected)))
                rounds, repetitions = (2, 2) if QUICK else (40, max(2000 // size, 10))
                every = {f"{each} {way}": made.timed[each] for each in WHAT for way, made in (("o", own), ("c", other))}
                times = {key: least for key, (_, least) in interleaved(every, rounds, repetitions).items()}
                cells = [f"{times[f'{each} o']:.2f}, {times[f'{each} c']:.2f}" for each in WHAT]
                cells += [f"{own.made:.2f}, {other.made:.2f}", f"{own.compiler:.1f}, {other.compiler:.1f}"]
                print(f"| {machine.name} | {' | '.join([*cells, f'{own.code:.0f}, {other.code:.0f}'])} |", flush=True)


if __name__ == "__main__":
    main()
