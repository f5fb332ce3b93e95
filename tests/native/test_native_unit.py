"""What only native FMUs do, through FMPy as an importer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_char_p, c_double, c_int, c_void_p
from pathlib import Path

import fmpy
import numpy as np
import pytest
from crane import crane
from fmpy import fmi2
from fmpy.fmi1 import FMICallException
from importer import Importer
from native_fmus import Exported

import mbsfmu
from mbsfmu.compiling.compiler import VERSIONS, Fmi

Native = Callable[..., Exported]
OUTPUTS = {
    "four-bar": ("boom.angle", "boom.angular_velocity", "cylinder.length", "cylinder.force"),
    "quick-return": ("crank.angle", "ram.angular_velocity", "cylinder.length", "cylinder.force"),
    "double-pentagon": ("link_1.angle", "link_8.angular_velocity"),
    "pendulum-3": ("link_1.angle", "link_3.angular_velocity"),
}


@pytest.mark.parametrize("formulation", ["double-step", "penalty"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_native_unit_matches_the_run_in_process(native: Native, name: str, formulation: str) -> None:
    """Over 10 s this is a row of docs/studies/native-fmus.md; here to where the valve has opened."""
    unit = native(name, formulation)
    expected = unit.simulation.run(1.2)
    grid = {"stop_time": 1.2, "step_size": 1e-3, "output_interval": 1e-3}
    result = fmpy.simulate_fmu(str(unit.path), **grid, output=OUTPUTS[name])
    for output in OUTPUTS[name]:
        scale = np.ptp(expected[output])
        assert scale > 0.0
        np.testing.assert_allclose(result[output], expected[output], atol=1e-9 * scale, rtol=1e-9)


def test_coupled_native_and_python_units_agree(tmp_path: Path) -> None:
    model = mbsfmu.models.quick_return()
    runs = []
    for backend in ("native", "python"):
        package = mbsfmu.export(model, tmp_path / backend, layout="separate", backend=backend)[-1]
        runs.append(mbsfmu.cosimulate(package, step=1e-3, stop=1.1, algorithm="gauss-seidel"))
    for name in ("cylinder.length", "crank.angular_velocity", "circuit.cylinder.force"):
        np.testing.assert_allclose(runs[0][name], runs[1][name], rtol=1e-9, atol=1e-11)


@pytest.fixture(params=VERSIONS)
def importer(native: Native, tmp_path: Path, request: pytest.FixtureRequest) -> Importer:
    return Importer(native("four-bar", "double-step", fmi=request.param).path, tmp_path / "unpacked")


only_2 = pytest.mark.parametrize("importer", [2], indirect=True)
"""For what FMI 2.0 alone has words for."""


@pytest.mark.parametrize(("system", "fmi"), [("mechanism", 2), ("circuit", 2), ("circuit", 3)])
def test_directional_derivatives_match_differences(tmp_path: Path, system: str, fmi: Fmi) -> None:
    """The crane's cylinder has friction: its force depends on the velocity directly."""
    paths = {path.stem: path for path in mbsfmu.export(crane(), tmp_path, layout="separate", fmi=fmi)}
    importer = Importer(paths[system], tmp_path / "unpacked")
    slave = importer.running()
    inputs = [v.name for v in importer.description.modelVariables if v.causality == "input"]
    unknowns = [v.name for v in importer.description.modelVariables if v.causality == "output"]
    unknowns += [name for name in importer.reference if name.endswith("acceleration")]
    references = [importer.reference[name] for name in unknowns]
    for name in inputs:
        start = importer.get(slave, name)
        step = 1e-6 * max(abs(start), 1.0)
        exact = np.array(slave.getDirectionalDerivative(references, [importer.reference[name]], [1.0]))
        importer.set(slave, name, start + step)
        ahead = np.array(slave.getReal(references))
        importer.set(slave, name, start - step)
        behind = np.array(slave.getReal(references))
        importer.set(slave, name, start)
        scale = max(np.max(np.abs(exact)), np.max(np.abs(ahead)) * 1e-3, 1e-12)
        np.testing.assert_allclose((ahead - behind) / (2 * step), exact, atol=1e-6 * scale)
        assert np.any(exact) == (name in ("lift.force", "lift.velocity"))


