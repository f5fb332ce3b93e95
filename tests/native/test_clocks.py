"""Clocks of sampled blocks in FMUs of FMI 3.0, set by hosts made of FMPy; against the recursion of a held command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import c_double, c_int, c_uint
from itertools import pairwise
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.fmi3 import FMU3Model
from fmpy.validation import validate_fmu
from importer import Importer, Slave3
from lxml import etree
from oscillator_in_closed_form import displacement
from sampled_control import OFFSET, SAMPLE, controlled, discrete

import mbsfmu
from mbsfmu import InputError
from mbsfmu.fmu.description import ClockVariable, clock_variables
from mbsfmu.systems.system import Sampling

STEP, STOP = 1e-3, 0.5
ACCURACY = 5e-9
"""Of rk4 with steps of 1 ms, restarted at updates."""
CLOCK = "controller.clock"


def exported(folder: Path, clocks: str, **chosen: object) -> Path:
    (path,) = mbsfmu.export(
        controlled(), folder, layout="monolithic", fmi=3, solver="rk4", step=STEP, clocks=clocks, **chosen
    )
    return path


@pytest.fixture(scope="module")
def importers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Importer]:
    """The oscillator with its controller, by the choice of clocks."""
    folder = tmp_path_factory.mktemp("clocks")
    return {
        clocks: Importer(exported(folder / clocks, clocks, kind=("cs", "me")), folder / f"unpacked-{clocks}")
        for clocks in ("periodic", "triggered")
    }


@pytest.fixture(params=["periodic", "triggered"])
def importer(importers: dict[str, Importer], request: pytest.FixtureRequest) -> Iterator[Importer]:
    yield from released(importers[request.param])


@pytest.fixture
def periodic(importers: dict[str, Importer]) -> Iterator[Importer]:
    yield from released(importers["periodic"])


@pytest.fixture
def triggered(importers: dict[str, Importer]) -> Iterator[Importer]:
    yield from released(importers["triggered"])


def released(importer: Importer) -> Iterator[Importer]:
    del importer.messages[:]
    yield importer
    while importer.slaves:
        importer.slaves.pop().freeInstance()


def begun(importer: Importer, start: float = 0.0) -> Slave3:
    """An instance with event mode, in event mode at the start."""
    slave = importer.instance(eventModeUsed=True)
    assert isinstance(slave, Slave3)
    slave.enterInitializationMode(startTime=start)
    slave.exitInitializationMode()
    slave.updateDiscreteStates()
    return slave


def tick(importer: Importer, slave: Slave3) -> None:
    """Set the clock in event mode and update."""
    clock = [importer.reference[CLOCK]]
    slave.setClock(clock, [True])
    assert slave.getClock(clock) == [True]
    again, *_ = slave.updateDiscreteStates()
    assert again
    assert slave.getClock(clock) == [False]
    assert not slave.updateDiscreteStates()[0]


def followed(importer: Importer, ticks: Sequence[float], times: Sequence[float], start: float = 0.0) -> np.ndarray:
    """Displacement and command at times, of a run in which the clock is set at some others; shape (k, 2)."""
    slave, rows, time = begun(importer, start), [], start
    slave.enterStepMode()
    for end, ticks_there in sorted([(each, True) for each in ticks] + [(each, False) for each in times]):
        if end > time:
            slave.doStep(time, end - time)
            time = end
        if ticks_there:
            slave.enterEventMode()
            tick(importer, slave)
            slave.enterStepMode()
        else:
            rows.append([importer.get(slave, name) for name in ("slider.displacement", "controller.command")])
    return np.array(rows)


def test_hosts_make_the_updates(importer: Importer) -> None:
    """Set at the block's own instants, either kind of clock gives what events of the FMU's own would."""
    times = np.linspace(0.013, STOP, 40)
    ticks = np.arange(OFFSET, STOP, SAMPLE)
    assert importer.description.coSimulation.hasEventMode
    found = followed(importer, list(ticks), list(times))
    expected = np.column_stack(discrete(times))
    assert np.abs(found[:, 0] - expected[:, 0]).max() < ACCURACY
    assert np.abs(found[:, 1] - expected[:, 1]).max() < 1e-6
    assert np.ptp(expected[:, 1]) > 1.0


def test_a_triggered_clock_ticks_when_the_host_wants(triggered: Importer) -> None:
    """With another offset the recursion is that of this offset; never set, the oscillator is free."""
    times = np.linspace(0.013, STOP, 40)
    ticks = np.arange(0.0093, STOP, SAMPLE)
    expected = np.column_stack(discrete(times, offset=0.0093))
    assert np.abs(followed(triggered, list(ticks), list(times))[:, 0] - expected[:, 0]).max() < ACCURACY
    free = followed(triggered, [], list(times))
    assert np.abs(free[:, 0] - displacement(times, driven=False)).max() < ACCURACY
    assert not free[:, 1].any()


def test_ticks_count_from_the_start_of_the_run(periodic: Importer) -> None:
    """The shift of a clock is relative to the start time, as the standard has it."""
    start, times = 3.1, np.linspace(0.02, 0.2, 9)
    ticks = start + np.arange(OFFSET, 0.2, SAMPLE)
    found = followed(periodic, list(ticks), list(start + times), start)
    assert np.abs(found[:, 0] - discrete(times)[0]).max() < ACCURACY


def test_periodic_clocks_tick_inside_of_steps_without_event_mode(tmp_path: Path) -> None:
    """Importers that know no clocks, as FMPy's `simulate_fmu`, get the same run."""
    path = exported(tmp_path, "periodic", naming="flat")
    run = fmpy.simulate_fmu(str(path), stop_time=STOP, output_interval=0.01, output=["slider_displacement"])
    assert np.abs(run["slider_displacement"] - discrete(run["time"])[0]).max() < ACCURACY
    (clock,) = (each for each in fmpy.read_model_description(str(path)).modelVariables if each.type == "Clock")
    assert clock.name == "controller_clock"
    assert clock.description is not None
    assert clock.description.startswith(CLOCK)


