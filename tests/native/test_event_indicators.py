"""Event indicators of end stops and contacts, found by solvers of importers, against closed forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import fmpy
import numpy as np
import pytest
from fmpy import fmi2, fmi3
from fmpy.fmi1 import FMICallException
from fmpy.validation import validate_fmu

import mbsfmu
from mbsfmu import CoupledModel, DataError, Force, InputError, JointReference, Mechanism, Prismatic, RigidBody
from mbsfmu.compiling.compiler import Fmi
from mbsfmu.native.native_package import HYSTERESIS
from mbsfmu.parts import JointStop, PlaneContact

MASS, STIFFNESS, SPEED = 2.0, 2e5, 1.51
LOWER, UPPER = -0.2, 0.3
STOP = 3.0


def sliding(*forces: Force, gravity: float = 0.0, **start: float) -> CoupledModel:
    """A mass on a slide along x, along which gravity acts."""
    mechanism = Mechanism(
        gravity=(-gravity, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="mass", mass=MASS, inertia=(0.1, 0.1, 0.1)),),
        joints=(Prismatic(name="rail", parent="ground.O", child="mass.origin", **start),),
        forces=forces,
    )
    return CoupledModel(name="sliding", systems={"mechanism": mechanism}, stop_time=STOP)


def exported(model: CoupledModel, folder: Path, **options: Any) -> Path:
    (path,) = mbsfmu.export(model, folder, **{"kind": "me", "event_indicators": True, **options})
    assert validate_fmu(str(path)) == []
    return path


STOPS = JointStop(name="stop", joint="rail", lower=LOWER, upper=UPPER, stiffness=STIFFNESS)


@pytest.fixture(scope="module", params=[2, 3])
def bouncing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Fmi, Path, Path]:
    """A mass between two stops: the version, its FMU with event indicators, and that without."""
    fmi, folder = request.param, tmp_path_factory.mktemp("bouncing")
    model = sliding(STOPS, velocity=SPEED)
    return fmi, exported(model, folder / "with", fmi=fmi), exported(model, folder, fmi=fmi, event_indicators=False)


def instants() -> list[float]:
    """Return when the mass meets and leaves stops: it flies at constant speed, and is in for π √(m/k)."""
    found, inside, across = [UPPER / SPEED], np.pi * np.sqrt(MASS / STIFFNESS), (UPPER - LOWER) / SPEED
    while (time := found[-1] + (inside, across)[len(found) % 2 == 0]) < STOP:
        found.append(time)
    return found


def integrated(path: Path, tolerance: float, stop: float = STOP) -> tuple[Any, int]:
    """Return the result by FMPy's CVode, with a row at each event, and the number of right-hand sides."""
    evaluations = []

    def count(message: str, *_: object) -> None:
        if "Derivatives" in message.partition("(")[0]:
            evaluations.append(message)

    result = fmpy.simulate_fmu(
        str(path),
        solver="CVode",
        relative_tolerance=tolerance,
        stop_time=stop,
        output_interval=0.01,
        record_events=True,
        fmi_call_logger=count,
    )
    return result, len(evaluations)


def event_times(result: Any, interval: float = 0.01) -> list[float]:
    """Return the times of a result that are none of its grid."""
    times = np.asarray(result["time"])
    return np.unique(times[np.abs(times / interval - np.round(times / interval)) > 1e-6]).tolist()


def test_solvers_find_where_a_bouncing_mass_meets_and_leaves_stops(bouncing: tuple[Fmi, Path, Path]) -> None:
    """To the error of the motion so far, and at 15 % less right-hand sides than without event indicators."""
    _, found, without = bouncing
    result, evaluations = integrated(found, 1e-9)
    known = instants()
    assert len(known) == 18
    times = event_times(result)
    assert len(times) == len(known)
    np.testing.assert_allclose(times, known, rtol=0.0, atol=5e-6)
    np.testing.assert_allclose(times[0], known[0], rtol=0.0, atol=2e-9)  # nothing but the hysteresis
    plain, plainly = integrated(without, 1e-9)
    assert event_times(plain) == []
    assert evaluations < 0.9 * plainly


def test_default_fmus_have_no_event_indicators(bouncing: tuple[Fmi, Path, Path]) -> None:
    fmi, found, without = bouncing
    assert fmpy.read_model_description(str(without)).numberOfEventIndicators == 0
    description = fmpy.read_model_description(str(found))
    assert description.numberOfEventIndicators == 2
    variables = {each.name: each for each in description.modelVariables}
    gaps = [variables[f"stop.{end}_gap"] for end in ("lower", "upper")]
    assert [(each.causality, each.variability, each.unit) for each in gaps] == [("local", "continuous", "m")] * 2
    if fmi == 3:
        assert [each.variable for each in description.eventIndicators] == gaps
        dependencies = [[each.name for each in unknown.dependencies] for unknown in description.eventIndicators]
        assert dependencies == [["mass.displacement"]] * 2


