"""Sobol indices of a study whose samples are Saltelli's: shares of an output's variance, by parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.io.tables import optional

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
