"""Traces are kept by the structure of data: where only numbers of parameters differ, traced functions are the same.

All numbers of every built-in part are varied, one after the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import casadi as ca
import pytest
from documented import documented_components
from machine_of_parts import FORCES, SENSORS
from machine_of_parts import model as machine_of
from test_block_library import everything

from hydraulics import Circuit, Hose, Oil, Tank
from hydraulics.component import PortKind
from mbsfmu import Constraint, CoupledModel, DataError, Mechanism, RigidBody
from mbsfmu.base.errors import InputError
from mbsfmu.modelling.part import FAMILIES, is_built_in
from mbsfmu.parts import (
    Cylindrical,
    Differential,
    Distance,
    Fixed,
    Free,
    Gear,
    LinearCoupling,
    Mimic,
    Planar,
    PointOnLine,
    PointOnPlane,
    Prismatic,
    Revolute,
    Shaft,
    Spherical,
    Universal,
)
from mbsfmu.systems.concatenated_system import CoupledSystem
from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.systems.model_systems import systems_of, traced_content

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
AIRY = Oil(bulk_modulus=1.5e9, density=850.0, air_content=0.01, polytropic_index=1.3, vapour_pressure=200.0)
AIRLESS = Oil(bulk_modulus=1.5e9, density=850.0, air_content=0.0, vapour_pressure=100.0, conserves="volume")
ENDS: dict[type[Any], dict[str, Any]] = {
    Revolute: {"angle": 0.2, "angular_velocity": 0.1},
    Prismatic: {"displacement": 0.3, "velocity": 0.1},
    Cylindrical: {"displacement": 0.3, "velocity": 0.1, "angle": 0.2, "angular_velocity": 0.0},
    Universal: {"angles": (0.1, 0.2), "angular_velocities": (0.3, 0.4)},
    Planar: {"displacements": (0.1, 0.0), "velocities": (0.1, 0.2), "angle": 0.3, "angular_velocity": 0.1},
    Spherical: {"angles": (0.1, 0.2, 0.3), "angular_velocity": (0.1, 0.0, 0.3)},
    Free: {"angles": (0.1, 0.2, 0.3), "displacement": (0.1, 0.2, 0.3), "velocity": (0.1, 0.2, 0.3)},
    Fixed: {"orientation": (0.1, 0.2, 0.3)},
    PointOnLine: {"angles": (0.1, 0.2, 0.3), "displacement": 0.3, "velocity": 0.1},
    PointOnPlane: {"angles": (0.1, 0.2, 0.3), "displacements": (0.1, 0.0), "velocities": (0.1, 0.2)},
    Distance: {"length": 0.3},
}


def hung(kind: type[Any], *, cut: bool) -> CoupledModel:
    """A body on a joint, in the tree or as what closes a loop."""
    body = RigidBody(
        name="body",
        mass=2.0,
        inertia=(0.1, 0.2, 0.25),
        products_of_inertia=(0.01, 0.0, 0.02),
        centre=(0.1, 0.0, 0.05),
        points={"p": (0.4, 0.1, 0.0)},
    )
    joints = [kind(name="joint", parent="ground.O", child="body.origin", cut=cut, **ENDS[kind])]
    joints += [Free(name="carrier", parent="ground.O", child="body.p")] if cut or kind.only_closes else []
    mechanism = Mechanism(ground={"O": (0.0, 0.1, 0.0)}, bodies=(body,), joints=tuple(joints))
    return CoupledModel(name="hung", systems={"machine": mechanism})


CONSTRAINTS: tuple[Constraint, ...] = (
    Gear(name="link", driving="j1", driven="j2", ratio=-2.0),
    Mimic(name="link", joint="j1", leader="j2", multiplier=1.5, offset=0.1),
    Differential(name="link", one="j1", other="j2", carrier="j3"),
    LinearCoupling(name="link", joints=("j1", "j2", "j3"), factors_of_joints=(1.0, -2.0, 0.5)),
)


def geared(constraint: Constraint) -> CoupledModel:
    """Three wheels, and what holds between their angles."""
    bodies = tuple(RigidBody(name=f"w{each}", mass=1.0, inertia=(0.1, 0.1, 0.2)) for each in (1, 2, 3))
    joints = tuple(
        Revolute(name=f"j{each}", parent="ground.O", child=f"w{each}.origin", angle=0.1) for each in (1, 2, 3)
    )
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=bodies, joints=joints, constraints=(constraint,))
    return CoupledModel(name="geared", systems={"machine": mechanism})


def mounted(component: Any, oil: Oil) -> CoupledModel:
    """A component with a hose at each node that no source holds."""
    held = component.nodes(PortKind.HELD)
    filled = [node for node in dict.fromkeys(component.nodes()) if node not in held]
    hoses = [Hose(name=f"hose_{node}", node=node, volume=1e-4, bulk_modulus=2e8) for node in filled]
    others = () if held or filled else (Tank(name="other", node="N"),)
    pressures = dict.fromkeys(filled, 1e6)
    circuit = Circuit(oil=oil, components=(component, *hoses, *others), initial_pressures=pressures)
    return CoupledModel(name="mounted", systems={"circuit": circuit})


def of_page(name: str) -> Iterator[tuple[str, CoupledModel]]:
    """Models that the code of a page makes."""
    first, *blocks = re.findall(
        r"^```python\n(.*?)^```$", (REFERENCE / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    for number, block in enumerate(blocks):
        named: dict[str, Any] = {}
        exec(first + block, named)  # the page is ours
        yield f"{name}-{number}", named["model"]


MODELS: dict[str, CoupledModel] = {
    **{f"{each.type}-airy": mounted(each, AIRY) for each in documented_components()},
    **{f"{each.type}-airless": mounted(each, AIRLESS) for each in documented_components()},
    **{f"{kind.__name__}-tree": hung(kind, cut=False) for kind in ENDS},
    **{f"{kind.__name__}-cut": hung(kind, cut=True) for kind in ENDS if kind is not Free},
    **dict(of_page("mechanics.md")),
    **{f"{each.type}-constraint": geared(each) for each in CONSTRAINTS},
    "machine": machine_of(*FORCES, *SENSORS),
    **{name: CoupledModel(name="block", systems={name: block}) for name, block in everything().systems.items()},
    "blocks": everything(),
    "shaft": CoupledModel(name="block", systems={"shaft": Shaft(inertia=0.2)}),
}
"""Models of all built-in parts."""


LITERAL = {"filter", "sum", "map"}
"""Blocks without a number that is a parameter: a transfer function, a sum, and a table of two inputs."""


def places(data: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """The places of all numbers in plain data."""
    if isinstance(data, float):
        yield path
    for key, each in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(each, *path, key)


def with_number(data: Any, path: tuple[Any, ...], number: float) -> Any:
    """Plain data with another number in one place."""
    if not path:
        return number
    key, *rest = path
    if isinstance(data, dict):
        return {**data, key: with_number(data[key], tuple(rest), number)}
    return [with_number(each, tuple(rest), number) if index == key else each for index, each in enumerate(data)]


def number_at(data: Any, path: tuple[Any, ...]) -> float:
    for key in path:
        data = data[key]
    return data


def content(data: dict[str, Any], *, absolute: bool) -> str | None:
    """What traces of a model are kept by; None of numbers that are refused."""
    try:
        model = CoupledModel.from_dict(data)
        return repr(traced_content(model, systems_of(model, absolute=absolute)))
    except (DataError, InputError):
        return None


def traced(data: dict[str, Any], *, absolute: bool) -> str:
    """All vectors of a system that functions are made of, as a text."""
    model = CoupledModel.from_dict(data)
    system = CoupledSystem(model.name, systems_of(model, absolute=absolute), model.connections)
    given = SystemExpressions(system)
    found = [given.residual, given.all_closure, given.rates, given.all_drifts, given.all_drift_rates, given.outputs]
    found += [given.integral_rates, given.initial_integrals, given.start_limits, given.inertia_tensors]
    found += [given.updates, given.initial_discrete] if system.discrete else []
    if absolute:
        found += [given.constrained_residual, given.free_accelerations]
    elif system.coordinates:
        found += [given.initial_momenta, *given.forward_dynamics(0.0)]
    found += [given.reactions, *given.start.values()]
    symbols = list(given.symbol_by_part.values())
    return ca.Function("all", symbols, [ca.densify(each) for each in found]).serialize()


@pytest.mark.parametrize("name", MODELS)
def test_functions_of_equal_structure_are_equal(name: str) -> None:
    functions_stay(MODELS[name].to_dict(), absolute=False)


@pytest.mark.parametrize("name", ["machine", *(f"{kind.__name__}-tree" for kind in ENDS)])
def test_functions_in_absolute_coordinates_are_equal(name: str) -> None:
    functions_stay(MODELS[name].to_dict(), absolute=True)


def functions_stay(first: dict[str, Any], *, absolute: bool) -> None:
    """All numbers that leave the structure as it is are changed, of several values the first that is accepted."""
    before, changed, count = content(first, absolute=absolute), first, 0
    for path in places({"systems": first["systems"]}):
        number = number_at(first, path)
        for other in (0.0, 1.3 * number + 0.01, 1.01 * number, 3.0 * number) if number else (0.37, 1e-3):
            trial = with_number(changed, path, other)
            if other != number and content(trial, absolute=absolute) == before:
                changed, count = trial, count + 1
                break
    assert count or not LITERAL.isdisjoint(first["systems"])
    assert traced(changed, absolute=absolute) == traced(first, absolute=absolute)


def test_no_built_in_part_is_missing_here() -> None:
    text = json.dumps([each.to_dict() for each in MODELS.values()])
    types = set(re.findall(r'"type": "([a-z0-9-]+)"', text))
    for family in FAMILIES:
        assert {word for word, kind in family.known() if is_built_in(kind)} - types == set(), family.family
