"""What tests of ensembles have in common: models, and machines held against single runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from driven_crank import ROD, driven_crank
from mechanisms import floating
from overconstrained import TIMES, bennett_reference

from mbsfmu import CoupledModel, EnsembleResult, Result
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.models import bennett
from mbsfmu.native.ensemble_library import vectors_of_this_machine

LANES = [each for each in (2, 4, 8) if has_compiler() and each <= vectors_of_this_machine().lanes]
"""Numbers of lanes that this machine has."""


def assert_machine(result: EnsembleResult, machine: int, run: Result, share: float) -> None:
    """Compare a machine with a single run; energies, and signals that are round-off, are not compared."""
    for name in result:
        magnitude = np.max(np.abs(run[name]))
        if magnitude > 1e-6 and "energy" not in name:
            scale = max(float(np.ptp(run[name])), 1e-2 * magnitude)
            np.testing.assert_allclose(result[name][machine], run[name], rtol=0.0, atol=share * scale, err_msg=name)


def cranks_that_choose(**options: Any) -> tuple[CoupledModel, EnsembleResult, list[dict[str, float]]]:
    """Slider-cranks with a crank nearly as long as the rod, and what to set for the single run of each."""
    mechanism = driven_crank().systems["mechanism"].model_copy(update={"constraints": ()})
    model = CoupledModel(name="crank", systems={"mechanism": mechanism})
    crank, angles = 0.98 * ROD, np.array([0.1, 0.5, 2.5])
    rod = -angles - np.arcsin(crank * np.sin(angles))
    slide = crank * np.cos(angles) + ROD * np.sqrt(1.0 - (crank * np.sin(angles)) ** 2)
    starts = {"crank.angle": angles, "rod.angle": rod, "slider.displacement": slide, "crank.angular_velocity": 6.0}
    result = model.ensemble({"crank.length": crank}, starts=starts, **options).run(
        1.0, output_step=0.01, outputs=["*.angle", "*velocity", "slider.displacement", "energy.kinetic"]
    )
    values = [
        {
            "crank.length": crank,
            **{f"{name}_start": float(np.broadcast_to(value, 3)[machine]) for name, value in starts.items()},
        }
        for machine in range(3)
    ]
    return model, result, values


def assert_bennett(options: dict[str, Any], single: dict[str, Any], angle: float, force: float) -> None:
    """Bennett's linkage, whose mass has no influence on its motion: by its closed form, loads on hinges with it.

    `angle` and `force` are the tolerances in rad, and of forces relatively and in N.
    """
    factors = np.array([1.0, 3.0])
    model = bennett()
    scaled = {
        each.name: factors * float(each.start or 0.0)
        for each in model.simulation(compiled=False, **single).variables
        if each.name.endswith(".mass") or ".inertia_" in each.name
    }
    result = model.ensemble(scaled, **options).run(1.25, output_step=0.25, outputs=["link_1.angle", "hinge_2.force.?"])
    rows = [round(time / 0.25) for time in TIMES["bennett"]]
    for machine in range(2):
        np.testing.assert_allclose(result["link_1.angle"][machine, rows], bennett_reference()[0], atol=angle)
    for axis in "xyz":
        light, heavy = result[f"hinge_2.force.{axis}"]
        np.testing.assert_allclose(heavy, 3.0 * light, rtol=force, atol=force)


def tumbling(inertia: np.ndarray, energy: float, **options: Any) -> tuple[CoupledModel, EnsembleResult]:
    """Bodies that tumble, whose references move in ways of their own; `energy` is the tolerance of the kinetic one."""
    model = floating()
    outputs = ["body.quaternion.?", "body.angular_velocity.?", "body.cardan_angle.y", "energy.kinetic"]
    result = model.ensemble({"body.inertia_xx": inertia}, **options).run(3.0, output_step=0.01, outputs=outputs)
    kinetic = result["energy.kinetic"]
    np.testing.assert_allclose(kinetic, np.repeat(kinetic[:, :1], kinetic.shape[1], axis=1), rtol=energy)
    moved = [np.flatnonzero(np.abs(np.diff(angle)) > 0.5).tolist() for angle in result["body.cardan_angle.y"]]
    assert moved[0]
    assert moved[0] != moved[1]
    return model, result
