"""Units for model exchange, integrated by solvers that are not ours."""

from __future__ import annotations

import ctypes
import zipfile
from collections.abc import Callable
from pathlib import Path

import fmpy
import numpy as np
import pytest
from crane import crane
from driven_crank import driven_crank
from exchange import Host
from extending.controllers import Pid
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import fmi2Discard
from fmpy.validation import validate_fmu
from native_fmus import Exported, model_of
from overconstrained import bennett_reference
from sampled_control import OFFSET, SAMPLE, discrete
from scipy.integrate import solve_ivp

import mbsfmu
from mbsfmu.base.errors import InputError
from mbsfmu.models import five_bar
from mbsfmu.tracing.workspace import Floats

Exchanged = Callable[..., Exported]
Hosted = Callable[..., Host]
GRID = 1e-2

UNITS = [
    ("four-bar", "double-step"),
    ("four-bar", "dca"),
    ("loop-8", "dca"),
    ("ball-pendulum", "hdca"),
    ("slewing", "double-step"),
]


@pytest.fixture
def hosted(exchanged: Exchanged, tmp_path: Path) -> Hosted:
    """Return a function that gives an instance in somebody else's hands."""

    def host(name: str, formulation: str) -> Host:
        return Host(exchanged(name, formulation).path, tmp_path)

    return host


def on_grid(result: Floats, times: Floats) -> Floats:
    """Return the last row at each of some times: events add rows."""
    return result[np.searchsorted(result["time"], times + 1e-9, side="right") - 1]


@pytest.mark.parametrize(("name", "formulation"), UNITS)
def test_cvode_comes_to_what_the_unit_itself_does(exchanged: Exchanged, name: str, formulation: str) -> None:
    path = str(exchanged(name, formulation).path)
    grid = {"stop_time": 1.5, "output_interval": GRID, "relative_tolerance": 1e-9}
    theirs = fmpy.simulate_fmu(path, fmi_type="ModelExchange", solver="CVode", **grid)
    ours = fmpy.simulate_fmu(path, fmi_type="CoSimulation", **grid)
    theirs = on_grid(theirs, ours["time"])
    for each in ours.dtype.names[1:]:
        largest = max(np.abs(ours[each]).max(), 1e-3)
        np.testing.assert_allclose(theirs[each], ours[each], rtol=0.0, atol=2e-5 * largest, err_msg=each)


@pytest.mark.parametrize("formulation", ["double-step", "dca"])
def test_cvode_comes_to_what_machines_do_in_process(tmp_path: Path, formulation: str) -> None:
    """Stiff circuits, sequences of commands, loops through cylinders; held against rodas5p in process."""
    model = crane()
    path = mbsfmu.export(model, tmp_path, layout="monolithic", kind=("me",), formulation=formulation)[0]
    grid = {"stop_time": 2.0, "output_interval": GRID, "relative_tolerance": 1e-8}
    theirs = fmpy.simulate_fmu(str(path), fmi_type="ModelExchange", solver="CVode", **grid)
    options = {"solver": "rodas5p", "relative_tolerance": 1e-8, "absolute_tolerance": 1e-8}
    ours = model.simulation(formulation=formulation, **options).run(2.0, output_step=GRID)
    theirs = on_grid(theirs, ours.time)
    for each in theirs.dtype.names[1:]:
        largest = max(np.abs(ours[each]).max(), 1e-3)
        np.testing.assert_allclose(theirs[each], ours[each], rtol=0.0, atol=1e-3 * largest, err_msg=each)


def test_points_may_be_far_from_the_last_completed_step(exchanged: Exchanged) -> None:
    """FMPy completes steps at outputs alone: loops are followed along the way, and not to another assembly."""
    path = str(exchanged("slewing", "double-step").path)
    wide, narrow = (
        fmpy.simulate_fmu(
            path,
            fmi_type="ModelExchange",
            solver="CVode",
            relative_tolerance=1e-9,
            stop_time=1.2,
            output_interval=interval,
        )
        for interval in (0.2, 0.005)
    )
    for each in wide.dtype.names[1:]:
        np.testing.assert_allclose(wide[each][-1], narrow[each][-1], rtol=1e-5, atol=1e-5, err_msg=each)


