"""FMUs that are coupled by a line with a delay find what the whole line does, at steps up to its delay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mbsfmu
from hydraulics import (
    Circuit,
    LineEnd,
    Oil,
    PressureSource,
    Tank,
    Throttle,
    TransmissionLine,
    VariableOrifice,
    Volume,
    line_connections,
)
from mbsfmu import CosimulationError, CoupledModel, Result, SimulationError, StepSignal

OIL = Oil(bulk_modulus=1.5e9, density=850.0)
DELAY, REACHES, FLOW, PRESSURE = 8e-3, 8, 2e-4, 1e7
LINE: dict[str, Any] = {
    "diameter": 0.012,
    "length": 1200.0 * DELAY,
    "wave_speed": 1200.0,
    "viscosity": 0.04,
    "reaches": REACHES,
}
DROP = 128.0 * 0.04 * LINE["length"] / (np.pi * LINE["diameter"] ** 4) * FLOW
STOP = 0.15
CLOSING = StepSignal(times=(0.0, 0.0503), values=(1.0, 0.0))


def feed() -> tuple[Any, ...]:
    """A pump behind a throttle."""
    throttle = Throttle(name="inlet", inlet="P", outlet="A", orifice_diameter=2e-3, discharge_coefficient=0.7)
    return PressureSource(name="pump", node="P", pressure=1.2e7), throttle, Volume(name="near", node="A", volume=1e-4)


def gate() -> tuple[Any, ...]:
    """A valve that closes at once."""
    valve = VariableOrifice(name="gate", inlet="B", outlet="T", area=3e-6, discharge_coefficient=0.7)
    return Volume(name="away", node="B", volume=2e-4), valve, Tank(name="tank", node="T", pressure=1e5)


def cut(**second: Any) -> CoupledModel:
    """The line cut between two circuits; with other data of the second end."""
    first_end = LineEnd(name="line", node="A", initial_flow=FLOW, **LINE)
    second_end = LineEnd(name="line", node="B", initial_flow=-FLOW, **{**LINE, **second})
    return CoupledModel(
        name="cut",
        systems={
            "first": Circuit(oil=OIL, components=(*feed(), first_end), initial_pressures={"A": PRESSURE}),
            "second": Circuit(oil=OIL, components=(second_end, *gate()), initial_pressures={"B": PRESSURE - DROP}),
        },
        signals={"second.gate.command": CLOSING},
        connections=line_connections("first.line", "second.line", reaches=REACHES),
        outputs=("first.A.pressure", "second.B.pressure"),
    )


@pytest.fixture(scope="module")
def whole() -> Result:
    """The run of one circuit with the whole line."""
    line = TransmissionLine(name="line", inlet="A", outlet="B", initial_flow=FLOW, **LINE)
    circuit = Circuit(
        oil=OIL, components=(*feed(), line, *gate()), initial_pressures={"A": PRESSURE, "B": PRESSURE - DROP}
    )
    model = CoupledModel(name="whole", systems={"circuit": circuit}, signals={"circuit.gate.command": CLOSING})
    return model.simulation(solver="rodas5p").run(stop=STOP, output_step=1e-3)


@pytest.fixture(scope="module", params=[2, 3])
def package(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ends")
    mbsfmu.export(cut(), folder, layout="separate", solver="rodas5p", fmi=request.param)
    return folder / "cut.ssp"


def test_ends_in_one_model_are_the_whole_line(whole: Result) -> None:
    result = cut().simulation(solver="rodas5p").run(stop=STOP, output_step=1e-3)
    for ours, theirs in (("first.A.pressure", "circuit.A.pressure"), ("second.B.pressure", "circuit.B.pressure")):
        assert np.ptp(whole[theirs]) > 1e6
        assert np.max(np.abs(result[ours] - whole[theirs])) < 1.0


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("step", [1e-3, 2.5e-3, 5e-3, DELAY - DELAY / REACHES])
def test_coupled_fmus_are_the_whole_line_up_to_its_delay(
    package: Path, whole: Result, algorithm: str, step: float
) -> None:
    """Within 1 Pa of some 50 bar, which is the tolerance of the solver, whatever the communication step."""
    result = mbsfmu.cosimulate(package, algorithm=algorithm, step=step, stop=STOP)
    common = [index for index, time in enumerate(result.time) if np.min(np.abs(whole.time - time)) < 1e-9]
    assert len(common) > 15
    places = [int(np.argmin(np.abs(whole.time - result.time[index]))) for index in common]
    for ours, theirs in (("first.A.pressure", "circuit.A.pressure"), ("second.B.pressure", "circuit.B.pressure")):
        assert np.max(np.abs(result[ours][common] - whole[theirs][places])) < 1.0


@pytest.mark.parametrize("algorithm", ["jacobi", "newton"])
def test_fmus_of_two_models_are_the_whole_line(whole: Result, algorithm: str, tmp_path: Path) -> None:
    """Neither model knows the other one: each FMU initializes before the far end has said anything.

    Newton's repeated steps need saved states, which have the waves, their number and their place.
    """
    model = cut()
    for name in ("first", "second"):
        signals = {key: value for key, value in model.signals.items() if key.startswith(name)}
        outputs = (f"{name}.*.pressure", f"{name}.line.*")
        alone = CoupledModel(name=name, systems={name: model.systems[name]}, signals=signals, outputs=outputs)
        (made,) = mbsfmu.export(alone, tmp_path, layout="monolithic", solver="rodas5p")
        assert not mbsfmu.validate(made)  # inputs have start values, though nothing drives them yet
    result = mbsfmu.cosimulate(
        [tmp_path / "first.fmu", tmp_path / "second.fmu"],
        connections=line_connections("first.line", "second.line", reaches=REACHES),
        algorithm=algorithm,
        step=5e-3,
        stop=STOP,
    )
    for index, time in enumerate(result.time[1:], start=1):
        place = int(np.argmin(np.abs(whole.time - time)))
        for ours, theirs in (("first.A.pressure", "circuit.A.pressure"), ("second.B.pressure", "circuit.B.pressure")):
            assert abs(result[ours][index] - whole[theirs][place]) < 1.0


def test_steps_beyond_the_delay_are_refused(package: Path) -> None:
    with pytest.raises(CosimulationError, match=r"communication steps of at most 0\.007 s, the delay less one sample"):
        mbsfmu.cosimulate(package, step=DELAY, stop=STOP)


@pytest.mark.parametrize("others", [{"diameter": 0.013}, {"length": 1.25 * LINE["length"]}])
def test_ends_of_different_lines_are_refused(others: dict[str, float]) -> None:
    """By their impedance, or when their samples no longer fit."""
    with pytest.raises(SimulationError, match=r"line: .* waves of the far end are missing"):
        cut(**others).simulation(solver="rodas5p").run(stop=STOP)


def test_unconnected_end_is_refused() -> None:
    model = cut().to_dict()
    alone = CoupledModel.from_dict({**model, "connections": [], "outputs": []})
    with pytest.raises(SimulationError, match="must come from an equal line-end"):
        alone.simulation(solver="rodas5p").run(stop=STOP)


def test_linear_systems_of_fmus_say_that_waves_are_held(tmp_path: Path) -> None:
    """In process a line is refused; of an FMU nobody knows what its events are."""
    model = cut().to_dict()
    first = CoupledModel.from_dict({**model, "connections": [], "outputs": [], "signals": {}})
    alone = CoupledModel(name="first", systems={"first": first.systems["first"]})
    mbsfmu.export(alone, tmp_path, layout="monolithic", kind="me")
    system = mbsfmu.linearize(tmp_path / "first.fmu")
    assert len(system.notes) == 1
    assert "what changes at events of first, the next of which is at t = 0.001 s, is held" in system.notes[0]
