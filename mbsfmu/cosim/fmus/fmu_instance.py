"""Interface of loaded FMUs for the master, for any standard: values, steps, events, messages."""

from __future__ import annotations

import ctypes
import logging
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.repeated_warnings import alike, how_many
from mbsfmu.base.times import NEIGHBOURS, resolution
from mbsfmu.cosim.compiled.library import (
    Clock,
    MakeStep,
    PortTable,
    SavedState,
    compiled_library,
    exchange_function,
    pointer_to,
)
from mbsfmu.modelling.measurement_units import UnitOfMeasurement
from mbsfmu.modelling.variables import Variable

Floats = NDArray[np.float64]
logger = logging.getLogger(__name__)

_LEVEL = {0: logging.DEBUG, 1: logging.WARNING}
_KEPT_MESSAGES = 5
REMARK = "logRemark"
"""Category of what happened in a run of one of our FMUs, as an end stop that was reached."""


def message_parts(message: str) -> tuple[str, str, str]:
    """Return the FMU, the category and the text of a message that `Instance.log` has logged; else text alone."""
    name, bracket, rest = message.partition(" [")
    category, between, text = rest.partition("]: ")
    return (name, category, text) if bracket and between else ("", "", message)


class FmuError(SimulationError):
    """Failed function of an FMU; after a fatal error no call is allowed.

    `reached` is the time in s up to which an FMU has made a step that it discards, where it says so.
    """

    def __init__(self, message: str, fatal: bool, reached: float | None = None) -> None:
        super().__init__(message)
        self.fatal, self.reached = fatal, reached


class FmuEnded(Exception):  # noqa: N818 - no error: an FMU may end a run
    """FMU that ended the run within a step; `time` in s is the last time reached."""

    def __init__(self, time: float) -> None:
        super().__init__()
        self.time = time


class FmuCalls:
    """Functions of FMUs called by compiled code, by number, with their error messages."""

    def __init__(self) -> None:
        self._calls: list[tuple[Instance, str]] = []

    def number(self, instance: Instance, function: str) -> int:
        """Return a number for a function of an instance."""
        self._calls.append((instance, function))
        return len(self._calls) - 1

    def __len__(self) -> int:
        return len(self._calls)

    def __getitem__(self, number: int) -> tuple[Instance, str]:
        return self._calls[number]


class Port(ABC):
    """Reads and writes a list of numeric variables of an instance at once, as floats.

    Parameters
    ----------
    instance
        The instance.
    names
        Names of Real, Integer, Enumeration or Boolean variables.
    values
        Where the values stand, shape (number of names,), contiguous; an array of the port's own by default.

    Attributes
    ----------
    lines
        Rows: `values`, what was read or is to be written; `slopes`, first derivatives of Real inputs by time.
    """

    def __init__(self, instance: Instance, names: Sequence[str], values: Floats | None = None) -> None:
        self.instance = instance
        self.names = tuple(names)
        self.lines = np.zeros((2, len(names)))
        self.values = self.lines[0] if values is None else values
        self.slopes = self.lines[1]

    @property
    @abstractmethod
    def all_real(self) -> bool:
        """Whether all variables are Real."""

    @property
    def compiles(self) -> bool:
        """Whether compiled code can access it."""
        return False

    @abstractmethod
    def read(self) -> Floats:
        """Read the variables into `values` and return it."""

    @abstractmethod
    def write(self) -> None:
        """Set the variables to `values`; whole numbers are rounded."""

    def expect_slopes(self) -> None:  # noqa: B027 - there is nothing to do for most
        """Prepare slopes set by compiled code."""

    @abstractmethod
    def write_slopes(self) -> None:
        """Set the first derivatives of the inputs by time to `slopes`; all must be Real."""

    @abstractmethod
    def read_rates(self) -> Floats:
        """Return the first derivatives of the outputs by time in 1/s; all must be Real."""

    def table(self, calls: FmuCalls) -> PortTable:
        """Return the port's table for coupled steps, with its functions where compiled code can call them."""
        del calls
        table = PortTable(count=len(self.names))
        table.values, table.slopes = (pointer_to(each) for each in (self.values, self.slopes))
        return table


