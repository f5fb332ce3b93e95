"""FMUs for model exchange, integrated by the master from event to event.

Integration of FMU states by one-step methods of SciPy up to event indicators.

One-step methods, for a run stops at every communication point, where inputs jump or bend: methods with a memory (CVODE,
LSODA) would begin there anew with their lowest order, and what they remember could not be saved with the states of the
FMUs. All that is kept here from one step to the next is a length.
"""

from __future__ import annotations

import logging
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from ctypes import byref, c_double, c_size_t, c_void_p
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from fmpy import fmi2, fmi3
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.times import NEIGHBOURS, resolution
from mbsfmu.cosim.compiled.library import VariableBlock
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmi2 import Fmi2Library
from mbsfmu.cosim.fmus.fmi3 import Fmi3Library
from mbsfmu.cosim.fmus.fmu_instance import (
    MOST_ITERATIONS,
    Floats,
    FmuError,
    Update,
    gets_nowhere,
    iterate_events,
    next_event,
)
from mbsfmu.cosim.fmus.library_instance import DISCARD, WARNING, LibraryInstance, LibraryPort
from mbsfmu.cosim.fmus.linear_inputs import LinearInputs
from mbsfmu.cosim.fmus.variable_descriptions import ArrayElement
from mbsfmu.modelling.variables import Causality, Variability

SOLVERS = ("radau", "dop853")
"""Radau IIA of order 5, for stiff FMUs too; Dormand's and Prince's explicit method of order 8, cheaper for others."""
RELATIVE_TOLERANCE = 1e-6
"""Of states, where neither the call nor the FMU says another one."""
_LEAST_TOLERANCE = 1e-13
_NEAR = 1e-10
"""Tolerance of event times relative to a step."""
_MOST_CUTS = 30
_LOOKS = (0.25, 0.5, 0.75)
"""Points of a step at which indicators are checked for double sign changes."""
_CLOSE_LOOKS = (*(0.5**power for power in range(40, 2, -1)), *_LOOKS)
"""The same in a step that begins where an indicator is next to zero, on either side, as after an event: it may be back
there at any time, as that of a ball that bounces again."""
_MOST_RETRIES = 30
_SHORTER = 0.25


