"""Calls a Python unit at random, many of them wrong: run in a process of its own, which a crash ends.

Usage: random_calls.py FMU FOLDER SEED CALLS. Prints how many calls of each kind had which status.
"""

from __future__ import annotations

import ctypes
import math
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from importer import Importer

OK, DISCARD, ERROR, FATAL = 0, 2, 3, 4
STEP = 1e-3
SETTABLE = ("input", "parameter")
VALUES = (0.0, 1.0, -1.0, 1e-3, 1e300, -1e300, math.inf, -math.inf, math.nan, 5e-324)


class Caller:
    """An instance that is called at random, and anew after what the standard lets nothing follow."""

    def __init__(self, importer: Importer, seed: int) -> None:
        self.importer = importer
        self.random = random.Random(seed)
        self.wrong = self.random.choice((0.0, 0.02, 0.3))
        self.references = list(importer.reference.values())
        given = [variable for variable in importer.description.modelVariables if variable.causality in SETTABLE]
        self.settable = {variable.valueReference: variable.variability for variable in given}
        self.counts: Counter[tuple[str, int]] = Counter()
        self._begin()

    def _begin(self) -> None:
        self.component = self.importer.instance()
        self.states: list[tuple[ctypes.c_void_p, tuple[float, bool, bool]]] = []
        self.time, self.running, self.initializing = 0.0, False, False

    # -- what is given --------------------------------------------------------------------------------------

    def _vector(self, kind: type, draw: Callable[[], object], count: int) -> object:
        return (kind * count)(*(draw() for _ in range(count)))

    def _chance(self) -> bool:
        return self.random.random() < self.wrong

    def _reference(self) -> int:
        if self._chance():
            return self.random.choice([len(self.references), 10**6, 2**31 - 1, 2**31, 2**32 - 1])
        return self.random.choice(self.references)

    def _settable(self) -> int:
        if self._chance():
            return self._reference()
        free = [each for each, variability in self.settable.items() if not self.running or variability != "fixed"]
        return self.random.choice(free)

    def _value(self) -> float:
        return self.random.choice(VALUES) if self._chance() else self.random.uniform(0.5, 2.0)

    # -- calls ----------------------------------------------------------------------------------------------

    def call(self) -> None:
        """Make one call and check what it returns."""
        names = [name for name in dir(self) if name.startswith("do_")]
        name = self.random.choice(names if self.random.random() < 0.5 else ["do_step", "do_get_real", "do_set_real"])
        del self.importer.messages[:]
        status = getattr(self, name)()
        self.counts[name, status] += 1
        told = [message for each, message in self.importer.messages if each >= ERROR]
        assert status != ERROR, (name, told)
        assert status != FATAL or name == "do_exit", (name, told)
        assert status == OK or told, name
        if status == FATAL:
            self._begin()

    def _call(self, name: str, *arguments: object) -> int:
        function = getattr(self.component.dll, f"fmi2{name}")
        return function(ctypes.c_void_p(self.component.component), *arguments)

    def _values(self, name: str, kind: type, draw: Callable[[], object], refer: Callable[[], int]) -> tuple[int, list]:
        count = self.random.choice((0, 1, 1, 2, 5))
        values = self._vector(kind, draw, count)
        status = self._call(name, self._vector(ctypes.c_uint, refer, count), ctypes.c_size_t(count), values)
        return status, list(values)

    def do_get_real(self) -> int:
        status, values = self._values("GetReal", ctypes.c_double, lambda: math.nan, self._reference)
        assert self.importer.messages or all(map(math.isfinite, values)), values
        return status

    def do_set_real(self) -> int:
        return self._values("SetReal", ctypes.c_double, self._value, self._settable)[0]

    def do_other_type(self) -> int:
        if not self._chance():
            return OK
        access, kind = self.random.choice(("Get", "Set")), self.random.choice(("Integer", "Boolean", "String"))
        of_c, value = (ctypes.c_char_p, b"text") if kind == "String" else (ctypes.c_int, 1)
        return self._values(f"{access}{kind}", of_c, lambda: value, self._reference)[0]

    def do_setup(self) -> int:
        if (self.running or self.initializing) and not self._chance():
            return OK
        defined, start = self.random.choice((0, 1)), self._value() if self._chance() else 0.0
        arguments = (1, ctypes.c_double(self._value()), ctypes.c_double(start))
        status = self._call("SetupExperiment", *arguments, defined, ctypes.c_double(1e3 * self._value()))
        self.time = start if not self.importer.messages else self.time
        return status

    def do_enter(self) -> int:
        if self.running and not self._chance():
            return OK
        status = self._call("EnterInitializationMode")
        self.initializing = self.initializing or not self.importer.messages
        return status

    def do_exit(self) -> int:
        if not self.initializing and not self._chance():
            return OK
        status = self._call("ExitInitializationMode")
        if not self.importer.messages:
            self.running, self.initializing = True, False
        return status

    def do_step(self) -> int:
        if not self.running and not self._chance():
            return OK
        time, step = (self._value(), self._value()) if self._chance() else (self.time, STEP)
        status = self._call("DoStep", ctypes.c_double(time), ctypes.c_double(step), 1)
        if status == OK:
            assert abs(time - self.time) < STEP
            self.time = time + step
        return status

    def do_save(self) -> int:
        state = ctypes.c_void_p(None)
        status = self._call("GetFMUstate", ctypes.byref(state))
        self.states.append((state, (self.time, self.running, self.initializing)))
        return status

    def do_restore(self) -> int:
        if not self.states:
            return OK
        state, there = self.random.choice(self.states)
        status = self._call("SetFMUstate", state)
        if not self.importer.messages:
            self.time, self.running, self.initializing = there
        return status

    def do_copy(self) -> int:
        """Serialize a state, damage the bytes now and then, and make a state of them again."""
        if not self.states:
            return OK
        state, there = self.random.choice(self.states)
        size = ctypes.c_size_t(0)
        assert self._call("SerializedFMUstateSize", state, ctypes.byref(size)) == OK
        content = (ctypes.c_char * size.value)()
        assert self._call("SerializeFMUstate", state, content, size) == OK
        if self._chance():
            content[self.random.randrange(size.value)] = self.random.randrange(256)
        copy = ctypes.c_void_p(None)
        status = self._call("DeSerializeFMUstate", content, size, ctypes.byref(copy))
        self.states.append((copy, there))
        return status

    def do_reset(self) -> int:
        if self.random.random() < 0.8:
            return OK
        self.time, self.running, self.initializing = 0.0, False, False
        return self._call("Reset")


def main() -> None:
    """Call as the command line says."""
    fmu, folder, seed, calls = sys.argv[1:]
    importer = Importer(Path(fmu), Path(folder))
    total: Counter[tuple[str, int]] = Counter()
    for number in range(10):
        caller = Caller(importer, 10 * int(seed) + number)
        for _ in range(int(calls) // 10):
            caller.call()
        total += caller.counts
    for (name, status), count in sorted(total.items()):
        print(f"{name.removeprefix('do_')} {status}: {count}")  # noqa: T201


if __name__ == "__main__":
    main()
