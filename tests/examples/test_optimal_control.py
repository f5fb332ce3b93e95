"""CasADi loads FMUs for model exchange of FMI 3.0: its solvers, and an optimal control problem."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import casadi as ca
import numpy as np
import optimal_control
import pytest
from optimal_control import DURATION, INTERVALS, LIMIT, RAISED, Floats, Optimum

from mbsfmu.models import built_in
from mbsfmu.simulation.simulation import Simulation

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "optimal-control.md"
TIGHT = {"solver": "rodas5p", "relative_tolerance": 1e-10, "absolute_tolerance": 1e-10}
GRID = np.linspace(0.0, 0.5, 11)
COMMAND = 3.0


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return optimal_control.export(tmp_path_factory.mktemp("unit"))


@pytest.fixture(scope="module")
def optimum(unit: Path) -> Optimum:
    return optimal_control.optimum(unit)


def run(commands: Floats, length: float) -> Simulation:
    """Let the machine follow commands of the valve, each for so many s."""
    simulation = built_in("four-bar").simulation(**TIGHT)
    simulation.initialize()
    for number, command in enumerate(commands):
        simulation.set("valve.command", float(command))
        simulation.step(number * length, length)
    return simulation


@pytest.mark.parametrize("solver", ["cvodes", "idas"])
def test_casadi_integrates_to_what_a_tight_run_comes_to(unit: Path, solver: str) -> None:
    dae = optimal_control.load(unit)
    names = dae.x()
    flow, outputs = dae.create("flow", ["x", "u"], ["ode"]), dae.create("outputs", ["x", "u"], ["y"])
    x, u = ca.MX.sym("x", len(names)), ca.MX.sym("u")
    tight = {"reltol": 1e-9, "abstol": 1e-9}
    integrator = ca.integrator("run", solver, {"x": x, "p": u, "ode": flow(x, u)}, 0.0, GRID[-1], tight)
    end = np.array(integrator(x0=optimal_control.start_states(unit, names), p=COMMAND)["xf"]).ravel()
    simulation = run(np.array([COMMAND]), float(GRID[-1]))
    found: Mapping[str, float] = dict(zip(dae.y(), np.array(outputs(end, COMMAND)).ravel(), strict=True))
    for name in ("boom.angle", "rocker.angle", "cylinder.length", "cylinder.force", "cylinder.pressure_piston"):
        assert found[name] == pytest.approx(simulation.get(name), rel=1e-5, abs=1e-9), name


def test_jacobian_in_casadi_is_that_of_differences(unit: Path) -> None:
    """Where all moves, by states and the command; central differences of the rates."""
    dae = optimal_control.load(unit)
    names = dae.x()
    flow = dae.create("flow", ["x", "u"], ["ode"])
    jacobian = flow.factory("jacobian", ["x", "u"], ["jac:ode:x", "jac:ode:u"])
    nominal = np.array([dae.nominal(name) for name in names])
    point = optimal_control.start_states(unit, names) + 0.05 * nominal
    exact = np.hstack([np.array(ca.DM(each)) for each in jacobian(point, COMMAND)])
    for column in range(len(names) + 1):
        step = np.zeros(len(names) + 1)
        step[column] = 1e-6 * (nominal[column] if column < len(names) else LIMIT)
        sides = [np.array(flow(point + sign * step[:-1], COMMAND + sign * step[-1])).ravel() for sign in (1.0, -1.0)]
        differences = (sides[0] - sides[1]) / (2.0 * step[column])
        floor = 1e-9 * np.abs(sides[0]) / step[column] + 1e-7
        np.testing.assert_array_less(np.abs(exact[:, column] - differences), floor + 1e-5 * np.abs(differences))


def test_optimum_does_what_it_is_to_do_when_the_machine_follows_it(optimum: Optimum) -> None:
    """The commands are followed by a tight run of our own: between them and it is the error of collocation alone."""
    assert np.abs(optimum.commands).max() <= LIMIT
    length = DURATION / INTERVALS
    end = run(optimum.commands, length)
    assert optimum.angles[-1] == pytest.approx(RAISED, abs=1e-9)
    assert end.get("boom.angle") == pytest.approx(RAISED, abs=2e-5)
    assert end.get("boom.angular_velocity") == pytest.approx(0.0, abs=2e-3)
    for number in range(5, INTERVALS, 5):
        there = run(optimum.commands[:number], length)
        assert there.get("boom.angle") == pytest.approx(optimum.angles[number], abs=2e-5)


def test_optimum_is_cheaper_than_what_comes_near_it(optimum: Optimum) -> None:
    """A constant command of the same cost does not get further, and in the middle the commands are constant."""
    length = DURATION / INTERVALS
    assert optimum.cost == pytest.approx(length * float(optimum.commands @ optimum.commands), rel=1e-9)
    constant = np.full(INTERVALS, np.sqrt(optimum.cost / DURATION))
    assert run(constant, length).get("boom.angle") < RAISED + 2e-4
    middle = optimum.commands[4:-5]
    assert np.ptp(middle) < 0.01 * middle.mean()


def test_page_tells_what_is_found(optimum: Optimum, unit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    told = re.search(r"integral of the squared command is ([\d.]+) V² s", text)
    assert told is not None
    assert float(told[1]) == pytest.approx(optimum.cost, abs=0.01)
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(unit.parent)
    names: dict[str, object] = {}
    exec(block, names)  # the page is ours
    assert names["jacobian"] is not None
