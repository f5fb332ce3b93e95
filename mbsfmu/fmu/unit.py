"""Protocol of simulations that can be packaged as FMUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mbsfmu.base.identity import Origin
from mbsfmu.modelling.variables import Variable


class FmuSimulation(Protocol):
    """A simulation seen from outside; `mbsfmu.simulation.simulation.Simulation` is one."""

    name: str
    description: str
    stop_time: float
    origin: Origin

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables in the order of the FMU."""
        ...

    @property
    def dependencies(self) -> Mapping[str, tuple[str, ...]]:
        """Inputs on which each output depends directly while stepping."""
        ...

    @property
    def initial_dependencies(self) -> Mapping[str, tuple[str, ...] | None]:
        """Parameters and inputs on which outputs and calculated parameters depend after initialization.

        None where it may be all.
        """
        ...

    @property
    def step_size(self) -> float:
        """Largest internal step in s."""
        ...

    @property
    def tolerance(self) -> float:
        """Relative tolerance."""
        ...

    def set_tolerance(self, relative: float) -> None:
        """Change the relative tolerance, where there is one."""
        ...

    @property
    def time(self) -> float:
        """Present time in s."""
        ...

    def initialize(self, time: float = 0.0) -> None:
        """Find the consistent state at the start."""
        ...

    def step(self, time: float, step: float) -> None:
        """Advance by any step in s."""
        ...

    def get(self, name: str) -> float:
        """Return the value of a variable."""
        ...

    def set(self, name: str, value: float) -> None:
        """Set the value of a variable."""
        ...

    def check(self, name: str, value: float) -> float:
        """Return a value as a float if `set` would take it now; raise an InputError if not."""
        ...

    def save(self) -> bytes:
        """Return the complete state."""
        ...

    def restore(self, saved: bytes) -> None:
        """Go back to a saved state."""
        ...

    def reset(self) -> None:
        """Go back to start values."""
        ...