def test_descriptions_tell_interval_and_shift(importers: dict[str, Importer]) -> None:
    told = {
        "periodic": {"intervalVariability": "constant", "intervalDecimal": str(SAMPLE), "shiftDecimal": str(OFFSET)},
        "triggered": {"intervalVariability": "triggered"},
    }
    for clocks, importer in importers.items():
        variables = importer.description.modelVariables
        (clock,) = etree.parse(Path(importer.folder) / "modelDescription.xml").iter("Clock")
        named = {"name": CLOCK, "causality": "input", "variability": "discrete"}
        reference, text = clock.attrib["valueReference"], clock.attrib["description"]
        assert dict(clock.attrib) == {**named, "valueReference": reference, "description": text, **told[clocks]}
        assert [each.valueReference for each in variables].count(int(reference)) == 1


def test_descriptions_are_valid(importers: dict[str, Importer], tmp_path: Path) -> None:
    schema = etree.XMLSchema(file=str(Path(fmpy.__file__).parent / "schema/fmi3/fmi3ModelDescription.xsd"))
    for clocks, importer in importers.items():
        schema.assertValid(etree.parse(Path(importer.folder) / "modelDescription.xml"))
        assert validate_fmu(str(exported(tmp_path / clocks, clocks, naming="flat", kind="me"))) == []


def test_fmus_without_blocks_have_no_clocks(tmp_path: Path) -> None:
    """Of coupled FMUs the one of the controller alone has a clock, and hosts of the other need no event mode."""
    mechanism, controller, _ = mbsfmu.export(
        controlled(), tmp_path, layout="separate", fmi=3, solver="rk4", step=STEP, clocks="triggered"
    )
    names = {
        path.stem: [each.name for each in fmpy.read_model_description(str(path)).modelVariables if each.type == "Clock"]
        for path in (mechanism, controller)
    }
    assert sorted(names.values()) == [[], ["clock"]]
    times = np.linspace(0.0, 0.1, 11)
    run = fmpy.simulate_fmu(str(mechanism), stop_time=0.1, output_interval=0.01, output=["slider.displacement"])
    assert np.abs(run["slider.displacement"] - displacement(times, driven=False)).max() < ACCURACY


