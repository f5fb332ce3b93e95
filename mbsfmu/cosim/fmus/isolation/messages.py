"""Messages between the master and the process of an FMU.

The master sends a list of calls, each a tuple of a name and arguments; the process makes them in turn, up to the first
that goes wrong, and sends one `Reply`. Numbers go as the bytes that they are: nothing is rounded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.fmus.fmu_instance import FmuEnded, FmuError

Call = tuple[Any, ...]
Log = tuple[str, int, str]
DESCRIBED = (
    "variables",
    "kinds",
    "units",
    "aliases",
    "wide",
    "structural",
    "configured",
    "dependencies",
    "initial_dependencies",
    "states",
    "derivatives",
    "default_experiment",
    "suggested_tolerance",
    "interpolates",
    "gives_rates",
    "gives_directional_derivatives",
    "saves_state",
    "serializes_state",
    "takes_any_step",
    "has_initialization_mode",
    "is_exchanged",
)
"""Instance attributes that the master knows, including `arrays`."""


class Failure(NamedTuple):
    """A transferred exception: its kind, message, and further data."""

    kind: str
    text: str
    fatal: bool = False
    time: float | None = None

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Return an exception in transferable form."""
        if isinstance(error, FmuError):
            return cls("unit", str(error), error.fatal, error.reached)
        if isinstance(error, FmuEnded):
            return cls("ended", "", time=error.time)
        kind = next((name for name, kind in _KINDS.items() if isinstance(error, kind)), "simulation")
        known = isinstance(error, tuple(_KINDS.values()))
        return cls(kind, str(error) if known else f"{type(error).__name__}: {error}")

    def exception(self) -> Exception:
        """Return the exception."""
        if self.kind == "unit":
            return FmuError(self.text, self.fatal, self.time)
        if self.kind == "ended":
            assert self.time is not None
            return FmuEnded(self.time)
        return _KINDS[self.kind](self.text)


_KINDS: dict[str, type[Exception]] = {"input": InputError, "simulation": SimulationError}


class Reply(NamedTuple):
    """Results of a list of calls.

    Attributes
    ----------
    answers
        What each of them has returned.
    failure
        What has gone wrong in the one after them.
    end
        When the FMU has ended the run, in s.
    logs
        What was logged: logger, level and text.
    events
        Number of events that the FMU's integration has handled; None where it is not integrated.
    happened
        When the first event inside of steps has happened since the last reply, in s; infinity for none.
    """

    answers: list[Any]
    failure: Failure | None
    end: float | None
    logs: list[Log]
    events: int | None
    happened: float
