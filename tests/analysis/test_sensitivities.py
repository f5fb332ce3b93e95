"""Sensitivities and gradients of runs against complex steps, central differences and each other."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from differentiated_cases import CASES
from driven_crank import driven_crank
from oscillator_in_closed_form import DAMPING, FORCES, JUMPS, MASS, SPEED, START, STIFFNESS, oscillator

import mbsfmu
from hydraulics import Circuit, Oil, PressureSource, Tank, Throttle, VariableOrifice, Volume
from mbsfmu import CoupledModel, InputError, LeastSquares, SimulationError, SineSignal
from mbsfmu.analysis.recorded_run import RecordedRun
from mbsfmu.analysis.sensitivities import DifferentiableRun, computed_variables, parameter_places
from mbsfmu.analysis.state_equations import regular
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.native import many_points

STEP = 1e-3
COMPLEX = 1e-30
"""Step of complex differences: nothing cancels [Squire, Trapp 1998]."""


def trapezoidal_oscillator(stop: float, forces: Any = FORCES, mass: Any = MASS, start: Any = START) -> Any:
    """Return times, displacements and accelerations of trapezoidal steps that halt at the jumps, as complex numbers."""
    grid = np.arange(round(stop / STEP) + 1) * STEP
    times = np.unique(np.round(np.concatenate([grid, [each for each in JUMPS if each < stop]]), 12))
    matrix = np.array([[0.0, 1.0], [-STIFFNESS / mass, -DAMPING / mass]])
    state, states = np.array([start, SPEED], dtype=complex), []
    states.append(state)
    for begin, end in pairwise(times):
        force = next((value for jump, value in zip(JUMPS[::-1], forces[::-1], strict=True) if jump <= begin), 0.0)
        half, push = 0.5 * (end - begin), np.array([0.0, force / mass])
        right = state + half * (matrix @ state + 2.0 * push)
        state = np.linalg.solve(np.eye(2) - half * matrix, right)
        states.append(state)
    return times, np.array(states)


def compile_at_points(monkeypatch: pytest.MonkeyPatch, *, compiled: bool) -> None:
    """Have functions at points compiled at once, or never."""
    monkeypatch.setattr(many_points, "_NOTICED", -1.0 if compiled else 1e9)
    monkeypatch.setattr(many_points, "_PATIENCE", (-1.0, 0.0))
    many_points._evaluated.clear()


@pytest.mark.parametrize("compiled", [True, False])
def test_an_oscillator_through_jumps_off_the_grid(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derivatives are those of the very steps: by the mass and by the start, to round-off; accelerations jump."""
    compile_at_points(monkeypatch, compiled=compiled)
    model, names = oscillator(), ["slider.mass", "slider.displacement_start"]
    outputs = ["*slider.displacement", "*slider.acceleration"]
    found = model.sensitivities(names, outputs, stop=1.2, newton_tolerance=1e-13)
    times, by_mass = trapezoidal_oscillator(1.2, mass=MASS + COMPLEX * 1j)
    by_start = trapezoidal_oscillator(1.2, start=START + COMPLEX * 1j)[1]
    np.testing.assert_allclose(found.time, times, atol=1e-12)
    np.testing.assert_allclose(found["slider.displacement"], by_mass[:, 0].real, atol=1e-12)
    for name, exact in (("mass", by_mass), ("displacement_start", by_start)):
        derivative = found.derivative("slider.displacement", f"slider.{name}")
        np.testing.assert_allclose(derivative, exact[:, 0].imag / COMPLEX, atol=1e-10)
    forces = np.append(0.0, FORCES)[np.searchsorted(np.array(JUMPS) - 1e-9, times)]  # after each jump
    mass = MASS + COMPLEX * 1j
    accelerations = (forces - STIFFNESS * by_mass[:, 0] - DAMPING * by_mass[:, 1]) / mass
    np.testing.assert_allclose(found["slider.acceleration"], accelerations.real, atol=1e-9)
    derivative = found.derivative("slider.acceleration", "slider.mass")
    np.testing.assert_allclose(derivative, accelerations.imag / COMPLEX, atol=1e-8)
    assert found.parameter_units == ("kg", "m")


