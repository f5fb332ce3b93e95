"""Other engines on the machines of the study: how far their accelerations are from ours, and how long they take."""

from __future__ import annotations

import ctypes
import importlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi
import numpy as np
from flow import Floats
from machines import AXES, BALL, FREE, Machine, Point
from rates import HERE, Timed, pointer


@dataclass(frozen=True)
class Engine:
    """A machine in an engine.

    Attributes
    ----------
    run
        Evaluates so many times.
    deviation
        Largest difference of its accelerations from ours, as a share of the largest one.
    memory
        Bytes that the machine takes in it; 0 where it does not tell.
    """

    run: Timed
    deviation: float
    memory: int = 0


def deviation(found: Floats, expected: Floats) -> float:
    """Return the largest difference of accelerations as a share of the largest one."""
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def compiled_articulated_body(folder: Path, flags: tuple[str, ...] = ("-O2",)) -> ctypes.CDLL:
    """Compile Pinocchio's algorithm for the trees of this study."""
    package = importlib.import_module("pinocchio")
    prefix = next(parent for parent in Path(str(package.__file__)).parents if parent.name == "cmeel.prefix")
    library = folder / f"aba{''.join(flags)}.so"
    call = [
        os.environ.get("CXX", "g++"), "-std=c++17", *flags, "-DNDEBUG", "-fPIC", "-shared",
        "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "-w",
        f"-I{prefix / 'include'}", f"-I{Path(casadi.__file__).parent / 'include' / 'eigen3'}",
        str(HERE / "aba.cpp"), "-o", str(library),
        f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lpinocchio_default", "-lboost_serialization",
    ]  # fmt: skip
    subprocess.run(call, check=True)
    made = ctypes.CDLL(str(library))
    made.tree_new.restype = ctypes.c_void_p
    return made


class _Tree:
    """A tree of Pinocchio's, which goes when nobody has it any more."""

    def __init__(self, library: ctypes.CDLL, machine: Machine) -> None:
        self._library, count = library, len(machine.parents)
        numbers = [(ctypes.c_int * count)(*each) for each in (machine.parents, machine.joints)]
        places, taken = np.array(machine.places), ctypes.c_size_t()
        self.handle = ctypes.c_void_p(library.tree_new(count, *numbers, pointer(places), ctypes.byref(taken)))
        self.bytes = taken.value

    def __del__(self) -> None:
        self._library.tree_free(self.handle)


def articulated_body(library: ctypes.CDLL, point: Point, *, world: bool = False) -> Engine:
    """Return Pinocchio's algorithm at a point."""
    tree = _Tree(library, point.machine)
    joints = [
        each.in_child() if kind == FREE else each for each, kind in zip(point.joints, point.machine.joints, strict=True)
    ]
    positions, rates, expected = (
        np.concatenate([getattr(each, name) for each in joints]) for name in ("positions", "rates", "second_rates")
    )
    accelerations = np.zeros(len(rates))
    library.tree_move(tree.handle, pointer(positions), pointer(rates))

    def run(repetitions: int) -> None:
        library.timed(tree.handle, int(world), repetitions, pointer(accelerations))

    run(1)
    return Engine(run, deviation(accelerations, expected), tree.bytes)


def compiled_forward(folder: Path) -> ctypes.CDLL:
    """Compile the loop around MuJoCo's forward dynamics."""
    package = Path(str(importlib.import_module("mujoco").__file__)).parent
    library, own = folder / "forward.so", next(package.glob("libmujoco.so*"))
    call = [
        os.environ.get("CC", "gcc"), "-O2", "-fPIC", "-shared", f"-I{package / 'include'}", str(HERE / "forward.c"),
        "-o", str(library), str(own), f"-Wl,-rpath,{package}",
    ]  # fmt: skip
    subprocess.run(call, check=True)
    return ctypes.CDLL(str(library))


