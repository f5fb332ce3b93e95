"""What single calls of the FMI do in native FMUs: orders of calls, refusals, statuses, logging."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy import fmi2
from fmpy.fmi1 import FMICallException
from importer import Importer
from native_fmus import Exported
from saved_states import checksum

import mbsfmu
from mbsfmu.compiling.compiler import VERSIONS
from mbsfmu.exporting.fmu_export import export

Native = Callable[..., Exported]
STEP = 1e-3


@pytest.fixture(params=VERSIONS)
def importer(native: Native, tmp_path: Path, request: pytest.FixtureRequest) -> Importer:
    return Importer(native("four-bar", "double-step", fmi=request.param).path, tmp_path / "unpacked")


only_2 = pytest.mark.parametrize("importer", [2], indirect=True)
"""For what FMI 2.0 alone has words for."""


@only_2
@pytest.mark.parametrize("order", ["value first", "derivative first", "derivative alone"])
def test_order_of_value_and_derivative_does_not_matter(importer: Importer, order: str) -> None:
    slave = importer.running()
    reference = [importer.reference["valve.command"]]
    calls = [lambda: slave.setReal(reference, [1.0]), lambda: slave.setRealInputDerivatives(reference, [1], [20.0])]
    start = 0.0 if order == "derivative alone" else 1.0
    for call in {"value first": calls, "derivative first": calls[::-1], "derivative alone": calls[1:]}[order]:
        call()
    slave.doStep(0.0, 0.1)
    assert importer.get(slave, "valve.command") == pytest.approx(start + 2.0, rel=1e-12)
    slave.doStep(0.1, 0.1)  # the derivative was for the next step alone
    assert importer.get(slave, "valve.command") == pytest.approx(start + 2.0, rel=1e-12)


@pytest.mark.parametrize("bad", [("valve.command", float("nan")), ("boom.mass", 300.0), ("cylinder.length", 1.0)])
def test_refused_values_leave_those_before_them_as_they_were(importer: Importer, bad: tuple[str, float]) -> None:
    slave = importer.running()
    before = importer.everything(slave)
    for names, values in ((("valve.command", bad[0]), (5.0, bad[1])), ((bad[0], "valve.command"), (bad[1], 5.0))):
        with pytest.raises(FMICallException):
            slave.setReal([importer.reference[name] for name in names], list(values))
        assert importer.everything(slave) == before
    if importer.description.fmiVersion == "2.0":
        with pytest.raises(FMICallException):
            slave.setRealInputDerivatives([importer.reference["valve.command"]] * 2, [1, 2], [3.0, 3.0])
    slave.doStep(0.0, STEP)
    assert importer.get(slave, "valve.command") == 0.0


def test_fixed_parameter_may_be_given_the_value_it_has(importer: Importer) -> None:
    """Some masters send all parameters in every step, together with inputs."""
    slave = importer.running()
    names = ("boom.mass", "cylinder.stroke", "valve.command")
    slave.setReal([importer.reference[name] for name in names], [225.0, 0.9, 2.0])
    assert importer.get(slave, "valve.command") == 2.0
    with pytest.raises(FMICallException):
        slave.setReal([importer.reference["cylinder.stroke"]], [0.8])
    assert "cylinder.stroke is a fixed parameter" in importer.messages[-1][1]


def test_output_derivatives_have_the_slopes_of_inputs(tmp_path: Path) -> None:
    """Viscous friction makes the cylinder's force fall with its coefficient times the slope of the velocity."""
    path = next(
        each for each in export(mbsfmu.models.four_bar(), tmp_path, layout="separate") if each.stem == "circuit"
    )
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    names = ("cylinder.force", "cylinder.pressure_rod")
    references = [importer.reference[name] for name in names]
    level = np.array(slave.getRealOutputDerivatives(references, [1, 1]))
    slave.setRealInputDerivatives([importer.reference["cylinder.velocity"]], [1], [0.25])
    sloping = np.array(slave.getRealOutputDerivatives(references, [1, 1]))
    friction = importer.get(slave, "cylinder.viscous_friction")
    assert friction > 0.0
    np.testing.assert_allclose(sloping - level, [-0.25 * friction, 0.0], rtol=1e-9)


