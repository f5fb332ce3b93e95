"""What a run says of its parts: end stops that are reached, oil that cavitates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from importer import Importer

import mbsfmu
from hydraulics import Circuit, FlowSource, Oil, ReliefValve, SingleActingCylinder, Tank, Volume
from hydraulics.circuit import circuit_conditions
from mbsfmu import CoupledModel, Cuboid, JointStop, LinearSignal, Mechanism, Prismatic, StepSignal, cosimulate


def remarks(caplog: pytest.LogCaptureFixture, word: str) -> list[tuple[str, str]]:
    return [(each.levelname, each.getMessage()) for each in caplog.records if word in each.getMessage()]


@pytest.mark.parametrize(("formulation", "command"), [("double-step", 10.0), ("dca", -10.0)])
def test_an_end_stop_is_told_with_its_time(formulation: str, command: float, caplog: pytest.LogCaptureFixture) -> None:
    """The cylinder is 0.9 m short and 1.8 m long; the time is where its recorded length leaves that."""
    simulation = mbsfmu.models.four_bar(air_content=0.005).simulation(formulation=formulation, step=2e-3)
    simulation.set("valve.command", command)
    with caplog.at_level("INFO", logger="mbsfmu"):
        result = simulation.run(20.0, output_step=1e-2)
    beyond = result["cylinder.length"] - 1.8 if command > 0 else 0.9 - result["cylinder.length"]
    assert beyond.max() > 1e-5
    level, sentence = remarks(caplog, "end stop")[0]
    assert level == "INFO"
    assert f"its {'extended' if command > 0 else 'retracted'} end stop" in sentence
    assert f"at t = {result.time[(beyond > 1e-6).argmax()]:.6g} s" in sentence
    assert f"up to {beyond.max():.3g} m" in sentence


def test_a_stroke_that_was_set_counts(caplog: pytest.LogCaptureFixture) -> None:
    """The four-bar of the paper keeps off its stops; with 20 mm less of stroke it does not."""
    simulation = mbsfmu.models.built_in("four-bar").simulation(step=2e-3)
    with caplog.at_level("INFO", logger="mbsfmu"):
        free = simulation.run(4.0)
        assert not remarks(caplog, "end stop")
        simulation.reset()
        stroke = free["cylinder.length"].max() - 0.9 - 0.02
        simulation.set("cylinder.stroke", stroke)
        simulation.run(4.0)
    assert len(remarks(caplog, "extended end stop")) == 1


def test_oil_that_cavitates_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A pressure above a tenth of the atmosphere's is none; told are the node, the first time, and the least."""
    simulation = mbsfmu.models.four_bar(air_content=0.005).simulation(formulation="double-step", step=2e-3)
    simulation.set("valve.command", 10.0)
    with caplog.at_level("INFO", logger="mbsfmu"):
        result = simulation.run(20.0, output_step=1e-2)
    told = remarks(caplog, "cavitates")
    low = [node for node in ("V1", "V2", "V3") if result[f"{node}.pressure"].min() < 1e4]
    assert low
    assert len(low) < 3
    for node in low:
        pressure = result[f"{node}.pressure"]
        own = [sentence for level, sentence in told if f"the oil at {node} " in sentence and level == "WARNING"]
        assert len(own) == 1
        assert f"from t = {result.time[(pressure < 1e4).argmax()]:.6g} s" in own[0]
        assert f"falls to {pressure.min():.4g} Pa" in own[0]
    assert len(told) == len(low)


FALL = (2.0 * 0.5 / 9.81) ** 0.5
"""Time in s in which a mass falls freely for 0.5 m, to a floor."""


