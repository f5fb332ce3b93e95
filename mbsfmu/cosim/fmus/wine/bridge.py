"""FMUs for Windows on Linux under Wine: functions of FMI 2.0 that cross, and the C code of both sides.

Functions of FMI 2.0 that cross between Linux and Windows, and the C code of both sides that is made from them.

Both sides are made from one list, so that what one writes the other reads. Integers and floating-point numbers of the
FMI have the same layout on both; sizes and pointers cross with 64 bits, no type has the length of a `long`.
"""

from __future__ import annotations

import logging
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from mbsfmu.base.errors import InputError
from mbsfmu.compiling.compiler import NoCompilerError, compile_library

SIGNATURES = (
    "SetDebugLogging(bool on, size n, in string categories[n])",
    "SetupExperiment(bool tolerant, real tolerance, real start, bool stops, real stop)",
    "EnterInitializationMode()",
    "ExitInitializationMode()",
    "Terminate()",
    "Reset()",
    "GetReal(in reference names[n], size n, out real values[n])",
    "GetInteger(in reference names[n], size n, out int values[n])",
    "GetBoolean(in reference names[n], size n, out int values[n])",
    "GetString(in reference names[n], size n, out string values[n])",
    "SetReal(in reference names[n], size n, in real values[n])",
    "SetInteger(in reference names[n], size n, in int values[n])",
    "SetBoolean(in reference names[n], size n, in int values[n])",
    "SetString(in reference names[n], size n, in string values[n])",
    "GetFMUstate(both state state[1])",
    "SetFMUstate(state state)",
    "FreeFMUstate(both state state[1])",
    "SerializedFMUstateSize(state state, out size size[1])",
    "SerializeFMUstate(state state, out byte bytes[n], size n)",
    "DeSerializeFMUstate(in byte bytes[n], size n, both state state[1])",
    "GetDirectionalDerivative(in reference unknowns[m], size m, in reference knowns[n], size n, "
    "in real seeds[n], out real values[m])",
    "SetRealInputDerivatives(in reference names[n], size n, in int orders[n], in real values[n])",
    "GetRealOutputDerivatives(in reference names[n], size n, in int orders[n], out real values[n])",
    "DoStep(real time, real step, bool final)",
    "CancelStep()",
    "GetStatus(int kind, out int value[1])",
    "GetRealStatus(int kind, out real value[1])",
    "GetIntegerStatus(int kind, out int value[1])",
    "GetBooleanStatus(int kind, out int value[1])",
    "GetStringStatus(int kind, out string value[1])",
    "EnterEventMode()",
    "NewDiscreteStates(both events events[1])",
    "EnterContinuousTimeMode()",
    "CompletedIntegratorStep(bool final, out bool enters[1], out bool ends[1])",
    "SetTime(real time)",
    "SetContinuousStates(in real states[n], size n)",
    "GetDerivatives(out real rates[n], size n)",
    "GetEventIndicators(out real indicators[n], size n)",
    "GetContinuousStates(out real states[n], size n)",
    "GetNominalsOfContinuousStates(out real nominals[n], size n)",
)
"""Functions that take an instance and return a status [FMI 2.0.4, sections 2.1, 3.2, 4.2], by their names without
`fmi2`, the instance left out: what is given by value, what is read (`in`), written (`out`) or both."""

_C = {
    "bool": "fmi2Boolean",
    "int": "int",
    "real": "fmi2Real",
    "size": "size_t",
    "reference": "fmi2ValueReference",
    "string": "fmi2String",
    "state": "fmi2FMUstate",
    "byte": "fmi2Byte",
    "events": "fmi2EventInfo",
}


@dataclass(frozen=True)
class _Argument:
    """An argument of a function: its name, its type, how many there are, and which way they cross."""

    name: str
    type: str
    count: str | None
    read: bool
    written: bool

    @property
    def c(self) -> str:
        """Its declaration in C."""
        if self.count is None:
            return f"{_C[self.type]} {self.name}"
        return f"{'' if self.written else 'const '}{_C[self.type]} *{self.name}"

    def call(self, verb: str) -> str:
        """Return the call that packs, unpacks, or makes room for what it points to."""
        kind = "strings" if self.type == "string" else "array"
        size = "" if self.type == "string" else f", sizeof *{self.name}"
        return f"{verb}_{kind}(u, {self.name}, {self.count}{size});"


_SIGNATURE = re.compile(r"(\w+)\((.*)\)")
_ARGUMENT = re.compile(r"(?:(in|out|both) )?(\w+) (\w+)(?:\[(\w+)\])?")


def _parsed(signature: str) -> tuple[str, list[_Argument]]:
    whole = _SIGNATURE.fullmatch(signature)
    assert whole is not None, signature
    found = [_ARGUMENT.fullmatch(each) for each in whole[2].split(", ") if each]
    return whole[1], [
        _Argument(each[3], each[2], each[4], each[1] != "out", each[1] in ("out", "both"))
        for each in found
        if each is not None
    ]


def near_functions() -> str:
    """Return the C code of the functions on this side: each asks the other side."""
    return "\n".join(_near(number, *_parsed(each)) for number, each in enumerate(SIGNATURES))


