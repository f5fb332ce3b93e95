"""FMI 2.0 library, common to co-simulation and model exchange."""

from __future__ import annotations

import itertools
from abc import ABC
from collections.abc import Callable, Sequence
from ctypes import byref, c_int
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from fmpy import fmi2
from fmpy.logging import addLoggerProxy

from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.elements import ArrayElement
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.cosim.fmus.library_instance import Dialect, LibraryInstance

# FMPy's proxy of the logger has one target per process, the last that was added: messages are told apart by the
# environment that each instance hands to its unit, for names may occur twice.
_instances: WeakValueDictionary[int, Fmi2Library] = WeakValueDictionary()
_environments = itertools.count(1)


def _log(environment: int | None, _: bytes, status: int, category: bytes | None, message: bytes | None) -> None:
    instance = _instances.get(environment or 0)
    if instance is not None:
        instance.log(status, (category or b"").decode(errors="replace"), (message or b"").decode(errors="replace"))


_LOGGER = fmi2.fmi2CallbackLoggerTYPE(_log)


class Fmi2Library(LibraryInstance, ABC):
    """An FMU of FMI 2.0 for any interface.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    slave
        FMPy's class for it.
    """

    dialect = Dialect(
        "fmi2",
        (
            (("Real",), "Real", np.float64),
            (("Integer", "Enumeration"), "Integer", np.int32),
            (("Boolean",), "Boolean", np.int32),
        ),
        counts=False,
        get_rates="fmi2GetRealOutputDerivatives",
        set_rates="fmi2SetRealInputDerivatives",
        get_state="fmi2GetFMUstate",
        set_state="fmi2SetFMUstate",
        truth=c_int,
    )

    def __init__(self, name: str, archive: Archive, slave: Callable[..., Any]) -> None:
        super().__init__(name, archive, slave)
        self._callbacks = fmi2.fmi2CallbackFunctions()
        self._callbacks.logger = _LOGGER
        self._callbacks.allocateMemory = fmi2.defaultCallbacks.allocateMemory
        self._callbacks.freeMemory = fmi2.defaultCallbacks.freeMemory
        addLoggerProxy(byref(self._callbacks))
        self._callbacks.componentEnvironment = environment = next(_environments)
        _instances[environment] = self
        self._instantiate(callbacks=self._callbacks)

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance of the FMU's own solver is what it suggests by default."""
        self.time = start
        self._call("setupExperiment", self.own_tolerance(tolerance), start, stop)

    def enter_initialization(self) -> None:
        """Enter initialization mode."""
        self._call("enterInitializationMode")

    def _free_state(self, state: Any) -> None:
        self._slave.freeFMUstate(state)

    # -- values ---------------------------------------------------------------------------------------------

    def _set(self, element: ArrayElement, value: float | int | bool | str | bytes) -> None:
        kind = element.described.type
        self._call(f"set{'Integer' if kind == 'Enumeration' else kind}", [element.described.valueReference], [value])

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        return self.decoded(name, self._call("getString", [self.element(name).described.valueReference])[0])

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return the derivatives of unknowns by knowns, shape (number of unknowns, number of knowns).

        Raises
        ------
        FmuError
            When the FMU refuses.
        """
        references = [[self.element(name).described.valueReference for name in names] for names in (unknowns, knowns)]
        columns = [self._call("getDirectionalDerivative", references[0], [known], [1.0]) for known in references[1]]
        return np.array(columns, dtype=float).reshape(len(knowns), len(unknowns)).T
