"""Random machines with closed loops, some with a weak direction: positions and reactions in all formulations."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_machines import FORMULATIONS, Disagreement, disagreements, random_machine

from mbsfmu import CoupledModel, SimulationError
from mbsfmu.formulations import projection
from mbsfmu.simulation.run_result import Result

PASSING = 4
"""A machine whose weak direction becomes weaker than what counts as near a change point; `dca` takes minutes for it."""
SEEDS = (3, 8, 14, 22, 31)
"""Machines of each size, with one and two loops, general or planar, of all joints that there are; weak directions have
machines of their own below, and `benchmarks/random_loops.py` takes many more."""
BOUNDS = {"dca": 1e-8, "hdca": 1e-8, "dca-alm": 1e-8, "penalty": 1e-6}
"""Of positions, as shares of the size."""
REACTIONS = 1e-5
"""The same of reactions: 1e-10 of a position in a weak direction, whose singular value is down to 1e-4, is 1e-2 of the
acceleration there."""
MACHINES = Path(__file__).parents[1] / "machines"
NAMES = ("two-spatial-loops", "weak-loop")
SOLVERS: dict[str, dict[str, Any]] = {
    "trapezoidal": {"step": 5e-4},
    "dop853": {"relative_tolerance": 1e-9, "absolute_tolerance": 1e-9},
}
STOP = 0.04


SHARED_OUT = "dca-alm shares reactions out among redundant joints inexactly"
"""What is told of machines of centimetres and less with redundant joints."""


@pytest.mark.parametrize("seed", SEEDS)
def test_formulations_agree(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Equal steps have errors of their own, which are alike; a formulation that cannot be trusted says so."""
    found = disagreements(random_machine(seed))
    error = found.pop("error")
    assert isinstance(error, Disagreement)
    for formulation in FORMULATIONS:
        each = found[formulation]
        assert isinstance(each, Disagreement), f"{formulation}: {each}"
        own = (5.0 * error.positions, 5.0 * error.reactions) if formulation == "penalty" else (0.0, 0.0)
        assert each.positions < BOUNDS[formulation] + own[0], formulation
        if formulation != "dca-alm" or SHARED_OUT not in caplog.text:
            assert each.reactions < REACTIONS + own[1], formulation


@pytest.mark.parametrize(("seed", "warned"), [(17, True), (31, True), (3, False)])
def test_redundant_joints_of_small_machines_are_told(seed: int, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    random_machine(seed).simulation(formulation="dca-alm", compiled=False)
    assert (SHARED_OUT in caplog.text) == warned


def test_reactions_near_a_change_point_are_those_of_all_equations() -> None:
    """`penalty` left out the weakest equation there, and what it transmits with it."""
    model = random_machine(PASSING)
    step = model.stop_time / 100
    one, other = (
        model.simulation(formulation=formulation, step=step, compiled=False).run(model.stop_time)
        for formulation in ("penalty", "double-step")
    )
    forces = [name for name in other.names if ".force." in name]
    largest = max(np.max(np.abs(other[name])) for name in forces)
    assert max(np.max(np.abs(one[name] - other[name])) for name in forces) < 1e-4 * largest


def run(name: str, formulation: str, solver: str, *, compiled: bool = False) -> Result:
    model = CoupledModel.from_file(MACHINES / f"{name}.json")
    simulation = model.simulation(formulation=formulation, solver=solver, compiled=compiled, **SOLVERS[solver])
    return simulation.run(STOP, output_step=STOP / 5)


@cache
def expected(name: str, solver: str) -> Result:
    return run(name, "double-step", solver)


def same_reactions(result: Result, reference: Result) -> None:
    for kinds, tolerance in (((".force.", ".moment."), 1e-6), ((".position",), 1e-7)):
        names = [each for each in reference.names if any(kind in each for kind in kinds) and each in result.names]
        assert len(names) > 10
        largest = max(np.max(np.abs(reference[each])) for each in names)
        off = max(np.max(np.abs(result[each] - reference[each])) for each in names)
        assert off < tolerance * largest, kinds


@pytest.mark.parametrize(
    ("name", "formulation", "solver"),
    [
        *(("two-spatial-loops", formulation, "dop853") for formulation in ("dca", "hdca", "dca-alm")),
        *(("weak-loop", formulation, "trapezoidal") for formulation in ("dca", "hdca")),
        *((name, formulation, "trapezoidal") for name in NAMES for formulation in ("dca-alm", "penalty")),
    ],
)
def test_loops_with_weak_directions(name: str, formulation: str, solver: str) -> None:
    """Constraints hardly move bodies in one direction: Φ_q M⁻¹ Φ_qᵀ has an eigenvalue 1e-8 times the largest."""
    same_reactions(run(name, formulation, solver), expected(name, solver))


@pytest.mark.parametrize(("name", "formulation"), [("two-spatial-loops", "penalty"), ("weak-loop", "dca-alm")])
def test_compiled_runs_find_the_same(name: str, formulation: str) -> None:
    same_reactions(run(name, formulation, "trapezoidal", compiled=True), expected(name, "trapezoidal"))


def test_what_does_not_converge_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "MOST_GRADIENTS", 1)
    model = CoupledModel.from_file(MACHINES / "two-spatial-loops.json")
    sentence = r"the reactions do not converge: after 1 iterations that at joint \S+ .* take another formulation$"
    with pytest.raises(SimulationError, match=sentence):
        model.simulation(formulation="dca-alm", compiled=False).run(1e-3)


@pytest.mark.parametrize("solver", ["trapezoidal", "dop853"])
def test_kernel_loops_find_the_same(solver: str) -> None:
    model = CoupledModel.from_file(MACHINES / "two-spatial-loops.json")
    options = {"formulation": "dca-alm", "solver": solver, "code": "loops", "compiled": False, **SOLVERS[solver]}
    result = model.simulation(**options).run(STOP, output_step=STOP / 5)
    same_reactions(result, expected("two-spatial-loops", solver))