@pytest.mark.parametrize(("name", "formulation"), UNITS)
def test_descriptions_are_valid(exchanged: Exchanged, name: str, formulation: str) -> None:
    assert validate_fmu(str(exchanged(name, formulation).path)) == []


def test_radau_on_the_rates_comes_to_the_closed_form(hosted: Hosted) -> None:
    """The sampled controller's command is held between instants, which the host finds by the times it is told."""
    host = hosted("sampled", "double-step")
    update = host.begin()
    time, point, instants, rows = 0.0, host.point, 0, [(0.0, host.point[0])]
    while update.next < 0.3:
        found = solve_ivp(host.flow, (time, update.next), point, "Radau", rtol=1e-10, atol=1e-12)
        time, point = update.next, found.y[:, -1]
        host.go(time, point)
        assert host.complete()  # an event waits
        update = host.events()
        instants += 1
        assert update.values_changed  # importers start their solvers anew where it is told, and only there
        assert update.next == pytest.approx(OFFSET + instants * SAMPLE, abs=1e-12)
        rows.append((time, point[0]))
    times, displacements = np.array(rows).T
    np.testing.assert_allclose(displacements, discrete(times)[0], atol=1e-8)
    assert instants == len(np.arange(OFFSET, 0.3, SAMPLE))


def test_fmpy_passes_every_instant_and_jump(exchanged: Exchanged) -> None:
    """Each event of FMPy's own loop adds a row at the same time."""
    jumps = exchanged("four-bar", "dca").simulation.signals[0].table[1]
    for name, formulation, stop, times in (
        ("sampled", "double-step", 0.3, np.arange(OFFSET, 0.3, SAMPLE)),
        ("four-bar", "dca", 4.5, [time for time in jumps if 0.0 < time < 4.5]),
    ):
        path = str(exchanged(name, formulation).path)
        result = fmpy.simulate_fmu(
            path, fmi_type="ModelExchange", solver="CVode", stop_time=stop, output_interval=stop / 7.0
        )
        doubled = result["time"][1:][np.diff(result["time"]) == 0.0]
        np.testing.assert_allclose(doubled, times, atol=1e-9, err_msg=name)


def test_derivatives_are_in_the_units_of_their_states_per_second(hosted: Hosted) -> None:
    description = hosted("four-bar", "double-step").description
    units = {unit.name: unit.baseUnit for unit in description.unitDefinitions}
    for derivative in (each.variable for each in description.derivatives):
        rate, state = units[derivative.unit], units[derivative.derivative.unit]
        assert (rate.s, rate.factor) == (state.s - 1, state.factor), derivative.name
        assert (rate.kg, rate.m, rate.rad) == (state.kg, state.m, state.rad), derivative.name


@pytest.mark.parametrize(("name", "formulation"), UNITS)
def test_rates_are_those_of_python(hosted: Hosted, exchanged: Exchanged, name: str, formulation: str) -> None:
    """The formulation's own equations in NumPy, at the start and at a point near it."""
    host, unit = hosted(name, formulation), exchanged(name, formulation)
    simulation = unit.model.simulation(compiled=False, **unit.options)
    host.begin()
    simulation.initialize()
    assert simulation.run_loop.state is not None
    form = simulation.formulation.explicit_form(simulation.run_loop.state)
    inputs = host.get(*host.inputs)
    for point in (host.point, host.point + 1e-4 * np.cos(np.arange(len(host.states)))):
        ours = form.rates(point, inputs)
        np.testing.assert_allclose(host.flow(0.0, point), ours, rtol=1e-8, atol=1e-8 * np.abs(ours).max())


