"""Modes, frequency and step responses and root loci, against closed forms, python-control, SciPy and runs."""

from __future__ import annotations

import math
from typing import Any

import control
import numpy as np
import pytest
from oscillator_in_closed_form import DAMPING, MASS, STIFFNESS, oscillator
from scipy.linalg import eigh
from scipy.signal import lsim

import mbsfmu
from examples.crane import crane
from mbsfmu import InputError, JointDrive, LinearSignal, LinearSystem
from mbsfmu.analysis.linear_system import OperatingValue
from mbsfmu.analysis.modal_analysis import root_locus
from mbsfmu.analysis.response_plots import frequency_grid, phase_in_degrees
from mbsfmu.models import built_in

_NATURAL = math.sqrt(STIFFNESS / MASS)
_RATIO = DAMPING / (2.0 * math.sqrt(STIFFNESS * MASS))


@pytest.fixture(scope="module")
def driven() -> LinearSystem:
    return oscillator(driven=True).linearize(outputs=["*slider.displacement", "*slider.acceleration"])


@pytest.fixture(scope="module")
def resting() -> Any:
    return built_in("four-bar").equilibrium().model


def made(a: Any, b: Any, c: Any, d: Any) -> LinearSystem:
    """A linear system of matrices."""
    a, b, c, d = (np.atleast_2d(np.asarray(each, dtype=float)) for each in (a, b, c, d))

    def signals(letter: str, count: int) -> tuple[OperatingValue, ...]:
        return tuple(OperatingValue(f"{letter}{k}", "1", 0.0) for k in range(count))

    kinds = signals("x", len(a)), signals("u", b.shape[1]), signals("y", len(c))
    return LinearSystem("made", 0.0, a, b, c, d, *kinds, rates=np.zeros(len(a)))


def test_step_responses_are_exact_at_every_time(driven: LinearSystem) -> None:
    """x = 1/k (1 − e^{−ζωt} (cos ω_d t + ζ/√(1−ζ²) sin ω_d t)); a step of 1 N is felt at once in the acceleration."""
    for points in (7, 400):
        found = driven.step_response(driven.inputs[0].name, 3.0, points)
        damped = _NATURAL * math.sqrt(1.0 - _RATIO**2)
        decay, angle = np.exp(-_RATIO * _NATURAL * found.time), damped * found.time
        sine = _RATIO / math.sqrt(1.0 - _RATIO**2) * np.sin(angle)
        exact = (1.0 - decay * (np.cos(angle) + sine)) / STIFFNESS
        np.testing.assert_allclose(found["slider.displacement"], exact, atol=1e-12 / STIFFNESS)
        assert found["slider.acceleration"][0] == pytest.approx(1.0 / MASS, rel=1e-12)
        assert (len(found.time), found.unit("slider.displacement")) == (points + 1, "m")


def test_step_responses_last_as_long_as_the_slowest_mode() -> None:
    lag = made([[-2.0]], [[1.0]], [[1.0]], [[0.0]]).step_response("u0")
    assert lag.time[-1] == pytest.approx(2.5)
    undamped = made([[0.0, 1.0], [-4.0, 0.0]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]]).step_response("u0")
    assert undamped.time[-1] == pytest.approx(20.0 * math.pi)
    np.testing.assert_allclose(undamped["y0"], (1.0 - np.cos(2.0 * undamped.time)) / 4.0, atol=1e-10)
    integrator = made([[0.0]], [[3.0]], [[1.0]], [[0.0]]).step_response("u0")
    np.testing.assert_allclose(integrator["y0"], 3.0 * integrator.time, atol=1e-12)


