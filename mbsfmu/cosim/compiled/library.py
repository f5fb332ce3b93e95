"""Compiled code of the master: structures that it shares with Python, and the library, cached on each machine.

Structures shared by compiled code and Python, generated into the C header.

A failed call is reported by its number; the caller that fills the structures assigns the numbers.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, Structure, c_bool, c_double, c_int, c_size_t, c_ssize_t, c_ubyte, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.identity import content_key
from mbsfmu.base.times import NEIGHBOURS
from mbsfmu.compiling import transpiler
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.compiler import NoCompilerError, compile_library, is_compiled, kept_library
from mbsfmu.compiling.kept import warn_once
from mbsfmu.compiling.transpiler import Source, structure_name

_Doubles = POINTER(c_double)
_Places = POINTER(c_ssize_t)
_Flags = POINTER(c_ubyte)

_ACCESS = "void *component, const uint32_t *references, size_t count, void *values"
_RATES = "void *component, const uint32_t *references, size_t count, const int *orders, void *values"
_SIGNATURES = {
    "Access": _ACCESS,
    "CountingAccess": f"{_ACCESS}, size_t value_count",
    "Rates": _RATES,
    "CountingRates": f"{_RATES}, size_t value_count",
    "GetState": "void *component, void **state",
    "SetState": "void *component, void *state",
    "MakeStep": "void *component, double time, double step, int keeps_no_state",
    "ReportingMakeStep": "void *component, double time, double step, bool keeps_no_state, bool *event, bool *ends, "
    "bool *early, double *reached",
}
"""Functions of FMUs: the plain ones as FMI 2.0 has them, those that count values and report on steps as FMI 3.0."""
_FUNCTIONS = {"function": "", "counting": "Counting", "reporting": "Reporting"}
"""Fields that are functions of FMUs, and how their kind begins; one of two is there, the other is NULL."""


_ELEMENTS = {np.dtype(np.float64): c_double, np.dtype(np.intp): c_ssize_t, np.dtype(np.uint8): c_ubyte}


def pointer_to(array: NDArray[Any]) -> Any:
    """Return a pointer to a contiguous array of numbers, places or flags, which has to be kept alive."""
    assert array.flags.c_contiguous
    return array.ctypes.data_as(POINTER(_ELEMENTS[array.dtype]))


class Clock(Structure):
    """Time of an instance: start of its last step in s, and number of steps."""

    _fields_: ClassVar = [("time", c_double), ("steps", c_ssize_t)]


class Access(Structure):
    """Function that gets or sets values."""

    _fields_: ClassVar = [("function", c_void_p), ("counting", c_void_p), ("number", c_int)]


class Rates(Structure):
    """Function that gets or sets first time derivatives."""

    _fields_: ClassVar = [("function", c_void_p), ("counting", c_void_p), ("number", c_int)]


class Report(Structure):
    """Report of an FMU on a step.

    Whether it was asked for one at all; the status of inputs that could not be set inside; whether an event has to be
    handled, it ends the run, it came back before the end; the time in s that it reached; and the time of its next
    event, which it must not be asked to go beyond.
    """

    _fields_: ClassVar = [
        ("asked", c_bool),
        ("trouble", c_int),
        ("event", c_bool),
        ("ends", c_bool),
        ("early", c_bool),
        ("reached", c_double),
        ("next_event", c_double),
    ]


class MakeStep(Structure):
    """Function that makes a step; with a report if the FMU gives one."""

    _fields_: ClassVar = [
        ("function", c_void_p),
        ("reporting", c_void_p),
        ("number", c_int),
        ("report", POINTER(Report)),
    ]


class GetState(Structure):
    """Function that saves a state."""

    _fields_: ClassVar = [("function", c_void_p), ("number", c_int)]


class SetState(Structure):
    """Function that restores a state."""

    _fields_: ClassVar = [("function", c_void_p), ("number", c_int)]


class SavedState(Structure):
    """State of an FMU at the start of an iterated step, and the time in s of its next event there."""

    _fields_: ClassVar = [
        ("get", GetState),
        ("set", SetState),
        ("state", POINTER(c_void_p)),
        ("next_event", c_double),
    ]


class VariableBlock(Structure):
    """Variables of one type of a port: the buffer has 32-bit numbers if `whole`, and is the port's if it `shares`.

    The place of each number of the buffer among the values of the port is negative for elements of arrays that it does
    not have.
    """

    _fields_: ClassVar = [
        ("get", Access),
        ("set", Access),
        ("references", POINTER(c_uint32)),
        ("reference_count", c_size_t),
        ("count", c_size_t),
        ("places", _Places),
        ("buffer", c_void_p),
        ("whole", c_int),
        ("shares", c_int),
    ]


class Ramp(Structure):
    """Inputs that are linear over an FMU's step; the group has its own buffer for them."""

    _fields_: ClassVar = [
        ("component", c_void_p),
        ("group", VariableBlock),
        ("values", _Doubles),
        ("slopes", _Doubles),
        ("clock", POINTER(Clock)),
        ("report", POINTER(Report)),
    ]


