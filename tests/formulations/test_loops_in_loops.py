"""kernel loops of mechanisms with loops: what is recorded is what equations say, at a cost that grows as the loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from code_length import length_of_code
from driven_crank import driven_crank, in_closed_form
from scipy.integrate import solve_ivp

import mbsfmu
from mbsfmu import Beam, CoupledModel, Mechanism, Revolute
from mbsfmu.initialization.closing_loops import OwnStarts, close_loops, find_loop_equations, onto_velocity_constraints
from mbsfmu.models.chains import LEANING
from mbsfmu.parts import JointSpringDamper
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import Code, chosen_rows
from mbsfmu.tracing.workspace import Floats, RecordedFunction

GRAVITY = 9.81
REDUNDANT = ("bennett", "slewing-four-bar")


def mechanism_of(model: CoupledModel) -> Mechanism:
    (mechanism,) = model.systems.values()
    assert isinstance(mechanism, Mechanism)
    return mechanism


def both(name: str) -> tuple[SystemFunctions, SystemFunctions]:
    """Functions in both forms, where a mechanism moves with its loops closed."""
    mechanism = mechanism_of(mbsfmu.models.built_in(name))
    random = np.random.default_rng(3)
    whole = SystemFunctions(MechanismSystem(mechanism))
    whole.parameters[:] = [each.start for each in whole.system.parameters]
    start = whole.start()[0]
    opened, given = start + 0.1 * random.normal(size=start.shape), random.normal(size=start.shape)
    coordinates = close_loops(whole, opened, OwnStarts.of(opened)).values
    velocities = onto_velocity_constraints(whole, coordinates, given, OwnStarts.of(given)).values
    loops = find_loop_equations(whole, coordinates)
    straight, recorded = (SystemFunctions(MechanismSystem(mechanism), loops, code=code) for code in Code)
    for functions in (straight, recorded):
        functions.parameters[:], functions.coordinates[:] = whole.parameters, coordinates
        functions.velocities[:] = velocities
    for part in ("accelerations", "momenta", "multipliers"):
        straight.write(part, random.normal(size=straight.values(part).shape))
        recorded.write(part, straight.values(part))
    if straight.redundant:
        for functions in (straight, recorded):
            functions.active[:] = chosen_rows(straight.closure()[1], loops.rank)
    return straight, recorded


@pytest.mark.parametrize("name", ["ladder-3", "double-pentagon", *REDUNDANT])
def test_recorded_functions_of_loops_are_the_traced_ones(name: str) -> None:
    straight, recorded = both(name)

    def results(functions: SystemFunctions) -> dict[str, Floats]:
        names = ("closure_rate", "all_drifts", "reactions", "momentum_rates", "outputs")
        names = (*names, "violation", "integral_rates", "momentum_energies")
        found = dict(zip(("gap", "jacobian"), functions.closure(), strict=True))
        found |= {each: functions.defined(each, lambda given, each=each: [getattr(given, each)])()[0] for each in names}
        for each in ("forward_dynamics", "impulsive_velocities"):
            of_both = functions.defined(each, lambda given, each=each: list(getattr(given, each)(3.0)))()
            found |= {f"{each} {index}": vector for index, vector in enumerate(of_both)}
        return found

    expected = results(straight)
    for key, own in results(recorded).items():
        scale = np.max(np.abs(expected[key]), initial=1.0)
        np.testing.assert_allclose(own, expected[key], rtol=0, atol=1e-10 * scale, err_msg=key)
    assert recorded.moving_rows == straight.moving_rows
    assert recorded.reactions_open == straight.reactions_open == (name in REDUNDANT)
    if recorded.reactions_open:
        multipliers = np.random.default_rng(7).normal(size=len(recorded.shared_multipliers))
        recorded.shared_multipliers[:] = straight.shared_multipliers[:] = multipliers
        for each in ("shared_reactions", "all_closure_jacobian"):
            own, traced = (getattr(functions, each)()[0] for functions in (recorded, straight))
            np.testing.assert_allclose(own, traced, atol=1e-12 * np.max(np.abs(traced)))


@pytest.mark.parametrize("found", ["forward_dynamics", "impulsive_velocities"])
@pytest.mark.parametrize("name", ["ladder-3", "double-pentagon"])
def test_changes_of_motion_and_multipliers_are_differences(name: str, found: str) -> None:
    straight, recorded = both(name)
    start = recorded.coordinates.copy()
    along, step = np.random.default_rng(5).normal(size=start.shape), 1e-6
    changes = recorded.defined(
        "changes", lambda given: given.changes(getattr(given, found)(3.0), [(given.instant.coordinates, along)])
    )
    values = straight.defined("values", lambda given: list(getattr(given, found)(3.0)))

    def at(share: float) -> list[Floats]:
        straight.coordinates[:] = start + share * along
        return [each.copy() for each in values()]

    for own, more, less in zip(changes(), at(step), at(-step), strict=True):
        expected = (more - less) / (2.0 * step)
        np.testing.assert_allclose(own, expected, atol=1e-6 * np.max(np.abs(expected)))


@pytest.mark.parametrize(("name", "formulation"), [("ladder-4", "dca"), ("bennett", "hdca")])
def test_runs_of_loops_are_those_of_straight_code(name: str, formulation: str) -> None:
    model = mbsfmu.models.built_in(name)
    runs = [
        model.simulation(formulation=formulation, solver="rk45", relative_tolerance=1e-9, code=code).run(stop=0.3)
        for code in ("straight", "loops")
    ]
    for each in runs[0]:
        scale = 1.0 + np.max(np.abs(runs[0][each]))
        np.testing.assert_allclose(runs[1][each], runs[0][each], rtol=0, atol=1e-10 * scale, err_msg=each)


def pin_jointed(
    loops: int, times: Floats, stiffness: float = 0.0, damping: float = 0.0, method: str = "DOP853"
) -> Floats:
    """Heights of all links' centres of a ladder: plain rigid bodies in the plane, KKT equations with all pins.

    A spring and a damper keep the last rung at the angle to its left rail that it starts with.
    """
    ends = np.array([-0.5, 0.0]), np.array([0.5, 0.0])
    angles, pins = [], []  # pins: pairs of (body or fixed point, place along the link from its centre)
    above, beside = (ends[0], 0.0), (ends[1], 0.0)
    for number in range(loops):
        left, rung, right = (3 * number + each for each in range(3))
        angles += [LEANING - 0.5 * np.pi, 0.0, LEANING - 0.5 * np.pi]
        pins += [
            (above, (left, -0.5)),
            ((left, 0.5), (rung, -0.5)),
            ((rung, 0.5), (right, 0.5)),
            (beside, (right, -0.5)),
        ]
        above, beside = (left, 0.5), (right, 0.5)
    count = len(angles)
    down = np.array([np.sin(LEANING), -np.cos(LEANING)])
    centres = [
        [ends[0] + (number + 0.5) * down, (number + 1.0) * down, ends[1] + (number + 0.5) * down]
        for number in range(loops)
    ]
    places = np.concatenate(centres)
    start = np.column_stack([places, angles]).ravel()

    def rows(q: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
        """Φ, Φ_q and −Φ̇_q q̇."""
        matrix, gap, right = np.zeros((2 * len(pins), 3 * count)), np.zeros(2 * len(pins)), np.zeros(2 * len(pins))
        for index, pair in enumerate(pins):
            own = slice(2 * index, 2 * index + 2)
            for sign, (body, along) in zip((-1.0, 1.0), pair, strict=True):
                if not isinstance(body, int):
                    gap[own] += sign * body
                    continue
                x, y, angle = q[3 * body : 3 * body + 3]
                arm = along * np.array([np.cos(angle), np.sin(angle)])
                gap[own] += sign * (np.array([x, y]) + arm)
                matrix[own, 3 * body : 3 * body + 2] = sign * np.eye(2)
                matrix[own, 3 * body + 2] = sign * np.array([-arm[1], arm[0]])
                right[own] += sign * arm * v[3 * body + 2] ** 2
        return gap, matrix, right

    def rates(_: float, state: Floats) -> Floats:
        q, v = np.split(state, 2)
        matrix, right = rows(q, v)[1:]
        load = np.tile([0.0, -GRAVITY, 0.0], count)
        relative, turning = (each[-4] - each[-7] for each in (q - start, v))
        moment = stiffness * relative + damping * turning
        load[-4] -= moment
        load[-7] += moment
        zero = np.zeros((len(matrix), len(matrix)))
        everything = np.block([[np.eye(3 * count), matrix.T], [matrix, zero]])  # masses and inertias are one
        found = np.linalg.solve(everything, np.concatenate([load, right]))[: 3 * count]
        return np.asarray(np.concatenate([v, found]), dtype=np.float64)

    np.testing.assert_allclose(rows(start, np.zeros_like(start))[0], 0.0, atol=1e-14)
    state = np.concatenate([start, np.zeros_like(start)])
    found = solve_ivp(rates, (0.0, times[-1]), state, method=method, t_eval=times, rtol=1e-10, atol=1e-11)
    return np.asarray(found.y[1 : 3 * count : 3], dtype=np.float64)


@pytest.mark.parametrize("formulation", ["dca", "dca-alm"])
def test_a_ladder_moves_as_pinned_bodies_do(formulation: str) -> None:
    loops, times = 3, np.linspace(0.0, 1.0, 6)
    simulation = mbsfmu.models.ladder(loops).simulation(
        formulation=formulation, solver="rk45", relative_tolerance=1e-10, absolute_tolerance=1e-11, code="loops"
    )
    result = simulation.run(stop=1.0, output_step=0.2)
    expected = pin_jointed(loops, times)
    names = [f"{part}_{number}" for number in range(1, loops + 1) for part in ("left", "rung", "right")]
    for name, heights in zip(names, expected, strict=True):
        np.testing.assert_allclose(result[f"{name}.centre.y.position"], heights, atol=2e-8)
    assert np.ptp(expected) > 1.0


def test_a_ladder_with_a_stiff_damper_moves_as_pinned_bodies_do() -> None:
    """The damper's rate is some 1e4 1/s: steps of explicit methods would have to be a tenth of a millisecond."""
    loops, times, stiffness, damping = 2, np.linspace(0.0, 1.0, 6), 1e3, 2e4
    mechanism = mechanism_of(mbsfmu.models.ladder(loops))
    (rung,) = (each for each in mechanism.joints if each.name == f"rung_{loops}_left")
    assert isinstance(rung, Revolute)
    bush = JointSpringDamper(
        name="bush", joint=rung.name, stiffness=stiffness, damping=damping, free_coordinate=rung.angle
    )
    held = mechanism.model_copy(update={"forces": (bush,)})
    simulation = CoupledModel(name="held", systems={"mechanism": held}).simulation(
        formulation="dca", solver="rodas5p", relative_tolerance=1e-8, absolute_tolerance=1e-8, code="loops"
    )
    result = simulation.run(stop=1.0, output_step=0.2)
    assert simulation.statistics.steps < 500
    expected = pin_jointed(loops, times, stiffness, damping, method="Radau")
    names = [f"{part}_{number}" for number in range(1, loops + 1) for part in ("left", "rung", "right")]
    for name, heights in zip(names, expected, strict=True):
        np.testing.assert_allclose(result[f"{name}.centre.y.position"], heights, atol=1e-6)
    assert np.ptp(expected, axis=1).max() > 0.03


