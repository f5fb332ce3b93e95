"""Round-off of divide and conquer where loops have a weak direction, held against double-step."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_machines import random_machine

from mbsfmu import models
from mbsfmu.initialization import closing_loops
from mbsfmu.system_model.coupled_model import CoupledModel

WEAK_DIRECTION = 202
"""Seed of a machine whose closure singular values go from 4.7 to 6.4e-5: 160 kN between bodies of 2 kg."""


def _reactions(model: CoupledModel, formulation: str, **options: str) -> np.ndarray:
    simulation = model.simulation(formulation=formulation, compiled=False, step=1e-3, **options)
    simulation.initialize()
    names = [each.name for each in simulation.continuous if ".force." in each.name or ".moment." in each.name]
    return np.array([simulation.get(name) for name in names])


def _error(model: CoupledModel, formulation: str, **options: str) -> float:
    exact = _reactions(model, "double-step")
    return float(np.max(np.abs(_reactions(model, formulation, **options) - exact)) / np.max(np.abs(exact)))


@pytest.mark.parametrize("code", ["straight", "loops"])
@pytest.mark.parametrize("formulation", ["dca", "hdca"])
def test_refined_reactions_agree_with_double_step(
    formulation: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    # The condition of the loops, 7e4, counts once in double-step and dca-alm, which agree to 2e-9.
    assert _error(random_machine(WEAK_DIRECTION), formulation, code=code) < 5e-8
    assert not any("relative error" in each for each in caplog.messages)


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
def test_warns_of_inexact_reactions_with_their_error(
    formulation: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(closing_loops, "have_weak_direction", lambda *_: False)  # as if it became weak later
    monkeypatch.setenv("MBSFMU_CACHE", str(tmp_path))  # traces are known by their models
    true = _error(random_machine(WEAK_DIRECTION), formulation)
    (message,) = [each for each in caplog.messages if "finds accelerations and reactions with" in each]
    told = re.search(r"error of (\S+) only", message)
    assert told is not None
    assert 0.5 < float(told[1]) / true < 2.0
    assert "double-step" in message


def test_stabilisation_is_no_error_of_the_reactions() -> None:
    # With loops 1 mm open, stabilisation of 10/s accelerates them by 0.1 m/s²: wanted, and no error.
    simulation = random_machine(WEAK_DIRECTION).simulation(formulation="dca", compiled=False, step=1e-3)
    simulation.initialize()
    formulation = simulation.formulation
    state = simulation.run_loop.present
    opened = replace(state, coordinates=state.coordinates + 1e-3)
    formulation.load(opened)
    formulation.moved(opened.integrals)
    assert formulation.reaction_error() < 1e-7


def test_augmented_lagrangian_agrees_with_double_step_there(caplog: pytest.LogCaptureFixture) -> None:
    assert _error(random_machine(WEAK_DIRECTION), "dca-alm") < 5e-8
    assert not any("relative error" in each for each in caplog.messages)


def test_only_loops_with_a_weak_direction_are_refined() -> None:
    weak = {
        model.name: model.simulation(formulation="dca", compiled=False, step=1e-3).functions.weak
        for model in (models.four_bar(), models.double_pentagon(), random_machine(WEAK_DIRECTION))
    }
    assert list(weak.values()) == [False, False, True]


def test_refined_velocities_close_the_loops() -> None:
    # Φ̇ + a Φ = 0 to round-off of ż, some 0.2 m/s and rad/s; elimination alone leaves 8e-12.
    simulation = random_machine(WEAK_DIRECTION).simulation(formulation="hdca", compiled=False, step=1e-3)
    simulation.run(0.02)
    formulation, state = simulation.formulation, simulation.run_loop.present
    formulation.load(state)
    formulation.moved(state.integrals)
    _, _, rates, violations = formulation.functions.kinetic_residuals()
    np.testing.assert_allclose(rates + 10.0 * violations, 0.0, rtol=0, atol=1e-14)