class PortTable(Structure):
    """A port; derivatives by time are for those of Real variables alone, with the place of each value among them."""

    _fields_: ClassVar = [
        ("component", c_void_p),
        ("groups", POINTER(VariableBlock)),
        ("group_count", c_size_t),
        ("count", c_int),
        ("values", _Doubles),
        ("slopes", _Doubles),
        ("rates", _Doubles),
        ("rate_count", c_int),
        ("rate_places", _Places),
        ("references", POINTER(c_uint32)),
        ("reference_count", c_size_t),
        ("orders", POINTER(c_int)),
        ("set_rates", Rates),
        ("get_rates", Rates),
        ("number", c_int),  # among `ports`
    ]


class MemberTable(Structure):
    """A member; `portion` is room for what the inputs run along in a part of a step."""

    _fields_: ClassVar = [
        ("make_step", MakeStep),
        ("clock", POINTER(Clock)),
        ("inputs", PortTable),
        ("outputs", PortTable),
        ("sources", _Places),
        ("factors", _Doubles),
        ("offsets", _Doubles),
        ("taken", _Doubles),
        ("portion", _Doubles),
        ("entries", c_int),
        ("first_entry", c_int),
        ("first_output", c_int),
        ("converts", c_int),
        ("ramps", c_int),
        ("shares", c_int),
        ("rate", c_int),
        ("part", c_int),  # which of its own steps comes next
        ("drives_later", c_int),
        ("saved", SavedState),
        ("number", c_int),  # among `units`
    ]


class RateSource(Structure):
    """Outputs that give their derivative by time, and their columns."""

    _fields_: ClassVar = [("port", PortTable), ("columns", _Places)]


class Side(Structure):
    """A side of a bond: coefficients of what it takes, so far apart, and the column of what it gives."""

    _fields_: ClassVar = [("taken", _Doubles), ("stride", c_int), ("output", c_int)]


class Bond(Structure):
    """A bond, with its energies in J until now."""

    _fields_: ClassVar = [("giver", Side), ("taker", Side), ("residual", c_double), ("exchanged", c_double)]


class InverseTable(Structure):
    """Inverse of a Jacobian with its updates: `InterfaceInverse` and `LearnedInverse` say what the fields are.

    `covariance` is null where nothing is learned beyond updates.
    """

    _fields_: ClassVar = [
        ("columns", _Doubles),
        ("moves", _Doubles),
        ("weights", _Doubles),
        ("room", _Doubles),
        ("count", c_int),
        ("updates", c_int),
        ("most", c_int),
        ("is_known", c_int),
        ("least", c_double),
        ("worth", c_double),
        ("covariance", _Doubles),
        ("drift", c_double),
        ("noise", c_double),
    ]


class HandleTable(Structure):
    """Handle of a joint: `BoundHandle` and `LoadedHandle` say what the fields are.

    The motion is read by the port; `member` is the number of the FMU among those that joints join.
    """

    _fields_: ClassVar = [
        ("port", PortTable),
        ("motion_places", _Places),
        ("motion", _Doubles),
        ("columns", _Places),
        ("load_places", _Places),
        ("load_count", c_int),
        ("widening", c_double),
        ("member", c_int),
    ]


class JointTable(Structure):
    """Joint with its two handles: its kind as its place in `JOINT_KINDS`, and the place of its first constraint."""

    _fields_: ClassVar = [
        ("handles", POINTER(HandleTable)),
        ("kind", c_int),
        ("first", c_int),
        ("count", c_int),
        ("reference", _Doubles),
        # where it is: as `joint_step.find_pose` has found it
        ("apart", c_double * 3),  # from the first handle to the second one
        ("inner", c_double * 9),  # rotation matrices of both bodies
        ("outer", c_double * 9),
        ("axis", c_double * 3),  # of a revolute joint, as the second body carries it
        ("normals", c_double * 6),  # two vectors perpendicular to the axis, as the first body carries them
    ]


