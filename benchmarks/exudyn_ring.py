"""A ring of links between two points of the ground in Exudyn: rigid bodies in the plane and revolute joints."""

from __future__ import annotations

from math import cos, sin

import numpy as np
from exudyn_four_bar import exu, integrated, items

from mbsfmu import CoupledModel
from mbsfmu.model import Mechanism, RigidBody


class Ring:
    """A built-in ring at its start, at rest; its data comes from our model, of which nothing is left out.

    Parameters
    ----------
    model
        `loop_4`, `loop_8` or `five_bar`.
    link
        Number of the link whose angle to the one before is recorded; none where nothing is.
    """

    def __init__(self, model: CoupledModel, link: int | None = None) -> None:
        mechanism = model.systems["mechanism"]
        assert isinstance(mechanism, Mechanism)
        self._container = exu.SystemContainer()
        self._system = self._container.AddSystem()
        self._ground = self._system.AddObject(items.ObjectGround())
        place, angle = np.array(mechanism.ground["A"][:2]), 0.0
        end = self._marker(self._ground, *place)
        bodies = []
        for body, joint in zip(mechanism.bodies, mechanism.joints, strict=False):
            assert isinstance(body, RigidBody)
            angle += joint.angle
            along = np.array([cos(angle), sin(angle)])
            length, centre = body.length, 0.5 * body.length
            node = self._system.AddNode(items.NodeRigidBody2D(referenceCoordinates=[*(place + centre * along), angle]))
            bodies.append(
                self._system.AddObject(
                    items.ObjectRigidBody2D(mass=body.mass, inertia=body.inertia[2], nodeNumber=node)
                )
            )
            whole = self._system.AddMarker(items.MarkerBodyMass(bodyNumber=bodies[-1]))
            self._system.AddLoad(items.LoadMassProportional(markerNumber=whole, loadVector=[*mechanism.gravity]))
            self._join(end, self._marker(bodies[-1], -centre))
            end, place = self._marker(bodies[-1], length - centre), place + length * along
        self._join(end, self._marker(self._ground, *mechanism.ground["B"][:2]))
        self._sensors = [] if link is None else [self._turn(bodies[link - 1]), self._turn(bodies[link - 2])]
        self._at_start = 0.0 if link is None else mechanism.joints[link - 1].angle
        self._system.Assemble()

    def _join(self, one: int, other: int) -> None:
        self._system.AddObject(items.ObjectJointRevolute2D(markerNumbers=[one, other]))

    def _marker(self, body: int, x: float = 0.0, y: float = 0.0) -> int:
        return self._system.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=[x, y, 0.0]))

    def _turn(self, body: int) -> int:
        return self._system.AddSensor(
            items.SensorBody(
                bodyNumber=body,
                storeInternal=True,
                writeToFile=False,
                outputVariableType=exu.OutputVariableType.Rotation,
            )
        )

    def run(
        self, stop: float, step: float, *, modified: bool, tolerance: float, solver: str = "TrapezoidalIndex2"
    ) -> tuple[float, np.ndarray]:
        """Run to a time with equal steps; return the wall time in s, and times with the angle between the links."""
        wall = integrated(self._system, 0.0, stop, step, modified=modified, tolerance=tolerance, solver=solver)
        if not self._sensors:
            return wall, np.empty((0, 2))
        outer, inner = (np.array(self._system.GetSensorStoredData(each)) for each in self._sensors)
        return wall, np.column_stack([outer[:, 0], self._at_start + outer[:, -1] - inner[:, -1]])
