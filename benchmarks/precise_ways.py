"""Ways to run a machine at several settings: native units, SciPy's Radau and Exudyn."""

from __future__ import annotations

import importlib.util
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
from fmpy.simulation import instantiate_fmu
from precise_machines import SAMPLES, Machine

import mbsfmu
from mbsfmu.compiling.compiler import OPTIMIZATION

os.environ.setdefault(OPTIMIZATION, "suited")  # what is timed is optimized from its first step on


class Way(ABC):
    """A way to run a machine.

    Attributes
    ----------
    name
        For tables and figures.
    settings
        Steps in s or tolerances, from coarse to fine.
    """

    name: str
    settings: tuple[float, ...]

    @abstractmethod
    def run(self, setting: float) -> tuple[np.ndarray, float]:
        """Return the variable at the ends of the communication steps, and the processor time in s."""

    def error(self, found: np.ndarray, machine: Machine) -> float:
        """Return the error of what was found."""
        return machine.error(found)


class Unit(Way):
    """A native unit; processor time of its communication steps alone.

    Parameters
    ----------
    machine, formulation, solver
        What is run.
    settings
        Steps of a rule, tolerances of the others.
    folder
        Where it is exported to.
    """

    def __init__(
        self, machine: Machine, formulation: str, solver: str, settings: tuple[float, ...], folder: Path
    ) -> None:
        self.name = f"{solver}, {formulation}"
        self.solver = solver
        self.settings = settings
        self._machine = machine
        self._equal = solver == "trapezoidal"
        options: dict[str, Any] = {"formulation": formulation, "solver": solver}
        if not self._equal:
            options |= {"relative_tolerance": 1e-4, "absolute_tolerance": 1e-4}
        place = folder / f"{machine.name}-{formulation}-{solver}".replace(" ", "-")
        (path,) = mbsfmu.export(machine.make(), place, layout="monolithic", **options)
        description = fmpy.read_model_description(str(path))
        self._references = {each.name: each.valueReference for each in description.modelVariables}
        self._inputs = [each.valueReference for each in description.modelVariables if each.causality == "input"]
        self._slave = instantiate_fmu(fmpy.extract(str(path), str(place / "unit")), description, "CoSimulation")

    def run(self, setting: float, pieces: int = 1, inputs: tuple[float, ...] = ()) -> tuple[np.ndarray, float]:
        """Make all communication steps, in pieces; values are read outside what is measured.

        `inputs` are set in turn before every piece, as a master does whose other units move.
        """
        slave, whole = self._slave, self._machine.communication
        step = whole / pieces
        slave.setupExperiment(startTime=0.0, tolerance=None if self._equal else setting)
        if self._equal:
            slave.setReal([self._references["solver.step"]], [setting])
        slave.enterInitializationMode()
        slave.exitInitializationMode()
        found, seconds = np.empty(SAMPLES), 0.0
        try:
            for index in range(SAMPLES):
                begin = time.process_time()
                for piece in range(pieces):
                    if inputs:
                        slave.setReal(self._inputs[:1], [inputs[piece % len(inputs)]])
                    slave.doStep(index * whole + piece * step, step)
                seconds += time.process_time() - begin
                (found[index],) = slave.getReal([self._references[self._machine.variable]])
        finally:
            slave.reset()
        return found, seconds


class Radau(Way):
    """SciPy's Radau IIA on `dca`, in process: every evaluation goes through Python."""

    name = "SciPy's Radau, dca"

    def __init__(self, machine: Machine, settings: tuple[float, ...]) -> None:
        self.settings = settings
        self._machine = machine

    def run(self, setting: float) -> tuple[np.ndarray, float]:
        """Run in process."""
        options = {"solver": "radau", "relative_tolerance": setting, "absolute_tolerance": setting}
        simulation = self._machine.make().simulation(formulation="dca", **options)
        begin = time.process_time()
        result = simulation.run(self._machine.stop, output_step=self._machine.communication)
        return result[self._machine.variable][1:], time.process_time() - begin


class Exudyn(Way):
    """A machine in Exudyn, with equal steps: the four-bar without friction, or a ring of links.

    Parameters
    ----------
    machine
        One of `MODELLED`.
    solver
        `TrapezoidalIndex2` or `GeneralizedAlpha`.
    settings
        Steps in s.
    finest
        The step in s of its own converged run, to which the error of the four-bar is taken: that model differs from
        ours in details. Rings are the same in both.
    """

    MODELLED = ("four-bar without friction", "loop-8", "five-bar")
    reference: np.ndarray | None = None

    def __init__(self, machine: Machine, solver: str, settings: tuple[float, ...], finest: float) -> None:
        self.name = f"Exudyn, {solver}"
        self.settings = settings
        self._machine = machine
        self._solver = solver
        self._finest = finest

    @staticmethod
    def is_there() -> bool:
        """Tell whether Exudyn is installed."""
        return importlib.util.find_spec("exudyn") is not None

    def run(self, setting: float) -> tuple[np.ndarray, float]:
        """Run with recording for the values, and without for the time."""
        _, rows = self._made(record=True)(setting)
        run = self._made(record=False)
        begin = time.process_time()
        run(setting)
        seconds = time.process_time() - begin
        ends = self._machine.communication * np.arange(1, SAMPLES + 1)
        return rows[np.searchsorted(rows[:, 0], ends - 1e-6), 1], seconds

    def _made(self, *, record: bool) -> Callable[[float], tuple[float, np.ndarray]]:
        """Make the machine at its start; return what runs it with a step in s."""
        from exudyn_four_bar import FourBar  # noqa: PLC0415 - optional
        from exudyn_ring import Ring  # noqa: PLC0415 - optional

        choice = {"modified": True, "tolerance": 1e-6, "solver": self._solver}
        if self._machine.name == self.MODELLED[0]:
            return partial(FourBar(pressure=record).run, **choice)
        link = int(self._machine.variable.removeprefix("link_").removesuffix(".angle"))
        return partial(Ring(self._machine.make(), link if record else None).run, self._machine.stop, **choice)

    def error(self, found: np.ndarray, machine: Machine) -> float:
        """Return the error to the converged run of the same model."""
        if machine.name != self.MODELLED[0]:
            return machine.error(found)
        if Exudyn.reference is None:
            Exudyn.reference, _ = self.run(self._finest)
        return float(np.max(np.abs(found - Exudyn.reference)) / np.ptp(Exudyn.reference))
