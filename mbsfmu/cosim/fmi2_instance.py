"""A loaded unit of FMI 2.0 for co-simulation, over FMPy."""

from __future__ import annotations

import itertools
import logging
import math
import os
from collections.abc import Callable, Sequence
from ctypes import byref, c_double, c_int, c_void_p
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np
from fmpy import fmi2
from fmpy.fmi1 import FMICallException
from fmpy.logging import addLoggerProxy

from mbsfmu.cosim.archive import Archive
from mbsfmu.cosim.compiled.layout import MakeStep
from mbsfmu.cosim.described import (
    ALLOWED,
    described_dependencies,
    described_units,
    described_variable,
    typed_value,
    unit_name,
)
from mbsfmu.cosim.fmi2_port import Fmi2Port, address_of
from mbsfmu.cosim.instance import Calls, Floats, Instance, UnitEnded
from mbsfmu.data import meant
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.times import tolerance

logger = logging.getLogger(__name__)

_STATUS = {1: "warning", 2: "discard", 3: "error", 4: "fatal", 5: "pending"}
_LAST_SUCCESSFUL_TIME, _TERMINATED = 2, 3  # of fmi2StatusKind
_NEXT_EVENT = "next_event"
"""Name of the Real variable, in s, that tells when a signal of a unit's own jumps or bends next."""


# FMPy's proxy of the logger has one target per process, the last that was added: messages are told apart by the
# environment that each instance hands to its unit, for names may occur twice.
_instances: WeakValueDictionary[int, Fmi2Instance] = WeakValueDictionary()
_environments = itertools.count(1)


def _log(environment: int | None, _: bytes, status: int, category: bytes | None, message: bytes | None) -> None:
    instance = _instances.get(environment or 0)
    if instance is not None:
        instance.log(status, (category or b"").decode(), (message or b"").decode(errors="replace"))


_LOGGER = fmi2.fmi2CallbackLoggerTYPE(_log)


