"""FMUs for Windows alone on Linux: every function crosses whole, and nothing ends in silence."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from ctypes import byref, c_char, c_char_p, c_double, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy import fmi2
from fmpy.logging import addLoggerProxy
from foreign_fmus import build_c_unit, has_wine
from runtime_sources import INCLUDES

from mbsfmu import CosimulationError, cosimulate
from mbsfmu.cosim.fmus.wine.bridge import WINDOWS, bridge

pytestmark = pytest.mark.skipif(not has_wine(), reason="needs Linux, Wine and the extra 'cross'")
ECHO = Path(__file__).with_name("echo.c")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("windows ü")


class Echo:
    """The hand-written library on the other side, and what it has logged."""

    def __init__(self, folder: Path) -> None:
        (place := folder / "binaries" / WINDOWS).mkdir(parents=True, exist_ok=True)
        zig = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-shared", *INCLUDES]
        subprocess.run([*zig, str(ECHO), "-o", str(place / "echo.dll")], check=True)
        bridge(folder, "echo", fmpy.platform, "echo")
        self.library = ctypes.CDLL(str(folder / "binaries" / fmpy.platform / "echo.so"))
        self.library.fmi2Instantiate.restype = c_void_p
        self.logged: list[str] = []
        self.component: int | None = None
        self._log = fmi2.fmi2CallbackLoggerTYPE(self._logged)
        self._callbacks = fmi2.fmi2CallbackFunctions(logger=self._log)
        addLoggerProxy(byref(self._callbacks))
        self.resources = f"file://{folder}/resources"

    def _logged(self, _: Any, name: bytes, status: int, category: bytes, message: bytes) -> None:
        self.logged.append(f"{name.decode()} {status} {category.decode()}: {message.decode()}")

    def instantiate(self, name: str) -> int | None:
        return self.library.fmi2Instantiate(
            name.encode(), 1, b"{guid}", self.resources.encode(), byref(self._callbacks), 0, 1
        )

    def call(self, function: str, *arguments: Any) -> int:
        """Call a function with the instance, forget what was logged before, and return its status."""
        self.logged.clear()
        return getattr(self.library, f"fmi2{function}")(c_void_p(self.component), *arguments)


@pytest.fixture(scope="module")
def library(folder: Path) -> Echo:
    return Echo(folder)


@pytest.fixture
def echo(library: Echo) -> Iterator[Echo]:
    library.logged.clear()
    library.component = library.instantiate("crane ü")
    assert library.component
    yield library
    library.call("FreeInstance")


def array(kind: Any, *values: Any) -> Any:
    return (kind * len(values))(*values)


def test_an_instance_is_given_what_the_host_gives(echo: Echo, folder: Path) -> None:
    assert echo.logged == [f"crane ü 1 logAll: crane ü|1|{{guid}}|file:///Z:{folder}/resources|0|1"]
    echo.library.fmi2GetVersion.restype = c_char_p
    assert echo.library.fmi2GetVersion() == b"2.0"


def test_none_where_the_fmu_gives_none(library: Echo) -> None:
    assert library.instantiate("none") is None


def test_an_instance_that_is_freed_leaves_nothing_open(library: Echo) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    library.component = library.instantiate("freed")
    assert library.component
    library.call("FreeInstance")
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_values_cross_by_bits(echo: Echo) -> None:
    values = array(c_double, *[9.0] * 5)
    assert echo.call("GetReal", array(c_uint, 1, 2, 7, 4000000000, 0), c_size_t(5), values) == 0
    assert list(values) == [1 / 3.0, 2 / 3.0, 7 / 3.0, 4000000000 / 3.0, 0.0]
    assert echo.call("GetReal", None, c_size_t(0), None) == 0
    many = 100_000  # more than a pipe holds
    large = (c_double * many)()
    assert echo.call("GetReal", (c_uint * many)(*range(many)), c_size_t(many), large) == 0
    np.testing.assert_array_equal(np.array(large), np.arange(many) / 3.0)


def test_strings_cross_both_ways(echo: Echo) -> None:
    texts = (c_char_p * 3)()
    assert echo.call("GetString", array(c_uint, 5, 0, 7), c_size_t(3), texts) == 1
    assert list(texts) == ["ü5".encode(), None, "ü7".encode()]
    assert echo.call("SetString", array(c_uint, 3, 4), c_size_t(2), (c_char_p * 2)(b"100 %s", None)) == 0
    assert echo.logged == ["crane ü 1 logAll: 3|2|100 %s|null"]
    assert echo.call("SetDebugLogging", 1, c_size_t(2), (c_char_p * 2)(b"a", None)) == 0
    assert echo.logged == ["crane ü 1 logAll: 1|2|a|null"]
    text = c_char_p()
    assert echo.call("GetStringStatus", 3, byref(text)) == 0
    assert text.value == b"kind 3"


def test_arguments_cross_in_their_order(echo: Echo) -> None:
    assert echo.call("SetupExperiment", 1, c_double(1e-3), c_double(2.0), 0, c_double(5.0)) == 0
    assert echo.logged == ["crane ü 1 logAll: 1|0.001|2|0|5"]
    assert echo.call("DoStep", c_double(0.1), c_double(1e-3), 1) == 0
    assert echo.logged == ["crane ü 1 logAll: first", f"crane ü 1 logAll: {0.1:.17g}|{1e-3:.17g}|1"]
    columns = array(c_double, 0.0, 0.0)
    knowns, seeds = array(c_uint, 1, 2, 3), array(c_double, 1.0, 0.1, 0.01)
    sizes = c_size_t(2), c_size_t(3)
    assert echo.call("GetDirectionalDerivative", array(c_uint, 4, 5), sizes[0], knowns, sizes[1], seeds, columns) == 0
    assert list(columns) == pytest.approx([4 * 1.11 + 12.3, 5 * 1.11 + 12.3], rel=1e-15)
    rates = array(c_double, 0.0, 0.0)
    assert echo.call("GetRealOutputDerivatives", array(c_uint, 4, 5), c_size_t(2), array(c_int, 1, 3), rates) == 0
    assert list(rates) == [4.5, 6.5]


def test_states_are_names_of_the_other_side(echo: Echo) -> None:
    state, size = c_void_p(), c_size_t()
    assert echo.call("GetFMUstate", byref(state)) == 0
    assert state.value == 0x123456789ABCD
    assert echo.call("GetFMUstate", byref(state)) == 0
    assert state.value == 0x123456789ABCE
    assert echo.call("SerializedFMUstateSize", state, byref(size)) == 0
    assert size.value == 0x123456789ABCF
    content = (c_char * 300)()
    assert echo.call("SerializeFMUstate", state, content, c_size_t(300)) == 0
    assert content.raw == bytes(i % 251 for i in range(300))


def test_functions_of_model_exchange(echo: Echo) -> None:
    events = fmi2.fmi2EventInfo(newDiscreteStatesNeeded=4, nextEventTime=1.0)
    assert echo.call("NewDiscreteStates", byref(events)) == 0
    given = events.newDiscreteStatesNeeded, events.terminateSimulation, events.nextEventTimeDefined
    assert (*given, events.nextEventTime) == (4, 5, 1, 2.5)
    enters, ends = c_int(), c_int()
    assert echo.call("CompletedIntegratorStep", 1, byref(enters), byref(ends)) == 0
    assert (enters.value, ends.value) == (1, 7)
    assert echo.call("SetContinuousStates", array(c_double, 1.0, 2.5), c_size_t(2)) == 0
    assert echo.logged == ["crane ü 1 logAll: 2|2.5"]
    assert echo.call("SetContinuousStates", None, c_size_t(0)) == 0
    assert echo.logged == ["crane ü 1 logAll: 0|-1"]


def test_statuses_and_missing_functions_are_told(echo: Echo) -> None:
    assert echo.call("Terminate") == 2
    assert echo.call("SetTime", c_double(1.0)) == 3
    assert echo.logged == ["crane ü 3 error: its library for Windows has no function fmi2SetTime"]


def test_a_signal_of_the_host_does_not_end_a_call(echo: Echo) -> None:
    """Such as an interruption at the keyboard: it is for what runs on this side."""
    came: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: came.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        assert echo.call("CancelStep") == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert came


def test_a_side_that_ended_fails_for_good(echo: Echo) -> None:
    ended = "the program that runs it under Wine has ended; what Wine says of it stands on the stream of errors"
    assert echo.call("Reset") == 4
    assert echo.logged == [f"crane ü 4 error: {ended}"]
    value = array(c_double, 1.5)
    assert echo.call("GetReal", array(c_uint, 6), c_size_t(1), value) == 4
    assert (echo.logged, value[0]) == ([], 1.5)


def programs() -> set[int]:
    """Return the processes under Wine that run an FMU."""
    found = set[int]()
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"under_wine.exe" in command and b"python" not in command:
            found.add(int(entry.name))
    return found


def busy(processes: set[int]) -> set[int]:
    """Return those processes that took more than a second of processor time."""
    ticks = os.sysconf("SC_CLK_TCK")
    taken = {each: Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()[11] for each in processes}
    return {each for each, count in taken.items() if int(count) > ticks}


def test_a_program_ends_with_its_host(folder: Path) -> None:
    before = programs()
    unit = build_c_unit("misbehaving", folder, windows=True)
    call = [sys.executable, "-m", "mbsfmu", "--quiet", "cosim", str(unit), "--set", "misbehaving.fault=4"]
    host = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        began = wait_for(lambda: busy(programs() - before), "nothing is in the step that does not come back")
    finally:
        host.kill()
        host.wait()
    wait_for(lambda: not programs() & began, "a program is still there")


def wait_for(fact: Any, otherwise: str) -> Any:
    """Wait until something holds, and return it."""
    end = time.monotonic() + 60.0
    while not (found := fact()):
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("name", ["feed_through", "rocker", "vanderpol"])
def test_runs_are_those_of_the_library_for_linux(name: str, foreign: Any, folder: Path) -> None:
    here = cosimulate(foreign(name), step=0.01, stop=0.5)
    there = cosimulate(build_c_unit(name, folder, windows=True), step=0.01, stop=0.5)
    np.testing.assert_allclose(there.values_by_column, here.values_by_column, rtol=1e-12)
    assert (there.texts, there.notes, there.unit_steps) == (here.texts, here.notes, here.unit_steps)


@pytest.mark.parametrize("fault", [1, 2, 3], ids=["segmentation", "abort", "exit"])
def test_an_fmu_that_takes_its_program_down_ends_the_run_in_words(fault: int, folder: Path) -> None:
    unit = build_c_unit("misbehaving", folder, windows=True)
    with pytest.raises(CosimulationError, match=r"misbehaving at t = 0\.5 s: .*the program that runs it under Wine"):
        cosimulate(unit, parameters={"misbehaving.fault": fault}, step=0.1, stop=1.0)
