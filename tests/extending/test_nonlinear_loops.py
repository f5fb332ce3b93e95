"""Loops that are not linear: solved by iteration at every instant, on one branch, or refused with the loop named."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from importer import Importer
from looping import GIVEN, SLOPE, Brake, Gain, Motor, Tank
from oscillator_in_closed_form import DAMPING, MASS, STIFFNESS, oscillator
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import mbsfmu
from mbsfmu import CoupledModel, InputError, SimulationError
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.native import traced_code
from mbsfmu.native.c_sources import UNIT, fmu_sources
from mbsfmu.systems.system import starts

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
BLOCKS = [str(Path(__file__).parent / "looping.py")]
SQUARE = -0.5  # gain of the square: y = x + slope (given + gain y²)


def ring(slope: float = SLOPE, **changed: float | str) -> CoupledModel:
    systems = {"tank": Tank(slope=slope), "gain": Gain(**changed)}
    lines = (("tank.y", "gain.measured"), ("gain.told", "tank.u"))
    return CoupledModel(name="ring", systems=systems, connections=lines, step=1e-3)


def squared(x: float, gain: float = SQUARE, *, upper: bool = True) -> float:
    """y of the ring, by the formula for quadratic equations."""
    root = np.sqrt(1.0 - 4.0 * SLOPE * gain * (x + SLOPE * GIVEN))
    return (1.0 - root if upper else 1.0 + root) / (2.0 * SLOPE * gain)


def filled(times: np.ndarray, gain: float = SQUARE, *, upper: bool = True) -> np.ndarray:
    """x of the ring, by SciPy."""

    def rates(_: float, x: np.ndarray) -> list[float]:
        return [GIVEN + gain * squared(x[0], gain, upper=upper) ** 2]

    return solve_ivp(rates, (0.0, times[-1]), [0.0], t_eval=times, rtol=1e-11, atol=1e-12).y[0]


@pytest.mark.parametrize(
    ("solver", "tolerance"),
    [("trapezoidal", 1e-6), ("rk4", 1e-10), ("rk45", 1e-6), ("rodas5p", 1e-6), ("dop853", 3e-6)],
)
def test_a_ring_with_a_square_is_solved_as_by_hand(solver: str, tolerance: float) -> None:
    result = ring(how="square", gain=SQUARE).simulation(solver=solver).run(1.0, output_step=0.1)
    np.testing.assert_allclose(result["x"], filled(result.time), atol=tolerance)
    np.testing.assert_allclose(result["y"], [squared(x) for x in result["x"]], rtol=1e-14)
    np.testing.assert_allclose(result["told"], GIVEN + SQUARE * result["y"] ** 2, rtol=1e-14)


def test_it_keeps_to_the_solution_that_it_began_with() -> None:
    result = ring(how="square", gain=SQUARE, begin=-6.0).simulation(solver="rk4").run(0.15, output_step=0.05)
    np.testing.assert_allclose(result["y"], [squared(x, upper=False) for x in result["x"]], rtol=1e-13)
    np.testing.assert_allclose(result["x"], filled(result.time, upper=False), atol=1e-8)


@pytest.mark.parametrize(
    ("solver", "compiled"), [("rk4", False), ("rk4", True), ("trapezoidal", True), ("rodas5p", True)]
)
def test_it_is_looked_for_from_where_it_was(solver: str, compiled: bool) -> None:
    """u = 2 + 1.9 sin y and y = x + 3 u have several solutions; ẏ = u / (1 − 5.7 cos y) stays on one of them."""
    begin = brentq(lambda y: y - 6.0 - 5.7 * np.sin(y), 8.0, 10.0)
    simulation = ring(how="wave", gain=1.9, begin=8.0, slope=3.0).simulation(
        solver=solver, compiled=compiled, step=5e-3
    )
    result = simulation.run(6.0, output_step=0.5)

    def rates(_: float, y: np.ndarray) -> list[float]:
        return [(2.0 + 1.9 * np.sin(y[0])) / (1.0 - 5.7 * np.cos(y[0]))]

    expected = solve_ivp(rates, (0.0, 6.0), [begin], t_eval=result.time, rtol=1e-11, atol=1e-11).y[0]
    np.testing.assert_allclose(result["y"], expected, atol=1e-5)


@pytest.mark.parametrize(("how", "begin"), [("saturated", 0.0), ("step", 9.0)])
def test_bends_and_steps_are_solved_where_there_is_a_solution(how: str, begin: float) -> None:
    """Y = x + slope (given + c) with c = ±1, or the solution of the linear ring between the two."""
    result = ring(how=how, begin=begin).simulation().run(2.0, output_step=0.25)
    high = result["x"] + SLOPE * (GIVEN - 1.0)
    linear = (result["x"] + SLOPE * GIVEN) / (1.0 + 3.0 * SLOPE)
    expected = np.where(-3.0 * linear > -1.0, linear, high) if how == "saturated" else high
    np.testing.assert_allclose(result["y"], expected, rtol=1e-14)


def vanishes(gain: float) -> tuple[float, float]:
    """When two solutions of the ring meet, and y there."""
    end = 1.0 / (4.0 * SLOPE * gain) - SLOPE * GIVEN
    x = np.linspace(0.0, end, 20001)
    y = np.array([squared(each, gain) for each in x[:-1]] + [1.0 / (2.0 * SLOPE * gain)])
    return float(np.trapezoid(1.0 / (GIVEN + gain * y**2), x)), float(y[-1])


@pytest.mark.parametrize(
    ("solver", "compiled"),
    [("trapezoidal", False), ("trapezoidal", True), ("rk4", True), ("rk45", True), ("dop853", False)],
)
def test_a_run_ends_where_the_solution_does(solver: str, compiled: bool) -> None:
    time, y = vanishes(0.2)
    simulation = ring(how="square", gain=0.2).simulation(solver=solver, compiled=compiled)
    with pytest.raises(
        SimulationError, match="no solution of an algebraic loop of y, told is found from measured = "
    ) as told:
        simulation.run(1.0)
    sentence = str(told.value)
    assert "it stays off by" in sentence
    numbers = [float(re.findall(rf"{name} = ([-\d.e]+)", sentence)[0]) for name in ("t", "measured")]
    assert numbers == [pytest.approx(time, abs=2e-3), pytest.approx(y, rel=0.05)]


def test_a_start_without_a_solution_is_refused_by_name() -> None:
    told = (
        r"at the start no solution of an algebraic loop of y, told is found from measured = 0 on: it stays off by 0.75"
    )
    with pytest.raises(InputError, match=told):
        ring(how="square", gain=2.0).simulation().initialize()


def test_numbers_are_what_is_traced() -> None:
    system = ring(how="square", gain=SQUARE).system()
    instant = system.instant(lambda _, size: np.zeros(size))
    instant.parameters[:], instant.inputs[:], instant.states[:] = starts(system.parameters), GIVEN, 0.7
    assert system.evaluate_outputs(instant)[0] == pytest.approx(squared(0.7), rel=1e-15)


def braked(formulation: str = "double-step", solver: str = "rk4", step: float = 1e-3) -> mbsfmu.Simulation:
    return braked_model().simulation(formulation=formulation, solver=solver, step=step)


def braked_model() -> CoupledModel:
    plain = oscillator(driven=False).systems["mechanism"]
    mechanism = plain.model_copy(update={"forces": (plain.forces[0], Motor(name="motor", joint="rail"))})
    lines = (("mechanism.motor.power", "brake.power"), ("brake.force", "mechanism.motor.force"))
    systems = {"mechanism": mechanism, "brake": Brake(bends=True)}
    return CoupledModel(name="braked", systems=systems, connections=lines)


def yielding(velocity: float) -> float:
    """F = 5 N − 0.5 N tanh(0.8 F v / W)."""
    return brentq(lambda force: force - 5.0 + 0.5 * np.tanh(0.8 * force * velocity), 4.0, 6.0, xtol=1e-15)


@pytest.fixture(scope="module")
def swings() -> Callable[[np.ndarray], np.ndarray]:
    """The braked oscillator's displacement, by SciPy."""

    def rates(_: float, state: np.ndarray) -> list[float]:
        x, v = state
        return [v, (yielding(v) - STIFFNESS * x - DAMPING * v) / MASS]

    solution = solve_ivp(rates, (0.0, 0.5), [0.3, 1.0], dense_output=True, rtol=1e-11, atol=1e-12)
    return lambda times: solution.sol(times)[0]