def test_the_gradient_by_samples_of_an_input() -> None:
    """A force that is another one between two jumps changes both ends of all steps there."""
    model = oscillator()
    motor, mass = "*motor.force", "slider.mass"
    found = model.gradient("slider.displacement", [mass], [motor], stop=1.0)
    (by_samples,) = found.inputs.values()
    moved = trapezoidal_oscillator(1.0, (FORCES[0], FORCES[1] + COMPLEX * 1j, FORCES[2]))[1][-1, 0].imag / COMPLEX
    inside = (found.time > JUMPS[1] + 1e-9) & (found.time < 1.0 - 1e-9)
    edge = abs(found.time - JUMPS[1]) < 1e-9
    before = trapezoidal_oscillator(1.0, (FORCES[0] + COMPLEX * 1j, *FORCES[1:]))[1][-1, 0].imag / COMPLEX
    early = (found.time > JUMPS[0] + 1e-9) & (found.time < JUMPS[1] - 1e-9)
    total = by_samples[inside].sum() + by_samples[edge].sum() + by_samples[-1] + by_samples[early].sum()
    first = by_samples[abs(found.time - JUMPS[0]) < 1e-9].sum()
    # At the jumps one sample is the sum for both sides: with no force before the first, half a step of it is not moved.
    assert abs(total + first - moved - before) <= 0.6 * abs(first) + 1e-12
    assert abs(by_samples[inside].sum() - moved) < 0.01 * abs(moved)
    exact = trapezoidal_oscillator(1.0, mass=MASS + COMPLEX * 1j)[1][-1].imag / COMPLEX
    assert found.parameters[mass] == pytest.approx(exact[0], rel=1e-9)
    # Accelerations are read at both sides of the jumps.
    found = model.gradient("integral(slider.acceleration)", [mass], stop=1.0)
    assert found.parameters[mass] == pytest.approx(exact[1], rel=1e-9)


def differences(model: CoupledModel, name: str, outputs: list[str], stop: float, share: float = 1e-4) -> Any:
    """Return the derivative of outputs at the end of a run, by central differences that are extrapolated once."""
    simulation = model.simulation(formulation="double-step", solver="trapezoidal", step=STEP, newton_tolerance=1e-11)
    start = simulation.get(name)
    found = []
    for width in (share, 0.5 * share):
        ends = []
        for sign in (1.0, -1.0):
            simulation.reset()
            simulation.set(name, start + sign * width * abs(start))
            result = simulation.run(stop)
            ends.append(np.array([result[each][-1] for each in outputs]))
        found.append((ends[0] - ends[1]) / (2.0 * width * abs(start)))
    return (4.0 * found[1] - found[0]) / 3.0


PARAMETERS = {
    "valve.flow_coefficient": 1e-3,
    "boom.length": 1e-4,
    "boom.mass": 1e-4,
    "hose_3.volume": 1e-2,
    "V3.initial_pressure": 1e-3,
    "link.angle_start": 1e-4,
    "rocker.angle_start": 1e-3,
}
"""With the share by which each is moved."""
OUTPUTS = ["boom.angle", "boom.angular_velocity", "cylinder.pressure_piston", "cylinder.force", "pump.flow"]


@pytest.fixture(scope="module")
def four_bar() -> Any:
    """The four-bar through the opening of its valve at 1 s, with its sensitivities and the gradient of an end value."""
    model = mbsfmu.models.built_in("four-bar")
    options: Any = {"stop": 1.06, "newton_tolerance": 1e-11}
    return model, model.sensitivities(list(PARAMETERS), OUTPUTS, **options), options


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_four_bar_through_its_valve(four_bar: Any, name: str) -> None:
    """Lengths and masses in the loop, volumes, the valve and the start, against central differences."""
    model, found, options = four_bar
    expected = differences(model, name, OUTPUTS, options["stop"], PARAMETERS[name])
    column = found.parameters.index(name)
    np.testing.assert_allclose(found.derivatives[-1, :, column], expected, rtol=1e-6)


