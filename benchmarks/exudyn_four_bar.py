"""The four-bar in Exudyn: rigid bodies in the plane, revolute joints, its own hydraulic actuator.

Data comes from our model, with the circuit without seal friction. What differs: the actuator has two volumes, so both
hoses on the piston's side are one and the throttle between them is missing; the valve has no spool dynamics, its
opening jumps with the command; orifice flow is turbulent at any pressure drop.
"""

from __future__ import annotations

import importlib
import sys
import time
from itertools import pairwise
from math import cos, hypot, pi, radians, sin, sqrt
from typing import Any

import numpy as np

import mbsfmu
from hydraulics import Circuit
from mbsfmu.model import Mechanism

# Without checks of index ranges; Exudyn looks at this when it is imported.
sys.exudynFast = True
exu = importlib.import_module("exudyn")
items = importlib.import_module("exudyn.itemInterface")

FULL_COMMAND = 10.0


def integrated(
    system: Any, begin: float, end: float, step: float, *, modified: bool, tolerance: float, solver: str
) -> float:
    """Go on with a system by equal steps; return the wall time in s."""
    settings = exu.SimulationSettings()
    integration = settings.timeIntegration
    integration.startTime, integration.endTime = begin, end
    integration.numberOfSteps = round((end - begin) / step)
    integration.adaptiveStep = False
    integration.verboseMode = 0
    integration.newton.useModifiedNewton = modified
    integration.newton.relativeTolerance = tolerance
    settings.solution.file.write = False
    started = time.perf_counter()
    kind = getattr(exu.DynamicSolverType, solver)
    system.SolveDynamic(settings, solverType=kind, updateInitialValues=True, showHints=False)
    return time.perf_counter() - started


