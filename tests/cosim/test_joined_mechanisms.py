"""Mechanisms in FMUs of their own, joined by the master, are the mechanism in one piece."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.joined_mechanisms import (
    ANGLES,
    AXIS,
    HANDLE,
    PIN,
    STOP,
    TIGHT,
    bennett_halves,
    chain_whole,
    export_half,
    four_bar_start,
    four_bar_whole,
    inside,
    largest_gap,
    off,
)
from documented import ROOT

from mbsfmu import (
    CosimulationError,
    CoupledJoint,
    InputError,
    JointHandle,
    SimulationError,
    compare,
    cosimulate,
    linearize,
    recommend,
)
from mbsfmu.cosim import read_ssp, write_ssp
from mbsfmu.cosim.joints.joint_equations import MOTION, JointEquations
from mbsfmu.cosim.ssp.annotations import JOINT_NAMESPACE
from mbsfmu.equations.rotation import quaternion_from_vector, quaternion_product
from mbsfmu.exporting.coupled_export import export_coupled
from mbsfmu.simulation.run_result import Result

Foreign = Callable[[str], Path]


def run_pinned(fmus: list[Path], step: float, joint: str | CoupledJoint = PIN, **options: Any) -> Any:
    """Run the halves of the four-bar with two steps of their own in each communication step."""
    options.setdefault("parameters", inside("left", "right", step=0.5 * step))
    return cosimulate(fmus, joints=[joint], step=step, stop=STOP, **options)


# -- closed, of order 2, as exact as one model ---------------------------------------------------------------------


@pytest.mark.parametrize("joint", [PIN, f"revolute:left.{HANDLE}=right.{HANDLE}:0,0,1"], ids=["spherical", "revolute"])
def test_a_four_bar_cut_at_a_pin_is_closed_and_of_order_two(pinned: list[Path], tight: Result, joint: str) -> None:
    """The pin of a planar machine has redundant components: the force across the plane, and two moments."""
    errors = []
    for step in (4e-3, 2e-3):
        result = run_pinned(pinned, step, joint)
        assert largest_gap(result) < 1e-9
        assert largest_gap(result, what="velocity") < 1e-9 / step
        errors.append(off(result, tight))
        whole = four_bar_whole().simulation(step=step).run(STOP)
        monolithic = max(
            abs(whole[f"{body}.{kind}"][-1] - tight[f"{body}.{kind}"][-1])
            for body in ANGLES
            for kind in ("angle", "angular_velocity")
        )
        assert errors[-1] < 2.0 * monolithic
        redundant = ["force.z"] + (["moment.x", "moment.y"] if joint != PIN else [])
        largest = np.max(np.abs(result["reaction.load.force.y"]))
        assert max(np.max(np.abs(result[f"reaction.load.{each}"])) for each in redundant) < 1e-4 * largest
    assert 3.8 < errors[0] / errors[1] < 4.2


def test_steps_that_resolve_the_fmus_leave_next_to_nothing_of_the_coupling(pinned: list[Path], tight: Result) -> None:
    """The coupling is of a higher order than the FMUs: exact ones are coupled 500 times as exactly at 4 ms."""
    fine, coarse = (
        off(run_pinned(pinned, 4e-3, parameters=inside("left", "right", step=step)), tight) for step in (1e-4, 2e-3)
    )
    assert fine < 0.02 * coarse


@pytest.mark.parametrize("kind", ["spherical", "revolute", "prismatic", "fixed"])
def test_every_kind_of_joint_in_space_is_that_of_the_whole(chained: list[Path], kind: str) -> None:
    whole = chain_whole(kind).simulation(**TIGHT).run(STOP)
    axis = ":" + ",".join(map(str, AXIS)) if kind in ("revolute", "prismatic") else ""
    errors = []
    for step in (1e-2, 5e-3):
        result = cosimulate(
            chained,
            joints=[f"{kind}:rod.{HANDLE}=blob.{HANDLE}{axis}"],
            step=step,
            stop=STOP,
            parameters=inside("rod", "blob", step=0.5 * step),
        )
        if kind != "prismatic":
            assert largest_gap(result, "rod", "blob") < 1e-9
        names = [*(f"seen.position.{axis}" for axis in "xyz"), *(f"facing.quaternion.{part}" for part in "wxyz")]
        errors.append(max(abs(result[f"blob.{name}"][-1] - whole[name][-1]) for name in names))
    assert errors[0] < 5e-3
    assert 3.6 < errors[0] / errors[1] < 4.4


def test_redundant_constraints_that_change_are_closed(tmp_path: Path) -> None:
    """Bennett's linkage in space, by co-simulation, and by model exchange as exactly as in one piece."""
    whole, parts, joint = bennett_halves()
    reference = whole.simulation(**TIGHT).run(STOP)
    fmus = [export_half(part, tmp_path, kind=("cs", "me")) for part in parts]

    def error(result: Any) -> float:
        assert largest_gap(result) < 1e-9
        names = [f"seen.position.{axis}" for axis in "xyz"]
        return max(abs(result[f"left.{name}"][-1] - reference[name][-1]) for name in names)

    errors = [
        error(
            cosimulate(fmus, joints=[joint], step=step, stop=STOP, parameters=inside("left", "right", step=0.5 * step))
        )
        for step in (4e-3, 2e-3)
    ]
    assert errors[0] < 1e-5
    assert 3.5 < errors[0] / errors[1] < 4.5
    options: dict[str, Any] = {"model_exchange": "all", "unit_solver": "dop853", "unit_tolerance": 1e-10}
    assert error(cosimulate(fmus, joints=[joint], step=1e-2, stop=STOP, **options)) < 1e-10


