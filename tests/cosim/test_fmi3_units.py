"""FMUs of FMI 3.0 in the master: arrays, all types; alone and beside FMUs of FMI 2.0."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, change_description
from foreign_fmus import compiler

from mbsfmu import InputError, LinearSignal, SimulationError, StepSignal, cosimulate
from mbsfmu.compiling.compiler import SWITCH
from mbsfmu.cosim import CosimulationResult
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmi3 import Fmi3Instance
from mbsfmu.cosim.fmus.fmu_instance import FmuEnded, FmuError, Instance
from mbsfmu.cosim.fmus.instantiation import make_instance
from mbsfmu.cosim.fmus.variable_descriptions import elements_of

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

Unit = Callable[[str], Path]


@pytest.fixture
def two(foreign: Unit, tmp_path: Path) -> list[Path]:
    """Two units with vectors, `a` and `b`."""
    paths = [tmp_path / f"{name}.fmu" for name in "ab"]
    for path in paths:
        path.write_bytes(foreign("vectors").read_bytes())
    return paths


# -- arrays -------------------------------------------------------------------------------------------------------


def test_arrays_are_connected_by_elements(two: list[Path]) -> None:
    """ẋ = u of b takes an element of a's M u + c in kN for one of its own in N; others keep their start values."""
    result = cosimulate(
        two,
        connections=["a.product[2]=b.force[1]"],
        parameters={"a.matrix": [[1.0, 2.0], [3.0, 4.0]], "a.constant[2]": 0.5, "b.force": [7.0, 8.0, 9.0]},
        inputs={"a.force[1]": lambda _: 0.25},
        step=0.1, stop=1.0, algorithm="jacobi",
    )  # fmt: skip
    np.testing.assert_allclose(result["a.product[2]"], 3.0 * 0.25 + 0.5)
    np.testing.assert_allclose(result["a.product[1]"], 0.25)
    for index, rate in enumerate((1000.0 * 1.25, 8.0, 9.0), 1):
        np.testing.assert_allclose(result[f"b.point[{index}]"], rate * result.time, atol=1e-12)
    assert result.unit("a.product[1]") == "kN"


def test_arrays_are_connected_whole(two: list[Path]) -> None:
    """Two integrators in series: t, then t²/2, by the trapezoidal rule of straight inputs' means."""
    result = cosimulate(
        two, connections=["a.point=b.force"], parameters={"a.force": "1, 2 -3"}, step=0.1, stop=1.0,
        algorithm="newton", extrapolation="linear",
    )  # fmt: skip
    for index, rate in enumerate((1.0, 2.0, -3.0), 1):
        np.testing.assert_allclose(result[f"b.point[{index}]"], rate * result.time**2 / 2.0, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("connection", "sentence"),
    [
        ("a.point=b.matrix", "a.point has 3 elements, but b.matrix has 4 elements"),
        ("a.point=b.float32_in", "a.point has 3 elements, but b.float32_in has one value"),
        ("a.point[4]=b.force[1]", r"a has no variable 'point\[4\]'"),
        ("a.lamps[1]=b.force[1]", None),
        ("a.echoes=b.words", None),
    ],
)
def test_what_may_be_connected(two: list[Path], connection: str, sentence: str | None) -> None:
    if sentence is None:
        cosimulate(two, connections=[connection], step=0.5, stop=1.0)
        return
    with pytest.raises(InputError, match=sentence):
        cosimulate(two, connections=[connection], step=0.5, stop=1.0)


def test_arrays_take_as_many_values_as_they_have(two: list[Path]) -> None:
    with pytest.raises(InputError, match=r"a\.force has 3 elements, but is given 2 values"):
        cosimulate(two, parameters={"a.force": [1.0, 2.0]}, step=0.5, stop=1.0)