@pytest.mark.parametrize(
    ("formulation", "solver"),
    [
        *((each, "rk4") for each in ("hdca", "dca-alm")),
        *((each, "trapezoidal") for each in ("double-step", "hdca", "dca-alm", "penalty")),
        *((each, "rodas5p") for each in ("double-step", "dca")),
    ],
)
def test_a_mechanism_in_a_loop(formulation: str, solver: str, swings: Callable[[np.ndarray], np.ndarray]) -> None:
    result = braked(formulation, solver).run(0.5, output_step=0.1)
    force = [yielding(each) for each in result["slider.velocity"]]
    np.testing.assert_allclose(result["force"], force, rtol=1e-12)
    np.testing.assert_allclose(
        result["slider.displacement"], swings(result.time), atol=1e-9 if solver == "rk4" else 3e-6
    )
    scale = np.max(result["energy.kinetic"])
    assert np.max(np.abs(result["energy.drift"])) < (1e-9 if solver == "rk4" else 1e-5) * scale


def test_the_rule_keeps_its_order(swings: Callable[[np.ndarray], np.ndarray]) -> None:
    errors = [
        abs(braked(solver="trapezoidal", step=step).run(0.5)["slider.displacement"][-1] - swings(np.array([0.5]))[0])
        for step in (4e-3, 2e-3)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("solver", ["trapezoidal", "rk4", "rk45", "rodas5p"])
@needs_compiler
def test_compiled_runs_are_those_of_the_interpreter(solver: str) -> None:
    names = ("slider.displacement", "slider.velocity", "force", "energy.work")
    one, other = (
        braked_model().simulation(solver=solver, compiled=compiled).run(0.2, output_step=0.05)
        for compiled in (False, True)
    )
    for name in names:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-11, atol=1e-13)


