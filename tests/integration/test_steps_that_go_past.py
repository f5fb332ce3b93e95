"""Rosenbrock methods step past where they are asked to come; what is read there is the motion, whatever is set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
from importer import Importer
from oscillator_in_closed_form import DAMPING, JUMPS, MASS, SPEED, START, STIFFNESS, displacement, oscillator
from scipy.linalg import expm

import mbsfmu
from mbsfmu import Array, Block, CoupledModel, LinearSignal, Numbers, Parameter, Quantity
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.simulation.simulation import Simulation

TOLERANCE = 1e-7
STEP = 2e-3
"""In s, asked for; the solver's own would be ten times that."""
FORCE, PLACE = "motor.force", "slider.displacement"

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
COMPILED = pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_compiler)])


def options(formulation: str = "double-step") -> dict[str, object]:
    names = ("relative_tolerance", "absolute_tolerance")
    return {"formulation": formulation, "solver": "rodas5p", **dict.fromkeys(names, TOLERANCE)}


class Plant:
    """The oscillator in closed form, under a force that is set: from where it is, over a step."""

    def __init__(self) -> None:
        self.state = np.array([START, SPEED])

    def step(self, length: float, force: float, slope: float = 0.0) -> float:
        matrix = np.zeros((4, 4))
        matrix[0, 1] = matrix[2, 3] = 1.0
        matrix[1] = [-STIFFNESS / MASS, -DAMPING / MASS, 1.0 / MASS, 0.0]
        self.state = (expm(matrix * length) @ [*self.state, force, slope])[:2]
        return float(self.state[0])


def begun(compiled: bool, model: CoupledModel, formulation: str = "double-step") -> Simulation:
    simulation = model.simulation(compiled=compiled, **options(formulation))
    simulation.initialize()
    return simulation


# -- errors and work ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formulation", "compiled"),
    [("double-step", False), ("hdca", False), pytest.param("dca", True, marks=needs_compiler)],
)
def test_short_steps_cost_those_of_the_solver(formulation: str, compiled: bool) -> None:
    """Of an oscillator that is struck: as many internal steps as in a run in one go, and errors of the tolerance."""
    simulation = begun(compiled, oscillator(), formulation)
    count = round(0.7 / STEP)
    found = []
    for index in range(count):
        simulation.step(STEP * index, STEP)
        found.append(simulation.get(PLACE))
    errors = np.abs(found - displacement(STEP * np.arange(1, count + 1)))
    alone = oscillator().simulation(compiled=False, **options(formulation)).run(0.7)
    assert simulation.statistics.steps <= alone.statistics.steps + 2 * len(JUMPS) + 2
    assert np.max(errors) < 3.0 * TOLERANCE
    assert np.max(errors) < 3.0 * np.max(np.abs(alone[PLACE] - displacement(alone.time)))


@COMPILED
def test_steps_of_any_length_come_to_the_same(compiled: bool) -> None:
    """Short ones, long ones, and such as end where the solver's own end."""
    simulation, times = begun(compiled, oscillator()), [0.0]
    generator = np.random.default_rng(5)
    while times[-1] < 1.2:
        step = float(generator.choice([1e-4, 3e-3, 0.02, 0.11]))
        kept = simulation.run_loop.present.ahead
        left = float(kept[1] + kept[3]) - times[-1]
        if kept[4] and left > 1e-6 and generator.random() < 0.3:
            step = left
        simulation.step(times[-1], step)
        times.append(times[-1] + step)
        assert simulation.get(PLACE) == pytest.approx(displacement(np.array(times[-1:]))[0], abs=3.0 * TOLERANCE)


# -- what is set --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formulation", "compiled"), [("dca", False), pytest.param("double-step", True, marks=needs_compiler)]
)
def test_inputs_that_are_set_count_from_where_they_are(formulation: str, compiled: bool) -> None:
    """Inside steps that go past, to another value, back, and to the one it has."""
    simulation, plant, force = begun(compiled, oscillator(driven=False), formulation), Plant(), 0.0
    went_past = 0
    for index in range(300):
        if index in (40, 41, 97, 150, 220):
            force = {40: 20.0, 41: -15.0, 97: -15.0, 150: 0.0, 220: 7.0}[index]
            simulation.set(FORCE, force)
        simulation.step(STEP * index, STEP)
        went_past += bool(simulation.run_loop.present.ahead[4])
        assert index not in (40, 41, 150, 220) or not simulation.run_loop.present.ahead[4], "nothing is made in vain"
        assert simulation.get(PLACE) == pytest.approx(plant.step(STEP, force), abs=3.0 * TOLERANCE)
    assert went_past > 200


def ramped() -> CoupledModel:
    """The oscillator under a force that grows by 20 N/s."""
    ramp = LinearSignal(times=(0.0, 2.0), values=(0.0, 40.0))
    return oscillator(driven=False).model_copy(update={"signals": {f"mechanism.{FORCE}": ramp}})


@COMPILED
def test_an_input_that_is_held_leaves_its_signal(compiled: bool) -> None:
    """Set to the very value it has, in the middle of a ramp that the step had gone along."""
    simulation, plant = begun(compiled, ramped()), Plant()
    for index in range(200):
        time, held = STEP * index, index >= 63
        if index == 63:
            assert simulation.run_loop.present.ahead[4]
            simulation.set(FORCE, simulation.get(FORCE))
        simulation.step(time, STEP)
        expected = plant.step(STEP, 20.0 * (STEP * 63 if held else time), 0.0 if held else 20.0)
        assert simulation.get(PLACE) == pytest.approx(expected, abs=3.0 * TOLERANCE)


