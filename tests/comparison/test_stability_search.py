"""The search for the largest stable step, and what it finds on the four-bar."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import mbsfmu
from mbsfmu.comparison import StabilityLimit
from mbsfmu.comparison.run import CLOSE, stability_limit


@given(st.floats(1e-5, 10.0), st.lists(st.floats(1e-4, 1e-2), min_size=1, max_size=4))
def test_limit_is_bracketed_closely(limit: float, grid: list[float]) -> None:
    tried: list[float] = []

    def is_stable(step: float) -> bool:
        tried.append(step)
        return step <= limit

    found = stability_limit(is_stable, {step: step <= limit for step in grid}, 1e-6, 100.0)
    assert found.stable is not None
    assert found.diverging is not None
    assert found.stable <= limit < found.diverging <= CLOSE * found.stable * (1 + 1e-12)
    assert len(tried) < 30
    assert not set(tried) & set(grid)


def test_search_stays_in_its_bounds() -> None:
    assert stability_limit(lambda _: True, {1e-3: True}, 1e-4, 0.1) == StabilityLimit(0.1, None)
    assert stability_limit(lambda _: False, {1e-3: False}, 1e-4, 0.1) == StabilityLimit(None, 1e-4)


def test_first_limit_from_below_counts() -> None:
    """A step may be stable again above one that diverges; that is no step to take."""
    found = stability_limit(lambda step: step < 1.3, {1.0: True, 2.0: False, 4.0: True}, 0.1, 10.0)
    assert found.stable is not None
    assert 1.2 < found.stable < 1.3


def test_gauss_seidel_stands_larger_steps_than_jacobi() -> None:
    """Held inputs in Jacobi's exchange excite the oil's spring; Gauss–Seidel stands steps many times as large.

    Without friction, which damps that spring and couples both algorithms by velocity.
    """
    model = mbsfmu.models.four_bar(circuit="frictionless")
    options = {"stop": 1.3, "steps": [4e-3], "algorithms": ["jacobi", "gauss-seidel"]}
    limits = mbsfmu.compare(model, **options, stability=True, workers=2).stability
    jacobi, gauss_seidel = limits["jacobi"], limits["gauss-seidel"]
    assert jacobi.stable is not None
    assert jacobi.diverging is not None
    assert jacobi.diverging <= CLOSE * jacobi.stable
    assert gauss_seidel.stable is not None
    assert gauss_seidel.stable > 3 * jacobi.stable
