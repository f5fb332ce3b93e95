"""The master on small units of C and pythonfmu that are not ours, alone and wired to ours, against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from fmpy.validation import validate_fmu
from foreign_fmus import C_FMUS
from scipy.integrate import solve_ivp

import mbsfmu
from hydraulics import Circuit, FlowSource, Oil, Volume
from mbsfmu import CosimulationError, InputError, cosimulate
from mbsfmu.cli.cosim import command
from mbsfmu.io.trajectory import Trajectory

Foreign = Callable[[str], Path]


@pytest.mark.parametrize("name", C_FMUS)
def test_units_are_what_the_standard_asks_for(foreign: Foreign, name: str) -> None:
    assert validate_fmu(str(foreign(name))) == []


def test_dahlquist_decays_exponentially(foreign: Foreign) -> None:
    result = cosimulate(foreign("dahlquist"), parameters={"dahlquist.rate": 0.8, "dahlquist.x_start": 3.0})
    assert len(result.time) == 101
    np.testing.assert_allclose(result["x"], 3.0 * np.exp(-0.8 * result.time), rtol=1e-12)


def test_a_unit_feeds_a_circuit(foreign: Foreign, tmp_path: Path) -> None:
    """Its x, in m³/s here, flows into 0.1 m³: p = p₀ + K / V · x₀ / r · (1 - exp(-r t)), and the power is p Q."""
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0, air_content=0.0, conserves="volume"),
        components=(FlowSource(name="theirs", node="A"), Volume(name="room", node="A", volume=0.1)),
        initial_pressures={"A": 1e6},
    )
    model = mbsfmu.CoupledModel(name="fed", systems={"circuit": circuit})
    (unit,) = mbsfmu.export(model, tmp_path, layout="monolithic", outputs=["theirs.*"])
    result = cosimulate(
        [foreign("dahlquist"), unit],
        step=0.01,
        stop=2.0,
        connections=["dahlquist.x=fed.theirs.flow"],
        parameters={"dahlquist.rate": 0.8, "dahlquist.x_start": 5e-4},
        algorithm="gauss-seidel",
        extrapolation="linear",
    )
    flow = 5e-4 * np.exp(-0.8 * result.time)
    pressure = 1e6 + 1.5e9 / 0.1 * (5e-4 - flow) / 0.8
    np.testing.assert_allclose(result["theirs.pressure"], pressure, rtol=1e-5)
    np.testing.assert_allclose(result["theirs.power"], pressure * flow, rtol=2e-5)


def test_van_der_pol_moves_as_scipy_says(foreign: Foreign) -> None:
    result = cosimulate(foreign("vanderpol"), step=0.0137, stop=20.0, parameters={"vanderpol.mu": 1.5})

    def rates(_: float, y: np.ndarray) -> list[float]:
        return [y[1], 1.5 * (1 - y[0] ** 2) * y[1] - y[0]]

    exact = solve_ivp(rates, (0, 20), [2, 0], "DOP853", result.time, rtol=1e-13, atol=1e-13).y
    np.testing.assert_allclose([result["x"], result["v"]], exact, atol=1e-9)
    # 14 Runge-Kutta steps of 4 evaluations in every step but the last, which ends at 20 s.
    assert result["evaluations"][1] == 14 * 4
    assert result.time[-1] == 20.0


def flights(height: float, gravity: float, restitution: float, slowest: float) -> Iterator[tuple[float, float]]:
    """Time and upward speed of each bounce; the speed falls by the restitution at each."""
    time, speed = math.sqrt(2 * height / gravity), restitution * math.sqrt(2 * gravity * height)
    while True:
        yield time, speed if speed >= slowest else 0.0
        if speed < slowest:
            return
        time += 2 * speed / gravity
        speed *= restitution


@pytest.mark.parametrize("step", [0.01, 0.37])
def test_ball_bounces_when_and_as_high_as_it_must(foreign: Foreign, step: float) -> None:
    """With steps of 0.37 s the ball bounces several times in one of them."""
    result = cosimulate(foreign("bouncing_ball"), step=step, stop=3.5, parameters={"bouncing_ball.restitution": "0.75"})
    bounces = list(flights(1.0, 9.81, 0.75, 0.1))
    for time, height, count, resting in zip(
        result.time, result["height"], result["bounces"], result["resting"], strict=True
    ):
        before = [bounce for bounce in bounces if bounce[0] <= time]
        start, speed = before[-1] if before else (0.0, 0.0)
        passed = time - start
        expected = (0.0 if before else 1.0) + speed * passed - (0.5 * 9.81 * passed**2 if speed or not before else 0.0)
        assert height == pytest.approx(expected, abs=1e-9)
        assert count == len(before)
        assert resting == (len(before) == len(bounces))
    assert result["resting"][-1] == 1.0


# -- types --------------------------------------------------------------------------------------------------

PASSED_ON = (
    "source.sine=feed_through.real_in",
    "source.stairs=feed_through.jumping_in",
    "source.count=feed_through.integer_in",
    "source.odd=feed_through.boolean_in",
    "source.word=feed_through.text_in",
)


@pytest.mark.parametrize(("algorithm", "delay"), [("jacobi", 1), ("gauss-seidel", 0)])
@pytest.mark.parametrize("extrapolation", ["zero", "linear"])
def test_every_type_is_fed_through(foreign: Foreign, algorithm: str, delay: int, extrapolation: str) -> None:
    """What jumps is never continued: it arrives as it was, one step late in Jacobi's exchange."""
    result = cosimulate(
        [foreign("source"), foreign("feed_through")],
        step=0.1, stop=4.0, connections=PASSED_ON, algorithm=algorithm, extrapolation=extrapolation,
    )  # fmt: skip
    late = slice(None, len(result.time) - delay), slice(delay, None)
    for source, target in (("stairs", "jumping_out"), ("count", "integer_out"), ("odd", "boolean_out")):
        np.testing.assert_array_equal(result[target][late[1]], result[source][late[0]])
    seconds = np.floor(result.time + 1e-9)
    np.testing.assert_array_equal(result["count"], 1000000007 + seconds)
    if extrapolation == "zero":
        np.testing.assert_array_equal(result["real_out"][late[1]], result["sine"][late[0]])
    assert result.texts["source.word"] == [(0.0, "zero"), (1.0, "one"), (2.0, "two"), (3.0, "zero"), (4.0, "one")]
    passed = result.texts["feed_through.text_out"]
    assert [word for _, word in passed] == ["zero", "one", "two", "zero"]
    np.testing.assert_allclose([time for time, _ in passed], [0.0, 1.1, 2.1, 3.1])


