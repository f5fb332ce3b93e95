"""An importer whose solver integrates units, made of FMPy, for tests of model exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import fmpy
import numpy as np
from fmpy import fmi2

from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class Update:
    """What new discrete states have told: whether other states or other values, and the time of the next event."""

    values_changed: bool
    nominals_changed: bool
    next: float | None


class Host:
    """An instance for model exchange.

    Parameters
    ----------
    path
        The unit.
    folder
        Where it is unpacked.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.description = fmpy.read_model_description(str(path))
        self.reference = {each.name: each.valueReference for each in self.description.modelVariables}
        derivatives = [each.variable for each in self.description.derivatives]
        self.derivatives = [each.name for each in derivatives]
        self.states = [each.derivative.name for each in derivatives]
        self.inputs = [each.name for each in self.description.modelVariables if each.causality == "input"]
        self.outputs = [each.variable.name for each in self.description.outputs]
        self.messages: list[str] = []
        callbacks = fmi2.fmi2CallbackFunctions()
        callbacks.logger = fmi2.fmi2CallbackLoggerTYPE(lambda *told: self.messages.append(told[-1].decode()))
        callbacks.allocateMemory = fmi2.defaultCallbacks.allocateMemory
        callbacks.freeMemory = fmi2.defaultCallbacks.freeMemory
        self._callbacks = callbacks
        self.unit = fmi2.FMU2Model(
            guid=self.description.guid,
            unzipDirectory=str(fmpy.extract(str(path), unzipdir=str(folder))),
            modelIdentifier=self.description.modelExchange.modelIdentifier,
            instanceName="host",
        )
        self.unit.instantiate(callbacks=callbacks)

    def begin(self, time: float = 0.0, **values: float) -> Update:
        """Initialize at a time, with values of inputs and parameters, and enter continuous-time mode."""
        self.unit.setupExperiment(startTime=time)
        self.unit.enterInitializationMode()
        self.set(**values)
        self.unit.exitInitializationMode()
        update = self.update()
        self.unit.enterContinuousTimeMode()
        return update

    def update(self) -> Update:
        """Let events happen."""
        again, end, nominals, values, has_next, time = self.unit.newDiscreteStates()
        assert not again
        assert not end
        return Update(bool(values), bool(nominals), time if has_next else None)

    def events(self) -> Update:
        """Enter event mode, let events happen, and go on."""
        self.unit.enterEventMode()
        update = self.update()
        self.unit.enterContinuousTimeMode()
        return update

    def set(self, **values: float) -> None:
        """Set variables, a `_` in a name standing for a dot where there is no such variable."""
        names = [name if name in self.reference else name.replace("__", ".") for name in values]
        self.unit.setReal([self.reference[name] for name in names], list(values.values()))

    def get(self, *names: str) -> Floats:
        """Return values of variables."""
        return np.array(self.unit.getReal([self.reference[name] for name in names]))

    @property
    def point(self) -> Floats:
        """The continuous states."""
        values = np.zeros(len(self.states))
        self.unit.getContinuousStates(_pointer(values), values.size)
        return values

    def go(self, time: float, point: Floats) -> None:
        """Bring the unit to a point."""
        values = np.ascontiguousarray(point, dtype=float)
        self.unit.setTime(time)
        self.unit.setContinuousStates(_pointer(values), values.size)

    @property
    def rates(self) -> Floats:
        """The derivatives of the continuous states."""
        values = np.zeros(len(self.states))
        self.unit.getDerivatives(_pointer(values), values.size)
        return values

    @property
    def nominals(self) -> Floats:
        """The magnitudes of the continuous states."""
        values = np.zeros(len(self.states))
        self.unit.getNominalsOfContinuousStates(_pointer(values), values.size)
        return values

    def flow(self, time: float, point: Floats) -> Floats:
        """Return f(t, y)."""
        self.go(time, point)
        return self.rates

    def complete(self) -> bool:
        """Complete a step; tells whether events wait."""
        event, end = self.unit.completedIntegratorStep()
        assert not end
        return bool(event)

    def derivative(self, unknowns: Sequence[str], known: str) -> Floats:
        """Return derivatives by one variable."""
        references = [self.reference[name] for name in unknowns]
        return np.array(self.unit.getDirectionalDerivative(references, [self.reference[known]], [1.0]))


def _pointer(values: Floats) -> object:
    return values.ctypes.data_as(fmi2.POINTER(fmi2.fmi2Real))