def test_redundant_components_do_not_grow(tmp_path: Path) -> None:
    """What has an effect turns with the linkage; what is left behind would be extrapolated from step to step."""
    whole, parts, joint = bennett_halves()
    reference = whole.simulation(**TIGHT).run(2.4)
    fmus = [export_half(part, tmp_path) for part in parts]
    result = cosimulate(fmus, joints=[joint], step=4e-3, stop=2.4, parameters=inside("left", "right", step=2e-3))
    assert largest_gap(result) < 1e-9
    names = [f"seen.position.{axis}" for axis in "xyz"]
    assert max(abs(result[f"left.{name}"][-1] - reference[name][-1]) for name in names) < 1e-4


# -- reactions, by hand --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fixed", "spherical"])
def test_the_reaction_is_what_moves_the_second_body(sliding: list[Path], kind: str) -> None:
    """Two masses on one vertical guide, pushed by F: a = F / (m₁ + m₂) − g, and the joint carries m₂ (a + g)."""
    result = cosimulate(
        sliding,
        joints=[f"{kind}:lower.{HANDLE}=upper.{HANDLE}"],
        parameters={"lower.push.force.y": 100.0},
        step=1e-2,
        stop=0.1,
    )
    np.testing.assert_allclose(result["reaction.load.force.y"][1:], 3.0 * 100.0 / 5.0, rtol=1e-7)
    np.testing.assert_allclose(result["upper.seen.position.y"], 0.5 * (100.0 / 5.0 - 9.81) * result.time**2, atol=1e-9)
    assert result.unit("reaction.load.force.y") == "N"
    assert result.unit("reaction.load.moment.y") == "N.m"


