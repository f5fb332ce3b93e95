"""The equations that are given away, integrated by other people's solvers."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import mbsfmu
from mbsfmu import CoupledModel, Gain, InputError, SampledPidController


@pytest.mark.parametrize("name", ["four-bar", "loop-8"])
def test_a_solver_of_daes_finds_the_same_run(name: str) -> None:
    """IDAS of SUNDIALS, by the functions alone, against our own run with tight tolerances."""
    model = mbsfmu.models.built_in(name)
    given = model.casadi()
    left = given.residual(given.x.start, given.y.start, given.u.start, given.p.start).full()
    assert np.abs(left).max() < 1e-9
    inputs = np.full(len(given.u.names), 10.0)
    solver = ca.integrator("run", "idas", given.dae(), 0.0, [0.05], {"abstol": 1e-10, "reltol": 1e-10})
    found = solver(x0=given.x.start, z0=given.y.start, u=inputs, p=given.p.start)["xf"].full()[:, 0]
    tight: Any = {"relative_tolerance": 1e-10, "absolute_tolerance": 1e-10}
    simulation = model.simulation(formulation="double-step", solver="rodas5p", **tight)
    for each in given.u.names:
        simulation.set(each, 10.0)
    run = simulation.run(0.05)
    expected = np.array([run[each][-1] for each in given.x.names])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_without_loops_it_is_an_ordinary_differential_equation() -> None:
    """A chain of two pendulums, its accelerations solved for, by SciPy."""
    model = mbsfmu.models.built_in("pendulum-2")
    given = model.casadi()
    x, y, u, p = (ca.SX.sym(name, len(getattr(given, name).names)) for name in ("x", "y", "u", "p"))
    residual = given.residual(x, y, u, p)
    solved = -ca.solve(ca.jacobian(residual, y), ca.substitute(residual, y, 0))
    rates = ca.Function("rates", [x], [ca.substitute(given.rates(x, solved, u, p), p, ca.DM(given.p.start))])
    run = solve_ivp(lambda _, x: rates(x).full()[:, 0], (0.0, 0.5), given.x.start, rtol=1e-10, atol=1e-12)
    tight: Any = {"relative_tolerance": 1e-10, "absolute_tolerance": 1e-10}
    ours = model.simulation(formulation="dca", solver="dop853", **tight).run(0.5)
    for name, value in zip(given.x.names, run.y[:, -1], strict=True):
        assert value == pytest.approx(ours[name][-1], rel=1e-7, abs=1e-7)


def test_names_units_and_outputs() -> None:
    """Outputs are those of a simulation at its start."""
    model = mbsfmu.models.built_in("four-bar")
    given, simulation = model.casadi(), model.simulation()
    found = given.outputs(given.x.start, given.y.start, given.u.start, given.p.start).full()[:, 0]
    for name, value in zip(given.output_names, found, strict=True):
        assert value == pytest.approx(simulation.get(name), rel=1e-9, abs=1e-9), name
    units = dict(zip(given.x.names, given.x.units, strict=True))
    assert (units["rocker.angle"], units["rocker.angular_velocity"]) == ("rad", "rad/s")
    assert given.p.start[given.p.names.index("boom.mass")] == 225.0
    assert given.residual.name_in() == ["x", "y", "u", "p"]


def test_a_sampled_controller_is_refused() -> None:
    """Its updates are no functions of time and state."""
    blocks = {
        "controller": SampledPidController(name="pid", proportional=2.0, sample_time=0.01),
        "plant": Gain(name="plant", gain=1.0),
    }
    model = CoupledModel(name="sampled", systems=blocks)
    with pytest.raises(InputError, match="has sampled blocks or lines"):
        model.casadi()
    with pytest.raises(InputError, match="has sampled blocks or lines"):
        model.sensitivities(["plant.gain"], stop=1.0)
