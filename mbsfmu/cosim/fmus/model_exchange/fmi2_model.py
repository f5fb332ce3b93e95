"""A loaded FMU of FMI 2.0 for model exchange, over FMPy."""

from __future__ import annotations

from ctypes import byref, c_void_p
from dataclasses import replace

from fmpy import fmi2

from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.event_iteration import Update, next_event
from mbsfmu.cosim.fmus.fmi2_library import Fmi2Library
from mbsfmu.cosim.fmus.model_exchange.model import ModelExchangeInstance


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