def forward(library: ctypes.CDLL, point: Point) -> Engine:
    """Return MuJoCo's forward dynamics at a point, without contacts and constraints."""
    mujoco: Any = importlib.import_module("mujoco")
    made = mujoco.MjSpec()
    made.option.gravity = [0.0, -9.81, 0.0]
    made.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    bodies: list[Any] = []
    machine = point.machine
    for parent, kind, hung in zip(machine.parents, machine.joints, machine.places, strict=True):
        place, on = ([0.0, 0.0, 0.0], made.worldbody) if parent < 0 else (hung, bodies[parent])
        inertia = {"mass": 1.0, "ipos": [0.5, 0.0, 0.0], "inertia": [1.0, 1.0, 1.0], "explicitinertial": True}
        name = f"joint {len(bodies)}"
        bodies.append(on.add_body(pos=place, **inertia))
        free = {BALL: mujoco.mjtJoint.mjJNT_BALL, FREE: mujoco.mjtJoint.mjJNT_FREE}.get(kind)
        options = {"type": mujoco.mjtJoint.mjJNT_HINGE, "axis": AXES[kind]} if free is None else {"type": free}
        bodies[-1].add_joint(name=name, **options)
    model = made.compile()
    data = mujoco.MjData(model)
    rates = []
    for index, each in enumerate(point.joints):
        joint = model.joint(f"joint {index}")  # MuJoCo has an order of its own
        place, own = joint.qposadr[0], each.positions.copy()
        if len(own) > 1:
            own[-4:] = np.roll(own[-4:], 1)  # w first
        data.qpos[place : place + len(own)] = own
        rates.append(joint.dofadr[0] + np.arange(len(each.rates)))
        data.qvel[rates[-1]] = each.rates
    addresses = [ctypes.c_void_p(each._address) for each in (model, data)]

    def run(repetitions: int) -> None:
        library.timed(*addresses, repetitions)

    run(1)
    off = deviation(data.qacc[np.concatenate(rates)], np.concatenate([each.second_rates for each in point.joints]))
    kept = model, data
    memory = model.nbuffer + data.nbuffer + data.maxuse_arena
    return Engine(lambda repetitions, kept=kept: run(repetitions), off, memory)  # noqa: ARG005 - they live as long


def explicit_step(point: Point) -> Engine:
    """Return explicit Euler steps of Exudyn in joint coordinates, of one evaluation each.

    An evaluation alone is not to be had: a step has the solver's own work in it. A ball is three hinges in turn, a free
    joint three slides before them, with links without mass between them.
    """
    exu, items = exudyn()
    kinds, parents, offsets, massive, last = [], [], [], [], [-1]
    turns, slides = [[f"{kind}{axis}" for axis in "XYZ"] for kind in ("Revolute", "Prismatic")]
    machine = point.machine
    for parent, kind, place in zip(machine.parents, machine.joints, machine.places, strict=True):
        free = {BALL: turns, FREE: [*slides, *turns]}
        own = free.get(kind) or [f"Revolute{'ZYX'[kind]}"]
        for index, each in enumerate(own):
            kinds.append(getattr(exu.JointType, each))
            parents.append(len(parents) - 1 if index else last[parent + 1])
            offsets.append(list(place) if index == 0 and parent >= 0 else [0.0, 0.0, 0.0])
            massive.append(float(index == len(own) - 1))
        last.append(len(parents) - 1)
    container = exu.SystemContainer()
    system, count = container.AddSystem(), len(kinds)
    node = system.AddNode(
        items.NodeGenericODE2(
            referenceCoordinates=[0.0] * count, initialCoordinates=point.coordinates.tolist(),
            initialCoordinates_t=point.velocities.tolist(), numberOfODE2Coordinates=count,
        )
    )  # fmt: skip
    matrices, vectors = exu.Matrix3DList, exu.Vector3DList
    system.AddObject(
        items.ObjectKinematicTree(
            nodeNumber=node, jointTypes=kinds, linkParents=parents, gravity=[0.0, -9.81, 0.0],
            jointTransformations=matrices([np.eye(3)] * count), jointOffsets=vectors(offsets),
            linkInertiasCOM=matrices([np.eye(3) * each for each in massive]),
            linkCOMs=vectors([[0.5 * each, 0.0, 0.0] for each in massive]), linkMasses=massive,
        )
    )  # fmt: skip
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.verboseMode = 0
    # The mass matrix of joint coordinates is full, and no output needs accelerations at the ends of steps.
    settings.linearSolver.solverType = exu.LinearSolverType.EigenDense
    settings.timeIntegration.explicitIntegration.computeEndOfStepAccelerations = False
    settings.solution.file.write = False

    def run(steps: int, step: float = 1e-9) -> None:
        settings.timeIntegration.endTime, settings.timeIntegration.numberOfSteps = step * steps, steps
        system.SolveDynamic(settings, solverType=exu.DynamicSolverType.ExplicitEuler, showHints=False)

    run(1, 1.0)  # velocities change by accelerations in a step of 1 s
    found = np.array(system.systemData.GetODE2Coordinates_t()) - point.velocities
    off = deviation(found, point.accelerations)
    return Engine(lambda steps, kept=container: run(steps), off)  # noqa: ARG005 - the container lives as long


def exudyn() -> tuple[Any, Any]:
    """Return Exudyn without checks of index ranges, at which it looks when it is imported, and its items."""
    sys.exudynFast = True  # pyright: ignore[reportAttributeAccessIssue]
    return importlib.import_module("exudyn"), importlib.import_module("exudyn.itemInterface")
