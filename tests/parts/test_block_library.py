"""The library of blocks against closed forms, SciPy's signals and integrators, and loops written out."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import RegularGridInterpolator
from scipy.signal import lsim

from mbsfmu import (
    Block,
    CoupledModel,
    DataError,
    DeadZone,
    FirstOrder,
    Gain,
    Integrator,
    Limiter,
    LinearSignal,
    PidController,
    RateLimiter,
    SampledPidController,
    SecondOrder,
    SineSignal,
    Sum,
    Table,
    Table2D,
    TransferFunction,
)
from mbsfmu.base.physical_units import combined
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.io.signals import AnySignal
from mbsfmu.simulation.run_result import Result
from mbsfmu.tracing.workspace import Floats

WAVE = SineSignal(amplitude=2.0, frequency=0.7, phase=0.3)
STOP = 3.0
EXACT: dict[str, Any] = {"solver": "dop853", "relative_tolerance": 1e-11, "absolute_tolerance": 1e-11}


def wave(time: float | Floats) -> Any:
    return 2.0 * np.sin(0.3 + 2.0 * math.pi * 0.7 * time)


def alone(block: Block, signals: dict[str, AnySignal], **options: Any) -> Result:
    model = CoupledModel(
        name="alone", systems={"block": block}, signals={f"block.{name}": each for name, each in signals.items()}
    )
    return model.simulation(compiled=False, **options).run(STOP, output_step=0.02)


def integrated(rates: Callable[[float, Floats], Any], start: list[float], times: Floats) -> Floats:
    return solve_ivp(rates, (0.0, STOP), start, "DOP853", times, rtol=1e-11, atol=1e-11, max_step=5e-3).y


# -- without states -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (Gain(gain=-3.0, offset=0.5), lambda u: 0.5 - 3.0 * u),
        (Limiter(minimum=-1.5, maximum=0.5), lambda u: min(max(u, -1.5), 0.5)),
        (DeadZone(start=-0.5, end=1.0), lambda u: u - 1.0 if u > 1.0 else min(u + 0.5, 0.0)),
        (
            Table(points=((-1.0, 3.0), (0.0, 0.0), (1.5, 2.0))),
            lambda u: np.interp(u, (-1.0, 0.0, 1.5), (3.0, 0.0, 2.0)),
        ),
    ],
)
def test_static_blocks(block: Block, expected: Callable[[float], float]) -> None:
    result = alone(block, {"input": WAVE})
    np.testing.assert_allclose(result["output"], [expected(wave(time)) for time in result.time], rtol=0, atol=1e-14)


def test_sum_follows_its_signs() -> None:
    sine = SineSignal(amplitude=1.0, frequency=2.0)
    signals = {"input_1": WAVE, "input_2": LinearSignal.ramp(0.0, STOP, 6.0), "input_3": sine}
    result = alone(Sum(signs="+-+", unit="m"), signals)
    expected = wave(result.time) - 2.0 * result.time + np.sin(4.0 * math.pi * result.time)
    np.testing.assert_allclose(result["output"], expected, atol=1e-13)


def test_tables_of_two_inputs_are_bilinear() -> None:
    rows, columns = (-1.0, 0.2, 1.0), (0.0, 1.0, 1.5, 4.0)
    values = ((0.0, 1.0, -2.0, 3.0), (2.0, 2.5, 0.0, 1.0), (-1.0, 4.0, 0.5, 0.25))
    signals = {"row": WAVE, "column": LinearSignal.ramp(0.0, STOP, 6.0, offset=-1.0)}
    result = alone(Table2D(rows=rows, columns=columns, values=values), signals)
    grid = RegularGridInterpolator((rows, columns), np.array(values))
    places = np.stack([np.clip(wave(result.time), -1.0, 1.0), np.clip(2.0 * result.time - 1.0, 0.0, 4.0)], axis=1)
    np.testing.assert_allclose(result["output"], grid(places), atol=1e-13)


# -- with states --------------------------------------------------------------------------------------------


def test_lags_have_their_closed_forms() -> None:
    first = alone(
        FirstOrder(gain=3.0, time_constant=0.4, initial_output=1.0), {"input": LinearSignal.ramp(0, 3, 3)}, **EXACT
    )
    time = first.time
    expected = 3.0 * (time - 0.4) + (1.0 + 1.2) * np.exp(-time / 0.4)
    np.testing.assert_allclose(first["output"], expected, atol=1e-9)
    second = alone(SecondOrder(gain=2.0, natural_frequency=5.0, damping_ratio=0.2, initial_output=0.7), {}, **EXACT)
    damped = 5.0 * math.sqrt(1.0 - 0.04)
    decay = 0.7 * np.exp(-time) * (np.cos(damped * time) + np.sin(damped * time) / damped)
    np.testing.assert_allclose(second["output"], decay, atol=1e-9)


def test_outputs_of_a_table_are_parameters() -> None:
    """What is set counts as a table that was given so, in the output's unit; derivatives are hat functions."""
    places, values = (-1.0, 0.0, 1.5), (3.0, 0.0, 2.0)
    table = Table(points=tuple(zip(places, values, strict=True)), output_unit="V")
    model = CoupledModel(name="alone", systems={"block": table}, signals={"block.input": WAVE}, outputs=("block.*",))
    simulation = model.simulation(compiled=False)
    named = {each.name: each for each in simulation.variables if "points" in each.name}
    assert {name: each.unit for name, each in named.items()} == {f"points_{number}": "V" for number in (1, 2, 3)}
    assert "at 1.5" in named["points_3"].description
    simulation.set("points_2", -4.0)
    result = simulation.run(STOP, output_step=0.02)
    assert result["output"] == pytest.approx(np.interp(wave(result.time), places, (3.0, -4.0, 2.0)))
    slopes = model.sensitivities(tuple(named), ("output",), stop=STOP)
    for number, row in enumerate(np.eye(3), start=1):
        hat = np.interp(wave(slopes.time), places, row)
        assert slopes.derivative("output", f"points_{number}") == pytest.approx(hat, abs=1e-12)


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [((2.0,), (0.5, 1.0)), ((1.0, 3.0), (2.0, 0.4, 8.0)), ((0.5, 0.0, 1.0), (0.25, 0.5, 2.0)), ((1.0,), (1, 2, 9, 4))],
)
def test_transfer_functions_are_those_of_scipy(numerator: tuple[float, ...], denominator: tuple[float, ...]) -> None:
    ramp = LinearSignal(times=(0.0, 1.0, 2.0, 3.0), values=(0.0, 2.0, -1.0, -1.0))
    result = alone(TransferFunction(numerator=numerator, denominator=denominator), {"input": ramp}, **EXACT)
    _, expected, _ = lsim((numerator, denominator), np.interp(result.time, ramp.times, ramp.values), result.time)
    np.testing.assert_allclose(result["output"], expected, atol=1e-8)


