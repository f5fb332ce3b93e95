"""Coupled FMUs as one FMU: the same numbers as the master, and what an importer may ask of it."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from click.testing import CliRunner
from cosim.linear_units import CONNECTIONS, change_description
from fmpy.fmi2 import FMU2Slave
from fmpy.validation import validate_fmu
from foreign_fmus import compiler
from lxml import etree
from model_exchange_fmus.runs import Jumper
from web_assembly import run_in_node

import mbsfmu
from mbsfmu.base.errors import InputError
from mbsfmu.cli.export import command as export_command
from mbsfmu.compiling.compiler import OPTIMIZATION
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.instantiation import make_instance

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
STEP, STOP = 1e-2, 0.5


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    """Compile without optimization, which changes no bit: each test has an FMU of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OPTIMIZATION, "0")
        yield


@contextmanager
def instance_of(path: Path, values: dict[str, float] | None = None) -> Iterator[Any]:
    """Give an instance of an FMU in step mode."""
    with ExitStack() as stack:
        archive = Archive(path)
        stack.callback(archive.close)
        instance = make_instance("whole", archive)
        stack.callback(instance.close)
        instance.setup(0.0, STOP)
        for name, value in (values or {}).items():
            instance.set_start(name, value)
        instance.enter_initialization()
        instance.exit_initialization()
        yield instance


def rows_of(path: Path, step: float = STEP, stop: float = STOP, **values: float) -> dict[str, np.ndarray]:
    """Return what an FMU gives at equal steps, by the names of its outputs."""
    with instance_of(path, values) as instance:
        names = [each.name for each in instance.variables.values() if each.causality == "output"]
        port = instance.port(names)
        rows = [port.read().copy()]
        for index in range(round(stop / step)):
            instance.step(index * step, step)
            rows.append(port.read().copy())
    return dict(zip(names, np.array(rows).T, strict=True))


def assert_equal(path: Path, run: mbsfmu.CosimulationResult, step: float = STEP) -> None:
    """Assert that an FMU gives what a run has given, to the last bit."""
    found = rows_of(path, step)
    every = round(step / STEP)
    for name, values in found.items():
        assert np.array_equal(values, np.array(run[name])[::every]), name
    assert found


