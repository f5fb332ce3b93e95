"""Native FMUs with divide and conquer, and with references that move, against runs in the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from importer import Importer
from native_fmus import TIGHT, Exported, check_start_derivatives, model_of

import mbsfmu
from mbsfmu.integration.solvers import makes_equal_steps

Native = Callable[..., Exported]
CASES = [
    ("pendulum-4", "dca", "trapezoidal"),
    ("loop-4", "hdca", "trapezoidal"),
    ("loop-4", "dca", "rk45"),
    ("ball-pendulum", "double-step", "trapezoidal"),
    ("ball-pendulum", "hdca", "rk45"),
    ("ball-pendulum", "dca-alm", "trapezoidal"),
    ("five-bar", "dca-alm", "rk45"),
    ("slewing", "dca", "rk45"),
    ("bennett", "double-step", "trapezoidal"),
    ("ball-pendulum", "double-step", "bdf2"),
    ("four-bar", "penalty", "generalized-alpha"),
    ("four-bar", "dca-alm", "rk4"),
    ("ball-pendulum", "penalty", "trapezoidal"),
    # Loop equations that count change on the way: 90° of slew come at 0.39 s.
    ("slewing", "penalty", "trapezoidal"),
    ("slewing", "double-step", "rk45"),
    # Rules that remember steps: references that move, other coordinates, other loop equations and jumps of inputs.
    ("slewing", "dca", "bdf2"),
    ("four-bar", "hdca", "bdf2"),
]
STOP = {"four-bar": 1.1}  # its valve opens at 1 s


def options(formulation: str, solver: str) -> dict[str, object]:
    if makes_equal_steps(solver):
        return {"formulation": formulation, "solver": solver}
    return {"formulation": formulation, "solver": solver, "relative_tolerance": TIGHT, "absolute_tolerance": TIGHT}


def simulated(path: Path, stop: float) -> np.ndarray:
    """All outputs of a unit, every 10 ms: references move inside the communication steps."""
    return fmpy.simulate_fmu(str(path), stop_time=stop, step_size=1e-2, output_interval=1e-2)


@pytest.mark.parametrize(("name", "formulation", "solver"), CASES)
def test_unit_matches_the_interpreter(native: Native, name: str, formulation: str, solver: str) -> None:
    stop = STOP.get(name, 0.7)
    result = simulated(native(name, formulation, solver).path, stop)
    simulation = model_of(name).simulation(compiled=False, **options(formulation, solver))
    expected = simulation.run(stop, output_step=1e-2)
    names = [each for each in result.dtype.names if each in expected]
    assert len(names) >= 6
    for output in names:
        scale = np.max(np.abs(expected[output]))
        np.testing.assert_allclose(result[output], expected[output], atol=1e-9 * scale, err_msg=output)
    if name == "ball-pendulum" and formulation != "dca-alm":
        assert np.sum(np.abs(np.diff(expected["body.cardan_angle.y"])) > 0.5) >= 1, "no reference has moved"


@pytest.mark.parametrize("name", ["slewing", "bennett"])
def test_reactions_match_the_interpreter(native: Native, tmp_path: Path, name: str) -> None:
    """Those of `penalty` follow from positions and velocities, shared by redundant joints in the same way."""
    importer = Importer(native(name, "penalty").path, tmp_path / "unpacked")
    slave = importer.running()
    slave.doStep(0.0, 0.4)
    simulation = model_of(name).simulation(formulation="penalty", compiled=False)
    simulation.initialize()
    simulation.step(0.0, 0.4)
    reactions = [variable.name for variable in simulation.functions.system.reactions]
    found, expected = ([get(each) for each in reactions] for get in (partial(importer.get, slave), simulation.get))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-8 * np.max(np.abs(expected)))
    slave.freeInstance()


@pytest.mark.parametrize(("name", "formulation", "solver"), CASES)
def test_unit_is_valid(native: Native, name: str, formulation: str, solver: str) -> None:
    """With each model and formulation: descriptions are made of what these say, whatever the others are."""
    assert mbsfmu.validate(native(name, formulation, solver).path) == []


@pytest.mark.parametrize(("name", "formulation", "solver"), CASES)
def test_restored_state_repeats_to_the_last_bit(
    native: Native, tmp_path: Path, name: str, formulation: str, solver: str
) -> None:
    """Also in another instance, whose references have not moved."""
    importer = Importer(native(name, formulation, solver).path, tmp_path / "unpacked")
    slave, other = importer.running(), importer.running()
    slave.doStep(0.0, 0.4)
    state = slave.getFMUstate()
    slave.doStep(0.4, 0.1)
    expected = importer.everything(slave)
    slave.setFMUstate(state)
    slave.doStep(0.4, 0.1)
    assert importer.everything(slave) == expected
    copy = other.deSerializeFMUstate(slave.serializeFMUstate(state))
    other.setFMUstate(copy)
    other.doStep(0.4, 0.1)
    assert importer.everything(other) == expected
    slave.freeFMUstate(state)
    other.freeFMUstate(copy)
    for each in importer.slaves:
        each.freeInstance()


@pytest.mark.parametrize(
    ("name", "formulation", "solver"),
    [
        ("loop-4", "dca", "rk45"),
        ("ball-pendulum", "double-step", "trapezoidal"),
        ("ball-pendulum", "hdca", "rk45"),
        ("slewing", "dca", "rk45"),
    ],
)
def test_unit_of_python_agrees(native: Native, tmp_path: Path, name: str, formulation: str, solver: str) -> None:
    model = model_of(name)
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", backend="python", **options(formulation, solver))
    one, other = simulated(native(name, formulation, solver).path, 0.7), simulated(path, 0.7)
    assert one.dtype.names == other.dtype.names
    for output in one.dtype.names:
        scale = np.max(np.abs(other[output]))
        np.testing.assert_allclose(one[output], other[output], atol=1e-9 * scale, err_msg=output)


@pytest.mark.parametrize(
    ("name", "formulation", "solver"),
    [("ball-pendulum", "dca-alm", "trapezoidal"), ("five-bar", "dca-alm", "rk45"), ("loop-4", "hdca", "trapezoidal")],
)
def test_derivatives_of_the_start_match_differences(
    native: Native, tmp_path: Path, name: str, formulation: str, solver: str
) -> None:
    """Through loops that are closed and, in absolute coordinates, through bodies that are placed from joint angles."""
    importer = Importer(native(name, formulation, solver).path, tmp_path / "unpacked")
    askew = {each: 0.1 - 1.8 for each in ("link_1.angle_start",) if each in importer.reference}
    check_start_derivatives(importer, askew)


def test_loop_that_opens_ends_the_run_of_a_unit(tmp_path: Path) -> None:
    """With accelerations alone and an importer's tolerance of 1 %, the slewing loop drifts open."""
    given = {**options("dca", "rk45"), "stabilisation": 0.0}
    (path,) = mbsfmu.export(model_of("slewing"), tmp_path, layout="monolithic", **given)
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0, tolerance=1e-2)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    with suppress(FMICallException):
        for index in range(300):
            slave.doStep(0.01 * index, 0.01)
    assert any("the loop has come open by" in message and "at joint C" in message for _, message in importer.messages)
    slave.freeInstance()