class Host:
    """An instance in continuous-time mode that is led by hand.

    Parameters
    ----------
    path, folder
        The FMU, and where it is unpacked.
    fmi
        Its version.
    """

    def __init__(self, path: Path, folder: Path, fmi: Fmi) -> None:
        description = fmpy.read_model_description(str(path))
        self.unit: Any = (fmi2.FMU2Model if fmi == 2 else fmi3.FMU3Model)(
            guid=description.guid,
            unzipDirectory=str(fmpy.extract(str(path), unzipdir=str(folder))),
            modelIdentifier=description.modelExchange.modelIdentifier,
            instanceName="host",
        )
        self._fmi, self.references = fmi, {each.name: each.valueReference for each in description.modelVariables}
        self._states, self._count = len(description.derivatives), description.numberOfEventIndicators
        self.unit.instantiate()
        if fmi == 2:
            self.unit.setupExperiment(startTime=0.0)
        self.unit.enterInitializationMode()
        self.unit.exitInitializationMode()
        self._update()

    def _update(self) -> None:
        self.unit.newDiscreteStates() if self._fmi == 2 else self.unit.updateDiscreteStates()
        self.unit.enterContinuousTimeMode()

    def event(self) -> None:
        """Let the unit have an event."""
        self.unit.enterEventMode()
        self._update()

    def go(self, displacement: float) -> None:
        """Bring the mass to a place."""
        states = np.zeros(self._states)
        self.unit.getContinuousStates(states.ctypes.data_as(fmi2.POINTER(fmi2.c_double)), states.size)
        states[0] = displacement
        self.unit.setContinuousStates(states.ctypes.data_as(fmi2.POINTER(fmi2.c_double)), states.size)

    @property
    def indicators(self) -> list[float]:
        """The event indicators."""
        values = np.zeros(self._count)
        self.unit.getEventIndicators(values.ctypes.data_as(fmi2.POINTER(fmi2.c_double)), values.size)
        return values.tolist()

    def get(self, *names: str) -> Sequence[float]:
        """Return variables."""
        return (self.unit.getReal if self._fmi == 2 else self.unit.getFloat64)(
            [self.references[each] for each in names]
        )


@pytest.fixture
def host(bouncing: tuple[Fmi, Path, Path], tmp_path: Path) -> Host:
    fmi, path, _ = bouncing
    return Host(path, tmp_path, fmi)


def test_indicators_are_distances_to_the_stops(host: Host) -> None:
    for place in (0.0, 0.1, 0.301, -0.25):
        host.go(place)
        np.testing.assert_allclose(host.indicators, [place - LOWER, UPPER - place], rtol=0.0, atol=1e-8)
        assert host.get("stop.lower_gap", "stop.upper_gap") == host.indicators


def test_hysteresis_keeps_what_rests_at_a_stop_from_events(host: Host) -> None:
    """An indicator counts as changed where it has passed zero by the hysteresis; on the way back, by it again."""
    width = HYSTERESIS * 0.2  # the scale of the model is 0.24 m, to one digit
    for way in (-1.0, 1.0, -1.0):
        for share in (-0.9, 0.9):
            host.go(UPPER - share * width)
            assert np.sign(host.indicators[1]) == -way
        host.go(UPPER - 1.1 * way * width)
        assert np.sign(host.indicators[1]) == way
        host.event()
        assert np.sign(host.indicators[1]) == way


def test_saved_states_know_the_sides_of_indicators(host: Host) -> None:
    host.go(0.31)
    host.event()
    restore, save = host.unit.setFMUState, host.unit.getFMUState
    saved = save()
    host.go(UPPER)
    assert host.indicators[1] < 0.0
    host.go(0.0)
    host.event()
    host.go(UPPER)
    assert host.indicators[1] > 0.0
    restore(saved)
    host.go(UPPER)
    assert host.indicators[1] < 0.0


def test_a_wrong_number_of_indicators_is_refused(host: Host) -> None:
    values = np.zeros(3)
    with pytest.raises(FMICallException):
        host.unit.getEventIndicators(values.ctypes.data_as(fmi2.POINTER(fmi2.c_double)), 3)


def test_a_falling_ball_meets_the_ground_where_it_does(tmp_path: Path) -> None:
    """After √(2 h/g), h being the height of its lowest point."""
    ground = PlaneContact(
        name="floor", sphere="mass.origin", plane="ground.O", normal=(1.0, 0.0, 0.0), radius=0.1, stiffness=1e6
    )
    path = exported(sliding(ground, gravity=9.81, displacement=0.7), tmp_path, fmi=3)
    result, _ = integrated(path, 1e-8, stop=0.36)
    first, *_ = event_times(result)
    assert first == pytest.approx(np.sqrt(2.0 * 0.6 / 9.81), abs=1e-7)


