"""Variables of parts from their quantities, and test points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mbsfmu.modelling import Quantity
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.variables import Causality, Variability, Variable

_TRIALS = 4
"""Number of test points besides the start."""


def part_variable(
    quantity: Quantity, causality: Causality, magnitudes: Mapping[str, float] | None = None, *, held: bool = False
) -> Variable:
    """Return the variable of a part's quantity.

    Parameters
    ----------
    quantity, causality
        The quantity, and who determines it.
    magnitudes
        Usual magnitudes of what is no parameter, by unit, where the quantity does not say.
    held
        Whether it changes at instants only.
    """
    variability = Variability.DISCRETE if held else Variability.CONTINUOUS
    nominal = quantity.nominal
    if causality is Causality.PARAMETER:
        variability = Variability.TUNABLE if quantity.tunable else Variability.FIXED
    elif nominal is None and magnitudes is not None:
        nominal = magnitudes.get(quantity.unit)
    return Variable(
        quantity.name,
        causality,
        variability,
        quantity.unit,
        quantity.start,
        quantity.minimum,
        quantity.maximum,
        nominal,
        quantity.description,
        quantity.rated,
        quantity.saturates,
    )


def trial_points(parameters: Array, *groups: tuple[Array, Sequence[Variable]]) -> list[tuple[Array, ...]]:
    """Return test points of a part: the start, and variations of it.

    Parameters
    ----------
    parameters
        Parameters at the start; they come last in each point.
    groups
        Pairs of values at the start and their variables, whose nominal values say how far to go.
    """
    generator = np.random.default_rng(0)

    def about(values: Array, variables: Sequence[Variable]) -> Array:
        magnitudes = np.array([variable.nominal or 1.0 for variable in variables])
        return values + magnitudes * generator.uniform(-1.0, 1.0, len(values))

    near = (parameters * generator.uniform(0.95, 1.05, len(parameters)) for _ in range(_TRIALS))
    others = [(*(about(*group) for group in groups), each) for each in near]
    return [(*(values for values, _ in groups), parameters), *others]