class Fmi2Instance(Instance):
    """An instance of a unit of FMI 2.0.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    """

    def __init__(self, name: str, archive: Archive) -> None:
        super().__init__(name)
        self._running = False
        self._states: dict[str, Any] = {}
        self._description = archive.description
        self._by_name = {each.name: each for each in self._description.modelVariables}
        self.kinds = {each.name: each.type for each in self._description.modelVariables}
        self.variables = {each.name: described_variable(each) for each in self._description.modelVariables}
        self.units = described_units(self._description)
        self.dependencies = described_dependencies(self._description.outputs)
        self.initial_dependencies = described_dependencies(self._description.initialUnknowns)
        self.default_experiment = _default_experiment(self._description)
        self._next_event = _NEXT_EVENT if self._tells_next_event() else None
        co_simulation = self._description.coSimulation
        if co_simulation is None:
            raise InputError(f"{name} is no co-simulation unit")
        self.interpolates = bool(co_simulation.canInterpolateInputs)
        self.gives_rates = int(co_simulation.maxOutputDerivativeOrder or 0) >= 1
        self.saves_state = bool(co_simulation.canGetAndSetFMUstate)
        self.gives_directional_derivatives = bool(co_simulation.providesDirectionalDerivative)
        self.takes_any_step = bool(co_simulation.canHandleVariableCommunicationStepSize)
        self._callbacks = fmi2.fmi2CallbackFunctions()
        self._callbacks.logger = _LOGGER
        self._callbacks.allocateMemory = fmi2.defaultCallbacks.allocateMemory
        self._callbacks.freeMemory = fmi2.defaultCallbacks.freeMemory
        addLoggerProxy(byref(self._callbacks))
        self._callbacks.componentEnvironment = environment = next(_environments)
        _instances[environment] = self
        self._slave = _loaded(archive, name)
        try:
            self._slave.instantiate(callbacks=self._callbacks, loggingOn=True)
        except Exception as error:  # FMPy raises a bare exception when the FMU gives no instance
            raise SimulationError(f"{name} cannot be instantiated: {self._reason(str(error))}") from None
        self._address = self.component
        self._do_step = self.function("fmi2DoStep", (c_void_p, c_double, c_double, c_int))
        self._boolean_status = self.function("fmi2GetBooleanStatus", (c_void_p, c_int, c_void_p))
        self._real_status = self.function("fmi2GetRealStatus", (c_void_p, c_int, c_void_p))
        self._get_state = self.function("fmi2GetFMUstate", (c_void_p, c_void_p))
        self._set_state = self.function("fmi2SetFMUstate", (c_void_p, c_void_p))

    def _call(self, function: str, *arguments: Any) -> Any:
        self._messages.clear()
        try:
            return getattr(self._slave, function)(*arguments)
        except FMICallException as error:
            self.fail(error.function, error.status)

    def fail(self, function: str, status: int) -> NoReturn:
        """Raise what a function of the FMI that went wrong means.

        Raises
        ------
        UnitError
            Always; the message has instance, time, function and the unit's own reason.
        """
        self._failed(function, _STATUS.get(status, str(status)), fatal=status == fmi2.fmi2Fatal)

    # -- functions of the FMI as they are -------------------------------------------------------------------

    @property
    def component(self) -> Any:
        """Address of the component, for functions of the FMI."""
        return self._slave.component

    def function(self, name: str, argument_types: Sequence[Any]) -> Callable[..., int]:
        """Return a function of the FMU's library; it gives the status and raises nothing."""
        function = self._slave.dll[name]
        function.argtypes, function.restype = argument_types, c_int
        return function

    def reference(self, name: str) -> int:
        """Return the value reference of a variable."""
        return self._by_name[name].valueReference

    # -- life cycle -----------------------------------------------------------------------------------------

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance of the unit's own solver is what it suggests by default."""
        self.time = start
        experiment = self._description.defaultExperiment
        if tolerance is None and experiment is not None and experiment.tolerance:
            tolerance = float(experiment.tolerance)
        self._call("setupExperiment", tolerance, start, stop)

    def enter_initialization(self) -> None:
        """Enter initialization mode."""
        self._call("enterInitializationMode")

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._call("exitInitializationMode")
        self._running = True

    def step(self, time: float, step: float) -> None:
        """Make a step in s.

        The unit is told whether it may still be brought back to before the beginning of the step
        (`noSetFMUStatePriorToCurrentPoint`): only inside a longer step that may be made again [FMI 2.0.4, section
        4.2.2]. There are units that stand still where they are told so.

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
        status = self._do_step(self._address, time, step, self._earliest >= time)
        if status > 1:
            self.stepped(step, status)

    def step_function(self, calls: Calls) -> MakeStep | None:
        """Return what makes a step, for compiled code to call, which says that it will not go back."""
        if self._saved:
            return None
        return MakeStep(address_of(self._do_step), calls.number(self, "fmi2DoStep"))

    def stepped(self, step: float, status: int) -> None:
        """Look at what a step in s has led to whose status is worse than a warning.

        Raises
        ------
        UnitError
            When the unit refuses; the message has instance, time and reason.
        UnitEnded
            When the unit ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        if status != fmi2.fmi2Discard or not self._wants_to_end():
            self.fail("fmi2DoStep", status)
        self._end(self.time, step)

    def _wants_to_end(self) -> bool:
        """Tell whether a step was discarded because the unit ends the run; what it said of the step stays."""
        self._forget_earlier_steps()
        messages, answer = list(self._messages), c_int(0)
        status = self._boolean_status(self._address, _TERMINATED, byref(answer))
        self._messages.clear()
        self._messages.extend(messages)
        return status == fmi2.fmi2OK and bool(answer.value)

    def _end(self, time: float, step: float) -> None:
        """Take down that the unit ended the run, and where in a step in s."""
        reached = c_double(time)
        if self._real_status(self._address, _LAST_SUCCESSFUL_TIME, byref(reached)) != fmi2.fmi2OK:
            reached.value = time
        self._messages.clear()
        self.ends[self.name] = reached.value
        if reached.value < time + step - tolerance(step, time, time + step):
            raise UnitEnded(reached.value)

    def read_next_event(self) -> float:
        """Return when a signal of the unit's own jumps or bends next, in s; infinity where it does not say."""
        if self._next_event is None:
            return math.inf
        return float(self._call("getReal", [self.reference(self._next_event)])[0])

    def _tells_next_event(self) -> bool:
        described = self._by_name.get(_NEXT_EVENT)
        if described is None or described.type != "Real" or unit_name(described) != "s":
            return False
        return described.causality in ("local", "output", None)

    def close(self) -> None:
        """Free saved states, terminate and free the instance; after a fatal error the standard forbids all three."""
        if self._fatal:
            return
        for state in self._states.values():
            self._slave.freeFMUstate(state)
        try:
            if self._running:
                self._slave.terminate()
        except FMICallException:
            logger.debug("%s does not terminate after an error", self.name)
        self._slave.freeInstance()

    # -- states ---------------------------------------------------------------------------------------------

    def save(self, slot: str, time: float) -> None:
        """Keep the state at a time in s under a name; what was kept under it is replaced.

        Raises
        ------
        UnitError
            When the unit cannot save its state.
        """
        if slot not in self._states:
            self._states[slot] = fmi2.fmi2FMUstate()
        status = self._get_state(self._address, byref(self._states[slot]))
        if status > 1:
            self.fail("fmi2GetFMUstate", status)
        self._keeps(slot, time)

    def restore(self, slot: str) -> None:
        """Go back to the state that was kept under a name.

        Raises
        ------
        UnitError
            When the unit refuses.
        """
        status = self._set_state(self._address, self._states[slot])
        if status > 1:
            self.fail("fmi2SetFMUstate", status)
        self.ends.pop(self.name, None)

    # -- values ---------------------------------------------------------------------------------------------

    def port(self, names: Sequence[str], values: Floats | None = None) -> Fmi2Port:
        """Return what reads and writes numeric variables; `values` is where they stand."""
        return Fmi2Port(self, names, values)

    def set_start(self, name: str, value: Any) -> None:
        """Set a parameter, start value or String input, by the type of the variable.

        Raises
        ------
        InputError
            When there is no such variable, or the value is none of its type.
        """
        if name not in self._by_name:
            raise InputError(f"{self.name} has no variable '{name}'; {meant(name, self._by_name)}")
        described = self._by_name[name]
        try:
            typed = typed_value(described, value)
        except ValueError:
            raise InputError(f"{self.name}.{name} is {value!r}; it must be {ALLOWED[described.type]}") from None
        function = "Integer" if described.type == "Enumeration" else described.type
        self._call(f"set{function}", [described.valueReference], [typed])

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        return self._call("getString", [self._by_name[name].valueReference])[0].decode()

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return the derivatives of unknowns by knowns, shape (number of unknowns, number of knowns).

        Raises
        ------
        UnitError
            When the unit refuses.
        """
        references = [[self.reference(name) for name in names] for names in (unknowns, knowns)]
        columns = [self._call("getDirectionalDerivative", references[0], [known], [1.0]) for known in references[1]]
        return np.array(columns, dtype=float).reshape(len(knowns), len(unknowns)).T


def _loaded(archive: Archive, instance: str) -> fmi2.FMU2Slave:
    """Load the library of an FMU, for an instance of a name.

    Raises
    ------
    InputError
        When it, or one that it needs, cannot be loaded, or a function of FMI 2.0 is missing.
    """
    description, here = archive.description, Path.cwd()
    assert description.coSimulation is not None
    identifier = description.coSimulation.modelIdentifier
    try:
        return fmi2.FMU2Slave(
            guid=description.guid,
            unzipDirectory=archive.folder,
            modelIdentifier=identifier,
            instanceName=instance,
        )
    except Exception as error:  # FMPy raises bare exceptions here
        reason = str(error).replace(f"{archive.folder}{os.sep}", "").strip()
        raise InputError(f"{archive.path}: the library {identifier} cannot be used: {reason}") from None
    finally:
        os.chdir(here)  # FMPy stays where the library is when it cannot be loaded


def _default_experiment(description: Any) -> tuple[float | None, float | None]:
    """Return stop time and step size in s of a description that FMPy read."""
    experiment = description.defaultExperiment
    if experiment is None:
        return None, None
    stop, step = experiment.stopTime, experiment.stepSize
    return (float(stop) if stop else None), (float(step) if step else None)
