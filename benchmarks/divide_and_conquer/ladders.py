"""Ladders in other engines: Pinocchio's constrained forward dynamics, and implicit steps of Exudyn."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from engines import Engine, deviation, exudyn
from flow import Floats, Flow

PROXIMAL = 1e-8
"""Regularization of Pinocchio's constraints, which are redundant across the plane; its iterations remove the error …"""
ACCURACY, ITERATIONS = 1e-13, 20
"""… down to this residual."""
STEP = 1e-6
"""Length of steps of Exudyn in s: so short that accelerations hardly change."""
PARTS = "left", "rung", "right"


@dataclass(frozen=True)
class LadderPoint:
    """A ladder that moves with its loops closed.

    Attributes
    ----------
    loops
        Their number.
    values
        Our y.
    angles, velocities, accelerations
        Of the joints of left rail, rung and right rail by loop, shape (loops, 3).
    """

    loops: int
    values: Floats
    angles: Floats
    velocities: Floats
    accelerations: Floats


def moving_ladder(flow: Flow, loops: int) -> LadderPoint:
    """Return a point of a ladder's flow: at the start, where rungs are level, with rails that swing loop by loop."""
    names = [each.name.split(".")[0] for each in flow.functions.system.coordinates]
    order = [names.index(f"{part}_{number}") for number in range(1, loops + 1) for part in PARTS]
    swinging = np.random.default_rng(0).normal(size=loops)
    rates = np.stack([np.diff(swinging, prepend=0.0), -swinging, swinging], axis=1)
    values = flow.start.copy()
    values[len(order) + np.array(order)] = rates.ravel()
    parts = values[order], rates, flow.rates(values)[len(order) :][order]
    return LadderPoint(loops, values, *(each.reshape(-1, 3) for each in parts))


def constrained(point: LadderPoint) -> Engine:
    """Return Pinocchio's constrained forward dynamics; the call from Python is in its time."""
    pinocchio: Any = importlib.import_module("pinocchio")

    def place(x: float) -> Any:
        return pinocchio.SE3(np.eye(3), np.array([x, 0.0, 0.0]))

    model = pinocchio.Model()
    model.gravity.linear = np.array([0.0, -9.81, 0.0])
    joints: list[list[int]] = []
    for number in range(point.loops):
        hung = [(joints[-1][0] if number else 0, 1.0 if number else -0.5, 0.5)]
        joints.append([])
        for part in range(3):  # the right rail's link hangs by its lower end on the rung
            parent, x, centre = (*hung[0],) if part == 0 else (joints[-1][-1], 1.0, -0.5 if part == 2 else 0.5)
            joint = model.addJoint(parent, pinocchio.JointModelRZ(), place(x), f"{PARTS[part]} {number}")
            inertia = pinocchio.Inertia(1.0, np.array([centre, 0.0, 0.0]), np.eye(3))
            model.appendBodyToJoint(joint, inertia, pinocchio.SE3.Identity())
            joints[-1].append(joint)
    constraints, kept = pinocchio.StdVec_RigidConstraintModel(), pinocchio.StdVec_RigidConstraintData()
    for number, (_, _, right) in enumerate(joints):
        above, x = (joints[number - 1][2], 0.0) if number else (0, 0.5)
        kind = pinocchio.ContactType.CONTACT_3D
        frame = pinocchio.ReferenceFrame.LOCAL
        made = pinocchio.RigidConstraintModel(kind, model, above, place(x), right, place(-1.0), frame)
        constraints.append(made)
        kept.append(made.createData())
    data = model.createData()
    pinocchio.initConstraintDynamics(model, data, constraints, kept)
    settings = pinocchio.ProximalSettings(ACCURACY, PROXIMAL, ITERATIONS)
    angles, velocities, torques = point.angles.ravel(), point.velocities.ravel(), np.zeros(model.nv)

    def run(repetitions: int) -> None:
        for _ in range(repetitions):
            pinocchio.constraintDynamics(model, data, angles, velocities, torques, constraints, kept, settings)

    run(1)
    return Engine(run, deviation(np.array(data.ddq), point.accelerations.ravel()))


def implicit_step(point: LadderPoint) -> Engine:
    """Return implicit steps of Exudyn of rigid bodies in the plane with pins: sparse factors, one or two iterations."""
    exu, items = exudyn()
    container = exu.SystemContainer()
    system = container.AddSystem()
    ground = system.AddObject(items.ObjectGround())

    def marker(body: int, x: float) -> int:
        return system.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=[x, 0.0, 0.0]))

    def pin(one: int, other: int) -> None:
        system.AddObject(items.ObjectJointRevolute2D(markerNumbers=[one, other]))

    angles, rates = np.cumsum(point.angles, axis=1), np.cumsum(point.velocities, axis=1)
    turned, turning = (np.concatenate([[0.0], np.cumsum(each[:, 0])]) for each in (point.angles, point.velocities))
    angles, rates = angles + turned[:-1, np.newaxis], rates + turning[:-1, np.newaxis]
    tops = [(np.array([x, 0.0]), np.zeros(2), marker(ground, x)) for x in (-0.5, 0.5)]
    for angle, rate in zip(angles, rates, strict=True):
        along, across = (
            np.stack([np.cos(angle), np.sin(angle)], axis=1),
            np.stack([-np.sin(angle), np.cos(angle)], axis=1),
        )
        ends: list[tuple[np.ndarray, np.ndarray, int]] = []
        for part in range(3):
            place, moved, held = (tops[0], ends[0] if ends else tops[0], tops[1])[part]
            centre, velocity = place + 0.5 * along[part], moved + 0.5 * rate[part] * across[part]
            node = system.AddNode(
                items.NodeRigidBody2D(
                    referenceCoordinates=[*centre, angle[part]], initialVelocities=[*velocity, rate[part]]
                )
            )
            body = system.AddObject(items.ObjectRigidBody2D(mass=1.0, inertia=1.0, nodeNumber=node))
            whole = system.AddMarker(items.MarkerBodyMass(bodyNumber=body))
            system.AddLoad(items.LoadMassProportional(markerNumber=whole, loadVector=[0.0, -9.81, 0.0]))
            pin(held, marker(body, -0.5))
            ends.append((place + along[part], moved + rate[part] * across[part], marker(body, 0.5)))
        pin(ends[1][2], ends[2][2])
        tops = [ends[0], ends[2]]
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    settings.linearSolver.solverType = exu.LinearSolverType.EigenSparse
    settings.solution.file.write = False

    def run(steps: int, step: float = STEP) -> None:
        settings.timeIntegration.endTime, settings.timeIntegration.numberOfSteps = step * steps, steps
        system.SolveDynamic(settings, solverType=exu.DynamicSolverType.TrapezoidalIndex2, showHints=False)

    def second_rates(step: float) -> Floats:
        run(1, step)
        return np.array(system.systemData.GetODE2Coordinates_tt())[2::3].reshape(-1, 3)

    found = 2.0 * second_rates(0.5 * STEP) - second_rates(STEP)  # where the step vanishes
    expected = np.cumsum(point.accelerations, axis=1)
    carried = np.concatenate([[0.0], np.cumsum(point.accelerations[:, 0])])[:-1, np.newaxis]
    off = deviation(found, expected + carried)
    return Engine(lambda steps, kept=container: run(steps), off)  # noqa: ARG005 - the container lives as long