def test_rates_are_known_in_event_mode_too(exchanged: Exchanged, tmp_path: Path) -> None:
    """After initialization and after an input was set, those that the solver is given when it goes on."""
    path = exchanged("four-bar", "double-step").path
    host, fresh = (Host(path, tmp_path / name) for name in ("host", "fresh"))
    for each in (host, fresh):
        each.unit.setupExperiment(startTime=0.0)
        each.unit.enterInitializationMode()
        each.set(valve__command=3.0 if each is fresh else 0.0)
        each.unit.exitInitializationMode()
    still = host.rates
    host.set(valve__command=3.0)
    in_events = host.rates
    assert np.abs(in_events - still).max() > 1.0
    for each in (host, fresh):
        each.update()
        each.unit.enterContinuousTimeMode()
        np.testing.assert_allclose(each.rates, in_events, rtol=1e-9, atol=1e-9 * np.abs(in_events).max())


def test_points_that_cannot_be_are_discarded(hosted: Hosted) -> None:
    """Not refused as an error would be: a solver may try a shorter step [FMI 2.0.4, sec. 2.1.3]."""
    host = hosted("four-bar", "double-step")
    host.begin()
    point, rates = host.point, host.rates
    away = point.copy()
    away[0] += np.pi  # the angle of the rocker
    host.go(1e-3, away)
    with pytest.raises(FMICallException) as caught:
        _ = host.rates
    assert caught.value.status == fmi2Discard
    assert "the loops cannot be closed" in host.messages[-1]
    host.go(1e-3, point)
    np.testing.assert_allclose(host.rates, rates, rtol=1e-9, atol=1e-9 * np.abs(rates).max())


def moving(host: Host, steps: int = 60, step: float = 1e-3) -> tuple[float, Floats]:
    """Bring an instance to where all moves, by Heun's method; the last step is completed."""
    time, point = 0.0, host.point
    for number in range(steps):
        first = host.flow(time, point)
        second = host.flow((number + 1) * step, point + step * first)
        time, point = (number + 1) * step, point + 0.5 * step * (first + second)
        host.go(time, point)
        if host.complete():
            host.events()
            point = host.point
    return time, point


def readings(host: Host) -> Floats:
    """Return derivatives and outputs."""
    return np.concatenate([host.rates, host.get(*host.outputs)])


@pytest.mark.parametrize(("name", "formulation"), [*UNITS, ("ball-pendulum", "dca-alm")])
def test_directional_derivatives_are_those_of_differences(hosted: Hosted, name: str, formulation: str) -> None:
    """By all states and inputs; what is not zero is among the dependencies that the description has."""
    host = hosted(name, formulation)
    command = {"valve.command": 3.0} if "valve.command" in host.inputs else {}
    host.begin(**command)
    time, point = moving(host)
    unknowns = [*host.derivatives, *host.outputs]
    listed = [*host.description.derivatives, *host.description.outputs]
    needed = {each.variable.name: {other.name for other in each.dependencies} for each in listed}
    base = readings(host)
    for index, known in enumerate([*host.states, *host.inputs]):
        exact = host.derivative(unknowns, known)
        value = point[index] if index < len(point) else host.get(known)[0]
        change = 1e-6 * max(abs(value), 1e-2)
        sides = []
        for sign in (1.0, -1.0):
            if index < len(point):
                moved = point.copy()
                moved[index] += sign * change
                host.go(time, moved)
            else:
                host.set(**{known: value + sign * change})
            sides.append(readings(host))
        host.go(time, point)
        if index >= len(point):
            host.set(**{known: value})
        differences = (sides[0] - sides[1]) / (2.0 * change)
        floor = 1e-9 * np.abs(base) / change + 1e-7 * np.abs(differences).max() + 1e-9
        off = np.abs(exact - differences) / (floor + 1e-4 * np.abs(exact))
        worst = int(off.argmax())
        assert off[worst] < 1.0, f"{unknowns[worst]} by {known}: {exact[worst]} instead of {differences[worst]}"
        assert {
            unknown for unknown, each in zip(unknowns, exact, strict=True) if known not in needed[unknown] and each
        } == set()


