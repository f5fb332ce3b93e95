"""Machine data of a run, stored with its result: systems, connections, signals, parameter values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from mbsfmu.io.signals import AnySignal
from mbsfmu.model.coupled import AnySystem, ModelData


@dataclass(frozen=True)
class Machine:
    """Systems as data, with their parameter values in a run.

    Attributes
    ----------
    name
        Name of the model, or of the one system that ran alone.
    systems
        Mechanisms, circuits and blocks by name.
    connections
        Pairs of `system.variable`, source and target.
    signals
        Signals by the input that follows them, as `system.variable`.
    values
        Values of parameters by `system.variable`; others are as in the data.
    """

    name: str
    systems: Mapping[str, AnySystem]
    connections: tuple[tuple[str, str], ...] = ()
    signals: Mapping[str, AnySignal] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, model: ModelData, system: str | None = None) -> Self:
        """Return the machine of a run of a model, or of one of its systems."""
        if system is None:
            return cls(model.name, model.systems, model.connections, model.signals)
        return cls(f"{model.name}.{system}", {system: model.systems[system]}, (), model.signals)

    def beside(self, other: Machine, names: Mapping[str, str]) -> Self:
        """Return this machine combined with another one, whose systems get new names."""

        def moved(reference: str) -> str:
            system, _, variable = reference.partition(".")
            return f"{names[system]}.{variable}"

        return replace(
            self,
            systems={**self.systems, **{names[name]: system for name, system in other.systems.items()}},
            connections=(*self.connections, *((moved(source), moved(target)) for source, target in other.connections)),
            signals={**self.signals, **{moved(name): signal for name, signal in other.signals.items()}},
            values={**self.values, **{moved(name): value for name, value in other.values.items()}},
        )

    def split(self, reference: str) -> tuple[str, str]:
        """Return the system, whose name may contain dots, and the variable of `system.variable`."""
        owners = [name for name in self.systems if reference.startswith(f"{name}.")]
        owner = max(owners, key=len, default=reference.partition(".")[0])
        return owner, reference[len(owner) + 1 :]

    def with_values(self, values: Mapping[str, float]) -> Self:
        """Return the same with other parameter values."""
        return replace(self, values=values)
