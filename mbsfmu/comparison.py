"""What coupling costs: coupled runs of a model held against its monolithic run."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim import CosimulationError, CosimulationResult, cosimulate
from mbsfmu.cosim.extrapolation import Extrapolation
from mbsfmu.coupled import CoupledModel
from mbsfmu.errors import InputError
from mbsfmu.exporting import export
from mbsfmu.simulation.result import Result
from mbsfmu.variables import Causality

CHOICES = ("jacobi", "jacobi-linear", "gauss-seidel", "gauss-seidel-linear")
"""Algorithms with their extrapolation: `jacobi` holds inputs, `jacobi-linear` extrapolates them."""
LOST = 1.0
"""A run whose error exceeds the whole range of the reference counts as diverged."""
_CURVE_POINTS = 1000


@dataclass
class Run:
    """One coupled run.

    Attributes
    ----------
    algorithm, step
        One of `CHOICES`, and the communication step in s.
    layout
        `separate`: one unit per system.
    status
        `ok`, or `diverged` with the reason in `message`.
    error
        For each output, the largest deviation from the reference over time, relative to the reference's range.
    energy_residual
        Largest residual energy of the power bonds in J; None without bonds.
    steps, rollbacks
        Communication steps made, and those made again (none with fixed steps).
    wall_seconds
        Time it took.
    """

    algorithm: str
    step: float
    status: str
    error: dict[str, float | None]
    energy_residual: float | None
    steps: int
    wall_seconds: float
    message: str = ""
    layout: str = "separate"
    rollbacks: int = 0
    curves: dict[str, list[float]] = field(default_factory=dict, repr=False)

    @property
    def worst_error(self) -> float | None:
        """The largest of the errors; None where the run diverged."""
        values = [value for value in self.error.values() if value is not None]
        return max(values) if self.status == "ok" and values else None


@dataclass
class Comparison:
    """Coupled runs beside the monolithic one.

    Attributes
    ----------
    model, description, formulation
        What was compared.
    reference
        Summary of the monolithic run.
    outputs
        Names and units of the compared outputs.
    runs
        The coupled runs.
    order
        Observed order of each algorithm over its converged steps; None where there are fewer than two.
    """

    model: str
    description: str
    formulation: str
    reference: dict[str, Any]
    outputs: dict[str, str]
    runs: list[Run]
    order: dict[str, float | None]
    curves: dict[str, Any] = field(repr=False)

    def to_dict(self, curves: bool = False) -> dict[str, Any]:
        """Return what `compare --json` writes; with the curves for the report."""
        runs = [{key: value for key, value in vars(run).items() if key != "curves"} for run in self.runs]
        result: dict[str, Any] = {
            "model": self.model,
            "description": self.description,
            "formulation": self.formulation,
            "reference": self.reference,
            "outputs": [{"name": name, "unit": unit} for name, unit in self.outputs.items()],
            "runs": runs,
            "order": self.order,
        }
        return {**result, "curves": self.curves} if curves else result


def compare(
    model: CoupledModel,
    *,
    steps: Sequence[float] = (2e-3, 1e-3, 5e-4),
    algorithms: Sequence[str] = CHOICES,
    formulation: str | None = None,
    backend: str = "native",
    stop: float | None = None,
    workers: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Run a model monolithically and coupled, with every algorithm and communication step.

    All runs take the same largest internal step, the smallest communication step, so that what differs is the
    coupling alone.

    Parameters
    ----------
    model
        A model of at least two systems.
    steps
        Communication steps in s.
    algorithms
        Some of `CHOICES`.
    formulation, backend
        As for `export`.
    stop
        End time in s; the model's by default.
    workers
        Number of processes that runs are shared over.
    progress
        Called with the share that is done.

    Raises
    ------
    InputError
        When a word or number is wrong, or the model has only one system.
    SimulationError
        When the monolithic run fails.
    """
    if len(model.systems) < 2:
        raise InputError(f"{model.name} has one system; there is nothing to couple")
    for name in algorithms:
        if name not in CHOICES:
            raise InputError(f"there is no algorithm '{name}'; there are {', '.join(CHOICES)}")
    for step in steps:
        if not (step > 0 and math.isfinite(step)):
            raise InputError(f"the step is {step:g} s; it must be positive")
    if not steps or not algorithms:
        raise InputError("a comparison needs at least one step and one algorithm")
    internal = min(steps)
    simulation = model.simulation(formulation=formulation, step=internal)
    reference = simulation.run(stop)
    outputs = {v.name: v.unit for v in simulation.variables if v.causality is Causality.OUTPUT}
    end = float(reference.time[-1])
    with tempfile.TemporaryDirectory(prefix="mbsfmu-") as folder:
        paths = export(model, folder, layout="separate", backend=backend, formulation=formulation, step=internal)
        settings = [(paths[-1], name, step, end) for name in algorithms for step in sorted(steps, reverse=True)]
        results = _run_all(settings, workers, progress)
    runs = [
        _judge(name, step, result, message, reference, outputs)
        for (_, name, step, _), (result, message) in zip(settings, results, strict=True)
    ]
    return Comparison(
        model.name,
        model.description,
        reference.formulation,
        reference.summary(),
        outputs,
        runs,
        {name: _order([run for run in runs if run.algorithm == name]) for name in algorithms},
        _curves(reference, outputs, runs),
    )


