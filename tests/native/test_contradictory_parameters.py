"""Parameters that are changed in a run and contradict each other: no step is made until they are set right."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable
from contextlib import suppress

import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from importer import Importer

import mbsfmu
from mbsfmu import CoupledModel, InputError, Integrator, JointSpringDamper, Limiter, Mechanism, Revolute, RigidBody
from mbsfmu.exporting.fmu_export import BACKENDS
from mbsfmu.io.signals import StepSignal
from mbsfmu.native.compiled import CompiledRunner
from mbsfmu.simulation.simulation import Simulation

STEP = 0.1
SENTENCE = "limiter.maximum is 1; it must be greater than limiter.minimum, 2"
CONTRADICTORY, RIGHT = ("limiter.minimum", 2.0), ("limiter.maximum", 3.0)
DAMPED = ("hinge.damping", 2.0)


def model() -> CoupledModel:
    """An input of 0.3 between limits, integrated, beside a pendulum with a spring and a damper."""
    arm = RigidBody(name="arm", mass=2.0, inertia=(0.1, 0.1, 0.1), points={"end": (0.5, 0.0, 0.0)})
    pendulum = Mechanism(
        ground={"O": (0, 0, 0)},
        bodies=(arm,),
        joints=(Revolute(name="pin", parent="ground.O", child="arm.end"),),
        forces=(JointSpringDamper(name="hinge", joint="pin", stiffness=30.0, damping=0.1, free_coordinate=0.2),),
    )
    return CoupledModel(
        name="limited",
        systems={"pendulum": pendulum, "limiter": Limiter(minimum=-1.0, maximum=1.0), "sum": Integrator()},
        connections=[("limiter.output", "sum.input")],
        signals={"limiter.input": StepSignal(times=(0.0,), values=(0.3,))},
    )


def running(compiled: bool, solver: str = "rodas5p") -> Simulation:
    simulation = model().simulation(solver=solver, compiled=compiled)
    assert isinstance(simulation.runner, CompiledRunner) == compiled
    simulation.initialize()
    simulation.step(0.0, STEP)
    return simulation


def finished(simulation: Simulation, parameters: Iterable[tuple[str, float]]) -> Simulation:
    for name, value in parameters:
        simulation.set(name, value)
    for _ in range(4):
        simulation.step(simulation.time, STEP)
    return simulation


@pytest.mark.parametrize("compiled", [False, True])
def test_step_is_refused_until_they_are_set_right(compiled: bool) -> None:
    """The integral of 0.3 over one step, and of 2 over the next: what was refused in between has left nothing."""
    simulation = running(compiled)
    simulation.set(*CONTRADICTORY)
    for call in (lambda: simulation.step(STEP, STEP), lambda: simulation.get("sum.output")):
        with pytest.raises(InputError, match=f"^{re.escape(SENTENCE)}$"):
            call()
    assert simulation.time == STEP
    assert simulation.get("minimum") == 2.0
    saved = simulation.save()
    simulation.set("minimum", -1.0)
    assert simulation.get("sum.output") == pytest.approx(0.3 * STEP, rel=1e-12)
    simulation.step(STEP, STEP)
    assert simulation.get("sum.output") == pytest.approx(0.6 * STEP, rel=1e-12)
    simulation.restore(saved)
    with pytest.raises(InputError, match=f"^{re.escape(SENTENCE)}$"):
        simulation.step(STEP, STEP)
    simulation.set(*RIGHT)
    assert simulation.get("limiter.output") == 2.0
    simulation.step(STEP, STEP)
    assert simulation.get("sum.output") == pytest.approx(2.3 * STEP, rel=1e-12)


def test_run_anew_forgets_a_contradiction() -> None:
    simulation = running(compiled=False)
    simulation.set(*CONTRADICTORY)
    with pytest.raises(InputError, match=f"^{re.escape(SENTENCE)}$"):
        simulation.run(STEP)
    simulation.reset()
    assert simulation.run(STEP)["sum.output"][-1] == pytest.approx(0.3 * STEP, rel=1e-12)


@pytest.mark.parametrize("solver", ["trapezoidal", "rodas5p"])
def test_order_in_which_they_are_set_does_not_matter(solver: str, caplog: pytest.LogCaptureFixture) -> None:
    """What is set between the two counts too, and drift until then stays what it was."""
    there = finished(running(compiled=False, solver=solver), (RIGHT, DAMPED, CONTRADICTORY))
    with caplog.at_level(logging.WARNING):
        other = finished(running(compiled=False, solver=solver), (CONTRADICTORY, DAMPED, RIGHT))
    assert not caplog.records
    np.testing.assert_allclose(other.energy_watch.numbers, there.energy_watch.numbers, rtol=1e-12, atol=1e-12)
    for variable in there.continuous:
        assert other.get(variable.name) == pytest.approx(there.get(variable.name), rel=1e-12, abs=1e-12)


@pytest.fixture(scope="module", params=BACKENDS)
def importer(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Importer:
    folder = tmp_path_factory.mktemp(f"contradictory-{request.param}")
    options = {"layout": "monolithic", "backend": request.param, "solver": "rodas5p"}
    (path,) = mbsfmu.export(model(), folder, **options)
    return Importer(path, folder / "unpacked")


def test_step_of_a_unit_is_refused_until_they_are_set_right(importer: Importer) -> None:
    slave = importer.running()
    slave.doStep(0.0, STEP)
    del importer.messages[:]
    importer.set(slave, *CONTRADICTORY)
    with pytest.raises(FMICallException):
        slave.doStep(STEP, STEP)
    with suppress(FMICallException):  # units in Python have no words for it but the log's
        assert math.isnan(importer.get(slave, "sum.output"))
    assert [message.endswith(SENTENCE) for _, message in importer.messages] == [True, True]
    assert importer.get(slave, "limiter.minimum") == 2.0
    saved = slave.getFMUstate()
    importer.set(slave, "limiter.minimum", -1.0)
    assert importer.get(slave, "sum.output") == pytest.approx(0.3 * STEP, rel=1e-12)
    slave.doStep(STEP, STEP)
    slave.setFMUstate(saved)
    with pytest.raises(FMICallException):
        slave.doStep(STEP, STEP)
    importer.set(slave, *DAMPED)
    importer.set(slave, *RIGHT)
    assert importer.get(slave, "limiter.output") == 2.0
    slave.doStep(STEP, STEP)
    assert importer.get(slave, "sum.output") == pytest.approx(2.3 * STEP, rel=1e-12)
    for index in range(2, 5):
        slave.doStep(index * STEP, STEP)
    there = finished(running(compiled=False), (RIGHT, DAMPED, CONTRADICTORY))
    for name in ("sum.output", "arm.angle", "energy.drift"):
        assert importer.get(slave, name) == pytest.approx(there.get(name), rel=1e-9, abs=1e-9)
    assert all("not resolved" not in message for _, message in importer.messages)
    slave.freeFMUstate(saved)


def test_unit_with_a_contradiction_can_be_ended(importer: Importer) -> None:
    slave = importer.running()
    slave.doStep(0.0, STEP)
    importer.set(slave, *CONTRADICTORY)
    slave.terminate()
    slave.reset()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    slave.doStep(0.0, STEP)
    assert importer.get(slave, "sum.output") == pytest.approx(0.3 * STEP, rel=1e-12)
