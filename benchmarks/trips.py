"""The trip of a number from a user's hand to machine code: the functions that it passes through until the run ends.

Run: python benchmarks/trips.py [--list]

The four-bar is made from its data, simulated for one step, and a number in it is followed: a coefficient of viscous
friction that stands in the data, a relative tolerance that is an option, and a pressure that is set by name. A call of
a function of these packages counts when an argument carries the number, or what it returns: as it is, in an array, in a
list, a tuple or a mapping, or as a field of a data class or of validated data. `self` and the local variables of an
outer function do not count, as nothing is handed over there.

functions: different ones that were given the number or returned it
files: those that these functions stand in
moves: how often, in the order of time, the file changed between two such calls or returns
calls: all of these calls and returns

The last three columns count the number itself, alone or in an array, without the mappings and models that have it
inside: most functions of the first columns are given a whole model, of which they look at something else.

With `--list` the functions are printed file by file in the order of their first call.
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from pydantic import BaseModel

import hydraulics
import mbsfmu

FOLDERS = tuple(str(Path(package.__file__ or "").parent) + os.sep for package in (mbsfmu, hydraulics))
DEEP = 6
"""How many containers may stand in one another: a model has its systems, these components, these their numbers."""
LIST = "--list" in sys.argv
STEP = 1e-3


@dataclass
class Trip:
    """Where a number has been.

    Attributes
    ----------
    number
        One that nothing else has.
    functions
        Those that had it, as file and name, with how often.
    events
        Files in the order of time.
    depth
        How many containers may stand in one another around the number.
    """

    number: float
    functions: dict[tuple[str, str], int] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    depth: int = DEEP

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        """Look at a call or a return."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(FOLDERS):
            return
        if code.co_name.startswith("<"):
            return
        given = _arguments(frame, code) if event == "call" else [value]
        if any(self.carries(each, self.depth) for each in given):
            place = code.co_filename, code.co_qualname
            self.functions[place] = self.functions.get(place, 0) + 1
            self.events.append(code.co_filename)

    def carries(self, value: Any, deep: int) -> bool:
        """Tell whether a value is the number, or has it inside."""
        if isinstance(value, (float, np.floating)):
            return float(value) == self.number
        if isinstance(value, np.ndarray):
            return value.dtype.kind == "f" and bool((value == self.number).any())
        if deep == 0 or isinstance(value, (str, bytes, int, type)) or callable(value):
            return False
        if isinstance(value, Mapping):
            return any(self.carries(each, deep - 1) for each in value.values())
        if isinstance(value, (list, tuple, set, frozenset)):
            return any(self.carries(each, deep - 1) for each in value)
        if isinstance(value, BaseModel):
            return any(self.carries(each, deep - 1) for each in {**vars(value), **(value.model_extra or {})}.values())
        if is_dataclass(value):
            return any(self.carries(getattr(value, each.name, None), deep - 1) for each in fields(value))
        return False

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Functions, files, moves, calls."""
        moves = sum(one != other for one, other in zip(self.events, self.events[1:], strict=False))
        return len(self.functions), len({file for file, _ in self.functions}), moves, len(self.events)


def _arguments(frame: FrameType, code: CodeType) -> list[Any]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return [frame.f_locals[name] for name in code.co_varnames[:count] if name not in ("self", "cls")]


def follow(number: float, made: Callable[[float], object], depth: int = DEEP) -> Trip:
    """Return where a number has been when a function of it has returned."""
    trip = Trip(number, depth=depth)
    sys.setprofile(trip)
    try:
        made(number)
    finally:
        sys.setprofile(None)
    return trip


def friction(number: float) -> None:
    """Give the cylinder's seals a coefficient of viscous friction in the data, in N s/m."""
    data = mbsfmu.models.four_bar().to_dict()
    cylinder = next(each for each in data["systems"]["circuit"]["components"] if each["type"] == "cylinder")
    cylinder["viscous_friction"] = number
    mbsfmu.CoupledModel.from_dict(data).simulation(step=STEP).run(stop=STEP)


def tolerance(number: float) -> None:
    """Ask for a relative tolerance."""
    mbsfmu.models.four_bar().simulation(relative_tolerance=number, step=STEP).run(stop=STEP)


def pressure(number: float) -> None:
    """Set the pressure of the pump in Pa."""
    simulation = mbsfmu.models.four_bar().simulation(step=STEP)
    simulation.set("circuit.pump.pressure", number)
    simulation.run(stop=STEP)


TRIPS: dict[str, tuple[float, Callable[[float], object]]] = {
    "coefficient of friction in the data": (196123.0, friction),
    "relative tolerance": (1.2345e-6, tolerance),
    "pressure, by `set`": (7.6123e6, pressure),
}


def main() -> None:
    """Print a row for each number."""
    print("| number | value | functions | files | moves | calls | itself: functions | files | moves |")
    print("|" + " --- |" * 9)
    with tempfile.TemporaryDirectory() as folder:
        for name, (number, made) in TRIPS.items():
            trips = []
            for depth in (DEEP, 0):
                os.environ["MBSFMU_CACHE"] = f"{folder}/{name}-{depth}"  # as at the first run: nothing is known
                made(1.01 * number)  # what is loaded at first use is no part of it
                trips.append(follow(number, made, depth))
            trip, itself = trips
            counts = *trip.counts, *itself.counts[:3]
            print(f"| {name} | {number:g} | {' | '.join(map(str, counts))} |", flush=True)
            if LIST:
                for (file, function), times in trip.functions.items():
                    print(f"    {Path(file).relative_to(Path(FOLDERS[0]).parent)}: {function} {times}")


if __name__ == "__main__":
    main()