class Refused(Exception):  # noqa: N818 - no error: a shorter step may do
    """An FMU that cannot be evaluated at trial states; `reason` is its message."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ModelEquations(Protocol):
    """The integrated equations.

    Attributes
    ----------
    tolerances
        Absolute tolerances of the states for a relative one of 1, shape (states,).
    """

    tolerances: Floats

    def rates(self, time: float, states: Floats) -> Floats:
        """Return derivatives of the states in 1/s; raises `Refused` where it cannot."""
        ...

    def indicators(self, time: float, states: Floats) -> Floats:
        """Return event indicators, shape (indicators,); raises `Refused` where it cannot."""
        ...

    def jacobian(self) -> Callable[[float, Floats], Floats] | None:
        """Return the function of ∂ẋ/∂x; None for differences."""
        ...


class Arrival(NamedTuple):
    """End of a step: time in s, states, and whether an indicator has changed its sign."""

    time: float
    states: Floats
    crosses: bool


class FmuIntegrator:
    """Integrates one FMU.

    Parameters
    ----------
    name
        Of the unit, for messages.
    equations
        What is integrated.
    solver
        One of `SOLVERS`.
    relative
        Relative tolerance of the states.

    Attributes
    ----------
    length
        Of the step in s that is made next, if nothing cuts it; 0 where the solver has to find one.
    """

    def __init__(self, name: str, equations: ModelEquations, solver: str, relative: float) -> None:
        self._name, self._equations, self._kind = name, equations, solver
        self._relative = max(relative, _LEAST_TOLERANCE)
        self.length = 0.0
        self._solver: Any = None
        self._time = self._goal = self._closest = 0.0
        self._states = self._positive = np.zeros(0)
        self._looks = _LOOKS

    def begin(self, time: float, states: Floats, goal: float, *, follows_event: bool) -> None:
        """Start integration at a time in s towards a later one; return whether an event was handled there."""
        self._time, self._states, self._goal = time, states, goal
        # About time zero floating-point numbers are closer to each other than steps can be.
        self._closest = resolution(time, goal)
        self._looks = _CLOSE_LOOKS if follows_event else _LOOKS
        self._positive = self._signs(time, states)
        self._solver = None

    def advance(self) -> Arrival:
        """Make one step towards the goal, or to just after the first sign change of an indicator.

        Raises
        ------
        SimulationError
            When no step is short enough.
        """
        solver = self._solver = self._step(self._solver or self._from_here(self._goal, self.length))
        change, crosses, next_looks = self._first_change(solver), False, _LOOKS
        for _ in range(_MOST_CUTS):
            if change is None:
                break
            crosses = solver.t - change <= _NEAR * (solver.t - self._time) + NEIGHBOURS * self._closest
            if crosses:
                break
            # The interpolant inside a step is less exact than its end: the step is made again, to where that says.
            solver, self._solver = self._step(self._from_here(change, change - self._time)), None
            change, next_looks = self._first_change(solver), _CLOSE_LOOKS
        self._time, self._states, self._looks = float(solver.t), solver.y.copy(), next_looks
        return Arrival(self._time, self._states, crosses)

    def correct(self, states: Floats) -> None:
        """Go on from other states where it is, next to those reached: signs of indicators stay as they were."""
        self._states, self._solver = states, None

    # -- steps ----------------------------------------------------------------------------------------------

    def _from_here(self, bound: float, length: float) -> Any:
        """Return a solver from where the FMU is to a time in s, whose first step has a length in s; 0 for any."""
        from scipy import integrate  # noqa: PLC0415 - most runs need none, and it takes long to load

        among = {"radau": integrate.Radau, "dop853": integrate.DOP853}
        given: dict[str, Any] = {"jac": self._equations.jacobian()} if self._kind == "radau" else {}
        left = bound - self._time
        return among[self._kind](
            self._equations.rates,
            self._time,
            self._states,
            bound,
            rtol=self._relative,
            atol=self._relative * self._equations.tolerances,
            first_step=min(length, left) if length > 0.0 else None,
            **given,
        )

    def _step(self, solver: Any) -> Any:
        """Make one step and return its solver: a new one where the FMU has refused, with a shorter step."""
        wanted, reason = solver.h_abs, ""
        for _ in range(_MOST_RETRIES):
            wanted = solver.h_abs
            try:
                message = solver.step()
            except Refused as refused:
                reason = refused.reason
                solver = self._from_here(solver.t_bound, _SHORTER * min(wanted, solver.t_bound - self._time))
                continue
            if solver.status == "failed":
                raise SimulationError(
                    f"{self._name} cannot be integrated beyond t = {solver.t:.9g} s: {_words(message)}"
                )
            # The end of a step that was cut says nothing against the longer one that was wanted.
            self.length = max(self.length, solver.h_abs) if solver.t == solver.t_bound else solver.h_abs
            return solver
        raise SimulationError(
            f"{self._name} cannot be integrated beyond t = {self._time:.9g} s: {reason}, in steps of {wanted:.3g} s too"
        )

    # -- indicators -----------------------------------------------------------------------------------------

    def _signs(self, time: float, states: Floats) -> NDArray[np.bool_]:
        """Return which indicators are positive: zero is not [FMI 2.0.4, section 3.1.1; FMI 3.0.2, section 3.1.1]."""
        return self._equations.indicators(time, states) > 0.0

    def _first_change(self, solver: Any) -> float | None:
        """Return the time in s just behind the first change of a sign in a step that was made; None for none."""
        if not len(self._positive):
            return None
        begin, end = self._time, solver.t
        inside = solver.dense_output()

        def changed(time: float) -> bool:
            states = solver.y if time == end else inside(time)
            return bool((self._signs(time, states) != self._positive).any())

        before = begin
        for time in (*(begin + share * (end - begin) for share in self._looks), end):
            if changed(time):
                return _boundary(changed, before, time, self._closest)
            before = time
        return None


def _boundary(changed: Callable[[float], bool], before: float, after: float, closest: float) -> float:
    """Return the first time in s, as closely, at which something has changed, between one before that and one after."""
    while after - before > closest:
        middle = 0.5 * (before + after)
        if changed(middle):
            after = middle
        else:
            before = middle
    return after


def _words(message: str | None) -> str:
    """Return why a solver gives up, in our words."""
    return "no step is short enough for the tolerance" if not message or "step size" in message else message


_SAME_EVENT = 1e-9
"""Share of a step behind its end in which an event counts as one at the end."""


class IntegratedModel(ABC):
    """A model whose continuous states the master integrates, with its events.

    Attributes
    ----------
    name
        Its name in messages.
    integrator
        What makes the steps.
    """

    name: str
    integrator: FmuIntegrator
    _follows_event: bool

    @property
    @abstractmethod
    def following(self) -> float:
        """Time of the next event that it has named, in s; infinity for none."""

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether it has ended the run."""

    @property
    @abstractmethod
    def is_continuous(self) -> bool:
        """Whether it has continuous states or event indicators."""

    @abstractmethod
    def jumped(self) -> bool:
        """Return whether inputs differ from their values at the end of the last step."""

    @abstractmethod
    def states_now(self) -> Floats:
        """Return the states where it is; one that stands in where there are none."""

    @abstractmethod
    def arrive(self, time: float, states: Floats) -> tuple[Floats, bool]:
        """Bring it to the end of a step of the integrator, a time in s.

        Returns
        -------
        tuple
            The states there, which are others than given where they had to be corrected; whether it asks for an event.
        """

    @abstractmethod
    def event(self) -> AbstractContextManager[None]:
        """Enter event mode, and leave it at the end."""

    @abstractmethod
    def count_event(self, time: float, *, inside: bool) -> None:
        """Count an event at a time in s, which may be inside of a communication step."""

    def _go(self, now: float, end: float) -> float:
        """Go from a time in s to another one, event by event, or to where the run is ended; return where it is.

        Raises
        ------
        SimulationError
            When it cannot be integrated, or events do not end.
        """
        if self.jumped():
            with self.event():
                pass
        # An event that the FMU names a little behind the end, for it counts in another way, is one at the end.
        last, stays = end + _SAME_EVENT * (end - now) + NEIGHBOURS * resolution(end), 0
        while not self.is_over and (now < end or self.following <= last):
            before = now
            now, happens = self._integrate(now, max(self.following, now) if self.following <= last else end)
            if not self.is_over and (happens or self.following <= now):
                with self.event():
                    self.count_event(now, inside=now < end)
            stays = stays + 1 if gets_nowhere(before, now, end) else 0
            if stays > MOST_ITERATIONS:
                raise SimulationError(f"{self.name} has one event after the other at t = {now:.9g} s")
        return now

    def _integrate(self, now: float, goal: float) -> tuple[float, bool]:
        """Go from a time in s to a goal or an event before it; return where that is and whether one happens."""
        states, happens = self.states_now(), False
        integrates = goal - now > NEIGHBOURS * resolution(goal) and self.is_continuous
        if integrates:
            self.integrator.begin(now, states, goal, follows_event=self._follows_event)
            self._follows_event = False
        while now < goal and not (happens or self.is_over):
            now, reached, happens = self.integrator.advance() if integrates else (goal, states, False)
            states, asks = self.arrive(now, reached)
            if states is not reached and integrates:
                self.integrator.correct(states)
            happens = happens or asks
        return now, happens


