"""Outputs of units are chosen: which there are, what depends on what, and that values stay the same to the last bit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.model_description import ModelDescription
from fmpy.validation import validate_fmu
from importer import Importer
from oscillator_in_closed_form import DAMPING, MASS, STIFFNESS, oscillator

import mbsfmu
from mbsfmu import CoupledModel, FirstOrder, PidController, StepSignal
from mbsfmu.base.errors import InputError
from mbsfmu.exporting.fmu_export import BACKENDS
from mbsfmu.native.native_package import export_native

PATTERNS = (
    "energy.kinetic",
    "rail.force.*",
    "*.acceleration",
    "controller.comm*",
    "mechanism.energy.work",
    "*.energy.d*",
)
IN_ORDER = [
    *("energy.kinetic", "rail.force.x", "rail.force.y", "rail.force.z", "slider.acceleration", "controller.command"),
    *("energy.work", "energy.dissipated", "energy.drift"),
]
STEP = 0.01


def controlled(outputs: Sequence[str] = ()) -> CoupledModel:
    """The oscillator, which a PID controller brings to another place after 0.05 s."""
    pid = PidController(measured_unit="m", command_unit="N", proportional=40.0, integral=60.0, derivative=8.0)
    return CoupledModel(
        name="controlled",
        systems={"mechanism": oscillator(driven=False).systems["mechanism"], "controller": pid},
        connections=(
            ("mechanism.slider.displacement", "controller.measured"),
            ("controller.command", "mechanism.motor.force"),
        ),
        signals={"controller.setpoint": StepSignal(times=(0.05,), values=(0.5,))},
        outputs=outputs,
    )


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Path]]:
    """Return a function that exports the controlled oscillator with a backend, without and with chosen outputs."""
    made: dict[tuple[str, bool], dict[str, Path]] = {}

    def exported(backend: str, *, chosen: bool) -> dict[str, Path]:
        if (backend, chosen) not in made:
            folder = tmp_path_factory.mktemp(f"{backend}-{chosen}")
            choice = {"outputs": PATTERNS, "locals": "none"} if chosen else {}
            made[backend, chosen] = {
                path.name: path for path in mbsfmu.export(controlled(), folder, backend=backend, **choice)
            }
        return made[backend, chosen]

    return exported


def names(path: Path, causality: str) -> list[str]:
    described = fmpy.read_model_description(str(path)).modelVariables
    return [variable.name for variable in described if variable.causality == causality]


def described(folder: Path, model: CoupledModel, system: str | None = None) -> ModelDescription:
    """What a native FMU says of itself; nothing is compiled."""
    simulation = model.simulation(compiled=False) if system is None else model.simulation_of(system)
    path = export_native(simulation, folder / "unit.fmu", platforms=[], sources=True, force=True)
    assert {each.rule for each in mbsfmu.validate(path)} <= {"execution-tool"}
    return fmpy.read_model_description(str(path))


# -- what there is ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_outputs_are_those_that_were_chosen_in_that_order(units: Callable[..., dict[str, Path]], backend: str) -> None:
    files = units(backend, chosen=True)
    assert names(files["controlled.fmu"], "output") == IN_ORDER
    assert names(files["mechanism.fmu"], "output") == [*IN_ORDER[:5], *IN_ORDER[6:], "slider.displacement"]
    assert names(files["controller.fmu"], "output") == ["command"]
    assert names(files["controlled.fmu"], "local") == ["next_event"]
    assert names(files["mechanism.fmu"], "local") == []
    for name in ("controlled.fmu", "mechanism.fmu", "controller.fmu"):
        assert {each.rule for each in mbsfmu.validate(files[name])} <= {"execution-tool"}
        assert validate_fmu(str(files[name])) == []
        for causality in ("input", "parameter", "calculatedParameter"):
            assert names(files[name], causality) == names(units(backend, chosen=False)[name], causality)


def test_what_was_not_chosen_is_local(tmp_path: Path) -> None:
    usual, chosen = (described(tmp_path, controlled(outputs)) for outputs in ((), ("energy.kinetic",)))
    kinds = [{each.name: each.causality for each in unit.modelVariables} for unit in (usual, chosen)]
    assert kinds[0].keys() == kinds[1].keys()
    changed = {name for name, kind in kinds[0].items() if kinds[1][name] != kind}
    assert changed == {
        "slider.displacement",
        "slider.velocity",
        "controller.command",
        "controller.error",
        "energy.kinetic",
    }
    assert [name for name in changed if kinds[1][name] == "output"] == ["energy.kinetic"]
    assert usual.guid != chosen.guid


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_are_those_of_the_unit_without_a_choice(
    units: Callable[..., dict[str, Path]], backend: str, tmp_path: Path
) -> None:
    rows = []
    for chosen in (False, True):
        importer = Importer(units(backend, chosen=chosen)["controlled.fmu"], tmp_path / str(chosen))
        slave = importer.running()
        rows.append([])
        for index in range(20):
            slave.doStep(index * STEP, STEP)
            rows[-1].append([importer.get(slave, name) for name in IN_ORDER])
        slave.terminate()
    assert rows[0] == rows[1]
    moving = [IN_ORDER.index(name) for name in ("energy.kinetic", "slider.acceleration", "controller.command")]
    assert np.ptp(np.array(rows[0])[:, moving], axis=0).min() > 0.1


def test_separate_units_keep_what_their_connections_read(
    units: Callable[..., dict[str, Path]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = [
        mbsfmu.cosimulate(units("native", chosen=chosen)["controlled.ssp"], step=STEP, stop=0.3)
        for chosen in (False, True)
    ]
    for name in ("mechanism.slider.displacement", "controller.command"):
        assert runs[0][name].tolist() == runs[1][name].tolist()
    assert "mechanism.energy.drift" in runs[1].names
    with caplog.at_level(logging.INFO, "mbsfmu"):
        mbsfmu.export(controlled(), tmp_path, outputs=["*.velocity"], layout="separate", backend="python")
    read = "mechanism.slider.displacement, controller.command"
    assert f"connections read {read}, which are outputs in addition to those that were chosen" in caplog.text


def test_connection_may_read_what_is_no_output_by_itself(tmp_path: Path) -> None:
    """An acceleration is local; where a block reads it, its unit has it as output, with and without a choice."""
    model = CoupledModel(
        name="felt",
        systems={
            "mechanism": oscillator(driven=False).systems["mechanism"],
            "filter": FirstOrder(input_unit="m/s2", output_unit="m/s2", time_constant=0.1),
        },
        connections=(("mechanism.slider.acceleration", "filter.input"),),
    )
    for outputs in ((), ("filter.*",)):
        mbsfmu.export(model, tmp_path, outputs=outputs, layout="separate", backend="python", force=True)
        run = mbsfmu.cosimulate(tmp_path / "felt.ssp", step=STEP, stop=0.05)
        assert "mechanism.slider.acceleration" in run.names
        assert run["filter.output"][-1] != 0.0


# -- what depends on what -----------------------------------------------------------------------------------


def test_structure_lists_chosen_outputs_with_true_dependencies(units: Callable[..., dict[str, Path]]) -> None:
    description = fmpy.read_model_description(str(units("native", chosen=True)["mechanism.fmu"]))
    outputs = {each.variable.name: {other.name for other in each.dependencies} for each in description.outputs}
    assert list(outputs) == [*IN_ORDER[:5], *IN_ORDER[6:], "slider.displacement"]
    # The rail is frictionless and straight: what it transmits along is the drive and the spring, across nothing.
    assert outputs["slider.acceleration"] == {"motor.force"}
    assert all(not outputs[name] for name in outputs if name.startswith(("energy.", "slider.displacement")))
    initial = {each.variable.name: {other.name for other in each.dependencies} for each in description.initialUnknowns}
    assert set(initial) == set(outputs)
    assert initial["energy.kinetic"] == {"slider.mass", "slider.velocity_start"}
    assert initial["slider.acceleration"] >= {"slider.mass", "spring.stiffness", "motor.force"}


def test_derivatives_of_chosen_outputs_are_exact(units: Callable[..., dict[str, Path]], tmp_path: Path) -> None:
    """By time m v a and by the force 1/m, in closed form; what depends on accelerations has no derivative by time."""
    importer = Importer(units("native", chosen=True)["mechanism.fmu"], tmp_path)
    slave = importer.running(**{"motor.force": 3.0})
    slave.doStep(0.0, STEP)
    reference = importer.reference
    place, acceleration = (importer.get(slave, name) for name in ("slider.displacement", "slider.acceleration"))
    speed = (3.0 - STIFFNESS * place - MASS * acceleration) / DAMPING
    assert importer.get(slave, "energy.kinetic") == pytest.approx(0.5 * MASS * speed**2, rel=1e-9)
    moving = [reference[name] for name in ("energy.kinetic", "slider.displacement", "energy.dissipated")]
    rates = slave.getRealOutputDerivatives(moving, [1, 1, 1])
    assert rates == pytest.approx([MASS * speed * acceleration, speed, DAMPING * speed**2], rel=1e-9)
    unknowns = [reference[name] for name in ("slider.acceleration", "energy.kinetic")]
    found = slave.getDirectionalDerivative(unknowns, [reference["motor.force"]], [1.0])
    assert found == pytest.approx([1.0 / MASS, 0.0], rel=1e-12)
    for name in ("slider.acceleration", "rail.force.x"):
        with pytest.raises(fmpy.fmi1.FMICallException):
            slave.getRealOutputDerivatives([reference[name]], [1])
        assert f"{name} depends on accelerations; its derivative is not known" in importer.messages[-1][1]


# -- words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("slider.displacment", "there is no variable 'slider.displacment' to be an output; did you mean 'slider.disp"),
        ("slidr.*", "there is no variable 'slidr.*' to be an output; did you mean 'slider.*'?"),
        ("mechanisn.*", "there is no variable 'mechanisn.*' to be an output; did you mean 'mechanism.*'?"),
        ("*.acceleratio", "did you mean '*.acceleration'?"),
        ("controller.setpoint", "'controller.setpoint' cannot be an output: controller.setpoint is an input"),
        ("*.mass", "'*.mass' cannot be an output: slider.mass is a parameter"),
        ("next_event", "'next_event' cannot be an output: next_event is shown as it is in every FMU"),
    ],
)
def test_patterns_that_mean_nothing_are_refused(pattern: str, sentence: str, tmp_path: Path) -> None:
    for layout in ("separate", "monolithic"):
        with pytest.raises(InputError) as refused:
            mbsfmu.export(controlled(), tmp_path, outputs=["energy.*", pattern], layout=layout)
        assert sentence in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_choices_that_are_none_are_refused(tmp_path: Path) -> None:
    for outputs, sentence in (
        (["energy.*", "energy.*"], "the output 'energy.*' is given twice"),
        ([""], "a pattern of names has letters"),
        ("energy.*", "outputs is 'energy.*'"),
    ):
        with pytest.raises(ValueError, match="output") as refused:
            mbsfmu.export(controlled(), tmp_path, outputs=outputs)
        assert sentence in str(refused.value)
    with pytest.raises(InputError, match="there is no choice of locals 'some'; there are all, none"):
        mbsfmu.export(controlled(), tmp_path, locals="some")  # pyright: ignore[reportArgumentType]


def test_choice_of_a_model_travels_with_it(tmp_path: Path) -> None:
    model = controlled(PATTERNS)
    model.to_file(tmp_path / "model.json")
    assert CoupledModel.from_file(tmp_path / "model.json") == model
    chosen = [each.name for each in described(tmp_path, model).modelVariables if each.causality == "output"]
    assert chosen == IN_ORDER
    (path,) = mbsfmu.export(
        model, tmp_path, outputs=["slider.velocity"], layout="monolithic", backend="python", force=True
    )
    assert names(path, "output") == ["slider.velocity"]


@pytest.mark.parametrize("formulation", ["penalty", "dca-alm"])
def test_every_variable_that_is_computed_can_be_an_output(formulation: str) -> None:
    model = mbsfmu.models.four_bar().model_copy(update={"outputs": ("*",)})
    simulation = model.simulation(compiled=False, formulation=formulation, iterations=2)
    outputs = {each.name for each in simulation.variables if each.causality == "output"}
    assert {"solver.unconverged_max", "constraint.velocity", "O.moment.z", "valve.spool"} < outputs
    assert outputs <= simulation.dependencies.keys()
    assert outputs <= simulation.initial_dependencies.keys()


def test_names_that_several_systems_have_mean_all_of_them(tmp_path: Path) -> None:
    mechanism = oscillator(driven=False).systems["mechanism"]
    twins = CoupledModel(name="twins", systems={"left": mechanism, "right": mechanism}, outputs=("slider.velocity",))
    for outputs, expected in (
        (("slider.velocity",), ["slider.velocity", "right.slider.velocity"]),
        (("right.slider.d*",), ["right.slider.displacement"]),
    ):
        unit = described(tmp_path, twins.model_copy(update={"outputs": outputs}))
        assert [each.name for each in unit.modelVariables if each.causality == "output"] == expected
    left = described(tmp_path, twins.model_copy(update={"outputs": ("right.slider.d*",)}), "left")
    assert not left.outputs
