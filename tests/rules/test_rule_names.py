"""Rules of integration by their names, with their options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

import mbsfmu
from mbsfmu.base.errors import InputError
from mbsfmu.base.registry import Registry
from mbsfmu.rules import FirstOrderValues, Rule, Step, find_rule, rule, rule_names
from mbsfmu.rules.implicit_rules import Trapezoidal
from mbsfmu.rules.rule import Array


@pytest.mark.parametrize("name", rule_names())
def test_text_of_a_rule_names_it(name: str) -> None:
    found = find_rule(name)
    assert found is not None
    assert find_rule(str(found)) == found
    assert str(found).partition(":")[0] == name


def test_other_solvers_are_no_rules() -> None:
    assert find_rule("rk4") is None


def test_options_that_are_unknown_are_refused() -> None:
    with pytest.raises(InputError, match="the solver 'trapezoidal' has no option 'damping'; there are none"):
        mbsfmu.models.pendulum(1).simulation(solver="trapezoidal:damping=1")


def test_a_name_belongs_to_one_rule() -> None:
    with pytest.raises(InputError, match=r"there is a rule 'trapezoidal' already; .*Other needs a name of its own"):

        @dataclass(frozen=True)
        class Other(Trapezoidal):
            name: ClassVar[str] = "trapezoidal"


def test_rates_that_are_not_linear_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "RULES", Registry("rule"))

    @dataclass(frozen=True)
    class Squared(Rule):
        name: ClassVar[str] = "squared"

        def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
            return (end**2 - begin.value**2) / step.size

    with pytest.raises(InputError, match="the rates of the rule 'squared' are not linear"):
        mbsfmu.models.pendulum(1).simulation(solver="squared")
