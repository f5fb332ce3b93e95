"""Fit of parameters to measured signals by least squares with exact sensitivities."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mbsfmu.analysis.derivative_steps import DerivativeErrors
from mbsfmu.analysis.fitted_machines import (
    FittedMachine,
    FittedRun,
    Request,
    at_bounds,
    checked_interval,
    first_values,
)
from mbsfmu.analysis.gradient import places_in_steps
from mbsfmu.analysis.residuals import (
    LOSSES,
    Experiment,
    FitSignal,
    Loss,
    inflations,
    influence,
    information,
    remarks,
    spread,
)
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.integration.error_measure import LARGE_ERROR
from mbsfmu.io.trajectory import full_name
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measurement_units import Bounds
from mbsfmu.modelling.variables import Variable
from mbsfmu.tracing.workspace import Floats

_LOGGER = logging.getLogger(__name__)
_LEAST_VALUES = 3
"""Of an output whose noise is estimated: fewer are met exactly by a parameter or two, and leave no noise."""
_FAILED = 1e6
"""Residual in standard deviations of a failed run, so that the search shortens its step."""
_TOLERANCE, _NOISE_TOLERANCE = 1e-8, 1e-2
"""Relative change of the sum of squares that ends the search; of one for the noise, which need be no more exact."""
_LEAVES, _ABOVE_LEVEL, _WINDOW, _MOST_OFF = 0.1, 2.0, 10, 2.0
"""A run has left the log where the root mean square of so many residuals exceeds a share of the range, as an
oscillation does that is 6° out of step; noise is tolerated up to twice the level left before. A residual counts as at
most so many times this limit, so that an outlier alone does not reach it."""
_FIRST_SHARE, _GROWTH, _MOST_STAGES = 0.05, 1.05, 20
"""Least share of the log that is fitted at first, least factor by which it grows, and how often at most."""
_SHIFT_OF_INTERVAL, _INDISTINCT, _CHOICES = 0.5, 1e-8, 3
"""Share of half an interval by which the error of steps may shift a value without a word; relative singular value of
derivatives below which parameters are not told apart; how often steps are chosen."""
_STAGE_RUNS, _STAGE_TOLERANCE, _PRIOR = 10, 1e-2, 0.1
"""Of a part of the log: number of runs, relative change of the sum of squares that ends the search, and the misfit, as
a share of a signal's range, that is worth a change of a parameter over its whole range: parameters of which a part says
nothing stay."""


@dataclass(frozen=True)
class FitResult:
    """Result of a fit.

    Attributes
    ----------
    names, units
        Of the parameters, and of delays as `delay(output)` in s.
    values, deviations, lower, upper
        Fitted values, standard deviations, and 95 % intervals (Student's t, by the linearization at the fit; those of
        delays within their bounds); infinite where the data say nothing. Shape (p,).
    covariance, correlation
        Shape (p, p).
    sentences
        What the data say nothing of, what is not told apart, and what lies at a bound.
    signals
        Measured and fitted outputs.
    runs
        Number of runs of an experiment.
    step_errors
        What the error of the steps does to values and intervals.
    derivatives
        How runs were differentiated, in words; empty where derivatives are exact.
    model
        The model with the fitted values.
    by_system
        Names by `system.variable`, which finds values too.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats
    deviations: Floats
    lower: Floats
    upper: Floats
    covariance: Floats
    correlation: Floats
    sentences: tuple[str, ...]
    signals: tuple[FitSignal, ...]
    runs: int
    step_errors: StepErrors
    derivatives: str = ""
    model: Any = field(repr=False, default=None)
    by_system: Mapping[str, str] = field(repr=False, default_factory=dict)

    def __getitem__(self, name: str) -> float:
        """Return the fitted value of a parameter by its name, `system.variable` or a unique ending.

        Raises
        ------
        UnknownNameError
            When there is no such parameter, or several.
        """
        meant = full_name(name, self.names, "fitted parameter", by_system=self.by_system)
        return float(self.values[self.names.index(meant)])

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data; infinite numbers are None."""

        def plain(number: float) -> float | None:
            return float(number) if np.isfinite(number) else None

        parts = (self.names, self.units, self.values, self.deviations, self.lower, self.upper, self.step_errors.shifts)
        return {
            "parameters": [
                {
                    "name": name,
                    "unit": unit,
                    "value": plain(value),
                    "standard_deviation": plain(deviation),
                    "interval_95": [plain(low), plain(high)],
                    "shift_by_steps": plain(shift),
                }
                for name, unit, value, deviation, low, high, shift in zip(*parts, strict=True)
            ],
            "correlation": [[plain(each) for each in row] for row in self.correlation],
            "notes": list(self.sentences),
            "signals": [
                {
                    "experiment": each.experiment,
                    "output": each.output,
                    "unit": each.unit,
                    "noise": each.noise,
                    "rms": float(np.sqrt(np.mean((each.fitted - each.measured) ** 2))),
                    "samples": len(each.times),
                }
                for each in self.signals
            ],
            "runs": self.runs,
            "derivatives": self.derivatives or "exact",
            "steps": list(self.step_errors.steps),
            "error_of_intervals": self.step_errors.intervals,
        }


@dataclass(frozen=True)
class Free:
    """Fitted parameters and delays.

    Attributes
    ----------
    parameters
        Indices of parameters of the system.
    delays
        Places of delayed outputs among what is computed.
    low, high
        Bounds of parameters, then of delays in s.
    """

    parameters: tuple[int, ...]
    delays: tuple[int, ...]
    low: Floats
    high: Floats


Experiments = Sequence[tuple[Experiment, FittedMachine]]
"""Experiments, each with the machine that follows its inputs."""


@dataclass
class _Tally:
    """Runs of experiments, and those that failed, in words."""

    runs: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StepErrors:
    """What the error of the steps of runs does to a fit.

    Attributes
    ----------
    steps
        The steps of the runs, in words.
    shifts
        How far they shift the fitted values, in the units of these, shape (p,); not-a-number where that is not known.
    derivatives
        Errors of the derivatives that intervals follow from, of each experiment; None where they are not known.
    """

    steps: tuple[str, ...]
    shifts: Floats
    derivatives: tuple[DerivativeErrors | None, ...]

    @property
    def intervals(self) -> float | None:
        """By which share intervals are uncertain; None where that is not known."""
        known = [each.largest for each in self.derivatives if each is not None]
        return max(known) if len(known) == len(self.derivatives) else None

    def sentences(self, names: Sequence[str], units: Sequence[str], values: Floats, reach: Floats) -> list[str]:
        """Return sentences on values and intervals that are inexact.

        Parameters
        ----------
        names, units, values, reach
            Of the parameters, and half of their 95 % intervals.
        """
        least = np.minimum(_SHIFT_OF_INTERVAL * reach, LARGE_ERROR * np.abs(values))
        told = [
            f"{name} by {shift:.3g} {unit}".rstrip(" 1") + f" (interval ±{half:.3g})"
            for name, unit, shift, half, limit in zip(names, units, self.shifts, reach, least, strict=True)
            if abs(shift) > limit
        ]
        steps = " and ".join(self.steps)
        sentences = []
        if told:
            sentences.append(
                f"the error of {steps} shifts {', '.join(told)}, as runs with shorter ones show: take shorter ones or "
                "a smaller tolerance, or name none: they are then chosen by their error"
            )
        inexact = [each for each in self.derivatives if each is not None and each.largest > 2.0 * LARGE_ERROR]
        worst = max(inexact, key=lambda each: each.largest, default=None)
        return sentences if worst is None else [*sentences, worst.sentence("intervals are as uncertain")]


class _Residuals:
    """Fitted values of all experiments, and their derivatives, in the units of the outputs.

    Parameters
    ----------
    experiments
        The experiments.
    free
        What is fitted.
    tally
        Gets each run.
    """

    def __init__(self, experiments: Experiments, free: Free, tally: _Tally) -> None:
        self._experiments, self._free = list(experiments), free
        self.tally = tally
        self._known: tuple[Floats, list[FittedRun], Floats] | None = None
        self._slopes: Floats | None = None
        outputs = [(each, place) for each, _ in experiments for place in range(len(each.outputs))]
        counts = [len(each.times[place]) for each, place in outputs]
        self.owners = np.repeat(np.arange(len(outputs)), counts)
        self.outputs = outputs
        self.measured = np.concatenate([each.values[place] for each, place in outputs])
        self.times = np.concatenate([each.times[place] for each, place in outputs])

    def until(self, time: float) -> _Residuals:
        """Return the residuals of what was measured until a time in s."""
        shorter = [(each.until(time), machine) for each, machine in self._experiments]
        return _Residuals(shorter, self._free, self.tally)

    def at(self, values: Floats) -> Floats:
        """Return fitted values at the measured times, shape (k,)."""
        if self._known is None or not np.array_equal(self._known[0], values):
            runs: list[FittedRun] = []
            fitted: list[Floats] = []
            for experiment, machine in self._experiments:
                self.tally.runs += 1
                run = machine.run(self._request(experiment, values))
                runs.append(run)
                for row in range(len(experiment.outputs)):
                    step, share = self._places(experiment, machine, run.times, row, values)
                    fitted.append((1.0 - share) * run.begin[step, row] + share * run.end[step, row])
            self._known, self._slopes = (values.copy(), runs, np.concatenate(fitted)), None
        return self._known[2]

    def tried(self, values: Floats) -> Floats | None:
        """Return the same; None where a run fails, which is noted."""
        try:
            return self.at(values)
        except (SimulationError, InputError) as error:
            names, _ = _names(self._experiments[0][1], self._free)
            told = ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, values.tolist(), strict=True))
            self.tally.failures.append(f"the run with {told} fails: {error}")
            return None

    def slopes(self, values: Floats) -> Floats:
        """Return the derivatives of the fitted values, shape (k, p)."""
        self.at(values)
        assert self._known is not None
        if self._slopes is None:
            found: list[Floats] = []
            for (experiment, machine), run in zip(self._experiments, self._known[1], strict=True):
                found += self._of(experiment, machine, run, values)
            self._slopes = np.concatenate(found)
        return self._slopes

    def _of(self, experiment: Experiment, machine: FittedMachine, run: FittedRun, values: Floats) -> list[Floats]:
        free, count = self._free, len(self._free.parameters)
        along = run.slopes(free.parameters)
        slopes = []
        for row, place in enumerate(experiment.outputs):
            step, share = self._places(experiment, machine, along.times, row, values)
            slope = np.zeros((len(step), len(values)))
            slope[:, :count] = (1.0 - share)[:, None] * along.begin[step, row] + share[:, None] * along.end[step, row]
            if place in free.delays:
                step, _ = self._places(experiment, machine, run.times, row, values)
                delayed = count + free.delays.index(place)
                inside = experiment.times[row] - values[delayed] > 0.0
                rate = (run.end[step, row] - run.begin[step, row]) / np.diff(run.times)[step]
                slope[:, delayed] = np.where(inside, -rate, 0.0)
            slopes.append(slope)
        return slopes

    def _request(self, experiment: Experiment, values: Floats) -> Request:
        """Return what is asked of the run of an experiment."""
        count, stop = len(self._free.parameters), experiment.stop
        moved = [self._moved(experiment, row, values) for row in range(len(experiment.outputs))]
        times = np.unique(np.clip(np.concatenate(moved), 0.0, stop))
        return Request(self._free.parameters, values[:count], stop, experiment.outputs, times)

    def _moved(self, experiment: Experiment, row: int, values: Floats) -> Floats:
        """Return when what was measured of an output was there, in s."""
        free, place, times = self._free, experiment.outputs[row], experiment.times[row]
        return times - (values[len(free.parameters) + free.delays.index(place)] if place in free.delays else 0.0)

    def _places(
        self, experiment: Experiment, machine: FittedMachine, ends: Floats, row: int, values: Floats
    ) -> tuple[np.ndarray, Floats]:
        """Return the step of each measured value of an output, and the fraction of it before, with its delay."""
        moved = np.clip(self._moved(experiment, row, values), 0.0, ends[-1])
        return places_in_steps(ends, moved, machine.outputs[experiment.outputs[row]].name)

    def prepare(self, values: Floats) -> None:
        """Choose the steps that are differentiated for runs with values."""
        for experiment, machine in self._experiments:
            machine.prepare(self._request(experiment, values))

    def step_errors(self, values: Floats, jacobian: Floats, weights: Floats, deviations: Floats) -> StepErrors:
        """Return what the error of the steps does to a fit.

        Where runs are off by Δ, the fitted values are off by about −(JᵀJ)⁻¹ Jᵀ Δ, as of any small change of the data.

        Parameters
        ----------
        values
            The fitted values.
        jacobian, weights
            Derivatives of weighted residuals, and the weights, shapes (k, p) and (k,).
        deviations
            Standard deviations of the values; infinite where the data say nothing.
        """
        fitted, first = self.at(values), 0
        off = np.full(len(fitted), np.nan)
        for experiment, machine in self._experiments:
            finer, factor = machine.finer()
            exact = _Residuals([(experiment, finer)], self._free, _Tally()).tried(values)
            last = first + sum(len(times) for times in experiment.times)
            if exact is not None:
                off[first:last] = factor * (fitted[first:last] - exact)
            first = last
        shifts = np.full(len(values), np.nan)
        if np.isfinite(off).all():
            scale = np.linalg.norm(jacobian, axis=0) + np.finfo(float).tiny
            shifts = -np.linalg.lstsq(jacobian / scale, weights * off, rcond=_INDISTINCT)[0] / scale
        shifts[~np.isfinite(deviations)] = np.nan
        steps = tuple(dict.fromkeys(machine.steps for _, machine in self._experiments))
        derivatives = [machine.errors(self._request(experiment, values)) for experiment, machine in self._experiments]
        return StepErrors(steps, shifts, tuple(derivatives))

    def improved(self, values: Floats, errors: StepErrors) -> bool:
        """Take shorter steps where errors ask for them, and return whether some are others now."""
        changed = [
            machine.improved(self._request(experiment, values), own)
            for (experiment, machine), own in zip(self._experiments, errors.derivatives, strict=True)
        ]
        if any(changed):
            self._known, self._slopes = None, None
        return any(changed)


class _Search:
    """Search for values by least squares within bounds, in shares of the ranges between these.

    Parameters
    ----------
    residuals
        Of all experiments.
    free
        What is fitted.
    loss
        ρ.
    progress
        Called with the number of runs so far.
    """

    def __init__(self, residuals: _Residuals, free: Free, loss: Loss, progress: Callable[[int], None] | None) -> None:
        self._residuals, self._progress = residuals, progress
        self._loss: Loss = loss
        self._low, self._width = free.low, free.high - free.low

    def values(self, shares: Floats) -> Floats:
        """Return the values of shares."""
        return self._low + self._width * shares

    def ended(
        self, residuals: _Residuals, weights: Floats, begin: Floats, *, prior: float = 0.0, **given: Any
    ) -> tuple[Floats, Floats]:
        """Return where `scipy.optimize.least_squares` ends, and what is left of the measured values there.

        Parameters
        ----------
        residuals, weights
            Those that count, and their weights, shape (k,).
        begin
            Where the search begins.
        prior
            Weight of the distance from there.
        given
            Its options.
        """
        from scipy.optimize import least_squares  # noqa: PLC0415 - takes long to load

        count, one = len(weights), np.eye(len(begin))

        def off(shares: Floats) -> Floats:
            fitted = residuals.tried(self.values(shares))
            if fitted is None:
                return np.full(count + len(begin), _FAILED)
            if self._progress is not None:
                self._progress(residuals.tally.runs)
            return np.concatenate([(fitted - residuals.measured) * weights, prior * (shares - begin)])

        def slopes(shares: Floats) -> Floats:
            found = residuals.slopes(self.values(shares)) * self._width * weights[:, None]
            return np.concatenate([found, prior * one])

        found = least_squares(
            off, begin, slopes, bounds=(0.0, 1.0), loss=self._loss, x_scale="jac", xtol=1e-10, **given
        )
        return np.asarray(found.x), np.asarray(found.fun[:count]) / weights

    def grown(self, ranges: Floats, begin: Floats) -> Floats:
        """Return values from which the fit of the whole log begins.

        Where the run with the first values leaves the log, residuals bend, and a search by their slopes goes astray:
        oscillations come out of step. So the log is fitted up to there first, and on from there as far as the run with
        the values found follows it, until it does so to the end.

        Parameters
        ----------
        ranges
            Of each measured output.
        begin
            Where the search begins.
        """
        whole, shares, horizon = self._residuals, begin, 0.0
        end, levels = float(whole.times.max()), np.zeros(len(ranges))
        for _ in range(_MOST_STAGES):
            leaves = self._leaves(shares, np.maximum(_LEAVES * ranges, _ABOVE_LEVEL * levels))
            if leaves >= end or horizon >= end:
                break
            horizon = min(end, max(leaves, _GROWTH * horizon, _FIRST_SHARE * end))
            part = whole.until(horizon)
            shares, left = self.ended(
                part, 1.0 / ranges[part.owners], shares, prior=_PRIOR, ftol=_STAGE_TOLERANCE, max_nfev=_STAGE_RUNS,
                f_scale=_LEAVES,
            )  # fmt: skip
            for index in np.unique(part.owners).tolist():
                levels[index] = float(np.median(np.abs(left[part.owners == index])))
            _LOGGER.info("the log is fitted until %.4g s", horizon)
        return shares

    def _leaves(self, shares: Floats, far: Floats) -> float:
        """Return the time in s when a run leaves the log by root mean squares; infinite where it does not."""
        whole, first = self._residuals, np.inf
        fitted = whole.tried(self.values(shares))
        if fitted is None:
            return 0.0
        off = np.abs(fitted - whole.measured)
        for index, limit in enumerate(far.tolist()):
            own = whole.owners == index
            window = min(_WINDOW, int(own.sum()))
            squares = np.minimum(off[own], _MOST_OFF * limit) ** 2
            beyond = np.lib.stride_tricks.sliding_window_view(squares, window).mean(axis=1) > limit**2
            if beyond.any():
                first = min(first, float(whole.times[own][int(np.argmax(beyond)) + window - 1]))
        return first


def fit(
    experiments: Experiments,
    free: Free,
    noise: Mapping[int, float],
    loss: Loss,
    progress: Callable[[int], None] | None = None,
) -> FitResult:
    """Fit parameters and delays to experiments: minimise Σ ρ(((y − m) / σ)²) within bounds.

    By `scipy.optimize.least_squares` (trust region, reflective) with the derivatives of the runs. Where σ of an output
    is not given, the fit is made twice: σ is the range of the output at first, then what the first fit left. Where the
    run with the first values leaves the log, its beginning is fitted before (`_Search.grown`).

    Parameters
    ----------
    experiments
        The experiments.
    free
        What is fitted.
    noise
        Standard deviations by place of the output.
    loss
        ρ: `linear`, or one that lets outliers count less.
    progress
        Called with the number of runs so far.

    Raises
    ------
    InputError
        When the loss is unknown, there are fewer measured values than parameters, an output has a noise or a delay and
        is not measured, or a delay may be longer than its signal.
    SimulationError
        When the run with the first values fails.
    """
    if loss not in LOSSES:
        raise InputError(f"the loss '{loss}' is unknown; {closest_match(loss, LOSSES)}")
    residuals, first = _Residuals(experiments, free, _Tally()), experiments[0][1]
    _check_measured(residuals, noise, free.delays, first)
    _check_delays(residuals, free, first)
    count, width = len(residuals.measured), free.high - free.low
    if count <= len(width):
        raise InputError(
            f"{count} measured values cannot determine {len(width)} parameters; measure more, or free fewer"
        )
    start = _first_values(first, free)
    residuals.at(start)
    places = [each.outputs[place] for each, place in residuals.outputs]
    ranges = np.array([float(np.ptp(each.values[place])) or 1.0 for each, place in residuals.outputs])
    sizes = [noise.get(place, extent) for place, extent in zip(places, ranges.tolist(), strict=True)]
    estimated = [place not in noise for place in places]
    search = _Search(residuals, free, loss, progress)
    residuals.prepare(start)
    scaled = search.grown(ranges, np.clip((start - free.low) / width, 0.0, 1.0))
    choices = 1
    while True:
        for tolerance in (_NOISE_TOLERANCE, _TOLERANCE) if any(estimated) else (_TOLERANCE,):
            weights = 1.0 / np.array(sizes)[residuals.owners]
            scaled, left = search.ended(residuals, weights, scaled, ftol=tolerance)
            for index, place in enumerate(places):
                if estimated[index]:
                    # All experiments have the noise of an output.
                    own = left[np.array(places)[residuals.owners] == place]
                    sizes[index] = spread(own, loss, len(width) / len(set(places)))
        values = search.values(scaled)
        fitted = residuals.at(values)
        weights = 1.0 / np.array(sizes)[residuals.owners]
        off_here = (fitted - residuals.measured) * weights
        weights = weights * np.sqrt(influence(off_here, loss))
        names, units = _names(first, free)
        jacobian = residuals.slopes(values) * weights[:, None]
        apart = np.sqrt(np.diag(information(jacobian, names, units, values, width).covariance))
        step_errors = residuals.step_errors(values, jacobian, weights, apart)
        if choices == _CHOICES or not residuals.improved(values, step_errors):
            break
        choices += 1
    signals = tuple(
        FitSignal(
            each.name,
            first.outputs[each.outputs[place]].name,
            first.outputs[each.outputs[place]].unit,
            each.times[place],
            each.values[place],
            fitted[residuals.owners == index],
            sizes[index],
        )
        for index, (each, place) in enumerate(residuals.outputs)
    )
    independent = sum(signal.effective_count for signal in signals)
    freedom = max(independent - len(values), 1.0)
    # `spread` divides by k − p; of correlated residuals the parameters take as much of fewer independent values.
    taken = (1.0 - len(values) / count) * independent / freedom if any(estimated) else 1.0
    variance_factors = taken * inflations(signals, loss)[residuals.owners]
    known = information(jacobian / np.sqrt(variance_factors)[:, None], names, units, values, width)
    deviations = np.sqrt(np.diag(known.covariance))
    from scipy.stats import t  # noqa: PLC0415 - takes long to load

    reach: Floats = deviations * np.asarray(t.ppf(0.975, freedom))
    lower, upper = values - reach, values + reach
    delays = slice(len(free.parameters), None)  # what is beyond their bounds was excluded, as a sensor that is ahead
    lower[delays], upper[delays] = (
        np.clip(each[delays], free.low[delays], free.high[delays]) for each in (lower, upper)
    )
    differences = [first.derivatives] if first.derivatives else []
    return FitResult(
        names,
        units,
        values,
        deviations,
        lower,
        upper,
        known.covariance,
        known.correlation,
        (
            *known.sentences,
            *at_bounds(names, values, np.where(np.isfinite(deviations), scaled, 0.5)),
            *step_errors.sentences(names, units, values, reach),
            *remarks(signals, loss),
            *_failing(residuals.tally),
            *differences,
        ),
        signals,
        residuals.tally.runs,
        step_errors,
        first.derivatives,
    )


def checked_delay(name: str, given: Bounds) -> tuple[float, float]:
    """Return the bounds of a delay of an output in s; refuse what is no interval, and what runs ahead of the output."""
    low, high = checked_interval(Variable(f"the delay of {name}", unit="s"), given)
    if low < 0.0:
        raise InputError(f"the delay of {name} may be {low:g} s; a sensor lags by 0 s at least")
    return low, high


def checked_noise(name: str, given: float | str, output: Variable) -> float:
    """Return the standard deviation of an output in its unit; refuse what is none."""
    difference = replace(output, definition=replace(output.measured_unit, relative=True))
    value = difference.number(given, f"the noise of {name}")
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"the noise of {name} is {value:g}; it must be positive")
    return value


def _check_measured(
    residuals: _Residuals, noise: Mapping[int, float], delays: Sequence[int], machine: FittedMachine
) -> None:
    """Refuse outputs that have a noise or a delay and are not measured, and too few values to estimate a noise from."""
    counts = Counter[int]()
    for each, own in residuals.outputs:
        counts[each.outputs[own]] += len(each.times[own])
    if missing := [machine.outputs[place].name for place in (*noise, *delays) if place not in counts]:
        measured = ", ".join(machine.outputs[place].name for place in sorted(counts))
        raise InputError(f"{missing[0]} has a noise or a delay, and is not measured; measured are {measured}")
    for place, count in counts.items():
        if place not in noise and count < _LEAST_VALUES:
            name = machine.outputs[place].name
            raise InputError(
                f"{name} has {count} measured value{'s' * (count > 1)}, from which its noise cannot be estimated: set "
                f"the noise of {name}, or measure {_LEAST_VALUES} values at least"
            )


def _check_delays(residuals: _Residuals, free: Free, machine: FittedMachine) -> None:
    """Refuse delays longer than a signal."""
    for index, place in enumerate(free.delays, start=len(free.parameters)):
        ends = [each.times[own][-1] for each, own in residuals.outputs if each.outputs[own] == place]
        if not free.high[index] < min(ends):
            raise InputError(
                f"the delay of {machine.outputs[place].name} may be up to {free.high[index]:.6g} s, but its signal "
                f"ends at {min(ends):.6g} s; give a smaller bound"
            )


def _failing(tally: _Tally) -> list[str]:
    """Return a sentence on runs that failed within the bounds."""
    if not tally.failures:
        return []
    return [
        f"{len(tally.failures)} of {tally.runs} runs failed, from which the search went back; narrow the bounds where "
        f"it ends next to them; the last: {tally.failures[-1]}"
    ]


def _first_values(machine: FittedMachine, free: Free) -> Floats:
    """Return where the search begins: see `first_values`; delays begin in the middle of their bounds."""
    chosen, start = list(free.parameters), 0.5 * (free.low + free.high)
    variables, count = [machine.parameters[each] for each in chosen], len(chosen)
    start[:count] = first_values(variables, machine.given[chosen], free.low[:count], free.high[:count])
    return start


def _names(machine: FittedMachine, free: Free) -> tuple[tuple[str, ...], tuple[str, ...]]:
    given = [machine.parameters[each] for each in free.parameters]
    delays = [f"delay({machine.outputs[each].name})" for each in free.delays]
    return (*(each.name for each in given), *delays), (*(each.unit for each in given), *("s" for _ in delays))
