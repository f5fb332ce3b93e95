"""Units for model exchange, which the master integrates: closed forms, SciPy, and the same runs made in other ways."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.linear_units import exact
from cosim.ssp_documents import component, connector, system
from model_exchange_fmus import CHATTERS, CRASHES, DISCARDS, FAILS, HANGS, NEVER_CONVERGES, NOT_FINITE
from model_exchange_fmus.runs import SOLVERS, VERSIONS, Jumper, alone
from scipy.integrate import solve_ivp

import mbsfmu
from mbsfmu import Cosimulation, CosimulationError, InputError, LinearSignal, StepSignal, cosimulate
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmu_instance import FmuEnded, FmuError
from mbsfmu.cosim.fmus.instantiation import make_instance
from mbsfmu.cosim.fmus.model_exchange import ModelExchangeInstance

CONNECTIONS = ("two.force=jumper.force", "jumper.v=two.velocity")
HALF = {"jumper.x": 0.1, "jumper.stiffness": 40.0, "jumper.damping": 0.4}
"""The half of the oscillator that takes a force."""


@VERSIONS
@SOLVERS
def test_van_der_pol_is_as_scipy_has_it(jumper: Jumper, version: int, solver: str) -> None:
    options = {"unit_solver": solver, "unit_tolerance": 1e-11}
    result = alone(jumper(version), 2.0, 0.1, options, x=2.0, stiffness=1.0, swing=20.0)
    reference = solve_ivp(
        lambda _, y: [y[1], 20.0 * (1.0 - y[0] ** 2) * y[1] - y[0]], (0, 2), [2.0, 0.0], "DOP853",
        t_eval=result.time.clip(0, 2), rtol=1e-13, atol=1e-13,
    ).y  # fmt: skip
    np.testing.assert_allclose(result["jumper.x"], reference[0], atol=1e-8)


def test_the_tolerance_of_units_is_that_of_their_integration(jumper: Jumper) -> None:
    def error(**options: Any) -> float:
        result = alone(jumper(2), 3.0, 3.0, options, x=1.0, stiffness=4.0)
        return abs(result.final()["jumper.x"] - np.cos(6.0))

    errors = [error(unit_tolerance=tolerance) for tolerance in (1e-3, 1e-6, 1e-9)]
    assert errors[0] > 10.0 * errors[1] > 100.0 * errors[2]
    assert errors[2] < 1e-7
    assert error() == errors[1]


def test_nominal_values_are_what_absolute_tolerances_go_by(jumper: Jumper) -> None:
    small, large = (
        alone(jumper(3), 3.0, 3.0, {"unit_tolerance": 1e-4}, x=1e-3, stiffness=4.0, nominal=nominal).final()["jumper.x"]
        for nominal in (1e-3, 1e3)
    )
    assert abs(small - 1e-3 * np.cos(6.0)) < 1e-6 < abs(large - 1e-3 * np.cos(6.0))


@VERSIONS
def test_derivatives_of_the_unit_and_differences_lead_to_one_result(jumper: Jumper, version: int) -> None:
    call = {"x": 2.0, "stiffness": 1.0, "swing": 30.0}
    flag = 'canGetAndSetFMUstate="true"' if version == 2 else 'needsCompletedIntegratorStep="true"'
    given, without = (alone(unit, 2.0, 0.1, **call) for unit in (jumper(version), jumper(version, flags=flag)))
    np.testing.assert_allclose(given["jumper.x"], without["jumper.x"], atol=1e-5)
    assert (given["jumper.x"] != without["jumper.x"]).any()


# -- inputs -----------------------------------------------------------------------------------------------------------


@VERSIONS
def test_inputs_are_held_or_run_straight(jumper: Jumper, version: int) -> None:
    """x'' = t is x = t³/6: exact where the force runs straight, of first order where it is held."""
    ramp = {"jumper.force": LinearSignal(times=(0.0, 2.0), values=(0.0, 2.0))}
    call: dict[str, Any] = {"inputs": ramp, "stop": 2.0, "algorithm": "jacobi", "unit_tolerance": 1e-10}
    straight = cosimulate([jumper(version)], extrapolation="linear", step=0.1, **call)
    np.testing.assert_allclose(straight["jumper.x"], straight.time**3 / 6.0, atol=1e-11)
    np.testing.assert_allclose(straight["jumper.acceleration"], straight.time, atol=1e-12)
    off = [
        abs(cosimulate([jumper(version)], step=step, **call).final()["jumper.x"] - 4.0 / 3.0) for step in (0.1, 0.05)
    ]
    assert off[0] / off[1] == pytest.approx(2.0, abs=0.2)


@VERSIONS
def test_discrete_inputs_and_parameters_are_set_in_event_mode(jumper: Jumper, version: int) -> None:
    """The unit refuses them elsewhere; v = 2 (t - 1) from 1 s on, where the force is 0.5 and the kick 1.5."""
    inputs = {
        "jumper.force": StepSignal(times=(1.0,), values=(0.5,)),
        "jumper.kick": StepSignal(times=(1.0,), values=(1.5,)),
    }
    result = cosimulate([jumper(version)], inputs=inputs, step=0.25, stop=3.0)
    np.testing.assert_allclose(result["jumper.v"], 2.0 * np.maximum(result.time - 1.0, 0.0), atol=1e-9)
    assert result["jumper.events"][-1] == 2  # one for each of them
    assert result.unit_events == {"jumper": 0}


# -- coupled ----------------------------------------------------------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize(
    ("options", "order"),
    [
        ({"algorithm": "gauss-seidel"}, 1),
        ({"algorithm": "jacobi", "extrapolation": "linear"}, 2),
        ({"algorithm": "newton", "extrapolation": "linear"}, 2),
        ({"algorithm": "fixed-point", "extrapolation": "quadratic"}, 3),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else str(value),
)
def test_one_unit_steps_and_the_other_is_integrated(
    jumper: Jumper, halves_exact: list[Path], version: int, options: dict[str, str], order: int
) -> None:
    """The oscillator in two halves, against its closed form, as both halves do that step by themselves."""

    def error(step: float) -> float:
        result = cosimulate(
            [jumper(version), halves_exact[1]], connections=CONNECTIONS, parameters=HALF, step=step, stop=0.5,
            unit_tolerance=1e-10, iteration_tolerance=1e-10 if order == 3 or options["algorithm"] == "newton" else None,
            **options,
        ).final()  # fmt: skip
        found = [result[name] for name in ("jumper.x", "jumper.v", "two.position", "two.speed")]
        return float(np.max(np.abs(np.array(found) - exact(0.5))))

    errors = [error(step) for step in (0.01, 0.005)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)
    assert errors[1] < 5e-3


@VERSIONS
def test_controlled_steps_are_made_again(jumper: Jumper, halves_exact: list[Path], version: int) -> None:
    result = cosimulate(
        [jumper(version), halves_exact[1]], connections=CONNECTIONS, parameters=HALF, step=0.02, stop=0.5,
        control="error", extrapolation="linear", tolerance=1e-3,
    )  # fmt: skip
    assert result.rejected_steps > 0
    found = [result.final()[name] for name in ("jumper.x", "jumper.v", "two.position", "two.speed")]
    np.testing.assert_allclose(found, exact(0.5), atol=1e-3)


@VERSIONS
@SOLVERS
@pytest.mark.parametrize(("forces", "slope"), [((5.0, 1.0), 1.0), ((5.0, 1.0), 0.0), ((0.0, 0.0), 0.0)])
def test_a_step_that_is_made_again_is_the_same_to_the_last_bit(
    jumper: Jumper, version: int, solver: str, forces: tuple[float, float], slope: float
) -> None:
    """What the integrator goes on with is brought back with the unit: events, the length of its steps, its time."""
    with closing(Archive(jumper(version))) as archive, closing(make_instance("jumper", archive, solver)) as unit:
        unit.setup(0.0, 3.0)
        for name, value in {"x": 1.0, "gravity": 9.81, "restitution": 0.7, "period": 0.1, "swing": 0.3}.items():
            unit.set_start(name, value)
        unit.enter_initialization()
        unit.exit_initialization()
        outputs = unit.port(["x", "v", "ticks", "bounces", "events"])
        force, kick = unit.port(["force"]), unit.port(["kick"])

        def step(time: float, value: float) -> None:
            force.values[0], force.slopes[0], kick.values[0] = value, slope, value
            force.write()
            force.write_slopes()
            if value:  # else nothing tells the unit to update what it has named
                kick.write()
            unit.step(time, 0.3)

        seen = []
        for time in (0.0, 0.3, 0.6, 0.9):
            unit.save("begin", time)
            for value in forces:
                if seen:
                    unit.restore("begin")
                step(time, value)
                first = outputs.read().copy(), unit.events, unit.read_next_event()
                unit.restore("begin")
                step(time, value)
                np.testing.assert_array_equal(outputs.read(), first[0])
                assert (unit.events, unit.read_next_event()) == first[1:]
                seen.append(first[0])
        assert seen[-1][2] == 12
        assert seen[-1][3] >= 1


@VERSIONS
def test_a_unit_that_is_put_back_before_its_end_goes_on(jumper: Jumper, version: int) -> None:
    """It ends the run at 0.5 s, whatever is asked for; put back to 0.25 s it moves on by x = cos 2t."""
    with closing(Archive(jumper(version))) as archive, closing(make_instance("jumper", archive)) as unit:
        unit.setup(0.0, 3.0, 1e-9)
        for name, value in {"x": 1.0, "stiffness": 4.0, "last": 0.5}.items():
            unit.set_start(name, value)
        unit.enter_initialization()
        unit.exit_initialization()
        place = unit.port(["x"])
        unit.step(0.0, 0.25)
        unit.save("before", 0.25)
        with pytest.raises(FmuEnded) as ended:
            unit.step(0.25, 0.5)
        assert ended.value.time == pytest.approx(0.5, abs=1e-15)
        unit.restore("before")
        unit.step(0.25, 0.1)
        assert place.read()[0] == pytest.approx(np.cos(0.7), abs=1e-7)


@VERSIONS
def test_a_unit_is_told_that_nobody_goes_back(jumper: Jumper, version: int) -> None:
    """It refuses states from before then; not while one is kept."""
    with closing(Archive(jumper(version))) as archive, closing(make_instance("jumper", archive)) as unit:
        unit.setup(0.0, 3.0)
        unit.set_start("v", 1.0)
        unit.enter_initialization()
        unit.exit_initialization()
        place, begin = unit.port(["x"]), unit.serialize()
        unit.save("begin", 0.0)
        unit.step(0.0, 0.5)
        unit.deserialize(begin)
        assert place.read()[0] == 0.0
        unit.release("begin")
        unit.step(0.0, 0.5)
        assert place.read()[0] == pytest.approx(0.5)
        with pytest.raises(FmuError, match="a state is set that is from before what was said to stay"):
            unit.deserialize(begin)


@VERSIONS
@pytest.mark.parametrize("extrapolation", ["zero", "linear"])
def test_a_saved_run_goes_on_and_units_may_have_a_process_of_their_own(
    jumper: Jumper, halves_exact: list[Path], tmp_path: Path, version: int, extrapolation: str
) -> None:
    units = [jumper(version), halves_exact[1]]
    call: dict[str, Any] = {
        "connections": CONNECTIONS, "parameters": {**HALF, "jumper.period": 0.07, "jumper.restitution": 0.5},
        "step": 0.01, "stop": 0.4, "extrapolation": extrapolation,
    }  # fmt: skip
    whole = cosimulate(units, **call)
    cosimulate(units, until=0.21, save=tmp_path / "run.zip", **call)
    rest = cosimulate(units, resume=tmp_path / "run.zip", **call)
    np.testing.assert_array_equal(rest.values_by_column, whole.values_by_column[whole.time >= rest.time[0]])
    assert rest.unit_events == whole.unit_events
    assert whole.unit_events["jumper"] > 5
    if extrapolation == "linear":
        isolated = cosimulate(units, isolate=["jumper"], **call)
        np.testing.assert_array_equal(isolated.values_by_column, whole.values_by_column)
        assert isolated.unit_events == whole.unit_events


@VERSIONS
def test_the_jacobian_is_that_of_the_unit(jumper: Jumper, version: int) -> None:
    with closing(Archive(jumper(version))) as archive, closing(make_instance("jumper", archive)) as unit:
        assert isinstance(unit, ModelExchangeInstance)
        unit.setup(0.0, 3.0)
        for name, value in {"stiffness": 3.0, "damping": 0.2, "swing": 0.7}.items():
            unit.set_start(name, value)
        unit.enter_initialization()
        unit.exit_initialization()
        jacobian = unit.jacobian()
        assert jacobian is not None
        found = jacobian(0.0, np.array([0.4, -2.0]))
        expected = [[0.0, 1.0], [-3.0 - 2.0 * 0.7 * 0.4 * -2.0, -0.2 + 0.7 * (1.0 - 0.4**2)]]
        np.testing.assert_allclose(found, expected, atol=1e-14)
        np.testing.assert_allclose(unit.differences(0.0, np.array([0.4, -2.0])), expected, atol=1e-6)


@pytest.mark.parametrize("integrated", ["mechanism", "circuit"])
def test_one_half_of_a_machine_of_ours_is_integrated(four_bar_package: Path, integrated: str) -> None:
    """The valve opens at 1 s, an event that the circuit names: against all in one, by another solver."""
    model = mbsfmu.models.four_bar()
    result = cosimulate(
        four_bar_package, model_exchange=[integrated], extrapolation="linear", step=2e-3, stop=1.2, inputs=model.signals
    )
    whole = model.simulation(solver="rodas5p", step=2e-3).run(1.2)
    for name in ("circuit.cylinder.force", "mechanism.boom.angle"):
        expected = whole[name.partition(".")[2]]
        np.testing.assert_allclose(result[name], expected, atol=3e-3 * np.max(np.abs(expected)), rtol=0.0)
    assert set(result.unit_events) == {integrated}


# -- what goes wrong --------------------------------------------------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (
            DISCARDS,
            r"jumper cannot be integrated beyond t = 1\.\d+ s: fmi\dGet\w*Derivatives gives discard: x is beyond 2",
        ),
        (FAILS, r"jumper at t = 0\.5 s: fmi\dGet\w*Derivatives gives error: it is later than half past"),
        (NEVER_CONVERGES, r"jumper at t = 0 s: the event iteration does not converge in 1000 iterations"),
        (NOT_FINITE, r"jumper cannot be integrated beyond t = 1\.\d+ s: the derivative of v is not finite, in steps"),
        (CHATTERS, r"jumper has one event after the other at t = 0\.6 s"),
    ],
)
def test_what_goes_wrong_is_one_sentence(jumper: Jumper, version: int, fault: int, sentence: str) -> None:
    with pytest.raises(CosimulationError if fault != NEVER_CONVERGES else Exception, match=sentence) as failure:
        alone(jumper(version), 3.0, 0.1, x=0.0, v=2.0, damping=0.1, period=0.2, fault=fault)
    if fault != NEVER_CONVERGES:
        rows = failure.value.result
        assert rows.time[-1] == pytest.approx(1.0 if fault in (DISCARDS, NOT_FINITE) else 0.5, abs=0.11)


def test_a_unit_that_hangs_or_crashes_takes_no_row_with_it(jumper: Jumper) -> None:
    for fault, sentence in ((HANGS, "did not come back within 2 s in its step"), (CRASHES, "its process was ended")):
        options = {"isolate": "all", "time_limit": 2.0}
        with pytest.raises(CosimulationError, match=sentence) as failure:
            alone(jumper(3), 1.0, 0.1, options, v=1.0, fault=fault)
        np.testing.assert_allclose(failure.value.result["jumper.x"], failure.value.result.time, atol=1e-12)
        assert failure.value.result.time[-1] == pytest.approx(0.5)


def test_what_a_unit_lacks_is_said(jumper: Jumper, halves_exact: list[Path]) -> None:
    units = [jumper(2, flags=""), halves_exact[1]]
    call: dict[str, Any] = {"connections": CONNECTIONS, "step": 0.01, "stop": 0.1}
    with pytest.raises(InputError, match="jumper cannot save the state, which newton needs to repeat steps"):
        cosimulate(units, algorithm="newton", **call)
    with (
        Cosimulation(units, **call) as run,
        pytest.raises(InputError, match="jumper cannot save the state for another process"),
    ):
        run.save("run.zip")
    notes = cosimulate(units, extrapolation="derivatives", **call).notes
    assert any("jumper.v give no derivatives by time: slopes are taken from the last steps" in note for note in notes)


# -- the choice -------------------------------------------------------------------------------------------------------


@VERSIONS
def test_a_unit_for_both_steps_by_itself_unless_asked_otherwise(jumper: Jumper, version: int, make: Any) -> None:
    both = jumper(version, both=True)
    with pytest.raises(Exception, match=r"cannot be instantiated|DoStep"):
        alone(both, 0.1)
    for chosen in ("all", ["jumper"]):
        assert alone(both, 0.1, options={"model_exchange": chosen}, v=1.0).final()["jumper.x"] == pytest.approx(0.1)
    alone(jumper(version), 0.1, options={"model_exchange": "all"})


def test_a_choice_without_effect_is_refused(jumper: Jumper, halves_exact: list[Path]) -> None:
    call: dict[str, Any] = {"step": 0.01, "stop": 0.1}
    with pytest.raises(InputError, match="there is no FMU 'tow' to be run by model exchange; there are all, one, two"):
        cosimulate(halves_exact, model_exchange=["tow"], **call)
    with pytest.raises(
        InputError, match=r"two.fmu is no FMI 2.0 or 3.0 FMU for model exchange \(it is FMI 2.0 for co-"
    ):
        cosimulate([halves_exact[1]], model_exchange=["two"], **call)
    with pytest.raises(InputError, match="the FMU solver 'dop853' has no effect: no FMU is run by model exchange"):
        cosimulate(halves_exact, unit_solver="dop853", **call)
    with pytest.raises(InputError, match="there is no FMU solver 'cvode'; there are radau, dop853"):
        alone(jumper(2), options={"unit_solver": "cvode"})


def test_a_package_says_how_its_components_are_run(jumper: Jumper, make: Callable[..., Path]) -> None:
    """Where it says nothing, as where it says "any", an FMU for model exchange alone is run so."""
    ways = [("ModelExchange", True, True), ("any", True, False), ("CoSimulation", True, False), ("", False, True)]
    for how, both, runs in ways:
        attributes = f'implementation="{how}"' if how else ""
        package = make(
            system(component("a", "jumper", connector("x", "output"), attributes=attributes)), name=f"package{how}"
        )
        with zipfile.ZipFile(package, "a") as archive:
            archive.write(jumper(2, both=both), "resources/jumper.fmu")
        if runs:
            assert cosimulate(package, parameters={"a.v": 2.0}, stop=0.1, step=0.05).final()["a.x"] == pytest.approx(
                0.2
            )
        else:
            with pytest.raises(Exception, match=r"cannot be instantiated|DoStep"):
                cosimulate(package, stop=0.1, step=0.05)
