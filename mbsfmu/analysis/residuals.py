"""Measured signals and residuals of a fit, and the identifiability of its parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.io.signals import AnySignal, straight_signal
from mbsfmu.io.trajectory import Trajectory, UnknownNameError, full_name
from mbsfmu.modelling.measurement_units import IDENTITY, NO_UNIT, LinearMap, column_conversion
from mbsfmu.modelling.parameters import percent
from mbsfmu.modelling.variables import Variable
from mbsfmu.tracing.workspace import Floats

Measured: TypeAlias = "str | os.PathLike[str] | Trajectory | Mapping[str, Floats]"
"""A file of signals, a trajectory, or arrays by name including `time`."""
TIME = "time"


@dataclass(frozen=True)
class Experiment:
    """One experiment, in SI units.

    Attributes
    ----------
    name
        Of its file, or its number.
    signals
        Inputs that were measured, by `system.variable`.
    outputs
        Places of the measured outputs among what is computed.
    times, values
        Of each output, without missing values.
    """

    name: str
    signals: Mapping[str, AnySignal]
    outputs: tuple[int, ...]
    times: tuple[Floats, ...]
    values: tuple[Floats, ...]

    @property
    def stop(self) -> float:
        """The last time in s; 0 where nothing was measured."""
        return max((float(each[-1]) for each in self.times if len(each)), default=0.0)

    def until(self, time: float) -> Experiment:
        """Return the experiment with what was measured until a time in s."""
        kept = [each <= time for each in self.times]
        shorter = [
            tuple(each[inside] for each, inside in zip(arrays, kept, strict=True))
            for arrays in (self.times, self.values)
        ]
        return replace(self, times=shorter[0], values=shorter[1])


def listed(measured: Measured | Sequence[Measured]) -> list[Measured]:
    """Return experiments, of which one or several are given.

    Raises
    ------
    InputError
        When none is given.
    """
    one = isinstance(measured, str | os.PathLike | Trajectory | Mapping)
    found: list[Any] = [measured] if one else list(measured)
    if not found:
        raise InputError("no experiment is given; give one at least")
    return found


def read_experiment(
    measured: Measured,
    name: str,
    inputs: Sequence[Variable],
    computed: Sequence[Variable],
    reference: Callable[[str], str],
    short: Mapping[str, str],
) -> Experiment:
    """Return an experiment from measured signals.

    Parameters
    ----------
    measured
        The signals; those called as an input of the model are given to it, interpolated linearly.
    name
        What it is called where it is no file.
    inputs, computed
        Variables of the model.
    reference
        Gives `system.variable` for the name of an input.
    short
        Names by `system.variable`.

    Raises
    ------
    InputError
        When times are not finite or fall, a column is no variable of the model, its unit is another quantity, or
        nothing is measured.
    """
    if isinstance(measured, Mapping) and not isinstance(measured, Trajectory):
        table = {each: np.asarray(values, dtype=float) for each, values in measured.items()}
        if TIME not in table:
            raise InputError(f"{name} has no '{TIME}'")
        time = table.pop(TIME)
        units = dict.fromkeys(table, "1")
    else:
        read = measured if isinstance(measured, Trajectory) else Trajectory.from_file(measured)
        name = name if isinstance(measured, Trajectory) else Path(measured).name
        time, table = read.time, {each: read[each] for each in read.names}
        units = {each: read.unit(each) for each in read.names}
    _check_times(time, name)
    driving, known = [each.name for each in inputs], [each.name for each in computed]
    signals: dict[str, AnySignal] = {}
    found: dict[int, tuple[Floats, Floats]] = {}
    columns: dict[str, str] = {}
    jumps = _before_jumps(time, table, driving, short)
    for column, values in table.items():
        if values.shape != time.shape:
            raise InputError(f"{name}: '{column}' has {values.shape} values at {time.shape} times")
        meant = full_name(column, [*driving, *known], "variable", f" for a column of {name}", short)
        variable = (*inputs, *computed)[[*driving, *known].index(meant)]
        if meant in columns:
            raise InputError(f"{name}: the columns '{columns[meant]}' and '{column}' are both {meant}; leave one out")
        columns[meant] = column
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise InputError(f"{name}: '{column}' is {values[row]} at {time[row]:.9g} s; it must be finite, or missing")
        there = np.isfinite(values)
        way = IDENTITY if units[column] in NO_UNIT else _conversion(units[column], variable, f"{name}: '{column}'")
        there = there & (True if meant in driving else ~jumps)
        numbers = way.factor * values[there] + way.offset
        if not there.any():
            raise InputError(f"{name}: '{column}' has no value")
        if meant in driving:
            signals[reference(meant)] = straight_signal(time[there], numbers)
        else:
            found[known.index(meant)] = time[there], numbers
    if not found:
        raise InputError(f"{name} has no column of an output of the model, beside its first one, the time")
    if min(times[0] for times, _ in found.values()) < 0.0:
        raise InputError(f"{name}: times begin before 0 s, where the run begins")
    return Experiment(name, signals, tuple(found), *(tuple(each[part] for each in found.values()) for part in (0, 1)))


def _before_jumps(time: Floats, table: Mapping[str, Floats], driving: Sequence[str], short: Mapping[str, str]) -> Any:
    """Return which rows are those before a jump of an input: outputs of that time are compared after it.

    Rows of one time without a jump are measured several times.
    """
    result = np.zeros(len(time), dtype=bool)
    for column, values in table.items():
        try:
            full_name(column, driving, "input", by_system=short)
        except UnknownNameError:
            continue
        if values.shape == time.shape:
            result[:-1] |= (np.diff(time) == 0.0) & (np.diff(values) != 0.0)
    return result


def _check_times(times: Floats, name: str) -> None:
    """Refuse times that are not finite, or fall: values are compared with the run in their order."""
    if times.ndim != 1 or not len(times):
        raise InputError(f"{name}: 'time' has the shape {times.shape}; it must be one time for each row")
    if not np.isfinite(times).all():
        row = int(np.argmin(np.isfinite(times)))
        raise InputError(f"{name}: the time of row {row + 1} is {times[row]}; it must be finite")
    if (falls := np.diff(times) < 0.0).any():
        row = int(np.argmax(falls))
        raise InputError(
            f"{name}: the time falls from {times[row]:.9g} s in row {row + 1} to {times[row + 1]:.9g} s; sort the rows"
        )


def _conversion(unit: str, variable: Variable, where: str) -> LinearMap:
    """Return the conversion of a column to the unit of its variable."""
    try:
        return column_conversion(unit, variable.measured_unit)
    except InputError as error:
        raise InputError(f"{where} is in {unit}, and {variable.name} in {variable.unit}: {error}") from None


Loss = Literal["linear", "soft_l1", "huber", "cauchy"]
LOSSES: tuple[Loss, ...] = ("linear", "soft_l1", "huber", "cauchy")
"""Losses of `scipy.optimize.least_squares` that are robust to outliers."""
_CONSISTENT = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
_UNEXPLAINED = 0.7
"""Fraction of a signal's standard deviation: where the fit leaves as much, it describes less than half the variance."""
_SIGNIFICANT, _BAND, _LAGS = 4.0, 2.0, 20
"""The autocorrelation of n independent values has the standard deviation 1/√n at each lag [Bartlett 1946]. Residuals
that exceed the first number of these at one of so many lags are correlated (white noise does in 6 of 10,000 signals);
their autocorrelation ends where it falls below the second.
"""
_FAR, _MANY_FAR, _ONE_SIDE = 5.0, 0.01, 0.8
"""Standard deviations, by the median, beyond which a value is an outlier: of normal noise one in two million is;
fraction of a signal from which on outliers are reported; fraction of them on one side from which on all losses but
cauchy follow them.
"""
_FOLLOWS = 0.5
"""Fraction of the correlated part of residuals from which on they follow the motion."""
_ERROR_OF_RUNS = 1e-6
"""Fraction of a signal's range below which residuals are the numerical error of runs at their default tolerance."""


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
        Standard deviation, as it was set or as the fit estimates it.
    """

    experiment: str
    output: str
    unit: str
    times: Floats
    measured: Floats
    fitted: Floats
    noise: float

    @property
    def residuals(self) -> Floats:
        """Measured minus fitted values, shape (k,)."""
        return self.measured - self.fitted

    @property
    def autocorrelation(self) -> float:
        """Autocorrelation of the residuals at lag 1, about 0 of noise; 0 of fewer than three values."""
        return float(self._autocorrelations[1]) if len(self.times) > 2 else 0.0

    @cached_property
    def _autocorrelations(self) -> Floats:
        """Autocorrelations at all lags, shape (k,).

        Outliers count as the farthest values that are none, for they would hide the correlation of the others. Where
        the noise is set and larger than the residuals, it counts as independent.
        """
        limit = _FAR * self.spread
        residuals = np.clip(self.residuals, -limit, limit) if limit > 0.0 else self.residuals
        return _autocorrelations(residuals, self.noise)

    @property
    def spread(self) -> float:
        """Standard deviation of the residuals by their median, which outliers do not move."""
        return _CONSISTENT * float(np.median(np.abs(self.residuals)))

    @cached_property
    def effective_count(self) -> float:
        """Number of independent values that the residuals count as.

        It is k / (1 + 2 Σ|ρ|) with the autocorrelations ρ of positive lags. The row sum of the correlation matrix
        bounds its largest eigenvalue, so that with this number the variance of no linear combination of the values is
        underestimated, however the sensitivities oscillate.
        """
        return _effective_count(self._autocorrelations) if self.correlated else float(len(self.times))

    @property
    def correlated(self) -> bool:
        """Whether the residuals are no independent noise."""
        return self.correlated_fraction >= _SIGNIFICANT / np.sqrt(len(self.times))

    @property
    def correlated_fraction(self) -> float:
        """Fraction of the power of the residuals that is correlated: their largest autocorrelation."""
        return _largest(self._autocorrelations)

    def excess(self, loss: Loss) -> float:
        """Return the ratio of the residuals to the noise, 1 where it is not significantly above.

        The sum of k squares of noise has the relative standard deviation √(2/k).
        """
        size = self.spread if loss != "linear" else float(np.sqrt(np.mean(self.residuals**2)))
        ratio = size / self.noise
        return ratio if ratio**2 > 1.0 + _SIGNIFICANT * np.sqrt(2.0 / self.effective_count) else 1.0


def inflations(signals: Sequence[FitSignal], loss: Loss) -> Floats:
    """Return by which factor the residuals of each signal multiply the variance of what it tells, shape (s,).

    Correlated residuals are of the model where they are not of one sensor. Then they are in all signals, also in those
    where noise hides them.
    """
    by_correlation = np.array([len(signal.times) / signal.effective_count for signal in signals])
    of_model = [
        not signal.correlated or not _cause(signal, alone)[1]
        for signal, alone in zip(signals, _lone_deviations(signals, loss), strict=True)
    ]
    common = float(np.max(by_correlation[of_model], initial=1.0))
    by_size = np.array([signal.excess(loss) ** 2 for signal in signals])
    return by_size * np.maximum(by_correlation, common)


def remarks(signals: Sequence[FitSignal], loss: Loss) -> tuple[str, ...]:
    """Return sentences on residuals that are not noise of the assumed size."""
    sentences = []
    for signal, alone in zip(signals, _lone_deviations(signals, loss), strict=True):
        about_noise = [*_correlated(signal, alone), *_excessive(signal, loss)]
        found = [*(_unexplained(signal) or about_noise), *_outlying(signal, loss)]
        sentences += [f"{signal.experiment}: {sentence}" for sentence in found]
    return tuple(sentences)


def _lone_deviations(signals: Sequence[FitSignal], loss: Loss) -> list[bool]:
    """Return whether all others are noise as assumed: an error of the model is in several, that of a sensor in one."""
    deviating = [
        bool(signal.correlated or _excessive(signal, loss) or _outlying(signal, loss) or _unexplained(signal))
        for signal in signals
    ]
    return [sum(deviating) == own for own in deviating]


def _unexplained(signal: FitSignal) -> list[str]:
    """Return a message on a measured signal that the fitted model does not reproduce."""
    extent = float(np.std(signal.measured))
    if not signal.spread > _UNEXPLAINED * extent > 0.0:
        return []
    return [
        f"the model does not describe {signal.output}: the fit leaves {signal.spread:.3g} {signal.unit}, and the "
        f"signal varies by {extent:.3g} {signal.unit} about its mean; the intervals do not count"
    ]


def _correlated(signal: FitSignal, alone: bool) -> list[str]:
    """Return a message on correlated residuals, with their cause; `alone` where no other signal deviates."""
    if not signal.correlated:
        return []
    return [
        f"residuals of {signal.output} are correlated by {signal.correlated_fraction:.2f}: they count as "
        f"{max(1, round(signal.effective_count))} of {len(signal.times)} values, and the intervals are widened "
        f"accordingly; {_cause(signal, alone)[0]}"
    ]


def _cause(signal: FitSignal, alone: bool) -> tuple[str, bool]:
    """Return the cause of correlated residuals, as far as they show it, and whether it is the sensor's alone."""
    residuals, value = signal.residuals, signal.fitted
    if float(np.sqrt(np.mean(residuals**2))) < _ERROR_OF_RUNS * float(np.ptp(signal.measured)):
        return "they are as small as the numerical error of the runs, for the data have hardly any noise", False
    if not alone:
        return (
            "other signals deviate too, so that the model differs from the machine in an equation, an input or a "
            "parameter that is not fitted, which shifts the values by more than the intervals say"
        ), False
    rate, one = np.gradient(value, signal.times), np.ones(len(value))
    deviation = value - np.mean(value)
    remainder, (offset,) = _without(residuals, one[:, None])
    if _independent(remainder):
        return f"an offset of the sensor of {offset:.3g} {signal.unit} explains them: subtract it from the data", True
    remainder, (lag,) = _without(residuals, -rate[:, None])
    if _independent(remainder):
        advice = "fit its delay" if lag > 0.0 else "it is ahead of the inputs, so correct the times of the data"
        return f"a delay of the sensor of {lag:.3g} s explains them: {advice}", True
    remainder, (gain,) = _without(residuals, deviation[:, None])
    if _independent(remainder):
        return f"a gain of the sensor that is off by {percent(gain)} explains them: calibrate the data", True
    motion = np.stack([one, deviation, rate, rate * np.abs(rate), np.gradient(rate, signal.times)], axis=1)
    remainder, _ = _without(residuals, motion)
    explained = 1.0 - float(np.sum(remainder**2) / np.sum(residuals**2))
    # Of noise that was filtered, each column explains by chance what one of its independent values is.
    by_chance = motion.shape[1] / _effective_count(_autocorrelations(remainder))
    if explained >= max(_FOLLOWS * signal.correlated_fraction, _SIGNIFICANT * by_chance):
        return (
            "they follow the motion: the model differs from the machine in an equation, an input or a parameter that "
            "is not fitted, which shifts the values by more than the intervals say"
        ), False
    return (
        "the noise was filtered before it was sampled, or the sensor is late (fit its delay to see), or the model "
        "differs from the machine, which would shift the values by more than the intervals say"
    ), False


