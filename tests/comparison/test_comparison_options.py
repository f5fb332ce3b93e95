"""Options of a comparison: one object, checked before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

import mbsfmu
from mbsfmu.base.errors import InputError


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"steps": []}, "there is no step; at least one is needed"),
        ({"steps": [1e-3, 1e-3]}, "a step is given twice: 0.001, 0.001"),
        ({"steps": 1e-3}, "the steps are 0.001; they must be a list"),
        ({"steps": [0.0]}, "the step is 0 s; it must be positive"),
        ({"algorithms": ["euler"]}, "there is no algorithm 'euler'"),
        ({"algorithms": "jacobi"}, "the algorithms are 'jacobi'; they must be a list"),
        ({"accuracy": -1.0}, "the accuracy is -1; it must be positive"),
        ({"backend": "java"}, "there is no backend 'java'"),
        ({"tempo": 1}, "there is no option 'tempo' of a comparison; there are workers, progress, connections"),
        ({}, "pendulum-1 has one system; there is nothing to couple"),
    ],
)
def test_refusals(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        mbsfmu.compare(mbsfmu.models.pendulum(1), **given)


def test_an_object_and_names_go_together() -> None:
    options = mbsfmu.ComparisonOptions(steps=[1e-3, 2e-3], accuracy=1e-3)
    chosen = mbsfmu.ComparisonOptions.of(options, {"accuracy": 1e-4, "stop": None})
    assert (chosen.steps, chosen.accuracy, chosen.stop) == ((1e-3, 2e-3), 1e-4, None)
    assert chosen.algorithms == mbsfmu.ComparisonOptions().algorithms
