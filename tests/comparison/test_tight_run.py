"""What `compare` says that the step costs, and coupling and step together, is what closed forms and SciPy say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from oscillator_in_closed_form import DAMPING, FORCES, JUMPS, MASS, SPEED, START, STIFFNESS, displacement, oscillator
from scipy.linalg import expm

import mbsfmu
from mbsfmu import Array, CoupledModel, Mechanism, Numbers, Quantity, SampledBlock, StepSignal
from mbsfmu.comparison import Comparison
from mbsfmu.comparison.reference_run import tight_run
from mbsfmu.comparison.run import ReferenceRun, load_reference
from mbsfmu.formulations.dca_alm import DcaAlm
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.parts import JointDrive
from mbsfmu.tracing.workspace import Floats

GAIN, SAMPLE = 40.0, 0.0137
STEPS, STOP = (5e-3, 2e-3), 1.5
"""In s; neither of the steps is a multiple of the other."""


class HeldGain(SampledBlock):
    """A spring by a computer: reads a position at each instant and holds its force until the next."""

    type: Literal["held-gain"] = "held-gain"

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("held", "N"),)

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("measured", "m", 0.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("command", "N", nominal=10.0),)

    def update(self, now: Numbers) -> Mapping[str, Array]:
        return {"held": -GAIN * now["measured"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"command": now["held"]}


def sampled() -> CoupledModel:
    """The oscillator that forces push at times off every grid, and a computer between its samples."""
    mechanism = oscillator().systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    forces = (*mechanism.forces, JointDrive(name="pusher", joint="rail"))
    mechanism = mechanism.model_copy(update={"forces": forces})
    return CoupledModel(
        name="sampled-oscillator",
        systems={
            "mechanism": mechanism,
            "computer": HeldGain(sample_time=SAMPLE),
        },
        connections=[
            ("mechanism.slider.displacement", "computer.measured"),
            ("computer.command", "mechanism.motor.force"),
        ],
        signals={"mechanism.pusher.force": StepSignal(times=JUMPS, values=FORCES)},
    )


def in_closed_form(times: Floats) -> dict[str, Floats]:
    """Displacement and command, by the matrix exponential from change to change."""
    matrix = np.array([[0.0, 1.0], [-STIFFNESS / MASS, -DAMPING / MASS]])
    instants = SAMPLE * np.arange(int(times[-1] / SAMPLE) + 1)
    changes = sorted([*((time, None) for time in instants), *zip(JUMPS, FORCES, strict=True)])
    state, begin, push, command, rows = np.array([START, SPEED]), 0.0, 0.0, 0.0, []

    def moved(time: float) -> Floats:
        rest = np.array([(push + command) / STIFFNESS, 0.0])
        return rest + expm(matrix * (time - begin)) @ (state - rest)

    for time in times:
        while changes and changes[0][0] <= time + 1e-12:
            change, value = changes.pop(0)
            state, begin = moved(change), change
            push, command = (push, -GAIN * state[0]) if value is None else (value, command)
        rows.append((moved(time)[0], command))
    displacement, commands = np.array(rows).T
    return {"slider.displacement": displacement, "computer.command": commands}


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return mbsfmu.compare(sampled(), steps=STEPS, algorithms=["gauss-seidel"], stop=STOP, accuracy=1e-3, workers=1)


def test_cost_of_the_step_is_the_true_error(comparison: Comparison) -> None:
    """Of the monolithic trapezoidal run, of sampled controllers and jumping inputs, against the closed form."""
    result = sampled().simulation(step=min(STEPS)).run(STOP)
    expected = in_closed_form(result.time)
    for name, values in expected.items():
        true = float(np.max(np.abs(result[name] - values)) / np.ptp(result[name]))
        said = comparison.reference["error"][name]
        assert said == pytest.approx(true, abs=comparison.tight.uncertainty[name])
        assert 1e-5 > 100.0 * comparison.tight.uncertainty[name] > 0.0, "and not by chance"
        assert true > 20.0 * comparison.tight.uncertainty[name] > 0.0, "the bound says something"


def test_errors_with_the_step_are_true_on_every_grid(comparison: Comparison, tmp_path: Path) -> None:
    """Also where a communication step is no multiple of the others, and where an output jumps."""
    monolithic = sampled().simulation(step=min(STEPS)).run(STOP)
    package = mbsfmu.export(sampled(), tmp_path, layout="separate", step=min(STEPS))[-1]
    assert [run.status for run in comparison.runs] == ["ok", "ok"]
    for run in comparison.runs:
        result = mbsfmu.cosimulate(package, algorithm=run.algorithm, step=run.step, stop=STOP)
        for name, values in in_closed_form(result.time).items():
            true = float(np.max(np.abs(result[name] - values)) / np.ptp(monolithic[name]))
            assert run.error_total[name] == pytest.approx(true, abs=comparison.tight.uncertainty[name])
        assert run.judged == run.worst_total != run.worst_error


def test_errors_of_coupling_and_step_add_up(comparison: Comparison) -> None:
    """On the grid of the monolithic run: none of the three is larger than the other two together."""
    (run,) = (run for run in comparison.runs if run.step == min(STEPS))
    for name, step in comparison.reference["error"].items():
        coupling, total = run.error[name], run.error_total[name]
        assert coupling is not None
        assert total is not None
        assert abs(total - coupling) <= step * (1.0 + 1e-12)
        assert step <= (total + coupling) * (1.0 + 1e-12)


def test_what_is_told_names_both(comparison: Comparison) -> None:
    content, errors = comparison.to_dict(), comparison.reference["error"]
    output = max(errors, key=lambda name: errors[name])
    assert content["tight"]["solver"] == "rodas5p"
    assert content["tight"]["doubt"] == ""
    assert "outputs" not in content["tight"]
    assert content["runs"][0]["error_total"] == comparison.runs[0].error_total
    assert comparison.step_verdict.startswith(
        f"The step of 0.002 s by itself costs {100 * errors[output]:.2g} % ({output})"
    )


# -- against SciPy ------------------------------------------------------------------------------------------


def monolithic_run(model: CoupledModel, formulation: str, step: float, stop: float) -> ReferenceRun:
    simulation = model.simulation(formulation=formulation, step=step)
    result = simulation.run(stop)
    nominals = {v.name: v.nominal or 1.0 for v in simulation.variables if v.causality == "output"}
    return ReferenceRun.of(result, nominals, simulation.exposed.qualified)


@pytest.mark.parametrize("formulation", ["penalty", "dca-alm"])
def test_tight_run_of_a_stiff_machine_is_that_of_scipy(formulation: str) -> None:
    """Through the opening of the valve; another formulation stands for those that no Rosenbrock method takes."""
    model, stop = mbsfmu.models.four_bar("frictionless"), 1.06
    monolithic = monolithic_run(model, formulation, 2e-3, stop)
    tight = tight_run(model, formulation, [2e-3, 4e-3], 1e-3, monolithic)
    precise = {"relative_tolerance": 1e-10, "absolute_tolerance": 1e-10, "step": 2e-3}
    simulation = model.simulation(solver="radau", compiled=False, **precise)
    expected = simulation.run(stop)
    assert (tight.formulation, tight.doubt) == ("double-step", "")
    assert list(tight.outputs) == [2e-3]
    assert tight.on(4e-3) is tight.outputs[2e-3]
    errors = tight.outputs[2e-3].errors(expected, simulation.exposed.by_system)
    assert all(errors[name] <= bound + 1e-7 for name, bound in tight.uncertainty.items())
    assert 1e-9 < max(errors.values()) < tight.worst_uncertainty < 1e-5


@pytest.mark.parametrize(("has_stages", "solver"), [(True, "rodas5p"), (False, "rk45")])
def test_explicit_method_is_taken_where_no_derivatives_are(
    has_stages: bool, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DoubleStep, "has_stages", False)
    monkeypatch.setattr(DcaAlm, "has_stages", has_stages)
    model = oscillator()
    tight = tight_run(model, "dca-alm", [0.01], 1e-3, monolithic_run(model, "dca-alm", 0.01, STOP))
    assert (tight.formulation, tight.solver) == ("dca-alm", solver)
    outputs = tight.outputs[0.01]
    found = outputs.outputs["slider.displacement"]
    assert found == pytest.approx(displacement(outputs.time), abs=tight.worst_uncertainty)


def test_a_run_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DoubleStep, "has_stages", False)
    model = oscillator()
    tight = tight_run(model, "penalty", [0.01], 1e-3, monolithic_run(model, "penalty", 0.01, STOP))
    assert tight.on(0.01) is None
    assert tight.doubt.startswith("what the step costs is not known, for no adaptive solver makes the run (double-step")


def test_runs_that_do_not_agree_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of an accuracy that takes more of them."""
    monkeypatch.setattr("mbsfmu.comparison.reference_run._MOST_RUNS", 2)
    model = mbsfmu.models.four_bar("frictionless")
    tight = tight_run(model, "double-step", [0.01], 1e-3, monolithic_run(model, "double-step", 0.01, 1.06))
    assert tight.worst_uncertainty > 1e-5
    assert tight.doubt.startswith(f"the tight run itself is certain to {100 * tight.worst_uncertainty:.2g} % only")