def far_functions() -> str:
    """Return the C code of the other side: what it looks for in the FMU's library, and how it answers each request."""
    parsed = [_parsed(each) for each in SIGNATURES]
    types = "\n".join(f"typedef fmi2Status (*{name}Type)({_declared(arguments)});" for name, arguments in parsed)
    names = ", ".join(f'"fmi2{name}"' for name, _ in parsed)
    answers = "\n".join(_far(number, *each) for number, each in enumerate(parsed))
    return (
        f"{types}\nstatic const char *const NAMES[] = {{{names}}};\n"
        "static fmi2Status answer(unit *u, int number, void (*function)(void), fmi2Component instance) {\n"
        f"    switch (number) {{\n{answers}\n    default: return fmi2Fatal;\n    }}\n}}\n"
    )


def _declared(arguments: Sequence[_Argument]) -> str:
    return ", ".join(["fmi2Component", *(each.c for each in arguments)])


def _near(number: int, name: str, arguments: list[_Argument]) -> str:
    values = [each for each in arguments if each.count is None]
    read = [each for each in arguments if each.count is not None and each.read]
    written = [each for each in arguments if each.written]
    lines = [
        "unit *u = instance;",
        f"begin(u, {number});",
        *(f"pack_value(u, &{each.name}, sizeof {each.name});" for each in values),
        *(each.call("pack") for each in read),
        "fmi2Status status = ask(u);",
        *(each.call("unpack") for each in written),
        "return status;",
    ]
    declared = _declared(arguments).replace("fmi2Component", "fmi2Component instance", 1)
    return f"EXPORTED fmi2Status fmi2{name}({declared}) {{\n    {_joined(lines)}\n}}"


def _far(number: int, name: str, arguments: list[_Argument]) -> str:
    values = [each for each in arguments if each.count is None]
    arrays = [each for each in arguments if each.count is not None]
    lines = [
        *(f"{each.c}; unpack_value(u, &{each.name}, sizeof {each.name});" for each in values),
        *(_taken(each) for each in arrays),
        f"const fmi2Status status = (({name}Type)function)({', '.join(['instance', *(a.name for a in arguments)])});",
        *(each.call("pack") for each in arrays if each.written),
        "return status;",
    ]
    return f"    case {number}: {{\n        {_joined(lines, 8)}\n    }}"


def _taken(argument: _Argument) -> str:
    """Return the declaration of an array on the other side: what came of it, or room for what is written."""
    verb = "taken" if argument.read else "room"
    kind = "strings" if argument.type == "string" else "array"
    size = "" if argument.type == "string" else f", sizeof({_C[argument.type]})"
    return f"{_C[argument.type]} *{argument.name} = {verb}_{kind}(u, {argument.count}{size});"


def _joined(lines: Sequence[str], indent: int = 4) -> str:
    return ("\n" + " " * indent).join(lines)


WINDOWS = "win64"
"""The platform that Wine runs, as FMI 2.0 calls it."""
_LOGGER = logging.getLogger(__name__)
_WINE = "wine"
_PROGRAM = "under_wine.exe"


def why_not_bridged(version: str, platforms: set[str]) -> str | None:
    """Return why an FMU that has no library for this machine cannot be run under Wine.

    Returns
    -------
    str or None
        How the sentence goes on that says what platforms it has libraries for; None where it can be run.
    """
    if sys.platform != "linux" or not platforms & {WINDOWS, "win32", "x86_64-windows", "x86-windows"}:
        return ""
    if version != "2.0" or WINDOWS not in platforms:
        return f"; of FMUs for Windows, those of FMI 2.0 with a library for {WINDOWS} run here, under Wine"
    if shutil.which(_WINE) is None:
        return (
            "; with Wine (Debian: apt install wine64) and the extra 'cross' (pip install 'mbsfmu[cross]') it runs here"
        )
    return None


def bridge(folder: Path, identifier: str, platform: str, called: str) -> None:
    """Put the library that stands for that of Windows into an unpacked FMU, and the program that it starts.

    Parameters
    ----------
    folder
        What the FMU is unpacked into.
    identifier
        How its library is named, without suffix.
    platform
        What FMI calls this platform.
    called
        What messages call the FMU.

    Raises
    ------
    InputError
        When there is no compiler for one of them.
    CompilerError
        When a compiler does not do it.
    """
    texts = files("mbsfmu.native.runtime.fmi2"), files("mbsfmu.cosim.fmus.wine")
    common = {"fmi2.h": texts[0].joinpath("fmi2.h").read_text("utf-8")}
    common["messages.h"] = texts[1].joinpath("messages.h").read_text("utf-8")
    near, far = (texts[1].joinpath(name).read_text("utf-8") for name in ("near.c", "far.c"))
    try:
        library = compile_library(
            {**common, "near.c": near, "near_functions.h": near_functions()}, {"near.c": "-O1"}, None, portable=False
        )
        program = compile_library(
            {**common, "far.c": far, "far_functions.h": far_functions()}, {"far.c": "-O1"}, WINDOWS, program=True
        )
    except NoCompilerError as error:
        raise InputError(f"{called} is for Windows; to run it under Wine, {error}") from None
    _LOGGER.info("%s is for Windows; it runs under Wine", called)
    place = folder / "binaries" / platform
    place.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(library, place / f"{identifier}.so")
    shutil.copyfile(program, place / _PROGRAM)