def test_responses_of_the_four_bar_are_those_of_other_libraries(resting: Any) -> None:
    system = resting.linearize(inputs=["valve.command"], outputs=["boom.angle", "cylinder.force"])
    found = system.step_response("valve.command", 0.3, 300)
    _, values, _ = lsim(system.to_scipy(), np.ones(301), found.time)
    sizes = np.max(np.abs(values), axis=0)
    np.testing.assert_allclose(found.values_by_column / sizes, values / sizes, atol=1e-8)
    frequencies = frequency_grid(system.eigenvalues)
    response = control.frequency_response(system.to_control(), 2.0 * np.pi * frequencies)
    magnitude = np.abs(system.frequency_response(frequencies))[:, :, 0]
    np.testing.assert_allclose(magnitude, np.squeeze(response.magnitude).T, rtol=1e-6)


def test_a_grid_of_frequencies_meets_resonances() -> None:
    """Of a damping ratio of 1e-4 the peak, 1 / (2 ζ √(1 − ζ²)) of the static response, is met to 1 %."""
    ratio = 1e-4
    system = made([[0.0, 1.0], [-1.0, -2.0 * ratio]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])
    values = np.abs(system.frequency_response(frequency_grid(system.eigenvalues)))
    assert np.max(values) == pytest.approx(1.0 / (2.0 * ratio), rel=0.01)
    undamped = made([[0.0, 1.0], [-1.0, 0.0]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])
    assert np.isfinite(undamped.frequency_response(frequency_grid(undamped.eigenvalues))).all()


def test_phases_have_no_jumps() -> None:
    """Of a chain of five lags the phase goes to −450°."""
    s = 2j * np.pi * np.geomspace(1e-3, 1e4, 400)
    phases = phase_in_degrees(1.0 / (1.0 + s) ** 5)
    np.testing.assert_allclose(phases, -5.0 * np.degrees(np.arctan(np.abs(s))), atol=1e-9)


def test_plots_show_what_was_asked_for(driven: LinearSystem) -> None:
    bode = driven.bode([0.1, 1.0, 10.0])
    assert [(panel.label, panel.unit) for panel in bode.panels] == [
        ("magnitude", "m/N"),
        ("magnitude", "m/s2/N"),
        ("phase", "deg"),
    ]
    exact = np.abs(driven.frequency_response([0.1, 1.0, 10.0]))[:, 0, 0]
    np.testing.assert_allclose(bode.panels[0].curves[0].y, exact)
    poles = [curve for panel in driven.poles().panels for curve in panel.curves]
    assert [curve.label for curve in poles] == ["decaying"]
    np.testing.assert_allclose(np.sort(poles[0].y), [-driven.eigenvalues[0].imag, driven.eigenvalues[0].imag])
    part = driven.chosen([driven.inputs[0].name], ["slider.displacement"])
    (panel,) = part.nyquist([0.1, 1.0, 10.0]).panels
    points = part.frequency_response([0.1, 1.0, 10.0])[:, 0, 0]
    np.testing.assert_allclose(panel.curves[0].y, points.imag[np.argsort(points.real)])
    with pytest.raises(InputError, match=r"a Nyquist plot has one unit; the responses have m/N, m/s2/N"):
        driven.nyquist()


# -- modes ------------------------------------------------------------------------------------------------------------


def test_shapes_of_a_hanging_chain_are_those_of_its_mass_and_stiffness() -> None:
    """Generalized eigenvectors of a chain of rods in absolute angles, from which joint angles are differences."""

    count = 3
    model = built_in(f"pendulum-{count}")
    analysis = model.equilibrium().model.modal_analysis()
    rod = model.systems["mechanism"].bodies[0]
    lever = np.array([[1.0 if j < i else 0.5 if j == i else 0.0 for j in range(count)] for i in range(count)])
    inertia = rod.mass * lever.T @ lever + np.eye(count) * rod.inertia[2]
    squares, vectors = eigh(np.diag(rod.mass * 9.81 * lever.sum(axis=0)), inertia)
    by_frequency = sorted(analysis.shapes, key=lambda each: each.mode.frequency)
    for shape, square, vector in zip(by_frequency, squares, vectors.T, strict=True):
        joints = np.diff(vector, prepend=0.0)
        exact = joints / joints[np.argmax(np.abs(joints))]
        found = np.array(list(shape.motion.values()))
        np.testing.assert_allclose(found, exact, atol=1e-5)
        assert 2.0 * np.pi * shape.mode.frequency == pytest.approx(math.sqrt(square), rel=1e-6)
        assert shape.pressures == {}


