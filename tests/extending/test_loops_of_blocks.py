"""Systems that determine each other at once in linear equations, which are solved at every instant as by hand."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest
from looping import GAIN, GIVEN, SLOPE, Brake, Gain, Motor, Tank
from oscillator_in_closed_form import DAMPING, MASS, START, STIFFNESS, oscillator
from scipy.integrate import solve_ivp

import mbsfmu
from mbsfmu import CoupledModel, DataError, SimulationError
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.systems.system import starts


def ring(**changed: float | str) -> CoupledModel:
    systems = {"tank": Tank(), "gain": Gain(**changed)}
    return CoupledModel(
        name="ring", systems=systems, connections=(("tank.y", "gain.measured"), ("gain.told", "tank.u")), step=1e-3
    )


def by_hand(time: np.ndarray, gain: float = GAIN) -> tuple[np.ndarray, np.ndarray]:
    """x and y: u = given + gain y, y = x + slope u, so that y = (x + slope given) / (1 − slope gain)."""
    whole = 1.0 - SLOPE * gain
    x = GIVEN / -gain * (1.0 - np.exp(gain / whole * time))  # ẋ = (given + gain x) / whole
    return x, (x + SLOPE * GIVEN) / whole


@pytest.mark.parametrize(("solver", "tolerance"), [("trapezoidal", 1e-6), ("rk4", 1e-10), ("dop853", 3e-6)])
def test_a_ring_is_solved_as_by_hand(solver: str, tolerance: float) -> None:
    result = ring().simulation(solver=solver).run(1.0, output_step=0.1)
    x, y = by_hand(result.time)
    np.testing.assert_allclose(result["x"], x, atol=tolerance)
    np.testing.assert_allclose(result["y"], y, atol=tolerance)
    np.testing.assert_allclose(result["told"], GIVEN + GAIN * y, atol=3 * tolerance)
    assert result["y"][0] == pytest.approx(SLOPE * GIVEN / 2.5, rel=1e-15)


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_a_unit_solves_it_at_other_parameters_too(tmp_path: Path) -> None:
    (path,) = mbsfmu.export(ring(), tmp_path, layout="monolithic", solver="rk4", step=1e-3)
    read = {"output_interval": 0.1, "output": ["tank.x", "tank.y"]}
    result = fmpy.simulate_fmu(str(path), stop_time=1.0, start_values={"gain.gain": -0.5}, **read)
    x, y = by_hand(result["time"], -0.5)
    np.testing.assert_allclose(result["tank.x"], x, atol=1e-10)
    np.testing.assert_allclose(result["tank.y"], y, atol=1e-10)


def test_what_is_in_a_loop_depends_on_all_that_enters_it() -> None:
    simulation = ring().simulation()
    assert simulation.dependencies["tank.y"] == simulation.dependencies["gain.told"] == ("gain.given",)


def test_numbers_are_what_is_traced() -> None:
    system = ring().system()
    instant = system.instant(lambda _, size: np.zeros(size))
    instant.parameters[:], instant.inputs[:], instant.states[:] = starts(system.parameters), GIVEN, 0.7
    assert system.evaluate_outputs(instant)[0] == pytest.approx((0.7 + SLOPE * GIVEN) / 2.5, rel=1e-15)


def coupled(first: float, second: float, across: float) -> CoupledModel:
    """Two rings with connections between them, each block of which has the sum of two signals."""
    systems = {name: Gain(gain=gain) for name, gain in (("a", first), ("b", second), ("c", across), ("d", across))}
    lines = (("a.told", "b.measured"), ("b.told", "a.measured"), ("b.told", "c.measured"), ("c.told", "b.given"))
    return CoupledModel(name="rings", systems=systems, connections=(*lines, ("c.told", "d.measured")))


def test_rings_that_share_blocks_are_solved_together_and_what_reads_them_after() -> None:
    first, second, across = 0.3, -2.0, 1.7
    simulation = coupled(first, second, across).simulation()
    simulation.initialize()
    # a = g + first b, b = c + second a, c = g + across b, d = g + across c
    matrix = np.array([[1, -first, 0, 0], [-second, 1, -1, 0], [0, -across, 1, 0], [0, 0, -across, 1]])
    expected = np.linalg.solve(matrix, GIVEN * np.array([1, 0, 1, 1]))
    found = [simulation.get(f"{name}.told") for name in "abcd"]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def braked(free: float = 5.0) -> CoupledModel:
    plain = oscillator(driven=False).systems["mechanism"]
    mechanism = plain.model_copy(update={"forces": (plain.forces[0], Motor(name="motor", joint="rail"))})
    lines = (("mechanism.motor.power", "brake.power"), ("brake.force", "mechanism.motor.force"))
    return CoupledModel(name="braked", systems={"mechanism": mechanism, "brake": Brake(free=free)}, connections=lines)


@pytest.mark.parametrize("formulation", ["double-step", "dca-alm"])
def test_a_mechanism_in_a_loop(formulation: str) -> None:
    """Power is force times velocity: the slope changes with the motion, and F = 5 N − 0.8 s/m F v gives F."""
    result = braked().simulation(formulation=formulation, solver="rk4", step=1e-3).run(0.5, output_step=0.1)
    force = 5.0 / (1.0 + 0.8 * result["slider.velocity"])
    np.testing.assert_allclose(result["force"], force, rtol=1e-12)
    np.testing.assert_allclose(result["motor.power"], force * result["slider.velocity"], atol=1e-12)

    def rates(_: float, state: np.ndarray) -> list[float]:
        x, v = state
        return [v, (5.0 / (1.0 + 0.8 * v) - STIFFNESS * x - DAMPING * v) / MASS]

    begin = [result["slider.displacement"][0], result["slider.velocity"][0]]
    assert begin[0] == START
    expected = solve_ivp(rates, (0.0, 0.5), begin, t_eval=result.time, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(result["slider.displacement"], expected.y[0], atol=1e-9)


@pytest.mark.parametrize(("solver", "compiled"), [("rk4", False), ("trapezoidal", False), ("trapezoidal", True)])
def test_a_run_does_not_step_over_where_a_loop_determines_nothing(solver: str, compiled: bool) -> None:
    """Towards −1.25 m/s the force grows without bounds; behind it would be the other way round."""
    simulation = braked(-5.0).simulation(solver=solver, step=1e-3, compiled=compiled)
    with pytest.raises(SimulationError, match="t = 0"):
        simulation.run(1.0)


def test_a_loop_that_determines_nothing_is_refused_by_name() -> None:
    with pytest.raises(DataError, match=r"an algebraic loop of y, told; its gain is one"):
        ring(gain=1.0 / SLOPE).system()