def test_our_master_finds_the_same_instants(bouncing: tuple[Fmi, Path, Path], tmp_path: Path) -> None:
    """Its solver ends steps at the zeros; eighteen events, and the motion as the closed form has it."""
    run = mbsfmu.cosimulate([bouncing[1]], step=0.05, stop=STOP, unit_tolerance=1e-9)
    flown = STOP - instants()[-1]
    assert run["sliding.mass.displacement"][-1] == pytest.approx(UPPER - SPEED * flown, abs=2e-5)
    assert run.statistics.unit_events["sliding"] == 18


@pytest.mark.slow
def test_cylinders_have_the_distances_to_both_ends(tmp_path: Path) -> None:
    model = mbsfmu.models.four_bar()
    (cylinder,) = (each for each in model.systems["circuit"].components if each.type == "cylinder")
    path = exported(model, tmp_path, layout="monolithic", fmi=3)
    names = [f"cylinder.{each}" for each in ("length", "retracted_gap", "extended_gap")]
    length, retracted, extended = Host(path, tmp_path / "unpacked", 3).get(*names)
    assert retracted == pytest.approx(length - cylinder.retracted_length, abs=1e-8)
    assert extended == pytest.approx(cylinder.retracted_length + cylinder.stroke - length, abs=1e-8)


@pytest.mark.parametrize(
    "options", [{"formulation": "dca", "code": "loops"}, {"formulation": "dca-alm"}, {"formulation": "hdca"}]
)
def test_other_equations_have_the_same_indicators(tmp_path: Path, options: dict[str, str]) -> None:
    path = exported(sliding(STOPS, velocity=SPEED), tmp_path, fmi=3, **options)
    host = Host(path, tmp_path / "unpacked", 3)
    np.testing.assert_allclose(host.indicators, [-LOWER, UPPER], rtol=0.0, atol=1e-8)


def test_indicators_of_two_systems_have_names_of_their_own(tmp_path: Path) -> None:
    systems = {name: sliding(STOPS).systems["mechanism"] for name in ("left", "right")}
    path = exported(CoupledModel(name="pair", systems=systems), tmp_path, fmi=3, layout="monolithic")
    found = fmpy.read_model_description(str(path)).eventIndicators
    assert [each.variable.name for each in found] == [
        f"{system}.stop.{end}_gap" for system in ("left", "right") for end in ("lower", "upper")
    ]


def test_a_force_of_ones_own_has_indicators(tmp_path: Path) -> None:
    """A relay of force, which jumps where its indicator is zero: the mass is pushed back beyond it, as thrown up."""

    class Wall(Force):
        type: Literal["wall-of-test"] = "wall-of-test"
        joint: JointReference

        def loads(self, now: mbsfmu.ForceContext) -> Sequence[mbsfmu.JointLoad]:
            return (mbsfmu.JointLoad("joint", np.where(self._gap(now) < 0.0, -30.0, 0.0)),)

        def work_rate(self, now: mbsfmu.ForceContext) -> Any:
            return self.loads(now)[0].load * now.joint("joint").rate

        def event_indicators(self) -> Sequence[mbsfmu.Quantity]:
            return (mbsfmu.Quantity("gap", "m"),)

        def evaluate_event_indicators(self, now: mbsfmu.ForceContext) -> dict[str, Any]:
            return {"gap": self._gap(now)}

        def _gap(self, now: mbsfmu.ForceContext) -> Any:
            return 0.3 - now.joint("joint").coordinate

    path = exported(sliding(Wall(name="wall", joint="rail"), velocity=SPEED), tmp_path, fmi=3)
    result, _ = integrated(path, 1e-9, stop=1.0)
    inside = 2.0 * SPEED * MASS / 30.0
    np.testing.assert_allclose(event_times(result), [0.3 / SPEED, 0.3 / SPEED + inside], rtol=0.0, atol=1e-6)


def test_indicators_without_values_are_refused() -> None:
    with pytest.raises(DataError, match="it has event_indicators, but no evaluate_event_indicators"):

        class Half(JointStop):
            type: Literal["half-of-test"] = "half-of-test"
            evaluate_event_indicators = Force.evaluate_event_indicators


@pytest.mark.parametrize(
    ("made", "options", "sentence"),
    [
        (lambda: sliding(STOPS), {"kind": "cs"}, "event indicators are for solvers of importers; kind me has them"),
        (sliding, {}, "gaps of end stops and contacts, and the model has none"),
    ],
)
def test_wrong_event_indicators_are_refused(
    tmp_path: Path, made: Callable[[], CoupledModel], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises((InputError, DataError), match=sentence):
        exported(made(), tmp_path, **options)