def test_lines_with_a_delay_have_no_clock() -> None:
    """What brings back later what has happened is updated by itself; clocks of the others keep their numbers."""
    line, block = (Sampling(owner, 0, 1, 0.01, 0.002, "", delays=delays) for owner, delays in (("l", 1), ("b", 0)))
    assert clock_variables("periodic", [line, block, block], ["b.command", "b.clock"]) == (
        ClockVariable("b.clock_", "updates of b", 1, 0.01, 0.002),
        ClockVariable("b.clock__", "updates of b", 2, 0.01, 0.002),
    )
    assert clock_variables("triggered", [block], ["command"]) == (
        ClockVariable("clock", "updates of b", 0, None, None),
    )


def test_steps_wait_for_the_update_of_a_clock(importer: Importer) -> None:
    """Set, and step mode entered without the update: it is refused, and made afterwards."""
    slave = begun(importer)
    slave.enterStepMode()
    slave.doStep(0.0, OFFSET)
    slave.enterEventMode()
    slave.setClock([importer.reference[CLOCK]], [True])
    with pytest.raises(FMICallException):
        slave.enterStepMode()
    assert slave.updateDiscreteStates()[0]
    slave.enterStepMode()
    slave.doStep(OFFSET, 1e-3)
    assert importer.get(slave, "slider.displacement") == pytest.approx(
        discrete(np.array([OFFSET + 1e-3]))[0][0], abs=ACCURACY
    )


def test_intervals_are_told(periodic: Importer, triggered: Importer) -> None:
    slave, clock = begun(periodic), (c_uint * 1)(periodic.reference[CLOCK])
    interval, shift, qualifier = (c_double * 1)(), (c_double * 1)(), (c_int * 1)(7)
    slave.getIntervalDecimal(clock, interval, qualifier)
    slave.fmi3GetShiftDecimal(slave.component, clock, 1, shift)
    assert (interval[0], shift[0], qualifier[0]) == (SAMPLE, OFFSET, 1)
    other = begun(triggered)
    with pytest.raises(FMICallException):
        other.getIntervalDecimal(clock, interval, qualifier)
    assert "its clocks are triggered by the host: they have no interval" in triggered.messages[-1][1]


def test_ticks_that_are_passed_are_refused(periodic: Importer) -> None:
    """A step past a tick is refused, before it and at it; to it, and on after the update, it is made."""
    slave = begun(periodic)
    slave.enterStepMode()
    with pytest.raises(FMICallException):
        slave.doStep(0.0, 2.0 * OFFSET)
    sentence = "the clock of controller ticks at t = 0.0041 s: set it in event mode there before you go on to 0.0082 s"
    assert sentence in periodic.messages[-1][1]
    slave.doStep(0.0, OFFSET)
    with pytest.raises(FMICallException):
        slave.doStep(OFFSET, 1e-3)
    assert "before you go on to 0.0051 s" in periodic.messages[-1][1]
    slave.enterEventMode()
    tick(periodic, slave)
    slave.enterStepMode()
    slave.doStep(OFFSET, SAMPLE)
    with pytest.raises(FMICallException):
        slave.doStep(OFFSET + SAMPLE, 1e-3)


def test_a_clock_is_set_at_its_ticks_in_event_mode(periodic: Importer) -> None:
    clock = [periodic.reference[CLOCK]]
    slave = begun(periodic)
    with pytest.raises(FMICallException):
        slave.setClock(clock, [True])
    assert "the clock of controller ticks at t = 0.0041 s, not at 0 s" in periodic.messages[-1][1]
    slave.enterStepMode()
    slave.doStep(0.0, OFFSET)
    with pytest.raises(FMICallException):
        slave.setClock(clock, [True])
    assert "clocks are set in event mode only" in periodic.messages[-1][1]
    slave.enterEventMode()
    slave.setClock(clock, [True])
    slave.setClock(clock, [False])
    assert not slave.updateDiscreteStates()[0]
    tick(periodic, slave)
    with pytest.raises(FMICallException):
        slave.setClock(clock, [True])
    assert "ticks at t = 0.0178 s, not at 0.0041 s" in periodic.messages[-1][1]
    for reference in (periodic.reference["time"], clock[0] + 1, 2**32 - 1):
        with pytest.raises(FMICallException):
            slave.setClock([reference], [True])
        assert f"there is no clock with value reference {reference}" in periodic.messages[-1][1]