@pytest.mark.parametrize(("name", "projections"), [("loop-4", True), ("slewing", True), ("ball-pendulum", False)])
def test_derivatives_in_absolute_coordinates_are_those_of_differences(
    tmp_path: Path, name: str, projections: bool
) -> None:
    """Along each state, and along the motion; off the loops the third derivatives are large."""
    options = {"formulation": "dca-alm", "code": "loops", "solver": "rk45", "projections": projections}
    path = mbsfmu.export(model_of(name), tmp_path, layout="monolithic", kind=("me",), **options)[0]
    host = Host(path, tmp_path)
    host.begin()
    time, point = moving(host)
    check_columns(host, time, point, states=len(point))


def test_derivatives_in_absolute_coordinates_by_prescribed_motion(tmp_path: Path) -> None:
    """By its position, velocity and acceleration, which are inputs.

    Not by all states: off the plane, where redundant joints contradict each other, rates are noise.
    """
    outputs = "slider.displacement", "crank.angular_velocity"
    options = {"formulation": "dca-alm", "code": "loops", "solver": "rk45", "outputs": outputs}
    path = mbsfmu.export(driven_crank(None), tmp_path, layout="monolithic", kind=("me",), **options)[0]
    host = Host(path, tmp_path)
    host.begin(motor__position=0.5, motor__velocity=2.0, motor__acceleration=3.0)
    check_columns(host, 0.0, host.point, states=0)


def check_columns(host: Host, time: float, point: Floats, states: int) -> None:
    """Hold derivatives by some states and each input, and along the motion, against extrapolated differences."""
    columns, rates = jacobian(host), host.rates
    at = np.concatenate([point, host.get(*host.inputs)])

    def go(place: Floats) -> None:
        host.go(time, place[: len(point)])
        host.set(**dict(zip(host.inputs, place[len(point) :], strict=True)))

    def difference(direction: Floats, size: float) -> Floats:
        sides = []
        for sign in (1.0, -1.0):
            go(at + sign * size * direction)
            sides.append(readings(host))
        go(at)
        return (sides[0] - sides[1]) / (2.0 * size)

    single = np.eye(len(at))
    for direction in [*single[:states], *single[len(point) :], np.pad(rates, (0, len(at) - len(point)))]:
        exact = columns.T @ direction
        found = (4.0 * difference(direction, 1e-5) - difference(direction, 2e-5)) / 3.0
        np.testing.assert_allclose(exact, found, rtol=0.0, atol=1e-4 * max(np.abs(exact).max(), 1e-1))


def jacobian(host: Host) -> Floats:
    """Return the derivatives of rates and outputs by states and inputs, column by column."""
    unknowns = [*host.derivatives, *host.outputs]
    return np.array([host.derivative(unknowns, known) for known in [*host.states, *host.inputs]])


@pytest.mark.parametrize(("name", "formulation"), [("four-bar", "double-step"), ("four-bar", "hdca")])
def test_kept_jacobian_follows_all_that_it_depends_on(
    exchanged: Exchanged, tmp_path: Path, name: str, formulation: str
) -> None:
    """An instance that was asked elsewhere before gives what one gives that was never asked: to the last bit."""

    def begun(folder: str) -> Host:
        host = Host(exchanged(name, formulation).path, tmp_path / folder)
        host.begin(valve__command=3.0)
        return host

    def tune(host: Host) -> None:
        host.unit.enterEventMode()
        host.set(cylinder__viscous_friction=1e5)
        host.update()
        host.unit.enterContinuousTimeMode()

    def come_back(host: Host) -> None:
        kept = host.unit.getFMUState()
        host.go(0.08, host.point - 3e-4)
        jacobian(host)
        host.unit.setFMUState(kept)

    changes: list[Callable[[Host], object]] = [
        moving,
        lambda host: host.go(0.07, host.point + 1e-4),
        come_back,
        lambda host: host.go(0.07, host.point - 2e-4),
        tune,
    ]
    asked = begun("asked")
    before = jacobian(asked)
    for number, change in enumerate(changes):
        change(asked)
        after = jacobian(asked)
        never = begun(f"never-{number}")
        for each in changes[: number + 1]:
            if each is not come_back:
                each(never)
        np.testing.assert_array_equal(after, jacobian(never))
        assert (np.count_nonzero(after != before) == 0) == (change is come_back)
        before = after