def falling_mass() -> CoupledModel:
    mechanism = Mechanism(
        gravity=(9.81, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(Cuboid(name="mass", length=0.1, mass=1.0),),
        joints=(Prismatic(name="guide", parent="ground.O", child="mass.centre"),),
        forces=(JointStop(name="floor", joint="guide", upper=0.5, stiffness=1e5, damping=0.1),),
    )
    return CoupledModel(name="fall", systems={"mechanism": mechanism}, stop_time=0.5)


def times_of(told: list[tuple[str, str]]) -> list[float]:
    return [float(each) for _, sentence in told for each in re.findall(r"t = (\S+) s", sentence)]


def test_a_joint_stop_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """In a whole run, in one made step by step, and at a second touch that is more than a second later."""
    with caplog.at_level("INFO", logger="mbsfmu"):
        falling_mass().simulation(step=1e-3, compiled=False).run(0.3)
        assert not remarks(caplog, "floor")
        falling_mass().simulation(step=1e-3, compiled=False).run(0.5)
        (told,) = remarks(caplog, "reaches its upper stop")
        assert told[0] == "INFO"
        assert times_of([told]) == pytest.approx([FALL], abs=2e-3)
        caplog.clear()
        simulation = falling_mass().simulation(step=1e-3)
        simulation.initialize()
        for step in range(500):
            simulation.step(step * 1e-3, 1e-3)
        assert times_of(remarks(caplog, "floor")) == pytest.approx([FALL], abs=2e-3)


@pytest.mark.parametrize("kind", ["cs", "me"])
def test_an_fmu_tells_it_too(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (path,) = mbsfmu.export(falling_mass(), tmp_path, layout="monolithic", kind=kind)
    with caplog.at_level("INFO", logger="mbsfmu"):
        cosimulate([str(path)], step=1e-3, stop=0.3)
        assert not remarks(caplog, "floor")
        cosimulate([str(path)], step=1e-3, stop=0.5)
    (told,) = remarks(caplog, "reaches its upper stop")
    assert told[0] == "INFO"
    assert times_of([told]) == pytest.approx([FALL], abs=2e-3)


@pytest.mark.parametrize(("name", "begins"), [("fall", "fall: joint-stop"), ("fa", "fa: fall: joint-stop")])
def test_a_coupled_fmu_tells_whose_it_is(
    name: str, begins: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The sentence of an FMU begins with its model's name already, where that is its own."""
    (path,) = mbsfmu.export(falling_mass(), tmp_path, layout="monolithic")
    whole = mbsfmu.export_coupled([f"{name}={path}"], tmp_path / "whole.fmu", step=1e-2, stop=0.5)
    with caplog.at_level("INFO", logger="mbsfmu"):
        cosimulate([str(whole)], step=1e-2, stop=0.5)
    ((_, told),) = remarks(caplog, "reaches its upper stop")
    assert f": {begins} 'floor'" in told


@pytest.mark.parametrize("goes_back", [False, True])
def test_what_happens_in_steps_that_are_taken_back_is_not_told(goes_back: bool, tmp_path: Path) -> None:
    """A host that may take steps back is told where it cannot any more, and of what is left then, once."""
    (path,) = mbsfmu.export(falling_mass(), tmp_path, layout="monolithic")
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    slave.doStep(0.0, 0.3)
    before = slave.getFMUstate()
    for step in range(25):
        slave.doStep(0.3 + step * 1e-3, 1e-3, noSetFMUStatePriorToCurrentPoint=False)
    after = slave.getFMUstate()
    assert not [text for _, text in importer.messages if "floor" in text]
    slave.setFMUstate(before if goes_back else after)
    slave.terminate()
    assert len([text for _, text in importer.messages if "reaches its upper stop" in text]) == (not goes_back)


def test_steps_that_are_repeated_tell_what_happens_once(tmp_path: Path) -> None:
    (path,) = mbsfmu.export(falling_mass(), tmp_path, layout="monolithic")
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    slave.doStep(0.0, 0.3)
    before = slave.getFMUstate()
    for _ in range(2):
        slave.setFMUstate(before)
        for step in range(25):
            slave.doStep(0.3 + step * 1e-3, 1e-3)
    assert len([text for _, text in importer.messages if "reaches its upper stop" in text]) == 1


# -- pressures ------------------------------------------------------------------------------------------------------


def pressed(setting: float, speed: float) -> CoupledModel:
    """A cylinder that is pushed in at a speed in m/s against oil that is shut in, beside a pump with a relief valve."""
    cylinder = SingleActingCylinder(
        name="ram", piston="A", piston_diameter=0.1, stroke=1.0, retracted_length=1.0, bulk_modulus=1e15
    )
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0),
        components=[
            FlowSource(name="pump", node="P", constant_flow=1e-3),
            ReliefValve(name="relief", inlet="P", outlet="T", rated_flow=1e-3, setting=setting, override=1e6),
            Volume(name="line", node="P", volume=1e-3),
            Volume(name="shut", node="A", volume=1e-4),
            Tank(name="tank", node="T"),
            cylinder,
        ],
        initial_pressures={"P": setting, "A": 1e6},
    )
    signals = {
        "circuit.ram.length": LinearSignal(times=(0.0, 1.0), values=(1.5, 1.5 - speed)),
        "circuit.ram.velocity": StepSignal(times=(0.0,), values=(-speed,)),
    }
    return CoupledModel(name="pressed", systems={"circuit": circuit}, signals=signals)


def test_a_pressure_beyond_what_lines_are_tested_at_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Told is the volume that a load presses, from twice what the relief valve allows; its own overshoot is usual."""
    simulation = pressed(10e6, 0.02).simulation()
    with caplog.at_level("INFO", logger="mbsfmu"):
        run = simulation.run(1.0, output_step=1e-3)
    (told,) = remarks(caplog, "is above twice")
    pressure = run["A.pressure"]
    assert told[0] == "WARNING"
    assert "the pressure at A is above twice the pressure that relief-valve 'relief' allows" in told[1]
    assert times_of([told]) == pytest.approx([run.time[(pressure > 22e6).argmax()]])
    assert f"rises to {pressure.max():.4g} Pa" in told[1]
    caplog.clear()
    simulation.reset()
    simulation.set("relief.setting", pressure.max() / 2.0)
    with caplog.at_level("INFO", logger="mbsfmu"):
        simulation.run(1.0)
    assert not remarks(caplog, "is above twice")


def test_a_pump_without_a_limit_has_no_such_bound() -> None:
    whole = pressed(10e6, 0.02).systems["circuit"].to_dict()
    data = {**whole, "components": [each for each in whole["components"] if each["name"] != "relief"]}
    assert not [each for each in circuit_conditions(Circuit.from_dict(data)) if "twice" in each.happens]


def test_ensembles_and_states_at_rest_tell_it_too(caplog: pytest.LogCaptureFixture) -> None:
    """Of two speeds one presses the oil beyond the bound; at rest a mass stands on its stop."""
    model = pressed(10e6, 0.02)
    ensemble = model.ensemble({"circuit.shut.volume": [1e-4, 1.0]}, step=1e-3)
    result = ensemble.run(1.0, outputs=["P.pressure"])
    assert [any("is above twice" in each for each in result.warnings.get(number, [])) for number in (0, 1)] == [
        True,
        False,
    ]
    with caplog.at_level("INFO", logger="mbsfmu"):
        falling_mass().equilibrium()
    (told,) = remarks(caplog, "floor")
    assert told == ("INFO", "fall: joint-stop 'floor' reaches its upper stop")