def test_status_of_the_last_step_is_told(native: Native, tmp_path: Path) -> None:
    mechanism = mbsfmu.export(mbsfmu.models.four_bar(), tmp_path, layout="separate")[0]
    importer = Importer(mechanism, tmp_path / "unpacked")
    slave = importer.running()

    def status() -> int:
        value = ctypes.c_int(-1)
        slave.fmi2GetStatus(slave.component, fmi2.fmi2DoStepStatus, ctypes.byref(value))
        return value.value

    slave.doStep(0.0, STEP)
    assert status() == fmi2.fmi2OK
    state = slave.getFMUstate()
    importer.set(slave, "cylinder.force", 1e12)
    with pytest.raises(FMICallException, match="discard"):
        slave.doStep(STEP, 0.1)
    assert status() == fmi2.fmi2Discard
    assert slave.getRealStatus(fmi2.fmi2LastSuccessfulTime) == STEP
    assert slave.getBooleanStatus(fmi2.fmi2Terminated) is False
    slave.setFMUstate(state)
    assert status() == fmi2.fmi2OK
    slave.doStep(STEP, STEP)
    assert status() == fmi2.fmi2OK
    slave.freeFMUstate(state)


def test_step_that_fails_in_its_middle_is_taken_back(tmp_path: Path) -> None:
    """Pushed by 10 MN the loops tear after many internal steps: none of them counts, and slopes stay."""
    paths = {path.stem: path for path in export(mbsfmu.models.four_bar(), tmp_path, layout="separate")}
    importer = Importer(paths["mechanism"], tmp_path / "unpacked")
    slave, untouched = importer.running(), importer.running()
    for each in (slave, untouched):
        each.doStep(0.0, STEP)
    importer.set(slave, "cylinder.force", 1e7)
    slave.setRealInputDerivatives([importer.reference["cylinder.force"]], [1], [2e4])
    before = importer.everything(slave)
    with pytest.raises(FMICallException, match="discard"):
        slave.doStep(STEP, 0.3)
    assert "the step at t = 0." in importer.messages[-1][1]
    assert importer.everything(slave) == before
    untouched.setRealInputDerivatives([importer.reference["cylinder.force"]], [1], [2e4])
    for each in (slave, untouched):
        importer.set(each, "cylinder.force", 11000.0)
        each.doStep(STEP, 5e-3)
    assert importer.everything(slave) == importer.everything(untouched)
    assert importer.get(slave, "cylinder.force") == pytest.approx(11100.0, rel=1e-12)


def messages_of(importer: Importer, slave: fmi2.FMU2Slave) -> list[str]:
    """What is logged of a refused call."""
    del importer.messages[:]
    with pytest.raises(FMICallException):
        slave.doStep(-1.0, STEP)
    return [message for _, message in importer.messages]


@only_2
def test_categories_decide_what_is_logged(importer: Importer) -> None:
    slave = importer.running()
    assert len(messages_of(importer, slave)) == 1
    for categories, logged in ((["logStatusWarning"], 0), (["logStatusError", "logStatusWarning"], 1), (["logAll"], 1)):
        slave.setDebugLogging(True, categories)
        assert len(messages_of(importer, slave)) == logged, categories
    slave.setDebugLogging(False, ["logStatusWarning"])
    assert len(messages_of(importer, slave)) == 1
    slave.setDebugLogging(False, [])
    assert messages_of(importer, slave) == []
    slave.setDebugLogging(True, [])
    slave.terminate()
    assert "internal steps" in importer.messages[-1][1]  # not a refusal: logged where everything is
    with pytest.raises(FMICallException):
        slave.setDebugLogging(True, ["logEvents"])
    assert "there is no log category 'logEvents'" in importer.messages[-1][1]


@only_2
def test_text_of_the_host_is_no_format(importer: Importer) -> None:
    """A logger formats as printf does: what the host gave must come out as it went in, and nothing be read for it."""
    formatted: list[bytes] = []
    printf = ctypes.CDLL(None).snprintf

    def logger(_: object, __: object, ___: int, ____: object, message: bytes) -> None:
        room = ctypes.create_string_buffer(2000)
        printf(room, 2000, message)
        formatted.append(room.value)

    importer.callbacks.logger = fmi2.fmi2CallbackLoggerTYPE(logger)
    importer.description.guid = "{%s%n %d %% #r1#}"
    with pytest.raises(Exception, match="instantiate"):
        importer.instance()
    assert b"the GUID is {%s%n %d %% ##r1##}; this FMU has" in formatted[0]


