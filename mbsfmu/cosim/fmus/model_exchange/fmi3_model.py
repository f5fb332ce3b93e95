"""A loaded FMU of FMI 3.0 for model exchange, over FMPy."""

from __future__ import annotations

from dataclasses import replace

from fmpy import fmi3

from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.event_iteration import Update
from mbsfmu.cosim.fmus.fmi3_library import Fmi3Library
from mbsfmu.cosim.fmus.model_exchange.model import ModelExchangeInstance


class Fmi3Model(ModelExchangeInstance, Fmi3Library):
    """An instance of an FMU of FMI 3.0 for model exchange.

    Parameters
    ----------
    name, archive, solver
        As for `ModelExchangeInstance`.
    """

    dialect = replace(Fmi3Library.dialect, get_rates=None)
    get_rates_name = "fmi3GetContinuousStateDerivatives"

    def __init__(self, name: str, archive: Archive, solver: str) -> None:
        super().__init__(name, archive, fmi3.FMU3Model, solver)
        self._callback = self._logger()
        environment = None
        self._make("fmi3InstantiateModelExchange", environment, self._callback)
        self._configure()
        self.completes = bool(archive.interface.needsCompletedIntegratorStep)

    @property
    def _sizes(self) -> tuple[int, int]:
        """Number of states and of event indicators."""
        return self._slave.getNumberOfContinuousStates(), self._slave.getNumberOfEventIndicators()

    def _update(self) -> Update:
        return self._update_discrete_states()
