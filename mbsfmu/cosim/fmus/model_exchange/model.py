"""Model-exchange FMU with the interface of co-simulation: integration and events by the master."""

from __future__ import annotations

import logging
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_double, c_size_t, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.compiled.layout import VariableBlock
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.elements import ArrayElement
from mbsfmu.cosim.fmus.event_iteration import Update, iterate_events
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuError
from mbsfmu.cosim.fmus.library_instance import DISCARD, WARNING, LibraryInstance, LibraryPort
from mbsfmu.cosim.fmus.linear_inputs import LinearInputs
from mbsfmu.cosim.fmus.model_exchange.integrated_model import IntegratedModel
from mbsfmu.cosim.fmus.model_exchange.integrator import RELATIVE_TOLERANCE, SOLVERS, FmuIntegrator, Refused
from mbsfmu.modelling.variables import Causality, Variability

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