def test_other_coordinates_are_an_event_that_changes_the_states(hosted: Hosted) -> None:
    """The loop turns over: coordinates that get steep are replaced, the motion and its energy go on."""
    host = hosted("loop-8", "double-step")
    host.begin()
    energies = ["energy.kinetic", "energy.potential"]
    time, point, total, changes = 0.0, host.point, host.get(*energies).sum(), 0
    while time < 1.0:
        found = solve_ivp(host.flow, (time, time + 1e-2), point, "DOP853", rtol=1e-8, atol=1e-8)
        time, point = found.t[-1], found.y[:, -1]
        host.go(time, point)
        if not host.complete():
            continue
        before = host.get("link_1.angle", "link_3.angular_velocity", *energies)
        update = host.events()
        assert update.values_changed
        assert update.nominals_changed
        np.testing.assert_allclose(host.get("link_1.angle", "link_3.angular_velocity", *energies), before, rtol=1e-8)
        assert np.abs(host.point - point).max() > 1e-2
        point, changes = host.point, changes + 1
    assert changes
    assert host.get(*energies).sum() == pytest.approx(total, abs=1e-5)
    assert host.get("constraint.position")[0] < 1e-9


def test_absolute_coordinates_are_projected_at_events(hosted: Hosted) -> None:
    """Points that are off the constraints by more than a solver leaves are moved back onto them."""
    host = hosted("ball-pendulum", "dca-alm")
    host.begin()
    time, point = moving(host, steps=20)
    point[host.states.index("body.absolute.x.position")] += 1e-3
    host.go(time + 1e-3, point)
    assert host.complete()
    assert host.events().values_changed
    assert host.get("constraint.position")[0] < 1e-10
    assert np.abs(host.point - point).max() > 1e-4
    host.go(time + 1e-3, host.point)
    assert not host.complete()


def test_state_is_restored_to_the_last_bit_in_continuous_time(hosted: Hosted) -> None:
    host = hosted("four-bar", "double-step")
    host.begin(**{"valve.command": 3.0})
    time, point = moving(host)
    host.go(time + 2e-3, point + 2e-3 * host.flow(time, point))  # a trial
    saved = host.unit.getFMUstate()
    content = host.unit.serializeFMUstate(saved)
    expected = readings(host)
    ahead = moved_on(host)
    for state in (saved, host.unit.deSerializeFMUstate(content)):
        host.unit.setFMUstate(state)
        np.testing.assert_array_equal(readings(host), expected)
        np.testing.assert_array_equal(moved_on(host), ahead)


def test_trials_leave_no_trace(hosted: Hosted) -> None:
    """What is found at a point is the same to the last bit, wherever a solver has looked before."""
    host = hosted("four-bar", "double-step")
    host.begin(**{"valve.command": 3.0})
    time, point = moving(host)
    trial = point + 2e-3 * host.flow(time, point)
    found = []
    for aside in (0.0, 0.05, -0.03):
        host.go(time + 1e-3, point + aside * np.eye(len(point))[0])
        readings(host)
        host.go(time + 2e-3, trial)
        found.append(readings(host))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_an_event_is_where_the_last_point_is(hosted: Hosted) -> None:
    """Rates that are read there are found from where the last completed step has ended, and leave no trace."""
    host = hosted("four-bar", "double-step")
    host.begin(**{"valve.command": 3.0})
    time, point = moving(host)
    there = point + 2e-3 * host.flow(time, point)
    host.go(time + 2e-3, there)
    expected = host.get(*host.outputs)
    assert np.all(np.isfinite(host.rates))
    host.events()
    np.testing.assert_allclose(host.point, there, rtol=1e-12)
    np.testing.assert_allclose(host.get(*host.outputs), expected, rtol=1e-9)


def moved_on(host: Host) -> Floats:
    """Complete the step, make another one, and return what is there."""
    host.complete()
    point = host.point + 1e-3 * host.rates
    host.go(0.1, point)
    return np.concatenate([point, readings(host)])


