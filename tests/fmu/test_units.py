"""Life of the exported FMUs, through FMPy as an importer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from ctypes import byref
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy import fmi2
from fmpy.fmi1 import FMICallException
from importer import Importer

import mbsfmu
from mbsfmu.exporting.fmu_export import BACKENDS

UNITS = (*BACKENDS, "native-3")


@pytest.fixture
def importer(four_bar_fmus: dict[str, Path], tmp_path: Path) -> Iterator[Importer]:
    made = Importer(four_bar_fmus["four-bar"], tmp_path / "unpacked")
    yield made
    for slave in made.slaves:
        slave.freeInstance()


def advance(slave: fmi2.FMU2Slave, begin: int, end: int, step: float = 1e-3) -> None:
    for index in range(begin, end):
        slave.doStep(index * step, step)


def test_unit_matches_the_run_in_process(four_bar_fmus: dict[str, Path]) -> None:
    expected = mbsfmu.models.four_bar().simulation().run(1.2)
    result = fmpy.simulate_fmu(str(four_bar_fmus["four-bar"]), stop_time=1.2, step_size=1e-3, output_interval=1e-3)
    for name in ("boom.angle", "cylinder.length", "cylinder.velocity", "cylinder.force"):
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-9, atol=1e-12)
    assert np.ptp(result["cylinder.length"]) > 1e-3  # the valve opened: it is no comparison of standstills


def test_fixed_parameter_takes_effect(importer: Importer) -> None:
    light, heavy = importer.running(), importer.running(**{"boom.mass": 450.0})
    # By hand: the static force is √2 g (3 m₁ + 2 m₂ + m₃).
    assert importer.get(light, "cylinder.static_force") == pytest.approx(11029.380862, rel=1e-9)
    expected = np.sqrt(2.0) * 9.81 * (3 * 450.0 + 2 * 35.0 + 50.0)
    assert importer.get(heavy, "cylinder.static_force") == pytest.approx(expected, rel=1e-12)


def test_outputs_follow_settings_in_initialization_mode(importer: Importer) -> None:
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    forces = []
    for mass in (225.0, 450.0, 225.0):
        importer.set(slave, "boom.mass", mass)
        forces.append(importer.get(slave, "cylinder.force"))
    assert forces[0] == forces[2] != forces[1]


def test_restored_state_repeats_to_the_last_bit(importer: Importer) -> None:
    slave = importer.running()
    advance(slave, 0, 1005)
    state = slave.getFMUstate()
    advance(slave, 1005, 1030)
    first = importer.everything(slave)
    slave.setFMUstate(state)
    advance(slave, 1005, 1030)
    assert importer.everything(slave) == first
    serialized = slave.serializeFMUstate(state)
    slave.freeFMUstate(state)
    other = importer.running()
    advance(other, 0, 3)
    copy = other.deSerializeFMUstate(serialized)
    other.setFMUstate(copy)
    advance(other, 1005, 1030)
    assert importer.everything(other) == first
    other.freeFMUstate(copy)


def test_instances_do_not_disturb_each_other(importer: Importer) -> None:
    alone = importer.running()
    advance(alone, 0, 20)
    expected = importer.everything(alone)
    one, two = importer.running(), importer.running(**{"boom.mass": 300.0})
    for index in range(20):
        one.doStep(index * 1e-3, 1e-3)
        two.doStep(index * 1e-3, 1e-3)
    assert importer.everything(one) == expected
    assert importer.everything(two) != expected


def test_any_communication_step_works(importer: Importer) -> None:
    slave = importer.running()
    for index in range(100):
        slave.doStep(index * 0.0123, 0.0123)
    expected = mbsfmu.models.four_bar().simulation(step=1e-4).run(1.23)
    assert importer.get(slave, "cylinder.length") == pytest.approx(expected["cylinder.length"][-1], abs=1e-6)


def test_set_input_takes_the_place_of_the_signal(importer: Importer) -> None:
    slave = importer.running()
    importer.set(slave, "valve.command", 0.0)
    advance(slave, 0, 1100)
    assert importer.get(slave, "cylinder.velocity") == pytest.approx(0.0, abs=1e-9)


def test_unit_tells_its_next_event(importer: Importer) -> None:
    """The valve's signal jumps at 1, 2.5, 5 and 8 s; a restored unit knows again, one that follows nothing has none."""
    slave = importer.running()
    state = slave.getFMUstate()
    told = []
    for time, step in ((0.0, 0.9), (0.9, 0.1), (1.0, 1.5), (2.5, 4.0), (6.5, 1.5)):
        told.append(importer.get(slave, "next_event"))
        slave.doStep(time, step)
    assert told == [1.0, 1.0, 2.5, 5.0, 8.0]
    assert importer.get(slave, "next_event") > 1e300
    slave.setFMUstate(state)
    assert importer.get(slave, "next_event") == 1.0
    importer.set(slave, "valve.command", 0.0)
    assert importer.get(slave, "next_event") > 1e300
    slave.freeFMUstate(state)


