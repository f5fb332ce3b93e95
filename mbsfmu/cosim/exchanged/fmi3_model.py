"""A loaded unit of FMI 3.0 for model exchange, over FMPy."""

from __future__ import annotations

import os
from ctypes import byref, c_bool, c_void_p
from dataclasses import replace

from fmpy import fmi3

from mbsfmu.cosim.archive import Archive
from mbsfmu.cosim.exchanged.model import ExchangedInstance
from mbsfmu.cosim.fmi3_library import Fmi3Library
from mbsfmu.cosim.settling import Update
from mbsfmu.errors import SimulationError


class Fmi3Model(ExchangedInstance, Fmi3Library):
    """An instance of a unit of FMI 3.0 for model exchange.

    Parameters
    ----------
    name, archive, solver
        As for `ExchangedInstance`.
    """

    dialect = replace(Fmi3Library.dialect, get_rates=None)
    get_rates_name = "fmi3GetContinuousStateDerivatives"

    def __init__(self, name: str, archive: Archive, solver: str) -> None:
        super().__init__(name, archive, fmi3.FMU3Model, solver)
        self._callback = self._logger()
        self._slave.component = self._slave.fmi3InstantiateModelExchange(
            self.name.encode(),
            (self._slave.guid or "").encode(),
            os.path.join(self._slave.unzipDirectory, "resources", "").encode(),
            False,
            True,
            None,
            self._callback,
        )
        if not self._slave.component:
            raise SimulationError(f"{self.name} cannot be instantiated: {self._reason('no reason given')}")
        self._completes = bool(archive.interface.needsCompletedIntegratorStep)
        types = (c_void_p, c_bool, c_void_p, c_void_p)
        self._complete_step = self.function("fmi3CompletedIntegratorStep", types)

    @property
    def _sizes(self) -> tuple[int, int]:
        """Number of states and of event indicators."""
        return self._slave.getNumberOfContinuousStates(), self._slave.getNumberOfEventIndicators()

    def _update(self) -> Update:
        return self._update_discrete_states()

    def _complete(self, now: float) -> tuple[bool, bool]:
        if not self._completes:
            return False, False
        asks, ends = c_bool(False), c_bool(False)
        stays = bool(self._earliest >= now)
        status = self._complete_step(self.component, stays, byref(asks), byref(ends))
        self._check("fmi3CompletedIntegratorStep", status)
        return asks.value, ends.value
