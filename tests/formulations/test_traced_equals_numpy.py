"""The traced functions are the NumPy functions, and their derivatives are derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import mbsfmu
from mbsfmu.formulations.functions import SystemFunctions
from mbsfmu.formulations.system import System, starts

MODELS = ("four-bar", "quick-return", "pendulum-3", "double-pentagon")


def randomized(system: System, seed: int) -> SystemFunctions:
    random = np.random.default_rng(seed)
    functions = SystemFunctions(system)
    functions.parameters[:] = starts(system.parameters)
    for array in (functions.coordinates, functions.velocities, functions.accelerations, functions.integrals):
        array[:] = random.normal(size=array.shape)
    functions.states[:] = [random.uniform(0.5, 2.0) * (each.nominal or 1.0) for each in system.states]
    functions.inputs[:] = random.normal(size=functions.inputs.shape)
    functions.multipliers[:] = random.normal(size=functions.multipliers.shape)
    return functions


@pytest.mark.parametrize("name", MODELS)
def test_values_agree_to_round_off(name: str) -> None:
    system = mbsfmu.models.built_in(name).system()
    for seed in range(3):
        functions = randomized(system, seed)
        instant = functions.numeric_instant()
        for traced, direct in (
            (functions.dynamics()[0], system.residual(instant)),
            (functions.dynamics()[1], system.rates(instant)),
            (functions.all_closure()[0], system.closure(instant)),
            (functions.outputs()[0], system.evaluate_outputs(instant)),
            (functions.integral_rates()[0], system.integral_rates(instant)),
        ):
            scale = np.max(np.abs(direct), initial=1.0)
            np.testing.assert_allclose(traced, direct.astype(float), rtol=1e-12, atol=1e-13 * scale)


@pytest.mark.parametrize("name", MODELS)
def test_tangents_are_derivatives(name: str) -> None:
    functions = randomized(mbsfmu.models.built_in(name).system(), 7)
    n = len(functions.coordinates)
    by_motion, rates_by_motion = functions.residual_tangent()[0].copy(), functions.rates_tangent()[0].copy()
    multipliers = functions.multipliers.copy()

    def balance() -> np.ndarray:
        return functions.dynamics()[0] + functions.closure()[1].T @ multipliers

    for part, array in enumerate((functions.coordinates, functions.velocities, functions.accelerations)):
        for column in range(n):
            value, step = array[column], 1e-6
            array[column] = value + step
            ahead, rates_ahead = balance().copy(), functions.dynamics()[1].copy()
            array[column] = value - step
            difference = (ahead - balance()) / (2 * step)
            rates_difference = (rates_ahead - functions.dynamics()[1]) / (2 * step)
            array[column] = value
            scale = np.max(np.abs(by_motion))
            np.testing.assert_allclose(by_motion[:, part * n + column], difference, atol=1e-7 * scale)
            if part < 2 and len(rates_difference):
                scale = max(np.max(np.abs(rates_by_motion)), 1.0)
                np.testing.assert_allclose(rates_by_motion[:, part * n + column], rates_difference, atol=1e-6 * scale)
