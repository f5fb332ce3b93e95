"""A loaded FMU of FMI 2.0 for co-simulation, over FMPy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes import byref, c_double, c_int, c_void_p

from fmpy import fmi2

from mbsfmu.cosim.compiled.layout import MakeStep
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmi2_library import Fmi2Library
from mbsfmu.cosim.fmus.fmu_instance import FmuCalls
from mbsfmu.cosim.fmus.library_instance import DISCARD, OK, WARNING, address_of

_LAST_SUCCESSFUL_TIME, _TERMINATED = 2, 3  # of fmi2StatusKind


class Fmi2Instance(Fmi2Library):
    """An instance of a co-simulation FMU of FMI 2.0.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    """

    def __init__(self, name: str, archive: Archive) -> None:
        super().__init__(name, archive, fmi2.FMU2Slave)
        self.interpolates = bool(archive.interface.canInterpolateInputs)
        self._address = self.component
        self._do_step = self.function("fmi2DoStep", (c_void_p, c_double, c_double, c_int))
        self._boolean_status = self.function("fmi2GetBooleanStatus", (c_void_p, c_int, c_void_p))
        self._real_status = self.function("fmi2GetRealStatus", (c_void_p, c_int, c_void_p))

    def sets_at_events(self, name: str) -> bool:
        """Return whether a variable is set in event mode, which co-simulation has from FMI 3.0 on."""
        del name
        return False

    def event(self) -> AbstractContextManager[None]:
        """Enter event mode, which co-simulation has from FMI 3.0 on."""
        raise NotImplementedError

    # -- life cycle -----------------------------------------------------------------------------------------

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._call("exitInitializationMode")
        self.is_stepping = True

    def step(self, time: float, step: float) -> None:
        """Make a step in s.

        The unit is told whether it may still be brought back to before the beginning of the step
        (`noSetFMUStatePriorToCurrentPoint`): only inside a longer step that may be made again [FMI 2.0.4, section
        4.2.2]. There are FMUs that stand still where they are told so.

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
        status = self._do_step(self._address, time, step, self._earliest >= time)
        self.restore_environment()
        if status > WARNING:
            self.stepped(step, status)

    def step_function(self, calls: FmuCalls) -> MakeStep | None:
        """Return the step function for compiled code, with the flag of no return."""
        if self._saved:
            return None
        return MakeStep(address_of(self._do_step), None, calls.number(self, "fmi2DoStep"))

    def stepped(self, step: float, status: int) -> None:
        """Handle the result of a step in s whose status is worse than a warning.

        Raises
        ------
        FmuError
            When the FMU refuses; the message has instance, time and reason.
        FmuEnded
            When the FMU ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        if status != DISCARD:
            self.fail("fmi2DoStep", status)
        reached = self._step_report(self._real_status, _LAST_SUCCESSFUL_TIME, c_double(self.time))
        if not self._step_report(self._boolean_status, _TERMINATED, c_int(0)):
            self._discarded("fmi2DoStep", reached)
        self._messages.clear()
        self._end(reached, self.time + step, step)

    def _step_report(self, function: Callable[..., int], kind: int, answer: c_double | c_int) -> float:
        """Return the FMU's information on a discarded step."""
        self._forget_earlier_steps()
        messages, otherwise = list(self._messages), answer.value
        status = function(self._address, kind, byref(answer))
        self._messages.clear()
        self._messages.extend(messages)
        return answer.value if status == OK else otherwise