def test_elements_that_are_set_one_by_one_keep_the_others(two: list[Path]) -> None:
    """An array is set as a whole: what a signal drives must not undo what a text or a value has set."""
    result = cosimulate(
        two, connections=["a.echoes[1]=b.words[2]"], parameters={"a.words[1]": "handed on", "b.force[3]": 2.0},
        inputs={"b.force[1]": lambda _: 1.0, "b.switches[2]": lambda _: 1.0}, step=0.5, stop=1.0,
    )  # fmt: skip
    assert result.texts["b.echoes[1]"] == [(0.0, "first")]
    assert result.texts["b.echoes[2]"] == [(0.0, "handed on")]
    assert (result["b.lamps[1]"][-1], result["b.lamps[2]"][-1]) == (0.0, 1.0)
    assert (result["b.point[1]"][-1], result["b.point[2]"][-1], result["b.point[3]"][-1]) == (1.0, 0.0, 2.0)


# -- types --------------------------------------------------------------------------------------------------------

BITS = (8, 16, 32)
LARGEST = {f"int{bits}": 2 ** (bits - 1) - 1 for bits in BITS} | {f"uint{bits}": 2**bits - 1 for bits in BITS}


@pytest.mark.parametrize("kind", [*LARGEST, "int64", "uint64"])
def test_whole_numbers(two: list[Path], kind: str) -> None:
    """Rounded where they are set; refused beyond their type and beyond what a floating-point number tells apart."""
    largest = LARGEST.get(kind, 2**53)
    values = StepSignal(times=(0.0, 0.5), values=(2.6, float(largest)))
    result = cosimulate(
        two, connections=[f"a.{kind}_out=b.{kind}_in"], inputs={f"a.{kind}_in": values}, step=0.5, stop=1.5
    )
    np.testing.assert_array_equal(result[f"b.{kind}_out"], [3.0, 3.0, largest, largest])
    with pytest.raises(SimulationError, match=rf"a\.{kind}_in is set to {re.escape(f'{1.01 * largest:.9g}')}"):
        cosimulate(
            two, inputs={f"a.{kind}_in": StepSignal(times=(0.0, 0.5), values=(2.6, 1.01 * largest))}, step=0.5, stop=1.5
        )


