"""FMI 3.0 library, common to co-simulation and model exchange."""

from __future__ import annotations

import os
from abc import ABC
from collections.abc import Callable, Sequence
from ctypes import byref, c_bool, c_double, c_size_t, c_uint32
from typing import Any
from weakref import ref

import numpy as np
from fmpy import fmi3

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.elements import ArrayElement
from mbsfmu.cosim.fmus.event_iteration import Update, next_event
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuError
from mbsfmu.cosim.fmus.library_instance import Dialect, LibraryInstance

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
