"""Algebraic loops: found, solved at the start and in iterated steps, refused by name where they have no solution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import LOOP, LinearSystem, export_linear, gain, gain_units

from mbsfmu import SimulationError, cosimulate
from mbsfmu.cosim.coupling.graph import Connection


@pytest.mark.parametrize("directional", [True, False])
@pytest.mark.parametrize("algorithm", ["fixed-point", "newton"])
def test_loop_is_solved_in_every_step(tmp_path: Path, algorithm: str, directional: bool) -> None:
    """y₁ = 0.5 y₂ + e^{−t}, y₂ = −3 y₁ + 1: a gain of −1.5, round which plain sweeps diverge."""
    files = gain_units(tmp_path, 0.5, -3.0, providesDirectionalDerivative=directional)
    result = cosimulate(files, connections=LOOP, algorithm=algorithm, extrapolation="linear", step=0.1, stop=1.0)
    first = (np.exp(-result.time) + 0.5) / 2.5
    np.testing.assert_allclose(result["first.y"], first, atol=1e-7)
    np.testing.assert_allclose(result["second.y"], 1.0 - 3.0 * first, atol=1e-7)
    assert result.notes == []


@pytest.mark.parametrize(("jacobian", "more"), [("directional", (0, 0)), ("differences", (1, 2))])
def test_newton_solves_a_linear_loop_at_once(tmp_path: Path, jacobian: str, more: tuple[int, int]) -> None:
    """One sweep to see, one to be there; slopes cost no step of an FMU that gives them, else one for each input, once.

    The loop is first.y = 0.5 second.v + e^{−t}, second.v = −3 first.y + second.w + 1, second.w = 0.4 first.y + 1;
    the slopes of the second unit are taken on −2 first.y.
    """
    first = gain("first", 0.5, 1.0)
    second = LinearSystem(
        "second",
        [np.zeros((1, 1)), np.zeros((1, 2)), np.ones((2, 1)), np.array([[1.5, 1.0], [-0.2, 0.0]])], [1.0],
        {"u": "1", "w_again": "1"}, {"v": "1", "w": "1"},
    )  # fmt: skip
    result = cosimulate(
        [export_linear(system, tmp_path, "rk4", 1e-2) for system in (first, second)], step=0.1, stop=1.0,
        connections=(
            "second.v=first.u", Connection(("first", "y"), ("second", "u"), factor=-2.0), "second.w=second.w_again",
        ),
        algorithm="newton", extrapolation="linear", jacobian=jacobian,
    )  # fmt: skip
    y = (np.exp(-result.time) + 0.5 * 2.0) / (1.0 + 0.5 * 2.6)
    np.testing.assert_allclose(result["first.y"], y, atol=1e-8)
    np.testing.assert_allclose(result["second.v"], 2.0 - 2.6 * y, atol=1e-8)
    np.testing.assert_allclose(result["second.w"], 1.0 + 0.4 * y, atol=1e-8)
    assert result.iterations == 2 * result.steps
    assert result.unit_steps == {
        name: 2 * result.steps + each for name, each in zip(("first", "second"), more, strict=True)
    }


def test_inputs_in_a_loop_take_a_first_guess(tmp_path: Path) -> None:
    """What the solution begins with may be given, though connections drive the inputs; it ends where it does anyway."""
    files = gain_units(tmp_path, 0.5, -0.5)
    result = cosimulate(files, connections=LOOP, parameters={"first.u": 7.0}, algorithm="newton", step=0.1, stop=0.1)
    assert result["first.y"][0] == pytest.approx(1.5 / 1.25, rel=1e-9)


def test_delayed_loop_is_told_and_wrong(tmp_path: Path) -> None:
    files = gain_units(tmp_path, 0.5, -0.5)
    result = cosimulate(files, connections=LOOP, algorithm="jacobi", step=0.1, stop=1.0)
    assert any("first.y, second.y make an algebraic loop" in note for note in result.notes)
    exact = (np.exp(-result.time) + 0.5) / 1.25
    assert result["first.y"][0] == pytest.approx(exact[0], rel=1e-9)
    assert np.max(np.abs(result["first.y"] - exact)) > 1e-3


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_loop_that_grows_is_told_at_the_end(tmp_path: Path, algorithm: str) -> None:
    """A gain of −1.08, extrapolated: the outputs, which are of the order of one, grow without bound, finite as yet."""
    files = gain_units(tmp_path, 0.9, -1.2)
    result = cosimulate(files, connections=LOOP, algorithm=algorithm, extrapolation="linear", step=0.1, stop=2.5)
    exact = (np.exp(-result.time) + 0.9) / 2.08
    assert np.max(np.abs(result["first.y"] - exact)) > 10.0
    assert any(note.startswith("the algebraic loop of first.y, second.y has come apart") for note in result.notes)


@pytest.mark.parametrize("extrapolation", ["zero", "linear"])
@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_loop_that_settles_has_not_come_apart(tmp_path: Path, algorithm: str, extrapolation: str) -> None:
    result = cosimulate(
        gain_units(tmp_path, 0.5, -0.3), connections=LOOP, algorithm=algorithm, extrapolation=extrapolation, step=0.1,
        stop=2.5,
    )  # fmt: skip
    assert not any("come apart" in note for note in result.notes)


def test_loop_without_a_solution_is_named(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=r"loop of first\.y, second\.y has no single solution"):
        cosimulate(gain_units(tmp_path, 2.0, 0.5), connections=LOOP, step=0.1, stop=1.0)


def test_chain_is_passed_on_in_its_order(tmp_path: Path) -> None:
    """Three gains one after the other, the last one first among the units: no loop, one pass, exact."""
    systems = gain("last", 2.0, 0.0), gain("middle", 3.0, 0.0), gain("head", 0.0, 0.0)
    files = [export_linear(system, tmp_path, "rk4", 1e-2) for system in systems]
    result = cosimulate(files, connections=("head.y=middle.u", "middle.y=last.u"), step=0.1, stop=0.1)
    assert [result[f"{name}.y"][0] for name in ("head", "middle", "last")] == [1.0, 4.0, 9.0]
    (note,) = result.notes  # and none of a loop
    assert note.startswith("nothing drives head.u")
    assert result.undriven == ["head.u"]