@pytest.mark.parametrize(("formulation", "stop", "gap"), [("dca", 10.0, 1e-6), ("dca-alm", 0.5, 1e-12)])
def test_energy_of_a_large_ladder_stays(formulation: str, stop: float, gap: float) -> None:
    simulation = mbsfmu.models.ladder(22).simulation(formulation=formulation, solver="rk45", relative_tolerance=1e-8)
    assert simulation.functions.in_loops
    result = simulation.run(stop=stop)
    assert np.max(np.abs(result["energy.drift"])) < 1e-6 * np.ptp(result["energy.potential"])
    assert np.max(np.abs(result["constraint.position"])) < gap


def test_a_net_falls_as_the_only_chain_that_its_parallelograms_leave() -> None:
    """Two strings with rungs between them, which stay level: one chain of two links at once, with the rungs' masses."""
    rungs, length, width, string, rung = 12, 0.1, 0.3, 0.2, 0.4
    bodies, joints = [], []
    one, other = "ground.one", "ground.other"
    for number in range(rungs):
        names = [f"{part}_{number}" for part in ("one", "other", "rung")]
        bodies += [
            Beam(name=name, length=long, mass=mass)
            for name, long, mass in zip(names, (length, length, width), (string, string, rung), strict=True)
        ]
        turned = LEANING - 0.5 * np.pi if number == 0 else 0.0
        joints += [
            Revolute(name=f"{names[0]}_top", parent=one, child=f"{names[0]}.start", angle=turned),
            Revolute(name=f"{names[1]}_top", parent=other, child=f"{names[1]}.start", angle=turned),
            Revolute(
                name=f"{names[2]}_one", parent=f"{names[0]}.end", child=f"{names[2]}.start", angle=0.5 * np.pi - LEANING
            ),
            Revolute(name=f"{names[2]}_other", parent=f"{names[2]}.end", child=f"{names[1]}.end", cut=True),
        ]
        one, other = f"{names[0]}.end", f"{names[1]}.end"
    ground = {"one": (0.0, 0.0, 0.0), "other": (width, 0.0, 0.0)}
    mechanism = Mechanism(ground=ground, bodies=tuple(bodies), joints=tuple(joints))
    model = CoupledModel(name="net", systems={"net": mechanism})
    simulation = model.simulation(formulation="dca", solver="rk45", code="loops", compiled=False)
    # Horizontal shares of each mass in the links' turns: all links above it, half of its own where it is one.
    arms = np.array(
        [
            [length * ((link < number) + share * (link == number)) for link in range(rungs)]
            for number in range(rungs)
            for share in (0.5, 1.0)
        ]
    )
    masses = np.tile([2.0 * string, rung], rungs)
    matrix = arms.T @ (masses[:, np.newaxis] * arms) + np.eye(rungs) * 2.0 * string * length**2 / 12.0
    expected = np.linalg.solve(matrix, -GRAVITY * np.sin(LEANING) * (masses @ arms))
    start = simulation.run(stop=1e-3, output_step=1e-3)
    found = np.cumsum([start[f"one_{number}.angular_acceleration"][0] for number in range(rungs)])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))


