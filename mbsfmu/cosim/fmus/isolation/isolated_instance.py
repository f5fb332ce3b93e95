"""An FMU in a separate process, with the interface of an instance."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from mbsfmu.cosim.fmus.archive import Archive, PlacedArchive
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuError, Instance, Port
from mbsfmu.cosim.fmus.isolation.messages import Call, Failure
from mbsfmu.cosim.fmus.isolation.remote_fmu import RemoteFmu

logger = logging.getLogger(__name__)


class IsolatedInstance(Instance):
    """An instance in a process of its own, here or on another host, in which it is one as any other.

    What is set, saved and restored waits for the next call that has an answer; what was read after the last step is
    read with the next one at once. So a step is one message to and fro, and the FMU sees the same calls in one order.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    process
        Where it is.
    solver
        For an FMU for model exchange.
    values
        Start values by name, of which those of structural parameters are set.
    """

    def __init__(
        self,
        name: str,
        archive: Archive | PlacedArchive,
        process: RemoteFmu,
        solver: str,
        values: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(name)
        self.flat_names = archive.flat_names
        self._process = process
        self._waiting: list[Call] = []
        self._answers: dict[Call, Any] = {}
        self._wanted: dict[Call, None] = {}
        self._stepping: list[Call] = []
        self._ports = self._waited = 0
        level = logging.getLogger("mbsfmu").getEffectiveLevel()
        for attribute, value in self._ask(("make", name, archive, solver, dict(values), level)).items():
            setattr(self, attribute, value)

    steps_apart: ClassVar[bool] = True

    def _ask(self, *calls: Call) -> Any:
        """Let the FMU make calls, after those that wait; return what the first of these gave."""
        return self._ask_all(calls)[0]

    def _ask_all(self, calls: Sequence[Call]) -> list[Any]:
        self._send(calls)
        return self._answered()

    def _send(self, calls: Sequence[Call]) -> None:
        """Let the FMU make calls, after those that wait."""
        waiting, self._waiting = self._waiting, []
        self._waited = len(waiting)
        self._answers.clear()
        with self._noted():
            self._process.send([*waiting, *calls], self.time)

    def _answered(self) -> list[Any]:
        """Return what the calls gave that were sent last."""
        with self._noted():
            reply = self._process.answer()
        self.events, self.happened = reply.events, min(self.happened, reply.happened)
        return reply.answers[self._waited :]

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Note that the instance cannot be called any more, when an error says so."""
        try:
            yield
        except FmuError as error:
            self._fatal = self._fatal or error.fatal
            raise

    def later(self, *call: Any) -> None:
        """Queue a call for the next one with an answer."""
        self._waiting.append(call)

    def fetch(self, *call: Any) -> Any:
        """Return the answer of a read-only call, which is made with the next step too."""
        self._wanted[call] = None
        answer = self._answers[call] if call in self._answers and not self._waiting else self._ask(call)
        if isinstance(answer, Failure):
            raise answer.exception()
        return answer

    # -- life cycle -----------------------------------------------------------------------------------------

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance of the FMU's own solver is what it suggests by default."""
        self.time = start
        self._ask(("setup", start, stop, tolerance))

    def enter_initialization(self) -> None:
        """Enter initialization mode."""
        self._ask(("enter_initialization",))

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._ask(("exit_initialization",))

    def step(self, time: float, step: float) -> None:
        """Make a step in s.

        Raises
        ------
        FmuError
            When the FMU refuses, or its process ends.
        FmuEnded
            When the FMU ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        self.send_step(time, step)
        self.finish_step()

    def send_step(self, time: float, step: float) -> None:
        """Begin a step in s, which `finish_step` waits for."""
        self.clock.time = time
        self.clock.steps += 1
        self._stepping, self._wanted = list(self._wanted), {}
        self._send([("step", time, step), *(("try", *call) for call in self._stepping)])

    def finish_step(self) -> None:
        """Wait for the end of a step that was begun; raises what `step` raises."""
        try:
            _, *answers = self._answered()
        finally:
            if self._process.end is not None:
                self.ends[self.name] = self._process.end
        self._answers = dict(zip(self._stepping, answers, strict=True))

    def read_next_event(self) -> float:
        """Return when a signal of the FMU's own jumps or bends next, in s; infinity where it does not say."""
        return self.fetch("read_next_event")

    def close(self) -> None:
        """Free the instance and end its process."""
        try:
            self._process.close(("close",))
        except FmuError as error:
            logger.warning("%s", error)

    # -- states ---------------------------------------------------------------------------------------------

    def serialize(self) -> bytes:
        """Return the state for another process."""
        return self._ask(("serialize",))

    def deserialize(self, state: bytes) -> None:
        """Take a state of another process."""
        self._ask(("deserialize", state))
        self.ends.pop(self.name, None)

    def save(self, slot: str, time: float) -> None:
        """Keep the state at a time in s under a name; what was kept under it is replaced."""
        self.later("save", slot, time)

    def restore(self, slot: str) -> None:
        """Go back to the state that was kept under a name."""
        self.later("restore", slot)
        self.ends.pop(self.name, None)

    def release(self, slot: str) -> None:
        """Discard the state under a name."""
        self.later("release", slot)

    # -- values ---------------------------------------------------------------------------------------------

    def port(self, names: Sequence[str], values: Floats | None = None) -> Port:
        """Return a port of numeric variables; `values` is its array."""
        self._ports += 1
        return _IsolatedPort(self, names, values, self._ports, self._ask(("port", self._ports, tuple(names))))

    def set_start(self, name: str, value: Any) -> None:
        """Set a parameter, start value or String input, by the type of the variable.

        Raises
        ------
        InputError
            When there is no such variable, or the value is none of its type.
        """
        self._ask(("set_start", name, value))

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        return self.fetch("read_text", name)

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return the derivatives of unknowns by knowns, shape (number of unknowns, number of knowns)."""
        return self._ask(("directional_derivative", list(unknowns), list(knowns)))


class _IsolatedPort(Port):
    """A port of an FMU in a process of its own, which has one with the same number."""

    def __init__(
        self, instance: IsolatedInstance, names: Sequence[str], values: Floats | None, number: int, all_real: bool
    ) -> None:
        super().__init__(instance, names, values)
        self._unit, self._number, self._all_real = instance, number, all_real

    @property
    def all_real(self) -> bool:
        """Whether all variables are Real."""
        return self._all_real

    def read(self) -> Floats:
        """Read the variables into `values` and return it."""
        self.values[:] = np.frombuffer(self._unit.fetch("read", self._number))
        return self.values

    def write(self) -> None:
        """Set the variables to `values`; whole numbers are rounded."""
        self._unit.later("write", self._number, self.values.tobytes())

    def write_slopes(self) -> None:
        """Set the first derivatives of the inputs by time to `slopes`; all must be Real."""
        self._unit.later("write_slopes", self._number, self.slopes.tobytes())

    def read_rates(self) -> Floats:
        """Return the first derivatives of the outputs by time in 1/s; all must be Real."""
        return np.frombuffer(self._unit.fetch("read_rates", self._number))