@needs_compiler
def test_long_functions_with_loops_are_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = braked_model().simulation(solver="rk4").run(0.05)
    monkeypatch.setattr(traced_code, "_LONG", 20)
    monkeypatch.setattr(traced_code, "_PIECE", 7)
    cut = braked_model().simulation(solver="rk4").run(0.05)
    np.testing.assert_array_equal(cut["force"], whole["force"])
    np.testing.assert_array_equal(cut["slider.displacement"], whole["slider.displacement"])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_its_sources_compile_without_warnings(tmp_path: Path) -> None:
    for file, text in fmu_sources(braked("hdca"), "{guid}").items():
        (tmp_path / file).write_text(text)
    flags = ("-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wvla", "-fPIC", "-c")
    subprocess.run(["gcc", *flags, *UNIT[2]], cwd=tmp_path, check=True)


@pytest.mark.parametrize("backend", [pytest.param("native", marks=needs_compiler), "python"])
def test_a_unit_goes_on_from_a_saved_state_on_its_branch(backend: str, tmp_path: Path) -> None:
    with mbsfmu.load_parts(BLOCKS).given():
        model = ring(how="square", gain=SQUARE, begin=-6.0)
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", backend=backend, solver="rk4", step=1e-3)
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    assert importer.get(slave, "tank.y") == pytest.approx(squared(0.0, upper=False), rel=1e-14)
    slave.doStep(0.0, 0.05)
    saved, ends = slave.getFMUState(), []
    for _ in range(2):
        slave.setFMUState(saved)
        slave.doStep(0.05, 0.05)
        ends.append(importer.everything(slave))
    assert ends[0] == ends[1]
    x, y = importer.get(slave, "tank.x"), importer.get(slave, "tank.y")
    assert x == pytest.approx(filled(np.array([0.0, 0.1]), upper=False)[-1], abs=1e-9)
    assert y == pytest.approx(squared(x, upper=False), rel=1e-13)
    if backend == "python":  # which has no derivatives
        return
    # y = x + s (g + k y²), so that ∂y/∂g = s / (1 − 2 s k y)
    slope = slave.getDirectionalDerivative([importer.reference["tank.y"]], [importer.reference["gain.given"]], [1.0])[0]
    assert slope == pytest.approx(SLOPE / (1.0 - 2.0 * SLOPE * SQUARE * y), rel=1e-9)


@pytest.mark.parametrize("backend", [pytest.param("native", marks=needs_compiler), "python"])
def test_a_unit_tells_which_loop_has_no_solution(backend: str, tmp_path: Path) -> None:
    with mbsfmu.load_parts(BLOCKS).given():
        model = ring(how="square", gain=2.0)
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", backend=backend)
    importer = Importer(path, tmp_path / "unpacked")
    with pytest.raises(Exception, match="fmi2ExitInitializationMode"):
        importer.running()
    assert any(
        "no solution of an algebraic loop of y, told is found from measured = 0 on" in text
        for _, text in importer.messages
    )


def test_steps_that_need_second_derivatives_are_not_differentiated() -> None:
    """A solution of the iteration has first derivatives alone, which is all that trapezoidal steps need."""
    model = ring(how="square", gain=SQUARE)
    with pytest.raises(InputError, match="its second derivatives, which steps of 'rodas5p' take, are not known"):
        model.sensitivities(["tank.slope"], stop=0.01, solver="rodas5p")