def test_modes_of_the_four_bar_move_it_and_its_pressures(resting: Any) -> None:
    """The shape of a mode satisfies the equations: the force of δp on the pistons is the mass times λ² δx."""
    analysis = resting.modal_analysis(inputs=["valve.command"], outputs=["boom.angle"])
    assert [each.name for each in analysis.system.outputs] == ["boom.angle"]
    (place,) = (each for each, mode in enumerate(analysis.modes) if mode.oscillates)
    shape = analysis.shapes[place]
    whole = resting.linearize(outputs=["rocker.angle", "cylinder.length", "boom.angle", "V2.pressure"])
    value = shape.mode.eigenvalue
    # The same shape by another way: the response to an initial state along the eigenvector, by differences.
    vector = np.linalg.solve(whole.a - (value + 1e-7) * np.eye(len(whole.a)), np.ones(len(whole.a)))
    exact = whole.c @ vector
    assert shape.motion["rocker.angle"] == 1.0
    assert shape.motion["boom.angle"] == pytest.approx(exact[2] / exact[0], rel=1e-5)
    assert shape.pressures["V2.pressure"] == pytest.approx(exact[3] / exact[0], rel=1e-5)
    assert set(analysis.moving) >= {place}
    assert len(analysis.moving) < len(analysis.modes)


def test_a_mode_moves_the_machine_about_its_operating_point(resting: Any) -> None:
    analysis = resting.modal_analysis()
    (place,) = (each for each, mode in enumerate(analysis.modes) if mode.oscillates)
    drawn = analysis.animation(place)
    (run,) = drawn.payload["runs"]
    assert set(run["pressures"]) >= {"circuit.V2", "circuit.V3"}
    assert drawn.payload["arrows"] == []
    caption = analysis.caption(place)
    assert caption.startswith(
        f"Mode {place + 1} oscillates at 9.438 Hz with a damping ratio of 0.284. One period, 111\u00a0ms"
    )
    assert "rocker.angle moves by ±0.15 rad" in caption
    with pytest.raises(InputError, match=r"in mode 3 no body moves"):
        analysis.animation(3)
    with pytest.raises(InputError, match=r"there is no mode 9"):
        analysis.animation(9)
    alone = mbsfmu.ModalAnalysis(analysis.system)
    assert (alone.shapes, alone.moving) == ((), ())


# -- root loci --------------------------------------------------------------------------------------------------------


def test_a_root_locus_is_that_of_the_closed_form() -> None:
    """Of m over the mass: λ² m + c λ + k = 0."""
    model = oscillator(driven=True)
    name = next(each.name for each in model.simulation(compiled=False).variables if each.name.endswith("slider.mass"))
    masses = [4.0 * MASS, MASS, 2.0 * MASS]
    locus = model.root_locus(name, masses)
    np.testing.assert_allclose(locus.values, sorted(masses))
    for mass, found in zip(locus.values, locus.eigenvalues, strict=True):
        exact = np.roots([mass, DAMPING, STIFFNESS])
        np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(exact), rtol=1e-10)
    assert np.all(np.diff(locus.eigenvalues[:, 0].imag) < 0.0)
    np.testing.assert_allclose(locus.growth, -DAMPING / (2.0 * locus.values), rtol=1e-10)
    assert [panel.label for panel in locus.damping_plot().panels][1:] == ["natural frequency", "damping ratio"]
    labels = [curve.label for curve in locus.plot().panels[0].curves]
    assert labels == [f"{name} = {MASS:.4g} kg", "between", f"{name} = {4.0 * MASS:.4g} kg"]
    with pytest.raises(InputError, match=r"needs two different finite values at least"):
        model.root_locus(name, [1.0, 1.0])


