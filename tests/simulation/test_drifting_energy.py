"""Steps that do not resolve the motion are told by the energy that drifts, whatever the rule; others are not."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from stops import ENERGY, MASS, at_most_compressed, stop

from mbsfmu import (
    CoupledModel,
    Mechanism,
    PolynomialSignal,
    PrescribedMotion,
    Revolute,
    RigidBody,
    Spherical,
)
from mbsfmu.modelling.parameters import percent
from mbsfmu.models import BUILT_IN, built_in
from mbsfmu.simulation.run_result import Result
from mbsfmu.simulation.watches import EnergyWatch

NOT_RESOLVED = "the motion or the power of loads is not resolved"
COARSE = 1e-3
FINE = 2e-6
SHORT = 0.02


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if NOT_RESOLVED in each.getMessage()]


def run(model: CoupledModel, horizon: float, **options: object) -> Result:
    return model.simulation(compiled=False, **options).run(horizon)


def test_a_stop_that_steps_pass_over_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """All energy that there is is that of the mass as it comes; where the motion should rest it is not stored."""
    result = run(stop(), SHORT, step=COARSE)
    (sentence,) = warned(caplog)
    drift = np.abs(result["energy.kinetic"] + result["energy.potential"] + result["energy.dissipated"] - ENERGY)
    assert drift.max() > 0.05 * ENERGY
    assert f"energy.drift comes to {drift.max():.3g} J" in sentence
    assert f"from t = {result.time[np.argmax(drift > 0.05 * ENERGY)]:.6g} s on" in sentence
    assert sentence.startswith("stop: ")
    assert sentence.endswith(": take smaller steps, or a solver that chooses them")


@pytest.mark.parametrize("formulation", ["double-step", "penalty", "dca", "hdca", "dca-alm"])
def test_a_spin_that_stays_is_not_exchanged(formulation: str, caplog: pytest.LogCaptureFixture) -> None:
    """A flywheel with a thousand times the energy hides nothing, and is not told itself where it spins alone."""
    spin = np.sqrt(2.0 * 1000.0 * ENERGY / 10.0)
    run(stop(spin=spin), SHORT, step=COARSE, formulation=formulation)
    assert len(warned(caplog)) == 1
    caplog.clear()
    run(stop(speed=0.0, spin=spin), SHORT, step=COARSE, formulation=formulation)
    assert warned(caplog) == []


def test_a_stop_that_is_resolved_is_right_and_nothing_is_told(caplog: pytest.LogCaptureFixture) -> None:
    time, stored = at_most_compressed()
    result = run(stop(), 2.0 * time, step=FINE)
    assert result["energy.potential"].max() == pytest.approx(stored, rel=1e-3)
    assert warned(caplog) == []


def test_where_potential_energy_is_zero_makes_no_difference(caplog: pytest.LogCaptureFixture) -> None:
    """Gravity across the guide and a ground 1 km up: 2 MJ that are never exchanged."""
    run(stop(-9.81), SHORT, step=COARSE)
    assert len(warned(caplog)) == 1


@pytest.mark.parametrize("options", [{"solver": "rk4", "formulation": "dca"}, {"solver": "bdf2"}])
def test_other_rules_are_told_as_well(options: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    run(stop(), 2e-3, step=4e-4, **options)
    assert len(warned(caplog)) == 1


def test_a_machine_with_a_step_as_long_as_its_motion_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """The crank of the quick-return, which turns by 0.7 rad, comes to be more than 0.05 rad from where it should be."""
    coarse = run(built_in("quick-return"), 10.0, step=1.0)
    (sentence,) = warned(caplog)
    assert f"comes to {coarse.largest('energy.drift'):.3g} J" in sentence
    caplog.clear()
    fine = built_in("quick-return").simulation(step=2e-3).run(10.0, output_step=1.0)
    assert warned(caplog) == []
    assert np.ptp(fine["crank.angle"]) > 0.6
    assert np.max(np.abs(coarse["crank.angle"][:: len(coarse.time) // 10] - fine["crank.angle"])) > 0.05


def test_what_to_do_depends_on_what_makes_the_steps() -> None:
    adaptive = {"solver": "rk45", "formulation": "dca", "compiled": False}
    assert "more stabilisation" in built_in("five-bar").simulation(**adaptive).solver.remedy
    assert built_in("pendulum-3").simulation(**adaptive).solver.remedy == "take a smaller tolerance"
    assert built_in("five-bar").simulation(step=1e-3, compiled=False).solver.remedy.startswith("take smaller steps")


@pytest.mark.parametrize("step", [COARSE, FINE])
def test_a_mass_of_a_microgram_is_told_as_a_heavy_one(step: float, caplog: pytest.LogCaptureFixture) -> None:
    """Masses and stiffnesses of all 2e-13 times as large make the same motion, with 0.3 nJ in it."""
    result = run(stop(mass=MASS * 2e-13), SHORT if step == COARSE else 2.0 * at_most_compressed()[0], step=step)
    assert result["energy.kinetic"].max() == pytest.approx(2e-13 * ENERGY)
    assert len(warned(caplog)) == (1 if step == COARSE else 0)


@pytest.mark.parametrize(("moved", "count"), [(5e-11, 0), (5e-3, 1)])
def test_round_off_at_rest_is_not_told(moved: float, count: int, caplog: pytest.LogCaptureFixture) -> None:
    """A weight of 9 kN that creeps at height zero: all that is exchanged is drift, told where it counts."""
    weight, times = 9e3, np.linspace(0.0, 1.0, 11)
    names = ["energy.drift", "energy.kinetic", "energy.potential", "energy.work", "energy.dissipated"]
    watch = EnergyWatch("rack", names, "take smaller steps", [weight * 1.0])
    potential = -weight * moved * times
    still = np.zeros_like(times)
    watch.follow(times, np.column_stack([potential, still, potential, still, still]))
    assert len(warned(caplog)) == count


def test_weights_count_by_the_size_of_the_machine() -> None:
    """A loop of four bars of 1 kg, whose lever arms are its length at least, and its circumference at most."""
    simulation = built_in("loop-4").simulation(compiled=False)
    (scale,) = simulation.energy_watch.scales
    assert 1.0 <= scale / (4.0 * 9.81) <= 4.0


def test_single_steps_are_told_once_a_run(caplog: pytest.LogCaptureFixture) -> None:
    simulation = stop().simulation(compiled=False, step=COARSE)
    for _ in range(2):
        simulation.initialize()
        start = simulation.save()
        for _ in range(2):
            simulation.restore(start)
            for index in range(8):
                simulation.step(index * COARSE, COARSE)
        assert len(warned(caplog)) == 1
        caplog.clear()


def test_what_was_exchanged_is_in_saved_states(caplog: pytest.LogCaptureFixture) -> None:
    """A simulation that goes on elsewhere knows of the start, though the mass rests now."""
    simulation = stop().simulation(compiled=False, step=FINE)
    simulation.step(0.0, 1e-3)
    other = stop().simulation(compiled=False, step=FINE)
    other.restore(simulation.save())
    np.testing.assert_array_equal(other.energy_watch.numbers, simulation.energy_watch.numbers)
    other.step(1e-3, 1e-3)
    assert warned(caplog) == []


@pytest.mark.parametrize(
    ("name", "formulation"),
    [
        *((name, "double-step") for name in (*BUILT_IN, "pendulum-3")),
        *(("four-bar", other) for other in ("hdca", "dca-alm")),
        *(("loop-4", other) for other in ("penalty", "dca")),
    ],
)
def test_usual_steps_of_models_are_fine(name: str, formulation: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        built_in(name).simulation(formulation=formulation).run(0.1)
    assert warned(caplog) == []


def test_a_spin_that_decays_is_held_against_its_own_energy(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing acts on a top, so that all that is exchanged is what its kinetic energy drifts by."""
    joint = Spherical(name="joint", parent="ground.O", child="top.origin", angular_velocity=(9.0, 0.5, 0.3))
    top = RigidBody(name="top", mass=1.0, inertia=(1.0, 2.0, 3.0))
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(top,), joints=(joint,), gravity=(0.0, 0.0, 0.0))
    model = CoupledModel(name="spinning", systems={"mechanism": mechanism})
    result = run(model, 10.0, step=0.1, formulation="dca-alm")
    start = 0.5 * (9.0**2 + 2.0 * 0.5**2 + 3.0 * 0.3**2)
    drift = np.abs(result["energy.kinetic"] - start).max()
    (sentence,) = warned(caplog)
    share = 100.0 * drift / max(start, result["energy.kinetic"].max())
    assert f"no less than the {np.ptp(result['energy.kinetic']):.3g} J exchanged" in sentence
    assert f" and {share:.2g} % of the kinetic energy, and either may be off" in sentence


