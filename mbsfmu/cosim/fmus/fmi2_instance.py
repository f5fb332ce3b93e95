"""A loaded FMU of FMI 2.0 for co-simulation, over FMPy."""

from __future__ import annotations

from ctypes import c_int, c_void_p

from fmpy import fmi2

from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmi2_library import Fmi2Library
from mbsfmu.cosim.fmus.library_instance import DISCARD
from mbsfmu.cosim.fmus.plain_steps import PlainSteps

_TERMINATED = 3  # of fmi2StatusKind


class Fmi2Instance(PlainSteps, Fmi2Library):
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
        self._boolean_status = self.function("fmi2GetBooleanStatus", (c_void_p, c_int, c_void_p))

    # -- life cycle -----------------------------------------------------------------------------------------

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._call("exitInitializationMode")
        self.is_stepping = True

    def _step_flag(self, time: float) -> bool:
        """Return whether the unit may not be brought back to before the beginning of a step.

        It may (`noSetFMUStatePriorToCurrentPoint`) inside a longer step alone that may be made again [FMI 2.0.4,
        section 4.2.2]. There are FMUs that stand still where they are told so.
        """
        return self._earliest >= time

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
        reached = self._reached()
        if not self._step_report(self._boolean_status, _TERMINATED, c_int(0)):
            self._discarded("fmi2DoStep", reached)
        self._messages.clear()
        self._end(reached, self.time + step, step)
