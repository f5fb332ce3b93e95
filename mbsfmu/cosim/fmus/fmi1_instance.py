"""A loaded FMU of FMI 1.0 for co-simulation, over FMPy."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_char
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from fmpy import fmi1
from fmpy.logging import addLoggerProxy

from mbsfmu.base.errors import SimulationError
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.elements import ArrayElement
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.cosim.fmus.library_instance import DISCARD, Dialect
from mbsfmu.cosim.fmus.plain_steps import PlainSteps

# Messages are told apart by the address of the component, which a unit that is being instantiated does not have yet.
_instances: WeakValueDictionary[int, Fmi1Instance] = WeakValueDictionary()
_instantiated: list[Fmi1Instance] = []


def _log(component: int | None, _: bytes, status: int, category: bytes | None, message: bytes | None) -> None:
    instance = _instances.get(component or 0) or next(iter(_instantiated), None)
    if instance is not None:
        instance.log(status, (category or b"").decode(errors="replace"), (message or b"").decode(errors="replace"))


_LOGGER = fmi1.fmi1CallbackLoggerTYPE(_log)


class Fmi1Instance(PlainSteps):
    """An instance of a co-simulation FMU of FMI 1.0.

    It has no initialization mode: it is initialized with its start values and what was set, and what connections and
    signals bring is set afterwards. It saves no states and takes no tolerance.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    """

    dialect = Dialect(
        "fmi",
        (
            (("Real",), "Real", np.float64),
            (("Integer", "Enumeration"), "Integer", np.int32),
            (("Boolean",), "Boolean", np.int8),
        ),
        counts=False,
        get_rates="fmiGetRealOutputDerivatives",
        set_rates="fmiSetRealInputDerivatives",
        get_state=None,
        set_state=None,
        truth=c_char,
        prefixed=True,
    )
    has_initialization_mode = False

    def __init__(self, name: str, archive: Archive) -> None:
        super().__init__(name, archive, fmi1.FMU1Slave)
        self._callbacks = fmi1.fmi1CallbackFunctions()
        self._callbacks.logger = _LOGGER
        self._callbacks.allocateMemory = fmi1.defaultCallbacks.allocateMemory
        self._callbacks.freeMemory = fmi1.defaultCallbacks.freeMemory
        addLoggerProxy(byref(self._callbacks))
        _instantiated.append(self)
        try:
            self._instantiate(functions=self._callbacks)
        finally:
            _instantiated.remove(self)
        if not self.component:  # FMPy takes that for an instance
            raise SimulationError(f"{name} cannot be instantiated: {self._reason('the FMU gives no instance')}")
        _instances[self.component] = self
        self._span = 0.0, 0.0

    # -- life cycle -----------------------------------------------------------------------------------------

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; there is no tolerance."""
        del tolerance
        self.time = start
        self._span = start, stop

    def enter_initialization(self) -> None:
        """Initialize the FMU with what was set."""
        self._call("initialize", *self._span)

    def exit_initialization(self) -> None:
        """Begin to step."""
        self.is_stepping = True

    def _step_flag(self, time: float) -> bool:
        """Return that a step is a new one: without saved states none is made again."""
        del time
        return True

    def stepped(self, step: float, status: int) -> None:
        """Handle the result of a step in s whose status is worse than a warning.

        Raises
        ------
        FmuError
            Always; the message has instance, time and reason.
        """
        del step
        if status != DISCARD:
            self.fail("fmiDoStep", status)
        self._discarded("fmiDoStep", self._reached())

    def _free_state(self, state: Any) -> None:
        raise NotImplementedError

    # -- values ---------------------------------------------------------------------------------------------

    def _set(self, element: ArrayElement, value: float | int | bool | str | bytes) -> None:
        kind = element.described.type
        self._call(f"set{'Integer' if kind == 'Enumeration' else kind}", [element.described.valueReference], [value])

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        return self.decoded(name, self._call("getString", [self.element(name).described.valueReference])[0])

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return derivatives, which FMI 2.0 begins with."""
        raise NotImplementedError