def test_parameters_of_every_type_arrive(foreign: Foreign) -> None:
    parameters = {
        "real_parameter": -2.5,
        "integer_parameter": 2**31 - 1,
        "boolean_parameter": True,
        "mode_in": "locked",
    }
    result = cosimulate(
        foreign("feed_through"),
        parameters={f"feed_through.{name}": value for name, value in parameters.items()}
        | {"feed_through.text_parameter": "Öl, 20 °C", "feed_through.text_in": "from outside"},
    )
    shown = ("real_shown", "integer_shown", "boolean_shown", "mode_out")
    assert [result[name][-1] for name in shown] == [-2.5, 2**31 - 1, 1.0, 5.0]
    assert result.texts["feed_through.text_shown"] == [(0.0, "Öl, 20 °C")]
    assert result.texts["feed_through.text_out"] == [(0.0, "from outside")]


def test_start_values_of_the_unit_stay(foreign: Foreign) -> None:
    result = cosimulate(foreign("feed_through"))
    assert [result[name][0] for name in ("real_shown", "integer_shown", "mode_out")] == [1.5, 3.0, 1.0]
    assert result.texts["feed_through.text_out"] == [(0.0, "nothing")]


def test_text_goes_through_several_units_at_the_start(foreign: Foreign, tmp_path: Path) -> None:
    """At the start values pass through any number of units; in steps, one unit further with each."""
    second = tmp_path / "second.fmu"
    second.write_bytes(foreign("feed_through").read_bytes())
    chain = (*PASSED_ON, "feed_through.text_out=second.text_in")
    result = cosimulate([second, foreign("feed_through"), foreign("source")], step=0.5, stop=2.0, connections=chain)
    assert result.texts["second.text_out"] == [(0.0, "zero"), (2.0, "one")]


