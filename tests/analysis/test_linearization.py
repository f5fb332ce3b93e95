"""Linear systems against closed forms, differences of the equations, runs, and other libraries."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import control
import numpy as np
import pytest
from differences import derivative
from documented import ROOT
from oscillator_in_closed_form import DAMPING, MASS, STIFFNESS, oscillator
from scipy.io import loadmat

import mbsfmu
from mbsfmu import (
    CoupledModel,
    FirstOrder,
    Gain,
    InputError,
    JointDrive,
    JointStop,
    Limiter,
    Mechanism,
    PidController,
    Prismatic,
    RigidBody,
    SampledPidController,
    StepSignal,
)


def test_differences_are_extrapolated_to_round_off() -> None:
    """Of a smooth function, one with a magnitude far from one, and one that is linear."""
    for function, magnitude, exact in (
        (lambda x: np.array([math.exp(x), math.sin(3.0 * x), 1.0 / (1.0 + x)]), 1.0, [1.0, 3.0, -1.0]),
        (lambda x: np.array([math.exp(1e-7 * x)]), 1e7, [1e-7]),
        (lambda x: np.array([5.0 * x]), 1e-3, [5.0]),
    ):
        found, error = derivative(function, magnitude)
        np.testing.assert_allclose(found, exact, rtol=1e-10)
        assert np.all(np.abs(found - exact) <= np.maximum(error, 1e-12 * np.abs(exact)))


def test_an_oscillator_is_its_own_linear_system() -> None:
    """m ẍ = F − c ẋ − k x: exact in every element."""
    system = oscillator(driven=True).linearize(outputs=["*slider.displacement", "*slider.acceleration"])
    assert [each.name for each in system.states] == ["slider.displacement", "slider.velocity"]
    ((force,),) = (system.inputs,)
    assert force.unit == "N"
    np.testing.assert_allclose(system.a, [[0.0, 1.0], [-STIFFNESS / MASS, -DAMPING / MASS]], rtol=1e-13)
    np.testing.assert_allclose(system.b, [[0.0], [1.0 / MASS]], rtol=1e-13)
    np.testing.assert_allclose(system.c, [[1.0, 0.0], [-STIFFNESS / MASS, -DAMPING / MASS]], atol=1e-10)
    np.testing.assert_allclose(system.d, [[0.0], [1.0 / MASS]], atol=1e-10)
    (mode,) = system.modes
    natural = math.sqrt(STIFFNESS / MASS)
    assert 2.0 * math.pi * mode.frequency == pytest.approx(natural, rel=1e-13)
    assert mode.damping == pytest.approx(DAMPING / (2.0 * math.sqrt(STIFFNESS * MASS)), rel=1e-13)
    assert sum(mode.participation.values()) == pytest.approx(1.0)
    frequencies = np.array([0.1, 1.0, 10.0])
    s = 2j * np.pi * frequencies
    exact = 1.0 / (MASS * s**2 + DAMPING * s + STIFFNESS)
    np.testing.assert_allclose(system.frequency_response(frequencies)[:, 0, 0], exact, rtol=1e-9)


@pytest.mark.parametrize("count", [1, 4])
def test_a_hanging_chain_has_the_modes_of_its_mass_and_stiffness(count: int) -> None:
    """Of rods of 1 m and 1 kg: M_ij = 1/3 or (n − j + ½ …) by virtual work, K = m g l (n − i + ½)."""
    model = mbsfmu.models.built_in(f"pendulum-{count}")
    rod = model.systems["mechanism"].bodies[0]
    hanging = model.equilibrium().model.linearize()
    n, mass, length, gravity = count, rod.mass, 1.0, 9.81
    # Rod i has its centre at sum of lengths before plus half of its own; angles are absolute.
    lever = np.array([[length * (1.0 if j < i else 0.5 if j == i else 0.0) for j in range(n)] for i in range(n)])
    inertia = mass * lever.T @ lever + np.eye(n) * rod.inertia[2]
    stiffness = np.diag(mass * gravity * lever.sum(axis=0))
    exact = np.sqrt(np.linalg.eigvals(np.linalg.solve(inertia, stiffness)).real)
    found = [2.0 * math.pi * each.frequency for each in hanging.modes]
    np.testing.assert_allclose(sorted(found), sorted(exact), rtol=1e-6)
    assert all(each.damping == pytest.approx(0.0, abs=1e-9) for each in hanging.modes)


def test_kinks_are_told() -> None:
    """A shut valve without lap begins to open to one port or the other: which, the sign of the spool says."""
    shut = mbsfmu.models.built_in("four-bar").linearize()
    assert shut.kinks == ("valve.spool",)
    limited = CoupledModel(
        name="limited",
        systems={"limiter": Limiter(minimum=-1.0, maximum=1.0), "lag": FirstOrder(time_constant=0.1)},
        connections=[("limiter.output", "lag.input")],
    )
    for value, kinks in ((0.999, ()), (1.0, ("limiter.input",))):
        at = limited.model_copy(update={"signals": {"limiter.input": StepSignal(times=(0.0,), values=(value,))}})
        assert at.linearize().kinks == kinks


def test_what_is_smooth_has_no_kink() -> None:
    """Horizontal, hanging and moving: extrema, round-off about zero, and curvature are none."""
    for count in (1, 2, 3):
        model = mbsfmu.models.built_in(f"pendulum-{count}")
        for system in (model.linearize(), model.equilibrium().model.linearize(), model.linearize(at=0.3)):
            assert system.kinks == ()


def test_names_with_their_system_mean_the_same() -> None:
    model = mbsfmu.models.built_in("four-bar")
    for given, output in (("circuit.valve.*", "mechanism.boom.angle"), ("valve.command", "boom.angle")):
        system = model.linearize(inputs=[given], outputs=[output])
        assert [each.name for each in (*system.inputs, *system.outputs)] == ["valve.command", "boom.angle"]
    with pytest.raises(InputError, match=r"'cylinder.force' is driven by a connection; leave that out of the model"):
        model.linearize(inputs=["cylinder.force"])


def test_a_model_without_states_is_all_feed_through() -> None:
    model = CoupledModel(name="only", systems={"gain": Gain(gain=3.0)})
    system = model.linearize()
    np.testing.assert_allclose(system.d, [[3.0]], rtol=1e-12)
    assert (system.a.shape, system.modes) == ((0, 0), ())
    np.testing.assert_allclose(system.frequency_response(1.0), [[[3.0]]], rtol=1e-12)


def test_opened_valves_have_no_kink() -> None:
    opened = {"signals": {"circuit.valve.command": StepSignal(times=(0.0,), values=(2.0,))}}
    assert not mbsfmu.models.built_in("four-bar").model_copy(update=opened).linearize(at=0.05).kinks


def test_published_eigenvalues_of_the_four_bar() -> None:
    system = mbsfmu.models.built_in("four-bar").equilibrium().model.linearize()
    np.testing.assert_allclose(
        system.eigenvalues[2:],
        [-16.864 + 56.852j, -16.864 - 56.852j, -219.911, -11633.481],
        rtol=1e-4,
    )
    assert np.max(np.abs(system.eigenvalues[:2])) < 1e-6
    assert system.moving is None


@pytest.mark.parametrize("name", ["four-bar", "quick-return", "loop-4"])
def test_matrices_are_the_derivatives_of_a_moving_machine(name: str) -> None:
    """A and B against differences of ẋ, which the exact derivatives know nothing of; states as outputs are such."""
    model = mbsfmu.models.built_in(name)
    if name != "loop-4":  # off the kink of a shut valve
        model = model.model_copy(update={"signals": {"circuit.valve.command": StepSignal(times=(0.0,), values=(2.0,))}})
    simulation = model.simulation(formulation="double-step", compiled=False, step=1e-3)
    system = model.linearize(at=0.05, step=1e-3)
    simulation.initialize()
    for index in range(50):
        simulation.step(index * 1e-3, 1e-3)
    run_loop = simulation.run_loop
    form = simulation.formulation.explicit_form(run_loop.present)
    size = len(system.states)
    for place, state in enumerate(system.states):

        def moved(distance: float, place: int = place) -> np.ndarray:
            values = form.start.copy()
            values[place] += distance
            return form.rates(values, run_loop.effective)[:size].copy()

        column, error = derivative(moved, max(abs(state.value), 1e-2))
        scale = np.max(np.abs(system.a), axis=1) + 1e-12
        assert np.max(np.abs(column - system.a[:, place]) / scale) < max(1e-6, 10.0 * np.max(error / scale))
    names = [each.name for each in system.states]
    among = [each for each in system.outputs if each.name in names]
    for output in among:
        row = system.c[[each.name for each in system.outputs].index(output.name)]
        np.testing.assert_allclose(row, np.eye(size)[names.index(output.name)], atol=1e-9)


def test_a_small_step_of_the_valve_moves_the_machine_as_the_linear_system() -> None:
    resting = mbsfmu.models.built_in("four-bar").equilibrium().model
    system = resting.linearize(inputs=["*valve.command"], outputs=["valve.spool", "cylinder.force"])
    low, high = ({"circuit.valve.command": StepSignal(times=(0.01,), values=(size,))} for size in (-1e-3, 1e-3))
    one, other = (
        resting.model_copy(update={"signals": signals}).simulation(relative_tolerance=1e-11).run(0.05, output_step=1e-3)
        for signals in (low, high)
    )
    times = np.arange(0.0, 0.0401, 1e-3)
    _, response = control.forced_response(system.to_control(), times, np.ones_like(times))
    spool = (other["valve.spool"] - one["valve.spool"])[10:] / 2e-3
    np.testing.assert_allclose(spool, np.atleast_2d(response)[0], atol=1e-5 * np.max(np.abs(spool)))


def test_a_closed_loop_is_that_of_its_parts() -> None:
    """A PID controller without filter of the derivative's own: eigenvalues as python-control closes the loop."""
    plant = oscillator(driven=True).systems["mechanism"]
    gains: dict[str, Any] = {"proportional": 30.0, "integral": 4.0, "derivative": 2.0, "filter_time": 0.05}
    pid = PidController(**gains, measured_unit="m", command_unit="N")
    system = CoupledModel(
        name="closed",
        systems={"mechanism": plant, "controller": pid},
        connections=[
            ("mechanism.slider.displacement", "controller.measured"),
            ("controller.command", f"mechanism.{oscillator(driven=True).linearize().inputs[0].name}"),
        ],
    ).linearize()
    s = control.tf("s")
    law = gains["proportional"] + gains["integral"] / s + gains["derivative"] * s / (1.0 + gains["filter_time"] * s)
    closed = control.feedback(law / (MASS * s**2 + DAMPING * s + STIFFNESS))
    poles = control.minreal(closed, verbose=False).poles()
    found = [value for value in system.eigenvalues if abs(value) > 1e-9]
    np.testing.assert_allclose(np.sort_complex(np.array(found)), np.sort_complex(poles), rtol=1e-7)


