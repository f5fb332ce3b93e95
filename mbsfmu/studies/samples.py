"""Sample points of a study, drawn from distributions or read from a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.io.formats import read_table
from mbsfmu.io.trajectory import column_numbers
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measured_numbers import NO_UNIT, ColumnValues, with_common_unit
from mbsfmu.studies.sobol_indices import saltelli_shares

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
