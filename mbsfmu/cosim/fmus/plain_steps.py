"""Steps of co-simulation FMUs by one function with a flag, as FMI 1.0 and 2.0 have them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes import byref, c_double, c_int, c_void_p
from typing import Any

from mbsfmu.cosim.compiled.layout import MakeStep
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmu_instance import FmuCalls
from mbsfmu.cosim.fmus.library_instance import OK, WARNING, LibraryInstance, address_of

_LAST_SUCCESSFUL_TIME = 2  # of the kinds of status


class PlainSteps(LibraryInstance, ABC):
    """An FMU whose steps are one call each, without events, and that says afterwards how far a discarded one came.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    slave
        FMPy's class for it.
    """

    def __init__(self, name: str, archive: Archive, slave: Callable[..., Any]) -> None:
        super().__init__(name, archive, slave)
        prefix, truth = self.dialect.prefix, self.dialect.truth
        self.interpolates = bool(archive.interface.canInterpolateInputs)
        self._do_step = self.function(f"{prefix}DoStep", (c_void_p, c_double, c_double, truth))
        self._real_status = self.function(f"{prefix}GetRealStatus", (c_void_p, c_int, c_void_p))

    def sets_at_events(self, name: str) -> bool:
        """Return whether a variable is set in event mode, which co-simulation has from FMI 3.0 on."""
        del name
        return False

    def event(self) -> AbstractContextManager[None]:
        """Enter event mode, which co-simulation has from FMI 3.0 on."""
        raise NotImplementedError

    @abstractmethod
    def _step_flag(self, time: float) -> bool:
        """Return the flag of a step from a time in s."""

    def step(self, time: float, step: float) -> None:
        """Make a step in s.

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
        status = self._do_step(self.component, time, step, self._step_flag(time))
        self.restore_environment()
        if status > WARNING:
            self.stepped(step, status)

    def step_function(self, calls: FmuCalls) -> MakeStep | None:
        """Return the step function for compiled code, with the flag of no return."""
        return MakeStep(address_of(self._do_step), None, calls.number(self, f"{self.dialect.prefix}DoStep"))

    def _reached(self) -> float:
        """Return the time in s that a discarded step came to."""
        return self._step_report(self._real_status, _LAST_SUCCESSFUL_TIME, c_double(self.time))

    def _step_report(self, function: Callable[..., int], kind: int, answer: Any) -> float:
        """Return the FMU's information on a discarded step."""
        self._forget_earlier_steps()
        messages, otherwise = list(self._messages), answer.value
        status = function(self.component, kind, byref(answer))
        self._messages.clear()
        self._messages.extend(messages)
        return float(answer.value if status == OK else otherwise)
