"""Native units that tests share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mbsfmu.simulation.simulation import Simulation


@dataclass(frozen=True)
class Exported:
    """A native unit, and the simulation that it was made from."""

    path: Path
    simulation: Simulation
