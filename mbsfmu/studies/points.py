"""Points of a study: combinations of varied values, samples, Sobol indices of samples."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.io.formats import read_table
from mbsfmu.io.tables import optional
from mbsfmu.io.trajectory import column_numbers
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measurement_units import NO_UNIT, ColumnValues, with_common_unit

_WORDS = "values such as 1,2,3, or low:high:count, or low:high:count:log"


@dataclass(frozen=True)
class StudyPoint:
    """One run of a study.

    Attributes
    ----------
    values
        Of the varied parameters, by `system.variable`.
    settings
        Of the run, by name.
    key
        Made from the content: the same model, values and settings give the same one.
    """

    values: Mapping[str, float]
    settings: Mapping[str, Any]
    key: str


def parse_values(text: str) -> list[float]:
    """Parse numbers of the command line.

    Parameters
    ----------
    text
        `1,2,3`; `low:high:count` for values evenly apart; `low:high:count:log` for evenly apart logarithms. Each number
        may have a unit, the same one: `100 bar,200 bar`.

    Raises
    ------
    InputError
        When it does not read so.
    """
    parts = text.split(":")
    refusal = f"'{text}' is no list of values; give {_WORDS}"
    if len(parts) not in (1, 3, 4) or parts[3:] not in ([], ["log"]):
        raise InputError(refusal)
    try:
        values, unit = with_common_unit(text.split(",") if len(parts) == 1 else parts[:2])
    except ValueError as error:
        raise InputError(f"{refusal}: {error}") from None
    if len(parts) > 1:
        if not (parts[2].strip().isascii() and parts[2].strip().isdigit() and int(parts[2])):
            raise InputError(f"{refusal}: '{parts[2]}' is no number of values, an integer of at least 1")
        if parts[3:] and min(values) <= 0.0:
            raise InputError(f"{refusal}: the bounds of logarithms must be positive")
        values = (np.geomspace if parts[3:] else np.linspace)(values[0], values[1], int(parts[2])).tolist()
    if not np.isfinite(values).all():
        raise InputError(f"{refusal}: they must be finite")
    return ColumnValues(values, unit) if unit else values


def make_points(
    vary: Mapping[str, Sequence[float]],
    settings: Mapping[str, Sequence[Any]],
    content: Mapping[str, Any],
    samples: Mapping[str, Sequence[float]] | None = None,
) -> list[StudyPoint]:
    """Return all combinations, settings varying fastest, samples slowest.

    Parameters
    ----------
    vary, settings
        Values of each parameter and of each setting.
    samples
        Values of parameters that belong together, one a sample.
    content
        What else the outcome follows from, as plain data.

    Raises
    ------
    InputError
        When there is nothing to vary, a list is empty or has a value twice, a value is not finite, or there are more
        samples of one parameter than of another.
    """
    drawn = samples or {}
    _check_samples(drawn)
    for kind, lists in (("parameter", vary), ("setting", settings)):
        for name, values in lists.items():
            if not len(values):
                raise InputError(f"the {kind} {name} has no values")
            if len({repr(value) for value in values}) < len(values):
                raise InputError(f"the {kind} {name} has a value twice: {', '.join(str(value) for value in values)}")
            for value in values:
                if isinstance(value, float) and not math.isfinite(value):
                    raise InputError(f"the {kind} {name} is {value}; it must be finite")
    points = []
    rows = list(zip(*drawn.values(), strict=True)) if drawn else [()]
    for row, values in itertools.product(rows, itertools.product(*vary.values())):
        for chosen in itertools.product(*settings.values()):
            numbers = {name: float(value) for name, value in zip((*drawn, *vary), (*row, *values), strict=True)}
            words = dict(zip(settings, chosen, strict=True))
            points.append(StudyPoint(numbers, words, _key({**content, "values": numbers, "settings": words})))
    return points


def _check_samples(drawn: Mapping[str, Sequence[float]]) -> None:
    lengths = {name: len(values) for name, values in drawn.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{count} of {name}" for name, count in lengths.items())
        raise InputError(f"there are {told}; samples need as many values of each parameter")
    for name, values in drawn.items():
        if not len(values):
            raise InputError(f"the parameter {name} has no samples")
        for number, value in enumerate(values, start=1):
            if not math.isfinite(value):
                raise InputError(f"sample {number} of the parameter {name} is {value}; it must be finite")


def _key(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SobolIndices:
    """Sobol indices of an output [Saltelli2010]: the share of its variance that a parameter has alone, and with others.

    Attributes
    ----------
    output
        Name of the column.
    parameters
        Names of the p parameters.
    first, total
        Indices of first order and total ones, shape (p,).
    first_error, total_error
        Half widths of their 95 % confidence intervals, by bootstrap, shape (p,).
    samples
        Base samples that they are of, each of which is p + 2 runs.
    left_out
        Base samples of which a run has no value.
    """

    output: str
    parameters: tuple[str, ...]
    first: Floats
    first_error: Floats
    total: Floats
    total_error: Floats
    samples: int
    left_out: int


def saltelli_shares(parameters: int, count: int, seed: int) -> Floats:
    """Return Saltelli's samples of the unit cube for Sobol indices, shape (count (p + 2), p).

    Parameters
    ----------
    parameters
        How many there are, p.
    count
        Base samples, a power of two.
    seed
        Of the random numbers that scramble Sobol's sequence.

    Raises
    ------
    InputError
        When the number is no power of two, or SALib is not installed.
    """
    if count < 2 or count & (count - 1):
        raise InputError(f"the number of base samples is {count}; for saltelli it must be a power of two, 2 at least")
    sample = optional("SALib.sample.sobol", "the sampling method saltelli", "sensitivity")
    return np.asarray(sample.sample(_problem([""] * parameters), count, calc_second_order=False, seed=seed))


def sobol_indices(samples: Mapping[str, Floats], output: str, values: Floats, seed: int = 0) -> SobolIndices:
    """Return the Sobol indices of an output.

    Parameters
    ----------
    samples
        Values of parameters by name, in the order of `saltelli_shares`, each of shape (n (p + 2),).
    output, values
        Name of the output, and its values there; not a number where a run has none.
    seed
        Of the random numbers of the bootstrap.

    Raises
    ------
    InputError
        When the samples are not Saltelli's, fewer than two base samples are complete, or SALib is not installed.
    """
    names = tuple(samples)
    if not names or not _are_saltelli(np.column_stack(list(samples.values()))):
        raise InputError("Sobol indices need samples of the method saltelli, with one setting: --sample saltelli:256")
    blocks = values.reshape(-1, len(names) + 2)
    whole = blocks[np.isfinite(blocks).all(axis=1)]
    if len(whole) < 2:
        raise InputError(f"Sobol indices of {output} need two base samples of which all runs came to the end")
    count, lost = len(whole), len(blocks) - len(whole)
    if not np.ptp(whole):
        none = np.full(len(names), np.nan)
        return SobolIndices(output, names, none, none, none, none, count, lost)
    analyze = optional("SALib.analyze.sobol", "Sobol indices", "sensitivity")
    found = analyze.analyze(_problem(names), whole.ravel(), calc_second_order=False, seed=seed)
    first, first_error, total, total_error = (
        np.asarray(found[name], dtype=float) for name in ("S1", "S1_conf", "ST", "ST_conf")
    )
    return SobolIndices(output, names, first, first_error, total, total_error, count, lost)


def _problem(names: Sequence[str]) -> dict[str, Any]:
    return {"num_vars": len(names), "names": list(names), "bounds": [[0.0, 1.0]] * len(names)}


def _are_saltelli(rows: Floats) -> bool:
    """Return whether each p + 2 rows are two points, and between them the first with one value each of the second."""
    parameters = rows.shape[1]
    if len(rows) % (parameters + 2):
        return False
    blocks = rows.reshape(-1, parameters + 2, parameters)
    expected = np.repeat(blocks[:, :1], parameters, axis=1)
    index = np.arange(parameters)
    expected[:, index, index] = blocks[:, -1]
    return bool(np.array_equal(blocks[:, 1:-1], expected))


METHODS = ("latin-hypercube", "sobol", "halton", "random", "saltelli")
"""Sampling methods of the unit cube; the first three are more uniform than random [SciPy, `scipy.stats.qmc`], and the
last one is for Sobol indices [SALib]."""
_FORMS = "low:high, low:high:log, or normal:mean:deviation"


@dataclass(frozen=True)
class Distribution:
    """Distribution of a parameter.

    Attributes
    ----------
    kind
        `uniform` or `log` with the bounds, `normal` with mean and standard deviation.
    numbers
        Of the kind, shape (2,).
    unit
        Their unit; nothing where it is that of the parameter.
    """

    kind: str
    numbers: tuple[float, float]
    unit: str = ""

    @classmethod
    def parse(cls, text: str) -> Distribution:
        """Parse a distribution of the command line.

        Raises
        ------
        InputError
            When it does not read `low:high`, `low:high:log` or `normal:mean:deviation`, or bounds do not ascend.
        """
        words = text.split(":")
        kind = "normal" if words[0] == "normal" else "log" if words[2:] == ["log"] else "uniform"
        given = words[1:] if kind == "normal" else words[:2] if kind == "log" else words
        try:
            (first, second), unit = with_common_unit(given)
        except ValueError as error:
            raise InputError(f"'{text}' is no distribution; give {_FORMS}: {error}") from None
        if not np.isfinite([first, second]).all():
            raise InputError(f"'{text}' is no distribution; its numbers must be finite")
        if kind == "normal" and not second > 0.0:
            raise InputError(f"'{text}' is no distribution; the standard deviation must be positive")
        if kind != "normal" and not first < second:
            raise InputError(f"'{text}' is no distribution; the bounds must ascend")
        if kind == "log" and not first > 0.0:
            raise InputError(f"'{text}' is no distribution; the bounds of a logarithm must be positive")
        return cls(kind, (first, second), unit)

    def at(self, shares: np.ndarray) -> np.ndarray:
        """Return the quantiles of these probabilities."""
        first, second = self.numbers
        if self.kind == "normal":
            from scipy import stats  # noqa: PLC0415 - takes long to load

            return np.asarray(stats.norm.ppf(shares, first, second))
        if self.kind == "log":
            return np.asarray(first * (second / first) ** shares)
        return first + (second - first) * shares


def draw(
    distributions: Mapping[str, Distribution | tuple[float, float]],
    count: int,
    *,
    method: str = METHODS[0],
    seed: int = 0,
) -> dict[str, list[float]]:
    """Return samples of parameters for `sweep`; the same seed gives the same ones.

    Parameters
    ----------
    distributions
        By parameter, a distribution or the bounds of a uniform one.
    count
        Number of points; Sobol's sequence is balanced for powers of two. With `saltelli` of p parameters the number of
        base samples, a power of two, of which each is p + 2 points.
    method
        `latin-hypercube`, `sobol`, `halton`, `random` or `saltelli`.
    seed
        Of the random numbers.

    Raises
    ------
    InputError
        When there is no parameter, no such method, or a number is not allowed.
    """
    if not distributions:
        raise InputError("there is no parameter to sample; give --vary name=low:high")
    if count < 1:
        raise InputError(f"the number of samples is {count}; it must be at least 1")
    if seed < 0:
        raise InputError(f"the seed is {seed}; it must not be negative")
    from scipy.stats import qmc  # noqa: PLC0415 - takes long to load

    generator = np.random.default_rng(seed)
    size = len(distributions)
    if method == "random":
        shares = generator.random((count, size))
    elif method == "latin-hypercube":
        shares = qmc.LatinHypercube(size, rng=generator).random(count)
    elif method == "halton":
        shares = qmc.Halton(size, rng=generator).random(count)
    elif method == "sobol":
        shares = qmc.Sobol(size, rng=generator).random_base2(int(np.ceil(np.log2(count))))[:count]
    elif method == "saltelli":
        shares = saltelli_shares(size, count, seed)
    else:
        raise InputError(f"there is no sampling method '{method}'; {closest_match(method, METHODS)}")
    # A normal distribution has no value at the shares 0 and 1.
    shares = np.clip(shares, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
    made = {
        name: each if isinstance(each, Distribution) else Distribution("uniform", (float(each[0]), float(each[1])))
        for name, each in distributions.items()
    }
    return {name: _column(made[name], column) for name, column in zip(made, shares.T, strict=True)}


def _column(distribution: Distribution, shares: np.ndarray) -> list[float]:
    values = distribution.at(shares).tolist()
    return ColumnValues(values, distribution.unit) if distribution.unit else values


def read_samples(path: str) -> dict[str, list[float]]:
    """Return samples from a table file with one column per parameter; `sweep` converts those with a unit.

    Raises
    ------
    InputError
        When there is no such file, or a value is no number; the sentence names them.
    """
    table = read_table(path)
    columns: dict[str, list[float]] = {}
    for name in table.columns:
        numbers, unit = column_numbers(path, name, table).tolist(), table.units.get(name, "")
        columns[name] = numbers if unit in NO_UNIT else ColumnValues(numbers, unit)
    return columns
