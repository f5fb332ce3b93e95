"""Masts of many scissors: their loop equations are next to dependent, and lose rank where all bars are in line."""

from __future__ import annotations

import logging
import re
from math import cos, pi, sin

import numpy as np
import pytest

from mbsfmu import CoupledModel, Mechanism, Prismatic, Revolute, RigidBody, along
from mbsfmu.initialization.closing_loops import find_loop_equations
from mbsfmu.simulation.run_loop import RankWatch
from mbsfmu.stepping.state import State
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import NEAR, starts
from mbsfmu.tracing.workspace import Floats

STAGES, LEANING = 22, 0.7
TOLD = re.compile(r"mast: at t = (\S+) s the loop at joint M\d+ comes to a change point")


def mast(stages: int, leaning: float) -> CoupledModel:
    """Pairs of bars of 1 m one upon the other, hinged at their ends in two chains; their middles close the loops."""
    bars = tuple(
        RigidBody(
            name=f"{side}_{stage}", mass=1.0, inertia=(0.1, 0.1, 0.1), centre=along(0.5), length=1.0,
            points={"middle": along(0.5), "end": along(1.0)},
        )
        for stage in range(1, stages + 1)
        for side in "ab"
    )  # fmt: skip
    foot = RigidBody(name="foot", mass=1.0, inertia=(0.1, 0.1, 0.1))
    joints = [
        Prismatic(name="rail", parent="ground.A", child="foot.origin", axis=(1.0, 0.0, 0.0), displacement=cos(leaning))
    ]
    below, turned = ("ground.A", "foot.origin"), (leaning, pi - leaning)
    for stage in range(1, stages + 1):
        joints += [
            Revolute(name=f"{side}_{stage}", parent=parent, child=f"{side}_{stage}.origin", angle=angle)
            for side, parent, angle in zip("ab", below, turned, strict=True)
        ]
        joints.append(Revolute(name=f"M{stage}", parent=f"a_{stage}.middle", child=f"b_{stage}.middle", cut=True))
        below, turned = (f"b_{stage}.end", f"a_{stage}.end"), (2.0 * leaning - pi, pi - 2.0 * leaning)
    mechanism = Mechanism(ground={"A": (0.0, 0.0, 0.0)}, bodies=(*bars, foot), joints=tuple(joints))
    return CoupledModel(name="mast", systems={"machine": mechanism})


def motion(names: list[str], leaning: float, speed: float) -> tuple[Floats, Floats]:
    """Coordinates and velocities by name, from how the bars lean."""
    first = {"a_1": (leaning, 1.0), "b_1": (pi - leaning, -1.0), "foot": (cos(leaning), -sin(leaning))}
    crossing = pi - 2.0 * leaning
    others = {"a": (-crossing, 2.0), "b": (crossing, -2.0)}
    found = np.array([first.get(name) or others[name[0]] for name in names])
    return found[:, 0], speed * found[:, 1]


def watched(stages: int, leaning: Floats, speed: float) -> float:
    """Let a watch follow a mast through given angles, without any dynamics; return the share that it goes by."""
    mechanism = mast(stages, float(leaning[0])).systems["machine"]
    assert isinstance(mechanism, Mechanism)
    system = MechanismSystem(mechanism, name="mast")
    names = [each.name.partition(".")[0] for each in system.coordinates]
    whole = SystemFunctions(system)
    whole.parameters[:] = starts(system.parameters)
    loops = find_loop_equations(whole, motion(names, float(leaning[0]), speed)[0])
    functions = SystemFunctions(system, loops)
    functions.parameters[:] = whole.parameters
    watch = RankWatch(functions, loops.rank, max(loops.scales), loops.near, "")
    for angle in leaning.tolist():
        functions.coordinates[:], functions.velocities[:] = motion(names, angle, speed)
        assert np.max(np.abs(functions.gap()[0])) < 1e-12 * stages
        watch.follow((angle - float(leaning[0])) / speed, State.of(functions, functions.integrals, functions.integrals))
    return watch.near


@pytest.mark.parametrize(("begin", "end"), [(0.2, 1.4), (1.4, 0.2)])
def test_it_is_no_change_point_while_it_moves(caplog: pytest.LogCaptureFixture, begin: float, end: float) -> None:
    """From where bars lie nearly flat to where they nearly stand; its equations stand out by less than others may."""
    caplog.set_level(logging.WARNING)
    assert watched(STAGES, np.linspace(begin, end, 7), (end - begin) / 1.2) < 0.1 * NEAR
    assert not caplog.records


@pytest.mark.parametrize(
    ("stages", "begin", "end", "line"),
    [(22, 0.3, -0.25, 0.0), (23, 1.2, 1.85, 0.5 * pi), (22, 0.0, 0.3, 0.0), (22, 0.5 * pi, 1.0, 0.5 * pi)],
)
def test_where_all_bars_are_in_line_it_is_told(
    caplog: pytest.LogCaptureFixture, stages: int, begin: float, end: float, line: float
) -> None:
    """Between two points, and where it starts there."""
    caplog.set_level(logging.WARNING)
    watched(stages, np.linspace(begin, end, 7), 0.5 if end > begin else -0.5)
    (record,) = caplog.records
    found = TOLD.search(record.getMessage())
    assert found
    assert float(found[1]) == pytest.approx(abs(line - begin) / 0.5, abs=2e-3)
