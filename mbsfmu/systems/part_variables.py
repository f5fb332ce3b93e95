"""Systems of parts: registry of what makes them, their variables, and the base of systems without coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch

import numpy as np

from mbsfmu.model.system_kinds import SystemData
from mbsfmu.modelling import Data, Quantity
from mbsfmu.modelling.data import Array
from mbsfmu.modelling.variables import Causality, Variability, Variable
from mbsfmu.systems.system import System, SystemContext


@singledispatch
def make_system(data: Data, name: str, *, absolute: bool, start_values: Mapping[str, float]) -> System:  # noqa: ARG001
    """Return the equations of one system of a model; `@make_system.register` adds a data class.

    Parameters
    ----------
    data, name
        The system, and its name in the model.
    absolute
        Whether a mechanism is in absolute coordinates, as `dca-alm` takes it.
    start_values
        Start values of inputs, parameters and states by name, where they are not those of the data.

    Raises
    ------
    InputError
        When a user's part is refused.
    TypeError
        When the class of the data is not registered.
    """
    raise TypeError(f"{type(data).__name__} is no kind of systems")


@make_system.register
def _(data: SystemData, name: str, *, absolute: bool, start_values: Mapping[str, float]) -> System:  # noqa: ARG001
    return data.make_system(name, dict(start_values))


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


class MotionlessSystem(System):
    """A system of first-order equations only."""

    def residual(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return an empty vector: there are no coordinates."""
        return np.zeros(0)

    def closure(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return an empty vector: there are no loops."""
        return np.zeros(0)

    def integral_rates(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return an empty vector."""
        return np.zeros(0)

    def initial_coordinates(self, parameters: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """Return empty vectors: there are no coordinates."""
        return np.zeros(0), np.zeros(0)

    def initial_integrals(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return an empty vector."""
        return np.zeros(0)