logger = logging.getLogger(__name__)

_KEPT = struct.Struct("<dddqq")
"""Beside the state of an FMU: its time, that of its next event, the length of its next step, its number of events, and
whether it has just had one."""


class ModelExchangeInstance(LibraryInstance, IntegratedModel, ABC):
    """An instance of an FMU for model exchange.

    Steps of the integrator end at communication points, at events that the FMU has named, and just behind the times
    at which event indicators change their signs. Continuous inputs run straight over a communication step where they
    are given with slopes, and are held otherwise; where they jump between two steps, the FMU is told so in event mode,
    in which discrete inputs are set too.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    model
        FMPy's class for it.
    solver
        One of `SOLVERS`.

    Attributes
    ----------
    get_rates_name
        Of the function that gives the derivatives.
    integrator
        What makes its steps.
    tolerances
        Nominal values of the states, shape (states,), 1 for the one that stands in where there are none.
    completes
        Whether it wants to be told when a step of the integrator is complete.
    """

    get_rates_name: str
    completes: bool
    is_exchanged = True

    def __init__(self, name: str, archive: Archive, model: Callable[..., Any], solver: str = SOLVERS[0]) -> None:
        super().__init__(name, archive, model)
        self.solver = solver
        self.events = 0
        self.tolerances = np.ones(1)
        self._straight: LinearInputs | None = None
        self._now, self._following, self._follows_event = -np.inf, np.inf, True
        self._relative = RELATIVE_TOLERANCE
        continuous = [each.name for each in self.variables.values() if self._runs(each.name)]
        self.interpolates = bool(continuous)
        self._continuous = continuous
        self._by_differences = not self.gives_directional_derivatives

    def _bind(self, states: int, indicators: int) -> None:
        """Bind the functions that are called most, for numbers of states and event indicators."""
        prefix, values = self.dialect.prefix, (c_void_p, c_void_p, c_size_t)
        self._x, self._rates, self._nominals = np.zeros(states), np.zeros(states), np.ones(states)
        self._z = np.zeros(indicators)
        self._set_time = self.function(f"{prefix}SetTime", (c_void_p, c_double))
        complete = (c_void_p, self.dialect.truth, c_void_p, c_void_p)
        self._complete_step = self.function(f"{prefix}CompletedIntegratorStep", complete)

        def bound(function: str, array: Floats) -> Callable[[], None]:
            called, arguments = self.function(function, values), (self.component, array.ctypes.data, len(array))

            def call() -> None:
                self._check(function, called(*arguments))

            return call if len(array) else lambda: None

        self._set_states = bound(f"{prefix}SetContinuousStates", self._x)
        self._get_states = bound(f"{prefix}GetContinuousStates", self._x)
        self._get_rates = bound(self.get_rates_name, self._rates)
        self._get_nominals = bound(f"{prefix}GetNominalsOfContinuousStates", self._nominals)
        self._get_indicators = bound(f"{prefix}GetEventIndicators", self._z)

    def _check(self, function: str, status: int) -> None:
        """Look at what a function has given.

        Raises
        ------
        Refused
            When the FMU discards the call: another one may do.
        FmuError
            When it went wrong.
        """
        if status == DISCARD:
            reason = self._reason("no reason given")
            self._messages.clear()
            raise Refused(f"{function} gives discard: {reason}")
        if status > WARNING:
            self.fail(function, status)

    # -- what the standards differ in -------------------------------------------------------------------------

    @abstractmethod
    def _update(self) -> Update:
        """Update the discrete states once."""

    @property
    @abstractmethod
    def _sizes(self) -> tuple[int, int]:
        """Number of states and of event indicators."""

    # -- inputs ---------------------------------------------------------------------------------------------

    def _runs(self, name: str) -> bool:
        """Return whether a variable is a continuous input."""
        variable = self.variables[name]
        return (
            variable.causality is Causality.INPUT
            and variable.variability is Variability.CONTINUOUS
            and self.kinds[name] == "Real"
        )

    def sets_at_events(self, name: str) -> bool:
        """Return whether a variable is set in event mode, as all inputs are that are not continuous."""
        return self.variables[name].causality is Causality.INPUT and not self._runs(name)

    def _set(self, element: ArrayElement, value: float | int | bool | str | bytes) -> None:
        if self.is_stepping and not self._runs(element.name):
            with self.event():
                super()._set(element, value)
        else:
            super()._set(element, value)

    def follow(self, port: LibraryPort, group: VariableBlock, buffer: NDArray[Any]) -> None:
        """Let inputs run straight, by the values and slopes of a port."""
        if self._straight is None or self._straight.port is not port:
            self._straight = LinearInputs(port, group, len(buffer))
        self._straight.take(buffer)

    def jumped(self) -> bool:
        """Return whether inputs differ from their values at the end of the last step."""
        return bool(len(self._before)) and not np.array_equal(self._before, self._inputs.read(), equal_nan=True)

    # -- life cycle -----------------------------------------------------------------------------------------

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance is what the FMU suggests by default."""
        super().setup(start, stop, tolerance)
        self._relative = self.own_tolerance(tolerance) or RELATIVE_TOLERANCE

    def exit_initialization(self) -> None:
        """Leave initialization mode; events at the start are handled."""
        self._call("exitInitializationMode")
        self._bind(*self._sizes)
        self.integrator = FmuIntegrator(self.name, self, self.solver, self._relative)
        self.is_stepping = True
        self._iterate_events()
        self._read_nominals()
        self._inputs = LibraryPort(self, self._continuous)
        self._before = self._inputs.read().copy()

    @contextmanager
    def event(self) -> Iterator[None]:
        """Enter event mode between two steps, and leave it at the end."""
        self._call("enterEventMode")
        yield
        self._iterate_events()

    def _iterate_events(self) -> None:
        """Iterate the discrete states to convergence, and return to continuous time, unless the FMU ends."""
        event_info = iterate_events(self.name, self.time, self._update)
        self._follows_event = True
        self._following, self._over = event_info.following, event_info.ends
        if not event_info.ends:
            self._call("enterContinuousTimeMode")
            if event_info.nominals:
                self._read_nominals()

    def _read_nominals(self) -> None:
        self._get_nominals()
        if len(self._nominals):
            self.tolerances = np.where(self._nominals == 0.0, 1.0, np.abs(self._nominals))

    def step(self, time: float, step: float) -> None:
        """Make a step in s.

        Raises
        ------
        FmuError
            When the FMU refuses; the message has instance, time and reason.
        SimulationError
            When it cannot be integrated, or events do not end.
        FmuEnded
            When the FMU ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        reached = self.begin_step(time)
        try:
            if not self.is_over:
                reached = self._go(reached, max(time + step, reached))
        except Refused as refused:
            raise self.refusal(refused) from None
        finally:
            self.restore_environment()
        self.end_step(reached, time, step)

    def begin_step(self, time: float) -> float:
        """Begin a step at a time in s; return where the FMU is, which may be later by round-off.

        Times are counted by the master: that of the FMU must not be set back.
        """
        self.clock.time = time
        self.clock.steps += 1
        return max(time, self._now)

    def end_step(self, reached: float, time: float, step: float) -> None:
        """End a step of a length from a time, all in s, which has reached another one.

        Raises
        ------
        FmuEnded
            When the FMU ended the run there, before the end of the step; at the end, it is noted in `ends`.
        """
        self._now = reached
        self._before = self._inputs.read().copy()
        if self.is_over:
            self._end(reached, time + step, step)

    def refusal(self, refused: Refused) -> FmuError:
        """Return the error of a step that cannot be made where evaluations are refused."""
        return FmuError(f"{self.name} at t = {self.time:.9g} s: {refused.reason}", False)

    # -- what the integration asks ----------------------------------------------------------------------------

    @property
    def following(self) -> float:
        """Time of the next event that it has named, in s; infinity for none."""
        return self._following

    @property
    def is_over(self) -> bool:
        """Whether it has ended the run."""
        return self._over

    @property
    def is_continuous(self) -> bool:
        """Whether it has continuous states or event indicators."""
        return bool(len(self._x) or len(self._z))

    @property
    def has_indicators(self) -> bool:
        """Whether it has event indicators."""
        return bool(len(self._z))

    @property
    def relative_tolerance(self) -> float:
        """Relative tolerance of its states."""
        return self._relative

    def states_now(self) -> Floats:
        """Return the states where it is; one that stands in where there are none."""
        return self.current_states if len(self._x) else np.ones(1)

    def arrive(self, time: float, states: Floats) -> tuple[Floats, bool]:
        """Bring it to the end of a step of the integrator, a time in s; return the states, and whether it asks."""
        self.put(time, states)
        return states, self.complete(time)

    def count_event(self, time: float, *, inside: bool) -> None:
        """Count an event at a time in s, which may be inside of a communication step."""
        self.events = (self.events or 0) + 1
        if inside:
            self.happened = min(self.happened, time)

    def complete(self, now: float) -> bool:
        """Complete a step of the integrator to a time in s; return whether the FMU asks for an event."""
        if not self.completes:
            return False
        asks, ends = self.dialect.truth(0), self.dialect.truth(0)
        stays = bool(self._earliest >= now)
        status = self._complete_step(self.component, stays, byref(asks), byref(ends))
        self._check(f"{self.dialect.prefix}CompletedIntegratorStep", status)
        self._over = bool(ends.value)
        return bool(asks.value)

    def read_next_event(self) -> float:
        """Return when an event or a jump of a signal inside comes next, in s; infinity where the FMU does not say."""
        return min(super().read_next_event(), self._following)

    # -- equations ------------------------------------------------------------------------------------------

    def put(self, time: float, states: Floats) -> None:
        """Bring the FMU to a time in s and states."""
        self._check(f"{self.dialect.prefix}SetTime", self._set_time(self.component, time))
        if self._straight is not None:
            self._check("setting inputs", self._straight.set_after(time - self.time))
        if len(self._x):
            self._x[:] = states
            self._set_states()

    def rates(self, time: float, states: Floats) -> Floats:
        """Return derivatives of the states in 1/s."""
        if not len(self._x):
            return np.zeros(1)
        self.put(time, states)
        return self.rates_here()

    def rates_here(self) -> Floats:
        """Return derivatives of the states in 1/s where it was brought; raises `Refused` where they are not finite."""
        self._get_rates()
        finite = np.isfinite(self._rates)
        if not finite.all():
            raise Refused(f"the derivative of {self.states[int(np.argmin(finite))]} is not finite")
        return self._rates.copy()

    def indicators(self, time: float, states: Floats) -> Floats:
        """Return event indicators, shape (indicators,)."""
        if len(self._z):
            self.put(time, states)
        return self.indicators_here()

    def indicators_here(self) -> Floats:
        """Return event indicators where it was brought, shape (indicators,)."""
        self._get_indicators()
        return self._z

    def jacobian(self) -> Callable[[float, Floats], Floats] | None:
        """Return the function of ∂ẋ/∂x; None for differences."""
        if self._by_differences or not len(self._x):
            return None
        return self._directional

    def _directional(self, time: float, states: Floats) -> Floats:
        self.put(time, states)
        try:
            return self.directional_derivative(self.derivatives, self.states)
        except FmuError as error:
            if error.fatal:
                raise
            self._by_differences = True
            logger.info("%s; the derivatives of %s are found by differences", error, self.name)
            return self.differences(time, states)

    def differences(self, time: float, states: Floats) -> Floats:
        """Return the same by differences, for the rest of a step that was begun with derivatives of the FMU."""
        at, result = self.rates(time, states), np.zeros((len(states), len(states)))
        for column, scale in enumerate(self.tolerances):
            moved = states.copy()
            moved[column] += 1e-8 * max(scale, abs(states[column]))
            result[:, column] = (self.rates(time, moved) - at) / (moved[column] - states[column])
        return result

    @property
    def current_states(self) -> Floats:
        """Values of the states where it is, shape (states,)."""
        self._get_states()
        return self._x.copy()

    @property
    def current_time(self) -> float:
        """Where its states are, in s."""
        return max(self._now, self.time)

    # -- states ---------------------------------------------------------------------------------------------

    def _memory(self) -> bytes:
        """Return the data of the integrator for saved states."""
        kept = _KEPT.pack(self._now, self._following, self.integrator.length, self.events, self._follows_event)
        return kept + self.tolerances.tobytes() + self._before.tobytes()

    def _remember(self, memory: bytes) -> None:
        self._now, self._following, self.integrator.length, self.events, after = _KEPT.unpack_from(memory)
        self._over, self._follows_event = False, bool(after)
        begin = _KEPT.size
        for array in (self.tolerances, self._before):
            array[:] = np.frombuffer(memory, count=len(array), offset=begin)
            begin += array.nbytes