def test_output_derivatives_match_differences(importer: Importer) -> None:
    """Central differences of the outputs one tiny step before and after."""
    slave = importer.running()
    for index in range(1100):
        slave.doStep(index * 1e-3, 1e-3)
    names = ("boom.angle", "boom.angular_velocity", "cylinder.length", "cylinder.velocity", "cylinder.force")
    references = [importer.reference[name] for name in names]
    step, values, rates = 1e-5, [], []
    for index in range(3):
        values.append(np.array(slave.getReal(references)))
        rates.append(np.array(slave.getRealOutputDerivatives(references, [1] * len(names))))
        slave.doStep(1.1 + index * step, step)
    difference = (values[2] - values[0]) / (2 * step)
    np.testing.assert_allclose(rates[1], difference, rtol=1e-4, atol=1e-7)


def test_inputs_with_derivatives_are_ramps(tmp_path: Path) -> None:
    """One step with a slope against a run in process whose input is a ramp."""
    model = mbsfmu.models.four_bar()
    path = mbsfmu.export(model, tmp_path, layout="monolithic")[0]
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    reference = [importer.reference["valve.command"]]
    slave.setReal(reference, [1.0])
    slave.setRealInputDerivatives(reference, [1], [20.0])
    slave.doStep(0.0, 0.1)
    ramp = mbsfmu.LinearSignal(times=(0.0, 0.1), values=(1.0, 3.0))
    ramped = model.model_copy(update={"signals": {"circuit.valve.command": ramp}})
    expected = ramped.simulation().run(0.1)
    for name in ("valve.command", "valve.spool", "cylinder.length", "cylinder.force"):
        assert importer.get(slave, name) == pytest.approx(expected[name][-1], rel=1e-9)


@pytest.mark.parametrize(
    ("parameter", "value", "sentence"),
    [
        ("cylinder.retracted_length", 1.5, "cylinder.length starts at 1.41421 m; it must be between 1.49"),
        ("oil.vapour_pressure", 4e6, "V3.pressure starts at 3.5e+06 Pa; it must be above 4e+06"),
    ],
)
def test_impossible_starts_are_refused(importer: Importer, parameter: str, value: float, sentence: str) -> None:
    with pytest.raises(FMICallException):
        importer.running(**{parameter: value})
    assert any(sentence in message for _, message in importer.messages)


def test_wrong_guid_gives_no_instance(importer: Importer) -> None:
    importer.description.guid = "{nothing}"
    with pytest.raises(Exception, match="instantiate"):
        importer.instance()
    assert any("is {nothing}; this FMU has" in message for _, message in importer.messages)


def test_unit_goes_on_after_a_failed_step(native: Native, tmp_path: Path) -> None:
    mechanism = next(
        path
        for path in mbsfmu.export(mbsfmu.models.four_bar(), tmp_path, layout="separate")
        if path.stem == "mechanism"
    )
    importer = Importer(mechanism, tmp_path / "unpacked")
    slave = importer.running()
    saved = slave.getFMUstate()
    importer.set(slave, "cylinder.force", 1e12)
    with pytest.raises(FMICallException, match="discard"):
        slave.doStep(0.0, 0.1)
    assert any("fails even with" in message for _, message in importer.messages)
    assert slave.getRealStatus(fmi2.fmi2LastSuccessfulTime) == 0.0
    # FMPy's own loop asks for a discarded step again, for ever, unless that is an error.
    importer.set(slave, "cylinder.force", 1e12)
    with pytest.raises(FMICallException, match="error"):
        slave.doStep(0.0, 0.1)
    assert "the same step was discarded before, and nothing was set since" in importer.messages[-1][1]
    importer.set(slave, "cylinder.force", 2e12)
    with pytest.raises(FMICallException, match="discard"):
        slave.doStep(0.0, 0.1)
    with pytest.raises(FMICallException, match="discard"):
        slave.doStep(0.0, 0.05)
    slave.setFMUstate(saved)
    slave.doStep(0.0, 0.1)
    assert importer.get(slave, "cylinder.velocity") == pytest.approx(0.0, abs=1e-9)


def test_fmpy_ends_where_a_step_cannot_be_made(native: Native, tmp_path: Path) -> None:
    mechanism = mbsfmu.export(mbsfmu.models.four_bar(), tmp_path, layout="separate")[0]
    pushed = np.array(
        [(0.0, 0.0), (0.05, 0.0), (0.06, 1e12), (1.0, 1e12)], dtype=[("time", float), ("cylinder.force", float)]
    )
    with pytest.raises(FMICallException, match="error"):
        fmpy.simulate_fmu(str(mechanism), input=pushed, stop_time=1.0, output_interval=0.01, logger=lambda *_: None)


