"""Native units that tests share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mechanisms import ball_pendulum
from sampled_control import controlled

import mbsfmu
from mbsfmu import CoupledModel
from mbsfmu.simulation.simulation import Simulation

TIGHT = 1e-12
"""Tolerance of adaptive solvers, so that two of them agree."""


@dataclass(frozen=True)
class Exported:
    """A native unit, and the simulation that it was made from."""

    path: Path
    simulation: Simulation


def model_of(name: str) -> CoupledModel:
    """Return a built-in model, or one of those that tests share."""
    if name == "slewing":
        return mbsfmu.models.slewing_four_bar(speed=4.0)
    if name == "sampled":
        return controlled()
    return ball_pendulum() if name == "ball-pendulum" else mbsfmu.models.built_in(name)