class Instance(ABC):
    """An instance of an FMU.

    What it is described as stands in attributes that those of a standard's version set. A call that goes wrong raises
    a `FmuError`, whose message has instance, time, function and the FMU's own reason.

    Parameters
    ----------
    name
        Its name.

    Attributes
    ----------
    variables
        Variables by name.
    arrays
        Names of the elements of each array, which alone are variables; nothing where there are none.
    flat_names
        Names of variables and arrays by the flat ones of the FMU; nothing where its names are structured.
    aliases
        The variable behind each other name of it, by that name: what is written to one is written to the other.
    structural
        Structural parameters, which are set before the run alone.
    configured
        Values of those that differ from the description of the FMU, with which it was instantiated.
    wide
        Variables that are integers of 64 bits.
    unread
        Outputs that nobody records or connects, and that are not read therefore; the run sets them.
    kinds
        Their types, as SSP 1.0 has them: Real, Integer, Enumeration, Boolean or String; Binary and Clock, which cannot
        be connected.
    units
        Their units, with the definitions.
    dependencies
        What each output depends on directly while stepping; None where the FMU does not say.
    initial_dependencies
        What each unknown depends on in initialization mode; None where the FMU does not say.
    states, derivatives
        Names of its continuous states and of their derivatives, as far as its model structure names them.
    default_experiment
        Stop time and step size in s that the FMU suggests.
    suggested_tolerance
        Relative tolerance that the FMU suggests for its own solver; None where it does not.
    interpolates
        Whether inputs may be given with derivatives.
    gives_rates, gives_directional_derivatives
        Whether outputs have derivatives by time and by inputs.
    saves_state
        Whether the state can be saved and restored.
    serializes_state
        Whether the state can be handed to another process.
    takes_any_step
        Whether communication steps may differ.
    has_initialization_mode
        Whether inputs may be set again before it is initialized; else start values alone count for that.
    is_exchanged
        Whether it is an FMU for model exchange, which the master integrates.
    clock
        Where it is; compiled code counts there too.
    happened
        Time in s of the first event inside of steps since it was set to infinity; who wants to know sets it.
    events
        Number of events that were handled in steps that were not undone; None where the FMU handles them by itself.
    ends
        By instance, the time in s at which it ended the run by itself; one for all instances of a run.
    disturbs
        Whether a call of it has left another floating-point environment than there was; it was put back.
    carried
        What it says of the machine that it is, for pictures; None where it does not.
    """

    steps_apart: ClassVar[bool] = False
    """Whether a step can be begun and waited for later, while others step."""
    variables: Mapping[str, Variable]
    structural: frozenset[str] = frozenset()
    configured: Mapping[str, Any] = MappingProxyType({})
    wide: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    kinds: Mapping[str, str]
    units: Mapping[str, UnitOfMeasurement]
    dependencies: Mapping[str, tuple[str, ...] | None]
    initial_dependencies: Mapping[str, tuple[str, ...] | None]
    states: tuple[str, ...] = ()
    derivatives: tuple[str, ...] = ()
    default_experiment: tuple[float | None, float | None]
    suggested_tolerance: float | None = None
    arrays: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    flat_names: Mapping[str, str] = MappingProxyType({})
    aliases: Mapping[str, str] = MappingProxyType({})
    interpolates: bool
    gives_rates: bool
    gives_directional_derivatives: bool
    saves_state: bool
    serializes_state: bool = False
    takes_any_step: bool
    has_initialization_mode: bool = True
    is_exchanged: bool = False
    events: int | None = None
    happened: float = math.inf
    disturbs: bool = False
    carried: str | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.clock = Clock()
        self.ends: dict[str, float] = {}
        self._fatal = False
        self._messages: deque[str] = deque(maxlen=_KEPT_MESSAGES)
        self._spoke_in_step = 0
        self._saved: dict[str, float] = {}
        self._earliest = math.inf

    @property
    def time(self) -> float:
        """Present time in s: start of the last step."""
        return self.clock.time

    @time.setter
    def time(self, time: float) -> None:
        self.clock.time = time

    @property
    def steps(self) -> int:
        """Number of steps made."""
        return self.clock.steps

    @steps.setter
    def steps(self, count: int) -> None:
        self.clock.steps = count

    # -- what it says ---------------------------------------------------------------------------------------

    def known_name(self, name: str) -> str:
        """Return the known name of a variable, array or element from a name that may be flat."""
        if name in self.flat_names or name in self.variables:
            return self.flat_names.get(name, name)
        whole, bracket, indices = name.partition("[")
        return f"{self.flat_names.get(whole, whole)}{bracket}{indices}"

    def behind(self, name: str) -> str:
        """Return the name of the variable behind a name, which may be an alias; whoever writes to it is known by it."""
        return self.aliases.get(name, name)

    def called(self, name: str) -> str:
        """Return the name of a variable for messages, with its aliases."""
        others = [alias for alias, behind in self.aliases.items() if behind == name]
        return f"{name} (also called {', '.join(others)})" if others else name

    def flat_name(self, name: str) -> str:
        """Return the FMU's own name of a variable or element."""
        flat = {structured: each for each, structured in self.flat_names.items()}
        whole, bracket, indices = name.partition("[")
        return flat.get(name) or f"{flat.get(whole, whole)}{bracket}{indices}"

    def log(self, status: int, category: str, text: str) -> None:
        """Store a message of the FMU; one worse than OK is the reason of a failure."""
        if status:
            self._forget_earlier_steps()
            self._messages.append(text)
        level = logging.INFO if category == REMARK and not status else _LEVEL.get(status, logging.ERROR)
        logger.log(level, "%s [%s]: %s", self.name, category, text)

    def _forget_earlier_steps(self) -> None:
        """Discard messages of earlier steps."""
        if self._spoke_in_step != self.steps:
            self._spoke_in_step = self.steps
            self._messages.clear()

    def _reason(self, otherwise: str) -> str:
        self._forget_earlier_steps()
        return "; ".join(dict.fromkeys(self._messages)) or otherwise

    def _failed(self, function: str, word: str, *, fatal: bool) -> NoReturn:
        """Raise a FmuError with the FMU's messages."""
        self._fatal = self._fatal or fatal
        reason = self._reason("no reason given")
        self._messages.clear()
        raise FmuError(f"{self.name} at t = {self.time:.9g} s: {function} gives {word}: {reason}", self._fatal)

    # -- life cycle -----------------------------------------------------------------------------------------

    @abstractmethod
    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance of the FMU's own solver is what it suggests by default."""

    @abstractmethod
    def enter_initialization(self) -> None:
        """Enter initialization mode."""

    @abstractmethod
    def exit_initialization(self) -> None:
        """Leave initialization mode."""

    @abstractmethod
    def step(self, time: float, step: float) -> None:
        """Make a step in s.

        Raises
        ------
        FmuError
            When the FMU refuses.
        FmuEnded
            When the FMU ended the run before the end of the step; at the end, it is noted in `ends`.
        """

    def send_step(self, time: float, step: float) -> None:
        """Begin a step in s, which `finish_step` waits for, if supported."""
        raise NotImplementedError

    def finish_step(self) -> None:
        """Wait for the end of a step that was begun, if supported; raises what `step` raises."""
        raise NotImplementedError

    def step_function(self, calls: FmuCalls) -> MakeStep | None:
        """Return the step function for compiled code, with its number among calls; None if Python is required."""
        del calls
        return

    def fail(self, function: str, status: int) -> NoReturn:
        """Raise the error of a function called by compiled code, from its status.

        Raises
        ------
        FmuError
            Always; the message has instance, time, function and the FMU's own reason.
        """
        raise NotImplementedError

    def stepped(self, step: float, status: int) -> None:
        """Handle the result of a step in s of compiled code; raises what `step` raises."""
        raise NotImplementedError

    @abstractmethod
    def read_next_event(self) -> float:
        """Return when a signal of the FMU's own jumps or bends next, in s; infinity where it does not say."""

    @abstractmethod
    def close(self) -> None:
        """Free saved states and the instance; after a fatal error no call is allowed."""

    # -- states ---------------------------------------------------------------------------------------------

    def serialize(self) -> bytes:
        """Return the state for another process, if supported."""
        raise NotImplementedError

    def deserialize(self, state: bytes) -> None:
        """Restore a state of another process, if supported."""
        raise NotImplementedError

    @abstractmethod
    def save(self, slot: str, time: float) -> None:
        """Save the state at a time in s under a name, replacing an earlier one."""

    @abstractmethod
    def restore(self, slot: str) -> None:
        """Restore the state under a name."""

    def state_table(self, slot: str, calls: FmuCalls) -> SavedState:
        """Return the state under a name for compiled code, which saves and restores it, if supported."""
        raise NotImplementedError

    def take_over(self, slot: str, time: float, saved: SavedState) -> None:
        """Record that compiled code has saved the state at a time in s under a name."""
        raise NotImplementedError

    def release(self, slot: str) -> None:
        """Discard the state under a name."""
        self._saved.pop(slot, None)
        self._earliest = min(self._saved.values(), default=math.inf)

    def earliest_state(self, otherwise: str | None) -> float:
        """Return the time in s of the earliest saved state, but for that of a slot; infinity without one."""
        if otherwise not in self._saved:
            return self._earliest
        return min((time for slot, time in self._saved.items() if slot != otherwise), default=math.inf)

    def _keeps(self, slot: str, time: float) -> None:
        """Record the name of a saved state."""
        self._saved[slot] = time
        self._earliest = min(self._saved.values())

    # -- values ---------------------------------------------------------------------------------------------

    @abstractmethod
    def port(self, names: Sequence[str], values: Floats | None = None) -> Port:
        """Return a port of numeric variables; `values` is its array."""

    @abstractmethod
    def set_start(self, name: str, value: Any) -> None:
        """Set a parameter, start value or String input, by the variable's type.

        Raises
        ------
        InputError
            When there is no such variable, or the value is none of its type or beyond its bounds.
        """

    def decoded(self, name: str, content: bytes) -> str:
        """Return the text of a String variable, which is UTF-8 by the standards.

        Raises
        ------
        FmuError
            When it is not.
        """
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise FmuError(
                f"{self.name}.{name} has a value that is no UTF-8, in which FMUs give their texts: {content!r}",
                fatal=False,
            ) from None

    @abstractmethod
    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""

    @abstractmethod
    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return the derivatives of unknowns by knowns, shape (number of unknowns, number of knowns)."""


def environment() -> int:
    """Return the floating-point environment of this thread: rounding, and denormal numbers where code is compiled."""
    return _functions()[0]()


def restore_environment(wanted: int) -> bool:
    """Restore the floating-point environment of this thread; return whether it had changed."""
    get, put = _functions()
    if get() == wanted:
        return False
    put(wanted)
    return True


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], object]]:
    """Return the functions that get and set the environment, from compiled code or the C library."""
    if exchange_function() is not None:
        library = compiled_library()
        get, put = library.mbsfmu_environment, library.mbsfmu_set_environment
        get.restype, put.argtypes, put.restype = ctypes.c_uint32, (ctypes.c_uint32,), None
        return get, put
    try:
        library = ctypes.CDLL(None)
        return library.fegetround, library.fesetround
    except (OSError, TypeError, AttributeError):
        return lambda: 0, lambda _: None


class _Kept(logging.Filter):
    """Keeps back warnings of FMUs, which are `name [category]: text`, isolated ones included."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, str]] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record goes on."""
        if record.levelno != logging.WARNING:
            return True
        name, category, text = message_parts(record.getMessage())
        self.said.append((name, f" [{category}]: {text.removeprefix(f'{name}: ')}"))
        return False