def test_instances_are_of_one_kind(exchanged: Exchanged, hosted: Hosted, tmp_path: Path) -> None:
    """A state of the one is refused by the other, whose calls are told apart by sentences."""
    host = hosted("four-bar", "double-step")
    host.begin()
    saved = host.unit.getFMUstate()
    slave = fmpy.fmi2.FMU2Slave(
        guid=host.description.guid,
        unzipDirectory=str(tmp_path),
        modelIdentifier=host.description.coSimulation.modelIdentifier,
        instanceName="slave",
    )
    slave.instantiate(callbacks=host._callbacks)
    content = host.unit.serializeFMUstate(saved)
    for hand_over in (lambda: slave.setFMUstate(saved), lambda: slave.deSerializeFMUstate(content)):
        with pytest.raises(FMICallException):
            hand_over()
        assert host.messages.pop().endswith("it is that of an instance for model exchange")
    set_time = slave.dll.fmi2SetTime
    set_time.argtypes = [ctypes.c_void_p, ctypes.c_double]
    assert set_time(slave.component, 0.0) == fmpy.fmi2.fmi2Error
    assert host.messages[-1] == "this instance is for co-simulation: it makes its steps itself"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda host: host.unit.enterContinuousTimeMode(), "continuous-time mode is entered from event mode only"),
        (lambda host: host.unit.newDiscreteStates(), "events happen in event mode only"),
        (lambda host: host.unit.setTime(float("nan")), "the time is nan s; it must be a finite number"),
        (lambda host: host.unit.setTime(-1.0), "t = -1 s is before the last event"),
        (lambda host: host.go(0.0, host.point[1:]), "there are 13 continuous states, not 12"),
        (lambda host: host.go(0.0, host.point * np.nan), "continuous states must be finite numbers"),
        (lambda host: host.set(**{"boom.mass": 1.0}), "while a host integrates it is set in event mode only"),
        (lambda host: host.set(**{"boom.angle": 1.0}), "boom.angle is computed and cannot be set"),
        (
            lambda host: host.derivative(["boom.angle"], "boom.mass"),
            "boom.mass is no known of derivatives while stepping",
        ),
        (lambda host: host.derivative(["boom.mass"], host.states[0]), "boom.mass is no unknown"),
        (lambda host: host.unit.enterInitializationMode(), "initialization mode is entered from the start only"),
    ],
)
def test_wrong_calls_are_refused_with_a_sentence(hosted: Hosted, call: Callable[[Host], object], said: str) -> None:
    host = hosted("four-bar", "double-step")
    host.begin()
    before = host.unit.serializeFMUstate(host.unit.getFMUstate())
    with pytest.raises(FMICallException):
        call(host)
    assert said in host.messages[-1]
    assert host.unit.serializeFMUstate(host.unit.getFMUstate()) == before


def test_steps_are_not_made_for_a_host_that_integrates(hosted: Hosted) -> None:
    host = hosted("four-bar", "double-step")
    host.begin()
    step = host.unit.dll.fmi2DoStep
    step.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_int]
    assert step(host.unit.component, 0.0, 1e-3, 1) == fmpy.fmi2.fmi2Error
    assert host.messages[-1] == "this instance is for model exchange: steps are made by its host"


def test_inputs_are_what_is_set_at_every_point(hosted: Hosted) -> None:
    host = hosted("four-bar", "dca")
    host.begin(**{"valve.command": 0.0})
    still = host.flow(1e-3, host.point)
    host.set(**{"valve.command": 5.0})
    assert host.get("valve.command")[0] == 5.0
    moved = host.rates
    assert np.flatnonzero(moved != still).tolist() == [host.states.index("valve.spool")]
    host.set(**{"valve.command": 0.0})
    np.testing.assert_array_equal(host.rates, still)


def test_unit_may_be_for_model_exchange_alone(tmp_path: Path) -> None:
    path = mbsfmu.export(model_of("pendulum-2"), tmp_path, kind=["me"], locals="none", formulation="dca")[0]
    assert validate_fmu(str(path)) == []
    host = Host(path, tmp_path / "unpacked")
    assert host.description.coSimulation is None
    host.begin()
    start = host.get("der(energy.start)")[0]
    assert start == 0.0
    assert host.nominals.shape == host.point.shape


