"""Clocks of FMI 3.0: by which hosts make the updates of sampled blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from mbsfmu.compiling.platforms import Clocks


class Sampled(Protocol):
    """What is updated at instants; `mbsfmu.systems.system.Sampling` is one."""

    @property
    def owner(self) -> str:
        """Name of what is updated."""
        ...

    @property
    def sample_time(self) -> float:
        """Time between instants in s."""
        ...

    @property
    def offset(self) -> float:
        """First instant in s."""
        ...

    @property
    def delays(self) -> bool:
        """Whether it brings back later what has happened to continuous states: then it has no clock."""
        ...


@dataclass(frozen=True)
class ClockVariable:
    """A clock in a description.

    Attributes
    ----------
    name, description
        As they are written.
    number
        Among all that is updated; the value reference follows from it.
    interval, shift
        Of a periodic one, in s; None of one that the host triggers.
    """

    name: str
    description: str
    number: int
    interval: float | None
    shift: float | None


def clock_variables(clocks: Clocks, samplings: Iterable[Sampled], taken: Collection[str]) -> tuple[ClockVariable, ...]:
    """Return the clocks of an FMU's sampled blocks.

    Parameters
    ----------
    clocks
        Which there are.
    samplings
        All that is updated.
    taken
        Names of variables, which clocks must not have. They tell whether those of a block begin with its name, as
        the clock's then does.
    """
    if clocks == "none":
        return ()
    names, found = set(taken), []
    for number, each in enumerate(samplings):
        if each.delays:
            continue
        prefix = f"{each.owner}."
        name = f"{prefix}clock" if any(other.startswith(prefix) for other in taken) else "clock"
        while name in names:
            name += "_"
        names.add(name)
        times = (each.sample_time, each.offset) if clocks == "periodic" else (None, None)
        found.append(ClockVariable(name, f"updates of {each.owner}", number, *times))
    return tuple(found)