@pytest.mark.parametrize("brief", [1e-12, 1e-9, 1e-6])
def test_brief_step_changes_nothing_in_a_unit(native: Native, tmp_path: Path, brief: float) -> None:
    """An importer that adds up times makes such a step: reactions are continuous, and energy stays."""
    importer = Importer(native("bennett", "double-step", "trapezoidal").path, tmp_path / "unpacked")
    slave = importer.running()
    slave.doStep(0.0, 0.1)
    names = [name for name in importer.reference if name.startswith("hinge_") and name.count(".") == 2]
    before, drift = np.array([importer.get(slave, name) for name in names]), importer.get(slave, "energy.drift")
    assert len(names) == 24
    slave.doStep(0.1, brief)
    after = np.array([importer.get(slave, name) for name in names])
    np.testing.assert_allclose(after, before, atol=1e-3 * np.max(np.abs(before)))
    slave.doStep(0.1 + brief, 1e-3)
    assert importer.get(slave, "energy.drift") == pytest.approx(drift, abs=1e-5)
    slave.freeInstance()


def test_start_velocities_of_a_unit(native: Native, tmp_path: Path) -> None:
    """Whichever joint's is given counts; those that contradict each other are told."""
    importer = Importer(native("bennett", "double-step", "trapezoidal").path, tmp_path / "unpacked")
    one = importer.running(**{"link_2.angular_velocity_start": 3.0})
    assert importer.get(one, "link_2.angular_velocity") == pytest.approx(3.0)
    assert importer.get(one, "link_1.angular_velocity") == pytest.approx(-importer.get(one, "link_3.angular_velocity"))
    assert not importer.messages
    two = importer.running(**{"link_1.angular_velocity_start": 3.0, "link_3.angular_velocity_start": 3.0})
    assert any("the start velocities contradict the loops" in message for _, message in importer.messages)
    for slave in (one, two):
        slave.freeInstance()