class ClosingTable(Structure):
    """Closing of joints: `JointClosing` says what the fields are.

    The FMUs of joints are members that follow each other, from the place `first_member` on.
    """

    _fields_: ClassVar = [
        ("joints", POINTER(JointTable)),
        ("joint_count", c_int),
        ("count", c_int),
        ("first_member", c_int),
        ("member_count", c_int),
        ("integrates", c_int),  # whether one integrator takes them over the step, which is for Python
        # iteration
        ("inverse", InverseTable),
        ("multipliers", _Doubles),
        ("residual", _Doubles),
        ("last", _Doubles),
        ("change", _Doubles),
        ("limits", _Doubles),
        ("maximum", c_int),
        ("slow", c_double),
        ("most_turned", c_double),
        # prediction
        ("lines", _Doubles),
        ("remembered", c_int),
        ("known", c_int),
        ("length", c_double),
        ("directions", _Doubles),
        ("rank", c_int),
        # rows of the constraints
        ("at_begin", _Doubles),
        ("at_end", _Doubles),
        ("following", _Doubles),
        ("before", _Doubles),
        ("rows", _Doubles),
        ("rows_length", c_double),
        ("rows_known", c_int),
        # differences
        ("jacobian", _Doubles),
        ("perturbations", _Doubles),
        # where it stands
        ("is_begun", c_int),
        ("knows_motions", c_int),  # whether those of the start of the step were read at the end of the last one
        ("is_open", c_int),  # whether no FMU has left the start of the step
        ("is_under_way", c_int),  # whether a trial is
        ("is_compared", c_int),  # whether the last trial is still to be judged
        ("is_fresh", c_int),  # whether the Jacobian was made in this step, for the last trial or an earlier one
        ("follows", c_int),
        ("learns", c_int),  # whether the inverse is updated after the next trial
        ("made", c_int),  # corrections of this step
        ("next", c_int),  # member
        ("size", c_double),
        ("size_before", c_double),
        ("rollbacks", c_int),
    ]


class IterationTable(Structure):
    """Iteration of a step: `Iterated` and its classes say what the fields are.

    The inverse has no columns in fixed-point iterations.
    """

    _fields_: ClassVar = [
        # what is iterated
        ("columns", _Places),
        ("count", c_int),
        ("tolerance", c_double),
        ("maximum", c_int),
        ("trial", _Doubles),
        ("residual", _Doubles),
        ("last", _Doubles),
        ("scales", _Doubles),
        ("magnitudes", _Doubles),
        # Newton's iteration
        ("inverse", InverseTable),
        ("change", _Doubles),
        ("is_fresh", c_int),
        ("slow", c_double),
        ("size", c_double),
        # fixed-point iteration
        ("adapts", c_int),
        ("relaxation", c_double),
        ("kept_relaxation", c_double),
        ("least_relaxation", c_double),
        ("most_relaxation", c_double),
        # where it stands
        ("made", c_int),  # corrections of this step
        ("is_compared", c_int),  # whether the last sweep is still to be judged
        ("is_renewed", c_int),  # whether the Jacobian was made for it
        ("found", c_double),  # largest residual after it, as a share of its scale
    ]