def test_branches_go_on_where_their_order_changes() -> None:
    """A pair with the real part v − 3 passes a pole at −2."""

    def at(value: float) -> LinearSystem:
        real = value - 3.0
        return made([[-2.0, 0.0, 0.0], [0.0, real, 2.0], [0.0, -2.0, real]], np.ones((3, 1)), np.ones((1, 3)), [[0.0]])

    locus = root_locus("gain", "1", [0.0, 0.5, 1.5, 2.0], at)
    np.testing.assert_allclose(locus.eigenvalues[:, 0], -2.0)
    np.testing.assert_allclose(locus.eigenvalues[:, 1], locus.values - 3.0 + 2.0j)


def test_operating_points_follow_the_parameter(resting: Any) -> None:
    """At the equilibrium of each mass as `with_values` and `equilibrium` find it."""
    model = built_in("four-bar")
    locus = model.root_locus("boom.mass", [200.0, 400.0], equilibrium=True)
    for value, system in zip(locus.values, locus.systems, strict=True):
        exact = model.with_values({"boom.mass": float(value)}).equilibrium().model.linearize()
        np.testing.assert_allclose(system.eigenvalues, exact.eigenvalues, atol=1e-6)
        assert system.moving is None


# -- against the nonlinear run ----------------------------------------------------------------------------------------


def test_the_frequency_response_of_the_crane_is_that_of_a_chirp() -> None:
    """A moment of 2 N m on the boom from 0.3 to 15 Hz in 6 s, 9 s for motions to fade: quotient of Fourier transforms.

    Hook and cylinder are damped more, so that they do. Steps of h shift a resonance by (ωh)²/12, 9e-5, and change its
    peak by 2Q as much, 1.4e-3.
    """
    machine = crane()
    systems = {
        name: _with(machine.systems[name], field, part, value)
        for name, field, part, value in (
            ("mechanism", "forces", "hook_friction", {"damping": 400.0}),
            ("circuit", "components", "lift", {"viscous_friction": 3e4}),
        )
    }
    shaken = (*systems["mechanism"].forces, JointDrive(name="shaker", joint="pivot"))
    systems["mechanism"] = systems["mechanism"].model_copy(update={"forces": shaken})
    model = machine.model_copy(update={"systems": systems, "signals": {}})
    resting = model.equilibrium().model
    outputs = ["boom.angle", "load.angle", "lift.pressure_piston"]
    system = resting.linearize(inputs=["shaker.*"], outputs=outputs)
    ((force,),) = (system.inputs,)
    time = np.arange(0.0, 15.0005, 1e-3)
    sweep = 2.0 * np.sin(2.0 * np.pi * (0.3 * time + 14.7 / 12.0 * time**2)) * (time < 6.0)
    chirp = LinearSignal(times=tuple(time), values=tuple(sweep))
    moved = resting.model_copy(
        update={
            "signals": {f"mechanism.{force.name}": chirp},
            "start": {name: each for name, each in resting.start.items() if not name.endswith(force.name)},
        }
    )
    run = moved.simulation(solver="trapezoidal", step=5e-4).run(15.0, output_step=1e-3)
    frequencies = np.fft.rfftfreq(len(time), 1e-3)
    band = (frequencies > 0.5) & (frequencies < 12.0)
    exact = system.frequency_response(frequencies[band])[:, :, 0]
    given = np.fft.rfft(sweep)[band]
    for column, name in enumerate(outputs):
        found = np.fft.rfft(run[name] - run[name][0])[band] / given
        assert np.max(np.abs(found - exact[:, column])) < 5e-3 * np.max(np.abs(exact[:, column])), name


def _with(system: Any, field: str, name: str, values: dict[str, float]) -> Any:
    """Return a system, one of whose parts has other values."""
    parts = [each.model_copy(update=values) if each.name == name else each for each in getattr(system, field)]
    return system.model_copy(update={field: tuple(parts)})
