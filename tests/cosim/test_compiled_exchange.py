"""Steps that compiled code makes are those that Python makes, to the last bit, and end as those do."""

from __future__ import annotations

import ctypes
import logging
import math
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.both_ways import Failures, Run
from cosim.linear_units import CONNECTIONS, change_description
from cosim.oscillator_theory import step_map
from foreign_fmus import compiler

from mbsfmu import StepSignal, cosimulate
from mbsfmu.cosim import CosimulationInterrupted
from mbsfmu.cosim.compiled import library
from mbsfmu.cosim.runs.recorded_steps import RecordedSteps

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

EXTRAPOLATIONS = ("zero", "linear", "quadratic", "derivatives", "adaptive")
ALGORITHMS = ("jacobi", "gauss-seidel")


@pytest.fixture
def mixture(foreign: Callable[[str], Path], halves_exact: list[Path], tmp_path: Path) -> list[Path]:
    """Units of every kind: with and without states, slopes and derivatives, whole numbers and truth values."""
    units = [foreign("dahlquist"), *halves_exact]
    for name in ("first", "second"):
        units.append(tmp_path / f"{name}.fmu")
        units[-1].write_bytes(foreign("moody").read_bytes())
    return units


MIXED: dict[str, Any] = {
    "connections": (
        *CONNECTIONS, "one.position=dahlquist.u", "dahlquist.x=first.real_in", "first.real_out=second.real_in",
        "first.integer_out=second.integer_in", "first.boolean_out=second.boolean_in", "first.mode_out=second.mode_in",
    ),
    "parameters": {"first.gain": 0.3, "second.gain": -7.0},
    "inputs": {
        "first.integer_in": lambda time: math.floor(20.0 * time),
        "first.boolean_in": StepSignal(times=(0.1, 0.153, 0.4), values=(1.0, 0.0, 1.0)),
    },
}  # fmt: skip