class FourBar:
    """The mechanism at its start, at rest.

    Parameters
    ----------
    record
        Whether the cylinder's length is kept every 10 ms.
    pressure
        Whether instead the pressure on the piston is.
    """

    def __init__(self, *, record: bool = False, pressure: bool = False) -> None:
        model = mbsfmu.models.four_bar(circuit="frictionless")
        mechanism, circuit = model.systems["mechanism"], model.systems["circuit"]
        assert isinstance(mechanism, Mechanism)
        assert isinstance(circuit, Circuit)
        signal = model.signals["circuit.valve.command"]
        self._times = [0.0, *signal.times, model.stop_time]
        self._openings = [signal.initial / FULL_COMMAND, *(value / FULL_COMMAND for value in signal.values)]
        self._container = exu.SystemContainer()
        self._system = self._container.AddSystem()
        rocker = self._add_mechanism(mechanism)
        self._actuator, self._pressures = self._add_actuator(mechanism, circuit, rocker)
        self._sensor = None
        if record:
            self._sensor = self._system.AddSensor(
                items.SensorObject(
                    objectNumber=self._actuator,
                    storeInternal=True,
                    writeToFile=False,
                    outputVariableType=exu.OutputVariableType.Distance,
                )
            )
        if pressure:
            self._sensor = self._system.AddSensor(
                items.SensorNode(
                    nodeNumber=self._pressures,
                    storeInternal=True,
                    writeToFile=False,
                    outputVariableType=exu.OutputVariableType.Coordinates,
                )
            )
        self._system.Assemble()

    def _add_mechanism(self, mechanism: Mechanism) -> int:
        """Add bodies, weights and joints; return the rocker."""
        self._ground = self._system.AddObject(items.ObjectGround())
        beams = {body.name: body for body in mechanism.bodies}
        lengths = {name: beam.length for name, beam in beams.items()}
        placed = {"boom": ((0.0, 0.0), 0.0), "link": ((3.0, 0.0), radians(-135.0)), "rocker": ((2.0, -1.0), pi)}
        bodies = {}
        for name, (start, angle) in placed.items():
            half, mass = 0.5 * lengths[name], beams[name].mass
            centre = [start[0] + half * cos(angle), start[1] + half * sin(angle), angle]
            node = self._system.AddNode(items.NodeRigidBody2D(referenceCoordinates=centre))
            inertia = mass * lengths[name] ** 2 / 12.0
            bodies[name] = self._system.AddObject(items.ObjectRigidBody2D(mass=mass, inertia=inertia, nodeNumber=node))
            whole = self._system.AddMarker(items.MarkerBodyMass(bodyNumber=bodies[name]))
            self._system.AddLoad(items.LoadMassProportional(markerNumber=whole, loadVector=[*mechanism.gravity]))
        boom, link, rocker = (0.5 * lengths[name] for name in ("boom", "link", "rocker"))
        joints = (
            (self._marker(self._ground), self._marker(bodies["boom"], -boom)),
            (self._marker(bodies["boom"], 2.0 * boom / 3.0 - boom), self._marker(bodies["link"], -link)),
            (self._marker(bodies["link"], link), self._marker(bodies["rocker"], -rocker)),
            (self._marker(self._ground, *mechanism.ground["E"][:2]), self._marker(bodies["rocker"], rocker)),
        )
        for markers in joints:
            self._system.AddObject(items.ObjectJointRevolute2D(markerNumbers=[*markers]))
        return bodies["rocker"]

    def _marker(self, body: int, x: float = 0.0, y: float = 0.0) -> int:
        return self._system.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=[x, y, 0.0]))

    def _add_actuator(self, mechanism: Mechanism, circuit: Circuit, rocker: int) -> tuple[int, int]:
        """Add cylinder, hoses and valve; return their object, and the node of the pressures."""
        parts: dict[str, Any] = {part.name: part for part in circuit.components}
        cylinder, valve = parts["cylinder"], parts["valve"]
        piston = 0.25 * pi * cylinder.piston_diameter**2
        rod = piston - 0.25 * pi * cylinder.rod_diameter**2
        boom, link, third = (body.mass for body in mechanism.bodies)
        static_force = sqrt(2.0) * hypot(*mechanism.gravity) * (3.0 * boom + 2.0 * link + third)
        rod_pressure = circuit.initial_pressures["V3"]
        pressures = [(static_force + rod_pressure * rod) / piston, rod_pressure]
        node = self._system.AddNode(
            items.NodeGenericODE1(
                referenceCoordinates=[0.0, 0.0], initialCoordinates=pressures, numberOfODE1Coordinates=2
            )
        )
        ends = [self._marker(self._ground, *mechanism.ground["G"][:2]), self._marker(rocker)]
        actuator = self._system.AddObject(
            items.HydraulicActuatorSimple(
                markerNumbers=ends,
                nodeNumbers=[node],
                offsetLength=cylinder.retracted_length,
                strokeLength=cylinder.stroke,
                chamberCrossSection0=piston,
                chamberCrossSection1=rod,
                hoseVolume0=parts["hose_1"].volume + parts["hose_2"].volume,
                hoseVolume1=parts["hose_3"].volume,
                oilBulkModulus=circuit.oil.bulk_modulus,
                cylinderBulkModulus=cylinder.bulk_modulus,
                hoseBulkModulus=parts["hose_1"].bulk_modulus,
                nominalFlow=valve.flow_coefficient * FULL_COMMAND,
                systemPressure=parts["pump"].pressure,
                tankPressure=parts["tank"].pressure,
                useChamberVolumeChange=True,
            )
        )
        return actuator, node

    def run(
        self, step: float, *, modified: bool, tolerance: float, solver: str = "TrapezoidalIndex2"
    ) -> tuple[float, np.ndarray]:
        """Run to the end with equal steps; return the wall time in s, and times with what is recorded.

        One run between every two jumps of the command: a function of Python in each step would be slower.
        """
        wall, rows = 0.0, []
        for (begin, end), opening in zip(pairwise(self._times), self._openings, strict=True):
            self._system.SetObjectParameter(self._actuator, "valveOpening0", opening)
            self._system.SetObjectParameter(self._actuator, "valveOpening1", -opening)
            wall += integrated(self._system, begin, end, step, modified=modified, tolerance=tolerance, solver=solver)
            if self._sensor is not None:
                rows.append(np.array(self._system.GetSensorStoredData(self._sensor)))
        return wall, np.vstack(rows) if rows else np.empty((0, 2))