class ExchangeTable(Structure):
    """All tables; members in the order of their steps.

    Attributes
    ----------
    ports, units
        What the numbers of ports and members mean where the step is made in Python, which asks them.
    slot
        Name under which the states of members are saved in the step.
    is_compiled
        Whether compiled code makes the step.
    advance_apart, correct_outputs, integrate_joined
        What `members.py` asks for by these names.
    """

    ports: Sequence[Any]
    units: Sequence[Any]
    slot: str
    is_compiled: bool
    advance_apart: Callable[[int, int], None]
    correct_outputs: Callable[[], None]
    integrate_joined: Callable[[], None]

    _fields_: ClassVar = [
        # sizes
        ("rows", c_int),
        ("output_rows", c_int),  # coefficients that follow from outputs and signals; others are those of wrenches
        ("outputs", c_int),
        ("columns", c_int),
        ("known_rows", c_int),
        ("points", c_int),
        ("entry_count", c_int),
        # what steps, and how
        ("members", POINTER(MemberTable)),
        ("member_count", c_int),
        ("rate_sources", POINTER(RateSource)),
        ("rate_count", c_int),
        ("bonds", POINTER(Bond)),
        ("bond_count", c_int),
        ("in_turn", c_int),
        ("takes_rates", c_int),
        ("corrects", c_int),
        ("goes_back", c_int),  # whether FMUs may be brought back to before a step
        ("sweeps_again", c_int),  # how often a step of which too little is known is made again from saved states
        ("again", c_int),  # how often the present one is
        ("apart", c_int),  # whether members step at the same time, which is for Python
        ("shown", c_int),  # whether outputs with direct feed-through are corrected, which is for Python
        ("iteration", POINTER(IterationTable)),  # NULL where steps are made once
        ("closing", POINTER(ClosingTable)),  # NULL without joints
        ("reactions", _Doubles),
        ("reaction_count", c_int),
        ("patience", c_double),
        # values
        ("values", _Doubles),
        ("before", _Doubles),
        ("polynomials", _Doubles),
        ("known", _Doubles),
        ("missed", _Doubles),
        ("has_missed", c_int),
        ("held", _Flags),
        ("adapts", c_int),  # whether other outputs are held too where lines miss them
        ("unknown", _Flags),
        ("corrected", _Flags),
        # the steps that are to be made
        ("extrapolation", _Doubles),
        ("interpolation", _Doubles),
        ("lengths", c_double * 2),  # of the last steps in s, the last one first, of which so many are known
        ("length_count", c_int),
        ("weighed", c_double * 3),  # lengths that the weights hold for, that of the step first, so many of them
        ("weighed_count", c_int),
        ("step", c_double),
        ("times", _Doubles),
        ("first", c_int),
        ("signals_after", _Doubles),
        ("signals_before", _Doubles),
        ("recorded", _Doubles),
        ("first_row", c_size_t),
        # where it stands
        ("made", c_int),
        ("sweeps", c_size_t),
        ("rollbacks", c_int),
        ("under_way", c_int),
        ("saved_at", c_double),  # time in s of the saved states
        ("earliest", c_double),  # time in s of the earliest states that are saved beside these; infinity without
        ("turn", c_int),
        # what went wrong
        ("refused", c_int),
        ("status", c_int),
        ("unit_step", c_double),
        # the floating-point environment, and by their numbers the calls that have left another one
        ("environment", c_uint32),
        ("disturbing", _Flags),
    ]


STRAIGHT, FORGETTING = 0.25, 0.5
"""Of adaptive extrapolation: the sum of squares that lines may have missed over that of holding, and the weight of a
step over that of the next one. A line through two points of an oscillation misses more than a half from ωh = 0.5 on,
where it adds energy to what is hardly damped; holding an input and handing on the end does not."""
SPHERICAL, REVOLUTE, PRISMATIC, FIXED = range(4)
"""Kinds of joints, as `JOINT_KINDS` has them."""
POSITION, VELOCITY, QUATERNION, ANGULAR_VELOCITY, WRENCH = 0, 3, 6, 10, 6
"""Places in the array of a handle's motion, and the length of a wrench (force, moment)."""
MADE, REFUSED, UNFINISHED, NOT_FINITE, UNFIT, NO_JACOBIAN, NO_CONVERGENCE = range(7)
"""What compiled code comes back with: steps were made; a call of an FMU went wrong; a step of an FMU did, or was not
asked for, and may go on; an output is not finite; a whole number of an FMU is set beyond those that it may take; an
iteration needs a Jacobian, and goes on with it; an iteration does not converge."""

_CONSTANTS = (
    "STRAIGHT", "FORGETTING", "SPHERICAL", "REVOLUTE", "PRISMATIC", "FIXED", "POSITION", "VELOCITY", "QUATERNION",
    "ANGULAR_VELOCITY", "WRENCH", "MADE", "REFUSED", "UNFINISHED", "NOT_FINITE", "UNFIT", "NO_JACOBIAN",
    "NO_CONVERGENCE",
)  # fmt: skip
_STRUCTURES = (
    Clock, Access, Rates, Report, MakeStep, GetState, SetState, SavedState, VariableBlock, Ramp, PortTable, MemberTable,
    RateSource, Side, Bond, InverseTable, HandleTable, JointTable, ClosingTable, IterationTable, ExchangeTable,
)  # fmt: skip
_NAMES: dict[Any, str] = {
    c_bool: "bool", c_double: "double", c_int: "int", c_size_t: "size_t", c_ssize_t: "ptrdiff_t",
    c_ubyte: "unsigned char", c_uint32: "uint32_t", c_void_p: "void *",
}  # fmt: skip


def header() -> str:
    """Return the header of the C code."""
    return "\n".join([*_lines(), ""])


def total_size() -> int:
    """Return the total size of all structures, by which incompatible code is recognised."""
    return sum(ctypes.sizeof(each) for each in _STRUCTURES)


