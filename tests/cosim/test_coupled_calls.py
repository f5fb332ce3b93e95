"""Coupled FMUs as one FMU, called as no importer should and as some do: it answers as a plain FMU does."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, exact
from foreign_fmus import compiler
from importer import Importer

import mbsfmu
from mbsfmu.compiling.compiler import OPTIMIZATION

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
STEP = 1e-2
NAMES = ("one.position", "two.position")
REFUSED = r"rror|failed"


@pytest.fixture(scope="module")
def coupled(halves_exact: Sequence[Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Importer]:
    """Return the coupled halves as one FMU of a version, unpacked."""
    folder, made = tmp_path_factory.mktemp("coupled"), {}

    def importer(fmi: int) -> Importer:
        if fmi not in made:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(OPTIMIZATION, "0")
                how: dict[str, Any] = {"connections": CONNECTIONS, "step": STEP, "extrapolation": "linear", "fmi": fmi}
                path = mbsfmu.export_coupled(list(halves_exact), folder / f"whole{fmi}.fmu", **how)
            made[fmi] = Importer(path, folder / f"unpacked{fmi}")
        return made[fmi]

    return importer


def begun(unit: Importer, start: float = 0.0, **values: float) -> Any:
    """Return an instance in step mode."""
    slave = unit.instance()
    for name, value in values.items():
        unit.set(slave, name, value)
    slave.setupExperiment(startTime=start)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    return slave


def positions(unit: Importer, slave: Any) -> np.ndarray:
    return np.array([unit.get(slave, name) for name in NAMES])


def reached(slave: Any, time: float, length: float) -> float:
    """Make a step that must not return early; return the time where the instance then is, in s."""
    answer = slave.doStep(time, length)
    if isinstance(slave, fmpy.fmi2.FMU2Slave):
        return float(slave.getRealStatus(fmpy.fmi2.fmi2LastSuccessfulTime))
    assert answer[2] is False, "early return"
    return float(answer[3])


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize(("start", "length"), [(0.0, STEP), (88.205565900817518, STEP), (0.0, 3e-3), (1.7e9, STEP)])
def test_steps_end_where_the_importer_has_their_ends(
    fmi: int, start: float, length: float, coupled: Callable[[int], Importer]
) -> None:
    """Times are added up or counted; nothing depends on which, and no step returns early."""
    unit, ends = coupled(fmi), []
    for adds in (False, True):
        slave, time = begun(unit, start), start
        for k in range(300):
            assert reached(slave, time, length) == time + length
            time = time + length if adds else start + (k + 1) * length
        ends.append(positions(unit, slave))
    assert ends[0] == pytest.approx(ends[1], abs=1e-5 if start > 1e9 else 1e-12)  # sums are off by 4e-5 s there
    assert ends[0] == pytest.approx(exact(300 * length)[[0, 2]], abs=2e-3)


@pytest.mark.parametrize("fmi", [2, 3])
def test_added_times_leave_communication_points_without_more_steps(
    fmi: int, coupled: Callable[[int], Importer]
) -> None:
    """Sums of a thousand million times are off by a part of a step: steps are no others where they are."""
    unit, ends = coupled(fmi), []
    for off in (0.0, 3e-3, 0.4):
        slave = begun(unit)
        slave.doStep(0.0, STEP)
        begin = STEP + off * STEP
        if off:
            slave.doStep(STEP, off * STEP)
        for k in range(50):
            slave.doStep(begin + k * STEP, STEP)
        ends.append(positions(unit, slave) - exact(begin + 50 * STEP)[[0, 2]])
    assert ends[1] == pytest.approx(ends[0], abs=1e-5)
    assert np.abs(ends).max() < 1e-3


@pytest.mark.parametrize("fmi", [2, 3])
def test_steps_far_below_the_communication_step_are_made(fmi: int, coupled: Callable[[int], Importer]) -> None:
    """A step of a millionth of it as the next one; steps between are communication steps of their own."""
    unit = coupled(fmi)
    slave, longer, shorter = begun(unit), begun(unit, **{"coupling.step": 1e4}), begun(unit, **{"coupling.step": 1e-3})
    time = 0.0
    for length in (1e-6 * STEP, 1e-6 * STEP, STEP, 1e-6 * STEP, 1e-7 * STEP, 0.3 * STEP, STEP):
        assert reached(slave, time, length) == time + length
        time += length
    assert positions(unit, slave) == pytest.approx(exact(time)[[0, 2]], abs=1e-4)
    assert unit.get(slave, "one.speed") == pytest.approx(exact(time)[1], abs=1e-2)
    for k in range(100):
        for each in (longer, shorter):
            assert reached(each, k * 1e-3, 1e-3) == k * 1e-3 + 1e-3
    assert np.array_equal(positions(unit, longer), positions(unit, shorter))


@pytest.mark.parametrize("fmi", [2, 3])
def test_all_that_can_be_set_is_in_the_saved_state(fmi: int, coupled: Callable[[int], Importer]) -> None:
    """Communication step, inputs of components, start and stop time: after a restore the run is the one of before."""
    unit = coupled(fmi)
    settable = [each for each in unit.description.modelVariables if each.causality in ("parameter", "input")]
    straight = begun(unit)
    for k in range(20):
        straight.doStep(k * STEP, STEP)
    slave = unit.instance()
    at_first = slave.getFMUstate()
    slave.setupExperiment(startTime=5.0, stopTime=6.0)
    slave.enterInitializationMode()
    slave.setFMUstate(at_first)
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    saved = slave.getFMUstate()
    before = [unit.get(slave, each.name) for each in settable]
    for each in settable:
        unit.set(slave, each.name, 3.0 * float(each.start) + 1.0 / 64.0)
    slave.setFMUstate(saved)
    assert [unit.get(slave, each.name) for each in settable] == before
    slave.exitInitializationMode()
    for k in range(20):
        slave.doStep(k * STEP, STEP)
    assert np.array_equal(positions(unit, slave), positions(unit, straight))


@pytest.mark.parametrize("fmi", [2, 3])
def test_of_values_that_are_set_all_are_taken_or_none(fmi: int, coupled: Callable[[int], Importer]) -> None:
    """Also where a component refuses one of them, after which the FMU goes on."""
    unit = coupled(fmi)
    slave = begun(unit)
    step, wrong = unit.reference["one.solver.step"], unit.reference["two.solver.step"]
    for fresh in (False, True):
        if fresh:
            slave = unit.instance()
            slave.setupExperiment(startTime=0.0)
            slave.enterInitializationMode()
        for value, where in ((math.nan, "two"), (-1.0, "two")):
            with pytest.raises(Exception, match=REFUSED):
                slave.setReal([step, wrong], [2e-3, value])
            assert where in unit.messages[-1][1]
            assert slave.getReal([step, wrong]) == [1e-3, 1e-3]
    slave.exitInitializationMode()
    slave.doStep(0.0, STEP)


def state_of(slave: Any) -> ctypes.c_void_p:
    """Return a state as the importer gets it where saving may fail."""
    state = ctypes.c_void_p()
    save = slave.fmi2GetFMUstate if isinstance(slave, fmpy.fmi2.FMU2Slave) else slave.fmi3GetFMUState
    with pytest.raises(Exception, match=REFUSED):
        save(slave.component, ctypes.byref(state))
    return state


@pytest.mark.parametrize("fmi", [2, 3])
def test_a_state_that_cannot_be_saved_is_none(fmi: int, coupled: Callable[[int], Importer]) -> None:
    """A component refuses its start value: the FMU is in no state to save, and what is not there is not restored."""
    unit = coupled(fmi)
    slave = unit.instance()
    unit.set(slave, "one.solver.step", -1.0)
    slave.setupExperiment(startTime=0.0)
    with pytest.raises(Exception, match=REFUSED):
        slave.enterInitializationMode()
    assert "one.solver.step" not in unit.messages[-1][1].partition(":")[0]
    state = state_of(slave)
    assert state.value is None
    for call in (
        lambda: slave.setFMUstate(state),
        lambda: unit.get(slave, "one.position"),
        lambda: slave.doStep(0.0, STEP),
    ):
        with pytest.raises(Exception, match=REFUSED):
            call()
    slave.freeFMUstate(state)
    slave.reset()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    slave.doStep(0.0, STEP)


@pytest.mark.parametrize("fmi", [2, 3])
def test_states_of_other_fmus_are_refused(
    fmi: int, coupled: Callable[[int], Importer], halves_exact: Sequence[Path], halves_3: Sequence[Path], tmp_path: Path
) -> None:
    plain = Importer((halves_exact if fmi == 2 else halves_3)[0], tmp_path / "plain")
    units = [plain, coupled(fmi)]
    slaves = [begun(unit) for unit in units]
    states = [each.getFMUstate() for each in slaves]
    for slave, state, unit in zip(slaves, states[::-1], units, strict=True):
        with pytest.raises(Exception, match=REFUSED):
            slave.setFMUstate(state)
        assert "it is the state of another FMU" in unit.messages[-1][1]


def answers(unit: Importer, order: Sequence[str]) -> list[str]:
    """Return what becomes of calls on one instance, one after the other: `ok`, or the sentence."""
    slave, found = unit.instance(), []
    output = next(each for each in unit.description.modelVariables if each.causality == "output").valueReference
    saved: list[Any] = []
    calls: dict[str, Callable[[], Any]] = {
        "set up": lambda: slave.setupExperiment(startTime=0.0),
        "set up to nan": lambda: slave.setupExperiment(startTime=0.0, stopTime=math.nan),
        "set up to no tolerance": lambda: slave.setupExperiment(startTime=0.0, tolerance=math.nan),
        "set up to infinity": lambda: slave.setupExperiment(startTime=0.0, stopTime=math.inf),
        "set up to the start": lambda: slave.setupExperiment(startTime=0.0, stopTime=0.0),
        "enter": slave.enterInitializationMode,
        "exit": slave.exitInitializationMode,
        "step": lambda: slave.doStep(0.0, STEP),
        "step back": lambda: slave.doStep(0.0, -STEP),
        "step nowhere": lambda: slave.doStep(0.0, math.nan),
        "step by round-off": lambda: slave.doStep(1e6, 1e-10),
        "step elsewhere": lambda: slave.doStep(7.0, STEP),
        "step for ever": lambda: slave.doStep(0.0, 1e300),
        "terminate": slave.terminate,
        "reset": slave.reset,
        "save": lambda: saved.append(slave.getFMUstate()),
        "restore": lambda: slave.setFMUstate(saved[-1]),
        "restore nothing": lambda: slave.setFMUstate(None),
        "set output": lambda: slave.setReal([output], [1.0]),
        "set unknown": lambda: slave.setReal([99999], [1.0]),
        "get unknown": lambda: slave.getReal([99999]),
    }
    if "update" in order:  # of FMI 3.0
        calls |= {"events": slave.enterEventMode, "steps": slave.enterStepMode, "update": slave.updateDiscreteStates}
    for name in order:
        before = len(unit.messages)
        try:
            calls[name]()
            found.append(f"{name}: ok")
        except Exception:  # FMPy raises bare exceptions
            found.append(f"{name}: {unit.messages[-1][1] if len(unit.messages) > before else 'no word'}")
    return found


ORDERS = (
    ("step", "exit", "terminate", "restore nothing", "save", "enter", "enter", "set up", "restore", "exit"),
    ("set up to nan", "set up to no tolerance", "set up to infinity", "enter", "step", "exit", "step", "exit"),
    ("set up to the start", "enter", "exit", "step", "terminate", "terminate", "step", "set output", "reset", "enter"),
    ("enter", "exit", "step back", "step nowhere", "step by round-off", "step elsewhere", "step for ever", "step"),
    ("enter", "set output", "set unknown", "get unknown", "exit", "save", "terminate", "restore", "step", "reset"),
)


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_calls_in_any_order_are_answered_as_by_a_plain_fmu(
    fmi: int, order: Sequence[str], coupled: Callable[[int], Importer], halves_exact: Sequence[Path],
    halves_3: Sequence[Path], tmp_path: Path,
) -> None:  # fmt: skip
    """Words are the same but for names, and for what the internal step is."""
    plain = Importer((halves_exact if fmi == 2 else halves_3)[0], tmp_path / "plain")
    if fmi == 3:
        order = (*order, "events", "update", "steps")
    name = next(each for each in coupled(fmi).description.modelVariables if each.causality == "output").name
    own = next(each for each in plain.description.modelVariables if each.causality == "output").name

    def in_common(said: list[str]) -> list[str]:
        return ["step for ever: too long" if "times the internal step" in each else each for each in said]

    found = [each.replace(own + " ", name + " ") for each in in_common(answers(plain, order))]
    for each in ("set up to infinity", "set up to the start"):
        assert each not in order or f"{each}: ok" in found
    assert in_common(answers(coupled(fmi), order)) == found
