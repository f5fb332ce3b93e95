"""Error of a coupled run in equal steps, by a second run with half of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.muted import muted
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.cosim.runs.coupled_result import CosimulationResult
from mbsfmu.modelling.ranges import compared_ranges, vector_of

_STILL = 1e-7
"""Relative change of an output below which it is constant, within iteration errors."""
_NOTHING = 1e-9
"""Fraction of an output's nominal value below which it is zero."""
_LARGE = 0.01
"""Fraction of an output's range from which on its error is a warning."""
_LEAST_RATE = 0.5
"""Of the change by halving the step over the whole error of first order, which is a half; others are 3/4 and more."""
NOT_ESTIMATED = (
    "what coupling costs in accuracy is not estimated: --check-error, in Python check_error=True, runs once more with "
    "half the step; --control error keeps a tolerance"
)


class CouplingError(NamedTuple):
    """Largest error of a coupled run.

    Attributes
    ----------
    fraction
        Of the range of the output; None where it is not known.
    output
        Its name.
    sentence
        The same in words.
    """

    fraction: float | None
    output: str
    sentence: str

    @property
    def is_large(self) -> bool:
        """Whether it is worth a warning."""
        return self.fraction is None or self.fraction > _LARGE


def output_scale(values: Floats, nominal: float) -> float:
    """Return what errors of an output are relative to: its range, or its magnitude, or what is usual, if still."""
    magnitude, extent = float(np.max(np.abs(values))), float(np.ptp(values))
    if magnitude <= _NOTHING * nominal:
        return nominal
    return extent if extent > _STILL * magnitude else magnitude


def coupling_error(
    first: CosimulationResult, outputs: Collection[str], again: Callable[[float], CosimulationResult]
) -> CouplingError:
    """Return the largest error of a run's outputs, by a second run with half the step.

    The error of first order is twice what changes [Hairer1993, sect. II.4]; of higher orders it is less, so that the
    estimate is too large rather than too small. What the FMUs' own steps do wrong is in it as far as these end with
    communication steps.

    Parameters
    ----------
    first
        The run.
    outputs
        Names of its continuous outputs.
    again
        Makes the run with another step in s.
    """
    step = 0.5 * first.statistics.step
    try:
        with muted():
            second = again(step)
    except (InputError, SimulationError) as error:
        return CouplingError(None, "", f"the error of the coupling is not known: with half the step, {error}")
    if not outputs:
        return CouplingError(None, "", "the error of the coupling is not known: no continuous output is recorded")
    names = list(outputs)
    off = np.array([np.max(np.abs(first[name] - np.interp(first.time, second.time, second[name]))) for name in names])
    off /= _LEAST_RATE
    sizes: dict[tuple[str, str], float] = {}
    for name in names:
        vector = vector_of(name, first.unit(name))
        sizes[vector] = max(sizes.get(vector, 0.0), float(np.max(np.abs(second[name]))))
    of_vectors = np.array([sizes[vector_of(name, first.unit(name))] for name in names])
    scales = np.array([output_scale(second[name], 1.0) for name in names])
    errors = dict(zip(names, (off / compared_ranges(off, scales, of_vectors)).tolist(), strict=True))
    worst = max(errors, key=errors.__getitem__)
    return CouplingError(
        errors[worst],
        worst,
        f"the coupling by steps of {first.statistics.step:.3g} s is off by {100.0 * errors[worst]:.2g} % of the range "
        f"of {worst}, the most of all outputs, estimated by a second run with half of them",
    )
