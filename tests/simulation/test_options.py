"""Options of simulations that have no effect, do not exist or are no numbers are refused in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mbsfmu
from mbsfmu import InputError

LOOP = mbsfmu.models.built_in("loop-4")


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize(
    ("option", "formulation", "sentence"),
    [
        ("projections", "double-step", "has no effect with the formulation 'double-step'; it has with dca-alm"),
        ("projections", "penalty", "has no effect with the formulation 'penalty'; it has with dca-alm"),
        ("projections", "hdca", "has no effect with the formulation 'hdca'; it has with dca-alm"),
        ("restart_momenta", "dca", "has no effect with the formulation 'dca', which has no momenta; it has with hdca"),
        ("restart_momenta", "dca-alm", "has no effect with the formulation 'dca-alm', which has no momenta"),
    ],
)
def test_either_choice_needs_its_formulation(
    option: str, formulation: str, sentence: str, chosen: bool, tmp_path: Path
) -> None:
    sentence = f"^{option} = {chosen} {sentence}"
    with pytest.raises(InputError, match=sentence):
        LOOP.simulation(formulation=formulation, **{option: chosen})
    with pytest.raises(InputError, match=sentence):
        mbsfmu.export(LOOP, tmp_path, formulation=formulation, **{option: chosen})
    with pytest.raises(InputError, match=sentence):
        mbsfmu.sweep(LOOP, settings={"formulation": [formulation], option: [chosen]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"stepp": 1e-3}, "there is no option 'stepp' of a simulation; did you mean 'step'"),
        ({"compile": False}, "there is no option 'compile' of a simulation; did you mean 'compiled'"),
        ({"name": "other"}, "there is no option 'name' of a simulation; there are compiled, formulation, solver"),
        ({"step": "1e-3"}, "the step is '1e-3'; it must be a number"),
        ({"step": np.inf}, "the step is inf; it must be finite"),
        ({"relative_tolerance": "small"}, "the relative tolerance is 'small'; it must be a number"),
        ({"newton_tolerance": True}, "the Newton tolerance is True; it must be a number"),
        (
            {"formulation": "dca", "solver": "rk45", "relative_tolerance": 1e-20},
            "the relative tolerance is 1e-20; it must be at least 1e-13, round-off",
        ),
        ({"formulation": 3}, "there is no formulation '3'; there are double-step"),
        ({"solver": ["rk4"]}, r"there is no solver '\['rk4'\]'; there are trapezoidal"),
        ({"formulation": "penalty", "stabilisation": 0.0}, "stabilisation is for the formulations 'dca', 'hdca'"),
        (
            {"formulation": "hdca", "solver": "lsoda", "restart_momenta": True},
            "restart_momenta = True does not go with the solver 'lsoda', which remembers earlier steps",
        ),
    ],
)
def test_what_is_no_option_is_told(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        LOOP.simulation(**options)


def test_a_part_refuses_what_the_whole_refuses() -> None:
    with pytest.raises(InputError, match="there is no option 'stepp' of a simulation; did you mean 'step'"):
        LOOP.simulation_of(next(iter(LOOP.systems)), stepp=1e-3)


@pytest.mark.parametrize(
    ("formulation", "options"),
    [
        ("hdca", {"restart_momenta": True}),
        ("dca-alm", {"projections": True}),
    ],
)
def test_the_default_may_be_said(formulation: str, options: dict[str, bool]) -> None:
    """It is the same simulation: the one takes the other's states."""
    said, unsaid = (
        LOOP.simulation(formulation=formulation, compiled=False, **each) for each in (options, dict[str, bool]())
    )
    assert said.identity == unsaid.identity
    said.restore(unsaid.save())
