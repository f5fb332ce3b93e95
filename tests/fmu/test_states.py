"""What a saved state of an FMU is worth: to the FMU itself, to others, and after damage."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from fmpy import fmi2
from fmpy.fmi1 import FMICallException
from importer import Importer

import mbsfmu
from mbsfmu.exporting.fmu_export import BACKENDS

STEP = 1e-3


@pytest.fixture(scope="module", params=BACKENDS)
def pair(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Importer]:
    """The same pendulum in two formulations, whose states are equally long."""
    made = {}
    for formulation in ("dca", "hdca"):
        folder = tmp_path_factory.mktemp(f"{request.param}-{formulation}")
        options = {"layout": "monolithic", "backend": request.param, "formulation": formulation}
        (path,) = mbsfmu.export(mbsfmu.models.pendulum(2), folder, **options)
        made[formulation] = Importer(path, folder / "unpacked")
    return made


def restore(slave: fmi2.FMU2Slave, content: bytes) -> None:
    slave.setFMUstate(slave.deSerializeFMUstate(content))


def refused(importer: Importer, slave: fmi2.FMU2Slave, call: Callable[[], object], time: float) -> str:
    """The reason for which a state is refused: with an error, or of Python units with the next step."""
    before = len(importer.messages)
    with pytest.raises(FMICallException) as failure:  # noqa: PT012 - whichever of the two it is
        call()
        slave.doStep(time, STEP)
    assert "fatal" not in str(failure.value)
    errors = [message for status, message in importer.messages[before:] if status == fmi2.fmi2Error]
    return errors[0]


def test_state_of_another_unit_is_refused(pair: dict[str, Importer]) -> None:
    ours, other = pair["hdca"].running(), pair["dca"].running()
    state = other.getFMUstate()
    content = other.serializeFMUstate(state)
    expected = pair["hdca"].everything(ours)
    for call in (lambda: restore(ours, content), lambda: ours.setFMUstate(state)):
        reason = refused(pair["hdca"], ours, call, 0.0)
        assert "the saved state is refused: it is the state of another FMU" in reason
        assert pair["hdca"].everything(ours) == expected
    other.freeFMUstate(state)


def test_state_that_was_damaged_is_refused(pair: dict[str, Importer]) -> None:
    importer = pair["dca"]
    slave = importer.running()
    slave.doStep(0.0, STEP)
    state = slave.getFMUstate()
    content = slave.serializeFMUstate(state)
    expected = importer.everything(slave)
    for place in range(0, len(content), 7):
        wrong = bytearray(content)
        wrong[place] ^= 1 << place % 8
        reason = refused(importer, slave, lambda: restore(slave, bytes(wrong)), STEP)  # noqa: B023 - called at once
        assert "the saved state is refused" in reason
    for wrong in (b"", content[:-1], content + b"\0"):
        refused(importer, slave, lambda: restore(slave, wrong), STEP)  # noqa: B023
    assert importer.everything(slave) == expected
    restore(slave, content)
    slave.doStep(STEP, STEP)
    slave.freeFMUstate(state)


def test_refused_value_is_part_of_the_state(
    pair: dict[str, Importer], four_bar_fmus: dict[str, Path], tmp_path: Path
) -> None:
    """A state from before the refusal goes on; one from after it is still refused where the FMU was stopped by it."""
    importer = Importer(four_bar_fmus["four-bar"], tmp_path / "unpacked")
    slave = importer.running()
    saved = slave.getFMUstate()
    with suppress(FMICallException):
        importer.set(slave, "valve.command", float("nan"))
    with suppress(FMICallException):
        slave.doStep(0.0, STEP)
    slave.setFMUstate(saved)
    slave.doStep(0.0, STEP)
    slave.freeFMUstate(saved)
    slave.freeInstance()


def test_flags_of_a_python_unit_are_part_of_its_state(tmp_path: Path) -> None:
    """A state saved in initialization mode leads back into it: parameters can be set again, and count."""
    (path,) = mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="monolithic", backend="python")
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0, stopTime=1.0)
    slave.enterInitializationMode()
    state = slave.getFMUstate()
    slave.exitInitializationMode()
    slave.doStep(0.0, STEP)
    slave.setFMUstate(state)
    importer.set(slave, "link_1.angle_start", 0.5)
    slave.exitInitializationMode()
    assert importer.get(slave, "link_1.angle") == 0.5
    with pytest.raises(FMICallException):
        slave.doStep(0.0, 2.0)  # the stop time, too
    slave.doStep(0.0, STEP)
    slave.freeFMUstate(state)


def test_restored_inputs_are_held_and_outputs_are_those_of_the_state(
    four_bar_fmus: dict[str, Path], tmp_path: Path
) -> None:
    """Before the valve was set by hand it follows its signal; what was read last is not what is read then."""
    importer = Importer(four_bar_fmus["four-bar"], tmp_path / "unpacked")
    slave, untouched = importer.running(), importer.running()
    free = slave.getFMUstate()
    importer.set(slave, "valve.command", -7.0)
    held = slave.getFMUstate()
    slave.doStep(0.0, 0.02)
    untouched.doStep(0.0, 0.02)
    moved, calm = importer.everything(slave), importer.everything(untouched)
    assert moved != calm
    slave.setFMUstate(free)
    slave.doStep(0.0, 0.02)
    assert importer.everything(slave) == calm
    slave.setFMUstate(held)
    slave.doStep(0.0, 0.02)
    assert importer.everything(slave) == moved
    begin = importer.everything(importer.running())
    slave.setFMUstate(free)
    assert importer.everything(slave) == begin
    slave.freeFMUstate(free)
    slave.freeFMUstate(held)


def test_reset_lets_inputs_follow_their_signals_again(four_bar_fmus: dict[str, Path], tmp_path: Path) -> None:
    importer = Importer(four_bar_fmus["four-bar"], tmp_path / "unpacked")
    slave = importer.running(**{"valve.command": 3.0})
    slave.doStep(0.0, STEP)
    slave.reset()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    assert importer.get(slave, "valve.command") == 0.0
    for index in range(110):
        slave.doStep(index * 0.01, 0.01)
    assert importer.get(slave, "valve.command") == 10.0
