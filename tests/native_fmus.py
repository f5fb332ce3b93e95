"""Native FMUs that tests share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from fmpy.fmi2 import FMU2Slave
from importer import Importer
from mechanisms import ball_pendulum
from sampled_control import controlled

import mbsfmu
from mbsfmu import CoupledModel
from mbsfmu.simulation.simulation import Simulation

TIGHT = 1e-12
"""Tolerance of adaptive solvers, so that two of them agree."""


@dataclass(frozen=True)
class Exported:
    """A native FMU, and what it was made from."""

    path: Path
    model: CoupledModel
    options: Mapping[str, Any]

    @cached_property
    def simulation(self) -> Simulation:
        """The same as a run in process; it is compiled, which the tests that do not look at it are spared."""
        return self.model.simulation(**self.options)


def model_of(name: str) -> CoupledModel:
    """Return a built-in model, or one of those that tests share."""
    if name == "slewing":
        return mbsfmu.models.slewing_four_bar(speed=4.0)
    if name == "sampled":
        return controlled()
    return ball_pendulum() if name == "ball-pendulum" else mbsfmu.models.built_in(name)


STAYS = 1e-9
"""In rad or m: what a start value may differ from what starts with it."""


def check_start_derivatives(importer: Importer, askew: dict[str, float]) -> None:
    """Hold a unit's derivatives of the start by some parameters against differences.

    Symmetric loops may be closed in two ways that are equally good: other parameters than the model's lead away.
    """
    unknowns = [each.variable.name for each in importer.description.initialUnknowns]
    unknowns = [each for each in unknowns if not any(word in each for word in (".force.", ".moment.", "constraint."))]
    references = [importer.reference[unknown] for unknown in unknowns]

    def starting(changes: dict[str, float]) -> FMU2Slave:
        slave = importer.instance()
        slave.setupExperiment(startTime=0.0)
        slave.enterInitializationMode()
        for parameter, value in {**askew, **changes}.items():
            slave.setReal([importer.reference[parameter]], [value])
        return slave

    def values(changes: dict[str, float]) -> np.ndarray:
        slave = starting(changes)
        found = np.array(slave.getReal(references))
        slave.freeInstance()
        return found

    base = starting({})
    starts = [each for each in importer.reference if each.endswith(("angle_start", "angle_start.x", "velocity_start"))]
    some = [each for each in importer.reference if each.endswith((".mass", ".length", "gravity.y", "centre.x"))]
    assert starts
    for parameter in (*starts[:3], *some[:3]):
        (value,) = base.getReal([importer.reference[parameter]])
        started = importer.reference.get(parameter.replace("_start", ""))
        if parameter in starts and started is not None and abs(base.getReal([started])[0] - value) > STAYS:
            continue  # loops have moved it; next to its value it counts as set, and stays
        exact = np.array(base.getDirectionalDerivative(references, [importer.reference[parameter]], [1.0]))
        step = 1e-6 * max(abs(value), 1.0)
        difference = (values({parameter: value + step}) - values({parameter: value - step})) / (2.0 * step)
        scale = np.max(np.abs(exact)) + np.abs(values({})) * 1e-3
        np.testing.assert_allclose(difference, exact, atol=1e-6 * np.max(scale), err_msg=parameter)
    base.freeInstance()