def test_gain_of_a_transfer_function_at_a_frequency() -> None:
    """Behind its start the output is |G(iω)| sin(ωt + arg G(iω))."""
    block = TransferFunction(numerator=(1.0, 4.0), denominator=(1.0, 12.0, 40.0))
    result = alone(block, {"input": SineSignal(amplitude=1.0, frequency=1.5)}, **EXACT)
    s = 2j * math.pi * 1.5
    response = (s + 4.0) / (s**2 + 12.0 * s + 40.0)
    late = result.time > 2.5
    expected = np.abs(response) * np.sin(2.0 * math.pi * 1.5 * result.time + np.angle(response))
    np.testing.assert_allclose(result["output"][late], expected[late], atol=1e-6)


def test_integrator_leaves_its_limit_when_its_input_turns() -> None:
    slope = LinearSignal(times=(0.0, 1.5, 1.5001, 3.0), values=(1.0, 1.0, -1.0, -1.0))
    options = {"solver": "rk45", "relative_tolerance": 1e-9, "absolute_tolerance": 1e-9, "step": 1e-3}
    result = alone(Integrator(gain=2.0, maximum=1.0, tracking_time=0.005), {"input": slope}, **options)
    # It is beyond the limit by gain · input · tracking time, and comes back from there within tracking time · ln 2.
    expected = np.clip(2.0 * result.time, None, 1.0)
    later = result.time > 1.5
    expected[later] = np.minimum(1.0 - 2.0 * (result.time[later] - 1.50005 - 0.005 * math.log(2.0)), 1.0)
    np.testing.assert_allclose(result["output"], expected, atol=2e-4)
    assert np.max(result["output"]) == 1.0
    free = alone(Integrator(gain=2.0, initial_output=-0.5), {"input": slope}, **EXACT)
    np.testing.assert_allclose(free["output"][~later], 2.0 * free.time[~later] - 0.5, atol=1e-9)


