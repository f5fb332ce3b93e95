"""Residuals of fits: how many values they count as, how large they are and what causes them, by linear regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

from mbsfmu import FitSignal
from mbsfmu.analysis.fitted_machines import FittedMachine, Request, RunSlopes
from mbsfmu.analysis.fitting import Free, fit
from mbsfmu.analysis.residuals import Experiment, inflations, remarks
from mbsfmu.modelling.variables import Variable

COUNT, NOISE = 400, 1e-3
TIMES = np.linspace(0.0, 2.0, COUNT)
MOTION = 0.1 * np.sin(8.0 * TIMES)
RATE = 0.8 * np.cos(8.0 * TIMES)


def white(seed: int, count: int = COUNT) -> Any:
    return NOISE * np.random.default_rng(seed).standard_normal(count)


def signal(residuals: Any, noise: float | None = None) -> FitSignal:
    """Return a signal of this motion with these residuals, whose noise is theirs unless it is set."""
    size = float(np.sqrt(np.mean(residuals**2))) if noise is None else noise
    return FitSignal("log.csv", "x", "m", TIMES, MOTION + residuals, MOTION, size)


class Wave(FittedMachine):
    """A machine whose output is a cos 5 t + b sin 5 t + c."""

    parameters = tuple(Variable(name, start=0.5) for name in "abc")
    outputs = (Variable("y"),)
    given = np.full(3, 0.5)
    times = np.linspace(0.0, 2.0, 2001)
    columns = np.stack([np.cos(5.0 * times), np.sin(5.0 * times), np.ones(2001)], axis=1)

    def run(self, request: Request) -> Wave:
        read = (self.columns @ request.values)[:, None]
        self.begin, self.end = read[:-1], read[1:]
        return self

    def slopes(self, chosen: Any) -> Any:
        return RunSlopes(self.times, self.columns[:-1, None, :], self.columns[1:, None, :])


@pytest.mark.parametrize(("memory", "least"), [(0.0, 0.92), (0.5, 0.92), (0.9, 0.9)])
def test_intervals_cover_the_truth_with_noise_that_a_filter_correlates(memory: float, least: float) -> None:
    """Noise of first order, ρ = memory^lag. Intervals for independent noise cover 49 % at a memory of 0.9."""
    truth, machine, covered = np.array([0.3, -0.2, 0.1]), Wave(), []
    free = Free((0, 1, 2), (), np.full(3, -2.0), np.full(3, 3.0))
    exact = np.stack([np.cos(5.0 * TIMES), np.sin(5.0 * TIMES), np.ones(COUNT)], axis=1) @ truth
    for seed in range(100):
        noise = lfilter([1.0], [1.0, -memory], white(seed, COUNT + 100))[100:]
        found = fit([(Experiment("log", {}, (0,), (TIMES,), (exact + noise,)), machine)], free, {}, "linear")
        covered.append((found.lower < truth) & (found.upper > truth))
        assert memory != 0.0 or found.sentences == ()
    assert least <= np.mean(covered) <= (0.98 if memory == 0.0 else 1.0)


def test_correlated_noise_counts_as_its_effective_number_of_values() -> None:
    """Of noise of first order it is n (1 − ρ) / (1 + ρ), or less by noise of estimates; of white noise all count."""
    for memory in (0.5, 0.8):
        numbers = [signal(lfilter([1.0], [1.0, -memory], white(seed))).effective_count for seed in range(50)]
        assert 0.55 < np.median(numbers) * (1.0 + memory) / (1.0 - memory) / COUNT < 1.1
    assert sum(signal(white(seed)).effective_count == COUNT for seed in range(200)) >= 198
    oscillating = signal(1e-3 * np.cos(np.pi * np.arange(COUNT) / 2.0))  # zero from one value to the next
    assert oscillating.effective_count < 10.0


@pytest.mark.parametrize(
    ("systematic", "words"),
    [
        (np.full(COUNT, 2e-3), "an offset of the sensor of 0.0019"),
        (-3e-3 * RATE, "s explains them: fit its delay"),
        (3e-3 * RATE, "a delay of the sensor of -0.00"),
        (0.02 * (MOTION - MOTION.mean()), "a gain of the sensor that is off by 2 % explains them"),
        (2e-3 * np.sign(RATE) * RATE**2, "they follow the motion: the model differs"),
        (
            5e-3 * lfilter([0.05], [1.0, -0.95], white(7) / NOISE),
            "the noise was filtered before it was sampled, or the sensor is late (fit its delay",
        ),
        (1e-10 * MOTION, "as small as the numerical error of the runs"),
    ],
)
def test_the_cause_of_correlated_residuals(systematic: Any, words: str) -> None:
    size = float(np.sqrt(np.mean(systematic**2)))
    (sentence,) = remarks([signal(systematic + 0.3 * size / NOISE * white(1))], "linear")
    assert sentence.startswith("log.csv: residuals of x are correlated by ")
    assert words in sentence


def test_what_one_sensor_adds_does_not_widen_what_the_others_tell() -> None:
    """An offset is of its sensor; what follows the motion is of the model, and in all signals."""
    clean = signal(white(2))
    (first, second) = remarks([signal(2e-3 + white(1)), signal(2e-3 + white(3))], "linear")
    assert all("other signals deviate too" in sentence for sentence in (first, second))
    sensor, model = signal(2e-3 + white(1)), signal(5e-3 * RATE**2 + white(1))
    assert inflations([clean, sensor], "linear")[0] == 1.0
    assert inflations([clean, model], "linear")[0] == inflations([clean, model], "linear")[1] > 4.0


def test_residuals_beyond_the_noise_widen_intervals_by_their_ratio() -> None:
    """Three times the noise; a tenth of it, or nearly twice it by chance of four values, widen nothing."""
    large = signal(3.0 * white(3), NOISE)
    assert inflations([large], "linear")[0] == pytest.approx(9.0, rel=0.2)
    (sentence,) = remarks([large], "linear")
    assert "times the noise of 0.001 m" in sentence
    assert "the cause is a noise that is larger here than was assumed" in sentence
    assert inflations([signal(0.1 * white(3), NOISE)], "linear")[0] == 1.0
    signs = 1.9 * NOISE * np.array([1.0, -1.0, 1.0, -1.0])
    few = FitSignal("log.csv", "x", "m", TIMES[:4], signs, np.zeros(4), NOISE)
    assert inflations([few], "linear")[0] == 1.0
    spikes = white(4)
    spikes[::25] += 30.0 * NOISE
    sentence, _ = remarks([signal(spikes, NOISE)], "linear")
    assert "the cause is outliers" in sentence
