"""An importer made of FMPy, for tests."""
# ruff: noqa: N802 - functions that FMPy names

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fmpy
from fmpy import fmi2, fmi3


class Slave3(fmi3.FMU3Slave):
    """An instance of FMI 3.0 that understands the words of FMI 2.0, for tests of both.

    Arrays are read and written element by element, one after the other.
    """

    def __init__(self, sizes: dict[int, int], **given: Any) -> None:
        super().__init__(**given)
        self._sizes = sizes
        self._experiment: dict[str, Any] = {}

    def setupExperiment(self, **experiment: Any) -> None:
        self._experiment = experiment

    def enterInitializationMode(self, **experiment: Any) -> Any:
        return super().enterInitializationMode(**{**self._experiment, **experiment})

    def getReal(self, references: Sequence[int]) -> list[float]:
        return list(self.getFloat64(references, sum(self._sizes[each] for each in references)))

    def setReal(self, references: Sequence[int], values: Sequence[float]) -> None:
        self.setFloat64(references, values)

    def getFMUstate(self) -> Any:
        return self.getFMUState()

    def setFMUstate(self, state: Any) -> None:
        self.setFMUState(state)

    def freeFMUstate(self, state: Any) -> None:
        self.freeFMUState(state)

    def serializeFMUstate(self, state: Any) -> bytes:
        return bytes(self.serializeFMUState(state))

    def deSerializeFMUstate(self, content: bytes) -> Any:
        return self.deserializeFMUState(content)

    def getRealOutputDerivatives(self, references: Sequence[int], orders: Sequence[int]) -> list[float]:
        return list(self.getOutputDerivatives(references, orders))


class Importer:
    """An FMU, unpacked, and its instances."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.folder = str(fmpy.extract(str(path), unzipdir=str(folder)))
        self.description = fmpy.read_model_description(str(path))
        self.reference = {v.name: v.valueReference for v in self.description.modelVariables}
        self.messages: list[tuple[int, str]] = []
        self.slaves: list[fmi2.FMU2Slave | Slave3] = []
        self.callbacks = fmi2.fmi2CallbackFunctions()
        self.callbacks.logger = fmi2.fmi2CallbackLoggerTYPE(
            lambda _, __, status, ___, message: self.messages.append((status, message.decode()))
        )
        self.callbacks.allocateMemory = fmi2.defaultCallbacks.allocateMemory
        self.callbacks.freeMemory = fmi2.defaultCallbacks.freeMemory

    def instance(self, **wishes: Any) -> fmi2.FMU2Slave | Slave3:
        """Return a new instance; what is wished besides is of FMI 3.0."""
        if self.description.fmiVersion != "2.0":
            return self._instance3(**wishes)
        slave = fmi2.FMU2Slave(
            guid=self.description.guid,
            unzipDirectory=self.folder,
            modelIdentifier=self.description.coSimulation.modelIdentifier,
            instanceName=f"instance{len(self.slaves)}",
        )
        slave.instantiate(callbacks=self.callbacks, loggingOn=True)
        self.slaves.append(slave)
        return slave

    def _instance3(self, **wishes: Any) -> Slave3:
        sizes = {each.valueReference: each.shape[0] if each.shape else 1 for each in self.description.modelVariables}
        slave = Slave3(
            sizes,
            guid=self.description.guid,
            unzipDirectory=self.folder,
            modelIdentifier=self.description.coSimulation.modelIdentifier,
            instanceName=f"instance{len(self.slaves)}",
        )

        def log(_: Any, status: int, __: bytes, message: bytes) -> None:
            self.messages.append((status, message.decode()))

        slave.instantiate(loggingOn=True, logMessage=log, **wishes)
        self.slaves.append(slave)
        return slave

    def running(self, **parameters: float) -> fmi2.FMU2Slave | Slave3:
        slave = self.instance()
        slave.setupExperiment(startTime=0.0)
        slave.enterInitializationMode()
        for name, value in parameters.items():
            self.set(slave, name, value)
        slave.exitInitializationMode()
        return slave

    def get(self, slave: fmi2.FMU2Slave | Slave3, name: str) -> float:
        return float(slave.getReal([self.reference[name]])[0])

    def set(self, slave: fmi2.FMU2Slave | Slave3, name: str, value: float) -> None:
        slave.setReal([self.reference[name]], [value])

    def everything(self, slave: fmi2.FMU2Slave | Slave3) -> list[float]:
        return list(slave.getReal(list(self.reference.values())))