def test_importers_tolerance_is_used(tmp_path: Path) -> None:
    """A unit made with 1e-5 and run with 1e-9 is the unit made with 1e-9, and as far from the truth as that one."""
    model = mbsfmu.models.pendulum(3)
    tight = {"relative_tolerance": 1e-11, "absolute_tolerance": 1e-11, "step": 0.05}
    expected = model.simulation(solver="dop853", **tight).run(1.0)["link_3.angle"]
    results = {}
    for made in (1e-5, 1e-9):
        tolerances = {"relative_tolerance": made, "absolute_tolerance": made}
        (path,) = export(model, tmp_path / f"{made}", layout="monolithic", solver="rk45", **tolerances)
        for run in (1e-5, 1e-9):
            grid = {"stop_time": 1.0, "step_size": 0.05, "output_interval": 0.05, "relative_tolerance": run}
            results[made, run] = fmpy.simulate_fmu(str(path), **grid)["link_3.angle"]
    for run in (1e-5, 1e-9):
        np.testing.assert_allclose(results[1e-5, run], results[1e-9, run], rtol=1e-12)
    errors = {run: np.max(np.abs(results[1e-5, run] - expected)) for run in (1e-5, 1e-9)}
    assert errors[1e-9] < 1e-2 * errors[1e-5]


@pytest.mark.parametrize("tolerance", [0.0, -1e-6, float("nan")])
def test_impossible_tolerance_is_refused(importer: Importer, tolerance: float) -> None:
    slave = importer.instance()

    def begin() -> None:
        slave.setupExperiment(tolerance=tolerance, startTime=0.0)
        slave.enterInitializationMode()

    with pytest.raises(FMICallException):
        begin()
    assert "the tolerance is" in importer.messages[-1][1]


class Crafted:
    """A serialized state whose bytes are changed and whose checksum is made true again."""

    HEADER = struct.Struct("<8s64sQQ")

    def __init__(self, content: bytes) -> None:
        mark, identity, size, _ = self.HEADER.unpack(content[: self.HEADER.size])
        self._head = mark, identity, size
        self.body = bytearray(content[self.HEADER.size :])

    @property
    def content(self) -> bytes:
        return self.HEADER.pack(*self._head, checksum(bytes(self.body))) + bytes(self.body)


def test_crafted_state_with_a_true_checksum_is_refused(importer: Importer) -> None:
    """Whoever computes the checksum too gets no further: what steps count and index by is looked at by itself."""
    slave = importer.running()
    slave.doStep(0.0, STEP)
    state = slave.getFMUstate()
    content = slave.serializeFMUstate(state)
    assert Crafted(content).content == content
    held, coordinates, modes = 1, 3, 5  # inputs, choice of coordinates, mode and the like: the last numbers …
    end = len(content) - 4  # … but for what fills it up to whole words
    for place in range(end - 4 * (held + coordinates + modes), end, 4):
        for value in (2**31 - 1, -5, 1000):
            crafted = Crafted(content)
            struct.pack_into("<i", crafted.body, place - Crafted.HEADER.size, value)
            with pytest.raises(FMICallException):
                slave.setFMUstate(slave.deSerializeFMUstate(crafted.content))
    for place in range(end - 4 * (coordinates + modes), end - 4 * modes, 4):  # one coordinate too many or too few
        crafted = Crafted(content)
        (chosen,) = struct.unpack_from("<i", crafted.body, place - Crafted.HEADER.size)
        struct.pack_into("<i", crafted.body, place - Crafted.HEADER.size, 1 - chosen)
        with pytest.raises(FMICallException):
            slave.setFMUstate(slave.deSerializeFMUstate(crafted.content))
    for place, value in ((0, float("nan")), (8, 0.0), (8, -1.0), (8, 1e-300), (16, float("inf"))):
        crafted = Crafted(content)
        struct.pack_into("<d", crafted.body, place, value)
        with pytest.raises(FMICallException):
            slave.setFMUstate(slave.deSerializeFMUstate(crafted.content))
    slave.doStep(STEP, STEP)
    slave.freeFMUstate(state)