def test_sampled_blocks_are_held_and_told(tmp_path: Path) -> None:
    plant = oscillator(driven=True).systems["mechanism"]
    force = oscillator(driven=True).linearize().inputs[0].name
    sampled = SampledPidController(proportional=10.0, sample_time=0.01, measured_unit="m", command_unit="N")
    system = CoupledModel(
        name="held",
        systems={"mechanism": plant, "controller": sampled},
        connections=[
            ("mechanism.slider.displacement", "controller.measured"),
            ("controller.command", f"mechanism.{force}"),
        ],
    ).linearize()
    assert system.held
    np.testing.assert_allclose(system.a, [[0.0, 1.0], [-STIFFNESS / MASS, -DAMPING / MASS]], rtol=1e-12)


def test_python_of_the_page_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guides" / "linearization.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(code, names)  # the page is ours
    assert names["plant"].input_labels == ["valve_command"]
    assert {each.name for each in tmp_path.iterdir()} == {"mode.html", "bode.html", "step.html", "modes.html"}


def test_files_hold_the_system(tmp_path: Path) -> None:
    system = mbsfmu.models.built_in("four-bar").linearize(outputs=["boom.angle", "cylinder.*"])
    content = json.loads(system.to_file(tmp_path / "l.json").read_text())
    np.testing.assert_array_equal(content["a"], system.a)
    assert content["outputs"][0] == {"name": "boom.angle", "unit": "rad", "value": system.outputs[0].value}
    read = loadmat(system.to_file(tmp_path / "l.mat"), simplify_cells=True)
    for name in "abcd":
        np.testing.assert_array_equal(
            np.reshape(read[name.upper()], getattr(system, name).shape), getattr(system, name)
        )
    assert list(read["states_names"]) == [each.name for each in system.states]
    assert read["outputs_units"][0] == "rad"
    np.testing.assert_array_equal(system.to_scipy().A, system.a)
    made = system.to_control()
    assert made.input_labels == ["valve_command"]
    part = system.chosen(["valve.command"], ["boom.angle"])
    np.testing.assert_array_equal(part.c, system.c[:1])
    with pytest.raises(InputError, match=r"is refused: a linear system is written to \.json or \.mat"):
        system.to_file(tmp_path / "l.csv")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"inputs": ["valve.comand"]}, "there is no input 'valve.comand'"),
        ({"outputs": ["boom.angel"]}, "there is no output 'boom.angel'"),
        ({"at": -1.0}, "a model is linearized at a time of 0 s or later; -1 s is none"),
        ({"at": math.nan}, "a model is linearized at a time of 0 s or later"),
        ({"formulation": "dca"}, "linearization takes the independent coordinates of 'double-step'"),
    ],
)
def test_what_cannot_be_linearized_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        mbsfmu.models.built_in("four-bar").linearize(**given)


