"""Runs with divide and conquer: published motions, drift of loops, conservation."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import mbsfmu
from mbsfmu.simulation.run_result import Result

LOOPS = ("loop-4", "loop-8", "double-loop-8")
FORMULATIONS = ("dca", "hdca")


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_pendulum_of_16_links(formulation: str) -> None:
    """The tip after 10 s as two engines that share no code with ours have it, to what these agree on."""
    options = {"solver": "dop853", "relative_tolerance": 1e-12, "absolute_tolerance": 1e-12, "step": 1.0}
    result = mbsfmu.models.pendulum(16).simulation(formulation=formulation, **options).run(10.0)
    direction = sum(result[f"link_{number}.angle"][-1] for number in range(1, 17))
    tip = [
        result[f"link_16.centre.{axis}.position"][-1] + 0.5 * turn(direction)
        for axis, turn in (("x", np.cos), ("y", np.sin))
    ]
    np.testing.assert_allclose(tip, (-5.000014, -7.316325), rtol=0.0, atol=2e-6)
    assert result.largest("energy.drift") < 1e-7


@cache
def swinging(name: str, formulation: str, tolerance: float = 1e-6, push: float = 0.0) -> Result:
    options = {"solver": "rk45", "relative_tolerance": tolerance, "absolute_tolerance": tolerance, "step": 0.05}
    options["stabilisation"] = 0.0  # as published
    if formulation == "hdca":
        options["restart_momenta"] = False
    simulation = mbsfmu.models.built_in(name).simulation(formulation=formulation, **options)
    simulation.set("link_1.angular_velocity_start", push)
    simulation.set("link_2.angular_velocity_start", -push)
    return simulation.run(10.0)


@pytest.mark.parametrize("name", LOOPS)
def test_drift_of_loops(name: str) -> None:
    """Momenta keep loops closed in velocity to round-off; accelerations let them drift (negative control)."""
    by_accelerations, by_momenta = (swinging(name, formulation, push=0.6) for formulation in FORMULATIONS)
    assert by_momenta.largest("constraint.velocity") < 1e-11
    assert by_accelerations.largest("constraint.velocity") > 1e-6
    assert by_accelerations.largest("constraint.position") > 5 * by_momenta.largest("constraint.position")
    assert by_momenta.largest("constraint.position") < 1e-4
    for result in (by_accelerations, by_momenta):
        assert result.largest("energy.drift") < 1e-3 * np.max(result["energy.kinetic"])


def asymmetry(result: Result, links: int) -> float:
    """Largest difference between the angles of links opposite to each other in a ring whose top is the ground."""
    pairs = [(2 + index, links - index) for index in range(links // 2 - 1)]
    return float(max(np.max(np.abs(result[f"link_{a}.angle"] - result[f"link_{b}.angle"])) for a, b in pairs))


@pytest.mark.parametrize(("name", "links"), [("loop-4", 4), ("loop-8", 8)])
def test_accelerations_keep_symmetry(name: str, links: int) -> None:
    """Symmetry is linear in the angles: Runge-Kutta methods keep what the accelerations keep."""
    assert asymmetry(swinging(name, "dca"), links) < 1e-9


def test_momenta_lose_symmetry_with_the_tolerance() -> None:
    """Symmetry is no linear relation of momenta, and the symmetric motion is unstable: errors grow, but as errors.

    The growth is the mechanism's own: with accelerations a small asymmetric push grows as much.
    """
    coarse, fine = (asymmetry(swinging("loop-4", "hdca", tolerance), 4) for tolerance in (1e-6, 1e-8))
    assert fine < 1e-3
    assert coarse / fine > 50
    assert asymmetry(swinging("loop-4", "dca", push=1e-6), 4) > 1e-3


def test_double_loop_closes_along_linear_relations() -> None:
    """From rest the double loop stays symmetric; its equations then are linear in the angles, and dca keeps them."""
    assert swinging("double-loop-8", "dca").largest("constraint.position") < 1e-12


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
def test_four_bar_with_its_circuit(formulation: str) -> None:
    """The difference to double-step falls with the square of the step, and energy balances."""
    model = mbsfmu.models.four_bar()
    differences = []
    for step in (4e-3, 2e-3):
        one, other = (model.simulation(formulation=each, step=step).run(1.4) for each in (formulation, "double-step"))
        assert np.ptp(one["cylinder.length"]) > 1e-2
        differences.append(np.max(np.abs(one["rocker.angle"] - other["rocker.angle"])))
    assert differences[0] / differences[1] == pytest.approx(4.0, rel=0.15)
    assert one.largest("energy.drift") < 1e-2 * one.largest("energy.work")