@pytest.mark.parametrize("extrapolation", EXTRAPOLATIONS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("options", [{}, {"energy_correction": True}, {"rates": {"one": 3, "dahlquist": 2}}], ids=str)
def test_every_bit_is_the_same(
    mixture: list[Path], both: Run, made: list[int], algorithm: str, extrapolation: str, options: dict[str, Any]
) -> None:
    """Off the grid, too: at a jump and at the end."""
    result = both(
        mixture, **MIXED, **options, algorithm=algorithm, extrapolation=extrapolation, step=0.01, stop=0.555
    )  # fmt: skip
    assert sum(made) == result.steps == 57
    assert np.ptp(result["second.real_out"]) > 1e-5


@pytest.mark.parametrize("extrapolation", EXTRAPOLATIONS)
@pytest.mark.parametrize("units", ["halves_exact", "halves_poor"])
def test_steps_without_a_past_are_made_again(
    request: pytest.FixtureRequest, foreign: Callable[[str], Path], both: Run, made: list[int], units: str,
    extrapolation: str,
) -> None:  # fmt: skip
    """Where all save states, the steps after the start and after a jump are made twice.

    Parabolas need two points before, and two steps.
    """
    result = both(
        [*request.getfixturevalue(units), foreign("dahlquist")], connections=CONNECTIONS,
        inputs={"dahlquist.u": StepSignal(times=(0.1,), values=(2.0,))},
        algorithm="jacobi", extrapolation=extrapolation, step=1e-3, stop=0.2, energy_correction=True,
    )  # fmt: skip
    twice = {"zero": 0, "adaptive": 0, "quadratic": 4}.get(extrapolation, 2) if units == "halves_exact" else 0
    assert (sum(made), result.rollbacks) == (result.steps, twice)
    late = np.clip(result.time - 0.1, 0.0, None)
    np.testing.assert_allclose(result["x"], np.exp(-result.time) + 2.0 * (1.0 - np.exp(-late)), rtol=1e-9)
    assert result.energy_residual_max > 0.0


@pytest.mark.parametrize("extrapolation", ["zero", "linear"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_oscillator_moves_as_theory_says(
    halves_poor: list[Path], halves_exact: list[Path], made: list[int], algorithm: str, extrapolation: str
) -> None:
    """A linear map from point to point; the first step, without a past, holds its inputs."""
    units = halves_poor if extrapolation == "zero" else halves_exact
    result = cosimulate(
        units, connections=CONNECTIONS, algorithm=algorithm, extrapolation=extrapolation, step=0.02, stop=2.0
    )  # fmt: skip
    assert sum(made) >= 99
    power = step_map(algorithm, extrapolation, 0.02)
    stretch = result["two.force"] / 20.0
    states = np.array([result["one.position"], result["one.speed"], result["two.speed"], stretch])
    if extrapolation == "linear":
        states = np.concatenate([states[:, 1:], [result["one.speed"][:-1], result["two.force"][:-1]]])
    state = states[:, 0]
    for found in states.T:
        np.testing.assert_allclose(found, state, atol=1e-9)
        state = power @ state


# -- ends that are no ends ------------------------------------------------------------------------------------------

STATUSES = {2: "discard", 3: "error", 4: "fatal", 5: "pending"}


FUNCTIONS = ("DoStep", "GetReal", "SetReal", "GetInteger", "SetBoolean")


@pytest.mark.parametrize(
    ("function", "status"), [*(("DoStep", status) for status in STATUSES), *((each, 3) for each in FUNCTIONS[1:])]
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_unit_that_refuses_is_named_with_time_and_reason(
    foreign: Callable[[str], Path], failures: Failures, made: list[int],
    algorithm: str, status: int, function: str,
) -> None:  # fmt: skip
    """The reason is what was said in the step that failed, and not in those before."""
    errors = failures(
        [foreign("moody"), foreign("dahlquist")], connections=["dahlquist.x=moody.real_in"],
        inputs={"moody.boolean_in": lambda time: time > 0.3}, algorithm=algorithm, step=0.1, stop=2.0,
        parameters={
            "moody.when": 0.7, "moody.status": status, "moody.function": 1 + FUNCTIONS.index(function),
            "moody.talks": True,
        },
    )  # fmt: skip
    at = 0.7 if function == "DoStep" else 0.6
    said = f"the step from {at:g} s" + ("" if function == "DoStep" else f"; it does not like fmi2{function}")
    sentence = f"moody at t = {at:g} s: fmi2{function} gives {STATUSES[status]}: {said}"
    assert [str(error) for error in errors] == [sentence, sentence]
    rows = 7 if function.startswith("Get") else 8
    np.testing.assert_allclose(errors[1].result.time, 0.1 * np.arange(rows))
    assert sum(made) == rows - 1


def test_warnings_are_heard_and_stop_nothing(
    foreign: Callable[[str], Path], both: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        result = both(foreign("moody"), step=0.1, stop=2.0, parameters={"moody.talks": True})
    assert result.steps == 20
    assert sum("the step from 1.3 s" in message for message in caplog.messages) == 2


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_run_that_diverges_is_told(
    foreign: Callable[[str], Path], failures: Failures, made: list[int], algorithm: str, tmp_path: Path
) -> None:
    """A gain of 1e163 behind one of 1e150, and 1 kPa from 0.3 s on."""
    second = tmp_path / "second.fmu"
    second.write_bytes(foreign("moody").read_bytes())
    (error, same) = failures(
        [foreign("moody"), second], connections=["moody.real_out=second.real_in"],
        inputs={"moody.real_in": lambda time: 0.01 * (time > 0.25)}, algorithm=algorithm, step=0.1, stop=2.0,
        parameters={"moody.gain": 1e150, "second.gain": 1e163},
    )  # fmt: skip
    at = 0.5 if algorithm == "jacobi" else 0.4
    assert str(error) == str(same) == f"second.real_out is not finite at t = {at:g} s: the run diverges"
    assert sum(made) == round(10.0 * at) - 1


def test_slopes_that_are_refused_are_told(foreign: Callable[[str], Path], failures: Failures, tmp_path: Path) -> None:
    """An FMU says that it interpolates, and does not."""
    unit = tmp_path / "moody.fmu"
    unit.write_bytes(foreign("moody").read_bytes())
    change_description(unit, "<CoSimulation ", '<CoSimulation canInterpolateInputs="true" ')
    units, connections = [foreign("dahlquist"), unit], ["dahlquist.x=moody.real_in"]
    errors = failures(units, connections=connections, extrapolation="linear", step=0.1, stop=2.0)
    function = "fmi2SetRealInputDerivatives"
    sentence = f"moody at t = 0 s: {function} gives error: {function} is not supported"
    assert [str(error) for error in errors] == [sentence, sentence]


@pytest.mark.parametrize("step", [0.25, 0.1])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_unit_that_ends_the_run(
    foreign: Callable[[str], Path], both: Run, made: list[int], tmp_path: Path, algorithm: str, step: float
) -> None:
    """At the end of a step or inside it; it has a text, which is taken out for compiled code to run it."""
    unit = tmp_path / "ending.fmu"
    unit.write_bytes(foreign("ending").read_bytes())
    change_description(unit, '(?s)<ScalarVariable name="where".*?</ScalarVariable>', "")
    change_description(unit, "(?s)<ModelStructure>.*</ModelStructure>", "<ModelStructure/>")
    result = both([foreign("dahlquist"), unit, foreign("moody")], algorithm=algorithm, step=step, stop=2.0)
    reached = step * math.floor(0.75 / step)
    assert result.time[-1] == pytest.approx(reached)
    np.testing.assert_allclose(result["x"], np.exp(-result.time), rtol=1e-12)
    assert result.notes[-1].startswith("ending ended the run at t = 0.75 s")
    assert sum(made) == result.steps == round(reached / step)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interruption_while_a_unit_talks_is_not_lost(foreign: Callable[[str], Path], made: list[int]) -> None:
    """Python would hear of it where the unit logs, and ctypes lose it there; what was done until then is kept."""
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(CosimulationInterrupted) as caught:
        cosimulate(
            [foreign("moody"), foreign("dahlquist")], step=1e-4, stop=20.0,
            parameters={"moody.when": 0.5, "moody.function": 6, "moody.talks": True},
        )  # fmt: skip
    assert signal.getsignal(signal.SIGINT) is before
    result = caught.value.result
    assert 0.5 < result.time[-1] < 15.0
    assert sum(made) == result.steps
    np.testing.assert_allclose(result["x"], np.exp(-result.time), rtol=1e-9)


def test_signal_that_fails_fails_at_its_step(foreign: Callable[[str], Path], made: list[int]) -> None:
    def signal_of(time: float) -> float:
        if time > 0.55:
            raise ZeroDivisionError("at 0.6 s")
        return time

    shares: list[float] = []
    with pytest.raises(ZeroDivisionError, match=r"at 0\.6 s"):
        cosimulate(
            foreign("dahlquist"), inputs={"dahlquist.u": signal_of}, step=0.1, stop=1.0, progress=shares.append,
            extrapolation="zero",
        )  # fmt: skip
    assert (sum(made), shares) == (6, [0.1])


# -- where there is no compiled code --------------------------------------------------------------------------------


@pytest.mark.parametrize("found", ["false", ""], ids=["failing", "missing"])
def test_without_compiled_code_python_makes_the_steps(
    foreign: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    made: list[int], found: str,
) -> None:  # fmt: skip
    """A compiler that fails is told once, one that is not there is not told."""
    unit = foreign("dahlquist")
    library.compiled_library.cache_clear()
    monkeypatch.setenv("MBSFMU_CACHE", str(tmp_path))
    if found:
        monkeypatch.setenv("CC", found)
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("mbsfmu.compiling.compiler._zig", lambda: None)
    for _ in range(2):
        result = cosimulate(unit, step=0.1, stop=1.0)
        np.testing.assert_allclose(result["x"], np.exp(-result.time), rtol=1e-12)
    library.compiled_library.cache_clear()
    assert sum(made) == 0 < len(made)
    told = [message for message in caplog.messages if "the master exchanges values in Python" in message]
    assert len(told) == bool(found)


def test_compiled_code_looks_up_when_its_patience_ends_and_not_before(
    foreign: Callable[[str], Path], made: list[int]
) -> None:
    """Interruptions are heard by the interpreter alone, and a look at it costs more than many steps do.

    Without interruption calls make 1, 2, 4 … 4096 steps, and 4096 from then on.
    """
    begin = time.monotonic()
    cosimulate([foreign("dahlquist")], step=1e-5, stop=0.4)
    assert sum(made) == 40_000
    assert len(made) <= 13 + 10 + (time.monotonic() - begin) / 0.05  # s, patience


def test_rows_beyond_what_an_int_counts(halves_poor: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """As late in a long run of many outputs: the same rows, where the array seems to begin so much earlier."""
    given: dict[str, Any] = {"connections": CONNECTIONS, "step": 0.01, "stop": 0.1}
    expected = cosimulate(halves_poor, **given)
    begin, late = RecordedSteps._begin, 1 << 30

    def begun_late(self: RecordedSteps, index: int, count: int) -> None:
        begin(self, index, count)
        exchange = self.tables.exchange
        width = exchange.outputs + exchange.reaction_count + exchange.bond_count
        assert late * width > 1 << 31
        address = ctypes.addressof(exchange.recorded.contents) - 8 * late * width
        exchange.recorded, exchange.first_row = ctypes.cast(address, type(exchange.recorded)), exchange.first_row + late

    monkeypatch.setattr(RecordedSteps, "_begin", begun_late)
    result = cosimulate(halves_poor, **given)
    for name in expected.names:
        np.testing.assert_array_equal(result[name], expected[name])
