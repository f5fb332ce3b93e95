"""Fit of parameters to measured signals by least squares with exact sensitivities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from mbsfmu.analysis.experiments import Experiment
from mbsfmu.analysis.identifiability import information
from mbsfmu.analysis.measures import places_in_steps
from mbsfmu.analysis.sensitivities import along_run, computed_variables, warn_outside
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats

Loss = Literal["linear", "soft_l1", "huber", "cauchy"]
LOSSES: tuple[Loss, ...] = ("linear", "soft_l1", "huber", "cauchy")
"""Losses of `scipy.optimize.least_squares` that are robust to outliers."""
_FAILED = 1e6
"""Residual in standard deviations of a failed run, so that the search shortens its step."""
_CONSISTENT = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
_UNEXPLAINED = 0.7
"""Share of a signal's standard deviation: where the fit leaves as much, it describes less than half of the variance."""
_FOLLOWING, _SURELY = 0.5, 4.0
"""Autocorrelation of residuals from which on they are said to be no noise, which has at most 4/√k of k values."""
_FAR, _MANY_FAR, _ONE_SIDE = 5.0, 0.01, 0.8
"""Standard deviations, by the median, beyond which a value is an outlier: of normal noise one in two million is; share
of a signal from which on outliers are told; share of them on one side, from which on all losses but cauchy follow them.
"""
_PASSES = 2
"""Number of fits if the noise is unknown: the second one has the weights from the residuals of the first."""


@dataclass(frozen=True)
class FitSignal:
    """A measured and the fitted output, in SI units.

    Attributes
    ----------
    experiment, output, unit
        Names, and the unit.
    times, measured, fitted
        Shape (k,).
    noise
        Standard deviation, as given or as found.
    """

    experiment: str
    output: str
    unit: str
    times: Floats
    measured: Floats
    fitted: Floats
    noise: float

    @property
    def succession(self) -> float:
        """Autocorrelation of the residuals at lag 1, about 0 of noise; 0 of fewer than three values."""
        left = self.measured - self.fitted
        left = left - np.mean(left)
        power = float(np.sum(left**2))
        return float(np.sum(left[1:] * left[:-1])) / power if len(left) > 2 and power > 0.0 else 0.0


