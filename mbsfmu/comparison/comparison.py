"""Comparison of coupled runs with the monolithic and the reference run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypedDict

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.base.options import POSITIVE, ChoiceOption, ListOption, Number, Options, Switch
from mbsfmu.comparison.cost import cheapest_runs, nothing_moves, reference_verdict, same_runs, step_verdict, verdict
from mbsfmu.comparison.reference_run import CoupledReference, TightRun
from mbsfmu.comparison.run import Run, StabilityLimit
from mbsfmu.cosim.coupling.algorithms import CHOICES, USUAL
from mbsfmu.exporting.fmu_export import BACKENDS, Backend
from mbsfmu.io.tables import optional
from mbsfmu.io.trajectory import Columns, Tabular, Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.modelling import closest_match, html_table
from mbsfmu.simulation.run_options import RunOptions
from mbsfmu.view.plots.plot import Curve

if TYPE_CHECKING:
    import xarray

    from mbsfmu.view.scene import Animation


ACCURACY = 1e-2
"""Default accuracy of outputs."""


class ComparisonKeywords(TypedDict, total=False):
    """The options of a comparison as keywords, for editors and type checkers; `ComparisonOptions` explains them."""

    steps: Sequence[float] | None
    algorithms: Sequence[str] | None
    formulation: str | None
    newton_tolerance: float | None
    backend: Backend | None
    stop: float | None
    accuracy: float | None
    stability: bool | None


class ComparisonOptions(Options):
    """Options of a comparison.

    All runs have the same largest internal step, the smallest communication step, so that the difference from the
    monolithic run is the coupling error alone; that from the reference run is the error of coupling and step together.

    Raises
    ------
    InputError
        When a word is unknown, a number is out of range, or a list is empty or has a value twice.
    """

    subject: ClassVar[str] = "a comparison"

    steps: Annotated[
        tuple[float, ...],
        ListOption("Communication steps in s", each=Number("One of them.", unit="s", bounds=POSITIVE, called="step")),
    ] = (2e-3, 1e-3, 5e-4)
    algorithms: Annotated[
        tuple[str, ...],
        ListOption(
            "Algorithms with their extrapolation",
            each=ChoiceOption("One of them.", among=lambda: CHOICES, called="algorithm"),
        ),
    ] = USUAL
    formulation: Annotated[str | None, RunOptions.known()["formulation"]] = None
    newton_tolerance: Annotated[float | None, RunOptions.known()["newton_tolerance"]] = None
    backend: Annotated[str, ChoiceOption("Backend of the FMUs", among=lambda: BACKENDS)] = BACKENDS[0]
    stop: Annotated[
        float | None, Number("Stop time in s; the model's by default", unit="s", bounds=POSITIVE, called="stop time")
    ] = None
    accuracy: Annotated[
        float,
        Number(
            "Error wanted of coupling and step together, relative to the range of each output; the report names the "
            "least expensive setting that reaches it",
            bounds=POSITIVE,
        ),
    ] = ACCURACY
    stability: Annotated[bool, Switch("Whether to search the largest stable step of each algorithm")] = False


_TOLD = ("algorithm", "step", "layout", "status", "message")
_COSTS = ("energy_residual", "energy_residual_share", "steps", "rollbacks", "wall_seconds", "cost", "loading_seconds")
_UNITS = {"step": "s", "energy_residual": "J", "wall_seconds": "s", "cost": "s/s", "loading_seconds": "s"}
_ERRORS = ("error", "error_total", "error_inside")
_DRAWN = 1000  # times of a motion


@dataclass(repr=False)
class Comparison(Tabular):
    """Coupled runs compared with the monolithic and the reference run.

    Attributes
    ----------
    model, description, formulation
        What was compared.
    reference
        Summary of the monolithic run, of FMUs that of the reference run, with its `cost`, processor time in s per
        simulated second. That of a model has as `error` how far each output is from the tight run at most, relative to
        its range: what the step costs. Errors of outputs that do not move, `still`, are relative to their magnitude,
        here and in the runs.
    outputs
        Names and units of the compared outputs.
    runs
        The coupled runs.
    order
        Observed order of each algorithm over its converged steps; None where there are fewer than two.
    reference_run
        The monolithic run with all its signals; of FMUs the reference run with the compared outputs.
    accuracy
        Largest error wanted, relative to the range of an output.
    stability
        Where each algorithm becomes unstable, if that was asked for.
    tight
        The run of a model that stands for the exact solution.
    machine
        What was compared, as data; None where nobody said.
    coupled_reference
        The reference of FMUs, which have no monolithic model; None where there is a model.
    left_out
        Outputs of FMUs that are not compared, because they are discrete: they jump at other times in each run.
    same_runs
        Algorithms that are not listed, by name the listed one whose runs theirs are to the last bit: where joints alone
        couple the FMUs, `jacobi` and `gauss-seidel` leave them to the same solution.
    """

    model: str
    description: str
    formulation: str
    reference: dict[str, Any]
    outputs: dict[str, str]
    runs: list[Run]
    order: dict[str, float | None]
    reference_run: Trajectory
    accuracy: float = ACCURACY
    stability: Mapping[str, StabilityLimit] = field(default_factory=dict)
    tight: TightRun = field(default_factory=TightRun)
    machine: Machine | None = None
    coupled_reference: CoupledReference | None = None
    left_out: Sequence[str] = ()
    same_runs: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What the runs are compared with: `monolithic`, or `reference` of FMUs."""
        return "monolithic" if self.coupled_reference is None else "reference"

    @property
    def subject(self) -> str:
        """The model with its formulation, or the FMUs."""
        return f"{self.model}, {self.formulation}" if self.formulation else self.model

    def __repr__(self) -> str:
        algorithms = ", ".join(self.order)
        return f"<Comparison: {self.subject}, {len(self.runs)} runs of {algorithms}>"

    def _repr_html_(self) -> str:
        columns = ("algorithm", "step [s]", "status", "largest error [%]", f"{self.total_label} [%]", "cost [s/s]")
        rows = (
            (run.algorithm, run.step, run.status, *map(_percent, (run.worst_error, run.worst_total)), run.cost)
            for run in self.runs
        )
        return html_table(columns, rows, f"{self.subject}. {self.verdict if self.runs else ''}")

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
        return animate(self.reference_run, self.machine, ghosts, **{"label": self.label, **chosen})

    def _drawn(self, curves: Mapping[str, Curve]) -> Trajectory:
        """Return the completed part of a run at equidistant times."""
        first = next(iter(curves.values()))
        times = np.linspace(first.x[0], first.x[-1], min(_DRAWN, first.whole))
        values = np.stack([np.interp(times, curve.x, curve.y) for curve in curves.values()], axis=1)
        return Trajectory(times, values, list(curves), [self.outputs[name] for name in curves])

    @property
    def moves(self) -> bool:
        """Whether any output of the reference run changes."""
        return not self.outputs.keys() <= set(self.reference.get("still", ()))

    @property
    def cheapest(self) -> list[Run]:
        """The least expensive of the sufficiently accurate runs.

        Of equal ones, the most accurate first; none if no run is accurate enough, nothing moves, or the reference of
        FMUs is too uncertain.
        """
        return cheapest_runs(self.runs, self.accuracy) if self.moves and not self.doubt else []

    @property
    def doubt(self) -> str:
        """Why the reference of FMUs is too uncertain for a verdict, in words; empty otherwise."""
        return "" if self.coupled_reference is None else self.coupled_reference.doubt

    @property
    def verdict(self) -> str:
        """The least expensive setting for the wanted accuracy, in one sentence."""
        if not self.moves:
            return nothing_moves(self.reference, self.label)
        if self.doubt:
            return f"No verdict: {self.doubt}."
        return verdict(self.runs, self.order, self.accuracy, self.reference)

    @property
    def same_runs_sentence(self) -> str:
        """Which algorithms make the runs of others, in one sentence; empty without them."""
        return same_runs(self.same_runs)

    @property
    def total_label(self) -> str:
        """What the error of a run has beside that of coupling."""
        return "with the step's" if self.coupled_reference is None else "with that inside"

    @property
    def step_verdict(self) -> str:
        """The error of the step, of FMUs that of the reference, in one sentence or two; empty if nothing moves."""
        if not self.moves or self.doubt:
            return ""
        if self.coupled_reference is not None:
            return reference_verdict(self.coupled_reference)
        return step_verdict(self.reference, self.tight)

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
            "coupled_reference": None if self.coupled_reference is None else self.coupled_reference.to_dict(),
            "left_out": list(self.left_out),
            "same_runs": dict(self.same_runs),
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