def _run_all(
    settings: list[tuple[Path, str, float, float]], workers: int, progress: Callable[[float], None] | None
) -> list[tuple[CosimulationResult, str]]:
    if workers <= 1:
        results = []
        for index, setting in enumerate(settings, start=1):
            results.append(_run(setting))
            if progress is not None:
                progress(index / len(settings))
        return results
    with ProcessPoolExecutor(workers) as executor:
        futures = [executor.submit(_run, setting) for setting in settings]
        for index, _ in enumerate(as_completed(futures), start=1):
            if progress is not None:
                progress(index / len(settings))
        return [future.result() for future in futures]


def _run(setting: tuple[Path, str, float, float]) -> tuple[CosimulationResult, str]:
    """Return a coupled run and why it failed, if it did."""
    package, name, step, stop = setting
    extrapolation = Extrapolation.LINEAR if name.endswith("-linear") else Extrapolation.ZERO
    algorithm = name.removesuffix("-linear")
    try:
        result = cosimulate(package, algorithm=algorithm, extrapolation=extrapolation, step=step, stop=stop)
    except CosimulationError as error:
        return error.result, str(error)
    return result, ""


def _judge(
    name: str,
    step: float,
    result: CosimulationResult,
    message: str,
    reference: Result,
    outputs: dict[str, str],
) -> Run:
    """Hold a run against the reference."""
    errors: dict[str, float | None] = {}
    for output in outputs:
        expected = np.interp(result.time, reference.time, reference[output])
        scale = np.ptp(reference[output]) or np.max(np.abs(reference[output])) or 1.0
        errors[output] = float(np.max(np.abs(result[output] - expected)) / scale)
    if not message:
        lost = [output for output, error in errors.items() if error is not None and not error <= LOST]
        if lost:
            message = f"{lost[0]} is off by {100 * (errors[lost[0]] or 0.0):.0f} % of its range"
    return Run(
        name,
        step,
        "diverged" if message else "ok",
        dict.fromkeys(errors) if message else errors,
        result.energy_residual_max,
        result.steps,
        result.wall_seconds,
        message,
        curves=_thinned(result, reference, outputs),
    )


def _grid(reference: Result) -> NDArray[np.float64]:
    return np.linspace(reference.time[0], reference.time[-1], min(_CURVE_POINTS, len(reference.time)))


def _thinned(result: CosimulationResult, reference: Result, outputs: dict[str, str]) -> dict[str, list[float]]:
    """Return signals on the report's grid, as far as the run came."""
    times = _grid(reference)
    times = times[times <= result.time[-1] + 1e-9]
    names = [*outputs, *(name for name in result.names if name.startswith("energy_residual."))]
    return {name: np.interp(times, result.time, result[name]).tolist() for name in names}


def _curves(reference: Result, outputs: dict[str, str], runs: list[Run]) -> dict[str, Any]:
    """Gather what the report draws."""
    times = _grid(reference)
    signals = {
        output: {
            "monolithic": np.interp(times, reference.time, reference[output]).tolist(),
            **{f"{run.algorithm} {run.step:g} s": run.curves[output] for run in runs},
        }
        for output in outputs
    }
    residual = {
        f"{run.algorithm} {run.step:g} s": np.sum(
            [values for name, values in run.curves.items() if name.startswith("energy_residual.")], axis=0
        ).tolist()
        for run in runs
        if run.energy_residual is not None
    }
    return {"time": times.tolist(), "signals": signals, "energy_residual": residual}


def _order(runs: list[Run]) -> float | None:
    """Return the slope of log(error) over log(step), by least squares over the runs that did not diverge."""
    points = [(run.step, run.worst_error) for run in runs if run.worst_error]
    if len({step for step, _ in points}) < 2:
        return None
    steps, errors = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(steps, errors, 1)[0])
