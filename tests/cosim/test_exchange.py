"""What is handed on, and along which polynomials, against closed forms and conservation of energy."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import POINTER, c_double, c_ubyte
from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, MASSES, NAMES, STIFFNESSES, LinearSystem, export_linear, halves, whole
from numpy.typing import NDArray
from scipy.linalg import expm

from mbsfmu import StepSignal, cosimulate
from mbsfmu.compiling.compiler import SWITCH
from mbsfmu.cosim.compiled.coupled_step import go_on
from mbsfmu.cosim.compiled.library import ExchangeTable
from mbsfmu.cosim.compiled.member_step import extrapolate, interpolate, weigh
from mbsfmu.cosim.coupling.extrapolation import Extrapolation, OutputHistory, ends, mean
from mbsfmu.cosim.coupling.graph import Connection

Floats = NDArray[np.float64]


class Polynomials:
    """The tables of a history alone, without members, over a step in s."""

    def __init__(self, history: OutputHistory, step: float) -> None:
        self.polynomials = np.zeros((history.rows, len(history.now)))
        self.before, self.values = np.zeros(len(history.now)), np.zeros(len(history.now))
        self.flags, self.unknown = np.zeros((2, len(history.now)), dtype=np.uint8)
        self.unknown[history.unknown] = 1
        self.weights = np.zeros((2, history.rows * history.known.size))
        arrays = {
            "known": history.known,
            "polynomials": self.polynomials,
            "before": self.before,
            "values": self.values,
            "extrapolation": self.weights[0],
            "interpolation": self.weights[1],
        }
        flags = self.flags.ctypes.data_as(POINTER(c_ubyte))
        self.table = ExchangeTable(
            rows=history.rows,
            output_rows=history.rows,
            outputs=len(history.now),
            columns=len(history.now),
            known_rows=len(history.known),
            points=history.points,
            held=flags,
            unknown=self.unknown.ctypes.data_as(POINTER(c_ubyte)),
            takes_rates=history.extrapolation is Extrapolation.DERIVATIVES,
            step=step,
            length_count=len(history.lengths),
            **{name: each.ctypes.data_as(POINTER(c_double)) for name, each in arrays.items()},
        )
        self.table.lengths[: len(history.lengths)] = history.lengths
        weigh(self.table)


def extrapolated(history: OutputHistory, step: float) -> Floats:
    made = Polynomials(history, step)
    extrapolate(made.table)
    return made.polynomials


def interpolated(history: OutputHistory, step: float, end: Floats) -> Floats:
    made = Polynomials(history, step)
    interpolate(made.table, end.tolist(), 0, len(end))
    return made.polynomials


def push(history: OutputHistory, now: Floats, step: float, rates: Floats | None) -> None:
    made = Polynomials(history, step)
    made.values[:] = now
    go_on(made.table)
    if rates is not None:
        history.known[-1] = rates
    history.went_on(tuple(made.table.lengths[: made.table.length_count]))


LENGTHS = (0.3, 0.1, 0.25, 0.07)
"""Of steps in s, all different."""


@pytest.mark.parametrize(
    ("extrapolation", "coefficients"),
    [
        (Extrapolation.LINEAR, (2.0, -3.0, 0.0)),
        (Extrapolation.QUADRATIC, (2.0, -3.0, 5.0)),
        (Extrapolation.DERIVATIVES, (2.0, -3.0, 5.0)),
    ],
)
def test_polynomials_go_through_unequal_steps(extrapolation: Extrapolation, coefficients: tuple[float, ...]) -> None:
    """A polynomial of the degree that is used is continued as it is, whatever the lengths of the steps."""
    value = np.polynomial.Polynomial(coefficients)
    known = extrapolation is Extrapolation.DERIVATIVES
    slopes = np.array([value.deriv()(0.0)]) if known else None
    history = OutputHistory(extrapolation, np.array([value(0.0)]), slopes, [])
    time = 0.0
    for index, length in enumerate(LENGTHS):
        end = time + length
        if index >= (0 if known else extrapolation.degree):
            integral = (value.integ()(end) - value.integ()(time)) / length
            inside = interpolated(history, length, np.array([value(end)]))
            assert ends(inside)[0] == pytest.approx(value(end), rel=1e-12)
            assert mean(inside)[0] == pytest.approx(integral, rel=1e-12)
            if not known:
                outside = extrapolated(history, length)
                assert ends(outside)[0] == pytest.approx(value(end), rel=1e-12)
                assert mean(outside)[0] == pytest.approx(integral, rel=1e-12)
        time = end
        push(history, np.array([value(time)]), length, np.array([value.deriv()(time)]) if known else None)


def test_outputs_without_derivatives_run_through_points() -> None:
    """Where an FMU gives no derivative, the parabola to the end runs through the point before, at unequal steps too."""
    value = np.polynomial.Polynomial((2.0, -3.0, 5.0))
    history = OutputHistory(
        Extrapolation.DERIVATIVES, np.full(2, value(0.0)), np.array([value.deriv()(0.0), np.nan]), []
    )
    push(history, np.full(2, value(0.3)), 0.3, np.array([value.deriv()(0.3), 0.0]))
    exact = (value.integ()(0.4) - value.integ()(0.3)) / 0.1
    np.testing.assert_allclose(mean(interpolated(history, 0.1, np.full(2, value(0.4)))), exact, rtol=1e-12)


PUSH = StepSignal(times=(0.4,), values=(50.0,))


def pushed_halves() -> tuple[LinearSystem, LinearSystem]:
    """The oscillator; the velocity that the first mass gives drives the second one, a push from outside the first."""
    one, two = halves()
    a, b, c, d = one.matrices
    matrices = [a, np.hstack([b, b]), c, np.hstack([d, d])]
    inputs = {"force": "N", "push": "N"}
    outputs = {"position": "m", "speed": "m/s", "velocity": "m/s"}
    return LinearSystem("one", matrices, [0.1, 0.0], inputs, outputs), two


@pytest.mark.parametrize("algorithm", ["jacobi", "newton"])
def test_the_past_is_forgotten_at_a_jump(tmp_path: Path, algorithm: str) -> None:
    """Forces have a kink where the push begins; polynomials through it would cost the third order."""
    units = [export_linear(system, tmp_path, "rk4", 1e-3) for system in pushed_halves()]
    wide = np.zeros((5, 5))
    wide[:4, :4], wide[1, 4] = whole(), PUSH.values[0] / MASSES[0]
    before = expm(whole() * 0.4) @ [0.1, 0.0, 0.1, 0.0]
    exact = (expm(wide * 0.4) @ np.append(before, 1.0))[:4]
    steps, errors = (0.02, 0.01, 0.005), []
    for step in steps:
        result = cosimulate(
            units, connections=CONNECTIONS, inputs={"one.push": PUSH}, step=step, stop=0.8, algorithm=algorithm,
            extrapolation="quadratic",
        )  # fmt: skip
        errors.append(np.max(np.abs([result[name][-1] for name in NAMES] - exact)))
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] > 2.8


def test_error_control_forgets_it_too(tmp_path: Path) -> None:
    """Three pushes at known times: no step after them is a thousandth of what the motion asks for."""
    units = [export_linear(system, tmp_path, "rk4", 1e-3) for system in pushed_halves()]
    pushes = StepSignal(times=(0.4, 0.9, 1.4), values=(100.0, -50.0, 70.0))
    result = cosimulate(
        units, connections=CONNECTIONS, inputs={"one.push": pushes}, step=0.01, stop=2.0, control="error",
        extrapolation="quadratic", tolerance=1e-5, smallest_step=1e-7, algorithm="jacobi",
    )  # fmt: skip
    assert result.smallest_step > 0.01 * np.median(np.diff(result.time))


def test_gauss_seidel_hands_on_along_a_whole_chain(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    """Through three FMUs that give what they take, in the step in which the source has it."""
    units = [foreign("source")]
    for name in ("first", "second", "third"):
        units.append(tmp_path / f"{name}.fmu")
        units[-1].write_bytes(foreign("feed_through").read_bytes())
    chain = ("source", "first", "second", "third")
    connections = ["source.sine=first.real_in", "first.real_out=second.real_in", "second.real_out=third.real_in"]
    result = cosimulate(units, connections=connections, step=0.1, stop=1.0, algorithm="gauss-seidel", order=chain)
    np.testing.assert_allclose(result["source.sine"], 1000.0 * np.sin(2.0 * np.pi * result.time), atol=1e-9)
    np.testing.assert_array_equal(result["third.real_out"][1:], result["source.sine"][1:])


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_residual_energy_is_what_the_oscillator_gains(tmp_path: Path, algorithm: str) -> None:
    """Without dampers, kinetic energy and that of the springs change by what the coupling brings in alone."""
    units = [export_linear(system, tmp_path, "rk4", 1e-3) for system in halves(damping=0.0)]
    result = cosimulate(units, connections=CONNECTIONS, step=2e-3, stop=2.0, algorithm=algorithm)
    kinetic = 0.5 * MASSES[0] * result["one.speed"] ** 2 + 0.5 * MASSES[1] * result["two.speed"] ** 2
    springs = 0.5 * STIFFNESSES[0] * result["one.position"] ** 2 + 0.5 * result["two.force"] ** 2 / STIFFNESSES[1]
    gained = kinetic + springs - (kinetic + springs)[0]
    (residual,) = (result[name] for name in result.names if name.startswith("energy_residual."))
    assert np.max(np.abs(gained)) > 1e-4
    np.testing.assert_allclose(residual, gained, atol=0.01 * np.max(np.abs(gained)))


def test_correction_makes_held_inputs_good_for_second_order(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    """An integrator of a held sine lags by half a step; what a step misses is added to the next one."""
    matrices = [np.array([[value]]) for value in (0.0, 1.0, 1.0, 0.0)]
    integrator = export_linear(LinearSystem("sum", matrices, [0.0], {"u": "1"}, {"x": "1"}), tmp_path, "rk4", 1e-2)
    steps, slopes = (0.04, 0.02, 0.01), []
    for correction in (False, True):
        errors = []
        for step in steps:
            result = cosimulate(
                [foreign("source"), integrator], step=step, stop=0.2, algorithm="jacobi", energy_correction=correction,
                connections=["source.sine=sum.u"], parameters={"source.frequency": 1.0},
            )  # fmt: skip
            exact = 1000.0 * (1.0 - np.cos(2.0 * np.pi * 0.2)) / (2.0 * np.pi)
            errors.append(abs(result["sum.x"][-1] - exact))
        slopes.append(np.polyfit(np.log(steps), np.log(errors), 1)[0])
    assert slopes[0] == pytest.approx(1.0, abs=0.15)
    assert slopes[1] == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize("compiled", ["0", "1"])
@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_correction_is_that_of_the_transformed_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str, compiled: str
) -> None:
    """∫ (3 − 2 y) dt of y = 2 − t: what held values miss of it is made up for, but for −2 (−h²/2) of the last step."""
    monkeypatch.setenv(SWITCH, compiled)
    falling = LinearSystem(
        "falling", [np.array([[0.0, -1.0], [0.0, 0.0]]), np.zeros((2, 0)), np.eye(1, 2), np.zeros((1, 0))], [2.0, 1.0],
        {}, {"y": "1"},
    )  # fmt: skip
    integral = LinearSystem("sum", [np.array([[each]]) for each in (0.0, 1.0, 1.0, 0.0)], [0.0], {"u": "1"}, {"x": "1"})
    result = cosimulate(
        [export_linear(system, tmp_path, "rk4", 1e-2) for system in (integral, falling)], step=0.1, stop=1.0,
        connections=[Connection(("falling", "y"), ("sum", "u"), factor=-2.0, offset=3.0)],
        algorithm=algorithm, extrapolation="zero", energy_correction=True,
    )  # fmt: skip
    time = result.time[1:]
    exact = 3.0 * time - 2.0 * (2.0 * time - 0.5 * time**2)
    np.testing.assert_allclose(result["sum.x"][1:], exact - 2.0 * 0.5 * 0.1**2, atol=1e-12)