class Decay(Block):
    """What falls at a rate that can be tuned."""

    type: Literal["decay-that-is-tuned"] = "decay-that-is-tuned"
    rate: Annotated[float, Parameter("1/s", "rate of decay", tunable=True)]

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("left", "1", 1.0),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("seen", "1"),)

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        return {"left": -now["rate"] * now["left"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"seen": now["left"]}


@COMPILED
def test_parameters_that_are_tuned_count_from_where_they_are(compiled: bool) -> None:
    simulation = begun(compiled, CoupledModel(name="decay", systems={"decay": Decay(rate=2.0)}))
    for index in range(150):
        if index == 70:
            assert simulation.run_loop.present.ahead[4]
            simulation.set("rate", 5.0)
        simulation.step(STEP * index, STEP)
        assert index != 70 or not simulation.run_loop.present.ahead[4], "nothing is made in vain"
        time, tuned = STEP * (index + 1), max(0.0, STEP * (index + 1) - STEP * 70)
        expected = np.exp(-2.0 * (time - tuned) - 5.0 * tuned)
        assert simulation.get("left") == pytest.approx(expected, abs=3.0 * TOLERANCE)


# -- saved states -------------------------------------------------------------------------------------------


@COMPILED
def test_saved_states_have_the_step_that_goes_past(compiled: bool) -> None:
    """What follows is the same to the last bit; what was tried in between leaves nothing."""
    simulation = begun(compiled, oscillator())
    names = [variable.name for variable in simulation.variables]

    def run(first: int, last: int) -> list[list[float]]:
        rows = []
        for index in range(first, last):
            simulation.step(STEP * index, STEP)
            rows.append([simulation.get(name) for name in names])
        return rows

    run(0, 40)
    assert simulation.run_loop.present.ahead[4]
    saved = simulation.save()
    expected = run(40, 150)
    simulation.restore(saved)
    simulation.set(FORCE, 100.0)
    run(40, 43)
    simulation.restore(saved)
    assert run(40, 150) == expected
    other = begun(compiled, oscillator())
    other.restore(saved)
    assert other.save() == saved


# -- units --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Importer]:
    folder = tmp_path_factory.mktemp("past")
    (path,) = mbsfmu.export(oscillator(driven=False), folder, layout="monolithic", **options())
    return lambda: Importer(path, folder / f"unpacked-{len(list(folder.iterdir()))}")


@needs_compiler
def test_units_go_past_and_come_back(unit: Callable[[], Importer]) -> None:
    """With values and slopes that are set, states that are saved and restored, and steps that are made twice."""
    importer = unit()
    slave, plant, force, slope = importer.running(), Plant(), 0.0, 0.0
    for index in range(400):
        time = STEP * index
        if index in (90, 91, 150):
            force = {90: 20.0, 91: -15.0, 150: 0.0}[index]
            importer.set(slave, FORCE, force)
        slope = 50.0 if 200 <= index < 230 else 0.0
        if slope:
            slave.setRealInputDerivatives([importer.reference[FORCE]], [1], [slope])
        if index % 37 == 0:  # a master that tries and goes back
            state = slave.getFMUstate()
            importer.set(slave, FORCE, force + 300.0)
            slave.doStep(time, 3.0 * STEP)
            slave.setFMUstate(state)
            slave.freeFMUstate(state)
        slave.doStep(time, STEP)
        expected = plant.step(STEP, force, slope)
        force += slope * STEP
        assert importer.get(slave, PLACE) == pytest.approx(expected, abs=3.0 * TOLERANCE)
    slave.terminate()
    told = [message for _, message in importer.messages if "internal steps" in message]
    assert int(told[-1].split(" internal steps")[0].rsplit(" ", 1)[-1]) < 120


@needs_compiler
def test_a_unit_does_not_go_past_where_an_input_is_set_anew(unit: Callable[[], Importer]) -> None:
    """Steps end where a master says, and are as exact as such short ones are: far more than the tolerance asks for."""
    importer = unit()
    slave, plant = importer.running(), Plant()
    for index in range(200):
        force = 30.0 * np.sin(0.7 * index)
        importer.set(slave, FORCE, force)
        slave.doStep(STEP * index, STEP)
        assert importer.get(slave, PLACE) == pytest.approx(plant.step(STEP, force), abs=1e-12)
    slave.terminate()


@needs_compiler
def test_an_input_of_a_unit_that_is_held_leaves_its_signal(tmp_path: Path) -> None:
    (path,) = mbsfmu.export(ramped(), tmp_path, layout="monolithic", **options())
    importer = Importer(path, tmp_path / "unpacked")
    slave, plant = importer.running(), Plant()
    for index in range(120):
        held = index >= 63
        if index == 63:
            importer.set(slave, FORCE, importer.get(slave, FORCE))
        slave.doStep(STEP * index, STEP)
        expected = plant.step(STEP, 20.0 * STEP * (63 if held else index), 0.0 if held else 20.0)
        assert importer.get(slave, PLACE) == pytest.approx(expected, abs=3.0 * TOLERANCE)


@needs_compiler
def test_serialized_states_of_units_have_the_step_that_goes_past(unit: Callable[[], Importer]) -> None:
    importer = unit()
    slave, other = importer.running(), importer.running()
    for index in range(50):
        slave.doStep(STEP * index, STEP)
    state = slave.serializeFMUstate(slave.getFMUstate())
    other.setFMUstate(other.deSerializeFMUstate(state))
    assert other.serializeFMUstate(other.getFMUstate()) == state
    for index in range(50, 120):
        slave.doStep(STEP * index, STEP)
        other.doStep(STEP * index, STEP)
        assert importer.everything(other) == importer.everything(slave)
