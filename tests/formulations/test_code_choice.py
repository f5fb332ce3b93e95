"""Which form of code is chosen: the one that was measured to be the faster one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mbsfmu
from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody
from mbsfmu.formulations.formulation import FEW, faster_form, unrolled_is_faster
from mbsfmu.simulation.run_options import RunKeywords
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import LARGE, Code
from mbsfmu.tracing.kept_traces import Traces

PAGE = Path(mbsfmu.__file__).parents[1] / "docs" / "studies" / "large-mechanisms.md"
DISTURBED = 0.1
"""Share by which the slower form may be chosen: other work on the machine, and what no count of operations tells."""
AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))


def test_the_chosen_form_is_the_one_that_was_faster() -> None:
    (table,) = re.findall(r"<!-- choice -->(.*)<!-- end of choice -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.strip().splitlines()[2:]]
    assert {row[0].split(",")[0] for row in rows} == {"planar", "spatial", "spherical", "tree", "ladders"}
    for machine, coordinates, straight, loops, _, _, ratio, _, chosen in rows:
        if int(coordinates) > LARGE:
            assert chosen == "loops", machine
            continue
        assert (chosen == "straight") == unrolled_is_faster(int(straight), int(loops)), machine
        assert (float(ratio) if chosen == "straight" else 1.0 / float(ratio)) < 1.0 + DISTURBED, machine


def in_space(links: int) -> CoupledModel:
    """A chain with hinges about Z, Y and X in turn."""
    ends = ["ground.O", *(f"link_{index}.end" for index in range(links))]
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=tuple(
            RigidBody(name=f"link_{index}", mass=1.0, inertia=(1.0, 1.0, 1.0), points={"end": (1.0, 0.0, 0.0)})
            for index in range(links)
        ),
        joints=tuple(
            Revolute(name=f"joint_{index}", axis=AXES[index % 3], parent=ends[index], child=f"link_{index}.origin")
            for index in range(links)
        ),
    )
    return CoupledModel(name="in-space", systems={"mechanism": mechanism})


@pytest.mark.parametrize(
    ("model", "form"),
    [
        (in_space(7), Code.STRAIGHT),
        (in_space(24), Code.LOOPS),
        (in_space(FEW), None),
        (mbsfmu.models.pendulum(16), Code.STRAIGHT),
        (mbsfmu.models.ladder(2), Code.STRAIGHT),
        (mbsfmu.models.pendulum(LARGE + 1), None),
    ],
    ids=["short-in-space", "space", "few", "plane", "ladder", "large"],
)
def test_operations_choose_the_form(model: CoupledModel, form: Code | None) -> None:
    (mechanism,) = model.systems.values()
    assert isinstance(mechanism, Mechanism)
    assert form_of(mechanism, explicit=True) == form


@pytest.mark.parametrize(
    ("model", "form"),
    [
        (in_space(7), Code.STRAIGHT),
        (in_space(16), Code.LOOPS),
        (mbsfmu.models.pendulum(16), Code.STRAIGHT),
        (mbsfmu.models.pendulum(50), Code.LOOPS),
        (mbsfmu.models.ladder(4), Code.STRAIGHT),
        (mbsfmu.models.ladder(12), Code.LOOPS),
    ],
    ids=["short-in-space", "space", "short", "long", "few-loops", "loops"],
)
def test_code_of_implicit_steps_is_straight_where_it_is_short(model: CoupledModel, form: Code) -> None:
    """It is as long as operations times coordinates: about 130 n² of chains in the plane, 450 n² in space."""
    (mechanism,) = model.systems.values()
    assert isinstance(mechanism, Mechanism)
    assert form_of(mechanism, explicit=False) == form


def form_of(mechanism: Mechanism, *, explicit: bool) -> Code | None:
    """Return what is chosen where nothing is kept."""
    system = MechanismSystem(mechanism)
    return faster_form(system, None, Traces(), explicit=explicit, sequential=True)


@pytest.mark.parametrize(
    ("options", "loops"),
    [
        ({"formulation": "dca", "solver": "rk45"}, True),
        ({"formulation": "hdca", "solver": "rk45"}, True),
        ({"formulation": "dca", "solver": "rk45", "code": "straight"}, False),
        ({"formulation": "dca", "solver": "trapezoidal"}, True),
        ({"formulation": "dca-alm", "solver": "rk45"}, False),
    ],
)
def test_steps_of_divide_and_conquer_take_it(
    options: RunKeywords, *, loops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mbsfmu.formulations.formulation.faster_form", lambda *_, **__: Code.LOOPS)
    assert mbsfmu.models.pendulum(2).simulation(compiled=False, **options).functions.in_loops == loops