@pytest.fixture(scope="session")
def whole(halves_exact: Sequence[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "whole.fmu"
    return mbsfmu.export_coupled(
        list(halves_exact), path, connections=CONNECTIONS, step=STEP, stop=STOP, extrapolation="linear"
    )


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize(
    "how",
    [
        {"algorithm": "jacobi"},
        {"algorithm": "gauss-seidel", "order": ["two", "one"], "energy_correction": True},
        {"algorithm": "jacobi", "extrapolation": "quadratic", "rates": {"one": 3}},
        {"algorithm": "gauss-seidel", "extrapolation": "linear", "energy_correction": True},
    ],
)
def test_it_gives_what_the_master_gives(
    fmi: Any, how: dict[str, Any], halves_exact: Sequence[Path], halves_3: Sequence[Path], tmp_path: Path
) -> None:
    """One half is of FMI 2.0, the other one of FMI 3.0."""
    mixed = [halves_exact[0], halves_3[1]]
    path = mbsfmu.export_coupled(
        mixed, tmp_path / "whole.fmu", connections=CONNECTIONS, step=STEP, stop=STOP, fmi=fmi, **how
    )
    assert validate_fmu(str(path)) == []
    run = mbsfmu.cosimulate(mixed, connections=CONNECTIONS, step=STEP, stop=STOP, **how)
    assert_equal(path, run)


def test_units_that_cannot_save_states_give_what_the_master_gives(halves_poor: Sequence[Path], tmp_path: Path) -> None:
    how: dict[str, Any] = {"step": STEP, "stop": STOP, "extrapolation": "linear", "connections": CONNECTIONS}
    path = mbsfmu.export_coupled(list(halves_poor), tmp_path / "poor.fmu", **how)
    assert_equal(path, mbsfmu.cosimulate(list(halves_poor), **how))
    interface = fmpy.read_model_description(str(path)).coSimulation
    assert not interface.canGetAndSetFMUstate


def test_a_package_gives_what_the_command_cosim_gives(four_bar_package: Path, tmp_path: Path) -> None:
    path = mbsfmu.export_coupled(four_bar_package, tmp_path / "one.fmu", step=STEP, stop=STOP)
    assert_equal(path, mbsfmu.cosimulate(four_bar_package, step=STEP, stop=STOP))


def test_steps_of_an_importer_are_made_of_communication_steps(whole: Path, halves_exact: Sequence[Path]) -> None:
    run = mbsfmu.cosimulate(list(halves_exact), connections=CONNECTIONS, step=STEP, stop=STOP, extrapolation="linear")
    assert_equal(whole, run, 5 * STEP)


def test_a_step_may_end_between_communication_points(
    halves_exact: Sequence[Path], foreign: Callable[[str], Path], tmp_path: Path
) -> None:
    """The master cuts steps in the same way where a signal bends; all times are binary fractions."""
    step, cut = 2.0**-7, 5.0 * 2.0**-9
    how: dict[str, Any] = {"connections": CONNECTIONS, "step": step, "stop": 40.0 * cut, "extrapolation": "quadratic"}
    coupled = [*halves_exact, foreign("feed_through")]
    path = mbsfmu.export_coupled(coupled, tmp_path / "whole.fmu", **how)
    times = cut * np.arange(41.0)
    bends = mbsfmu.LinearSignal(times=tuple(times), values=tuple(np.arange(41.0) ** 2))
    run = mbsfmu.cosimulate(coupled, inputs={"feed_through.real_in": bends}, **how)
    places = [int(np.argmin(abs(run.time - time))) for time in times]
    found = rows_of(path, cut, 40.0 * cut)
    assert len(run.time) > 75
    for name in (name for name in found if not name.startswith("feed_through")):
        assert np.array_equal(found[name], np.array(run[name])[places]), name


def test_states_are_saved_and_restored(whole: Path) -> None:
    with instance_of(whole) as instance:
        port = instance.port([each.name for each in instance.variables.values() if each.causality == "output"])
        for index in range(3):
            instance.step(index * STEP, STEP)
        instance.save("here", 3 * STEP)
        ends = []
        for _ in range(2):
            instance.step(3 * STEP, STEP)
            instance.step(4 * STEP, STEP)
            ends.append(port.read().copy())
            instance.restore("here")
        assert np.array_equal(*ends)
    straight = rows_of(whole)
    assert np.array_equal(ends[0], [values[5] for values in straight.values()])


def test_a_state_of_the_start_knows_nothing_of_steps_after_it(whole: Path) -> None:
    """The first step is made again, too little being known of the past; cut steps have other weights."""
    straight = rows_of(whole, stop=3 * STEP)
    with instance_of(whole) as instance:
        port = instance.port(list(straight))
        instance.save("start", 0.0)
        instance.step(0.0, 0.7 * STEP)
        instance.save("cut", 0.7 * STEP)
        ends = []
        for slot, time in (("cut", 0.7 * STEP), ("start", 0.0), ("cut", 0.7 * STEP)):
            instance.restore(slot)
            for index in range(3):
                instance.step(time + index * STEP, STEP)
            ends.append(port.read().copy())
    assert np.array_equal(ends[1], [values[-1] for values in straight.values()])
    assert np.array_equal(ends[0], ends[2])


def test_two_instances_in_one_process_do_not_know_of_each_other(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    path = mbsfmu.export_coupled([foreign("source")], tmp_path / "whole.fmu", step=STEP, stop=STOP)
    usual = 1000.0  # the start value, in mV
    with instance_of(path) as one, instance_of(path, {"source.amplitude": 7.0 * usual}) as two:
        for index in range(10):
            one.step(index * STEP, STEP)
            two.step(index * STEP, STEP)
        values = [float(each.port(["source.sine"]).read()[0]) for each in (one, two)]
        two.set_start("source.amplitude", usual)  # tunable
        two.step(0.1, STEP)
        changed = float(two.port(["source.sine"]).read()[0])
    assert values[0] == rows_of(path, stop=0.1)["source.sine"][-1]
    assert values[1] == pytest.approx(7.0 * values[0])
    assert changed == rows_of(path, stop=0.11)["source.sine"][-1]


def test_it_can_be_a_component_itself(whole: Path, tmp_path: Path) -> None:
    path = mbsfmu.export_coupled([f"inner={whole}"], tmp_path / "outer.fmu", step=STEP, stop=STOP)
    inner, outer = rows_of(whole), rows_of(path)
    assert {f"inner.{name}" for name in inner} == set(outer)
    for name, values in inner.items():
        assert np.array_equal(values, outer[f"inner.{name}"])


@pytest.mark.parametrize("fmi", [2, 3])
def test_it_runs_where_paths_have_blanks_and_letters_of_any_kind(
    fmi: int, whole: Path, halves_exact: Sequence[Path], tmp_path: Path
) -> None:
    path = whole
    if fmi == 3:
        how: dict[str, Any] = {"connections": CONNECTIONS, "step": STEP, "stop": STOP, "fmi": 3}
        path = mbsfmu.export_coupled(list(halves_exact), tmp_path / "whole.fmu", **how)
    folder = tmp_path / "a folder, 100 % für 水"
    fmpy.extract(str(path), unzipdir=str(folder))
    for each in folder.rglob("*"):
        each.chmod(0o555)
    try:
        result = fmpy.simulate_fmu(str(folder), stop_time=0.1, step_size=STEP, output_interval=STEP)
    finally:
        for each in (folder, *folder.rglob("*")):
            each.chmod(0o755)
    for name, values in rows_of(path, stop=0.1).items():
        assert np.array_equal(values, result[name])


def slave_of(path: Path, folder: Path, messages: list[str]) -> FMU2Slave:
    """Return an FMU of FMI 2.0 as FMPy has it, which keeps what it says."""
    fmpy.extract(str(path), unzipdir=str(folder))
    description = fmpy.read_model_description(str(path))
    slave = FMU2Slave(
        guid=description.guid,
        unzipDirectory=str(folder),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="whole",
    )
    callbacks = fmpy.fmi2.fmi2CallbackFunctions()
    logger = fmpy.fmi2.fmi2CallbackLoggerTYPE(lambda *said: messages.append(said[4].decode()))
    callbacks.logger, callbacks.allocateMemory = logger, fmpy.fmi2.defaultCallbacks.allocateMemory
    callbacks.freeMemory = fmpy.fmi2.defaultCallbacks.freeMemory
    slave.instantiate(callbacks=callbacks, loggingOn=True)
    slave.kept = logger  # pyright: ignore[reportAttributeAccessIssue]
    return slave


def begin(slave: FMU2Slave) -> None:
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    slave.exitInitializationMode()


def test_calls_in_a_wrong_order_are_refused_in_words(whole: Path, tmp_path: Path) -> None:
    messages: list[str] = []
    slave = slave_of(whole, tmp_path / "whole", messages)
    for call, sentence in [
        (lambda: slave.doStep(0.0, STEP), "a step needs an initialized unit"),
        (lambda: slave.getReal([output_of(whole)]), "outputs have values from initialization mode on"),
        (slave.exitInitializationMode, "initialization mode was not entered"),
        (slave.terminate, "only a running unit can be terminated"),
    ]:
        with pytest.raises(Exception, match=r"rror|failed"):
            call()
        assert sentence in messages[-1]
    begin(slave)
    for call, sentence in [
        (lambda: slave.doStep(0.1, STEP), "the step begins at t = 0.1 s, but the FMU is at 0 s"),
        (lambda: slave.doStep(0.0, -STEP), "it must be positive and finite"),
        (slave.enterInitializationMode, "initialization mode is entered from the start only"),
    ]:
        with pytest.raises(Exception, match=r"rror|failed"):
            call()
        assert sentence in messages[-1]
    slave.doStep(0.0, STEP)
    slave.terminate()
    slave.freeInstance()


@pytest.mark.parametrize("ends", ["instantiated", "initializing", "reset", "running"])
def test_components_are_terminated_where_they_were_initialized_alone(
    foreign: Callable[[str], Path], tmp_path: Path, ends: str
) -> None:
    """FMI 2.0.4, 4.2.4: fmi2Terminate may be called after initialization mode; the component warns of another call."""
    path = mbsfmu.export_coupled([foreign("dahlquist")], tmp_path / "whole.fmu", step=STEP, stop=STOP)
    messages: list[str] = []
    slave = slave_of(path, tmp_path / "whole", messages)
    if ends != "instantiated":
        slave.setupExperiment(startTime=0.0)
        slave.enterInitializationMode()
    if ends in ("running", "reset"):
        slave.exitInitializationMode()
    if ends == "reset":
        slave.reset()
    slave.freeInstance()
    assert messages == []


def output_of(path: Path) -> int:
    """Return the value reference of the first output of an FMU."""
    variables = fmpy.read_model_description(str(path)).modelVariables
    return next(each.valueReference for each in variables if each.causality == "output")


def test_a_reset_brings_back_the_start(whole: Path, tmp_path: Path) -> None:
    slave, reference, ends = slave_of(whole, tmp_path / "whole", []), output_of(whole), []
    begin(slave)
    state = slave.getFMUstate()
    for _ in range(2):
        for index in range(5):
            slave.doStep(index * STEP, STEP)
        ends.append(slave.getReal([reference])[0])
        slave.reset()
        begin(slave)
    assert ends[0] == ends[1]
    with pytest.raises(Exception, match=r"rror|failed"):
        slave.setFMUstate(state)
    slave.freeFMUstate(state)
    slave.terminate()
    slave.freeInstance()


def test_resources_elsewhere_are_said_to_be_missing(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "whole"
    fmpy.extract(str(whole), unzipdir=str(folder))
    shutil.rmtree(folder / "resources")
    archive = Archive(whole)
    try:
        shutil.rmtree(Path(archive.folder, "resources"))
        with pytest.raises(mbsfmu.SimulationError, match=r"the library of one cannot be loaded: .*No such file"):
            make_instance("whole", archive)
    finally:
        archive.close()


def test_a_component_that_fails_tells_its_sentence(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    path = mbsfmu.export_coupled([foreign("failing")], tmp_path / "whole.fmu", step=STEP, stop=STOP)
    values = {"failing.failure_time": 0.1, "failing.status": 3.0}
    with pytest.raises(mbsfmu.SimulationError) as found:
        rows_of(path, **values)
    with pytest.raises(mbsfmu.SimulationError) as alone:
        mbsfmu.cosimulate([foreign("failing")], parameters=values, step=STEP, stop=STOP)
    assert str(alone.value) in str(found.value)
    with instance_of(path, values) as instance:
        for index in range(9):
            instance.step(index * STEP, STEP)
        for time, sentence in ((9 * STEP, "it does not go beyond"), (10 * STEP, "a component has failed before")):
            with pytest.raises(mbsfmu.SimulationError, match=sentence):
                instance.step(time, 2 * STEP)


@pytest.mark.parametrize("name", ["ticking", "halting", "bouncing_ball", "dahlquist"])
def test_foreign_fmus_give_what_the_master_gives(name: str, foreign: Callable[[str], Path], tmp_path: Path) -> None:
    """Events of FMI 3.0, steps that are discarded but for a part, whole numbers and truth values among them."""
    path = mbsfmu.export_coupled([foreign(name)], tmp_path / "whole.fmu", step=STEP, stop=1.0)
    run = mbsfmu.cosimulate([foreign(name)], step=STEP, stop=1.0)
    for column, values in rows_of(path, stop=STOP).items():
        assert np.array_equal(values, np.array(run[column])[: len(values)]), column


def test_events_at_ends_of_steps_are_those_of_the_master(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    """Ends of steps and events are neighbours by round-off: each step has one."""
    options = {"parameters": {"ticking.period": STEP}, "step": STEP, "stop": STOP}
    path = mbsfmu.export_coupled([foreign("ticking")], tmp_path / "ticking.fmu", **options)
    counts = rows_of(path)["ticking.count"]
    np.testing.assert_array_equal(counts, np.arange(len(counts)))
    np.testing.assert_array_equal(counts, mbsfmu.cosimulate([foreign("ticking")], **options)["ticking.count"])


def test_an_algebraic_loop_at_the_start_is_solved(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    """Two FMUs of y = u, one with the map 0.5 u + 3 between: y = 0.5 y + 3.

    Each output may depend on all inputs, for all that is told; so a whole number that is handed on is in the loop too.
    """
    unit = Path(shutil.copy(foreign("feed_through"), tmp_path / "untold.fmu"))
    change_description(unit, r'(<Unknown index="\d+") dependencies="[\d ]*"', r"\1")
    back = mbsfmu.Connection(("b", "real_out"), ("a", "real_in"), 0.5, 3.0)
    links = ["a.real_out=b.real_in", "b.integer_out=a.integer_in", back]
    path = mbsfmu.export_coupled(
        [f"a={unit}", f"b={unit}"], tmp_path / "loop.fmu", connections=links, parameters={"b.integer_in": 7},
        step=STEP, stop=STOP,
    )  # fmt: skip
    found = rows_of(path, stop=STEP)
    assert found["a.real_out"][0] == pytest.approx(6.0, abs=1e-9)
    assert found["b.real_out"][0] == pytest.approx(6.0, abs=1e-9)
    assert found["a.integer_out"][0] == 7


def test_inputs_and_parameters_reach_their_components(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    path = mbsfmu.export_coupled(
        [foreign("feed_through")],
        tmp_path / "whole.fmu",
        parameters={"feed_through.real_parameter": 2.5},
        step=STEP,
        stop=STOP,
    )
    description = fmpy.read_model_description(str(path))
    variables = {each.name: each for each in description.modelVariables}
    assert variables["feed_through.real_parameter"].start == "2.5"
    with instance_of(path, {"feed_through.integer_parameter": 4.0}) as instance:
        instance.set_start("feed_through.real_in", 1.25)
        instance.set_start("feed_through.integer_in", 3.0)
        instance.set_start("feed_through.boolean_in", 1.0)
        instance.step(0.0, STEP)
        shown = [f"feed_through.{name}" for name in ("real_out", "integer_out", "boolean_out")]
        assert instance.port(shown).read().tolist() == [1.25, 3.0, 1.0]
        shown = [f"feed_through.{name}" for name in ("real_shown", "integer_shown")]
        assert instance.port(shown).read().tolist() == [2.5, 4.0]
        with pytest.raises(mbsfmu.SimulationError, match="real_parameter is a fixed parameter; it cannot be set"):
            instance.set_start("feed_through.real_parameter", 1.0)


CONNECTORS = """
  <ssd:System name="whole">
    <ssd:Connectors>
      <ssd:Connector name="level" kind="input"><ssc:Real unit="kN"/></ssd:Connector>
      <ssd:Connector name="shown" kind="output"><ssc:Real/></ssd:Connector>
    </ssd:Connectors>
    <ssd:Elements>
      <ssd:Component name="pass" type="application/x-fmu-sharedlibrary" source="resources/feed_through.fmu">
        <ssd:Connectors>
          <ssd:Connector name="real_in" kind="input"><ssc:Real/></ssd:Connector>
          <ssd:Connector name="real_out" kind="output"><ssc:Real/></ssd:Connector>
        </ssd:Connectors>
      </ssd:Component>
    </ssd:Elements>
    <ssd:Connections>
      <ssd:Connection startConnector="level" endElement="pass" endConnector="real_in">
        <ssc:LinearTransformation factor="2.0" offset="1.0"/>
      </ssd:Connection>
      <ssd:Connection startElement="pass" startConnector="real_out" endConnector="shown"/>
    </ssd:Connections>
  </ssd:System>
"""


def test_connectors_of_a_system_are_the_variables(make: Callable[..., Path], tmp_path: Path) -> None:
    path = mbsfmu.export_coupled(make(CONNECTORS), tmp_path / "whole.fmu", step=STEP, stop=STOP)
    assert validate_fmu(str(path)) == []
    variables = {each.name: each for each in fmpy.read_model_description(str(path)).modelVariables}
    assert (variables["level"].causality, variables["shown"].causality) == ("input", "output")
    assert variables["pass.real_out"].causality == "local"
    with zipfile.ZipFile(path) as archive:
        root = etree.fromstring(archive.read("modelDescription.xml"))
    assert root.xpath("string(//ScalarVariable[@name='level']/Real/@unit)") == "kN"
    with instance_of(path) as instance:
        instance.set_start("level", 3.0)
        instance.step(0.0, STEP)
        assert instance.port(["shown"]).read()[0] == 7.0


def test_platforms_are_those_that_all_components_have(
    whole: Path, halves_exact: Sequence[Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"the component one \(.*\) has no binary for win64"):
        mbsfmu.export_coupled(list(halves_exact), tmp_path / "x.fmu", platforms=["win64"], step=STEP, stop=STOP)
    with zipfile.ZipFile(whole) as archive:
        names = archive.namelist()
    assert sum(name.startswith("resources/") and name.endswith("modelDescription.xml") for name in names) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"algorithm": "newton"}, "does not iterate its steps; 'newton' is not supported"),
        ({"control": "error"}, "makes equal steps; the control 'error' is not supported"),
        ({"extrapolation": "derivatives"}, "the extrapolation 'derivatives' is not supported"),
        ({"threads": 2, "algorithm": "jacobi"}, "the option threads has no effect"),
        ({"fmi": 1}, "there is no FMI 1"),
    ],
)
def test_what_it_does_not_have_is_refused(
    options: dict[str, Any], sentence: str, halves_exact: Sequence[Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        mbsfmu.export_coupled(list(halves_exact), tmp_path / "x.fmu", step=STEP, stop=STOP, **options)


def test_connections_of_texts_and_components_of_other_kinds_are_refused(
    foreign: Callable[[str], Path], jumper: Jumper, tmp_path: Path
) -> None:
    pair, how = [foreign("source"), foreign("feed_through")], {"step": STEP, "stop": STOP}
    with pytest.raises(InputError, match="is of type String"):
        mbsfmu.export_coupled(pair, tmp_path / "x.fmu", connections=["source.word=feed_through.text_in"], **how)
    with pytest.raises(InputError, match=r"vectors has connected inputs or outputs of FMI 3\.0 that are not of type"):
        mbsfmu.export_coupled([foreign("vectors")], tmp_path / "x.fmu", **how)
    with pytest.raises(InputError, match=r"takes FMUs of FMI 2\.0 and 3\.0 for co-simulation, which .* is not"):
        mbsfmu.export_coupled([jumper(2)], tmp_path / "x.fmu", **how)


def test_it_is_there_already_and_has_a_name_of_an_fmu(
    whole: Path, halves_exact: Sequence[Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="exists; say --force"):
        mbsfmu.export_coupled(list(halves_exact), whole)
    with pytest.raises(InputError, match=r"must end in \.fmu"):
        mbsfmu.export_coupled(list(halves_exact), tmp_path / "whole.zip")


@pytest.mark.parametrize("extrapolation", ["zero", "quadratic"])
def test_importers_choose_the_communication_step(
    extrapolation: str, halves_exact: Sequence[Path], tmp_path: Path
) -> None:
    """Five times the one of the export, and less than half of it, as the master makes them."""
    how: dict[str, Any] = {"connections": CONNECTIONS, "stop": STOP, "extrapolation": extrapolation}
    path = mbsfmu.export_coupled(list(halves_exact), tmp_path / "whole.fmu", step=STEP, **how)
    longer = mbsfmu.cosimulate(list(halves_exact), step=5 * STEP, **how)
    for name, values in rows_of(path, 5 * STEP, STOP, **{"coupling.step": 5 * STEP}).items():
        assert np.array_equal(values, longer[name]), name
    shorter = mbsfmu.cosimulate(list(halves_exact), step=2.0**-8, **how)
    for name, values in rows_of(path, 2.0**-6, STOP, **{"coupling.step": 2.0**-8}).items():
        assert np.array_equal(values, np.array(shorter[name])[::4]), name


def test_a_communication_step_is_positive_and_chosen_before_the_start(whole: Path, tmp_path: Path) -> None:
    messages: list[str] = []
    slave = slave_of(whole, tmp_path / "whole", messages)
    variables = fmpy.read_model_description(str(whole)).modelVariables
    (reference,) = [each.valueReference for each in variables if each.name == "coupling.step"]
    assert slave.getReal([reference]) == [STEP]
    with pytest.raises(Exception, match=r"rror|failed"):
        slave.setReal([reference], [0.0])
    assert "coupling.step = 0 s is refused: it must be at least 1e-09" in messages[-1]
    begin(slave)
    slave.setReal([reference], [STEP])  # some hosts send all parameters in every step
    with pytest.raises(Exception, match=r"rror|failed"):
        slave.setReal([reference], [2.0 * STEP])
    assert "coupling.step is a fixed parameter; it cannot be set after initialization mode" in messages[-1]


@pytest.mark.parametrize("fmi", [2, 3])
def test_components_are_linked_for_web_assembly(fmi: Any, tmp_path: Path) -> None:
    """From their sources, of either version of the FMI, with the numbers of the master."""
    free = mbsfmu.models.four_bar().model_copy(update={"signals": {}})
    package = mbsfmu.export(free, tmp_path, layout="separate", fmi=fmi, sources="single", solver="trapezoidal")[-1]
    how: dict[str, Any] = {"algorithm": "gauss-seidel", "extrapolation": "linear", "step": 1e-3}
    path = mbsfmu.export_coupled(package, tmp_path / "one.fmu", platforms=["wasm32"], **how)
    command = "circuit.valve.command"
    run = mbsfmu.cosimulate(package, stop=0.2, parameters={command: 5.0}, **how)
    described = fmpy.read_model_description(str(path))
    with zipfile.ZipFile(path) as archive:
        module = tmp_path / "one.wasm"
        (binary,) = [name for name in archive.namelist() if name.startswith("binaries/wasm32/")]
        module.write_bytes(archive.read(binary))
    outputs = {each.name: each.valueReference for each in described.modelVariables if each.causality == "output"}
    (opened,) = [each.valueReference for each in described.modelVariables if each.name == command]
    found = run_in_node(
        tmp_path,
        module=str(module),
        identity=described.guid,
        outputs=list(outputs.values()),
        parameters=[opened],
        values=[5.0],
        steps=200,
        step=1e-3,
    )
    assert found["fault"] is None
    for name, values in zip(outputs, np.transpose(found["rows"]), strict=True):
        assert values == pytest.approx(run[name], rel=1e-12, abs=1e-12 * np.ptp(run[name])), name
    assert np.ptp(run["circuit.cylinder.pressure_piston"]) > 1e4


def test_components_without_a_single_source_are_not_linked(
    halves_exact: Sequence[Path], foreign: Callable[[str], Path], tmp_path: Path
) -> None:
    how: dict[str, Any] = {"platforms": ["wasm32"], "step": STEP, "stop": STOP}
    with pytest.raises(InputError, match=r"the component source .* comes with no C source files; .*--sources single"):
        mbsfmu.export_coupled([foreign("source")], tmp_path / "x.fmu", **how)


def test_inputs_that_follow_a_signal_inside_are_inputs_of_the_whole(tmp_path: Path) -> None:
    """They follow it until they are set; by the command line as by Python, with the same usual inputs of steps."""
    mbsfmu.export(mbsfmu.models.four_bar(), tmp_path / "units")
    package, name, step = tmp_path / "units" / "four-bar.ssp", "circuit.valve.command", 2e-3
    call = [str(package), "-o", str(tmp_path / "whole.fmu"), "--step", str(step), "--quiet"]
    done = CliRunner().invoke(export_command, call)
    assert done.exit_code == 0, done.output
    whole = str(tmp_path / "whole.fmu")
    inputs = [each.name for each in fmpy.read_model_description(whole).modelVariables if each.causality == "input"]
    assert inputs == [name]
    reached = []
    for values in ({}, {name: 0.4}):
        master = mbsfmu.cosimulate(package, step=step, stop=0.1, parameters=values)
        rows = fmpy.simulate_fmu(whole, stop_time=0.1, step_size=step, output_interval=step, start_values=values)
        for output in set(rows.dtype.names) & set(master.names):
            np.testing.assert_array_equal(rows[output], master[output], err_msg=output)
        reached.append(master["circuit.cylinder.pressure_piston"][-1])
    assert abs(reached[1] - reached[0]) > 1e4
