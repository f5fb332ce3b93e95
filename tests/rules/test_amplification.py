"""What one step of a rule multiplies free motion by, against the amplification matrices of the literature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from mbsfmu.rules import FirstOrderValues, PositionValues, Rule, Step
from mbsfmu.rules.implicit_rules import BackwardDifferences, GeneralizedAlpha, Trapezoidal

Floats = NDArray[np.float64]
RADII = (0.0, 0.3, 0.8, 1.0)
EQUAL = Step(np.ones(1), np.ones(1))
"""A step of 1 s behind one of the same size."""


def matrix(after: Callable[[Floats], Floats], size: int) -> Floats:
    return np.stack([after(column) for column in np.eye(size)], axis=1)


def decay(rule: Rule, eigenvalue: float) -> Floats:
    """Steps of ẋ = λ x, from (x, ẋ, history)."""

    def after(before: Floats) -> Floats:
        value, rate, *history = before[:, np.newaxis]
        begin = FirstOrderValues(value, rate, history)
        at_zero, at_one = (rule.rate(np.array([end]), begin, EQUAL) for end in (0.0, 1.0))
        end = at_zero / (eigenvalue - (at_one - at_zero))
        done = FirstOrderValues(end, eigenvalue * end)
        return np.concatenate([end, done.rate, *rule.history(done, begin, EQUAL)])

    return matrix(after, 2 + rule.remembered)


def oscillation(rule: Rule, frequency: float) -> Floats:
    """Steps of z̈ = −ω² z, from (z, ż, z̈, history)."""

    def after(before: Floats) -> Floats:
        position, velocity, acceleration, *history = before[:, np.newaxis]
        begin = PositionValues(position, velocity, acceleration, history)
        at_zero, at_one = (rule.motion(np.array([end]), begin, EQUAL)[1] for end in (0.0, 1.0))
        end = at_zero / (-(frequency**2) - (at_one - at_zero))
        done = PositionValues(end, rule.motion(end, begin, EQUAL)[0], -(frequency**2) * end)
        return np.concatenate([*done[:3], *rule.motion_history(done, begin, EQUAL)])

    return matrix(after, 3 + sum(rule.remembered_motion))


def spectrum(of: Floats) -> NDArray[np.complex128]:
    return np.linalg.eigvals(of)


def holds(found: NDArray[np.complex128], expected: NDArray[np.complex128], tolerance: float = 1e-9) -> None:
    """Every expected eigenvalue is among those that are found."""
    for each in expected:
        assert np.min(np.abs(found - each)) < tolerance, (each, found)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("frequency", [0.1, 1.0, 30.0])
def test_generalized_alpha_is_that_of_chung_and_hulbert(radius: float, frequency: float) -> None:
    """Their matrix for (d, h v, h² a), with the equation of motion between the ends of the step [Chung1993, eq. 11]."""
    inertia, force = (2.0 * radius - 1.0) / (radius + 1.0), radius / (radius + 1.0)
    gamma, beta = 0.5 - inertia + force, 0.25 * (1.0 - inertia + force) ** 2
    left = np.array([[1.0, 0.0, -beta], [0.0, 1.0, -gamma], [frequency**2 * (1.0 - force), 0.0, 1.0 - inertia]])
    right = np.array([[1.0, 1.0, 0.5 - beta], [0.0, 1.0, 1.0 - gamma], [-(frequency**2) * force, 0.0, -inertia]])
    holds(spectrum(oscillation(GeneralizedAlpha(radius), frequency)), spectrum(np.linalg.solve(left, right)), 1e-6)


@pytest.mark.parametrize("radius", RADII)
def test_generalized_alpha_damps_high_frequencies_by_its_radius(radius: float) -> None:
    rule = GeneralizedAlpha(radius)
    assert np.max(np.abs(spectrum(oscillation(rule, 1e6)))) == pytest.approx(radius, abs=2e-3)
    assert np.max(np.abs(spectrum(decay(rule, -1e9)))) == pytest.approx(radius, abs=1e-4)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("eigenvalue", [-0.1, -2.0, -100.0])
def test_generalized_alpha_of_first_order_is_that_of_jansen(radius: float, eigenvalue: float) -> None:
    """Their matrix for (y, h ẏ), with their α_m = (3 − ρ)/(2 + 2ρ), α_f = 1/(1 + ρ) and γ = 1/2 + α_m − α_f."""
    rate, value = 0.5 * (3.0 - radius) / (1.0 + radius), 1.0 / (1.0 + radius)
    gamma = 0.5 + rate - value
    left = np.array([[1.0, -gamma], [-eigenvalue * value, rate]])
    right = np.array([[1.0, 1.0 - gamma], [eigenvalue * (1.0 - value), rate - 1.0]])
    holds(spectrum(decay(GeneralizedAlpha(radius), eigenvalue)), spectrum(np.linalg.solve(left, right)))


@pytest.mark.parametrize("eigenvalue", [-0.1, -2.0, -1e6])
def test_backward_differences_have_the_roots_of_their_formula(eigenvalue: float) -> None:
    """3/2 ζ² − 2 ζ + 1/2 = h λ ζ²."""
    roots = np.roots([1.5 - eigenvalue, -2.0, 0.5]).astype(complex)
    holds(spectrum(decay(BackwardDifferences(), eigenvalue)), roots)


@pytest.mark.parametrize("frequency", [0.1, 1.0, 1e3])
def test_backward_differences_of_motion_have_the_same_roots(frequency: float) -> None:
    """Applied twice, they have those of ẋ = ±iω x."""
    roots = np.concatenate([np.roots([1.5 - sign * frequency, -2.0, 0.5]) for sign in (1j, -1j)])
    holds(spectrum(oscillation(BackwardDifferences(), frequency)), roots, 1e-6)


def test_backward_differences_leave_nothing_of_what_is_stiff() -> None:
    """Negative control: the trapezoidal rule leaves all of it."""
    assert np.max(np.abs(spectrum(decay(BackwardDifferences(), -1e8)))) < 1e-3
    assert np.max(np.abs(spectrum(oscillation(BackwardDifferences(), 1e8)))) < 1e-3
    assert np.max(np.abs(spectrum(decay(Trapezoidal(), -1e8)))) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("ratio", [0.05, 0.5, 1.0, 2.0, 17.0])
def test_backward_differences_are_exact_for_parabolas_whatever_the_steps(ratio: float) -> None:
    """x = t² at −h/ratio, 0 and h."""
    size, before = np.array([0.2]), np.array([0.2 / ratio])
    rule = BackwardDifferences()
    begin = FirstOrderValues(np.zeros(1), np.zeros(1), [-before])  # the mean rate of the step before is −h_before
    assert rule.rate(size**2, begin, Step(size, before)) == pytest.approx(2.0 * size, rel=1e-13)


@pytest.mark.parametrize("rule", [BackwardDifferences(), GeneralizedAlpha(0.5)], ids=str)
def test_the_first_step_is_one_of_the_trapezoidal_rule(rule: Rule) -> None:
    """Rates stand in for what is not remembered."""
    value, rate, acceleration, end = np.array([[0.3], [-1.2], [4.0], [0.7]])
    step = Step(np.array([0.1]), np.zeros(1))
    filled = [rate] * rule.remembered_motion[0] + [acceleration] * rule.remembered_motion[1]
    found = rule.motion(end, PositionValues(value, rate, acceleration, filled), step)
    np.testing.assert_allclose(
        found, Trapezoidal().motion(end, PositionValues(value, rate, acceleration), step), rtol=1e-12
    )
    expected = Trapezoidal().rate(end, FirstOrderValues(value, rate), step)
    np.testing.assert_allclose(rule.rate(end, FirstOrderValues(value, rate, [rate]), step), expected, rtol=1e-12)


def test_what_generalized_alpha_remembers_first_is_of_second_order() -> None:
    """The auxiliary acceleration is that of the time t + (α_m − α_f) h: exact where z̈ is linear."""
    radius, size = 0.4, 0.1
    shift = (2.0 * radius - 1.0) / (radius + 1.0) - radius / (radius + 1.0)
    nothing = np.zeros(1)
    begin = PositionValues(nothing, nothing, np.array([2.0]), [np.array([2.0])])
    end = PositionValues(nothing, nothing, np.array([2.0 + 3.0 * size]))
    first = GeneralizedAlpha(radius).motion_history(end, begin, Step(np.array([size]), np.zeros(1)))
    np.testing.assert_allclose(first[0], 2.0 + 3.0 * (size + shift * size), rtol=1e-13)
    later = PositionValues(nothing, nothing, np.array([2.0 + 6.0 * size]))
    then = GeneralizedAlpha(radius).motion_history(
        later, end._replace(history=first), Step(np.array([size]), np.array([size]))
    )
    np.testing.assert_allclose(then[0], 2.0 + 3.0 * (2.0 * size + shift * size), rtol=1e-13)


@pytest.mark.parametrize("radius", [-0.1, 1.1, float("nan")])
def test_a_radius_beyond_its_range_is_refused(radius: float) -> None:
    with pytest.raises(ValueError, match=r"the spectral radius is .*; it must lie between 0 and 1"):
        GeneralizedAlpha(radius)
