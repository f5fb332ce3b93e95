"""Coordinate partitioning: chosen anew when the present choice becomes steep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from mechanisms import slider_crank
from slewing import closed_angles

import mbsfmu
from mbsfmu import Beam, CoupledModel, Mechanism, Revolute
from mbsfmu.base.errors import SimulationError
from mbsfmu.initialization.coordinates import Partition, choose
from mbsfmu.integration.solvers import makes_equal_steps
from mbsfmu.simulation.simulation import Simulation


def test_published_choice_by_hand() -> None:
    """The four-bar's loop equations at the start: pivots −3 and 1, so that z₃ stays independent."""
    assert choose(np.array([[1.0, 1.0, 0.0], [0.0, -3.0, -2.0]]), 2).independent.tolist() == [2]


def test_singular_configuration_is_named() -> None:
    with pytest.raises(SimulationError, match="the configuration is singular"):
        choose(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]), 2)


@pytest.mark.parametrize("solver", ["trapezoidal", "dop853", "rodas5p"])
def test_full_turns_through_dead_centres(solver: str) -> None:
    """No coordinate of a slider-crank but the crank's serves for a full turn; energy shows that changes do no harm."""
    tolerances = {} if makes_equal_steps(solver) else {"relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
    simulation = slider_crank().simulation(solver=solver, step=1e-3, **tolerances)
    result = simulation.run(2.5)
    assert np.ptp(result["crank.angle"]) > 2 * np.pi
    assert result.largest("energy.drift") < 1e-4 * result["energy.kinetic"][0]
    assert result.largest("constraint.position") < 1e-12
    penalty = slider_crank().simulation(formulation="penalty", step=1e-3).run(2.5)
    np.testing.assert_allclose(result["crank.angle"][-1], penalty["crank.angle"][-1], atol=2e-3)


SOLVERS = ["trapezoidal", "rk4", "rk45", "dop853", "radau", "adams", "rodas5p"]


def forced(solver: str, compiled: bool) -> Simulation:
    """A slider-crank at its start whose slider, which gets steep towards the dead centre, is the independent one."""
    tolerances = {} if makes_equal_steps(solver) else {"relative_tolerance": 1e-7, "absolute_tolerance": 1e-7}
    simulation = slider_crank().simulation(solver=solver, compiled=compiled, **tolerances)
    simulation.initialize()
    names = [variable.name for variable in simulation.functions.system.coordinates]
    partition = Partition.of([names.index("slider.displacement")], 3)
    assert simulation.run_loop.state is not None
    simulation.run_loop.state = replace(simulation.run_loop.state, partition=partition)
    return simulation


def changes(choices: Iterable[Any]) -> int:
    return sum(one != other for one, other in pairwise(choices))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("compiled", [False, True])
def test_choice_changes_during_a_run(solver: str, compiled: bool) -> None:
    """The run goes on with another choice, which is counted as it is seen between calls, some inside of steps."""
    expected = slider_crank().simulation(solver="dop853").run(0.6)["crank.angle"][-1]
    for step in (5e-3,) if solver == "adams" else (5e-3, 0.3):  # adams chooses where calls end
        simulation = forced(solver, compiled)
        choices = [simulation.independent]
        for index in range(round(0.6 / step)):
            simulation.step(index * step, step)
            choices.append(simulation.independent)
        assert simulation.statistics.repartitions == changes(choices) == 1
        assert simulation.independent != ("slider.displacement",)
        assert simulation.get("crank.angle") == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_changes_are_counted_between_outputs(solver: str) -> None:
    simulation = forced(solver, compiled=False)
    times, inputs = np.linspace(0.0, 0.6, 121), simulation.run_loop.inputs.over(0.0)
    states = [simulation.run_loop.present, *simulation.solver.advance(simulation.run_loop.present, times, inputs)]
    assert simulation.statistics.repartitions == changes(tuple(state.partition.independent) for state in states) == 1


@pytest.mark.parametrize("compiled", [False, True])
def test_unit_of_length_does_not_choose(compiled: bool) -> None:
    """Without gravity sizes and masses do not count: a crank of 300 m turns as one of 0.3 m, through dead centres.

    But for the error of steps, 3e-5 rad, where crank and rod serve alike and either is taken.
    """
    crank, speed = 1.5, 6.0
    rod = -np.arcsin(0.3 * np.sin(crank))
    turning = -0.3 * np.cos(crank) / np.cos(rod) * speed
    results = []
    for size in (1.0, 1000.0):
        simulation = slider_crank(speed, size).simulation(step=2e-3, compiled=compiled)
        simulation.set("crank.angle_start", crank)
        simulation.set("rod.angle_start", rod - crank)
        simulation.set("rod.angular_velocity_start", turning - speed)
        simulation.set("slider.displacement_start", size * (0.3 * np.cos(crank) + np.cos(rod)))
        results.append(simulation.run(1.5)["crank.angle"])
    assert np.ptp(results[0]) > 2.0 * np.pi
    np.testing.assert_allclose(results[1], results[0], rtol=0, atol=1e-4)


def test_pendulum_has_nothing_to_choose() -> None:
    assert mbsfmu.models.pendulum(2).simulation().independent == ("link_1.angle", "link_2.angle")


def test_choice_tells_small_from_nothing() -> None:
    """A pivot of a hundred-thousandth of the largest is one; round-off is none."""
    assert choose(np.array([[1.0, 2.0, 0.0], [0.0, 1e-5, 3e-5]]), 2).independent.tolist() == [0]
    with pytest.raises(SimulationError, match="the configuration is singular"):
        choose(np.array([[1.0, 2.0, 0.0], [0.0, 1e-12, 3e-12]]), 2)


def four_bars(*sizes: float) -> CoupledModel:
    """Four-bars beside each other, alike but for their sizes in m, under gravity."""
    bodies, joints, ground = [], [], {}
    crank, coupler, rocker = closed_angles(np.radians(80.0))
    for number, size in enumerate(sizes):
        ground |= {f"A{number}": (5.0 * number, 0.0, 0.0), f"B{number}": (5.0 * number + 2.0 * size, 0.0, 0.0)}
        names = [f"{name}_{number}" for name in ("crank", "coupler", "rocker")]
        bodies += [
            Beam(name=name, length=length * size, mass=size**3)
            for name, length in zip(names, (1.0, 2.0, 1.5), strict=True)
        ]
        joints += [
            Revolute(name=f"a{number}", parent=f"ground.A{number}", child=f"{names[0]}.start", angle=crank),
            Revolute(name=f"b{number}", parent=f"{names[0]}.end", child=f"{names[1]}.start", angle=coupler),
            Revolute(name=f"c{number}", parent=f"ground.B{number}", child=f"{names[2]}.start", angle=rocker),
            Revolute(name=f"d{number}", parent=f"{names[1]}.end", child=f"{names[2]}.end", cut=True),
        ]
    mechanism = Mechanism(ground=ground, bodies=tuple(bodies), joints=tuple(joints))
    return CoupledModel(name="four-bars", systems={"mechanism": mechanism})


def test_small_loops_beside_large_ones_stay_loops() -> None:
    """Of two alike, that of a size s moves as the other in times √s as long; each has one degree of freedom."""
    size, step = 1e-4, 1e-2
    both = four_bars(1.0, size).simulation(step=step * np.sqrt(size), compiled=False)
    assert len(both.independent) == 2
    alone = four_bars(1.0).simulation(step=step, compiled=False)
    slow, fast = alone.run(1.0), both.run(np.sqrt(size))
    assert np.ptp(slow["crank_0.angle"]) > 0.5
    for name in ("crank", "coupler", "rocker"):
        np.testing.assert_allclose(fast[f"{name}_1.angle"], slow[f"{name}_0.angle"], atol=1e-6)


def test_another_assembly_is_no_next_state() -> None:
    """The same crank with coupler and rocker on the other side of its diagonal; and where a step really leads."""
    simulation = four_bars(1.0).simulation(compiled=False)
    simulation.initialize()
    form = simulation.formulation.explicit_form(simulation._started())
    crank, coupler, rocker = closed_angles(np.radians(80.0))
    np.testing.assert_allclose(form.state.coordinates, [crank, rocker, coupler], atol=1e-12)
    tip, pivot = np.array([np.cos(crank), np.sin(crank)]), np.array([2.0, 0.0])
    diagonal = np.arctan2(*(pivot - tip)[::-1])
    mirrored = np.array([crank, 2.0 * diagonal - rocker, 2.0 * diagonal - 2.0 * crank - coupler])
    for step in (1e-3, 0.1):
        assert form.leaps(replace(form.state, coordinates=mirrored), step)
        simulation.initialize()
        simulation.step(0.0, step)
        assert not form.leaps(simulation._started(), step)