def test_modes_are_kept(importer: Importer) -> None:
    slave = importer.instance()
    for call in (lambda: slave.doStep(0.0, 1e-3), slave.exitInitializationMode, slave.terminate):
        with pytest.raises(FMICallException):
            call()
    slave.setupExperiment(startTime=0.0, stopTime=0.01)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    with pytest.raises(FMICallException):
        slave.doStep(0.0, 0.02)
    assert "after the stop time of 0.01 s" in importer.messages[-1][1]
    slave.doStep(0.0, 0.01)
    with pytest.raises(FMICallException):
        slave.setReal([importer.reference["cylinder.length"]], [1.0])
    assert "cylinder.length is computed and cannot be set" in importer.messages[-1][1]


def test_hundred_instances_in_four_threads_agree(importer: Importer) -> None:
    slaves = [importer.running() for _ in range(100)]

    def run(slave: fmi2.FMU2Slave) -> list[float]:
        for index in range(60):
            slave.doStep(index * 1e-3, 1e-3)
        return importer.everything(slave)

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(run, slaves))
    assert all(result == results[0] for result in results)


def test_archive_holds_binary_and_sources(native: Native) -> None:
    platforms = fmpy.supported_platforms(str(native("four-bar", "double-step").path))
    assert set(platforms) == {"c-code", "linux64"}


@pytest.mark.parametrize(("name", "stop"), [("four-bar", 1.1), ("pendulum-3", 1.0), ("double-pentagon", 0.3)])
def test_equal_explicit_steps_match_the_run_in_process(tmp_path: Path, name: str, stop: float) -> None:
    model = mbsfmu.models.built_in(name)
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", solver="rk4", step=1e-4)
    expected = model.simulation(solver="rk4", step=1e-4).run(stop, output_step=1e-2)
    grid = {"stop_time": stop, "step_size": 1e-2, "output_interval": 1e-2}
    result = fmpy.simulate_fmu(str(path), **grid, output=OUTPUTS[name])
    for output in OUTPUTS[name]:
        scale = np.max(np.abs(expected[output]))
        np.testing.assert_allclose(result[output], expected[output], atol=1e-9 * scale)


def test_adaptive_explicit_steps_keep_their_tolerance(tmp_path: Path) -> None:
    """Against DOP853 at 1e-11; a hundred times the tolerance has to give a larger error and fewer steps."""
    model = mbsfmu.models.pendulum(3)
    options = {"relative_tolerance": 1e-11, "absolute_tolerance": 1e-11, "step": 0.05}
    expected = model.simulation(solver="dop853", **options).run(2.0)
    errors = []
    for tolerance in (1e-8, 1e-6):
        folder = tmp_path / f"{tolerance:g}"
        tolerances = {"relative_tolerance": tolerance, "absolute_tolerance": tolerance}
        (path,) = mbsfmu.export(model, folder, layout="monolithic", solver="rk45", **tolerances)
        result = fmpy.simulate_fmu(str(path), stop_time=2.0, step_size=0.05, output_interval=0.05)
        errors.append(np.max(np.abs(result["link_3.angle"] - expected["link_3.angle"])))
    assert errors[0] < 1e-6
    assert errors[0] < 0.2 * errors[1] < 1e-4


def test_solver_that_native_units_lack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mbsfmu.InputError, match="'radau' needs the backend 'python'"):
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="monolithic", solver="radau")
    assert list(tmp_path.iterdir()) == []


@only_2
def test_what_is_not_supported_says_so(importer: Importer) -> None:
    slave = importer.running()
    library = slave.dll
    calls = {
        "fmi2CancelStep": (),
        "fmi2EnterEventMode": (),
        "fmi2SetTime": (c_double(0.0),),
        "fmi2GetIntegerStatus": (c_int(0), byref(c_int())),
        "fmi2GetStringStatus": (c_int(0), byref(c_char_p())),
    }
    for number, (name, arguments) in enumerate(calls.items(), start=1):
        assert library[name](c_void_p(slave.component), *arguments) == fmi2.fmi2Error
        assert len(importer.messages) == number