@pytest.mark.parametrize("isolate", [None, "a"])
def test_whole_numbers_that_are_rounded_are_told(
    two: list[Path], isolate: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """2^53 + 1 is no floating-point number: who records it is told; who does not has nothing of it."""
    how: dict[str, Any] = {"step": 0.5, "stop": 1.0, "isolate": isolate and [isolate]}
    for kind, value in (("int64", -(2**53) - 1), ("uint64", 2**53 + 1)):
        caplog.clear()
        start = {f"a.{kind}_in": value}
        cosimulate(two, parameters=start, record=["a.float32_out", "b.*"], **how)
        assert not [each for each in caplog.messages if "2^53" in each]
        result = cosimulate(two, parameters=start, **how)
        assert result[f"a.{kind}_out"][-1] == float(value)
        (told,) = [each for each in caplog.messages if "2^53" in each]
        assert f"a.{kind}_out is the integer {value} at t = 0 s" in told


def test_whole_numbers_that_are_rounded_are_not_passed_on(two: list[Path]) -> None:
    with pytest.raises(SimulationError, match=r"b\.int64_in is set to .* only integers up to 2\^53 are passed on"):
        cosimulate(
            two, parameters={"a.int64_in": 2**53 + 3}, connections=["a.int64_out=b.int64_in"], record=["b.float32_out"],
            step=0.5, stop=1.0,
        )  # fmt: skip


def test_start_values_of_64_bits_are_exact(two: list[Path]) -> None:
    """They are no floating-point numbers on the way."""
    for kind, value in (("Int64", 2**63 - 1), ("UInt64", 2**64 - 1)):
        with ExitStack() as stack:
            archive = Archive(two[0])
            stack.callback(archive.close)
            instance = make_instance("a", archive)
            stack.callback(instance.close)
            assert isinstance(instance, Fmi3Instance)
            instance.set_start(f"{kind.lower()}_in", str(value))
            reference = instance.element(f"{kind.lower()}_out").described.valueReference
            assert instance._call(f"get{kind}", [reference]) == [value]


def test_other_types(two: list[Path]) -> None:
    inputs = {
        "a.float32_in": lambda _: 0.1, "a.switches[2]": StepSignal(times=(0.0, 0.5), values=(0.0, 1.0)),
        "a.mode_in": StepSignal(times=(0.0, 0.5), values=(1.0, 2.0)),
    }  # fmt: skip
    result = cosimulate(
        two, connections=["a.float32_out=b.force[1]", "a.lamps=b.switches", "a.mode_out=b.mode_in"], inputs=inputs,
        parameters={"b.words": ["one", "two"]}, step=0.5, stop=1.5,
    )  # fmt: skip
    np.testing.assert_array_equal(result["a.float32_out"], float(np.float32(0.1)))
    np.testing.assert_array_equal(result["b.lamps[2]"], [0.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(result["b.mode_out"], [1.0, 1.0, 2.0, 2.0])
    assert [result.texts[f"b.echoes[{index}]"] for index in (1, 2)] == [[(0.0, "one")], [(0.0, "two")]]


def test_values_by_the_name_of_an_item(two: list[Path]) -> None:
    assert cosimulate(two, parameters={"a.mode_in": "on"}, step=0.5, stop=1.0)["a.mode_out"][0] == 2.0
    with pytest.raises(InputError, match="must be an item of the enumeration or its integer"):
        cosimulate(two, parameters={"a.mode_in": "half"}, step=0.5, stop=1.0)


# -- derivatives --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gives", [True, False])
def test_loops_of_elements(two: list[Path], gives: bool) -> None:
    """y = 2 u + 1 and y = u/8 + 2 in a ring, kN to N in between switched off: y = 2 (y/8 + 2) + 1 gives 20/3."""
    if not gives:
        for path in two:
            change_description(path, 'providesDirectionalDerivatives="true"', "")
    connections = [f"{one}.product[{place}]={other}.force[{place}]" for one, other in ("ab", "ba") for place in (1, 2)]
    scales = {"a.matrix": np.diag([2e-3, 0.0]), "b.matrix": np.diag([0.125e-3, 0.0])}
    result = cosimulate(
        two, connections=connections, parameters={**scales, "a.constant": [1.0, 0.0], "b.constant": [2.0, 0.0]},
        step=0.1, stop=0.2, algorithm="newton", jacobian="directional" if gives else "differences",
    )  # fmt: skip
    np.testing.assert_allclose(result["a.product[1]"], 20.0 / 3.0, rtol=1e-9)
    np.testing.assert_allclose(result["b.product[1]"], (20.0 / 3.0 - 1.0) / 2.0, rtol=1e-9)


# -- both versions ------------------------------------------------------------------------------------------------


def results_in_both_ways(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> list[CosimulationResult]:
    results = []
    for way in ("0", "1"):
        monkeypatch.setenv(SWITCH, way)
        results.append(cosimulate(*arguments, **options))
    return results


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_versions_mix(foreign: Unit, monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    """ẋ = −x + u of FMI 2.0 takes the wave of FMI 3.0; compiled steps are those of Python to the last bit."""
    one, other = results_in_both_ways(
        monkeypatch, [foreign("dahlquist"), foreign("ticking")], connections=["ticking.height=dahlquist.u"],
        algorithm=algorithm, extrapolation="linear", step=1e-3, stop=1.5,
    )  # fmt: skip
    for name in one.names:
        assert one[name].tobytes() == other[name].tobytes()
    exact = math.exp(-1.0) * 2.0  # x = 2 e^−t + t − 1 until the wave turns
    assert one["dahlquist.x"][1000] == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize(
    ("algorithm", "extrapolation"),
    [("jacobi", "linear"), ("gauss-seidel", "quadratic"), ("jacobi", "derivatives"), ("newton", "linear")],
)
def test_inputs_run_straight_in_both_versions(
    halves_exact: list[Path], halves_3: list[Path], monkeypatch: pytest.MonkeyPatch, algorithm: str, extrapolation: str
) -> None:
    """By derivatives of inputs in FMI 2.0, by the intermediate update in 3.0: the same, compiled or not."""
    options = {"connections": CONNECTIONS, "algorithm": algorithm, "extrapolation": extrapolation}
    one, other = results_in_both_ways(monkeypatch, halves_3, **options, step=5e-3, stop=0.1)
    expected = cosimulate(halves_exact, **options, step=5e-3, stop=0.1)
    held = cosimulate(halves_exact, connections=CONNECTIONS, algorithm=algorithm, step=5e-3, stop=0.1)
    for name in expected.names:
        assert one[name].tobytes() == other[name].tobytes()
        np.testing.assert_allclose(one[name], expected[name], rtol=1e-12, atol=1e-15)
    assert np.max(np.abs(held["one.position"] - expected["one.position"])) > 1e-7


def test_ramps_through_units_of_both_versions(foreign: Unit, two: list[Path]) -> None:
    result = cosimulate(
        [foreign("dahlquist"), two[0]], connections=["dahlquist.x=a.force[2]"],
        inputs={"dahlquist.u": LinearSignal(times=(0.0, 1.0), values=(1.0, 1.0))}, step=0.01, stop=1.0,
        algorithm="gauss-seidel", extrapolation="linear",
    )  # fmt: skip
    np.testing.assert_allclose(result["a.point[2]"], result.time, rtol=1e-9, atol=1e-12)


def test_input_clocks_are_refused(foreign: Unit, tmp_path: Path) -> None:
    path = tmp_path / "vectors.fmu"
    path.write_bytes(foreign("vectors").read_bytes())
    clock = '<Clock name="tick" valueReference="99" causality="input" intervalVariability="triggered"/>'
    change_description(path, "</ModelVariables>", f"{clock}</ModelVariables>")
    with pytest.raises(
        InputError, match=r"vectors\.fmu has the input clock tick; FMUs with input clocks are not supported"
    ):
        cosimulate(path, step=0.5, stop=1.0)


# -- instances alone ----------------------------------------------------------------------------------------------


@pytest.fixture
def instance_of(foreign: Unit) -> Iterator[Callable[[str], Instance]]:
    """Return a function that makes an instance in initialization mode."""
    with ExitStack() as stack:

        def made(name: str) -> Instance:
            archive = Archive(foreign(name))
            stack.callback(archive.close)
            instance = make_instance(name, archive)
            stack.callback(instance.close)
            instance.setup(0.0, 1.0)
            instance.enter_initialization()
            return instance

        yield made


def test_elements_set_alone_stay_where_others_are_set_after_them(instance_of: Callable[[str], Instance]) -> None:
    instance = instance_of("vectors")
    first = instance.port(["force[1]"])
    instance.set_start("force[3]", 2.0)
    first.values[:] = 1.0
    first.write()
    assert instance.port([f"force[{index}]" for index in (1, 2, 3)]).read().tolist() == [1.0, 0.0, 2.0]


def test_discrete_inputs_are_set_again_after_a_return(instance_of: Callable[[str], Instance]) -> None:
    """The unit has what it had when it was saved, not what it was told after that."""
    instance = instance_of("ticking")
    instance.exit_initialization()
    instance.step(0.0, 0.25)
    instance.save("before", 0.25)
    factor, scaled = instance.port(["factor"]), instance.port(["scaled"])
    factor.values[:] = 3.0
    factor.write()
    assert scaled.read()[0] == 0.75
    instance.restore("before")
    assert scaled.read()[0] == 0.25
    factor.write()
    assert scaled.read()[0] == 0.75


def test_a_unit_that_is_put_back_before_its_end_goes_on(instance_of: Callable[[str], Instance]) -> None:
    """Whatever it has said of a step that is taken back: it ends the run at 0.5 s, up to which it rises by t."""
    instance = instance_of("ticking")
    instance.set_start("last", 0.5)
    instance.exit_initialization()
    seen = instance.port(["height", "events"])
    instance.step(0.0, 0.25)
    instance.save("before", 0.25)
    with pytest.raises(FmuEnded) as ended:
        instance.step(0.25, 0.5)
    assert ended.value.time == pytest.approx(0.5)
    instance.restore("before")
    instance.step(0.25, 0.05)
    assert seen.read().tolist() == pytest.approx([0.3, 1.0])


def test_an_event_of_a_step_that_is_taken_back_is_none(
    instance_of: Callable[[str], Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unit comes back from a step with an event, in which something goes wrong: it was counted nowhere."""
    instance = instance_of("ticking")
    assert isinstance(instance, Fmi3Instance)
    instance.exit_initialization()
    seen = instance.port(["count", "events"])
    instance.step(0.0, 0.95)
    instance.save("before", 0.95)
    with monkeypatch.context() as broken:
        broken.setattr(instance, "event", lambda: instance.fail("fmi3EnterEventMode", 3))
        with pytest.raises(FmuError):
            instance.step(0.95, 0.1)
    instance.restore("before")
    instance.step(0.95, 0.02)
    assert seen.read().tolist() == [3.0, 4.0]


def test_texts_are_set_again_after_a_return(instance_of: Callable[[str], Instance]) -> None:
    """A text that the FMU was told after it was saved is another one than it has once it is restored."""
    instance = instance_of("vectors")
    instance.exit_initialization()
    instance.step(0.0, 0.25)
    instance.save("before", 0.25)
    instance.set_start("words[2]", "later")
    assert instance.read_text("echoes[2]") == "later"
    instance.restore("before")
    assert instance.read_text("echoes[2]") == "second"
    instance.set_start("words[2]", "later")
    assert instance.read_text("echoes[2]") == "later"


def test_what_it_says_of_derivatives(foreign: Unit, tmp_path: Path) -> None:
    """FMPy looks for the flag by its name of FMI 2.0."""
    path = tmp_path / "vectors.fmu"
    path.write_bytes(foreign("vectors").read_bytes())
    for expected in (True, False):
        archive = Archive(path)
        assert bool(archive.interface.providesDirectionalDerivative) is expected
        archive.close()
        if expected:
            change_description(path, 'providesDirectionalDerivatives="true"', "")


def test_the_last_index_counts_fastest() -> None:
    described = SimpleNamespace(name="m", dimensions=[2, 3], shape=(2, 3))
    assert [each.name for each in elements_of(described)] == [
        "m[1,1]", "m[1,2]", "m[1,3]", "m[2,1]", "m[2,2]", "m[2,3]",
    ]  # fmt: skip


def test_binary_start_values(foreign: Unit) -> None:
    """Two hexadecimal digits a byte, as in descriptions of FMI 3.0: 01 + fe are two bytes of the sum 255."""
    receiver = str(foreign("receiver"))
    for value in ("01fe", "01FE", b"\x01\xfe"):
        result = cosimulate(receiver, parameters={"receiver.message": value}, step=0.5, stop=0.5)
        assert (result["receiver.count"][-1], result["receiver.sum"][-1]) == (2.0, 255.0)
    assert cosimulate(receiver, step=0.5, stop=0.5)["receiver.count"][-1] == 0.0  # what it begins with is its own
    for value in ("012", "0x01", 3, 1.5):
        with pytest.raises(InputError, match=r"receiver\.message is .*; it must be bytes, or two hexadecimal digits"):
            cosimulate(receiver, parameters={"receiver.message": value}, step=0.5, stop=0.5)
