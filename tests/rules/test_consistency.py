"""Rules of users that would lead elsewhere than the rates say are refused; consistent ones are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

import mbsfmu
from mbsfmu.base.errors import InputError
from mbsfmu.base.registry import Registry
from mbsfmu.rules import FirstOrderValues, PositionValues, Rule, Step, find_rule, rule, rule_names
from mbsfmu.rules.rule import Array
from mbsfmu.stepping.rule_checks import check_rule

SPECTRAL_RADII = [f"generalized-alpha:spectral_radius={radius}" for radius in (0.0, 0.5, 1.0)]


@pytest.mark.parametrize("text", [*rule_names(), *SPECTRAL_RADII])
def test_rules_of_the_toolkit_are_consistent(text: str) -> None:
    found = find_rule(text)
    assert found is not None
    check_rule(found)


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Rule]:
    """Define rules with wrong coefficients, which nothing else finds by their names; return what makes one of them."""
    monkeypatch.setattr(rule, "RULES", Registry("rule"))

    @dataclass(frozen=True)
    class Weighted(Rule):
        """The trapezoidal rule where both weights are 1."""

        name: ClassVar[str] = "weighted"
        slope: float = 1.0
        begin: float = 1.0

        def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
            return self.slope * 2.0 / step.size * (end - begin.value) - self.begin * begin.rate

    @dataclass(frozen=True)
    class Remembering(Rule):
        """Backward Euler, and a mean rate that counts for nothing or too much."""

        name: ClassVar[str] = "remembering"
        remembered: ClassVar[int] = 1
        later: float = 1.0
        kept: float = 1.0
        lists: float = 1.0

        def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
            ratio = step.before / step.size
            return (end - begin.value) / step.size + (self.later - 1.0) * ratio * begin.history[0]

        def history(self, end: FirstOrderValues, begin: FirstOrderValues, step: Step) -> Sequence[Array]:
            return [self.kept * (end.value - begin.value) / step.size] * int(self.lists)

    @dataclass(frozen=True)
    class Newmark(Rule):
        """Newmark's rule of mean acceleration, where all weights are 1."""

        name: ClassVar[str] = "newmark"
        way: float = 1.0
        acceleration: float = 1.0
        velocity: float = 1.0

        def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
            return 2.0 / step.size * (end - begin.value) - begin.rate

        def motion(self, end: Array, begin: PositionValues, step: Step) -> tuple[Array, Array]:
            gone = (end - begin.position) / step.size - self.way * begin.velocity
            after = self.acceleration * 4.0 / step.size * gone - begin.acceleration
            return begin.velocity + self.velocity * 0.5 * step.size * (begin.acceleration + after), after

    def made(text: str) -> Rule:
        found = find_rule(text)
        assert found is not None
        return found

    return made


@pytest.mark.parametrize("text", ["weighted", "remembering", "newmark", "newmark:acceleration=0.9"])
def test_right_weights_are_taken(rules: Callable[[str], Rule], text: str) -> None:
    """The last one is Newmark's rule with another β, of second order."""
    check_rule(rules(text))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("weighted:slope=0.9", r"along a straight line, rate gives -1\.6 where -2 is right"),
        ("weighted:begin=0.5", r"along a straight line, rate gives -3 where -2 is right"),
        ("weighted:slope=0.9999999", "along a straight line, rate gives"),
        ("weighted:slope=0:begin=-1", "its velocity tends to nan"),
        ("remembering:later=1.5", r"rate gives -2\.5 where -2 is right, in a step of 1 s after one of 0\.5 s"),
        ("remembering:kept=0.5", "history gives -1 where -2 is right"),
        ("remembering:lists=2", "history gives 2 rates where 1 are remembered"),
        ("newmark:way=0.9", "motion, as velocity, gives"),
        ("newmark:velocity=0.99", r"where the acceleration is constant, its velocity tends to 0\.99 and"),
    ],
)
def test_wrong_weights_are_refused(rules: Callable[[str], Rule], text: str, told: str) -> None:
    with pytest.raises(InputError, match=rf"the rule '{text.partition(':')[0]}.*' is refused: .*{told}"):
        check_rule(rules(text))


@pytest.mark.parametrize("formulation", ["double-step", "penalty", "dca", "hdca", "dca-alm"])
def test_every_formulation_refuses_them(rules: Callable[[str], Rule], formulation: str) -> None:
    rules("weighted")
    with pytest.raises(InputError, match=r"the rule 'weighted:slope=0\.9:begin=1\.0' is refused"):
        mbsfmu.models.pendulum(1).simulation(solver="weighted:slope=0.9", formulation=formulation)