@dataclass(frozen=True)
class FitResult:
    """Result of a fit.

    Attributes
    ----------
    names, units
        Of the parameters, and of delays as `delay(output)` in s.
    values, deviations, lower, upper
        Fitted values, standard deviations, and 95 % intervals (Student's t, by the linearization at the fit);
        infinite where the data say nothing. Shape (p,).
    covariance, correlation
        Shape (p, p).
    sentences
        What the data say nothing of, what is not told apart, and what lies at a bound.
    signals
        Measured and fitted outputs.
    runs
        Number of runs of an experiment.
    model
        The model with the fitted values.
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
    model: Any = field(repr=False, default=None)

    def __getitem__(self, name: str) -> float:
        """Return the fitted value of a parameter by its name."""
        if name not in self.names:
            raise InputError(f"'{name}' was not fitted; {', '.join(self.names)} were")
        return float(self.values[self.names.index(name)])

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data; infinite numbers are None."""

        def plain(number: float) -> float | None:
            return float(number) if np.isfinite(number) else None

        parts = (self.names, self.units, self.values, self.deviations, self.lower, self.upper)
        return {
            "parameters": [
                {
                    "name": name,
                    "unit": unit,
                    "value": plain(value),
                    "standard_deviation": plain(deviation),
                    "interval_95": [plain(low), plain(high)],
                }
                for name, unit, value, deviation, low, high in zip(*parts, strict=True)
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


class _Residuals:
    """Residuals of all experiments, and their derivatives, in the units of the outputs.

    Parameters
    ----------
    experiments
        Each with the simulation that follows its inputs.
    free
        What is fitted.
    """

    def __init__(self, experiments: Sequence[tuple[Experiment, Simulation]], free: Free) -> None:
        self._experiments, self._free = list(experiments), free
        self.runs = 0
        self._known: tuple[Floats, Floats, Floats] | None = None
        outputs = [(each, place) for each, _ in experiments for place in range(len(each.outputs))]
        counts = [len(each.times[place]) for each, place in outputs]
        self.owners = np.repeat(np.arange(len(outputs)), counts)
        self.outputs = outputs
        self.measured = np.concatenate([each.values[place] for each, place in outputs])

    def at(self, values: Floats) -> tuple[Floats, Floats]:
        """Return fitted values at the measured times, shape (k,), and their derivatives, (k, p)."""
        if self._known is None or not np.array_equal(self._known[0], values):
            parts = [self._of(each, simulation, values) for each, simulation in self._experiments]
            fitted, slopes = (np.concatenate([part[index] for part in parts]) for index in (0, 1))
            self._known = values.copy(), fitted, slopes
        return self._known[1], self._known[2]

    def _of(self, experiment: Experiment, simulation: Simulation, values: Floats) -> tuple[Floats, Floats]:
        free, count = self._free, len(self._free.parameters)
        simulation.reset()
        variables = simulation.functions.system.parameters
        for index, value in zip(free.parameters, values, strict=False):
            simulation.set(variables[index].name, float(value))
        self.runs += 1
        stop = max(experiment.stop, simulation.step_size)
        found = along_run(simulation, stop, experiment.outputs, free.parameters)
        fitted, slopes = [], []
        names = computed_variables(simulation)
        for row, (place, times) in enumerate(zip(experiment.outputs, experiment.times, strict=True)):
            delay = values[count + free.delays.index(place)] if place in free.delays else 0.0
            moved = np.clip(times - delay, 0.0, found.times[-1])
            step, share = places_in_steps(found.times, moved, names[place].name)
            begin, end = found.begin[step, row], found.end[step, row]
            fitted.append((1.0 - share) * begin + share * end)
            slope = np.zeros((len(times), len(values)))
            slope[:, :count] = (1.0 - share)[:, None] * found.begin_slopes[step, row]
            slope[:, :count] += share[:, None] * found.end_slopes[step, row]
            if place in free.delays:
                inside = times - delay > 0.0
                rate = (end - begin) / np.diff(found.times)[step]
                slope[:, count + free.delays.index(place)] = np.where(inside, -rate, 0.0)
            slopes.append(slope)
        return np.concatenate(fitted), np.concatenate(slopes)


def fit(
    experiments: Sequence[tuple[Experiment, Simulation]],
    free: Free,
    noise: Mapping[int, float],
    loss: Loss,
    progress: Callable[[int], None] | None = None,
) -> FitResult:
    """Fit parameters and delays to experiments: minimise Σ ρ(((y − m) / σ)²) within bounds.

    By `scipy.optimize.least_squares` (trust region, reflective) with the exact derivatives of the runs. Where σ of an
    output is not given, the fit is made twice: σ is the range of the output at first, then what the first fit left.

    Parameters
    ----------
    experiments
        Each with the simulation that follows its inputs.
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
        When there are fewer measured values than parameters, or a delay may be longer than its signal.
    SimulationError
        When the run with the first values fails.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - takes long to load

    residuals, first = _Residuals(experiments, free), experiments[0][1]
    _check_delays(residuals, free, first)
    count, width = len(residuals.measured), free.high - free.low
    if count <= len(width):
        raise InputError(
            f"{count} measured values cannot determine {len(width)} parameters; measure more, or free fewer"
        )
    start = _first_values(first, free)
    residuals.at(start)
    places = [each.outputs[place] for each, place in residuals.outputs]
    ranges = [float(np.ptp(each.values[place])) for each, place in residuals.outputs]
    sizes = [noise.get(place, extent or 1.0) for place, extent in zip(places, ranges, strict=True)]
    estimated = [place not in noise for place in places]
    scaled = (start - free.low) / width
    for _ in range(_PASSES if any(estimated) else 1):
        weights = 1.0 / np.array(sizes)[residuals.owners]

        def off(shares: Floats, weights: Floats = weights) -> Floats:
            try:
                fitted = residuals.at(free.low + width * shares)[0]
            except (SimulationError, InputError):
                return np.full(count, _FAILED)
            if progress is not None:
                progress(residuals.runs)
            return (fitted - residuals.measured) * weights

        def slopes(shares: Floats, weights: Floats = weights) -> Floats:
            return residuals.at(free.low + width * shares)[1] * width * weights[:, None]

        found = least_squares(off, scaled, slopes, bounds=(0.0, 1.0), loss=loss, x_scale="jac", xtol=1e-10, ftol=1e-10)
        scaled = found.x
        left = found.fun / weights
        for index, place in enumerate(places):
            if estimated[index]:
                own = left[np.array(places)[residuals.owners] == place]  # all experiments have the noise of an output
                sizes[index] = _spread(own, loss, len(width) / len(set(places)))
    values = free.low + width * scaled
    fitted = residuals.at(values)[0]
    weights = 1.0 / np.array(sizes)[residuals.owners]
    off_here = (fitted - residuals.measured) * weights
    jacobian = residuals.at(values)[1] * weights[:, None] * np.sqrt(_influence(off_here, loss))[:, None]
    names, units = _names(first, free)
    known = information(jacobian, names, units, values, width)
    deviations = np.sqrt(np.diag(known.covariance))
    from scipy.stats import t  # noqa: PLC0415 - takes long to load

    reach = deviations * float(t.ppf(0.975, count - len(values)))
    bounds = [
        f"{name} lies at its bound, {value:.6g}: widen it, and see whether it moves on"
        for name, value, share in zip(names, values, scaled, strict=True)
        if min(share, 1.0 - share) < 1e-6
    ]
    computed = computed_variables(first)
    signals = tuple(
        FitSignal(
            each.name,
            computed[each.outputs[place]].name,
            computed[each.outputs[place]].unit,
            each.times[place],
            each.values[place],
            fitted[residuals.owners == index],
            sizes[index],
        )
        for index, (each, place) in enumerate(residuals.outputs)
    )
    return FitResult(
        names,
        units,
        values,
        deviations,
        values - reach,
        values + reach,
        known.covariance,
        known.correlation,
        (*known.sentences, *bounds, *_unexplained(signals), *_successive(signals), *_outlying(signals, loss)),
        signals,
        residuals.runs,
    )


def _check_delays(residuals: _Residuals, free: Free, simulation: Simulation) -> None:
    """Refuse delays longer than a signal."""
    computed = computed_variables(simulation)
    for index, place in enumerate(free.delays, start=len(free.parameters)):
        ends = [each.times[own][-1] for each, own in residuals.outputs if each.outputs[own] == place]
        if ends and not free.high[index] < min(ends):
            raise InputError(
                f"the delay of {computed[place].name} may be up to {free.high[index]:.6g} s, but its signal ends at "
                f"{min(ends):.6g} s; give a smaller bound"
            )


def _unexplained(signals: Sequence[FitSignal]) -> list[str]:
    """Return messages on measured signals that the fitted model does not reproduce."""
    sentences = []
    for each in signals:
        left = _CONSISTENT * float(np.median(np.abs(each.fitted - each.measured)))
        extent = float(np.std(each.measured))
        if left > _UNEXPLAINED * extent > 0.0:
            sentences.append(
                f"{each.experiment}: the model does not describe {each.output}: the fit leaves {left:.3g} {each.unit}, "
                f"and the signal varies by {extent:.3g} {each.unit} about its mean; the intervals do not count"
            )
    return sentences


def _successive(signals: Sequence[FitSignal]) -> list[str]:
    """Return sentences on signals whose residuals follow each other: they are no noise, as intervals take them."""
    return [
        f"{each.experiment}: residuals of {each.output} follow each other, with a correlation of {each.succession:.2f} "
        "from one value to the next: the model or a filtered sensor is in them, and the intervals are too narrow"
        for each in signals
        if each.succession > max(_FOLLOWING, _SURELY / np.sqrt(len(each.times)))
    ]


def _outlying(signals: Sequence[FitSignal], loss: Loss) -> list[str]:
    """Return sentences on signals whose outliers shift the fit: by a loss that is not robust, or all on one side."""
    sentences = []
    for each in signals:
        left = each.measured - each.fitted
        left = left - np.median(left)
        far = np.abs(left) > _FAR * (_CONSISTENT * float(np.median(np.abs(left))))
        count, above = int(far.sum()), int((left[far] > 0.0).sum())
        one_sided = max(above, count - above) >= _ONE_SIDE * count
        if count <= _MANY_FAR * len(left) or loss == "cauchy" or (loss != "linear" and not one_sided):
            continue
        side = "" if not one_sided else ", nearly all above" if above > count - above else ", nearly all below"
        sentences.append(
            f"{each.experiment}: {count} of {len(left)} values of {each.output} are outliers{side}, and the loss "
            f"{loss} lets them shift the fit: take the loss cauchy, or leave them out"
        )
    return sentences


def _spread(left: Floats, loss: Loss, parameters: float) -> float:
    """Return the standard deviation of an output's residual, by the median for robust losses."""
    if loss != "linear":
        return _CONSISTENT * float(np.median(np.abs(left))) or np.finfo(float).tiny
    return float(np.sqrt(np.sum(left**2) / max(len(left) - parameters, 1.0))) or np.finfo(float).tiny


def _influence(off: Floats, loss: Loss) -> Floats:
    """Return the weights ρ′ of the squared residuals [Triggs et al. 2000, sect. 4.3]."""
    squares = off**2
    return {
        "linear": np.ones_like(squares),
        "soft_l1": 1.0 / np.sqrt(1.0 + squares),
        "huber": np.where(squares <= 1.0, 1.0, 1.0 / np.sqrt(np.maximum(squares, 1.0))),
        "cauchy": 1.0 / (1.0 + squares),
    }[loss]


def _first_values(simulation: Simulation, free: Free) -> Floats:
    """Return the model's values if within the bounds, otherwise the middle; delays start in the middle."""
    given = simulation.run_loop.parameters[list(free.parameters)]
    warn_outside(simulation, free.parameters, free.low[: len(given)], free.high[: len(given)])
    middle = 0.5 * (free.low + free.high)
    start = middle.copy()
    inside = (given > free.low[: len(given)]) & (given < free.high[: len(given)])
    start[: len(given)] = np.where(inside, given, middle[: len(given)])
    return start


def _names(simulation: Simulation, free: Free) -> tuple[tuple[str, ...], tuple[str, ...]]:
    computed: list[Variable] = computed_variables(simulation)
    given = [simulation.functions.system.parameters[each] for each in free.parameters]
    delays = [f"delay({computed[each].name})" for each in free.delays]
    return (*(each.name for each in given), *delays), (*(each.unit for each in given), *("s" for _ in delays))
