"""Connections that were forgotten are named before a run, and what is meant to stay at zero can say so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mbsfmu
from mbsfmu import AppliedForce, Gain, JointDrive, Mechanism, StepSignal
from mbsfmu.modelling import DataError

STILL = StepSignal(times=(0.0,), values=(0.0,))


def without(*ends: str, **update: Any) -> mbsfmu.CoupledModel:
    """Return the four-bar without the connections that end so."""
    model = mbsfmu.models.four_bar()
    kept = tuple(each for each in model.connections if each[1].removeprefix("circuit.cylinder.") not in ends)
    return model.model_copy(update={"connections": kept, **update})


def driven_pendulum(**signals: StepSignal) -> mbsfmu.CoupledModel:
    plain = mbsfmu.models.pendulum(1).systems["mechanism"]
    assert isinstance(plain, Mechanism)
    machine = plain.model_copy(update={"forces": (JointDrive(name="motor", joint="joint_1"),)})
    named = {f"mechanism.{name.replace('_', '.')}": signal for name, signal in signals.items()}
    return mbsfmu.CoupledModel(name="driven", systems={"mechanism": machine}, signals=named)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (("velocity",), "'circuit.cylinder.velocity'"),
        (("length",), "'circuit.cylinder.length'"),
        (("length", "velocity"), "'circuit.cylinder.length' and 'circuit.cylinder.velocity'"),
    ],
)
def test_a_cylinder_of_a_machine_needs_its_length_and_its_velocity(missing: Sequence[str], told: str) -> None:
    with pytest.raises(DataError) as caught:
        without(*missing)
    assert str(caught.value).startswith(f"nothing drives {told}, though cylinder 'circuit.cylinder' is part of")


def test_a_cylinder_that_is_moved_by_signals_needs_both_too() -> None:
    circuit = mbsfmu.models.four_bar().systems["circuit"]
    signals = {"circuit.cylinder.length": StepSignal(times=(0.0,), values=(1.4,))}
    with pytest.raises(DataError, match=r"nothing drives 'circuit\.cylinder\.velocity'"):
        mbsfmu.CoupledModel(name="bench", systems={"circuit": circuit}, signals=signals)
    both = {**signals, "circuit.cylinder.velocity": STILL}
    assert mbsfmu.CoupledModel(name="bench", systems={"circuit": circuit}, signals=both).signals == both


def test_a_cylinder_alone_may_stand_still(caplog: pytest.LogCaptureFixture) -> None:
    bench = mbsfmu.CoupledModel(name="bench", systems={"circuit": mbsfmu.models.four_bar().systems["circuit"]})
    result = bench.simulation(compiled=False).run(0.01)
    (sentence,) = warnings(caplog)
    assert sentence.startswith("nothing drives valve.command (stays 0 V), cylinder.length (stays 1.35 m), cylinder.vel")
    assert np.ptp(result["cylinder.length"]) == 0.0


def test_an_actuator_that_nothing_drives_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    simulation = driven_pendulum().simulation(compiled=False)
    simulation.run(0.01)
    simulation.reset()
    simulation.run(0.01)
    assert warnings(caplog) == [
        "nothing drives motor.torque (stays 0 N.m): connect it, give it a signal, or set it before the run"
    ]


@pytest.mark.parametrize(
    "run",
    [
        lambda: driven_pendulum(motor_torque=STILL).simulation(compiled=False).run(0.01),
        lambda: _set_by_hand().run(0.01),
        lambda: driven_pendulum().simulation(compiled=False).step(0.0, 1e-3),
    ],
)
def test_what_is_meant_is_not_told(run: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> None:
    run()
    assert warnings(caplog) == []


def _set_by_hand() -> Any:
    simulation = driven_pendulum().simulation(compiled=False)
    simulation.set("motor.torque", 0.0)
    return simulation


def loaded_pendulum(**given: Any) -> mbsfmu.CoupledModel:
    """Two pendulums with loads of the same name, of which a gain feels one."""
    plain = mbsfmu.models.pendulum(1).systems["mechanism"]
    assert isinstance(plain, Mechanism)
    machine = plain.model_copy(update={"forces": (AppliedForce(name="load", point="link_1.end"),)})
    spring = Gain(input_unit="rad", output_unit="N", gain=-2.0)
    return mbsfmu.CoupledModel(name="loaded", systems={"one": machine, "other": machine, "spring": spring}, **given)


@pytest.mark.parametrize(
    ("driven", "told"),
    [
        ((), "xyz"),
        (("signal",), ""),
        (("connection",), ""),
        (("hand",), ""),
    ],
)
def test_a_load_in_the_plane_leaves_components_alone(
    driven: Sequence[str], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a vector that nobody drives at all, each component is named."""
    connections = [("one.link_1.angle", "spring.input")]
    connections += [("spring.output", "one.load.force.y")] if "connection" in driven else []
    signals = {"one.load.force.y": STILL} if "signal" in driven else {}
    simulation = loaded_pendulum(connections=connections, signals=signals).simulation(compiled=False)
    if "hand" in driven:
        simulation.set("one.load.force.y", 0.0)
    simulation.run(0.01)
    (sentence,) = warnings(caplog)
    named = [f"one.load.force.{axis}" for axis in told] + [f"other.load.force.{axis}" for axis in "xyz"]
    found = [each.split()[0] for each in sentence.removeprefix("nothing drives ").split("), ")]
    assert [simulation.exposed.qualified[each] for each in found] == named