def test_magnitudes_of_states_are_those_described(tmp_path: Path) -> None:
    """Two of five hinges are independent; behind them and their velocities come states, and integrals of powers."""
    systems = {"linkage": five_bar().systems["mechanism"], "pid": Pid(proportional=1.0)}
    model = mbsfmu.CoupledModel(name="five", systems=systems)
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", kind=["me"], formulation="double-step")
    host = Host(path, tmp_path / "unpacked")
    host.begin()
    described = {each.name: float(each.nominal or 1.0) for each in host.description.modelVariables}
    assert host.nominals.tolist() == [described[name] for name in host.states]
    assert [described[name] for name in host.states[4:6]] == [0.1, 0.1], "as the block has them"
    assert len({described[name] for name in host.states}) == 4


@pytest.mark.parametrize(("name", "formulation"), [("four-bar", "double-step"), ("ball-pendulum", "hdca")])
def test_unit_for_model_exchange_alone_has_the_same_equations(
    exchanged: Exchanged, tmp_path: Path, name: str, formulation: str
) -> None:
    """Its equations are in other files, optimized in another way, and nothing is there twice."""
    both = exchanged(name, formulation).path
    (alone,) = mbsfmu.export(
        model_of(name), tmp_path, layout="monolithic", kind="me", formulation=formulation, sources=True
    )
    hosts = [Host(path, tmp_path / each) for path, each in ((both, "both"), (alone, "alone"))]
    for host in hosts:
        host.begin()
        host.go(1e-3, host.point + 1e-3)
    one, other = hosts
    np.testing.assert_allclose(one.rates, other.rates, rtol=1e-12, atol=1e-12 * np.abs(one.rates).max())
    exact = jacobian(one)
    np.testing.assert_allclose(jacobian(other), exact, rtol=1e-10, atol=1e-12 * np.abs(exact).max())
    with zipfile.ZipFile(alone) as archive:
        files = {Path(each).name: archive.read(each).decode() for each in archive.namelist() if each.endswith(".c")}
    written = [text for file, text in files.items() if file.startswith("model_")]
    slope = "reduced_slope" if formulation == "double-step" else "first_order_slope"
    assert sum(text.count(f"static void {slope}(") for text in written) == 1
    assert "model_flow.c" not in files


def test_redundant_joints_hold_at_points_far_from_the_last_completed_step(tmp_path: Path) -> None:
    """Those that stages choose at the start are dependent on the way; CVode completes steps at outputs alone."""
    options = {"formulation": "dca-alm", "solver": "rodas5p"}
    (path,) = mbsfmu.export(model_of("bennett"), tmp_path, layout="monolithic", kind=["me"], **options)
    grid = {"stop_time": 1.25, "output_interval": 0.25, "relative_tolerance": 1e-8}
    found = on_grid(fmpy.simulate_fmu(str(path), output=["link_1.angle"], **grid), np.array([0.5, 0.75, 1.0, 1.25]))
    np.testing.assert_allclose(found["link_1.angle"], bennett_reference()[0], rtol=0.0, atol=2e-5)


def test_formulation_without_rates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"'penalty' has no rates of states .* double-step, dca, dca-alm, hdca have them"
    ):
        mbsfmu.export(model_of("four-bar"), tmp_path, layout="monolithic", kind=("me",), formulation="penalty")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": ("cs", "xx")}, "there is no kind 'xx' of FMUs; there are cs, me"),
        ({"kind": ()}, "kind is one of cs, me"),
        ({"kind": "xs"}, "there is no kind 'xs' of FMUs; there are cs, me"),
        ({"kind": ("me",), "backend": "python"}, "FMUs of 'python' are for co-simulation"),
    ],
)
def test_kinds_are_checked(tmp_path: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        mbsfmu.export(model_of("pendulum-1"), tmp_path, **options)
