"""Loops in space, cut at each of their joints: the motion of the bodies is the same in every formulation."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from spatial_loops import LOOPS, loop_of

from mbsfmu.simulation.run_result import Result
from mbsfmu.stepping.iteration import NewtonTolerances
from mbsfmu.tracing.workspace import Floats

TIGHT = {"solver": "dop853", "relative_tolerance": 1e-10, "absolute_tolerance": 1e-10, "step": 0.05}
STOP = 0.5
COARSE = {"R-U-U-C": 5e-3, "R-S-U-R": 5e-3, "R-S-weld-U-R": 2.5e-3}
"""Steps in s of the coarser run, where it is not 1e-2: there terms of higher order make 4.5 of the 4, or references of
balls move along, which changes the constant of the error."""
CUTS = [
    (name, cut, ("dca", "double-step", "hdca")[cut % 3]) for name, joints in LOOPS.items() for cut in range(len(joints))
]
"""Each joint by one formulation, which find the same equations of the loop."""


def run(name: str, cut: int, formulation: str, **options: object) -> Result:
    simulation = loop_of(name, cut).simulation(formulation=formulation, compiled=False, **options)
    return simulation.run(STOP, output_step=0.05)


def centres(name: str, result: Result) -> Floats:
    bodies = range(1, len(LOOPS[name]))
    return np.stack([result[f"body_{body}.centre.{axis}.position"] for body in bodies for axis in "xyz"])


@cache
def expected(name: str) -> Floats:
    """Coordinate partitioning, cut at the first joint."""
    return centres(name, run(name, 0, "double-step", **TIGHT))


def same_motion(name: str, cut: int, formulation: str, **options: float) -> Result:
    result = run(name, cut, formulation, **TIGHT, **options)
    assert np.min(np.ptp(expected(name), axis=1)) > 1e-3, "every centre moves"
    np.testing.assert_allclose(centres(name, result), expected(name), rtol=0.0, atol=1e-8)
    assert np.max(np.abs(result["energy.drift"])) < 1e-7 * np.max(result["energy.kinetic"])
    return result


@pytest.mark.parametrize("name", ["R-U-U-C", "R-S-weld-U-R", "R-R-U-E"])
def test_momenta_keep_loops_closed_in_velocity_and_accelerations_do_not(name: str) -> None:
    """Cut in the middle, at the joint of most freedoms but one."""
    cut = len(LOOPS[name]) // 2
    by_accelerations, by_momenta = (
        same_motion(name, cut, formulation, stabilisation=0.0) for formulation in ("dca", "hdca")
    )
    assert by_momenta.largest("constraint.velocity") < 1e-12
    assert by_accelerations.largest("constraint.velocity") > 1e-11


@pytest.mark.parametrize(("name", "cut", "formulation"), CUTS)
def test_any_joint_can_be_cut(name: str, cut: int, formulation: str) -> None:
    same_motion(name, cut, formulation)


@pytest.mark.parametrize(
    ("name", "formulation"),
    [
        *((name, "double-step") for name in ("R-U-U-C", "R-S-U-R")),
        *((name, "penalty") for name in ("R-S-U-P", "R-S-weld-U-R", "R-R-U-E")),
    ],
)
def test_trapezoidal_rule_comes_nearer_with_the_square_of_the_step(name: str, formulation: str) -> None:
    """Cut at the last joint; Newton's tolerance is small beside the rule's error, which matters to the penalty most."""
    step = COARSE.get(name, 1e-2)
    options = {"formulation": formulation, "tolerances": NewtonTolerances(coordinates=1e-11)}
    runs = [run(name, len(LOOPS[name]) - 1, step=step, **options) for step in (step, step / 2.0)]
    errors = [np.max(np.abs(centres(name, each) - expected(name))) for each in runs]
    assert errors[0] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)
