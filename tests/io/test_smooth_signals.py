"""Signals with derivatives, against differences, closed forms and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from mbsfmu import CoupledModel, DataError, PolynomialSignal, RestToRestSignal, SineSignal, SplineSignal
from mbsfmu.io.signals import AnySignal

SMOOTH = {
    "sine": SineSignal(amplitude=2.0, frequency=0.7, phase=0.3, offset=-1.0),
    "rest-to-rest": RestToRestSignal(times=(0.1, 0.9, 1.4), values=(1.0, -2.0, 0.5)),
    "spline": SplineSignal(times=(0.1, 0.5, 0.9, 1.4), values=(1.0, -2.0, 0.5, 0.7)),
    "polynomial": PolynomialSignal(times=(0.0, 1.0), coefficients=((1.0, 2.0, 0.0, -1.0), (2.0, -1.0))),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_rates_are_differences(name: str) -> None:
    signal: AnySignal = SMOOTH[name]
    rate, small = signal.rate(), 1e-6
    for time in (0.05, 0.3, 0.77, 1.2, 1.6):
        difference = (signal.after(time + small) - signal.after(time - small)) / (2.0 * small)
        assert rate.after(time) == pytest.approx(difference, abs=1e-7)
        assert signal.piece(time)(time) == signal.after(time) == signal.before(time)
        assert signal.mapped(-2.0, 0.5).after(time) == pytest.approx(0.5 - 2.0 * signal.after(time), rel=1e-14)


def test_moves_rest_at_their_points() -> None:
    """Positions are kept outside; first and second derivative vanish at the points, and halfway is half the way."""
    signal = SMOOTH["rest-to-rest"]
    assert [signal.after(time) for time in (-1.0, 0.1, 0.5, 0.9, 1.4, 3.0)] == pytest.approx(
        [1.0, 1.0, -0.5, -2.0, 0.5, 0.5]
    )
    for rate in (signal.rate(), signal.rate().rate()):
        for time in (0.1, 0.9, 1.4):
            assert max(abs(rate.before(time)), abs(rate.after(time))) < 1e-9
    assert signal.rate().after(0.5) == pytest.approx(15.0 / 8.0 * -3.0 / 0.8)


def test_splines_are_scipys() -> None:
    signal = SMOOTH["spline"]
    expected = CubicSpline(signal.times, signal.values, bc_type="clamped")
    for time in np.linspace(0.1, 1.4, 14):
        assert signal.after(time) == pytest.approx(expected(time), abs=1e-12)
        assert signal.rate().rate().after(time - 1e-3) == pytest.approx(expected(time - 1e-3, 2) if time > 0.1 else 0.0)


def test_sides_of_jumps() -> None:
    rate = SMOOTH["polynomial"].rate()
    assert (rate.before(1.0), rate.after(1.0), rate.piece(0.9)(1.1)) == pytest.approx((-1.0, -1.0, 2.0 - 3.0 * 1.21))
    second = rate.rate()
    assert (second.before(1.0), second.after(1.0)) == (-6.0, 0.0)
    with pytest.raises(ValueError, match="it jumps from -6 to 0 at t = 1 s, and has no rate there"):
        second.rate()
    assert SMOOTH["sine"].rate().after(0.0) == pytest.approx(2.0 * 1.4 * math.pi * math.cos(0.3))


def test_json_and_refusals() -> None:
    data = {"name": "m", "systems": {"b": {"bodies": [{"type": "beam", "name": "a", "length": 1, "mass": 1}],
            "ground": {"O": [0, 0, 0]},
            "joints": [{"type": "revolute", "name": "j", "parent": "ground.O", "child": "a.start"}],
            "constraints": [{"type": "prescribed-motion", "name": "d", "joint": "j"}]}},
            "signals": {"b.d.position": {"type": "spline", "times": [0, 1], "values": [0, 1]}}}  # fmt: skip
    model = CoupledModel.from_dict(data)
    assert CoupledModel.from_dict(model.to_dict()) == model
    with pytest.raises(DataError, match="there are 1 times but 2 values"):
        SplineSignal(times=(0.0,), values=(0.0, 1.0))
    with pytest.raises(DataError, match="a piece has 7 coefficients; it must have 1 to 6"):
        PolynomialSignal(times=(0.0,), coefficients=((0.0,) * 7,))