def test_clocks_need_event_mode(periodic: Importer, triggered: Importer) -> None:
    slave = periodic.instance()
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    with pytest.raises(FMICallException):
        slave.setClock([periodic.reference[CLOCK]], [True])
    assert "clocks are for instances with event mode" in periodic.messages[-1][1]
    with pytest.raises(Exception, match="instantiate"):
        triggered.instance()
    assert "its clocks are triggered by the host, which needs event mode for it" in triggered.messages[-1][1]


def test_a_saved_state_has_its_clocks(triggered: Importer) -> None:
    """A clock that is set is set in a state of that moment, and no more after going back before it."""
    slave, clock = begun(triggered), [triggered.reference[CLOCK]]
    before = slave.getFMUState()
    slave.setClock(clock, [True])
    waiting = slave.getFMUState()
    slave.setFMUState(before)
    assert slave.getClock(clock) == [False]
    assert not slave.updateDiscreteStates()[0]
    slave.setFMUState(waiting)
    assert slave.updateDiscreteStates()[0]
    for state in (before, waiting):
        slave.freeFMUState(state)


def test_a_solver_of_the_host_stops_at_ticks(periodic: Importer) -> None:
    """Model exchange: RK4 of the host between ticks; a completed step past one is refused."""
    unit = FMU3Model(
        guid=periodic.description.guid,
        unzipDirectory=periodic.folder,
        modelIdentifier=periodic.description.modelExchange.modelIdentifier,
        instanceName="exchange",
    )
    told: list[str] = []
    unit.instantiate(logMessage=lambda *said: told.append(said[-1].decode()))
    count = len(periodic.description.derivatives)
    clock, moved = [periodic.reference[CLOCK]], [periodic.reference["slider.displacement"]]
    place, rates = (c_double * count)(), (c_double * count)()
    unit.enterInitializationMode()
    unit.exitInitializationMode()
    unit.updateDiscreteStates()

    def flow(time: float, y: np.ndarray) -> np.ndarray:
        unit.setTime(time)
        place[:] = y
        unit.setContinuousStates(place, count)
        unit.getContinuousStateDerivatives(rates, count)
        return np.array(rates)

    def integrate(begin: float, end: float) -> None:
        unit.enterContinuousTimeMode()
        unit.getContinuousStates(place, count)
        y, steps = np.array(place), 10
        h = (end - begin) / steps
        for k in range(steps):
            t = begin + k * h
            a = flow(t, y)
            b = flow(t + h / 2, y + h / 2 * a)
            c = flow(t + h / 2, y + h / 2 * b)
            d = flow(t + h, y + h * c)
            y = y + h / 6 * (a + 2 * b + 2 * c + d)
        flow(end, y)
        unit.completedIntegratorStep()
        unit.enterEventMode()

    ticks = [OFFSET + k * SAMPLE for k in range(12)]
    integrate(0.0, ticks[0])
    for begin, end in pairwise(ticks):
        unit.setClock(clock, [True])
        assert unit.updateDiscreteStates()[0]
        integrate(begin, end)
        assert unit.getFloat64(moved)[0] == pytest.approx(discrete(np.array([end]))[0][0], abs=1e-8)
    with pytest.raises(FMICallException):
        integrate(ticks[-1], ticks[-1] + 1e-3)
    assert "set it in event mode there before you go on" in told[-1]
    unit.freeInstance()


def test_wrong_clocks_are_refused(tmp_path: Path) -> None:
    for chosen, sentence in (
        ({"fmi": 3, "clocks": "periodical"}, "there is no choice of clocks 'periodical'; did you mean 'periodic'"),
        ({"clocks": "periodic"}, r"clocks are for native FMUs of FMI 3\.0"),
        (
            {"fmi": 3, "clocks": "periodic", "wrapper": "simulink"},
            "wrappers set no clocks; with simulink clocks must be",
        ),
        ({"fmi": 3, "clocks": "triggered", "reference": True}, "our master, which sets no clocks"),
    ):
        with pytest.raises(InputError, match=sentence):
            mbsfmu.export(controlled(), tmp_path, layout="monolithic", **chosen)
    with pytest.raises(InputError, match="clocks are those of sampled blocks, and the model has none"):
        mbsfmu.export(mbsfmu.models.built_in("pendulum-1"), tmp_path, fmi=3, clocks="periodic")
    assert not list(tmp_path.iterdir())