def test_power_alone_may_be_what_is_not_resolved(caplog: pytest.LogCaptureFixture) -> None:
    """A disc out of balance at a constant speed moves exactly; the work that holds it there is a sum over steps."""
    disc = RigidBody(name="disc", mass=10.0, inertia=(1.0, 1.0, 1.0), centre=(0.5, 0.0, 0.0))
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(disc,),
        joints=(Revolute(name="pivot", parent="ground.O", child="disc.origin", axis=(0.0, 0.0, 1.0)),),
        constraints=(PrescribedMotion(name="drive", joint="pivot"),),
        gravity=(0.0, -9.81, 0.0),
    )
    signals = {"mechanism.drive.position": PolynomialSignal(times=(0.0,), coefficients=((0.0, 3.0),))}
    model = CoupledModel(name="turning", systems={"mechanism": mechanism}, signals=signals)
    result = run(model, 2.0, step=0.2, solver="bdf2")
    np.testing.assert_allclose(result["disc.angle"], 3.0 * result.time, atol=1e-12)
    assert len(warned(caplog)) == 1


@pytest.mark.parametrize(
    ("fraction", "words"),
    [(0.0234, "2.3 %"), (0.994, "99 %"), (0.996, "100 %"), (1.0, "100 %"), (12.3456, "1235 %"), (0.0, "0 %")]
    + [(each, "more than 10000 %") for each in (1e9, np.inf, np.nan)],
)
def test_percents_have_no_exponents(fraction: float, words: str) -> None:
    assert percent(fraction) == words