@pytest.mark.parametrize(
    "of", ["cylinder.force", "integral(pump.flow)", "max(boom.angular_velocity)", "mean(boom.angle)"]
)
def test_the_adjoint_is_the_transpose_of_the_forward_steps(four_bar: Any, of: str) -> None:
    """The gradient equals the sum of sensitivities with the weights of the measure."""
    model, found, options = four_bar
    gradient = model.gradient(of, list(PARAMETERS), **options)
    kind, _, rest = of.partition("(")
    output = rest[:-1] or kind
    row = found.outputs.index(output)
    values, derivatives = found.values[:, row], found.derivatives[:, row]
    expected = {
        "cylinder.force": (values[-1], derivatives[-1]),
        "integral": (np.trapezoid(values, found.time), np.trapezoid(derivatives, found.time, axis=0)),
        "max": (values.max(), derivatives[int(np.argmax(values))]),
        "mean": (np.trapezoid(values, found.time) / 1.06, np.trapezoid(derivatives, found.time, axis=0) / 1.06),
    }[kind]
    # The flow jumps with nothing at the event: the spool follows the command.
    assert gradient.value == pytest.approx(expected[0], rel=1e-9)
    np.testing.assert_allclose(list(gradient.parameters.values()), expected[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("of", "name", "share"),
    [
        ("cylinder.pressure_piston", "boom.length", 1e-4),
        ("integral(cylinder.force)", "boom.mass", 1e-4),
        ("rms(boom.angular_velocity)", "valve.flow_coefficient", 1e-3),
    ],
)
def test_gradients_through_the_valve_by_differences(four_bar: Any, of: str, name: str, share: float) -> None:
    """Whole runs with other values; differences extrapolated once."""
    model, _, options = four_bar
    found = model.gradient(of, [name], **options)
    simulation = model.simulation(formulation="double-step")
    start = simulation.get(name)
    full = simulation.variable(name).name
    slopes = []
    for width in (share, 0.5 * share):
        ends = [
            model.with_values({full: start * (1.0 + sign * width)}).gradient(of, ["pump.pressure"], **options).value
            for sign in (1.0, -1.0)
        ]
        slopes.append((ends[0] - ends[1]) / (2.0 * width * start))
    assert found.parameters[full] == pytest.approx((4.0 * slopes[1] - slopes[0]) / 3.0, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "of", "stop"),
    [
        ("four-bar", "integral(cylinder.force)", 1.04),
        ("loop-8", "rms(link_5.angle)", 0.96),
        ("pendulum-3", "link_3.angular_acceleration", 0.2),
    ],
)
@pytest.mark.parametrize("options", [{"step": STEP}, {"solver": "rodas5p"}], ids=["trapezoidal", "rodas5p"])
def test_compiled_gradients_are_those_of_the_interpreter(
    model: str, of: str, stop: float, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jumps of the valve, other independent coordinates, and a tree, without a compiler and with one."""
    found = mbsfmu.models.built_in(model)
    inputs = [each.name for each in found.simulation().functions.system.inputs]
    names = ["gravity.y", *(["boom.mass", "pump.pressure", "V3.initial_pressure"] if inputs else [])]
    gradients = []
    for compiled in (True, False):
        compile_at_points(monkeypatch, compiled=compiled)
        gradients.append(found.gradient(of, names, inputs, stop=stop, **options))
    assert gradients[0].value == pytest.approx(gradients[1].value, rel=1e-12)
    for name, derivative in gradients[1].parameters.items():
        assert gradients[0].parameters[name] == pytest.approx(derivative, rel=1e-9), name
    for name, derivatives in gradients[1].inputs.items():
        scale = np.max(np.abs(derivatives))
        assert scale > 0.0
        np.testing.assert_allclose(gradients[0].inputs[name], derivatives, atol=1e-9 * scale)


@pytest.mark.parametrize(
    ("model", "names", "stop"),
    [
        ("four-bar", ["valve.flow_coefficient", "boom.mass", "V3.initial_pressure", "boom.C.along"], 1.04),
        ("stewart-platform", ["plate.inertia_xx", "plate.joint_0.x"], 0.05),
        ("driven-crank", ["rod.mass", "crank.length"], 0.1),
    ],
)
def test_compiled_sensitivities_are_those_of_the_interpreter(
    model: str, names: list[str], stop: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jumps of the valve, references of orientations, and work of a motion, of all that is computed."""
    made = driven_crank() if model == "driven-crank" else mbsfmu.models.built_in(model)
    simulation = made.differentiated_steps("a test", {"solver": "trapezoidal"}).any
    computed = computed_variables(simulation)
    chosen, rows = parameter_places(simulation, names), list(range(len(computed)))
    kept = [row for row in rows if computed[row].name != "energy.drift"]  # a difference of large numbers
    found = []
    for compiled in (False, True):
        compile_at_points(monkeypatch, compiled=compiled)
        simulation.reset()
        run = DifferentiableRun(simulation, stop, kept)
        found.append([run.begin, run.end, *run.slopes(chosen)])
        assert {each.library is not None for each in many_points._evaluated.values()} == {compiled}
    for exact, each in zip(*found, strict=True):
        scale = np.abs(exact).max(axis=0)
        assert np.count_nonzero(scale)
        # Sums of powers cancel, and what is zero is round-off of the largest.
        assert np.all(np.abs(each - exact).max(axis=0) <= 1e-6 * scale + 1e-13 * scale.max())


@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_those_of_the_runs(case: str) -> None:
    """Forward against differences of fourth order of whole runs, and by the adjoint."""
    made, parameters, outputs, stop = CASES[case]
    model, tight = made(), {"step": STEP, "newton_tolerance": 1e-13}
    found = model.sensitivities(list(parameters), outputs, stop=stop, **tight)
    simulation = model.simulation(formulation="double-step", solver="trapezoidal", **tight)
    for column, (name, share) in enumerate(parameters.items()):
        value, ends = simulation.get(name), []
        for place in (-2.0, -1.0, 1.0, 2.0):
            simulation.reset()
            simulation.set(name, value * (1.0 + place * share))
            run = simulation.run(stop, output_step=stop)
            ends.append([run[each][-1] for each in outputs])
        expected = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0 @ np.array(ends) / (share * value)
        np.testing.assert_allclose(found.derivatives[-1, :, column], expected, rtol=1e-6, err_msg=name)
    for row, of in enumerate(outputs[:2]):
        gradient = model.gradient(of, list(parameters), stop=stop, **tight)
        np.testing.assert_allclose(list(gradient.parameters.values()), found.derivatives[-1, row], rtol=1e-7)


def test_functions_are_compiled_when_the_interpreter_has_taken_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a single run, and never again where the compiler fails, which is told."""
    simulation = mbsfmu.models.built_in("pendulum-3").differentiated_steps("a test", {"step": STEP}).any
    chosen = parameter_places(simulation, ["link_2.mass"])

    def slopes() -> Any:
        simulation.reset()
        return DifferentiableRun(simulation, 0.1, [0, 1]).slopes(chosen)[1]

    def broken(*_: Any, **__: Any) -> Any:
        asked.append(1)
        raise CompilerError("no space left")

    asked: list[int] = []
    warned: list[str] = []
    monkeypatch.setattr(many_points, "warn_once", warned.append)
    monkeypatch.setattr(many_points, "kept_library", lambda _: None)
    monkeypatch.setattr(many_points, "compile_library", broken)
    monkeypatch.setattr(many_points, "_libraries", {})
    first = slopes()
    assert not asked
    monkeypatch.setattr(many_points, "_NOTICED", 0.0)
    monkeypatch.setattr(many_points, "_PATIENCE", (1e9, 0.0))
    slopes()
    assert not asked
    monkeypatch.setattr(many_points, "_PATIENCE", (1e-9, 0.0))
    np.testing.assert_array_equal(slopes(), first)
    assert set(warned) == {"no space left; derivatives are not compiled, CasADi's interpreter finds them"}
    tried = len(asked)
    np.testing.assert_array_equal(slopes(), first)
    assert len(asked) == tried > 2


@pytest.mark.parametrize(("model", "name"), [("pendulum-3", "mass"), ("loop-4", "length")])
def test_a_point_that_is_singular_is_told(model: str, name: str) -> None:
    """Without masses, and without lengths of a loop."""
    simulation = mbsfmu.models.built_in(model).differentiated_steps("a test", {"step": STEP}).any
    names = [each.name for each in simulation.functions.system.parameters]
    states = RecordedRun(simulation, 0.01, [0]).equations.states
    singular = [index for index, each in enumerate(names) if name in each or "inertia" in each]
    states.at.constants["parameters"][singular] = 0.0
    states.at.points.values.pop("basis", None)
    with pytest.raises(SimulationError, match="singular at a point of the run"), regular():
        states.complete([0])


def test_coordinates_that_are_chosen_anew() -> None:
    """The loop of eight links takes other independent coordinates at 0.94 s."""
    model = mbsfmu.models.built_in("loop-8")
    options: Any = {"newton_tolerance": 1e-11}
    names = ["link_1.angle", "link_5.angle", "link_5.angular_velocity"]
    simulation = model.simulation(formulation="double-step", solver="trapezoidal", **options)
    simulation.run(0.96)
    assert simulation.statistics.repartitions == 1
    found = model.sensitivities(["gravity.y"], names, stop=0.96, **options).derivatives[-1, :, 0]
    # Wider differences would choose coordinates a step sooner or later.
    np.testing.assert_allclose(found, differences(model, "gravity.y", names, 0.96, 1e-5), rtol=1e-5)
    gradient = model.gradient("link_5.angle", ["gravity.y"], stop=0.96, **options)
    assert gradient.parameters["gravity.y"] == pytest.approx(found[1], rel=1e-9)


def test_another_choice_of_coordinates_changes_no_derivative() -> None:
    """Two pentagons take other independent coordinates at 2.969 s: one motion before and after, by a length, too."""
    simulation = mbsfmu.models.built_in("double-pentagon").differentiated_steps("a test", {"step": STEP}).any
    chosen = parameter_places(simulation, ["link_1.length", "link_5.mass"])
    first, count = len(simulation.functions.system.outputs), len(simulation.functions.coordinates)
    run = DifferentiableRun(simulation, 2.98, list(range(first, first + 3 * count)))
    assert simulation.statistics.repartitions == 1
    at_begin, at_end = run.slopes(chosen)
    before, after = at_end[:-1], at_begin[1:]
    scales = np.abs(before).max(axis=(0, 1))
    assert np.all(scales > 1.0)
    np.testing.assert_allclose(after / scales, before / scales, atol=1e-8)


def fed_volume(share: float) -> CoupledModel:
    """A volume between an orifice with a table and a throttle: nothing moves."""
    table = ((0.0, 0.0), (0.5, share), (1.0, 1.0))
    gate = VariableOrifice(name="gate", inlet="P", outlet="A", area=1e-6, discharge_coefficient=0.65, points=table)
    out = Throttle(name="out", inlet="A", outlet="T", orifice_diameter=8e-4, discharge_coefficient=0.7)
    pump, tank = PressureSource(name="pump", node="P", pressure=7e6), Tank(name="tank", node="T", pressure=1e5)
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0),
        components=(pump, gate, Volume(name="near", node="A", volume=1e-4), out, tank),
        initial_pressures={"A": 1e6},
    )
    command = SineSignal(amplitude=0.4, frequency=2.0, offset=0.5)
    return CoupledModel(
        name="fed", systems={"circuit": circuit}, signals={"circuit.gate.command": command}, outputs=("A.pressure",)
    )


def test_a_circuit_without_a_machine_by_the_table_of_its_valve() -> None:
    """By differences of the same steps; and the table of the run that was measured is found again."""
    found = fed_volume(0.1).sensitivities(["gate.points_2"], ["A.pressure"], stop=0.5, step=STEP)
    near, runs = 1e-5, []
    for share in (0.1 - near, 0.1 + near):
        run = fed_volume(share).simulation(solver="trapezoidal", step=STEP).run(0.5, output_step=STEP)
        runs.append(run["A.pressure"])
    derivative = (runs[1] - runs[0]) / (2.0 * near)
    assert derivative.max() > 2e6
    np.testing.assert_allclose(
        found.derivative("A.pressure", "gate.points_2"), derivative, atol=1e-6 * derivative.max()
    )
    measured = fed_volume(0.17).simulation(solver="rodas5p").run(0.5, output_step=0.01)
    log = {"time": measured.time, "A.pressure": measured["A.pressure"]}
    assert fed_volume(0.1).fit(log, {"gate.points_2": (0.0, 1.0)}).values == pytest.approx([0.17], abs=1e-4)


def test_least_squares_to_a_signal() -> None:
    """Values measured between steps: of the exact signal the sum is zero, next to it the gradient is 2 Σ (y − m) y′."""
    model = oscillator()
    times = np.array([0.1, 0.3335, 0.9])
    run = model.sensitivities(["slider.mass"], ["*slider.displacement"], stop=1.0, step=STEP)
    exact = np.interp(times, run.time, run["slider.displacement"])
    slopes = np.interp(times, run.time, run.derivative("slider.displacement", "slider.mass"))
    assert (
        model.gradient(LeastSquares("slider.displacement", times, exact), ["slider.mass"], stop=1.0, step=STEP).value
        < 1e-24
    )
    found = model.gradient(
        LeastSquares("slider.displacement", times, exact - 0.1, 0.5), ["slider.mass"], stop=1.0, step=STEP
    )
    assert found.value == pytest.approx(3 * 0.04)
    assert found.parameters["slider.mass"] == pytest.approx(np.sum(2.0 * 0.1 / 0.25 * slopes), rel=1e-9)
    # Names as they may be asked for find results too.
    same = run.derivative("mechanism.slider.displacement", "mechanism.slider.mass")
    np.testing.assert_array_equal(same, run.derivative("slider.displacement", "slider.mass"))
    np.testing.assert_array_equal(run["mechanism.slider.displacement"], run["slider.displacement"])
    assert found.parameters["mechanism.slider.mass"] == found.parameters["mass"] == found.parameters["slider.mass"]
    with pytest.raises(InputError, match=r"there is no parameter 'spring\.mass'; there are slider\.mass"):
        found.parameters["spring.mass"]


def test_one_run_gives_the_gradient_by_all_parameters() -> None:
    """Its cost hardly depends on their number: counted in evaluations, which are the same."""
    model = mbsfmu.models.built_in("four-bar")
    names = [each.name for each in model.simulation().variables if each.causality.value == "parameter"]
    names = [each for each in names if not each.startswith("solver")]
    found = model.gradient("boom.angle", names, stop=0.1)
    assert len(found.parameters) == len(names) > 45
    assert all(math.isfinite(each) for each in found.parameters.values())


def test_what_is_not_differentiated_is_refused() -> None:
    """In one sentence."""
    model = oscillator()
    for match, call in (
        ("there is no parameter|no parameter", lambda: model.sensitivities(["slider.weight"], stop=1.0)),
        ("is named twice", lambda: model.sensitivities(["slider.mass", "slider.mass"], stop=1.0)),
        ("name parameters or inputs", lambda: model.gradient("slider.displacement", stop=1.0)),
        ("is no measure", lambda: model.gradient("peak(slider.displacement)", ["slider.mass"], stop=1.0)),
        ("not of .rk4.", lambda: model.sensitivities(["slider.mass"], solver="rk4")),
        (
            r"'rail\.force\.x' is recorded by runs, but not",
            lambda: model.gradient("rail.force.x", ["slider.mass"], stop=1.0),
        ),
        ("the run ends at", lambda: model.sensitivities(["slider.mass"], stop=-1.0)),
        (
            "is measured from",
            lambda: model.gradient(LeastSquares("slider.displacement", [2.0], [0.0]), ["slider.mass"], stop=1.0),
        ),
    ):
        with pytest.raises(InputError, match=match):
            call()
