"""Calls and saved states that are made to do harm: they are refused with a sentence, or they end."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import fmpy
import numpy as np
import pytest
from importer import Importer
from native_fmus import Exported
from saved_states import checksum

Native = Callable[..., Exported]
HEADER, CHECKSUM = 88, 80  # bytes before the state; where its checksum begins


def sealed(state: bytearray) -> bytes:
    """Return a saved state with its checksum made anew."""
    state[CHECKSUM:HEADER] = struct.pack("<Q", checksum(state[HEADER : len(state) // 8 * 8]))
    return bytes(state)


@pytest.mark.parametrize("solver", ["trapezoidal", "rk45", "rodas5p"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -1e300])
def test_states_with_numbers_that_no_run_comes_to_are_refused(
    native: Native, tmp_path: Path, solver: str, number: float
) -> None:
    """Whichever of the numbers it is; with their own values they are taken."""
    importer = Importer(native("pendulum-2", "dca", solver).path, tmp_path / "unpacked")
    slave = importer.running()
    state = slave.getFMUstate()
    whole = bytearray(slave.serializeFMUstate(state))
    assert sealed(bytearray(whole)) == bytes(whole)
    words = 40  # the first ones are times, parameters, positions, velocities
    for word in range(words):
        forged = bytearray(whole)
        forged[HEADER + 8 * word : HEADER + 8 * word + 8] = struct.pack("<d", number)
        if word == 2 and np.isfinite(number):
            continue  # any stop time may be
        with pytest.raises(fmpy.fmi1.FMICallException):
            slave.deSerializeFMUstate(sealed(forged))
    slave.setFMUstate(slave.deSerializeFMUstate(bytes(whole)))
    slave.doStep(0.0, 1e-3)
    slave.freeInstance()


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("solver", ["trapezoidal", "rk45", "rodas5p"])
@pytest.mark.parametrize("length", [5e-324, 1e-315, 1e-308, 1e-101])
def test_steps_of_next_to_nothing_are_refused(
    native: Native, tmp_path: Path, solver: str, length: float, fmi: int
) -> None:
    """At t = 0 numbers are as fine as they get; such steps went on for ever."""
    importer = Importer(native("pendulum-2", "dca", solver, fmi=fmi).path, tmp_path / "unpacked")
    slave = importer.running()
    with pytest.raises(fmpy.fmi1.FMICallException):
        slave.doStep(0.0, length)
    slave.freeInstance()


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("solver", ["trapezoidal", "rk45"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startTime": -1e308}, "the start time is -1e+308 s; its magnitude must be at most 1e+100"),
        ({"startTime": np.nan}, "the start time is nan s"),
        ({"tolerance": 1e300}, "the tolerance is 1e+300; it must be at most 1e+50"),
        ({"tolerance": 0.0}, "the tolerance is 0; it must be positive"),
    ],
)
def test_experiments_that_no_run_comes_from_are_refused(
    native: Native, tmp_path: Path, solver: str, fmi: int, given: dict[str, float], said: str
) -> None:
    """They led to states that could be saved, and not be serialized."""
    importer = Importer(native("pendulum-2", "dca", solver, fmi=fmi).path, tmp_path / "unpacked")
    slave = importer.instance()
    with pytest.raises(fmpy.fmi1.FMICallException):
        slave.setupExperiment(**given) if fmi == 2 else slave.enterInitializationMode(**given)
    assert said in importer.messages[-1][1]
    slave.freeInstance()
