"""Models with other values of variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from mbsfmu.base.errors import InputError
from mbsfmu.simulation.simulation import Simulation


class ValuedModel(Protocol):
    """A model whose variables have values at the start."""

    @property
    def signals(self) -> Mapping[str, Any]:
        """Signals by `system.variable`."""
        ...

    @property
    def start(self) -> Mapping[str, float]:
        """Values at the start by `system.variable`."""
        ...

    def model_copy(self, *, update: Mapping[str, Any]) -> Any:
        """Return a copy with other fields."""
        ...


Valued = TypeVar("Valued", bound=ValuedModel)


def with_values(model: Valued, simulation: Simulation, values: Mapping[str, float | str]) -> Valued:
    """Return a model with other values; see `CoupledModel.with_values`. The simulation is one of the model."""
    found: dict[str, float] = {}
    for name, given in values.items():
        variable = simulation.variable(name)
        value = simulation.number(name, given)
        reference = simulation.exposed.qualified.get(variable.name, variable.name)
        if reference in found:
            raise InputError(f"{variable.name} is given twice")
        simulation.set(name, value)
        found[reference] = float(value)
    signals = {reference: signal for reference, signal in model.signals.items() if reference not in found}
    return model.model_copy(update={"signals": signals, "start": {**model.start, **found}})
