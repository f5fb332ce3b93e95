"""Which solver makes the steps where none is named, and how accurate runs by pure defaults are."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mbsfmu
from mbsfmu import InputError, RunOptions
from mbsfmu.system_model.model_simulation import unit_from_dict


@pytest.mark.parametrize(
    ("given", "solver"),
    [
        ({}, "rodas5p"),
        ({"formulation": "dca"}, "rodas5p"),
        ({"formulation": "hdca", "relative_tolerance": 1e-5}, "rodas5p"),
        ({"step": 1e-3}, "trapezoidal"),
        ({"step": 1e-3, "relative_tolerance": 1e-5}, "rodas5p"),  # the step is that of the output then
        ({"newton_tolerance": 1e-9}, "trapezoidal"),
        ({"iterations": 3}, "trapezoidal"),
        ({"formulation": "penalty"}, "trapezoidal"),
        ({"formulation": "dca-alm"}, "trapezoidal"),
        ({"solver": "rk45", "step": 1e-3}, "rk45"),
    ],
)
def test_solver_follows_from_the_other_options(given: dict[str, Any], solver: str) -> None:
    assert RunOptions(**given).completed().solver == solver


def test_tolerances_of_the_iteration_and_of_steps_do_not_go_together() -> None:
    with pytest.raises(InputError, match="relative tolerance = 1e-05 has no effect with the solver 'trapezoidal'"):
        RunOptions(newton_tolerance=1e-9, relative_tolerance=1e-5)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"newton_tolerance": 1e-9}, "(as the Newton tolerance is named and no solver is named), which makes equal"),
        ({"iterations": 3}, "(as the number of iterations is named and no solver is named), which makes equal"),
        ({"formulation": "penalty"}, "(as the formulation is penalty and no solver is named), which makes equal"),
        ({"solver": "trapezoidal"}, "with the solver 'trapezoidal', which makes equal"),
    ],
)
def test_a_refusal_says_why_a_solver_is_in_use_that_nobody_named(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)):
        RunOptions(**given, relative_tolerance=1e-5)


def test_tolerance_where_none_is_named() -> None:
    """That of steps which are chosen without a word is smaller; the absolute one follows the relative one."""
    cases: list[tuple[dict[str, Any], tuple[float, float]]] = [
        ({}, (1e-9, 1e-9)),
        ({"solver": "rodas4"}, (1e-9, 1e-9)),
        ({"solver": "rk45"}, (1e-6, 1e-6)),
        ({"relative_tolerance": 1e-4}, (1e-4, 1e-4)),
        ({"relative_tolerance": 1e-4, "absolute_tolerance": 1e-7}, (1e-4, 1e-7)),
    ]
    for given, expected in cases:
        made = RunOptions(**given).completed()
        assert (made.relative_tolerance, made.absolute_tolerance) == expected


def test_systems_alone_and_units_whose_inputs_are_set_make_equal_steps(tmp_path: Path) -> None:
    """A unit of the whole whose inputs follow signals chooses its steps; one with an input left over does not."""
    model = mbsfmu.models.four_bar()
    assert model.simulation_of("circuit").solver.name == "trapezoidal"
    for each, solver in ((model, "rodas5p"), (model.model_copy(update={"signals": {}}), "trapezoidal")):
        (path,) = mbsfmu.export(each, tmp_path / solver, layout="monolithic", backend="python")
        with zipfile.ZipFile(path) as file:
            unit = json.loads(file.read("resources/unit.json"))
        assert unit_from_dict(unit["arguments"]).solver.name == solver


@pytest.mark.parametrize("name", ["four-bar-frictionless", "quick-return-frictionless", "slewing-four-bar"])
def test_accelerations_are_accurate_by_default(name: str) -> None:
    """By less than 1e-3 of their range, against a run of another formulation with a hundredth of the tolerance."""
    model, tight = mbsfmu.models.built_in(name), 1e-11
    result = model.simulation().run()
    expected = model.simulation(
        formulation="hdca", solver="rodas5p", relative_tolerance=tight, absolute_tolerance=tight
    ).run()
    looked_at = [each for each in result.names if "acceleration" in each or "pressure" in each or ".force" in each]
    moving = [each for each in looked_at if np.ptp(expected[each]) > 1e-3 * np.max(np.abs(expected[each]))]
    assert len(moving) > 5
    for each in moving:
        assert np.max(np.abs(result[each] - expected[each])) < 1e-3 * np.ptp(expected[each]), each