def _without(residuals: Floats, columns: Floats) -> tuple[Floats, Floats]:
    """Return what a combination of columns leaves of residuals, and its coefficients."""
    sizes = np.sqrt(np.mean(columns**2, axis=0))
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    coefficients = np.linalg.lstsq(columns / sizes, residuals, rcond=None)[0] / sizes
    return residuals - columns @ coefficients, coefficients


def _autocorrelations(residuals: Floats, noise: float = 0.0) -> Floats:
    """Return autocorrelations about zero, where residuals of a complete model lie, at all lags, shape (k,)."""
    count = len(residuals)
    products = np.fft.irfft(np.abs(np.fft.rfft(residuals, 2 * count)) ** 2, 2 * count)[:count]
    power = max(float(products[0]), count * noise**2)
    return products / power if power > 0.0 else np.zeros(count)


def _effective_count(autocorrelations: Floats) -> float:
    """Return k / (1 + 2 Σ|ρ|), the sum until |ρ| falls into the band of noise after it was last significant.

    Where values are correlated, the ρ of their noise are larger than that of independent values [Bartlett 1946]. The
    sum is then too large rather than too small, which outweighs that a fit takes the slowest part of the noise away.
    """
    count, size = len(autocorrelations), np.abs(autocorrelations)
    significant = np.flatnonzero(size >= _SIGNIFICANT / np.sqrt(count))
    last = int(significant[-1]) if len(significant) else 0
    beyond = np.flatnonzero(size[last:] < _BAND / np.sqrt(count))
    end = last + int(beyond[0]) if len(beyond) else count
    return count / (1.0 + 2.0 * float(np.sum(size[1:end])))


