"""Sines and chirps drive a damped oscillator as SciPy integrates it, with every kind of solver, in Python and in C."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from oscillator_in_closed_form import DAMPING, MASS, SPEED, START, STIFFNESS, oscillator
from scipy.integrate import solve_ivp

import mbsfmu
from mbsfmu import CoupledModel, DataError, SineSignal
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.tracing.workspace import Floats

AMPLITUDE, FREQUENCY, PHASE, OFFSET, BEGIN, END, SWEEP = 20.0, 1.3, 0.4, 5.0, 0.3173, 2.4319, 1.7
CHIRP = SineSignal(
    amplitude=AMPLITUDE, frequency=FREQUENCY, phase=PHASE, offset=OFFSET, begin=BEGIN, end=END, sweep_rate=SWEEP
)
STOP = 3.0

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


def force(time: float) -> float:
    """The chirp written out."""
    elapsed = min(max(time - BEGIN, 0.0), END - BEGIN)
    return OFFSET + AMPLITUDE * math.sin(PHASE + 2.0 * math.pi * (FREQUENCY + 0.5 * SWEEP * elapsed) * elapsed)


def expected(times: Floats) -> Floats:
    """Displacements by SciPy, from bend to bend."""

    def rates(time: float, state: Floats) -> list[float]:
        return [state[1], (force(time) - STIFFNESS * state[0] - DAMPING * state[1]) / MASS]

    state, result = np.array([START, SPEED]), []
    for begin, end in ((0.0, BEGIN), (BEGIN, END), (END, STOP)):
        inside = times[(times >= begin) & (times < end)] if end < STOP else times[times >= begin]
        piece = solve_ivp(rates, (begin, end), state, "DOP853", dense_output=True, rtol=1e-12, atol=1e-12)
        result.append(piece.sol(inside)[0])
        state = piece.y[:, -1]
    return np.concatenate(result)


def driven(signal: SineSignal = CHIRP) -> CoupledModel:
    data = oscillator(driven=False)
    return CoupledModel(name="driven", systems=data.systems, signals={"mechanism.motor.force": signal}, stop_time=STOP)


def error(**options: Any) -> float:
    result = driven().simulation(**options).run(STOP, output_step=0.05)
    return float(np.max(np.abs(result["slider.displacement"] - expected(result.time))))


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_compiler)])
@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        ({"solver": "rk45"}, 1e-7),
        ({"solver": "rk4", "step": 1e-3}, 1e-8),
        ({"solver": "rodas5p"}, 1e-7),
        ({"solver": "rodas4", "formulation": "dca"}, 1e-7),
        ({"solver": "trapezoidal", "step": 1e-3}, 2e-5),
    ],
)
def test_chirp_drives_as_it_is_written(options: dict[str, Any], tolerance: float, compiled: bool) -> None:
    if "step" not in options:
        options = {**options, "relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
    assert error(**options, compiled=compiled) < tolerance


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_compiler)])
def test_stiff_solver_keeps_its_order_where_inputs_bend(compiled: bool) -> None:
    """Its steps need the slope of the input where they begin: without it they would be of order one or two."""
    steps = []
    for tolerance in (1e-7, 1e-10):
        options = {"solver": "rodas5p", "relative_tolerance": tolerance, "absolute_tolerance": tolerance, "step": STOP}
        steps.append(driven().simulation(**options, compiled=compiled).run(STOP).statistics.steps)
    assert steps[1] / steps[0] < 1e3 ** (1.0 / 5.0) * 1.15


@needs_compiler
def test_units_follow_it(tmp_path: Path) -> None:
    (path,) = mbsfmu.export(driven(), tmp_path, layout="monolithic", solver="rk45", relative_tolerance=1e-9)
    result = fmpy.simulate_fmu(str(path), stop_time=STOP, step_size=0.05, output_interval=0.05)
    assert np.max(np.abs(result["slider.displacement"] - expected(result["time"]))) < 1e-6


def test_values_slopes_and_bends() -> None:
    for time in (0.0, BEGIN, 1.0, 2.0, END, 9.0):
        assert CHIRP.after(time) == CHIRP.before(time) == pytest.approx(force(time), rel=1e-14)
        assert CHIRP.piece(time)(time) == pytest.approx(force(time), rel=1e-14)
    for time in (0.1, 0.5, 1.7, 2.43, 2.6):
        slope = (force(time + 1e-6) - force(time - 1e-6)) / 2e-6
        assert CHIRP.slope(time, time) == pytest.approx(slope, abs=1e-4)
    assert CHIRP.events == (BEGIN, END)
    assert SineSignal(amplitude=1.0, frequency=2.0).events == (0.0,)
    twice = CHIRP.mapped(2.0, 1.0)
    assert twice.after(1.0) == pytest.approx(2.0 * force(1.0) + 1.0, rel=1e-14)


def test_data() -> None:
    model = driven()
    assert CoupledModel.from_dict(model.to_dict()) == model
    with pytest.raises(DataError, match="end is 1 s; it must be after begin, 2 s"):
        SineSignal(amplitude=1.0, frequency=1.0, begin=2.0, end=1.0)
    with pytest.raises(DataError, match="frequency"):
        SineSignal(amplitude=1.0, frequency=-1.0)
