"""Coupled, monolithic and tight runs are held against each other variable by variable, whatever names these have there.

Shafts that constant torques turn give the expectation: by φ = τ t² / (2 J), which every run has to round-off.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mbsfmu
from mbsfmu import Beam, CoupledModel, Gain, JointDrive, Mechanism, Revolute, Shaft, StepSignal
from mbsfmu.base.executors import InlineExecutor

STOP, STEP, TORQUE = 0.2, 1e-2, 3.0
ONE = {"s": 2.0}
SEVERAL = {"s": 2.0, "arm": 5.0, "mech_arm": 7.0}
"""Moments of inertia of shafts by the names of their systems: one is the arm's, others begin or end alike."""


def machine(inertias: dict[str, float]) -> CoupledModel:
    """An arm with a spring by a gain beside shafts that know nothing of it."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(Beam(name="arm", length=1.0, mass=5.0),),
        joints=(Revolute(name="O", parent="ground.O", child="arm.start"),),
        forces=(JointDrive(name="drive", joint="O"),),
    )
    shafts = {name: Shaft(inertia=inertia, torques=("torque",)) for name, inertia in inertias.items()}
    return CoupledModel(
        name="arm-and-shafts",
        systems={"mech": mechanism, "gain": Gain(input_unit="rad", output_unit="N.m", gain=-20.0), **shafts},
        connections=(("mech.arm.angle", "gain.input"), ("gain.output", "mech.drive.torque")),
        signals={f"{name}.torque": StepSignal(times=(0.0,), values=(TORQUE,)) for name in shafts},
        stop_time=STOP,
    )


def turned(inertia: float, time: np.ndarray) -> np.ndarray:
    return TORQUE * time**2 / (2.0 * inertia)


@pytest.mark.parametrize("inertias", [ONE, SEVERAL])
def test_coupled_runs_are_compared_variable_by_variable(inertias: dict[str, float]) -> None:
    """The arm's angle is late by a step; shafts, which are coupled to nothing, are right."""
    model = machine(inertias)
    names = model.simulation(step=STEP).exposed.by_system
    made = mbsfmu.compare(model, steps=[STEP], algorithms=["jacobi"], workers=1)
    (run,) = made.runs
    assert run.status == "ok", run.message
    assert min(run.error[names["mech.arm.angle"]], run.error_total[names["mech.arm.angle"]]) > 1e-3
    for system, inertia in inertias.items():
        name = names[f"{system}.angle"]
        assert max(run.error[name], run.error_total[name], made.reference["error"][name]) < 1e-8
        drawn = run.curves.outputs[name]
        np.testing.assert_allclose(made.reference_run[name], turned(inertia, made.reference_run.time), atol=1e-8)
        np.testing.assert_allclose(drawn.y, turned(inertia, drawn.x), atol=1e-8)


@pytest.mark.parametrize("inertias", [ONE, SEVERAL])
def test_layouts_have_the_same_variables(inertias: dict[str, float], tmp_path: Path) -> None:
    model = machine(inertias)
    simulation = model.simulation(step=STEP)
    paths = mbsfmu.export(model, tmp_path, layout="both", step=STEP, backend="python")
    separate = mbsfmu.cosimulate(paths[-1], step=STEP)
    whole = mbsfmu.cosimulate([tmp_path / "arm-and-shafts.fmu"], step=STEP)
    alone = simulation.run(STOP)
    for system, inertia in inertias.items():
        name = simulation.exposed.by_system[f"{system}.angle"]
        for result, signal in ((separate, f"{system}.angle"), (whole, f"arm-and-shafts.{name}"), (alone, name)):
            np.testing.assert_allclose(result[signal], turned(inertia, result.time), atol=1e-8)


def test_studies_tell_final_values_and_errors_of_every_output() -> None:
    model = machine(SEVERAL)
    names = model.simulation(step=STEP).exposed.by_system
    settings = {"algorithm": ["jacobi"], "step": [STEP], "formulation": ["double-step", "dca-alm"]}
    given = {"settings": settings, "errors": True, "internal_step": STEP, "backend": "python"}
    table = mbsfmu.sweep(model, {"mech.arm.mass": [5.0]}, executor=InlineExecutor(), **given)
    for row in table.rows:
        assert row["status"] == "ok", row["message"]
        assert row[f"error.{names['mech.arm.angle']}"] > 1e-3
        for system, inertia in SEVERAL.items():
            name = names[f"{system}.angle"]
            assert row[f"final.{name}"] == pytest.approx(turned(inertia, np.array(STOP)), abs=1e-8)
            assert row[f"error.{name}"] < 1e-8


def test_starts_are_those_of_the_system_that_is_connected() -> None:
    """A shaft that is called as the arm is starts at an angle of its own."""
    model = machine(SEVERAL)
    systems = {**model.systems, "reader": Gain(input_unit="rad", output_unit="1", gain=1.0)}
    systems["arm"] = Shaft(inertia=1.0, torques=("torque",), initial_angle=0.7)
    connections = (*model.connections, ("arm.angle", "reader.input"))
    made = model.model_copy(update={"systems": systems, "connections": connections})
    assert made.starts(step=STEP)["reader"]["input"] == pytest.approx(0.7)