def test_a_load_in_the_plane_of_a_coupled_run_is_no_mistake(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    connections = [("one.link_1.angle", "spring.input"), ("spring.output", "one.load.force.y")]
    model = loaded_pendulum(connections=connections)
    package = mbsfmu.export(model, tmp_path, layout="separate", backend="python")[-1]
    caplog.clear()
    result = mbsfmu.cosimulate(package, step=1e-2, stop=0.02)
    assert warnings(caplog) == []
    assert "one.load.force.x" in result.undriven


def test_coupled_runs_name_inputs_that_nothing_drives(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mbsfmu")
    unit = mbsfmu.export(driven_pendulum(), tmp_path, layout="separate", backend="python")[0]
    result = mbsfmu.cosimulate([unit], step=1e-2, stop=0.02)
    assert result.undriven == ["mechanism.motor.torque"]
    told = "nothing drives mechanism.motor.torque: each keeps its start value, or follows a signal inside its FMU"
    assert told in [record.getMessage() for record in caplog.records]
    driven = mbsfmu.cosimulate([unit], step=1e-2, stop=0.02, inputs={"mechanism.motor.torque": STILL})
    started = mbsfmu.cosimulate([unit], step=1e-2, stop=0.02, parameters={"mechanism.motor.torque": 0.0})
    assert driven.undriven == started.undriven == []


def test_what_is_left_to_importers_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Which is legal: no warning."""
    caplog.set_level(logging.INFO, "mbsfmu")
    mbsfmu.export(driven_pendulum(), tmp_path, backend="python")
    assert "the importer has to drive motor.torque" in caplog.messages
    caplog.clear()
    mbsfmu.export(driven_pendulum(motor_torque=STILL), tmp_path, backend="python", force=True)
    assert not [message for message in caplog.messages if "importer has to drive" in message]
    assert warnings(caplog) == []


@pytest.mark.parametrize(
    ("connection", "sentence"),
    [
        (("circuit.cylinder.force", "mechanism.cylinder.forc"), "did you mean 'cylinder.force'?"),
        (("circuit.cylinder.forces", "mechanism.cylinder.force"), "did you mean 'cylinder.force'?"),
        (("circuits.cylinder.force", "mechanism.cylinder.force"), "did you mean 'circuit'?"),
    ],
)
def test_misspelt_connections_meet_the_right_name(connection: tuple[str, str], sentence: str) -> None:
    model = mbsfmu.models.four_bar()
    with pytest.raises(DataError) as caught:
        model.model_copy(update={"connections": (connection, *model.connections[1:])}).system()
    assert str(caught.value).endswith(sentence)