def test_rate_limiter_rises_and_falls_at_its_rates() -> None:
    jump = LinearSignal(times=(0.2, 0.2001, 1.5, 1.5001), values=(0.0, 1.0, 1.0, -3.0))
    options = {"solver": "rk45", "relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
    result = alone(RateLimiter(rising=2.0, falling=4.0, response_time=1e-3), {"input": jump}, **options)
    expected = np.clip(2.0 * (result.time - 0.2), 0.0, 1.0) - np.clip(4.0 * (result.time - 1.5), 0.0, 4.0)
    assert np.max(np.abs(result["output"] - expected)) < 4.0 * 1.1e-3


# -- controllers --------------------------------------------------------------------------------------------

GAINS: dict[str, Any] = {"proportional": 3.0, "integral": 4.0, "derivative": 0.5}
WEIGHTS: dict[str, Any] = {"setpoint_weight": 0.6, "derivative_weight": 0.3}
STEP = LinearSignal(times=(0.0, 0.05), values=(0.0, 1.0))


@pytest.mark.parametrize("limits", [{}, {"minimum": -0.4, "maximum": 1.2, "tracking_time": 0.2}])
def test_pid_in_a_loop_is_what_its_equations_say(limits: dict[str, float]) -> None:
    """Behind it is the plant ẏ = u - 0.5 y."""
    controller = PidController(
        **GAINS, **WEIGHTS, **limits, filter_time=0.05, initial_integral=0.1, with_feedforward=True
    )
    model = CoupledModel(
        name="loop",
        systems={"pid": controller, "plant": FirstOrder(gain=2.0, time_constant=2.0, initial_output=0.2)},
        connections=[("pid.command", "plant.input"), ("plant.output", "pid.measured")],
        signals={"pid.setpoint": STEP, "pid.feedforward": WAVE},
    )
    options = {**EXACT, "solver": "rk45", "relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
    result = model.simulation(compiled=False, **options).run(STOP, output_step=0.02)

    def command(time: float, state: Floats) -> tuple[float, float, float, float]:
        setpoint = min(time / 0.05, 1.0)
        y, integral, filtered = state
        slope = (0.3 * setpoint - y - filtered) / 0.05
        wanted = 3.0 * (0.6 * setpoint - y) + integral + 0.5 * slope + wave(time)
        return wanted, min(max(wanted, limits.get("minimum", -1e9)), limits.get("maximum", 1e9)), setpoint, slope

    def rates(time: float, state: Floats) -> list[float]:
        wanted, held, setpoint, slope = command(time, state)
        back = (held - wanted) / limits.get("tracking_time", 1.0)
        return [held - 0.5 * state[0], 4.0 * (setpoint - state[0]) + back, slope]

    expected = integrated(rates, [0.2, 0.1, 0.0], result.time)
    np.testing.assert_allclose(result["output"], expected[0], atol=2e-6)
    commands = [command(time, state)[1] for time, state in zip(result.time, expected.T, strict=True)]
    np.testing.assert_allclose(result["command"], commands, atol=2e-5)


def test_sampled_pid_in_a_loop_is_what_its_equations_say() -> None:
    """The plant ẏ = u - 0.5 y has a closed form between instants."""
    period, tracking, filter_time = 0.07, 0.2, 0.03
    controller = SampledPidController(
        **GAINS,
        **WEIGHTS,
        minimum=-0.4,
        maximum=1.2,
        tracking_time=tracking,
        filter_time=filter_time,
        sample_time=period,
    )
    model = CoupledModel(
        name="loop",
        systems={"pid": controller, "plant": FirstOrder(gain=2.0, time_constant=2.0, initial_output=0.2)},
        connections=[("pid.command", "plant.input"), ("plant.output", "pid.measured")],
        signals={"pid.setpoint": STEP},
    )
    result = model.simulation(compiled=False, **EXACT).run(2.0, output_step=period)
    y, integral, slope, last = 0.2, 0.0, 0.0, None
    for index, time in enumerate(result.time[:-1]):
        assert result["output"][index] == pytest.approx(y, abs=1e-8)
        setpoint = min(time / 0.05, 1.0)
        seen = 0.3 * setpoint - y
        slope = (filter_time * slope + (0.0 if last is None else seen - last)) / (filter_time + period)
        last = seen
        integral += period * 4.0 * (setpoint - y)
        wanted = 3.0 * (0.6 * setpoint - y) + integral + 0.5 * slope
        held = min(max(wanted, -0.4), 1.2)
        integral += (held - wanted) * period / tracking
        y = 2.0 * held + (y - 2.0 * held) * math.exp(-0.5 * period)


@pytest.mark.parametrize("tracking", [None, 0.05])
def test_limits_draw_nothing_back_where_nothing_is_integrated(tracking: float | None) -> None:
    controller = PidController(proportional=12.0, minimum=-1.0, maximum=1.0, tracking_time=tracking)
    result = alone(controller, {"setpoint": WAVE}, **EXACT)
    np.testing.assert_array_equal(result["command"], np.clip(12.0 * result["error"], -1.0, 1.0))
    assert set(result["integral_part"]) == {0.0}


def test_tracking_time_is_the_integral_time_unless_given() -> None:
    """A constant error beyond the limit: the integral part tends to k_i e T_t less what is beyond, with T_t."""
    controller = PidController(proportional=2.0, integral=4.0, maximum=1.0)
    result = alone(controller, {"setpoint": LinearSignal(times=(0.0,), values=(3.0,))}, **EXACT)
    # İ = 4 · 3 + (1 - 6 - I) / 0.5, from 0: 0.5 · 12 - 5 = 1 is where it ends.
    np.testing.assert_allclose(result["integral_part"], 1.0 - np.exp(-result.time / 0.5), atol=1e-8)


# -- everywhere ---------------------------------------------------------------------------------------------


def everything() -> CoupledModel:
    """A chain of all blocks behind a sine."""
    chain = {
        "gain": Gain(gain=2.0, input_unit="m", output_unit="V"),
        "dead_zone": DeadZone(start=-0.1, end=0.2, unit="V"),
        "limiter": Limiter(minimum=-3.0, maximum=2.0, unit="V"),
        "table": Table(points=((-1.0, -2.0), (0.0, 0.0), (3.0, 4.0)), input_unit="V", output_unit="Pa"),
        "first": FirstOrder(time_constant=0.2, input_unit="Pa", output_unit="m/s"),
        "second": SecondOrder(natural_frequency=9.0, damping_ratio=0.3, input_unit="m/s", output_unit="m/s"),
        "integrator": Integrator(minimum=-0.5, maximum=0.4, input_unit="m/s", output_unit="m"),
        "filter": TransferFunction(numerator=(1.0, 2.0), denominator=(0.3, 1.0, 2.0), input_unit="m", output_unit="m"),
        "rate_limiter": RateLimiter(rising=1.0, falling=0.5, unit="m"),
    }
    names = list(chain)
    rest = {
        "sum": Sum(signs="+-", unit="m"),
        "pid": PidController(**GAINS, minimum=-1.0, maximum=1.0, measured_unit="m", command_unit="N"),
        "sampled": SampledPidController(**GAINS, maximum=1.0, sample_time=0.013, measured_unit="m", command_unit="N"),
        "map": Table2D(
            rows=(-1.0, 1.0),
            columns=(-1.0, 0.0, 1.0),
            values=((0.0, 1.0, 2.0), (3.0, 2.0, -1.0)),
            row_unit="N",
            column_unit="N",
        ),
    }
    wires = [(f"{name}.output", f"{later}.input") for name, later in pairwise(names)]
    wires += [("rate_limiter.output", "sum.input_1"), ("filter.output", "sum.input_2"), ("sum.output", "pid.setpoint")]
    wires += [("sum.output", "sampled.setpoint"), ("pid.command", "map.row"), ("sampled.command", "map.column")]
    return CoupledModel(name="blocks", systems={**chain, **rest}, connections=wires, signals={"gain.input": WAVE})


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_compiled_code_does_the_same() -> None:
    one, other = (everything().simulation(solver="rk4", step=5e-3, compiled=each).run(1.0) for each in (True, False))
    assert max(abs(one["map.output"])) > 0.5
    for name in one.names:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-10, atol=1e-10, err_msg=name)


def test_data_say_the_same_and_units_follow_from_those_of_signals() -> None:
    model = everything()
    assert CoupledModel.from_dict(model.to_dict()) == model
    units = {each.name: each.unit for each in model.simulation(compiled=False).variables}
    assert units["gain.gain"] == "V/m"
    assert units["first.gain"] == "m/(s.Pa)"
    assert units["pid.integral"] == "N/(m.s)"
    assert units["rate_limiter.falling"] == "m/s"
    assert units["filter.x2"] == "m/s"
    assert combined(("N.m", 1), ("rad", -1), ("s", 1)) == "N.m.s/rad"
    assert combined(("m", 1), ("m", -1)) == "1"
    assert combined(("1", 1), ("m2", -1)) == "1/m2"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Gain(gain=1.0, input_unit="furlong"), "the unit 'furlong' is not known"),
        (lambda: Limiter(minimum=1.0, maximum=1.0), "minimum is 1 and maximum 1; maximum must be more than minimum"),
        (lambda: Sum(signs="+x"), r"signs are \+ and -"),
        (lambda: Table(points=((1.0, 0.0), (0.0, 1.0))), "points is for 1, 0; it must ascend"),
        (lambda: Table2D(rows=(0, 1), columns=(0, 1), values=((0, 1),)), "values must have 2 rows of 2 numbers"),
        (lambda: TransferFunction(numerator=(1, 2, 3), denominator=(1, 2)), "numerator has 3 coefficients"),
        (lambda: TransferFunction(numerator=(1,), denominator=(0, 2)), "denominator begins with 0"),
        (lambda: PidController(proportional=1.0, minimum=2.0, maximum=1.0), "minimum is 2 and maximum 1"),
        (lambda: PidController(proportional=0.0, integral=1.0, minimum=0.0), "tracking_time is missing"),
        (lambda: FirstOrder(time_constant=0.0), "time_constant is 0"),
    ],
)
def test_wrong_numbers_are_refused(make: Callable[[], Block], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        make()


def test_loops_without_states_are_refused_or_solved() -> None:
    """A static controller of a static plant: y = k (r - y)."""
    model = CoupledModel(
        name="loop",
        systems={"sum": Sum(signs="+-"), "gain": Gain(gain=4.0)},
        connections=[("sum.output", "gain.input"), ("gain.output", "sum.input_2")],
        signals={"sum.input_1": WAVE},
    )
    result = model.simulation(compiled=False).run(1.0)
    np.testing.assert_allclose(result["gain.output"], 0.8 * wave(result.time), atol=1e-12)
