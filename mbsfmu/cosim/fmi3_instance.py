"""A loaded unit of FMI 3.0 for co-simulation, over FMPy."""

from __future__ import annotations

import logging
import math
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_bool, c_double, c_size_t, c_uint32, c_void_p, pointer
from typing import Any
from weakref import ref

import numpy as np
from fmpy import fmi3
from numpy.typing import NDArray

from mbsfmu.cosim.archive import Archive
from mbsfmu.cosim.compiled.layout import Group, MakeStep, Report
from mbsfmu.cosim.elements import Element
from mbsfmu.cosim.fmi3_inputs import InputsWithin
from mbsfmu.cosim.instance import Calls, Floats, UnitError
from mbsfmu.cosim.library_instance import WARNING, LibraryInstance
from mbsfmu.cosim.library_port import Dialect, LibraryPort, address_of
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.times import tolerance

logger = logging.getLogger(__name__)

_MOST_ITERATIONS = 1000
_TIME = struct.Struct("<d")
"""Event iterations at one instant, and returns from one step without getting on, after which a unit is at fault."""
_BITS = (8, 16, 32, 64)


class Fmi3Instance(LibraryInstance):
    """An instance of a unit of FMI 3.0.

    Events are handled as the standard says where the unit has event mode: it may come back from a step before its end,
    is not asked to go beyond its next event, and has discrete inputs set where they change [FMI 3.0.2, section 4.2.1].
    It then goes on to the end of the step by itself. Inputs run straight over its steps where it asks for all of the
    continuous ones inside of them (intermediate update), and are held elsewhere.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.

    Raises
    ------
    InputError
        When it has input clocks, which somebody would have to tick.
    """

    dialect = Dialect(
        "fmi3",
        (
            (("Float64",), "Float64", np.float64),
            (("Float32",), "Float32", np.float32),
            *(((f"Int{bits}",), f"Int{bits}", getattr(np, f"int{bits}")) for bits in _BITS[:3]),
            (("Int64", "Enumeration"), "Int64", np.int64),
            *(((f"UInt{bits}",), f"UInt{bits}", getattr(np, f"uint{bits}")) for bits in _BITS),
            (("Boolean",), "Boolean", np.bool_),
        ),
        counts=True,
        get_rates="fmi3GetOutputDerivatives",
        set_rates=None,
        get_state="fmi3GetFMUState",
        set_state="fmi3SetFMUState",
    )

    def __init__(self, name: str, archive: Archive) -> None:
        super().__init__(name, archive, fmi3.FMU3Slave)
        clocks = [each for each in self._description.modelVariables if each.type == "Clock"]
        ticked = [each.name for each in clocks if each.causality == "input"]
        if ticked:
            raise InputError(f"{archive.path} has the input clock {ticked[0]}; units with such are not supported")
        self.has_events = bool(archive.interface.hasEventMode)
        self.report = Report(next_event=math.inf)
        self._within = InputsWithin(archive, self.clock, self.report)
        self.interpolates = bool(self._within.references)
        self._next_events: dict[str, float] = {}
        self._texts: dict[str, str] = {}
        self._callbacks = self._logger(), self._within.callback
        try:
            self._make()
        except SimulationError:
            if not self.has_events:
                raise
            logger.warning("%s says that it has event mode, but gives no instance with it; it runs without", name)
            self.has_events = False
            self._make()
        self._do_step = self.function("fmi3DoStep", (c_void_p, c_double, c_double, c_bool, *[c_void_p] * 4))
        told = (Report.event, Report.ends, Report.early, Report.reached)
        self._outcome = tuple(byref(self.report, each.offset) for each in told)
        self._get_state = self.function(self.dialect.get_state, (c_void_p, c_void_p))
        self._set_state = self.function(self.dialect.set_state, (c_void_p, c_void_p))
        self._experiment: tuple[float | None, float, float] = (None, 0.0, 0.0)

    def _logger(self) -> Any:
        itself = ref(self)

        def log(_: int | None, status: int, category: bytes | None, message: bytes | None) -> None:
            instance = itself()
            if instance is not None:
                instance.log(status, (category or b"").decode(), (message or b"").decode(errors="replace"))

        return fmi3.fmi3LogMessageCallback(log)

    def _make(self) -> None:
        """Make the instance."""
        required = (c_uint32 * len(self._within.references))(*self._within.references)
        self._slave.component = self._slave.fmi3InstantiateCoSimulation(
            self.name.encode(), (self._slave.guid or "").encode(),
            os.path.join(self._slave.unzipDirectory, "resources", "").encode(),
            False, True, self.has_events, True, required, len(required), self._within.environment, *self._callbacks,
        )  # fmt: skip
        if not self._slave.component:
            raise SimulationError(f"{self.name} cannot be instantiated: {self._reason('no reason given')}")

    def follow(self, port: LibraryPort, group: Group, buffer: NDArray[Any]) -> None:
        """Let inputs run straight, by the values and slopes of a port, where the unit asks for them within steps."""
        set_values = self.function("fmi3SetFloat64", (c_void_p, c_void_p, c_size_t, c_void_p, c_size_t))
        self._within.follow(self.component, port, group, buffer, set_values)

    # -- life cycle -----------------------------------------------------------------------------------------

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance of the unit's own solver is what it suggests by default."""
        self.time = start
        self._experiment = self._tolerance(tolerance), start, stop

    def enter_initialization(self) -> None:
        """Enter initialization mode."""
        self._call("enterInitializationMode", *self._experiment)

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
        UnitError
            When the unit refuses; the message has instance, time and reason.
        UnitEnded
            When the unit ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        clock = self.clock
        clock.time = time
        clock.steps += 1
        self._go_on(time, time, time + step, step)

    def step_function(self, calls: Calls) -> MakeStep | None:
        """Return what makes a step, for compiled code to call, which says that it will not go back."""
        if self._saved:
            return None
        return MakeStep(None, address_of(self._do_step), calls.number(self, "fmi3DoStep"), pointer(self.report))

    def stepped(self, step: float, status: int) -> None:
        """Look at what a step in s has led to that compiled code made, and go on from there to its end.

        Raises
        ------
        UnitError
            When the unit refuses; the message has instance, time and reason.
        UnitEnded
            When the unit ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        end = self.time + step
        now = self._arrive(end, status) if self.report.asked else self.time
        self._go_on(self.time, now, end, step)

    def _go_on(self, begin: float, now: float, end: float, step: float) -> None:
        """Go from a time in s inside a step to its end, and handle what happens on the way."""
        same = tolerance(step, begin, end)
        before, stays = -math.inf, 0
        while not self.report.ends and (now < end - same or self.report.event or self.report.next_event <= now):
            if self.report.event or self.report.next_event <= now:
                with self.event():
                    self.report.event = False
            else:
                goal = self._goal(now, end, same)
                length = step if (now, goal) == (begin, end) else goal - now
                status = self._do_step(self.component, now, length, self._earliest >= now, *self._outcome)
                now = self._arrive(goal, status)
            before, stays = now, stays + 1 if now <= before else 0
            if stays > _MOST_ITERATIONS:
                raise SimulationError(f"{self.name} returns from its steps at t = {now:.9g} s again and again")
        if self.report.ends:
            self.report.ends = False
            self._end(now, end, step)

    def _goal(self, now: float, end: float, same: float) -> float:
        """Return how far a unit may be asked to go: to its next event, unless it must be asked for equal steps."""
        following = self.report.next_event
        return following if self.takes_any_step and now < following < end - same else end

    def _arrive(self, goal: float, status: int) -> float:
        """Return the time in s that a step has led to which was to go to another one.

        Raises
        ------
        UnitError
            When the unit refuses.
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
            raise UnitError(
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
        """Iterate until the discrete states are settled, and go back to steps."""
        flags = [c_bool(False) for _ in range(5)]
        needs_update, ends, _, _, defined = flags
        following = c_double(math.inf)
        for _ in range(_MOST_ITERATIONS):
            self._call("fmi3UpdateDiscreteStates", self.component, *(byref(each) for each in flags), byref(following))
            if not needs_update.value:
                break
        else:
            raise SimulationError(
                f"{self.name} at t = {self.time:.9g} s: events do not settle in {_MOST_ITERATIONS} iterations"
            )
        self.report.next_event = following.value if defined.value else math.inf
        self._call("enterStepMode")
        if ends.value:
            self.report.ends = True

    def read_next_event(self) -> float:
        """Return when an event or a jump of a signal inside comes next, in s; infinity where the unit does not say."""
        return min(super().read_next_event(), self.report.next_event)

    # -- states ---------------------------------------------------------------------------------------------

    def save(self, slot: str, time: float) -> None:
        """Keep the state, and when the next event comes."""
        super().save(slot, time)
        self._next_events[slot] = self.report.next_event

    def restore(self, slot: str) -> None:
        """Go back to the state; what was set since counts no more."""
        super().restore(slot)
        self.report.next_event = self._next_events.get(slot, math.inf)
        self.report.event = self.report.ends = False
        self.sent.clear()
        self._texts.clear()

    def serialize(self) -> bytes:
        """Return the state for another process, and when the next event comes."""
        return _TIME.pack(self.report.next_event) + super().serialize()

    def deserialize(self, state: bytes) -> None:
        """Take a state of another process."""
        following = _TIME.unpack_from(state)[0]
        super().deserialize(state[_TIME.size :])
        self.report.next_event = following

    def _free_state(self, state: Any) -> None:
        self._slave.fmi3FreeFMUState(self.component, byref(state))

    # -- values ---------------------------------------------------------------------------------------------

    def sets_at_events(self, name: str) -> bool:
        """Tell whether a variable is set in event mode: discrete inputs are, where there is one."""
        described = self.element(name).described
        return self.has_events and described.causality == "input" and described.variability == "discrete"

    def _set(self, element: Element, value: float | int | bool | str) -> None:
        described = element.described
        kind = "Int64" if described.type == "Enumeration" else described.type
        values = self._get(described, element.size) if element.size > 1 else [value]
        values[element.place] = value
        if kind == "String":
            if self.is_stepping and self._texts.get(element.name) == value:
                return
            self._texts[element.name] = str(value)
            self._set_typed(element, lambda: self._call("setString", [described.valueReference], values))
        else:
            self._set_typed(element, lambda: self._call(f"set{kind}", [described.valueReference], values))

    def _set_typed(self, element: Element, send: Callable[[], None]) -> None:
        """Set a variable in the mode that it is set in."""
        if self.is_stepping and self.sets_at_events(element.name):
            with self.event():
                send()
        else:
            send()

    def _get(self, described: Any, size: int) -> list[Any]:
        kind = "Int64" if described.type == "Enumeration" else described.type
        return self._call(f"get{kind}", [described.valueReference], size)

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        element = self.element(name)
        return self._get(element.described, element.size)[element.place]

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return the derivatives of unknowns by knowns, shape (number of unknowns, number of knowns).

        Raises
        ------
        UnitError
            When the unit refuses.
        """
        elements = [self.element(name) for name in unknowns]
        sizes = {each.described.valueReference: each.size for each in elements}
        begins = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
        rows = [begins[each.described.valueReference] + each.place for each in elements]
        references = (c_uint32 * len(sizes))(*sizes)
        count = sum(sizes.values())
        sensitivity = (c_double * count)()
        result = np.zeros((len(unknowns), len(knowns)))
        for column, name in enumerate(knowns):
            known = self.element(name)
            seed = (c_double * known.size)()
            seed[known.place] = 1.0
            reference = (c_uint32 * 1)(known.described.valueReference)
            self._call(
                "fmi3GetDirectionalDerivative", self.component, references, len(sizes), reference, 1,
                seed, c_size_t(known.size), sensitivity, c_size_t(count),
            )  # fmt: skip
            result[:, column] = np.array(sensitivity)[rows]
        return result