def test_outputs_next_to_an_edge_have_its_side() -> None:
    """A stop of 2e5 N/m, 0.1 mm deep, under 20 kg; a limiter that is 0.1 % beyond its limit."""
    slide = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="car", mass=20.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="rail", parent="ground.O", child="car.origin", displacement=0.02 + 1e-4),),
        forces=(
            JointStop(name="stop", joint="rail", upper=0.02, stiffness=2e5),
            JointDrive(name="drive", joint="rail"),
        ),
    )
    alone = CoupledModel(name="m", systems={"m": slide}).linearize(outputs=["car.acceleration"])
    np.testing.assert_allclose((alone.c, alone.a[1:]), 2 * ([[-1e4, 0.0]],), rtol=1e-12)
    limited = CoupledModel(
        name="limited",
        systems={"m": slide, "limiter": Limiter(minimum=-5.0, maximum=5.0, unit="N")},
        connections=[("limiter.output", "m.drive.force")],
        signals={"limiter.input": StepSignal(times=(0.0,), values=(5.001,))},
    ).linearize(outputs=["car.acceleration"])
    assert (limited.b[1, 0], limited.d[0, 0]) == (0.0, 0.0)


def test_models_with_other_values() -> None:
    """Of a parameter in a unit of its own, and an input that followed a signal."""
    model = mbsfmu.models.built_in("four-bar")
    other = model.with_values({"boom.mass": "300 kg", "valve.command": 2.0})
    assert (other.signals, model.start) == ({}, {})
    assert other.start == {"mechanism.boom.mass": 300.0, "circuit.valve.command": 2.0}
    simulation = other.simulation(compiled=False)
    assert [simulation.get(name) for name in ("boom.mass", "valve.command")] == [300.0, 2.0]
    assert not other.linearize(at=0.05).kinks
    for values, sentence in (
        ({"boom.mas": 1.0}, "boom.mas"),
        ({"boom.mass": "3 bar"}, "boom.mass"),
        ({"boom.mass": 1.0, "mechanism.boom.mass": 2.0}, "boom.mass is given twice"),
        ({"boom.mass": -1.0}, "boom.mass"),
    ):
        with pytest.raises(InputError, match=sentence):
            model.with_values(values)