def _largest(autocorrelations: Floats) -> float:
    return float(np.max(autocorrelations[1 : _LAGS + 1], initial=0.0))


def _independent(residuals: Floats) -> bool:
    return _largest(_autocorrelations(residuals)) < _SIGNIFICANT / np.sqrt(len(residuals))


def _excessive(signal: FitSignal, loss: Loss) -> list[str]:
    """Return a message on residuals that are larger than the noise, with their cause."""
    if signal.excess(loss) == 1.0:
        return []
    if signal.spread < signal.noise * np.sqrt(1.0 + _SIGNIFICANT * np.sqrt(2.0 / signal.effective_count)):
        cause = "outliers, for half of them are smaller"
    elif signal.correlated:
        cause = "what correlates them, for it is no noise"
    else:
        cause = "a noise that is larger here than was assumed"
    return [
        f"residuals of {signal.output} are {signal.excess(loss):.3g} times the noise of {signal.noise:.3g} "
        f"{signal.unit}, and the intervals are widened by that; the cause is {cause}"
    ]


def _outlying(signal: FitSignal, loss: Loss) -> list[str]:
    """Return a message on outliers that shift the fit: by a loss that is not robust, or all on one side."""
    residuals = signal.residuals - np.median(signal.residuals)
    far = np.abs(residuals) > _FAR * (_CONSISTENT * float(np.median(np.abs(residuals))))
    count, above = int(far.sum()), int((residuals[far] > 0.0).sum())
    one_sided = max(above, count - above) >= _ONE_SIDE * count
    if count <= _MANY_FAR * len(residuals) or loss == "cauchy" or (loss != "linear" and not one_sided):
        return []
    side = "" if not one_sided else ", nearly all above" if above > count - above else ", nearly all below"
    return [
        f"{count} of {len(residuals)} values of {signal.output} are outliers{side}, and the loss {loss} lets them "
        "shift the fit: take the loss cauchy, or leave them out"
    ]