@pytest.mark.parametrize(
    "name",
    ["four-bar", "quick-return", "double-pentagon", "pendulum-3", "five-bar", "loop-4", "loop-8", "double-loop-8"],
)
def test_initial_dependencies_hold_what_derivatives_say(native: Native, tmp_path: Path, name: str) -> None:
    """What changes with a parameter, by the unit's own exact derivatives, says that it depends on it."""
    importer = Importer(native(name, "double-step").path, tmp_path / "unpacked")
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    unknowns = importer.description.initialUnknowns
    references = [each.variable.valueReference for each in unknowns]
    values = np.array(slave.getReal(references))
    declared = {each.variable.name: {known.name for known in each.dependencies} for each in unknowns}
    missing, found = [], 0
    for variable in importer.description.modelVariables:
        if variable.causality != "parameter":
            continue
        derivative = np.array(slave.getDirectionalDerivative(references, [variable.valueReference], [1.0]))
        size = max(abs(float(variable.start)), 1e-3)
        for unknown, value, change in zip(unknowns, values, derivative, strict=True):
            if abs(change) * size > 1e-9 * max(abs(value), 1.0):
                found += 1
                if variable.name not in declared[unknown.variable.name]:
                    missing.append((unknown.variable.name, variable.name, change))
    assert found > 5
    assert missing == []
    slave.freeInstance()


def test_initial_dependencies_follow_fed_parameters(native: Native, tmp_path: Path) -> None:
    """The circuit's pressures carry the load that the mechanism calculates; it has no other way to know of masses."""
    importer = Importer(native("four-bar", "double-step").path, tmp_path / "unpacked")
    declared = {u.variable.name: {known.name for known in u.dependencies} for u in importer.description.initialUnknowns}
    carrying = {"gravity.y", "boom.mass", "link.mass", "rocker.mass", "boom.length", "boom.C.along"}
    assert declared["cylinder.force"] >= carrying
    assert declared["cylinder.pressure_piston"] >= carrying
    assert "V3.initial_pressure" in declared["cylinder.pressure_rod"]
    assert not declared["cylinder.pressure_rod"] & carrying
    assert not {known for known in declared["cylinder.static_force"] if known.startswith(("oil", "valve", "hose"))}


@pytest.mark.parametrize("name", ["four-bar", "quick-return", "pendulum-3"])
def test_initial_derivatives_match_differences(tmp_path: Path, name: str) -> None:
    """Outputs and calculated parameters by every parameter they depend on, against starts with changed parameters."""
    (path,) = mbsfmu.export(mbsfmu.models.built_in(name), tmp_path, layout="monolithic")
    importer = Importer(path, tmp_path / "unpacked")
    variables = importer.description.modelVariables
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    unknowns = importer.description.initialUnknowns
    references = [each.variable.valueReference for each in unknowns]
    parameters = {v for each in unknowns for v in each.dependencies if v.causality == "parameter"}
    assert len(parameters) > 5
    nonzero = 0
    for variable in sorted(parameters, key=variables.index):
        start = importer.get(slave, variable.name)
        started = variable.name.replace("_start", "")
        if started in importer.reference and abs(importer.get(slave, started) - start) > 1e-9:
            continue  # loops have moved it; next to its value it counts as set, and stays
        step = 1e-5 * max(abs(start), 1e-2)
        exact = np.array(slave.getDirectionalDerivative(references, [variable.valueReference], [1.0]))
        # Of second order: central, or forward where the parameter cannot be less.
        weights = {-1: -0.5, 1: 0.5}
        if variable.min is not None and start - step < float(variable.min):
            weights = {0: -1.5, 1: 2.0, 2: -0.5}
        values = []
        for moved in weights:
            importer.set(slave, variable.name, start + moved * step)
            values.append(np.array(slave.getReal(references)))
        importer.set(slave, variable.name, start)
        difference = np.array(list(weights.values())) @ np.array(values) / step
        scale = np.maximum(np.abs(exact), np.abs(values[0]) * 1e-2 / max(abs(start), 1e-2) + 1e-4)
        np.testing.assert_allclose(difference / scale, exact / scale, atol=1e-6, err_msg=variable.name)
        nonzero += int(np.any(exact))
    assert nonzero > 5


def test_model_of_a_user_is_exported_too(tmp_path: Path) -> None:
    """A model from a file of its own: two degrees of freedom, no loop, joint damping, a balance that cannot hold."""
    (path,) = mbsfmu.export(crane(), tmp_path, layout="monolithic")
    expected = crane().simulation(compiled=False).run(1.0)
    names = ("boom.angle", "load.angle", "lift.force")
    grid = {"stop_time": 1.0, "step_size": 1e-3, "output_interval": 1e-3}
    result = fmpy.simulate_fmu(str(path), **grid, output=names)
    for name in names:
        assert np.ptp(expected[name]) > 0.0
        np.testing.assert_allclose(result[name], expected[name], atol=1e-9 * np.max(np.abs(expected[name])))
