"""Round-off of divide and conquer where loops have a weak direction, held against double-step."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest
from random_machines import random_machine

from mbsfmu import models
from mbsfmu.coupled.coupled_model import CoupledModel

WEAK_DIRECTION = 202
"""Seed of a machine whose closure singular values go from 4.7 to 6.4e-5: 160 kN between bodies of 2 kg."""


def _reactions(model: CoupledModel, formulation: str) -> np.ndarray:
    simulation = model.simulation(formulation=formulation, compiled=False, step=1e-3)
    simulation.initialize()
    names = [each.name for each in simulation.continuous if ".force." in each.name or ".moment." in each.name]
    return np.array([simulation.get(name) for name in names])


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
def test_warns_of_inexact_reactions_with_their_error(formulation: str, caplog: pytest.LogCaptureFixture) -> None:
    model = random_machine(WEAK_DIRECTION)
    exact = _reactions(model, "double-step")
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        found = _reactions(model, formulation)
    (message,) = [each for each in caplog.messages if "finds reactions with a relative error" in each]
    told = re.search(r"error of (\S+) only", message)
    assert told is not None
    true = np.max(np.abs(found - exact)) / np.max(np.abs(exact))
    assert 0.5 < float(told[1]) / true < 2.0
    assert "double-step" in message


def test_augmented_lagrangian_agrees_with_double_step_there(caplog: pytest.LogCaptureFixture) -> None:
    model = random_machine(WEAK_DIRECTION)
    np.testing.assert_allclose(_reactions(model, "dca-alm"), _reactions(model, "double-step"), rtol=0, atol=1e-3)
    assert not any("relative error" in each for each in caplog.messages)


def test_is_silent_on_ordinary_loops(caplog: pytest.LogCaptureFixture) -> None:
    for model in (models.four_bar(), models.double_pentagon()):
        _reactions(model, "dca")
    assert not any("relative error" in each for each in caplog.messages)