def spread(residuals: Floats, loss: Loss, parameters: float) -> float:
    """Return the standard deviation of an output's residuals, by the median for robust losses."""
    if loss != "linear":
        return _CONSISTENT * float(np.median(np.abs(residuals))) or np.finfo(float).tiny
    return float(np.sqrt(np.sum(residuals**2) / max(len(residuals) - parameters, 1.0))) or np.finfo(float).tiny


def influence(residuals: Floats, loss: Loss) -> Floats:
    """Return the weights ρ′ of squared residuals in standard deviations [Triggs et al. 2000, sect. 4.3]."""
    squares = residuals**2
    return {
        "linear": np.ones_like(squares),
        "soft_l1": 1.0 / np.sqrt(1.0 + squares),
        "huber": np.where(squares <= 1.0, 1.0, 1.0 / np.sqrt(np.maximum(squares, 1.0))),
        "cauchy": 1.0 / (1.0 + squares),
    }[loss]


_SHARE = 1e-3
"""Squared component of a direction above which a parameter takes part in it."""
_EQUAL = 0.02
"""By which the exponent of a product may differ from a whole number, and the ratio of two changes from one."""
_MOST = 4.5
"""Exponents beyond are no product that anybody has written."""
_CORRELATED = 0.99
"""Correlation above which two parameters are reported as hardly distinguishable."""


