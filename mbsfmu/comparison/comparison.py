"""Comparison of coupled runs with the monolithic and the reference run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.comparison.comparison_options import ACCURACY
from mbsfmu.comparison.cost import nothing_moves, step_verdict, verdict
from mbsfmu.comparison.run import Run
from mbsfmu.comparison.stability import StabilityLimit
from mbsfmu.comparison.tight import TightRun
from mbsfmu.comparison.timing import cheapest_runs
from mbsfmu.io.tables import optional
from mbsfmu.io.tabular import Columns, Tabular
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.modelling import closest_match, html_table
from mbsfmu.view.plots.curve import Curve

if TYPE_CHECKING:
    import xarray

    from mbsfmu.view.scene import Animation

_TOLD = ("algorithm", "step", "layout", "status", "message")
_COSTS = ("energy_residual", "energy_residual_share", "steps", "rollbacks", "wall_seconds", "cost", "loading_seconds")
_UNITS = {"step": "s", "energy_residual": "J", "wall_seconds": "s", "cost": "s/s", "loading_seconds": "s"}
_ERRORS = ("error", "error_total")
_DRAWN = 1000  # times of a motion


@dataclass(repr=False)
class Comparison(Tabular):
    """Coupled runs compared with the monolithic and the reference run.

    Attributes
    ----------
    model, description, formulation
        What was compared.
    reference
        Summary of the monolithic run, with its `cost`, processor time in s per simulated second, and as `error` how far
        each output is from the tight run at most, relative to its range: what the step costs. Errors of outputs that do
        not move, `still`, are relative to their magnitude, here and in the runs.
    outputs
        Names and units of the compared outputs.
    runs
        The coupled runs.
    order
        Observed order of each algorithm over its converged steps; None where there are fewer than two.
    monolithic
        The monolithic run, with all its signals.
    accuracy
        Largest error wanted, relative to the range of an output.
    stability
        Where each algorithm becomes unstable, if that was asked for.
    tight
        The run that stands for the truth.
    machine
        What was compared, as data; None where nobody said.
    """

    model: str
    description: str
    formulation: str
    reference: dict[str, Any]
    outputs: dict[str, str]
    runs: list[Run]
    order: dict[str, float | None]
    monolithic: Trajectory
    accuracy: float = ACCURACY
    stability: Mapping[str, StabilityLimit] = field(default_factory=dict)
    tight: TightRun = field(default_factory=TightRun)
    machine: Machine | None = None

    def __repr__(self) -> str:
        algorithms = ", ".join(self.order)
        return f"<Comparison: {self.model}, {self.formulation}, {len(self.runs)} runs of {algorithms}>"

    def _repr_html_(self) -> str:
        columns = ("algorithm", "step [s]", "status", "largest error [%]", "with the step's [%]", "cost [s/s]")
        rows = (
            (run.algorithm, run.step, run.status, *map(_percent, (run.worst_error, run.worst_total)), run.cost)
            for run in self.runs
        )
        return html_table(columns, rows, f"{self.model}, {self.formulation}. {self.verdict if self.runs else ''}")

    def _columns(self) -> Columns:
        columns: dict[str, list[Any]] = {name: [getattr(run, name) for run in self.runs] for name in _TOLD}
        for error in _ERRORS:
            for output in self.outputs:
                columns[f"{error}.{output}"] = [_number(getattr(run, error).get(output)) for run in self.runs]
        return columns | {name: [_number(getattr(run, name)) for run in self.runs] for name in _COSTS}

    def _units(self) -> Mapping[str, str]:
        return _UNITS

    def _metadata(self) -> dict[str, Any]:
        return {"model": self.model, "description": self.description, "formulation": self.formulation}

    def to_xarray(self) -> xarray.Dataset:
        """Return a dataset over `algorithm`, `step` in s and, of errors, `output`; not-a-number where there is no run.

        Raises
        ------
        InputError
            When xarray is not installed.
        """
        algorithms, outputs = list(dict.fromkeys(run.algorithm for run in self.runs)), list(self.outputs)
        steps = sorted({run.step for run in self.runs}, reverse=True)
        grid = ("algorithm", "step")
        place = [(algorithms.index(run.algorithm), steps.index(run.step)) for run in self.runs]
        variables: dict[str, Any] = {}
        for name in _COSTS:
            values = np.full((len(algorithms), len(steps)), np.nan)
            for where, run in zip(place, self.runs, strict=True):
                values[where] = _number(getattr(run, name))
            variables[name] = (grid, values, {"units": _UNITS.get(name, "1")})
        for name in _ERRORS:
            values = np.full((len(algorithms), len(steps), len(outputs)), np.nan)
            for where, run in zip(place, self.runs, strict=True):
                values[where] = [_number(getattr(run, name).get(output)) for output in outputs]
            variables[name] = ((*grid, "output"), values, {"units": "1"})
        coordinates = {"algorithm": algorithms, "step": ("step", steps, {"units": "s"}), "output": outputs}
        return optional("xarray", "to_xarray").Dataset(variables, coordinates, self._metadata())

    def animate(self, labels: Sequence[str] | None = None, **chosen: Any) -> Animation:
        """Return an animation of the monolithic run with coupled runs as ghosts.

        Parameters
        ----------
        labels
            Which coupled runs, as `jacobi 0.001 s`; of each algorithm that of the largest step that did not diverge by
            default.
        chosen
            What `mbsfmu.animate` takes beside: `frame_rate`.

        Raises
        ------
        InputError
            When there is no mechanism, no such run, or outputs do not say where bodies are; the sentence names them.
        """
        from mbsfmu.view.scene import animate  # noqa: PLC0415 - few comparisons are looked at

        if self.machine is None:
            raise InputError(f"the comparison of {self.model} does not know what it compared, nor how that moves")
        known = {run.label: run for run in sorted(self.runs, key=lambda each: each.step) if run.curves.outputs}
        coarsest = {run.algorithm: label for label, run in known.items() if run.status == "ok"}
        if missing := next((label for label in labels or () if label not in known), None):
            raise InputError(f"there is no motion of a coupled run '{missing}'; {closest_match(missing, known)}")
        wanted = coarsest.values() if labels is None else labels
        ghosts = {label: self._drawn(known[label].curves.outputs) for label in wanted}
        return animate(self.monolithic, self.machine, ghosts, **{"label": "monolithic", **chosen})

    def _drawn(self, curves: Mapping[str, Curve]) -> Trajectory:
        """Return the completed part of a run at equidistant times."""
        first = next(iter(curves.values()))
        times = np.linspace(first.x[0], first.x[-1], min(_DRAWN, first.whole))
        values = np.stack([np.interp(times, curve.x, curve.y) for curve in curves.values()], axis=1)
        return Trajectory(times, values, list(curves), [self.outputs[name] for name in curves])

    @property
    def moves(self) -> bool:
        """Whether any output of the monolithic run changes."""
        return not self.outputs.keys() <= set(self.reference.get("still", ()))

    @property
    def cheapest(self) -> list[Run]:
        """The least expensive of the sufficiently accurate runs.

        Of equal ones, the most accurate first; None if no run is accurate enough, or nothing moves.
        """
        return cheapest_runs(self.runs, self.accuracy) if self.moves else []

    @property
    def verdict(self) -> str:
        """The least expensive setting for the wanted accuracy, in one sentence."""
        if not self.moves:
            return nothing_moves(self.reference)
        return verdict(self.runs, self.order, self.accuracy, self.reference)

    @property
    def step_verdict(self) -> str:
        """The error of the step, in one sentence or two; empty if nothing moves."""
        return step_verdict(self.reference, self.tight) if self.moves else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the data that `compare --json` writes."""
        return {
            "model": self.model,
            "description": self.description,
            "formulation": self.formulation,
            "reference": self.reference,
            "outputs": [{"name": name, "unit": unit} for name, unit in self.outputs.items()],
            "runs": [run.to_dict() for run in self.runs],
            "order": self.order,
            "accuracy": self.accuracy,
            "cheapest": [{"algorithm": run.algorithm, "step": run.step} for run in self.cheapest],
            "verdict": self.verdict,
            "step_verdict": self.step_verdict,
            "tight": self.tight.to_dict(),
            "stability": {name: asdict(limit) for name, limit in self.stability.items()},
        }


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


class ComparisonInterrupted(KeyboardInterrupt):
    """Interrupted comparison; `comparison` has the completed runs, of `wanted`."""

    def __init__(self, comparison: Comparison, wanted: int) -> None:
        super().__init__()
        self.comparison, self.wanted = comparison, wanted