def test_the_page_joins_these_halves(
    pinned: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tight: Result
) -> None:
    """The joints of docs/guides/coupled-runs.md, and the parts that make a handle there."""
    page = (ROOT / "docs" / "guides" / "coupled-runs.md").read_text(encoding="utf-8")
    join, make, _ = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for fmu in pinned:
        shutil.copy(fmu, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(join, names)  # the page is ours
    assert names["result"].time[-1] == 1.0
    at = np.searchsorted(names["result"].time, STOP - 1e-9)
    assert abs(names["result"]["right.rocker.angle"][at] - tight["rocker.angle"][-1]) < 1e-3
    exec(make, names)
    assert [each.name for each in (*names["forces"], *names["sensors"])] == HANDLE.split("+")
    (line,) = [each for each in page.splitlines() if each.startswith("mbsfmu cosim left.fmu right.fmu")]
    (joint,) = re.findall(r"--joint (\S+)", line)
    assert CoupledJoint.parse(joint).kind == "revolute"


# -- FMUs of others ------------------------------------------------------------------------------------------------


def rocker(**names: Any) -> JointHandle:
    """Return the handle of the FMU of others."""
    given = {"force": ("fx", "fy", None), "position": ("x", "y", None), "velocity": ("vx", "vy", None)}
    return JointHandle("rocker", **{**given, **names})


def half_foreign(pinned: list[Path], foreign: Foreign, step: float, handle: JointHandle, **options: Any) -> Any:
    """Run crank and coupler of ours with a rocker of others."""
    angle, rate = four_bar_start()["rocker"]
    given = {"angle": angle, "rate": rate, "mass": 2.5, "length": 0.8, "pivot": 1.0}
    return cosimulate(
        [pinned[0], foreign("rocker")],
        joints=[CoupledJoint("spherical", JointHandle.parse("left.load+seen"), handle)],
        parameters={**{f"rocker.{name}": value for name, value in given.items()}, **inside("left", step=0.5 * step)},
        step=step,
        stop=STOP,
        **options,
    )


def test_half_of_the_machine_may_be_of_others_and_hold_its_inputs(
    pinned: list[Path], foreign: Foreign, tight: Result
) -> None:
    errors = []
    for step in (4e-3, 2e-3):
        result = half_foreign(pinned, foreign, step, rocker())
        assert np.max(np.abs(result["left.seen.position.x"] - result["rocker.x"])) < 1e-9
        assert np.max(np.abs(result["left.seen.position.y"] - result["rocker.y"])) < 1e-9
        errors.append(abs(result["rocker.angle"][-1] - tight["rocker.angle"][-1]))
    assert errors[0] < 1e-4
    assert 3.7 < errors[0] / errors[1] < 4.3


def test_an_fmu_that_holds_its_inputs_needs_two_steps(pinned: list[Path], foreign: Foreign) -> None:
    with pytest.raises(InputError, match=r"rate of rocker is 1, but it holds its inputs .* needs 2 or more"):
        half_foreign(pinned, foreign, 2e-3, rocker(), rates={"rocker": 1})


# -- with everything else ------------------------------------------------------------------------------------------


def test_one_step_of_the_trapezoidal_rule_cannot_close_both(pinned: list[Path]) -> None:
    alone = {"rates": {"left": 1, "right": 1}}
    with pytest.raises(CosimulationError, match=r"left and right integrate a wrench by its mean alone"):
        run_pinned(pinned, 4e-3, parameters=inside("left", "right", step=4e-3), **alone)
    stepped = run_pinned(pinned, 4e-3, parameters=inside("left", "right", step=2e-3), **alone)
    usual = run_pinned(pinned, 4e-3)
    np.testing.assert_allclose(stepped["right.rocker.angle"], usual["right.rocker.angle"], atol=1e-8)


@pytest.mark.parametrize(("step", "warned"), [(1e-3, []), (0.05, ["right"])])
def test_trial_steps_warn_of_nothing(
    pinned: list[Path], caplog: pytest.LogCaptureFixture, step: float, warned: list[str]
) -> None:
    """From rest, trials with other wrenches drift by a third of what is turned over; steps of 1 ms do not."""
    still = {"left.crank.angular_velocity_start": 0.0, "left.coupler.angular_velocity_start": 0.0}
    still["right.rocker.angular_velocity_start"] = 0.0
    run_pinned(pinned, step, parameters={**inside("left", "right", step=0.5 * step), **still})
    drifts = [each.getMessage() for each in caplog.records if "is not resolved" in each.getMessage()]
    assert [each.partition(" ")[0] for each in drifts] == warned


def test_algorithms_and_threads_change_nothing(pinned: list[Path]) -> None:
    first = run_pinned(pinned, 4e-3)
    for options in ({"algorithm": "jacobi"}, {"algorithm": "jacobi", "threads": 2}, {"order": ["right", "left"]}):
        other = run_pinned(pinned, 4e-3, **options)
        np.testing.assert_array_equal(other.values_by_column, first.values_by_column)


def test_a_run_that_is_left_goes_on_to_the_last_bit(pinned: list[Path], tmp_path: Path) -> None:
    joint = f"revolute:left.{HANDLE}=right.{HANDLE}:0,0,1"
    whole = run_pinned(pinned, 4e-3, joint)
    run_pinned(pinned, 4e-3, joint, until=0.2, save=tmp_path / "run.zip")
    rest = run_pinned(pinned, 4e-3, joint, resume=tmp_path / "run.zip")
    same = np.isin(whole.time, rest.time)
    assert same.sum() > 50
    np.testing.assert_array_equal(rest.values_by_column, whole.values_by_column[same])
    with pytest.raises(InputError, match="the joints"):
        run_pinned(pinned, 4e-3, resume=tmp_path / "run.zip")


def test_a_package_keeps_its_joints(pinned: list[Path], tmp_path: Path) -> None:
    joint = CoupledJoint(
        "revolute",
        JointHandle.parse(f"left.{HANDLE}"),
        JointHandle.parse(f"right.{HANDLE}"),
        (0.0, 0.0, 2.0),
        "pin",
        1e-9,
    )
    own = CoupledJoint(
        "spherical", JointHandle.parse("left.load"), JointHandle("right", ("x",), position=("x", "y", None))
    )
    files = dict(zip(("left", "right"), pinned, strict=True))
    package = write_ssp(tmp_path / "four-bar.ssp", "four-bar", files, [], STOP, joints=[joint, own])
    assert read_ssp(package, tmp_path / "unpacked").joints == (joint, own)
    assert write_ssp(tmp_path / "again.ssp", "four-bar", files, [], STOP, joints=[joint, own]).read_bytes() == (
        package.read_bytes()
    )
    package = write_ssp(tmp_path / "pinned.ssp", "four-bar", files, [], STOP, joints=[joint])
    start = inside("left", "right", step=2e-3)
    result = cosimulate(package, step=4e-3, parameters=start)
    given = run_pinned(pinned, 4e-3, joint)
    np.testing.assert_array_equal(result["reaction.pin.force.x"], given["reaction.pin.force.x"])
    with pytest.raises(InputError, match=r"joint left\.load.* needs the master to iterate"):
        export_coupled(package, tmp_path / "one.fmu")
    with pytest.raises(InputError, match=r"joint left\.load.* cannot be linearized"):
        linearize(package)
    with pytest.raises(InputError, match=r"recommended for FMUs with the joint left\.load.* compare steps"):
        recommend(package)


def test_a_package_with_joints_alone_is_compared(pinned: list[Path], tmp_path: Path) -> None:
    files = dict(zip(("left", "right"), pinned, strict=True))
    package = write_ssp(tmp_path / "pinned.ssp", "four-bar", files, [], 0.05, joints=[CoupledJoint.parse(PIN)])
    options: dict[str, Any] = {"steps": (1e-2,), "workers": 1}
    made = compare(package, algorithms=("jacobi",), outputs=["*.angle"], **options)
    for run in made.runs:
        assert run.status == "ok"
        assert all(0.0 < run.error[f"{unit}.{body}.angle"] < 1e-4 for body, unit in ANGLES.items())
    with pytest.raises(InputError, match="the algorithm is 'newton', which closes no joints"):
        compare(package, algorithms=("jacobi", "newton"), **options)


def test_joints_of_inner_systems_are_those_of_their_fmus(pinned: list[Path], tmp_path: Path) -> None:
    files = dict(zip(("left", "right"), pinned, strict=True))
    flat = write_ssp(tmp_path / "flat.ssp", "flat", files, [], STOP, joints=[CoupledJoint.parse(PIN)])
    with zipfile.ZipFile(flat) as archive:
        text = archive.read("SystemStructure.ssd").decode()
        contents = {name: archive.read(name) for name in archive.namelist()}
    begin, end = text.index("<ssd:System "), text.index("</ssd:System>") + len("</ssd:System>")
    inner = text[begin:end].replace('name="flat"', 'name="inner"')
    outer = f'<ssd:System name="outer"><ssd:Elements>{inner}</ssd:Elements></ssd:System>'
    nested = tmp_path / "nested.ssp"
    with zipfile.ZipFile(nested, "w") as archive:
        for name, content in {**contents, "SystemStructure.ssd": (text[:begin] + outer + text[end:]).encode()}.items():
            archive.writestr(name, content)
    (joint,) = read_ssp(nested, tmp_path / "unpacked").joints
    assert str(joint) == "inner/left.load+seen=inner/right.load+seen"


@pytest.mark.parametrize(
    ("element", "sentence"),
    [
        ('<Hinge kind="fixed"/>', "an element '.*Hinge'; it must be Joint"),
        ('<Joint kind="fixed" first="left.a" second="right.b" stiffness="3"/>', "the attribute 'stiffness'"),
        ('<Joint kind="hinge" first="left.a" second="right.b"/>', "of kind 'hinge'; it must be spherical, revolute"),
        ('<Joint kind="revolute" first="left.a" second="right.b" axis="0 0 up"/>', "the axis '0 0 up'"),
        ('<Joint kind="fixed" first="left.a" second="right.b"><First force="fx fy"/></Joint>', "must be 3 names"),
        ('<Joint kind="fixed" first="left.a" second="right.b"><First load="fx"/></Joint>', "the attribute 'load'"),
    ],
)
def test_wrong_annotations_are_refused(pinned: list[Path], tmp_path: Path, element: str, sentence: str) -> None:
    files = dict(zip(("left", "right"), pinned, strict=True))
    good = write_ssp(tmp_path / "good.ssp", "good", files, [], STOP, joints=[CoupledJoint.parse(PIN)])
    folder = tmp_path / "package"
    with zipfile.ZipFile(good) as archive:
        archive.extractall(folder)
    structure = folder / "SystemStructure.ssd"
    text = structure.read_text()
    begin = text.index("<joints:Joint ")
    end = text.index("/>", begin) + 2
    own = re.sub("^<([A-Z][a-z]+) ", rf'<\1 xmlns="{JOINT_NAMESPACE}" ', element)
    structure.write_text(text[:begin] + own + text[end:])
    with pytest.raises(InputError, match=f"mbsfmu.joints: .*{sentence}"):
        read_ssp(folder, tmp_path)


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("left.pin=right.pin", "must read kind:a.handle=b.handle"),
        ("fixed:left.pin,right.pin", "must read kind:a.handle=b.handle"),
        ("fixed:left=right.pin", "the handle 'left' is refused"),
        ("screw:left.pin=right.pin", "of kind 'screw'; it must be spherical, revolute, prismatic, fixed"),
        ("revolute:left.pin=right.pin", "is revolute and needs an axis"),
        ("prismatic:left.pin=right.pin:0,0,0", "not all zero"),
        ("prismatic:left.pin=right.pin:0,1", "must be three numbers"),
        ("prismatic:left.pin=right.pin:0,one,0", "the axis '0,one,0' is no three numbers"),
        ("spherical:left.pin=right.pin:0,0,1", "is spherical, which has no axis"),
        ("fixed:left.pin=left.pin", "joins a handle with itself"),
    ],
)
def test_what_is_no_joint_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        CoupledJoint.parse(text)


