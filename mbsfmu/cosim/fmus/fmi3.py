"""Loaded FMUs of FMI 3.0 for co-simulation, over FMPy, with inputs set inside of steps."""

from __future__ import annotations

import logging
import math
import os
import struct
from abc import ABC
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import addressof, byref, c_bool, c_double, c_size_t, c_uint32, c_void_p, pointer
from typing import Any
from weakref import ref

import numpy as np
from fmpy import fmi3
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import NEIGHBOURS, RESOLVED_STEP, resolution, tolerance
from mbsfmu.cosim.compiled.library import Clock, MakeStep, Ramp, Report, VariableBlock, pointer_to, setting_function
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmu_instance import (
    MOST_ITERATIONS,
    Floats,
    FmuCalls,
    FmuError,
    Update,
    gets_nowhere,
    iterate_events,
    next_event,
)
from mbsfmu.cosim.fmus.library_instance import WARNING, Dialect, LibraryInstance, LibraryPort, address_of
from mbsfmu.cosim.fmus.linear_inputs import LinearInputs
from mbsfmu.cosim.fmus.variable_descriptions import ArrayElement, kind_of

_BITS = (8, 16, 32, 64)


class Fmi3Library(LibraryInstance, ABC):
    """An FMU of FMI 3.0 for any interface.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    slave
        FMPy's class for it.

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
        truth=c_bool,
    )

    def __init__(self, name: str, archive: Archive, slave: Callable[..., Any]) -> None:
        super().__init__(name, archive, slave)
        clocks = [each for each in self._description.modelVariables if each.type == "Clock"]
        ticked = [each.name for each in clocks if each.causality == "input"]
        if ticked:
            raise InputError(
                f"{archive.called} has the input clock {ticked[0]}; FMUs with input clocks are not supported"
            )
        self._experiment: tuple[float | None, float, float] = (None, 0.0, 0.0)

    def _make(self, function: str, *arguments: Any) -> None:
        """Return an instance from an FMI function with additional arguments.

        Raises
        ------
        SimulationError
            When the FMU gives none.
        """
        resources = os.path.join(self._slave.unzipDirectory, "resources", "")
        names = self.name, self._slave.guid or "", resources
        visible, logs = False, True
        component = getattr(self._slave, function)(*(each.encode() for each in names), visible, logs, *arguments)
        if not component:
            raise SimulationError(f"{self.name} cannot be instantiated: {self._reason('no reason given')}")
        self._slave.component = component

    def _logger(self) -> Any:
        itself = ref(self)

        def log(_: int | None, status: int, category: bytes | None, message: bytes | None) -> None:
            instance = itself()
            if instance is not None:
                instance.log(
                    status, (category or b"").decode(errors="replace"), (message or b"").decode(errors="replace")
                )

        return fmi3.fmi3LogMessageCallback(log)

    def _configure(self) -> None:
        """Set structural parameters in configuration mode [FMI 3.0.2, section 2.3.3].

        Raises
        ------
        FmuError
            When the FMU refuses; the instance is freed.
        """
        if not self.configured:
            return
        try:
            self._call("enterConfigurationMode")
            for name, value in self.configured.items():
                self._set(self.element(name), value)
            self._call("exitConfigurationMode")
        except FmuError as error:
            self.close()
            values = " and ".join(f"{name} = {value}" for name, value in self.configured.items())
            raise FmuError(f"{error}; {values} was to be set in configuration mode", error.fatal) from None

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance of the FMU's own solver is what it suggests by default."""
        self.time = start
        self._experiment = self.own_tolerance(tolerance), start, stop

    def enter_initialization(self) -> None:
        """Enter initialization mode."""
        self._call("enterInitializationMode", *self._experiment)

    def _update_discrete_states(self) -> Update:
        """Update the discrete states once."""
        flags = [c_bool(False) for _ in range(5)]
        following = c_double(np.inf)
        self._call("fmi3UpdateDiscreteStates", self.component, *(byref(each) for each in flags), byref(following))
        again, ends, nominals, _, defined = (each.value for each in flags)
        return Update(again, ends, nominals, next_event(defined, following.value))

    def _free_state(self, state: Any) -> None:
        self._slave.fmi3FreeFMUState(self.component, byref(state))

    # -- values ---------------------------------------------------------------------------------------------

    def _set(self, element: ArrayElement, value: float | int | bool | str | bytes) -> None:
        described = element.described
        kind = "Int64" if described.type == "Enumeration" else described.type
        values = self._get(described, element.size) if element.size > 1 else [value]
        values[element.place] = value
        self._call(f"set{kind}", [described.valueReference], values)

    def _get(self, described: Any, size: int) -> list[Any]:
        kind = "Int64" if described.type == "Enumeration" else described.type
        return self._call(f"get{kind}", [described.valueReference], size)

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        element = self.element(name)
        try:
            return self._get(element.described, element.size)[element.place]
        except UnicodeDecodeError as error:  # FMPy decodes it
            return self.decoded(name, error.object)

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return the derivatives of unknowns by knowns, shape (number of unknowns, number of knowns).

        Raises
        ------
        FmuError
            When the FMU refuses.
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


