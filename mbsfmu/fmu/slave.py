"""pythonfmu adapter of a simulation: modes, values, states and messages of FMI."""

from __future__ import annotations

import base64
import importlib
import json
import logging
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pythonfmu import Fmi2Slave
from pythonfmu.enums import Fmi2Causality, Fmi2Status, Fmi2Variability
from pythonfmu.variables import Real

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.identity import opened, sealed
from mbsfmu.base.times import OVERSHOOT, check_experiment
from mbsfmu.fmu.description import FILES, LOG_CATEGORIES, UNIT_FILE, FmuSimulation
from mbsfmu.modelling import Data
from mbsfmu.modelling.variables import Causality, Variability

FAILURES = (InputError, SimulationError, ValueError, ArithmeticError)
"""What ends a call with a reason for its caller."""
REFERENCES = 2**32
"""How many value references there are: pythonfmu gives those of the upper half as negative numbers."""
_EXPERIMENT = "experiment"
_DAMAGED = "damaged"  # what a state that cannot be read has instead of all else

Result = TypeVar("Result")


class _LogForwarder(logging.Handler):
    """Forwards log records of a call to FMI's logger."""

    def __init__(self, slave: UnitSlave) -> None:
        super().__init__(logging.WARNING)
        self._slave = slave

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on."""
        sentence = record.getMessage()
        if self._slave.starting:
            if sentence in self._slave.logged_at_start:
                return
            self._slave.logged_at_start.add(sentence)
        self._slave.log(sentence, Fmi2Status.warning)


class SavedSlave(Data):
    """The state of a slave.

    Attributes
    ----------
    identity
        Of the unit: states of others are refused.
    unit
        State of the simulation, as base64.
    initializing, running, fresh
        Modes, and whether the start fits the values that were set.
    start_time, stop_time
        In s.
    refused
        Values that were refused and not mended yet: the reasons by the variables' names.
    """

    largest: ClassVar[float] = sys.float_info.max  # importers may name any stop time

    identity: str
    unit: str
    initializing: bool
    running: bool
    fresh: bool
    start_time: float
    stop_time: float | None = None
    refused: dict[str, str]


class UnitSlave(Fmi2Slave):
    """Co-simulation slave; the class in an FMU derives from it.

    The unit is made by the factory that `unit.json` among the resources names.

    pythonfmu's binary makes fmi2Fatal of every exception, after which further calls, even those that free the instance,
    may end the process; it has no way to return fmi2Error. What is refused goes to the log instead, what should be read
    is not a number, and steps are discarded. Only an initialization that fails is fatal.
    """

    log_categories = LOG_CATEGORIES
    _kept: ClassVar[list[type]] = []

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # pythonfmu's binary gives back references to the class that it does not own.
        UnitSlave._kept.extend([cls] * 8)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unit, self._identity = load_unit(Path(kwargs["resources"]))
        self.modelName = self.unit.name
        self._parameters = {
            variable.name
            for variable in self.unit.variables
            if variable.causality is Causality.PARAMETER and variable.variability is Variability.FIXED
        }
        self.starting = False
        self.logged_at_start: set[str] = set()
        self._refused: dict[str, str] = {}
        self._refused_state: str | None = None
        self._initializing = False
        self._running = False
        self._fresh = False
        self._start_time = 0.0
        self._stop_time: float | None = None
        for variable in self.unit.variables:
            self.register_variable(
                Real(
                    variable.name,
                    causality=Fmi2Causality[variable.causality.value],
                    variability=Fmi2Variability[variable.variability.value],
                ),
                nested=False,
            )

    # -- calls ----------------------------------------------------------------------------------------------

    def _guarded(self, call: Callable[[], Result]) -> Result:
        """Run a call; report the reason of a failure to the importer's logger."""
        forwarder = _LogForwarder(self)
        logger = logging.getLogger("mbsfmu")
        logger.addHandler(forwarder)
        try:
            return call()
        except FAILURES as error:
            self.log(str(error), Fmi2Status.error)
            raise
        finally:
            logger.removeHandler(forwarder)

    def get_real(self, vrs: list[int]) -> list[float]:
        """Return values; NaN from the first failing one on, with the reason in the log."""
        values = [math.nan] * len(vrs)

        def read() -> None:
            for place, reference in enumerate(vrs):
                values[place] = self._get(self._name(reference))

        self._attempted(read)
        return values

    def get_integer(self, vrs: list[int]) -> list[int]:
        """Return zeros, with an error in the log: there are no such variables."""
        self._refuse("Integer", vrs)
        return [0] * len(vrs)

    def get_boolean(self, vrs: list[int]) -> list[bool]:
        """Return falsehoods, with an error in the log: there are no such variables."""
        self._refuse("Boolean", vrs)
        return [False] * len(vrs)

    def get_string(self, vrs: list[int]) -> list[str]:
        """Return empty texts, with an error in the log: there are no such variables."""
        self._refuse("String", vrs)
        return [""] * len(vrs)

    def set_integer(self, vrs: list[int], values: list[int]) -> None:  # noqa: ARG002
        """Refuse: there are no such variables."""
        self._refused |= self._refuse("Integer", vrs)

    def set_boolean(self, vrs: list[int], values: list[bool]) -> None:  # noqa: ARG002
        """Refuse: there are no such variables."""
        self._refused |= self._refuse("Boolean", vrs)

    def set_string(self, vrs: list[int], values: list[str]) -> None:  # noqa: ARG002
        """Refuse: there are no such variables."""
        self._refused |= self._refuse("String", vrs)

    def _refuse(self, kind: str, references: list[int]) -> dict[str, str]:
        """Log that there is no variable of a type, and record the refusal, if any was requested."""
        if not references:
            return {}
        reason = f"there is no {kind} variable with value reference {references[0] % REFERENCES}"
        self.log(reason, Fmi2Status.error)
        return {kind: reason}

    def _name(self, reference: int) -> str:
        if reference not in self.vars:
            raise InputError(f"there is no Real variable with value reference {reference % REFERENCES}")
        return self.vars[reference].name

    def set_real(self, vrs: list[int], values: list[float]) -> None:
        """Set all values, or none if one is refused: then steps are refused until valid values are set."""
        given: dict[str, float] = {}

        def find() -> None:
            given.update(zip(map(self._name, vrs), values, strict=True))

        if reason := self._attempted(find):
            self._refused["Real"] = reason
            return
        reasons = [why for name, value in given.items() if (why := self._attempted(lambda: self._check(name, value)))]  # noqa: B023 - called at once
        for name, value in given.items():
            self._refused.pop(name, None)
            if reasons:
                self._refused[name] = reasons[0]
            else:
                self.unit.set(name, value)
                self._fresh = False

    def _attempted(self, call: Callable[[], object]) -> str | None:
        """Run a call that may be refused; return the logged reason."""
        try:
            self._guarded(call)
        except FAILURES as error:
            return str(error)
        return None

    def _check(self, name: str, value: float) -> None:
        number = self.unit.check(name, value)
        if self._running and name in self._parameters and number != self.unit.get(name):
            raise InputError(f"{name} is a fixed parameter; it cannot be set after initialization mode")

    def _get(self, name: str) -> float:
        if not self._fresh and not self._running:
            self._initialize()
        return self.unit.get(name)

    def _initialize(self) -> None:
        """Compute the start, repeatedly if values are set and read before it; each message is given once."""
        self.starting = True
        try:
            self.unit.initialize(self._start_time)
        finally:
            self.starting = False
        self._fresh = True

    def setup_experiment(self, start_time: float, stop_time: float | None, tolerance: float | None) -> None:
        """Take the start and stop time in s, and the relative tolerance of solvers that choose their steps."""
        self._refused.pop(_EXPERIMENT, None)

        def set_up() -> None:
            if self._initializing or self._running:
                raise InputError("the experiment can only be set up before initialization")
            check_experiment(start_time, stop_time)
            if tolerance is not None:
                self.unit.set_tolerance(tolerance)
            has_stop = stop_time is not None and math.isfinite(stop_time)
            self._start_time, self._stop_time, self._fresh = start_time, stop_time if has_stop else None, False

        if reason := self._attempted(set_up):
            self._refused[_EXPERIMENT] = reason

    def enter_initialization_mode(self) -> None:
        """Parameters and start values can be set from here on, outputs are computed when asked for."""
        if self._initializing or self._running:
            self.log("initialization mode is entered from the start only", Fmi2Status.error)
        else:
            self._initializing = True

    def exit_initialization_mode(self) -> None:
        """Find the consistent start."""
        if not self._initializing:
            self.log("initialization mode was not entered", Fmi2Status.error)
            return
        self._guarded(self._start)
        self._initializing, self._running = False, True

    def _start(self) -> None:
        for reason in self._refused.values():
            raise InputError(f"initialization is refused: {reason}")
        if not self._fresh:
            self._initialize()

    def do_step(self, current_time: float, step_size: float) -> bool:
        """Advance; a failed step is discarded with its reason in the log."""
        try:
            self._guarded(lambda: self._do_step(current_time, step_size))
        except FAILURES:
            return False
        return True

    def _do_step(self, current_time: float, step_size: float) -> None:
        for reason in (*self._refused.values(), *filter(None, [self._refused_state])):
            raise InputError(f"the step is refused: {reason}")
        if not self._running:
            raise InputError("a step needs an initialized unit that is not terminated")
        end = current_time + step_size
        if self._stop_time is not None and end > self._stop_time + OVERSHOOT * step_size:
            raise InputError(f"the step ends at {end:.12g} s, after the stop time of {self._stop_time:.12g} s")
        self.unit.step(current_time, step_size)

    # -- states ---------------------------------------------------------------------------------------------

    def _get_fmu_state(self) -> dict[str, Any]:
        saved = SavedSlave(
            identity=self._identity,
            unit=base64.b64encode(self.unit.save()).decode(),
            initializing=self._initializing,
            running=self._running,
            fresh=self._fresh,
            start_time=self._start_time,
            stop_time=self._stop_time,
            refused=dict(self._refused),
        )
        return saved.to_dict()

    def _set_fmu_state(self, state: dict[str, Any]) -> None:
        """Go back to a saved state; a foreign or damaged one is refused as values are, see `set_real`."""
        self._refused_state = self._attempted(lambda: self._restore(state))

    def _restore(self, state: dict[str, Any]) -> None:
        if reason := state.get(_DAMAGED):
            raise InputError(reason)
        saved = SavedSlave.from_dict(state)
        if saved.identity != self._identity:
            raise InputError("the saved state is refused: it is the state of another FMU")
        self.unit.restore(base64.b64decode(saved.unit))
        self._initializing, self._running, self._fresh = saved.initializing, saved.running, saved.fresh
        self._start_time, self._stop_time = saved.start_time, saved.stop_time
        self._refused = dict(saved.refused)

    @staticmethod
    def _fmu_state_to_bytes(state: dict[str, Any]) -> bytes:
        return sealed(UNIT_FILE, json.dumps(state).encode())

    @staticmethod
    def _fmu_state_from_bytes(state: bytes) -> dict[str, Any]:
        """Return the state, or the reason of a refusal: an exception would be fatal."""
        try:
            return SavedSlave.from_dict(json.loads(opened(UNIT_FILE, state))).to_dict()
        except (InputError, ValueError, RecursionError) as error:
            return {_DAMAGED: str(error)}


def load_unit(resources: Path) -> tuple[FmuSimulation, str]:
    """Make the FMU that the resources of an FMU describe; return it with its identity.

    Raises
    ------
    OSError
        When there is no `unit.json`.
    """
    data = json.loads((resources / UNIT_FILE).read_text(encoding="utf-8"))
    module, _, function = data["factory"].partition(":")
    factory = getattr(importlib.import_module(module), function)
    return factory(data["arguments"], resources / FILES), data["identity"]