# -- scales -------------------------------------------------------------------------------------------------


def test_round_off_is_no_range() -> None:
    """Of outputs that are constant, or zero, but for round-off, and for what iterations leave of a stiff force."""
    time = np.linspace(0.0, 1.0, 5)
    noise = 1e-16 * np.array([0.0, 1.0, -1.0, 1.0, 0.0])
    values = np.column_stack([2e5 * (1.0 + noise), noise, 5e4 + 6e11 * noise, 3.0 + time, 3.0 + 1e-6 * time])
    names = ["supply", "aside", "stop", "along", "creeping"]
    run = Trajectory(time, values, names, ["Pa", "m", "N", "m", "m"])
    nominals = {"supply": 1e5, "aside": 1.0, "stop": 1e4, "along": 1.0, "creeping": 1.0}
    reference = ReferenceRun.of(run, nominals, {name: name for name in run})
    expected = {"supply": 2e5, "aside": 1.0, "stop": 5e4, "along": 1.0, "creeping": 1e-6}
    assert reference.scales == pytest.approx(expected)
    assert reference.still == ["supply", "aside", "stop"]


def test_outputs_that_hardly_vary_are_held_against_what_they_belong_to(tmp_path: Path) -> None:
    """The components of a force, an angular acceleration against ω², energies of one mechanism."""
    time = np.linspace(0.0, 1.0, 5)
    noise = 1e-9 * np.array([0.0, 1.0, -1.0, 1.0, 0.0])
    signals = {
        "a.pin.force.x": (1e4 * (1.0 + time), "N", 1e4),
        "a.pin.force.y": (noise, "N", 2e4),
        "a.disc.angular_velocity": (20.0 + 0.0 * time, "rad/s", 20.0),
        "a.disc.angular_acceleration": (noise, "rad/s2", 400.0),
        "a.energy.kinetic": (50.0 + 0.0 * time, "J", 50.0),
        "a.energy.potential": (noise, "J", 50.0),
    }
    values, units = (
        np.column_stack([each for each, _, _ in signals.values()]),
        [each for _, each, _ in signals.values()],
    )
    run, other = (Trajectory(time, each, list(signals), units) for each in (values, values + 2e-9))
    reference = ReferenceRun.of(run, dict.fromkeys(signals, 1e-3), {name: name for name in signals})
    errors = reference.errors(other)
    assert errors == pytest.approx({name: 2e-9 / size for name, (_, _, size) in signals.items()}, rel=1e-3)
    reference.save(tmp_path / "reference.npz")
    assert load_reference(tmp_path / "reference.npz").errors(other) == errors


def test_nothing_is_said_of_the_tolerances_of_the_reference(caplog: pytest.LogCaptureFixture) -> None:
    """They are chosen by the comparison: nobody could take smaller ones."""
    mbsfmu.compare(mbsfmu.models.four_bar(), stop=0.02, steps=[2e-3])  # the first reference is a loose one
    assert not any("tolerances" in message for message in caplog.messages)
