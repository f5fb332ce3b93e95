"""A loaded FMU of FMI 3.0 for co-simulation, over FMPy."""

from __future__ import annotations

import logging
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_bool, c_double, c_uint32, c_void_p, pointer
from typing import Any

from fmpy import fmi3
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.times import NEIGHBOURS, RESOLVED_STEP, resolution, tolerance
from mbsfmu.cosim.compiled.layout import MakeStep, Report, VariableBlock
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.elements import ArrayElement
from mbsfmu.cosim.fmus.event_iteration import MOST_ITERATIONS, gets_nowhere, iterate_events
from mbsfmu.cosim.fmus.fmi3_inputs import InputsWithin
from mbsfmu.cosim.fmus.fmi3_library import Fmi3Library
from mbsfmu.cosim.fmus.fmu_instance import FmuCalls, FmuError
from mbsfmu.cosim.fmus.library_instance import WARNING, LibraryPort, address_of
from mbsfmu.cosim.fmus.variable_descriptions import kind_of

logger = logging.getLogger(__name__)

_TIME = struct.Struct("<d")


class Fmi3Instance(Fmi3Library):
    """An instance of a co-simulation FMU of FMI 3.0.

    Events are handled as the standard says where the FMU has event mode: it may come back from a step before its end,
    is not asked to go beyond its next event, and has discrete inputs set where they change [FMI 3.0.2, section 4.2.1].
    It then goes on to the end of the step by itself. Inputs run straight over its steps where it asks for all of the
    continuous ones inside of them (intermediate update), and are held elsewhere.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.

    Attributes
    ----------
    intermediate
        References of the inputs that are set inside of its steps.

    Raises
    ------
    InputError
        When it has input clocks, which somebody would have to tick.
    """

    def __init__(self, name: str, archive: Archive) -> None:
        super().__init__(name, archive, fmi3.FMU3Slave)
        self.has_events = bool(archive.interface.hasEventMode)
        self.report = Report(next_event=math.inf)
        self._within = InputsWithin(archive, self.clock, self.report)
        self.interpolates = bool(self._within.references)
        self.intermediate = self._within.references
        self._texts: dict[str, str] = {}
        self._callbacks = self._logger(), self._within.callback
        try:
            self._instantiated()
        except SimulationError:
            if not self.has_events:
                raise
            logger.warning("%s says that it has event mode, but gives no instance with it; it runs without", name)
            self.has_events = False
            self._instantiated()
        self._configure()
        self._do_step = self.function("fmi3DoStep", (c_void_p, c_double, c_double, c_bool, *[c_void_p] * 4))
        event_info = (Report.event, Report.ends, Report.early, Report.reached)
        self._outcome = tuple(byref(self.report, each.offset) for each in event_info)

    def _instantiated(self) -> None:
        """Make the instance."""
        required = (c_uint32 * len(self._within.references))(*self._within.references)
        comes_back_early = True
        self._make(
            "fmi3InstantiateCoSimulation",
            *(self.has_events, comes_back_early, required, len(required), self._within.environment, *self._callbacks),
        )

    def follow(self, port: LibraryPort, group: VariableBlock, buffer: NDArray[Any]) -> None:
        """Make inputs linear by values and slopes of a port, if the FMU supports the intermediate update."""
        self._within.follow(port, group, buffer)

    # -- life cycle -----------------------------------------------------------------------------------------

    def exit_initialization(self) -> None:
        """Leave initialization mode; events at the start are handled."""
        self._call("exitInitializationMode")
        self.is_stepping = True
        if self.has_events:
            self._leave_event_mode()

    def step(self, time: float, step: float) -> None:
        """Make a step in s, event by event.

        Raises
        ------
        FmuError
            When the FMU refuses; the message has instance, time and reason.
        FmuEnded
            When the FMU ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        clock = self.clock
        clock.time = time
        clock.steps += 1
        self._go_on(time, time, time + step, step)

    def step_function(self, calls: FmuCalls) -> MakeStep | None:
        """Return the step function for compiled code, with the flag of no return."""
        return MakeStep(None, address_of(self._do_step), calls.number(self, "fmi3DoStep"), pointer(self.report))

    def stepped(self, step: float, status: int) -> None:
        """Handle the result of a step in s of compiled code, and complete the step.

        Raises
        ------
        FmuError
            When the FMU refuses; the message has instance, time and reason.
        FmuEnded
            When the FMU ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        end = self.time + step
        now = self._arrive(end, status) if self.report.asked else self.time
        self._go_on(self.time, now, end, step)

    def _go_on(self, begin: float, now: float, end: float, step: float) -> None:
        """Continue from a time in s inside a step to its end, with its events."""
        same = tolerance(step, begin, end)
        before, stays, missed = -math.inf, 0, False
        while not self.report.ends and (now < end - same or self._is_at_event(now)):
            if self._is_at_event(now):
                announced = self.report.next_event
                if missed or not (self.report.event or announced <= now):
                    self._step_past_round_off(now, end)
                with self.event():
                    self.report.event = False
                missed = self.report.next_event == announced <= now
                if begin < now < end - same:
                    self.happened = min(self.happened, now)
            else:
                goal = self._goal(now, end, same)
                length = step if (now, goal) == (begin, end) else goal - now
                status = self._do_step(self.component, now, length, self._earliest >= now, *self._outcome)
                self.restore_environment()
                now = self._arrive(goal, status)
            before, stays = now, stays + 1 if gets_nowhere(before, now, end) else 0
            if stays > MOST_ITERATIONS:
                raise SimulationError(f"{self.name} returns from its steps at t = {now:.9g} s again and again")
        if self.report.ends:
            self._end(now, end, step)

    def _is_at_event(self, now: float) -> bool:
        """Return whether an event is at a time in s, to round-off of times that add up lengths of steps."""
        return self.report.event or self.report.next_event <= now + NEIGHBOURS * resolution(now)

    def _step_past_round_off(self, now: float, end: float) -> None:
        """Step to just behind a time in s, at which an event of the FMU is still to come to it by round-off."""
        length = RESOLVED_STEP * resolution(end)
        status = self._do_step(self.component, now, length, self._earliest >= now, *self._outcome)
        self.restore_environment()
        self._arrive(now + length, status)

    def _goal(self, now: float, end: float, same: float) -> float:
        """Return the largest requested end of a step: the next event, unless steps must be equal."""
        following = self.report.next_event
        return following if self.takes_any_step and now < following < end - same else end

    def _arrive(self, goal: float, status: int) -> float:
        """Return the time in s that a step has reached.

        Raises
        ------
        FmuError
            When the FMU refuses.
        """
        trouble, self.report.trouble = self.report.trouble, 0
        if trouble:
            self.fail("fmi3SetFloat64", trouble)
        if status > WARNING:
            self.fail("fmi3DoStep", status)
        if not (self.report.early or self.report.ends):
            return goal
        reached = self.report.reached
        if not (self.time <= reached <= goal + tolerance(goal - self.time, goal)):
            raise FmuError(
                f"{self.name} at t = {self.time:.9g} s: fmi3DoStep comes back early at t = {reached:.9g} s, outside "
                "of its step",
                False,
            )
        return reached

    @contextmanager
    def event(self) -> Iterator[None]:
        """Enter event mode between two steps, and leave it at the end."""
        self._call("enterEventMode")
        yield
        self._leave_event_mode()

    def _leave_event_mode(self) -> None:
        """Iterate the discrete states to convergence, and return to step mode."""
        event_info = iterate_events(self.name, self.time, self._update_discrete_states)
        self.report.next_event = event_info.following
        self._call("enterStepMode")
        if event_info.ends:
            self.report.ends = True

    def read_next_event(self) -> float:
        """Return the next event or signal discontinuity in s; infinity if unknown."""
        return min(super().read_next_event(), self.report.next_event)

    # -- states ---------------------------------------------------------------------------------------------

    def _memory(self) -> bytes:
        """Return when the next event comes."""
        return self._memory_of(self.report.next_event)

    def _memory_of(self, next_event: float) -> bytes:
        return _TIME.pack(next_event)

    def _remember(self, memory: bytes) -> None:
        (self.report.next_event,) = _TIME.unpack(memory)
        self.report.event = self.report.ends = False
        self._texts.clear()

    # -- values ---------------------------------------------------------------------------------------------

    def sets_at_events(self, name: str) -> bool:
        """Return whether a variable is set in event mode, as discrete inputs are."""
        described = self.element(name).described
        return self.has_events and described.causality == "input" and described.variability == "discrete"

    def _set(self, element: ArrayElement, value: float | int | bool | str | bytes) -> None:
        """Set an element of a variable in the right mode; texts only if changed."""
        if kind_of(element.described) == "String":
            if self.is_stepping and self._texts.get(element.name) == value:
                return
            self._texts[element.name] = str(value)
        if self.is_stepping and self.sets_at_events(element.name):
            with self.event():
                super()._set(element, value)
        else:
            super()._set(element, value)