class InputsWithin:
    """Continuous inputs that are linear over a step, set by intermediate update.

    Parameters
    ----------
    archive
        The unpacked FMU.
    clock, report
        Where the FMU is, and what is told of its step.

    Attributes
    ----------
    references
        Of the inputs; none unless the FMU asks for all continuous ones.
    callback
        What the FMU calls; NULL where it asks for nothing.
    """

    def __init__(self, archive: Archive, clock: Clock, report: Report) -> None:
        self.references = _intermediate_inputs(archive)
        self._clock, self._report = clock, report
        self._ramp = Ramp(clock=pointer(clock), report=pointer(report))
        self._straight: LinearInputs | None = None
        self.callback = self._made_callback()

    @property
    def environment(self) -> int:
        """Callback environment of the FMU."""
        return addressof(self._ramp)

    def _made_callback(self) -> Any:
        if not self.references:
            return fmi3.fmi3IntermediateUpdateCallback()
        address, itself = setting_function(), ref(self)
        if address is not None:
            return fmi3.fmi3IntermediateUpdateCallback(address)

        def set_within(_: Any, time: float, requested: bool, *others: Any) -> None:
            early = others[3]
            early[0] = False
            inputs = itself()
            if requested and inputs is not None:
                inputs.set_at(time)

        return fmi3.fmi3IntermediateUpdateCallback(set_within)

    def follow(self, port: LibraryPort, group: VariableBlock, buffer: NDArray[Any]) -> None:
        """Use values and slopes of a port for the inputs from now on.

        Parameters
        ----------
        port, group, buffer
            The port, its variables as compiled code sees them, and their buffer.
        """
        if self._straight is None or self._straight.port is not port:
            self._straight = LinearInputs(port, group, len(buffer))
        self._straight.take(buffer)
        self._ramp.group = self._straight.group
        self._ramp.values = pointer_to(port.values)
        self._ramp.slopes = pointer_to(port.slopes)
        self._ramp.component = port.unit.component

    def set_at(self, time: float) -> None:
        """Set inputs to a time in s inside of a step, as compiled code does."""
        if self._straight is None:
            return
        status = self._straight.set_after(time - self._clock.time)
        if status > 1:
            self._report.trouble = status


def _intermediate_inputs(archive: Archive) -> tuple[int, ...]:
    """Return references of the inputs that are set inside of steps; none unless all continuous ones can be."""
    if not archive.interface.providesIntermediateUpdate:
        return ()
    variables = archive.description.modelVariables
    inputs = [each for each in variables if each.causality == "input" and each.variability == "continuous"]
    able = all(each.type == "Float64" and each.valueReference in archive.intermediate for each in inputs)
    return tuple(dict.fromkeys(each.valueReference for each in inputs)) if able else ()


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
