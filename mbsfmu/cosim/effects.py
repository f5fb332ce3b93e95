"""Which options have an effect with which algorithm and control; others are refused, for nobody gives them in vain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mbsfmu.cosim.algorithms import ALGORITHMS, ITERATED
from mbsfmu.cosim.control import CONTROLS
from mbsfmu.errors import InputError

_BY_ALGORITHM = {
    "order": ("gauss-seidel", "fixed-point"),
    "iteration_tolerance": ITERATED,
    "maximum_iterations": ITERATED,
    "relaxation": ("fixed-point",),
    "jacobian": ("newton",),
    "threads": ("jacobi", "newton"),
}
_BY_CONTROL = dict.fromkeys(
    ("tolerance", "absolute_tolerance", "smallest_step", "largest_step"),
    tuple(name for name in CONTROLS if name != "fixed"),
)


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def refuse_without_effect(algorithm: str, control: str, given: Mapping[str, Any]) -> None:
    """Check that options which were given have an effect.

    Parameters
    ----------
    algorithm, control
        As called; unknown words are refused elsewhere.
    given
        Options by name; None and one thread say nothing.

    Raises
    ------
    InputError
        When one has none; the sentence says with what it would.
    """
    for what, chosen, known, needed in (
        ("algorithm", algorithm, ALGORITHMS, _BY_ALGORITHM),
        ("control", control, CONTROLS, _BY_CONTROL),
    ):
        for name, words in needed.items():
            value = given[name]
            says_nothing = value is None or (name == "threads" and value == 1)
            if not says_nothing and chosen in known and chosen not in words:
                raise InputError(
                    f"{name.replace('_', ' ')} = {_shown(value)} has no effect with the {what} '{chosen}'; "
                    f"it has with {' and '.join(words)}"
                )