def _lines() -> Iterator[str]:
    yield "/* Written by mbsfmu/cosim/compiled/library.py. */"
    yield "#ifndef LAYOUT_H"
    yield "#define LAYOUT_H"
    yield "#include <stdbool.h>"
    yield "#include <stddef.h>"
    yield "#include <stdint.h>"
    for name in _CONSTANTS:
        yield f"#define {name} {globals()[name]!r}"
    yield "#ifndef INSIDE_FMU"  # the constants of units, which an FMU of coupled FMUs has, have it too
    yield f"#define NEIGHBOURS {NEIGHBOURS}"
    yield "#endif"
    for name, signature in _SIGNATURES.items():
        yield f"typedef int {name}Function({signature});"
    for each in _STRUCTURES:
        yield f"struct {structure_name(each)} {{"
        for name, kind, *_ in each._fields_:
            begin = _FUNCTIONS.get(name)
            declared = _declared(kind) if begin is None else f"{begin}{each.__name__}Function *"
            length = getattr(kind, "_length_", None)
            yield f"    {declared}{name}{'' if length is None else f'[{length}]'};"
        yield "};"
    yield f"#define STRUCTURE_SIZES ({' + '.join(f'sizeof(struct {structure_name(each)})' for each in _STRUCTURES)})"
    yield "#endif"


def _declared(kind: Any) -> str:
    """Return the start of a C field declaration of a type."""
    if hasattr(kind, "contents"):
        return f"{_declared(kind._type_)}*"
    if hasattr(kind, "_length_"):
        return _declared(kind._type_)
    name = _NAMES.get(kind) or f"struct {structure_name(kind)}"
    return name if name.endswith("*") else f"{name} "


_MAIN = "exchange.c"
_FILES = (_MAIN, "ports.h", "environment.h")
_STEPS = ("member_step", "interface_inverse", "joint_step", "joint_differences", "coupled_step")
"""Modules in the language of steps, of which C files of these names are made."""


def exchange_function() -> Callable[..., int] | None:
    """Return the function of communication steps, or None without a compiler and cached code.

    A failure never stops a run: it is reported once, and Python makes the steps.
    """
    if not is_compiled():
        return None
    try:
        return compiled_exchange()
    except NoCompilerError:
        return None
    except (CompilerError, OSError) as error:
        warn_once(f"{error}; the master exchanges values in Python")
        return None


def setting_function() -> int | None:
    """Return the address of the function that sets inputs within steps of FMUs, or None as for `exchange_function`."""
    if exchange_function() is None:
        return None
    return ctypes.cast(compiled_library().mbsfmu_set_within, ctypes.c_void_p).value


def compiled_exchange() -> Callable[..., int]:
    """Return the function of communication steps; errors as for `compiled_library`."""
    return compiled_library().mbsfmu_exchange


def exchange_sources() -> dict[str, str]:
    """Return the C files by name."""
    sources = {name: Path(__file__).with_name(name).read_text(encoding="utf-8") for name in _FILES}
    places = {(__name__, name): name for name in _CONSTANTS}
    for name in _STEPS:
        source = Source(importlib.import_module(f"{__package__}.{name}"), places)
        sources[f"{name}.h"] = source.documentation_in_c() + source.code(lanes=False)
    return {**sources, "layout.h": header()}


def _made_from() -> Iterator[str]:
    """Yield the paths of the files that compiled code is made from."""
    yield from (str(Path(__file__).with_name(name)) for name in _FILES)
    yield from (str(Path(__file__).with_name(f"{name}.py")) for name in _STEPS)
    yield str(transpiler.__file__)


@cache
def compiled_library() -> ctypes.CDLL:
    """Return the compiled code, loaded once in a process.

    Raises
    ------
    NoCompilerError
        When there is no compiler, and nothing is kept.
    CompilerError
        When the compiler does not do it, or what it made has other structures than Python.
    OSError
        When the library cannot be loaded.
    """
    key = content_key(header(), *(Path(file).read_text(encoding="utf-8") for file in _made_from()))
    path = kept_library(key) or compile_library(
        exchange_sources(), {_MAIN: "-O2"}, None, portable=False, key=key
    )  # where it is kept, no C is made of the steps
    library = ctypes.CDLL(str(path))
    table = ctypes.POINTER(ExchangeTable)
    for name, arguments in (
        ("exchange", (table, ctypes.c_int)),
        ("differences", (table,)),
        ("extrapolate", (table,)),
        ("interpolate", (table, _Doubles)),
        ("append", (table,)),
    ):
        getattr(library, f"mbsfmu_{name}").argtypes = arguments
    library.mbsfmu_exchange_size.restype = ctypes.c_size_t
    if library.mbsfmu_exchange_size() != total_size():
        raise CompilerError(f"{path} lays out structures in another way than Python")
    return library
