"""An importer made of FMPy, for tests."""

from __future__ import annotations

from pathlib import Path

import fmpy
from fmpy import fmi2


class Importer:
    """An FMU, unpacked, and its instances."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.folder = str(fmpy.extract(str(path), unzipdir=str(folder)))
        self.description = fmpy.read_model_description(str(path))
        self.reference = {v.name: v.valueReference for v in self.description.modelVariables}
        self.messages: list[tuple[int, str]] = []
        self.slaves: list[fmi2.FMU2Slave] = []
        self.callbacks = fmi2.fmi2CallbackFunctions()
        self.callbacks.logger = fmi2.fmi2CallbackLoggerTYPE(
            lambda _, __, status, ___, message: self.messages.append((status, message.decode()))
        )
        self.callbacks.allocateMemory = fmi2.defaultCallbacks.allocateMemory
        self.callbacks.freeMemory = fmi2.defaultCallbacks.freeMemory

    def instance(self) -> fmi2.FMU2Slave:
        slave = fmi2.FMU2Slave(
            guid=self.description.guid,
            unzipDirectory=self.folder,
            modelIdentifier=self.description.coSimulation.modelIdentifier,
            instanceName=f"instance{len(self.slaves)}",
        )
        slave.instantiate(callbacks=self.callbacks, loggingOn=True)
        self.slaves.append(slave)
        return slave

    def running(self, **parameters: float) -> fmi2.FMU2Slave:
        slave = self.instance()
        slave.setupExperiment(startTime=0.0)
        slave.enterInitializationMode()
        for name, value in parameters.items():
            self.set(slave, name, value)
        slave.exitInitializationMode()
        return slave

    def get(self, slave: fmi2.FMU2Slave, name: str) -> float:
        return float(slave.getReal([self.reference[name]])[0])

    def set(self, slave: fmi2.FMU2Slave, name: str, value: float) -> None:
        slave.setReal([self.reference[name]], [value])

    def everything(self, slave: fmi2.FMU2Slave) -> list[float]:
        return list(slave.getReal(list(self.reference.values())))
