"""The machines of the work-precision diagrams, and what their error is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import mbsfmu
from mbsfmu import CoupledModel

SAMPLES = 20
"""Communication steps of a run: errors are taken at their ends."""


def example(name: str) -> CoupledModel:
    """Return a machine of the examples."""
    sys.path.insert(0, str(Path(mbsfmu.__file__).parents[1] / "examples"))
    return getattr(importlib.import_module(name), name)()


@dataclass(frozen=True)
class Machine:
    """A model with the variable that is looked at.

    Attributes
    ----------
    name
        For tables and files.
    make
        Makes the model.
    variable
        Its name.
    stop
        End of the run in s; short of where the motion of mechanisms without friction becomes chaotic.
    """

    name: str
    make: Callable[[], CoupledModel]
    variable: str
    stop: float

    @property
    def smooth(self) -> bool:
        """Whether it is a mechanism alone, which explicit methods can run in steps of a sensible length."""
        return not self.variable.endswith("pressure_piston")

    @property
    def communication(self) -> float:
        """The communication step in s."""
        return self.stop / SAMPLES

    @cached_property
    def reference(self) -> np.ndarray:
        """The variable at the ends of the communication steps, by SciPy's Radau; told how far `rodas5p` is from it."""
        options = {"formulation": "double-step", "compiled": False, "relative_tolerance": 1e-10}
        runs = [
            self.make().simulation(solver=solver, absolute_tolerance=1e-10, **options)
            for solver in ("radau", "rodas5p")
        ]
        radau, ours = (run.run(self.stop, output_step=self.communication)[self.variable][1:] for run in runs)
        self.__dict__["doubt"] = float(np.max(np.abs(ours - radau)) / np.ptp(radau))
        return radau

    @property
    def doubt(self) -> float:
        """How far two references are from each other, as a share of the variable's span."""
        assert self.reference.size
        return self.__dict__["doubt"]

    def error(self, found: np.ndarray) -> float:
        """Return the largest error as a share of the variable's span."""
        return float(np.max(np.abs(found - self.reference)) / np.ptp(self.reference))


MACHINES = tuple(
    Machine(name, make, variable, stop)
    for name, make, variable, stop in (
        ("four-bar without friction", lambda: mbsfmu.models.four_bar("frictionless"), "cylinder.pressure_piston", 10.0),
        ("four-bar", mbsfmu.models.four_bar, "cylinder.pressure_piston", 10.0),
        ("quick-return", mbsfmu.models.quick_return, "cylinder.pressure_piston", 10.0),
        ("crane", lambda: example("crane"), "lift.pressure_piston", 5.0),
        ("excavator", lambda: example("excavator"), "boom_cylinder.pressure_piston", 5.0),
        ("loop-8", mbsfmu.models.loop_8, "link_4.angle", 2.0),
        ("five-bar", mbsfmu.models.five_bar, "link_2.angle", 2.0),
    )
)