def test_reset_starts_anew(importer: Importer) -> None:
    slave = importer.running(**{"boom.mass": 300.0})
    advance(slave, 0, 5)
    slave.reset()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    assert importer.get(slave, "boom.mass") == 225.0


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("valve.command", float("nan"), "valve.command = nan is refused: it must be a finite number"),
        ("boom.mass", 300.0, "boom.mass is a fixed parameter; it cannot be set after initialization mode"),
    ],
)
def test_refused_value_reaches_the_log(importer: Importer, name: str, value: float, reason: str) -> None:
    slave = importer.running()

    def use() -> None:  # a Python unit cannot refuse in a setter: it refuses the step
        importer.set(slave, name, value)
        slave.doStep(0.0, 1e-3)

    with pytest.raises(FMICallException):
        use()
    assert any(reason in message for _, message in importer.messages)


def test_unit_goes_on_when_a_refused_value_is_mended(importer: Importer) -> None:
    slave = importer.running()
    with suppress(FMICallException):
        importer.set(slave, "valve.command", float("nan"))
    importer.set(slave, "valve.command", 1.0)
    advance(slave, 0, 2)
    assert importer.get(slave, "valve.spool") > 0.0


@pytest.mark.parametrize(
    ("time", "step", "reason"),
    [(0.0, 0.0, "the step is 0 s; it must be positive"), (0.5, 1e-3, "the step begins at t = 0.5 s")],
)
def test_refused_step_reaches_the_log(importer: Importer, time: float, step: float, reason: str) -> None:
    slave = importer.running()
    with pytest.raises(FMICallException):
        slave.doStep(time, step)
    assert any(reason in message for _, message in importer.messages)


def test_impossible_mechanism_reaches_the_log(importer: Importer) -> None:
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    importer.set(slave, "rocker.length", 0.1)
    importer.set(slave, "link.length", 0.1)
    with pytest.raises(FMICallException):
        slave.exitInitializationMode()
    assert any("cannot be assembled" in message for _, message in importer.messages)
    importer.slaves.remove(slave)  # fatal: the standard forbids every further call


def test_different_units_live_in_one_process(four_bar_fmus: dict[str, Path], tmp_path: Path) -> None:
    importers = [Importer(four_bar_fmus[name], tmp_path / name) for name in ("mechanism", "circuit")]
    slaves = [importer.running() for importer in importers]
    for importer, slave in zip(importers, slaves, strict=True):
        advance(slave, 0, 10)
        force = importer.get(slave, "cylinder.force")
        assert force == pytest.approx(11029.380862, rel=1e-9)
        assert byref(importer.callbacks) is not None
    for slave in slaves:
        slave.freeInstance()


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    model = mbsfmu.models.pendulum(1)
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic")
    content = path.read_bytes()
    with pytest.raises(mbsfmu.InputError, match="exists; say --force"):
        mbsfmu.export(model, tmp_path, layout="monolithic")
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_step_beyond_the_stop_time_is_refused(importer: Importer) -> None:
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0, stopTime=0.01)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    with pytest.raises(FMICallException):
        slave.doStep(0.0, 0.02)
    assert any("after the stop time of 0.01 s" in message for _, message in importer.messages)
    slave.doStep(0.0, 0.01)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"cylinder.rod_diameter": 0.09}, "cylinder.piston_diameter is 0.08"),
        ({"cylinder.piston_diameter": 0.03}, "it must be greater than cylinder.rod_diameter, 0.035"),
        ({"throttle.discharge_coefficient": 1.5}, "it must be between 1e-12 and 1"),
        ({"throttle.discharge_coefficient": -1.5}, "it must be between 1e-12 and 1"),
    ],
)
def test_impossible_parameters_are_refused(importer: Importer, values: dict[str, float], reason: str) -> None:
    """What must hold between two parameters shows at initialization, bounds of one at once."""
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()

    def use() -> None:
        for name, value in values.items():
            importer.set(slave, name, value)
        slave.exitInitializationMode()

    with pytest.raises(FMICallException):
        use()
    assert any(reason in message for _, message in importer.messages)
    if slave in importer.slaves:
        importer.slaves.remove(slave)  # of a Python unit a failed initialization is fatal
