"""Random calls of native units find nothing; `fuzzing.py` makes more of them by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fuzzing import Checked, fuzz

CALLS = 20_000


@pytest.mark.parametrize(
    ("model", "formulations"),
    [("four-bar", ("double-step", "penalty")), ("ball-pendulum", ("double-step", "dca-alm"))],
)
def test_random_calls_find_nothing(
    sanitized: Callable[[str, str], Checked], model: str, formulations: tuple[str, str]
) -> None:
    """Two units whose states must not be mixed up; the seed is fixed, so that a failure comes back."""
    one, other = (sanitized(model, formulation) for formulation in formulations)
    report = fuzz(one, other, CALLS, seed=1)
    done, discarded, refused = (int(text.split()[0]) for text in report.split(": ")[1].split(", ")[:3])
    assert min(done, refused) > CALLS / 5  # both what goes on and what is refused was tried
    assert done + discarded + refused == CALLS