def test_a_text_that_is_no_utf_8_is_told_with_its_variable(foreign: Foreign) -> None:
    """The run ends there with what was recorded: the FMU has given a text that nobody can read."""
    with pytest.raises(CosimulationError, match=r"source\.word has a value that is no UTF-8.*caf.xe9") as caught:
        cosimulate(foreign("source"), step=0.5, stop=9.0)
    assert caught.value.result.time[-1] >= 6.5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"connections": ["source.sine=feed_through.integer_in"]}, "sine is of type Real, but integer_in of type Int"),
        ({"connections": ["source.word=feed_through.real_in"]}, "word is of type String, but real_in of type Real"),
        ({"connections": ["source.count=feed_through.boolean_in"]}, "count is of type Integer, but boolean_in of type"),
        ({"parameters": {"feed_through.integer_parameter": 2.5}}, "integer_parameter is 2.5; it must be an integer"),
        ({"parameters": {"feed_through.boolean_parameter": "yes"}}, "is 'yes'; it must be true or false"),
        ({"parameters": {"feed_through.mode_in": "ajar"}}, "is 'ajar'; it must be an item of the enumeration"),
        ({"parameters": {"source.frequency": "fast"}}, "frequency: 'fast' is refused: it must be a number"),
    ],
)
def test_what_is_of_another_type_is_refused(foreign: Foreign, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        cosimulate([foreign("source"), foreign("feed_through")], **options)


# -- failures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "word"), [(2, "discard"), (3, "error"), (4, "fatal")])
def test_unit_that_fails_is_named_with_time_and_reason(foreign: Foreign, status: int, word: str) -> None:
    units = [foreign("source"), foreign("failing")]
    parameters = {"failing.status": status, "failing.failure_time": 0.75}
    reason = rf"failing at t = 0\.7 s: fmi2DoStep gives {word}: it does not go beyond 0\.75 s"
    with pytest.raises(CosimulationError, match=reason) as caught:
        cosimulate(units, step=0.1, stop=2.0, parameters=parameters)
    np.testing.assert_allclose(caught.value.result["now"], 0.1 * np.arange(8))


@pytest.mark.parametrize("options", [{}, {"algorithm": "newton"}, {"control": "error"}])
def test_nothing_is_called_after_a_fatal_error(
    foreign: Foreign, caplog: pytest.LogCaptureFixture, options: dict[str, str]
) -> None:
    """Not even to free it: the unit, whose memory stays, would tell."""
    units = [foreign("source"), foreign("failing")]
    with pytest.raises(CosimulationError, match="gives fatal"):
        cosimulate(units, step=0.1, stop=2.0, parameters={"failing.status": 4}, **options)
    assert "it does not go beyond" in caplog.text
    assert "called after a fatal error" not in caplog.text


@pytest.mark.parametrize("step", [0.1, 0.25])
@pytest.mark.parametrize("control", ["fixed", "error"])
def test_unit_that_ends_itself_ends_the_run(foreign: Foreign, step: float, control: str) -> None:
    """At 0.75 s, on the grid of 0.25 s and off that of 0.1 s: the row there is the last one, and nothing is wrong."""
    result = cosimulate(foreign("ending"), step=step, stop=2.0, control=control)
    assert result.time[-1] == pytest.approx(0.75, abs=1e-12)
    np.testing.assert_allclose(result["height"], result.time, atol=1e-12)
    assert result.texts["ending.where"][-1] == (pytest.approx(0.75), "there")
    assert result.notes == ["ending ended the run at t = 0.75 s"]


@pytest.mark.parametrize("algorithm", ["jacobi", "newton"])
def test_unit_that_ends_itself_among_others(foreign: Foreign, algorithm: str) -> None:
    """Where steps can be made again, all go to where it ended; else rows end where all were last."""
    units = [foreign("dahlquist"), foreign("ending"), foreign("source")]
    fixed = cosimulate(units, step=0.1, stop=2.0, algorithm=algorithm, parameters={"dahlquist.rate": 2.0})
    np.testing.assert_allclose(fixed.time, 0.1 * np.arange(8))
    np.testing.assert_allclose(fixed["x"], np.exp(-2.0 * fixed.time), rtol=1e-12)
    assert fixed.notes[-1:] == ["ending ended the run at t = 0.75 s; the last point that all FMUs reached is at 0.7 s"]
    controlled = cosimulate(units, step=0.1, stop=2.0, algorithm=algorithm, control="error")
    assert controlled.time[-1] == pytest.approx(0.75, abs=1e-12)
    assert controlled["x"][-1] == pytest.approx(np.exp(-0.75), rel=1e-12)


def test_command_ends_well_with_a_unit_that_ends_itself(foreign: Foreign, tmp_path: Path) -> None:
    output = tmp_path / "run.csv"
    done = CliRunner().invoke(command, [str(foreign("ending")), "--quiet", "-o", str(output)])
    assert done.exit_code == 0
    assert "ending ended the run at t = 0.75 s" in done.stderr
    assert Trajectory.from_file(output).time[-1] == pytest.approx(0.75)


@pytest.mark.parametrize("extrapolation", ["zero", "linear"])
@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel", "fixed-point", "newton"])
def test_units_may_trust_that_steps_stay(foreign: Foreign, algorithm: str, extrapolation: str) -> None:
    """An FMU that moves only in steps which stay keeps the time, in runs of equal steps and of those made again."""
    options = {"algorithm": algorithm, "extrapolation": extrapolation, "step": 0.1, "stop": 1.0}
    result = cosimulate(foreign("committing"), **options)
    np.testing.assert_allclose(result["clock"], result.time, atol=1e-12)


def test_what_was_promised_to_stay_is_never_undone(foreign: Foreign) -> None:
    """These units refuse a state from before a step that was said to stay; halves of controlled steps are undone."""
    units, connections = [foreign("source"), foreign("dahlquist")], ["source.sine=dahlquist.u"]
    for options in ({"algorithm": "newton"}, {"control": "error", "tolerance": 1e-5}, {"rates": {"dahlquist": 3}}):
        result = cosimulate(
            units, connections=connections, step=0.02, stop=0.5, extrapolation="linear", **options
        )  # fmt: skip
        assert result.time[-1] == 0.5


# -- with ours ----------------------------------------------------------------------------------------------


def test_source_drives_an_input_of_ours_in_its_own_unit(foreign: Foreign, four_bar_package: Path) -> None:
    """The source gives mV, the valve takes V: the run is that of a function that gives V at the same times."""
    circuit, mechanism = (four_bar_package.with_name(f"{name}.fmu") for name in ("circuit", "mechanism"))
    couplings = (
        "circuit.cylinder.force=mechanism.cylinder.force",
        "mechanism.cylinder.length=circuit.cylinder.length",
        "mechanism.cylinder.velocity=circuit.cylinder.velocity",
        "mechanism.cylinder.static_force=circuit.cylinder.initial_load",
    )
    common = {"step": 1e-3, "stop": 0.2, "algorithm": "jacobi"}
    driven = cosimulate(
        [circuit, mechanism, foreign("source")],
        connections=(*couplings, "source.sine=circuit.valve.command"),
        parameters={"source.amplitude": 8000.0, "source.frequency": 2.0},
        **common,
    )
    function = {"circuit.valve.command": lambda time: 8.0 * math.sin(4 * math.pi * time)}
    reference = cosimulate([circuit, mechanism], connections=couplings, inputs=function, **common)
    assert np.ptp(reference["mechanism.cylinder.length"]) > 1e-3
    for name in reference.names:
        scale = np.max(np.abs(reference[name])) + 1e-9
        np.testing.assert_allclose(driven[name], reference[name], atol=1e-9 * scale)


def test_feed_through_between_ours_delays_by_a_step(foreign: Foreign, four_bar_package: Path) -> None:
    """Stepped after its source and before its target, it changes nothing; the coupled run is the same to the bit."""
    circuit, mechanism = (four_bar_package.with_name(f"{name}.fmu") for name in ("circuit", "mechanism"))
    rest = (
        "mechanism.cylinder.length=circuit.cylinder.length",
        "mechanism.cylinder.velocity=circuit.cylinder.velocity",
        "mechanism.cylinder.static_force=circuit.cylinder.initial_load",
    )
    common = {
        "step": 1e-3,
        "stop": 0.1,
        "algorithm": "gauss-seidel",
        "inputs": {"circuit.valve.command": lambda _: 10.0},
    }
    direct = cosimulate(
        [circuit, mechanism], connections=("circuit.cylinder.force=mechanism.cylinder.force", *rest), **common
    )
    between = cosimulate(
        [circuit, foreign("feed_through"), mechanism],
        connections=(
            "circuit.cylinder.force=feed_through.real_in",
            "feed_through.real_out=mechanism.cylinder.force",
            *rest,
        ),
        **common,
    )
    np.testing.assert_array_equal(between["mechanism.cylinder.length"], direct["mechanism.cylinder.length"])
    assert np.ptp(direct["mechanism.cylinder.length"]) > 1e-4


def test_controller_brings_our_cylinder_where_it_shall(foreign: Foreign, four_bar_package: Path) -> None:
    """A slave of pythonfmu closes the loop around two native FMUs of ours."""
    start = mbsfmu.models.four_bar().simulation().get("cylinder.length")
    result = cosimulate(
        [four_bar_package.with_name("circuit.fmu"), four_bar_package.with_name("mechanism.fmu"), foreign("positioner")],
        connections=(
            "circuit.cylinder.force=mechanism.cylinder.force",
            "mechanism.cylinder.length=circuit.cylinder.length",
            "mechanism.cylinder.velocity=circuit.cylinder.velocity",
            "mechanism.cylinder.static_force=circuit.cylinder.initial_load",
            "mechanism.cylinder.length=positioner.length",
            "positioner.command=circuit.valve.command",
        ),
        parameters={"positioner.wanted": start + 0.02, "positioner.gain": 200.0},
        step=1e-3,
        stop=3.0,
        algorithm="gauss-seidel",
    )
    length = result["mechanism.cylinder.length"]
    assert length[0] == pytest.approx(start, abs=1e-9)
    assert length[-1] == pytest.approx(start + 0.02, abs=1e-3)
    commands = 200.0 * (start + 0.02 - length)
    saturated = np.clip(commands, -10.0, 10.0)
    np.testing.assert_allclose(result["positioner.command"][1:], saturated[1:], atol=1e-12)


def test_many_instances_of_one_unit_keep_apart(foreign: Foreign, tmp_path: Path) -> None:
    files = [tmp_path / f"lag_{index}.fmu" for index in range(4)]
    for file in files:
        file.write_bytes(foreign("dahlquist").read_bytes())
    rates = {f"lag_{index}.rate": 0.5 * (index + 1) for index in range(4)}
    result = cosimulate(files, step=0.1, stop=1.0, parameters=rates)
    for name, rate in rates.items():
        np.testing.assert_allclose(result[name.replace("rate", "x")], np.exp(-rate * result.time), rtol=1e-12)