def test_a_tolerance_is_positive() -> None:
    handles = JointHandle.parse("a.p"), JointHandle.parse("b.p")
    with pytest.raises(InputError, match=r"has the tolerance 0; it must be greater than 0"):
        CoupledJoint("spherical", *handles, tolerance=0.0)


@pytest.mark.parametrize(
    ("joints", "options", "sentence"),
    [
        (["spherical:middle.load=right.load+seen"], {}, "there is no FMU 'middle'"),
        (["spherical:left.lod+seen=right.load+seen"], {}, r"left\.lod\+seen lacks force.* no variable 'lod\."),
        (["spherical:left.load=right.load+seen"], {}, r"handle left\.load lacks position"),
        (["fixed:left.load+seen+turn=right.load+seen"], {}, r"handle left\S* lacks quaternion"),
        (["fixed:left.load+seen=right.load+seen"], {}, r"handle left\S* lacks moment"),
        ([PIN], {"algorithm": "newton"}, "the algorithm is 'newton', which closes no joints; jacobi and g"),
        ([PIN], {"control": "error"}, "the control is 'error', but joints need steps of one length"),
        ([PIN, PIN], {}, "two joints are called 'load'"),
        ([PIN, replace(CoupledJoint.parse(PIN), name="again")], {}, r"left\.load\.force\.x is driven twice"),
        ([PIN], {"inputs": {"left.load.force.x": lambda _: 1.0}}, r"left\.load\.force\.x is driven twice"),
        ([PIN], {"parameters": {"left.load.force.y": 1.0}}, r"value of left\.load\.force\.y has no effect: the joint"),
    ],
)  # fmt: skip
def test_what_fmus_cannot_do_is_refused(
    pinned: list[Path], joints: list[str], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        cosimulate(pinned, joints=joints, step=1e-3, stop=0.01, **options)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"force": ("fx", "f", None)}, "rocker has no variable 'f'"),
        ({"force": ("fx", "x", None)}, "x is no continuous input; a joint cannot load it"),
        ({"position": None}, "lacks position, which a joint needs of it: rocker has no variable its position"),
    ],
)
def test_handles_with_names_of_their_own_are_checked(
    pinned: list[Path], foreign: Foreign, names: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        half_foreign(pinned, foreign, 2e-3, rocker(**names))


def test_fmus_without_saved_states_are_refused(pinned: list[Path], foreign: Foreign, tmp_path: Path) -> None:
    poor = tmp_path / "rocker.fmu"
    with zipfile.ZipFile(foreign("rocker")) as archive, zipfile.ZipFile(poor, "w") as copy:
        for name in archive.namelist():
            copy.writestr(name, archive.read(name).replace(b' canGetAndSetFMUstate="true"', b""))
    with pytest.raises(InputError, match=r"rocker cannot save its state, which the joint at rocker\.x needs"):
        half_foreign(pinned, lambda _: poor, 2e-3, rocker())


def test_a_joint_that_is_open_at_the_start_is_refused(pinned: list[Path]) -> None:
    for start, sentence in (
        ({"left.crank.angle_start": 1.001}, r"is open by 0\.0011\d* m or rad at the start; start values must close it"),
        ({"left.crank.angular_velocity_start": 4.1}, r"moves apart at 0\.111 m/s or rad/s at the start"),
    ):
        with pytest.raises(SimulationError, match=sentence):
            run_pinned(pinned, 1e-3, parameters=start)


def test_a_joint_that_cannot_be_closed_says_so(pinned: list[Path]) -> None:
    joint = CoupledJoint(
        "spherical", JointHandle.parse("left.load+seen"), JointHandle.parse("right.load+seen"), tolerance=1e-17
    )
    with pytest.raises(CosimulationError, match=r"joint left\.load\+seen=right\.load\+seen does not close in the step"):
        run_pinned(pinned, 4e-3, joint)


# -- equations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spherical", "revolute", "prismatic", "fixed"])
def test_rates_and_accelerations_are_those_of_the_gap(kind: str) -> None:
    """Along motions of constant velocity and spin, from where the joint is closed, the rates are differences."""
    random = np.random.default_rng(3)
    axis = AXIS if kind in ("revolute", "prismatic") else None
    joint = CoupledJoint(kind, JointHandle.parse("a.p"), JointHandle.parse("b.p"), axis)  # pyright: ignore[reportArgumentType]
    equations = JointEquations(joint)
    place, turn, velocity, spin = random.normal(size=(4, 2, 3))
    place[1] = place[0]

    def motion(side: int, time: float) -> np.ndarray:
        result = np.zeros(MOTION)
        result[0:3] = place[side] + time * velocity[side]
        result[3:6] = velocity[side]
        result[6:10] = quaternion_product(quaternion_from_vector(time * spin[side]), quaternion_from_vector(turn[side]))
        result[10:13] = spin[side]
        return result

    def at(time: float) -> tuple[np.ndarray, np.ndarray]:
        return motion(0, time), motion(1, time)

    equations.begin(*at(0.0))
    np.testing.assert_allclose(equations.gap(*at(0.0)), 0.0, atol=1e-15)
    step = 1e-4
    difference = (equations.gap(*at(step)) - equations.gap(*at(-step))) / (2.0 * step)
    np.testing.assert_allclose(equations.rate(*at(0.0)), difference, atol=1e-6)
    difference = (equations.rate(*at(step)) - equations.rate(*at(-step))) / (2.0 * step)
    np.testing.assert_allclose(equations.bias(*at(0.0)), difference, atol=1e-6)
    if kind in ("spherical", "revolute"):  # others count angles whose rates are the spin where the joint is closed
        late = 0.2
        difference = (equations.gap(*at(late + step)) - equations.gap(*at(late - step))) / (2.0 * step)
        np.testing.assert_allclose(equations.rate(*at(late)), difference, atol=1e-6)
    inner, outer = equations.rows(*at(0.1))
    apart = motion(1, 0.1)[:3] - motion(0, 0.1)[:3]
    if kind == "prismatic":  # action and reaction: no force and no moment is left of both
        np.testing.assert_allclose(inner[:, :3] + outer[:, :3], 0.0, atol=1e-15)
        np.testing.assert_allclose(inner[:, 3:] + outer[:, 3:] + np.cross(apart, outer[:, :3]), 0.0, atol=1e-12)