def motion_of(loops: int) -> RecordedFunction:
    functions = SystemFunctions(MechanismSystem(mechanism_of(mbsfmu.models.ladder(loops))), code=Code.LOOPS)
    function = functions.defined("dynamics", lambda given: list(given.forward_dynamics(0.0)))
    assert isinstance(function, RecordedFunction)
    return function


def test_cost_grows_as_the_number_of_loops() -> None:
    sizes = (8, 16, 32)
    functions = [motion_of(loops) for loops in sizes]
    kernels = [len({loop.kernel for loop in each.program.schedule.loops}) for each in functions]
    assert kernels[2] <= kernels[1] + 6
    more = [later.operations - former.operations for former, later in pairwise(functions)]
    of_loops = [added / (later - former) for added, (former, later) in zip(more, pairwise(sizes), strict=True)]
    assert of_loops[-1] < 1.05 * of_loops[0], of_loops
    assert length_of_code(functions[2]) < 1.6 * length_of_code(functions[1])


def test_code_that_is_straight_though_it_is_large_says_so(caplog: pytest.LogCaptureFixture) -> None:
    for model in (mbsfmu.models.ladder(22), mbsfmu.models.pendulum(66)):
        for solver in ("rk45", "trapezoidal", "rodas5p"):
            model.simulation(formulation="dca", solver=solver, compiled=False)
    assert "minutes" not in caplog.text
    mbsfmu.models.pendulum(66).simulation(formulation="penalty", compiled=False)
    assert "the code of penalty is unrolled here: with 66 coordinates tracing and compiling it takes" in caplog.text


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
def test_implicit_steps_of_what_is_driven_follow_the_closed_form(formulation: str) -> None:
    """A crank that is turned, whose torque is a multiplier and whose work an integral of one."""
    simulation = driven_crank().simulation(
        formulation=formulation, solver="trapezoidal", step=1e-3, stabilisation=20.0, code="loops"
    )
    result = simulation.run(stop=0.3)
    for name, expected in in_closed_form(result.time).items():
        scale = np.max(np.abs(expected))
        np.testing.assert_allclose(result[name], expected, atol=2e-3 * scale, err_msg=name)
    taken_up = result["energy.kinetic"] - result["energy.kinetic"][0]
    np.testing.assert_allclose(result["energy.work"], taken_up, atol=1e-3 * np.ptp(taken_up))


def test_what_drives_loops_does_the_work_that_they_take_up() -> None:
    simulation = driven_crank().simulation(formulation="dca", solver="rk45", relative_tolerance=1e-9, code="loops")
    result = simulation.run(stop=0.2)
    taken_up = result["energy.kinetic"] - result["energy.kinetic"][0]
    np.testing.assert_allclose(result["energy.work"], taken_up, atol=1e-5 * np.ptp(taken_up))
    assert np.ptp(taken_up) > 0.1
