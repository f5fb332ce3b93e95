"""Parts whose equations mean something else with symbols than with numbers are refused with their line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, Literal

import numpy as np
import pytest

from hydraulics import Array, Circuit, Component, ComponentContext, Flow, Hose, Oil, Port, Quantity, Tank
from mbsfmu import CoupledModel, InputError

_calls = count()


def branch(now: ComponentContext) -> Any:
    if now.pressure("inlet") > 1e6:  # branches
        return now["x"]
    return 0.0 * now["x"]


def both(now: ComponentContext) -> Any:
    return now["x"] and now.pressure("inlet")  # branches


def largest(now: ComponentContext) -> Any:
    return max(now["x"], 0.5)  # branches


def in_place(now: ComponentContext) -> Any:
    x = np.stack([now["x"], now["x"]])
    x[0] = 0.0  # writes in place
    return np.sum(x)


def added(now: ComponentContext) -> Any:
    x = np.stack([now["x"], now["x"]])
    x += 1.0  # writes in place
    return np.sum(x)


def filled(now: ComponentContext) -> Any:
    x = np.zeros(2)
    x[0] = now["x"]  # makes a number
    return np.sum(x)


def copied(now: ComponentContext) -> Any:
    x = np.zeros(2)
    x[:] = np.stack([now["x"], now["x"]])  # makes a number
    return np.sum(x)


def sine(now: ComponentContext) -> Any:
    return np.asarray(math.sin(now["x"]))  # makes a number


def number(now: ComponentContext) -> Any:
    return np.asarray(2.0 * float(now["x"]))  # makes a number


def array(now: ComponentContext) -> Any:
    return np.sum(np.array([now["x"], 1.0], dtype=float))  # makes a number


def table(now: ComponentContext) -> Any:
    return np.interp(now["x"], [0.0, 1.0], [0.0, 2.0])  # calls np.interp


def floor(now: ComponentContext) -> Any:
    return np.floor(now["x"])  # calls np.floor


def misspelt(now: ComponentContext) -> Any:
    return now["x"].squared  # raises AttributeError


def divided(now: ComponentContext) -> Any:
    return now["x"] * (1 / 0)  # raises ZeroDivisionError


_CASES = (branch, both, largest, in_place, added, filled, copied, sine, number, array, table, floor, misspelt, divided)
CASES: dict[str, Callable[[ComponentContext], Any]] = {each.__name__: each for each in _CASES}


def told_apart(now: ComponentContext) -> Any:
    return now["x"] * (2.0 if type(now["x"]) is np.float64 else 3.0)


def counting(now: ComponentContext) -> Any:
    return now["x"] * float(next(_calls))


def by_side(now: ComponentContext) -> Any:
    """Right at the start alone."""
    return now["x"] * (1.0 if not isinstance(now["x"], np.float64) or now["x"] < 1.0 else 2.0)


HALF = 0.5468755603901019
"""Where the tanh of NumPy and of a C library may differ in the last bit."""


def next_to_nothing(now: ComponentContext) -> Any:
    """Nothing at the start, but for round-off."""
    return np.tanh(now["x"] - 0.7 + HALF) - np.tanh(HALF)


DIFFERENT: dict[str, Callable[[ComponentContext], Any]] = {
    each.__name__: each for each in (told_apart, counting, by_side)
}


class Wrong(Component):
    """A component whose rate is one of the functions above."""

    type: Literal["test-wrong"] = "test-wrong"
    inlet: Port
    outlet: Port
    case: str
    where: Literal["rates", "flows", "outputs"] = "rates"

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("x", "1", 0.7, nominal=1.0, description="of no meaning"),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("y", "1", description="of no meaning"),)

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        flow = 1e-9 * self._wrong(now) if self.where == "flows" else 1e-9 * now["x"]
        return (Flow(flow, "inlet", "outlet"),)

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        return {"x": self._wrong(now) if self.where == "rates" else -now["x"]}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        return {"y": self._wrong(now) if self.where == "outputs" else now["x"]}

    def _wrong(self, now: ComponentContext) -> Any:
        return {**CASES, **DIFFERENT, "next_to_nothing": next_to_nothing}[self.case](now)


def model(case: str, where: str = "rates") -> CoupledModel:
    wrong = Wrong.from_dict({"name": "part", "inlet": "A", "outlet": "T", "case": case, "where": where})
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0),
        components=(Tank(name="tank", node="T"), Hose(name="hose", node="A", volume=1e-4, bulk_modulus=1e8), wrong),
        initial_pressures={"A": 2e6},
    )
    return CoupledModel(name="rig", systems={"circuit": circuit})


@pytest.mark.parametrize("where", ["rates", "flows", "outputs"])
@pytest.mark.parametrize("case", CASES)
def test_parts_that_cannot_be_traced_are_refused_with_their_line(case: str, where: str) -> None:
    with pytest.raises(InputError) as caught:
        model(case, where).simulation(compiled=False)
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    first = CASES[case].__code__.co_firstlineno
    place, reason = next(
        (index, line.rpartition("# ")[2])
        for index, line in enumerate(lines[first - 1 :], start=first)
        if re.search(r"  # (branches|writes|makes|calls|raises)", line)
    )
    begin = f"test-wrong 'part' is refused: {__file__}, line {place} (`"
    assert str(caught.value).startswith(begin)
    assert f", {reason}" in str(caught.value)


@pytest.mark.parametrize("case", DIFFERENT)
def test_parts_that_are_others_when_they_are_traced_are_refused(case: str) -> None:
    with pytest.raises(InputError, match=r"^test-wrong 'part' is refused: rates of Wrong gives \(.*\) with num"):
        model(case).simulation(compiled=False)


def test_round_off_is_no_difference() -> None:
    model("next_to_nothing").simulation(compiled=False)