class Fmi2Model(ModelExchangeInstance, Fmi2Library):
    """An instance of an FMU of FMI 2.0 for model exchange.

    Parameters
    ----------
    name, archive, solver
        As for `ModelExchangeInstance`.
    """

    dialect = replace(Fmi2Library.dialect, get_rates=None, set_rates=None)
    get_rates_name = "fmi2GetDerivatives"

    def __init__(self, name: str, archive: Archive, solver: str) -> None:
        super().__init__(name, archive, fmi2.FMU2Model, solver)
        self.completes = not archive.interface.completedIntegratorStepNotNeeded
        self._new_states = self.function("fmi2NewDiscreteStates", (c_void_p, c_void_p))

    @property
    def _sizes(self) -> tuple[int, int]:
        """Number of states and of event indicators."""
        return len(self._description.derivatives), int(self._description.numberOfEventIndicators or 0)

    def _update(self) -> Update:
        event_info = fmi2.fmi2EventInfo()
        self._check("fmi2NewDiscreteStates", self._new_states(self.component, byref(event_info)))
        return Update(
            bool(event_info.newDiscreteStatesNeeded),
            bool(event_info.terminateSimulation),
            bool(event_info.nominalsOfContinuousStatesChanged),
            next_event(bool(event_info.nextEventTimeDefined), event_info.nextEventTime),
        )


class Fmi3Model(ModelExchangeInstance, Fmi3Library):
    """An instance of an FMU of FMI 3.0 for model exchange.

    Parameters
    ----------
    name, archive, solver
        As for `ModelExchangeInstance`.
    """

    dialect = replace(Fmi3Library.dialect, get_rates=None)
    get_rates_name = "fmi3GetContinuousStateDerivatives"

    def __init__(self, name: str, archive: Archive, solver: str) -> None:
        super().__init__(name, archive, fmi3.FMU3Model, solver)
        self._callback = self._logger()
        environment = None
        self._make("fmi3InstantiateModelExchange", environment, self._callback)
        self._configure()
        self.completes = bool(archive.interface.needsCompletedIntegratorStep)

    @property
    def _sizes(self) -> tuple[int, int]:
        """Number of states and of event indicators."""
        return self._slave.getNumberOfContinuousStates(), self._slave.getNumberOfEventIndicators()

    def _update(self) -> Update:
        return self._update_discrete_states()
