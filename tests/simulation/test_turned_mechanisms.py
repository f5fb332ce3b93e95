"""A mechanism that is turned as a whole moves the same way, and its reactions turn along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from spatial import random_tree
from spatial_loops import loop_of
from turning import turned_model, vectors

from mbsfmu import CoupledModel
from mbsfmu.models import bennett, built_in, slewing_four_bar
from mbsfmu.simulation.run_result import Result
from mbsfmu.stepping.iteration import NewtonTolerances

TIGHT: dict[str, Any] = {"solver": "dop853", "relative_tolerance": 1e-11, "absolute_tolerance": 1e-11, "step": 0.05}


def tree(seed: int) -> CoupledModel:
    return CoupledModel(name="tree", systems={"mechanism": random_tree(seed, bodies=3)})


MODELS: dict[str, Callable[[], CoupledModel]] = {
    "bennett": bennett,
    "slewing-four-bar": lambda: slewing_four_bar(0.4, 2.0),
    "five-bar": lambda: built_in("five-bar"),
    "R-S-U-R": lambda: loop_of("R-S-U-R", 2),
    "R-R-U-E": lambda: loop_of("R-R-U-E", 3),
    "tree": lambda: tree(3),
}
CASES = [
    ("bennett", "double-step"),
    ("bennett", "penalty"),
    ("slewing-four-bar", "dca"),
    ("slewing-four-bar", "dca-alm"),
    ("five-bar", "hdca"),
    ("five-bar", "dca-alm"),
    *(("R-S-U-R", formulation) for formulation in ("penalty", "dca")),
    *(("R-R-U-E", formulation) for formulation in ("double-step", "hdca")),
    *(("tree", formulation) for formulation in ("hdca", "dca-alm")),
]
"""Each formulation with closed loops whose joints turn and move in other ways, and with a tree."""


def run(model: CoupledModel, formulation: str) -> Result:
    if formulation == "penalty":
        tolerances = NewtonTolerances(coordinates=1e-10)
        return model.simulation(formulation=formulation, step=2e-3, tolerances=tolerances, compiled=False).run(0.3)
    return model.simulation(formulation=formulation, compiled=False, **TIGHT).run(0.3)


@pytest.mark.parametrize(("name", "formulation"), CASES)
def test_motion_and_reactions_turn_along(name: str, formulation: str) -> None:
    rotation = Rotation.random(rng=np.random.default_rng(sum(map(ord, name + formulation))))
    upright, askew = (run(model, formulation) for model in (MODELS[name](), turned_model(MODELS[name](), rotation)))
    results = ({each: result[each] for each in result.names} for result in (upright, askew))
    before, after = (vectors(each, (".centre.*.position", ".force.*", ".moment.*")) for each in results)
    assert before
    # The trapezoidal rule, which the penalty formulation has alone, to a share of the error of its step; multipliers
    # that are iterated to where the iteration ends.
    motion = 1e-7 if formulation == "penalty" else 1e-9
    share = {"penalty": 1e-6, "dca-alm": 1e-5}.get(formulation, 1e-6)
    scale = max(np.max(np.abs(each)) for quantity, each in before.items() if not quantity.endswith("position"))
    for quantity, values in before.items():
        tolerance = motion if quantity.endswith("position") else share * scale
        np.testing.assert_allclose(after[quantity], rotation.apply(values), rtol=0.0, atol=tolerance, err_msg=quantity)
