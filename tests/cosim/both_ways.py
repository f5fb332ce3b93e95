"""Runs by compiled code and by Python, which must be the same to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from mbsfmu import CosimulationError
from mbsfmu.cosim import CosimulationResult

Run = Callable[..., CosimulationResult]
Failures = Callable[..., list[CosimulationError]]


def check_same(one: CosimulationResult, other: CosimulationResult) -> None:
    assert one.names == other.names
    assert one.time.tobytes() == other.time.tobytes()
    assert [name for name in one.names if one[name].tobytes() != other[name].tobytes()] == []
    statistics = [{**asdict(each.statistics), "wall_seconds": 0.0} for each in (one, other)]
    assert statistics[0] == statistics[1]
