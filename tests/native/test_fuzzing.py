"""Random calls of native FMUs find nothing; `fuzzing.py` makes more of them by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fuzzing import CAMPAIGN, Checked, Pair, checked, fuzz
from sampled_control import controlled

from mbsfmu.compiling.compiler import Fmi

CALLS = 20_000


@pytest.mark.parametrize("fmi", [2, 3])
def test_random_calls_of_model_exchange_find_nothing(sanitized: Callable[..., Checked], fmi: Fmi) -> None:
    """An FMU for both, whose instances' states must not be mixed up, and one that has no model exchange."""
    one = sanitized("sampled", "double-step", fmi=fmi, kind=("cs", "me"))
    other = sanitized("ball-pendulum", "double-step", fmi=fmi)
    report = fuzz(one, other, CALLS, seed=1, exchange=True)
    done, _, refused = (int(text.split()[0]) for text in report.split(": ")[1].split(", ")[:3])
    assert min(done, refused) > CALLS / 5


@pytest.mark.parametrize(
    ("units", "fmi"),
    [
        ((("four-bar", "double-step"), ("four-bar", "penalty")), 2),
        ((("ball-pendulum", "double-step"), ("ball-pendulum", "dca-alm")), 2),
        ((("four-bar", "double-step", "rodas5p"), ("four-bar", "double-step")), 2),
        ((("sampled", "double-step"), ("ball-pendulum", "double-step")), 3),
    ],
)
def test_random_calls_find_nothing(
    sanitized: Callable[..., Checked], units: tuple[tuple[str, ...], tuple[str, ...]], fmi: Fmi
) -> None:
    """Two units whose states must not be mixed up; the seed is fixed, so that a failure comes back."""
    one, other = (sanitized(*unit, fmi=fmi) for unit in units)
    report = fuzz(one, other, CALLS, seed=1)
    done, discarded, refused = (int(text.split()[0]) for text in report.split(": ")[1].split(", ")[:3])
    assert min(done, refused) > CALLS / 5  # both what goes on and what is refused was tried
    assert done + discarded + refused == CALLS


def test_random_calls_of_an_fmu_with_clocks(tmp_path: Path) -> None:
    """Clocks are set at any time, in both kinds of use, among all other calls."""
    one, other = (
        checked(
            controlled().simulation(solver="rk4", step=step, compiled=False),
            tmp_path / name,
            3,
            ("cs", "me"),
            "periodic",
        )
        for name, step in (("one", 1e-3), ("other", 5e-4))
    )
    for exchange in (False, True):
        assert fuzz(one, other, 20_000, 5, exchange=exchange)


@pytest.mark.parametrize("pair", [each for each in CAMPAIGN if each.one.startswith(("coupled:", "line-end:"))])
def test_random_calls_of_coupled_fmus_and_of_their_ends_find_nothing(pair: Pair) -> None:
    """Coupled FMUs of both versions, beside plain ones, and FMUs that lines and joints couple."""
    report = pair.fuzz(10_000, 3)
    done, _, refused = (int(text.split()[0]) for text in report.split(": ")[1].split(", ")[:3])
    assert min(done, refused) > 1_000