@dataclass(frozen=True)
class Information:
    """Information on parameters from the Jacobian of residuals.

    Attributes
    ----------
    covariance
        Of the parameters, shape (p, p); infinite variances where the data say nothing.
    correlation
        Shape (p, p); not-a-number where the data say nothing.
    sentences
        What cannot be told apart, in words.
    """

    covariance: Floats
    correlation: Floats
    sentences: tuple[str, ...]


def information(
    jacobian: Floats, names: Sequence[str], units: Sequence[str], values: Floats, ranges: Floats
) -> Information:
    """Return the information on parameters from residuals of variance 1.

    The covariance is (JᵀJ)⁻¹ [Seber, Wild 1989, sect. 2.1.2]. A direction in which the standard deviation exceeds the
    range between the bounds, singular vectors of J in units of the ranges, is one of which the data say nothing.

    Parameters
    ----------
    jacobian
        Derivatives of residuals over their standard deviation, shape (k, p).
    names, units, values
        Of the parameters.
    ranges
        Differences of their bounds, shape (p,).
    """
    _, singular, directions = np.linalg.svd(jacobian * ranges, full_matrices=len(jacobian) < len(names))
    sizes = np.zeros(len(names))
    sizes[: len(singular)] = singular
    told = sizes > 1.0
    inverse = np.where(told, 1.0 / np.where(told, sizes, 1.0), 0.0)
    root = directions.T * inverse * ranges[:, None]
    covariance = root @ root.T
    lost = [directions[index] for index in np.flatnonzero(~told)]
    unknown = np.zeros(len(names), dtype=bool)
    sentences = []
    for direction in lost:
        taking: list[int] = np.flatnonzero(direction**2 > _SHARE).tolist()
        unknown |= direction**2 > _SHARE
        sentences.append(_sentence(direction * ranges, taking, names, units, values))
    covariance[unknown, unknown] = np.inf
    deviations = np.sqrt(np.diag(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = covariance / np.outer(deviations, deviations)
    correlation[unknown], correlation[:, unknown] = np.nan, np.nan
    pairs = [(first, second) for first in range(len(names)) for second in range(first)]
    sentences += [
        f"{names[second]} and {names[first]} are hardly distinguishable: correlation {correlation[first, second]:.4f}"
        for first, second in pairs
        if abs(correlation[first, second]) > _CORRELATED
    ]
    return Information(covariance, correlation, tuple(sentences))


def _sentence(
    direction: Floats, taking: Sequence[int], names: Sequence[str], units: Sequence[str], values: Floats
) -> str:
    """Return the meaning of an undetermined direction."""
    if len(taking) == 1:
        return f"the data say nothing of {names[taking[0]]}"
    if len(taking) == 2:
        first, second = taking
        ratio = float(direction[first] / direction[second])
        if units[first] == units[second] and abs(abs(ratio) - 1.0) < _EQUAL:
            combined = "sum" if ratio < 0.0 else "difference"
            return f"the data say only what the {combined} of {names[first]} and {names[second]} is"
        if values[first] and values[second]:
            exponent = -ratio * float(values[second] / values[first])
            for a, b, power in ((first, second, exponent), (second, first, 1.0 / exponent)):
                whole = round(power)
                if whole and abs(power - whole) < _EQUAL * abs(whole) and abs(whole) < _MOST:
                    raised = "" if abs(whole) == 1 else f"^{abs(whole)}"
                    sign = "·" if whole > 0 else " / "
                    return f"the data say only what {names[a]}{sign}{names[b]}{raised} is"
    listed = ", ".join(names[each] for each in taking)
    return f"the data say only what combinations of {listed} are, and not each"
