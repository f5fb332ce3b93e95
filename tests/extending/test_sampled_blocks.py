"""Sampled blocks are updated at their instants, once, whatever steps lead there, and hold in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import fmpy
import numpy as np
import pytest
from extending.controllers import Counter, Growing, Pid
from importer import Importer
from sampled_control import OFFSET, SAMPLE, controlled, discrete
from systems.test_coupled_connections import Slider

import mbsfmu
from mbsfmu import (
    Array,
    Block,
    CoupledModel,
    DataError,
    InputError,
    Numbers,
    Parameter,
    Positive,
    Quantity,
    SampledBlock,
    StepSignal,
)
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.native.compiled import CompiledRunner
from mbsfmu.simulation.simulation import make_simulation
from mbsfmu.systems.concatenated_system import CoupledSystem
from mbsfmu.systems.model_systems import BlockSystem

LATE = 1.7e9
"""A start as of clocks that count from 1970, in s."""

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


def apart(result: Any, sample: float = SAMPLE, offset: float = OFFSET) -> tuple[float, float]:
    """Return how far a run is from the recursion, in m and N."""
    time = getattr(result, "time", None)
    displacement, command = discrete(result["time"] if time is None else time, sample, offset)
    names = ("slider.displacement", "controller.command")
    found = [result[name] for name in names]
    return float(np.max(np.abs(found[0] - displacement))), float(np.max(np.abs(found[1] - command)))


# -- physics ------------------------------------------------------------------------------------------------

RULES = ("trapezoidal", "generalized-alpha", "bdf2")


@pytest.mark.parametrize(
    ("solver", "options", "tolerance"),
    [
        ("rk4", {"step": 1e-3}, 5e-11),
        ("rk45", {"relative_tolerance": 1e-10, "absolute_tolerance": 1e-10}, 5e-10),
        ("radau", {"relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}, 1e-7),
        ("adams", {"relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}, 1e-6),
        ("trapezoidal", {"step": 1e-3}, 5e-6),
        ("trapezoidal", {"step": 2.5e-4}, 3e-7),
        *((rule, {"step": 1e-3}, 2e-5) for rule in RULES[1:]),
    ],
)
def test_sampled_control_is_the_recursion(solver: str, options: dict[str, float], tolerance: float) -> None:
    result = controlled().simulation(compiled=False, solver=solver, **options).run(1.0, output_step=0.01)
    displacement, command = apart(result)
    assert displacement < tolerance
    assert command < 100.0 * tolerance


@pytest.mark.parametrize("formulation", ["penalty", "dca", "hdca", "dca-alm"])
def test_every_formulation_halts_at_instants(formulation: str) -> None:
    result = controlled().simulation(compiled=False, formulation=formulation).run(1.0, output_step=0.01)
    assert apart(result)[0] < 5e-6


def test_states_hold_to_the_last_bit_between_instants() -> None:
    result = controlled().simulation(compiled=False).run(0.5, output_step=5e-4)
    for name in ("sum", "last", "held", "command"):
        values = result[name]
        changes = np.flatnonzero(np.diff(values))
        assert len(changes) == math.floor((0.5 - OFFSET) / SAMPLE) + 1
        instants = OFFSET + SAMPLE * np.arange(len(changes))
        assert np.all((result.time[changes] < instants) & (instants <= result.time[changes + 1] + 1e-9))


# -- instants -----------------------------------------------------------------------------------------------


def counting(sample: float = 0.1, offset: float = 0.0, **signals: StepSignal) -> CoupledModel:
    counter = Counter(sample_time=sample, offset=offset)
    return CoupledModel(
        name="counting",
        systems={"counter": counter},
        signals={"counter.signal": signals["signal"]} if signals else {},
        step=0.03,
    )


@pytest.mark.parametrize("solver", ["trapezoidal", "rk4", "rk45", "dop853", "rodas5p"])
def test_updates_are_made_once_at_each_instant(solver: str) -> None:
    """The start at an instant counts; later ones are the multiples, in whatever steps the result is."""
    for output_step in (0.1, 0.05, 0.03, 0.7, 0.1 / 3.0):
        result = counting().simulation(compiled=False, solver=solver).run(2.1, output_step=output_step)
        np.testing.assert_array_equal(result["count"], 1.0 + np.floor(result.time / 0.1 + 1e-6))


def after(begin: float, time: float, step: float, index: int) -> float:
    """Return the next time: added up, but where that alone would lead away by more than the tolerance."""
    return begin + index * step if begin >= LATE else time + step


@pytest.mark.parametrize("begin", [0.0, 0.05, -0.25, LATE, LATE + 0.05])
@pytest.mark.parametrize("step", [0.1, 0.1 / 3.0, 0.04, 0.25])
def test_updates_do_not_depend_on_how_time_is_added_up(begin: float, step: float) -> None:
    """Before time zero, where the offset lies, there are none."""
    simulation = counting().simulation(compiled=False)
    simulation.initialize(begin)
    time, first = begin, max(math.ceil(begin / 0.1 - 1e-6), 0)
    for index in range(1, 31):
        simulation.step(time, step)
        time = after(begin, time, step, index)
        assert simulation.get("count") == max(math.floor((begin + index * step) / 0.1 + 1e-5) - first + 1, 0)


@pytest.mark.parametrize("offset", [0.35, 0.05, 5.0])
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_compiler)])
def test_sampling_begins_at_the_offset(offset: float, *, compiled: bool) -> None:
    """Longer than the sample time or not."""
    result = counting(offset=offset).simulation(compiled=compiled).run(0.6, output_step=0.04)
    expected = np.maximum(np.floor((result.time - offset) / 0.1 + 1e-6) + 1.0, 0.0)
    np.testing.assert_array_equal(result["count"], expected)


def test_steps_of_other_sizes_lose_and_repeat_no_update() -> None:
    """What ends a step within its tolerance of an instant, and is followed by a longer or shorter one."""
    simulation = counting().simulation(compiled=False)
    for short, long in ((1e-3, 0.45), (0.15, 1e-3)):
        for miss in (-4e-10, -2e-8, 2e-8, 4e-10):
            simulation.initialize(0.0)
            before = simulation.get("count")
            time = 0.0
            for target in (0.2 - short, 0.2 + miss, 0.2 + miss + long):
                simulation.step(time, target - time)
                time = target
            assert simulation.get("count") - before == math.floor((0.2 + long) / 0.1 + 1e-6)


def test_inputs_are_read_as_they_are_just_before() -> None:
    """A signal that jumps at an instant has not jumped yet; at the start it has."""
    signal = StepSignal(times=(0.0, 0.3, 0.55), values=(1.0, 2.0, 3.0))
    result = counting(signal=signal).simulation(compiled=False).run(0.8, output_step=0.1)
    np.testing.assert_array_equal(result["value"], [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0])


def test_blocks_are_updated_in_the_order_of_their_lines() -> None:
    """A chain passes a number on within one instant, whatever order it is listed in; a loop keeps the listed one."""
    blocks = {name: Counter(sample_time=0.1) for name in ("third", "second", "first")}
    chain = (("first.value", "second.signal"), ("second.value", "third.signal"))
    signal = {"first.signal": StepSignal(times=(0.15,), values=(7.0,), initial=5.0)}
    model = CoupledModel(name="chain", systems=blocks, connections=chain, signals=signal, step=0.05)
    result = model.simulation(compiled=False).run(0.3, output_step=0.1)
    for name in blocks:
        np.testing.assert_array_equal(result[f"{name}.value"], [5.0, 5.0, 7.0, 7.0])
    loop = (("third.count", "second.signal"), ("second.count", "third.signal"))
    model = CoupledModel(name="loop", systems=blocks, connections=loop, step=0.05)
    result = model.simulation(compiled=False).run(0.2, output_step=0.1)
    np.testing.assert_array_equal(result["second.value"], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(result["third.value"], [0.0, 1.0, 2.0])


class Following(SampledBlock):
    """One more than its input was."""

    type: Literal["test-following"] = "test-following"

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("x", "1"),)

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("u", "1", 0.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("y", "1"),)

    def update(self, now: Numbers) -> Mapping[str, Array]:
        return {"x": now["u"] + 1.0}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"y": now["x"]}


@pytest.mark.parametrize("order", ["abecd", "dcabe", "ceadb", "dbaec"])
def test_blocks_behind_a_loop_are_updated_after_it(order: str) -> None:
    """a, b and e are a loop, which keeps to the listed order; c follows a, and d c."""
    blocks = {name: Following(sample_time=0.1) for name in order}
    sources = {"b": "a", "e": "b", "a": "e", "c": "a", "d": "c"}
    lines = [(f"{source}.y", f"{name}.u") for name, source in sources.items()]
    model = CoupledModel(name="loop", systems=blocks, connections=lines, step=0.05)
    result = model.simulation(compiled=False).run(0.2, output_step=0.1)
    value = dict.fromkeys(order, 0.0)
    for instant in range(3):
        for name in (*(each for each in order if each in "abe"), "c", "d"):
            value[name] = value[sources[name]] + 1.0
        assert {name: result[f"{name}.y"][instant] for name in order} == value


def test_blocks_of_other_sample_times_see_what_is_held() -> None:
    blocks = {"slow": Counter(sample_time=0.3), "fast": Counter(sample_time=0.1, offset=0.05)}
    model = CoupledModel(name="rates", systems=blocks, connections=(("fast.count", "slow.signal"),), step=0.05)
    result = model.simulation(compiled=False).run(0.9, output_step=0.1)
    np.testing.assert_array_equal(result["slow.value"], [0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 6.0, 6.0, 6.0, 9.0])


def test_next_event_tells_of_instants() -> None:
    simulation = counting(signal=StepSignal(times=(0.17,), values=(1.0,))).simulation(compiled=False)
    simulation.initialize(0.0)
    assert simulation.get("next_event") == 0.1
    simulation.step(0.0, 0.12)
    assert simulation.get("next_event") == 0.17
    simulation.step(0.12, 0.08)
    assert simulation.get("next_event") == pytest.approx(0.3, rel=1e-15)


# -- states, failures ---------------------------------------------------------------------------------------


def test_a_run_that_is_taken_back_goes_on_to_the_last_bit() -> None:
    one = controlled().simulation(compiled=False)
    one.initialize()
    for index in range(7):
        one.step(index * 0.01, 0.01)
    saved = one.save()
    expected = []
    for index in range(7, 30):
        one.step(index * 0.01, 0.01)
        expected.append([one.get(name) for name in ("slider.displacement", "command", "sum", "next_event")])
    other = controlled().simulation(compiled=False)
    for simulation in (one, other):
        simulation.restore(saved)
        for index in range(7, 30):
            simulation.step(index * 0.01, 0.01)
            found = [simulation.get(name) for name in ("slider.displacement", "command", "sum", "next_event")]
            assert found == expected[index - 7]


def test_sample_times_below_the_resolution_of_time_are_refused() -> None:
    simulation = counting(sample=1e-6).simulation(compiled=False)
    with pytest.raises(
        InputError, match=r"sample time of 1e-06 s is lost in the resolution of time at t = 1\.7e\+09 s"
    ):
        simulation.initialize(LATE)


def test_a_step_to_where_sample_times_are_below_the_resolution_is_refused() -> None:
    """Sixteen neighbouring numbers are as far apart as samples at t = T / 16 ε."""
    simulation, last = counting(sample=1e-3).simulation(compiled=False), 1e-3 / 16.0 / np.finfo(float).eps
    simulation.initialize(last - 10.0)
    with pytest.raises(InputError, match=r"sample time of 0\.001 s is lost in the resolution of time"):
        simulation.step(last - 10.0, 20.0)
    assert simulation.time == last - 10.0


def test_an_update_that_is_not_finite_is_told(tmp_path: Path) -> None:
    model = counting()
    simulation = model.simulation(compiled=False)
    simulation.set("signal", 1.0)
    simulation.initialize()
    simulation.functions.discrete[0] = math.inf
    with pytest.raises(mbsfmu.SimulationError, match=r"counter: the update at t = 0\.1\d* s is not finite"):
        simulation.step(0.0, 0.1)
    assert simulation.time == 0.0
    assert simulation.get("value") == 1.0


def test_a_step_that_fails_takes_its_updates_back() -> None:
    systems = {"growing": Growing(sample_time=0.1, offset=0.05)}
    simulation = CoupledModel(name="m", systems=systems).simulation(compiled=False)
    simulation.set("signal", 1.0)
    simulation.initialize()
    with pytest.raises(mbsfmu.SimulationError, match=r"growing: the update at t = 0\.15\d* s is not finite"):
        simulation.step(0.0, 0.2)
    assert (simulation.get("count"), simulation.get("value"), simulation.get("next_event")) == (0.0, -1.0, 0.05)
    simulation.step(0.0, 0.1)
    assert (simulation.get("count"), simulation.get("value")) == (1e200, 1.0)


# -- units --------------------------------------------------------------------------------------------------


@needs_compiler
def test_compiled_runs_are_those_of_the_interpreter() -> None:
    one, other = (controlled().simulation(compiled=compiled) for compiled in (True, False))
    assert isinstance(one.runner, CompiledRunner)
    one, other = one.run(1.0), other.run(1.0)
    for name in one.names:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("backend", [pytest.param("native", marks=needs_compiler), "python"])
@pytest.mark.parametrize(("solver", "tolerance"), [("trapezoidal", 5e-6), ("rk4", 5e-11), ("rk45", 1e-6)])
def test_units_are_the_recursion(tmp_path: Path, backend: str, solver: str, tolerance: float) -> None:
    (path,) = mbsfmu.export(controlled(), tmp_path, layout="monolithic", backend=backend, solver=solver)
    result = fmpy.simulate_fmu(str(path), stop_time=1.0, step_size=1e-2, output_interval=1e-2)
    displacement, command = apart(result)
    assert displacement < tolerance
    assert command < 100.0 * tolerance
    given = {variable.name: variable for variable in fmpy.read_model_description(str(path)).modelVariables}
    assert (given["controller.command"].causality, given["controller.command"].variability) == ("output", "discrete")
    assert (given["controller.held"].causality, given["controller.held"].variability) == ("local", "discrete")


@pytest.fixture(scope="module", params=[pytest.param("native", marks=needs_compiler), "python"])
def counter(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Importer:
    folder = tmp_path_factory.mktemp(request.param)
    (path,) = mbsfmu.export(counting(), folder, backend=request.param)
    return Importer(path, folder / "unpacked")


@pytest.mark.parametrize("begin", [0.0, 0.05, LATE])
@pytest.mark.parametrize("step", [0.1, 0.1 / 3.0, 0.25])
def test_units_do_not_depend_on_how_time_is_added_up(counter: Importer, begin: float, step: float) -> None:
    slave = counter.instance()
    slave.setupExperiment(startTime=begin)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    time, first = begin, math.ceil(begin / 0.1 - 1e-6)
    for index in range(1, 21):
        slave.doStep(time, step)
        time = after(begin, time, step, index)
        made = math.floor((begin + index * step) / 0.1 + 1e-5) - first + 1
        assert counter.get(slave, "count") == made
        assert counter.get(slave, "next_event") == pytest.approx(0.1 * (first + made), rel=1e-15)
    slave.freeInstance()


@pytest.mark.parametrize("backend", [pytest.param("native", marks=needs_compiler), "python"])
def test_units_are_taken_back_to_the_last_bit(tmp_path: Path, backend: str) -> None:
    (path,) = mbsfmu.export(controlled(), tmp_path, layout="monolithic", backend=backend)
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    names = ("slider.displacement", "controller.command", "controller.sum", "next_event")

    def go() -> list[list[float]]:
        rows = []
        for index in range(7, 20):
            slave.doStep(index * 0.01, 0.01)
            rows.append([importer.get(slave, name) for name in names])
        return rows

    for index in range(7):
        slave.doStep(index * 0.01, 0.01)
    saved = slave.getFMUState()
    expected = go()
    slave.setFMUState(saved)
    assert go() == expected
    assert len({row[1] for row in expected}) > 5


@needs_compiler
def test_a_controller_of_its_own_unit_is_the_recursion(tmp_path: Path) -> None:
    """Where the plant makes its step first, an update at its end reads where the plant is then."""
    paths = mbsfmu.export(controlled(0.02, 0.0), tmp_path, layout="separate", solver="rk4", step=1e-3)
    package = next(path for path in paths if path.suffix == ".ssp")
    result = mbsfmu.cosimulate(package, algorithm="gauss-seidel", step=5e-3, stop=1.0)
    displacement, command = discrete(result.time, 0.02, 0.0)
    assert np.max(np.abs(result["mechanism.slider.displacement"] - displacement)) < 1e-9
    assert np.max(np.abs(result["controller.command"] - command)) < 1e-7


def test_sampled_outputs_have_no_direct_feed_through() -> None:
    alone = controlled().simulation_of("controller")
    assert alone.dependencies["command"] == alone.dependencies["held"] == ()
    assert set(alone.initial_dependencies["command"]) == {
        "proportional", "integral", "derivative", "setpoint", "measured",
    }  # fmt: skip


# -- refusals -----------------------------------------------------------------------------------------------


class Accelerometer(Counter):
    """Keeps an acceleration."""

    type: Literal["accelerometer"] = "accelerometer"

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("signal", "m/s2", 0.0),)


def test_sampled_blocks_read_accelerations_as_they_are_just_before() -> None:
    """Nothing depends on itself by that: what the update changes holds until the next one."""
    systems = {"slider": Slider(), "sensor": BlockSystem(Accelerometer(sample_time=0.1), "sensor")}
    system = CoupledSystem("both", systems, [("slider.acceleration", "sensor.signal")])
    signals = {"slider.force": StepSignal(times=(0.0, 0.2), values=(4.0, 6.0))}
    result = make_simulation(system, name="both", signals=signals, step=0.05).run(0.4, output_step=0.1)
    np.testing.assert_allclose(result["value"], [2.0, 2.0, 2.0, 3.0, 3.0], rtol=1e-12)


def without_update() -> object:
    class Odd(SampledBlock):
        type: Literal["odd"] = "odd"

        def states(self) -> tuple[Quantity, ...]:
            return (Quantity("x", "1"),)

        def outputs(self) -> tuple[Quantity, ...]:
            return (Quantity("y", "1"),)

        def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
            return {"y": now["x"]}

    return Odd


def with_rates() -> object:
    class Odd(Counter):
        type: Literal["odd"] = "odd"

        def rates(self, now: Numbers) -> Mapping[str, Array]:
            return {}

    return Odd


def continuous_with_update() -> object:
    class Odd(Pid):
        type: Literal["odd"] = "odd"

        def update(self, now: Numbers) -> Mapping[str, Array]:
            return {}

    return Odd


def without_outputs() -> object:
    class Odd(Block):
        type: Literal["odd"] = "odd"

    return Odd


def settable_sample_time() -> object:
    class Odd(Counter):
        type: Literal["odd"] = "odd"
        sample_time: Annotated[Positive, Parameter("s", "sample time")] = 0.1

    return Odd


@pytest.mark.parametrize(
    ("define", "told"),
    [
        (without_update, "it has states, but no update"),
        (with_rates, "it has rates, but is sampled"),
        (continuous_with_update, "it has update, which is of blocks that derive from SampledBlock"),
        (without_outputs, "a block has outputs, and a function evaluate_outputs"),
        (settable_sample_time, "the field 'sample_time' is no parameter"),
    ],
)
def test_classes_that_lack_something_are_refused(define: Callable[[], object], told: str) -> None:
    with pytest.raises(DataError, match=f"class Odd: {told}"):
        define()


class Leaking(Counter):
    """Its output would follow its input between instants."""

    type: Literal["leaking"] = "leaking"

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"count": now["made"], "value": now["signal"]}


def test_outputs_that_read_inputs_between_instants_are_refused() -> None:
    with pytest.raises(DataError, match="leaking 'counter' has no number 'signal' here"):
        CoupledModel(name="m", systems={"counter": Leaking(sample_time=0.1)}).simulation()
    with pytest.raises(DataError, match=r"sample_time is 0\.0; it must be greater than or equal to 0\.000000001"):
        Counter(sample_time=0.0)