@contextmanager
def alike_messages(count: int) -> Iterator[None]:
    """Log warnings that a number of FMUs give in the block behind it, those that differ in numbers alone once."""
    kept = _Kept()
    logger.addFilter(kept)
    try:
        yield
    finally:
        logger.removeFilter(kept)
        for sentence, names in alike(kept.said):
            logger.warning("%s%s%s", how_many(names, count, "FMUs"), names[0], sentence)


MOST_ITERATIONS = 1000
"""Largest number of event iterations at one instant, and of returns without progress."""


class Update(NamedTuple):
    """Result of an update of discrete states.

    Attributes
    ----------
    again
        Whether they have to be updated once more.
    ends
        Whether it ends the run.
    nominals
        Whether nominal values of its continuous states have changed.
    following
        Time of its next event in s; infinity where it names none.
    """

    again: bool
    ends: bool
    nominals: bool
    following: float


def next_event(defined: bool, time: float) -> float:
    """Return the time in s of the next event, if defined."""
    return time if defined else math.inf


def gets_nowhere(before: float, now: float, end: float) -> bool:
    """Return whether two times in s of a step differ by less than round-off.

    FMUs that test whether a time is behind that of an event, or name events by round-off, go on so for ever.
    """
    return now <= before + NEIGHBOURS * resolution(end)


def iterate_events(name: str, time: float, update: Callable[[], Update]) -> Update:
    """Update discrete states until convergence, or the end of the run; return the combined result.

    Parameters
    ----------
    name, time
        The unit, and where it is in s, for the message.
    update
        Makes one update.

    Raises
    ------
    SimulationError
        When they do not settle.
    """
    nominals = False
    for _ in range(MOST_ITERATIONS):
        event_info = update()
        nominals = nominals or event_info.nominals
        if event_info.ends or not event_info.again:
            return event_info._replace(nominals=nominals)
    raise SimulationError(
        f"{name} at t = {time:.9g} s: the event iteration does not converge in {MOST_ITERATIONS} iterations"
    )
