"""URDF files become mechanisms whose accelerations are those of Pinocchio, which reads the same file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbsfmu import CoupledModel, DataError, InputError, Mechanism, mechanism_from_urdf
from mbsfmu.parts import Actuator, JointStop, Mimic, Revolute

pinocchio = pytest.importorskip("pinocchio")

ARM = Path(__file__).parents[2] / "examples" / "arm.urdf"


def written(folder: Path, *changes: tuple[str, str]) -> Path:
    """The arm's file with some text changed."""
    text = ARM.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "changed.urdf"
    path.write_text(text)
    return path


def without_mimic(folder: Path) -> Path:
    return written(folder, ('<mimic joint="left" multiplier="1.0" offset="0.0"/>', ""))


def accelerations(mechanism: Mechanism, *, free: bool = False) -> dict[str, float]:
    """Accelerations of the joints at the start, by the bodies' names."""
    simulation = CoupledModel(name="arm", systems={"arm": mechanism}).simulation(compiled=False)
    simulation.initialize()
    found = {}
    for joint in mechanism.joints[1:] if free else mechanism.joints:
        kind = "angular_acceleration" if joint.type == "revolute" else "acceleration"
        found[joint.name] = simulation.get(f"{joint.child.partition('.')[0]}.{kind}")
    return found


def moving(mechanism: Mechanism, model: Any, seed: int) -> tuple[Mechanism, np.ndarray, np.ndarray]:
    """The mechanism at a random place with random velocities and drives; coordinates and velocities of Pinocchio."""
    generator = np.random.default_rng(seed)
    q, v, joints = pinocchio.neutral(model), np.zeros(model.nv), []
    for joint in mechanism.joints:
        place, rate = generator.uniform(-1.5, 1.5), generator.uniform(-2.0, 2.0)
        index = model.getJointId(joint.name)
        if joint.type == "revolute":
            joints.append(joint.model_copy(update={"angle": place, "angular_velocity": rate}))
            both = [np.cos(place), np.sin(place)] if model.joints[index].nq == 2 else [place]
        else:
            joints.append(joint.model_copy(update={"displacement": 0.02 * place, "velocity": rate}))
            both = [0.02 * place]
        begin = model.joints[index].idx_q
        q[begin : begin + len(both)] = both
        v[model.joints[index].idx_v] = rate
    return Mechanism.from_dict({**mechanism.to_dict(), "joints": [each.to_dict() for each in joints]}), q, v


@pytest.mark.parametrize("seed", range(5))
def test_accelerations_are_those_of_pinocchio(seed: int, tmp_path: Path) -> None:
    """Friction included: damping times rate, and Coulomb's of the finger, which slides."""
    path = without_mimic(tmp_path)
    model = pinocchio.buildModelFromUrdf(str(path))
    assert model.nv == 8
    mechanism, q, v = moving(mechanism_from_urdf(path), model, seed)
    load = np.zeros(8)
    for damping, name in (
        (2.0, "shoulder_pan"), (2.0, "shoulder_lift"), (1.0, "elbow"), (0.2, "wrist_1_joint"), (0.2, "wrist_2_joint"),
        (0.2, "wrist_3_joint"), (20.0, "left"),
    ):  # fmt: skip
        place = model.joints[model.getJointId(name)].idx_v
        load[place] = -damping * v[place] - (np.tanh(v[place] / 1e-3) if name == "left" else 0.0)
    expected = pinocchio.aba(model, model.createData(), q, v, load)
    for name, found in accelerations(mechanism).items():
        wanted = expected[model.joints[model.getJointId(name)].idx_v]
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9 * np.max(np.abs(expected))), name


def test_free_base_falls_as_pinocchio_has_it(tmp_path: Path) -> None:
    path = written(tmp_path, ('<link name="base_link"/>', """<link name="base_link"><inertial><mass value="12.0"/>
        <origin xyz="0.1 0 0.05" rpy="0 0 0.1"/>
        <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.15"/></inertial></link>"""),
        ('<mimic joint="left" multiplier="1.0" offset="0.0"/>', ""))  # fmt: skip
    model = pinocchio.buildModelFromUrdf(str(path), pinocchio.JointModelFreeFlyer())
    mechanism = mechanism_from_urdf(path, base="free")
    assert mechanism.joints[0].type == "free"
    q = pinocchio.neutral(model)
    expected = pinocchio.aba(model, model.createData(), q, np.zeros(model.nv), np.zeros(model.nv))
    assert expected[2] == pytest.approx(-9.81, rel=1e-9)
    for name, found in accelerations(mechanism, free=True).items():
        assert found == pytest.approx(expected[model.joints[model.getJointId(name)].idx_v], abs=1e-9), name


def test_planar_and_floating_joints_fall_freely(tmp_path: Path) -> None:
    """A plate slides without friction in an inclined plane; what floats on it falls straight down."""
    inertial = '<inertial><mass value="2"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
    path = tmp_path / "plate.urdf"
    path.write_text(f"""<robot name="plate"><link name="floor"/>
        <link name="plate">{inertial}</link><link name="ball">{inertial}</link>
        <joint name="slide" type="planar"><parent link="floor"/><child link="plate"/>
          <origin xyz="0 0 1" rpy="0.3 0 0"/><axis xyz="0 0 1"/></joint>
        <joint name="throw" type="floating"><parent link="plate"/><child link="ball"/>
          <origin xyz="0 0 0.5" rpy="0 0 0"/></joint></robot>""")
    mechanism = mechanism_from_urdf(path)
    result = CoupledModel(name="plate", systems={"plate": mechanism}).simulation(compiled=False).run(0.5)
    down = 0.5 * 9.81 * 0.5**2
    fallen = [result[f"{name}.centre.z.position"][-1] for name in ("plate", "ball")]
    np.testing.assert_allclose(fallen[0], 1.0 - down * np.sin(0.3) ** 2, atol=1e-5)
    np.testing.assert_allclose(fallen[1], 1.0 + 0.5 * np.cos(0.3) - down, atol=1e-5)


def test_frames_that_are_fixed_are_points_where_pinocchio_has_them() -> None:
    model = pinocchio.buildModelFromUrdf(str(ARM))
    data = model.createData()
    pinocchio.framesForwardKinematics(model, data, pinocchio.neutral(model))
    mechanism = mechanism_from_urdf(ARM)
    bodies = {each.name: each for each in mechanism.bodies}
    placed = data.oMf[model.getFrameId("wrist_3")]
    expected = placed.actInv(data.oMf[model.getFrameId("tool")]).translation
    np.testing.assert_allclose(bodies["wrist_3"].points["tool"].position, expected, atol=1e-12)
    total = sum(each.mass for each in model.inertias)
    assert sum(each.mass for each in mechanism.bodies) == pytest.approx(total, rel=1e-12)


def test_loop_and_actuator_that_are_added_move_as_newton_and_euler_say(tmp_path: Path) -> None:
    """From rest M a + g = Jᵀ F + Cᵀ λ with C a = 0, of Pinocchio's mass matrix, gravity and Jacobians."""
    path = chain(tmp_path, "", "")
    path.write_text(path.read_text().replace('xyz="0 0 1"', 'xyz="0 1 0"'))
    model = pinocchio.buildModelFromUrdf(str(path))
    q, end, foot = np.array([-0.6, 0.9, 0.4]), np.array([0.5, 0.0, 0.0]), (1.2, 0.1, -1.0)
    tip, ram = (
        model.addFrame(
            pinocchio.Frame(name, model.getJointId(joint), 0, pinocchio.SE3(np.eye(3), place), pinocchio.OP_FRAME)
        )
        for name, joint, place in (("tip", "j3", end), ("ram", "j2", np.zeros(3)))
    )
    data = model.createData()
    pinocchio.computeAllTerms(model, data, q, np.zeros(3))
    pinocchio.updateFramePlacements(model, data)
    jacobians = [
        pinocchio.getFrameJacobian(model, data, each, pinocchio.LOCAL_WORLD_ALIGNED)[:3] for each in (tip, ram)
    ]
    closing = jacobians[0][[0, 2]]
    way = data.oMf[ram].translation - foot
    load = 25.0 * jacobians[1].T @ (way / np.linalg.norm(way)) - data.nle
    whole = np.block([[data.M, -closing.T], [closing, np.zeros((2, 2))]])
    expected = np.linalg.solve(whole, [*load, 0.0, 0.0])[:3]

    arm = mechanism_from_urdf(path, start={f"j{index + 1}": float(each) for index, each in enumerate(q)}).to_dict()
    arm["ground"] |= {"pin": data.oMf[tip].translation.tolist(), "foot": foot}
    arm["bodies"][2]["points"]["end"] = {"position": end.tolist()}
    loop = Revolute(name="loop", parent="ground.pin", child="l3.end", axis=(0.0, 1.0, 0.0), cut=True)
    closed = Mechanism.from_dict(
        {
            **arm,
            "joints": [*arm["joints"], loop.to_dict()],
            "forces": [*arm["forces"], Actuator(name="ram", start="ground.foot", end="l2.origin").to_dict()],
        }
    )
    simulation = CoupledModel(name="closed", systems={"arm": closed}).simulation(compiled=False)
    simulation.set("ram.force", 25.0)
    simulation.initialize()
    found = [simulation.get(f"l{index}.angular_acceleration") for index in (1, 2, 3)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_joints_that_mimic_follow() -> None:
    result = (
        CoupledModel(name="arm", systems={"arm": mechanism_from_urdf(ARM, start={"left": 0.01})})
        .simulation(compiled=False)
        .run(0.02)
    )
    np.testing.assert_allclose(result["finger_right.displacement"], result["finger_left.displacement"], atol=1e-9)
    (mimic,) = mechanism_from_urdf(ARM).constraints
    assert isinstance(mimic, Mimic)


def chain(folder: Path, *mimics: str, joint: str = "") -> Path:
    """Four rods in a row on hinges, some of which mimic others."""
    inertial = '<inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
    links = "".join(f'<link name="l{index}">{inertial}</link>' for index in range(1, 4))
    joints = "".join(
        f'<joint name="j{index}" type="revolute"><parent link="l{index - 1}"/><child link="l{index}"/>'
        f'<origin xyz="0.5 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>{more}</joint>'
        for index, more in enumerate(("", *mimics), start=1)
    )
    path = folder / "chain.urdf"
    path.write_text(f'<robot name="chain"><link name="l0"/>{links}{joints}{joint}</robot>')
    return path


@pytest.mark.parametrize(
    ("mimics", "expected"),
    [
        ((("j1", 1.0, 0.3), ("j1", -1.0, 0.1)), (0.0, 0.3, 0.1)),
        ((("j1", -0.5, 0.2), ("j2", 2.0, 0.1)), (0.0, 0.2, 0.5)),
    ],
)
def test_leaders_start_where_they_are_and_followers_follow(
    mimics: tuple[tuple[str, float, float], ...], expected: tuple[float, ...], tmp_path: Path
) -> None:
    laws = [f'<mimic joint="{leader}" multiplier="{factor}" offset="{offset}"/>' for leader, factor, offset in mimics]
    mechanism = mechanism_from_urdf(chain(tmp_path, *laws))
    simulation = CoupledModel(name="chain", systems={"chain": mechanism}).simulation(compiled=False)
    simulation.initialize()
    assert [simulation.get(f"l{index}.angle") for index in (1, 2, 3)] == pytest.approx(expected, abs=1e-12)


def test_what_is_not_taken_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = chain(tmp_path, '<mimic joint="j1"/>', "")
    text = path.read_text()
    path.write_text(text.replace('type="revolute"><parent link="l2"', 'type="floating"><parent link="l2"').replace(
        "</joint></robot>", '<dynamics damping="5"/></joint></robot>'))  # fmt: skip
    mechanism_from_urdf(path, start={"j1": 2.5}, stop_stiffness=1e3)
    assert "changed.urdf: line" not in caplog.text
    assert "chain.urdf: line 1: the dynamics of joint 'j3' are not taken: it is floating" in caplog.text
    assert "joint 'j1' starts at 2.5, beyond its limits -1 and 1: its stop is loaded" in caplog.text
    path.write_text(text.replace('lower="-1" upper="1"', 'lower="1" upper="-1"'))
    with pytest.raises(DataError, match="line 1: joint 'j1' has the limits 1 and -1; lower must be less than upper"):
        mechanism_from_urdf(path, stop_stiffness=1e3)
    path.write_text(text.replace('<limit lower="-1" upper="1" effort="1" velocity="1"/>', ""))
    mechanism_from_urdf(path, stop_stiffness=1e3)
    assert "joint 'j2' has no limits of position: it gets no stops" in caplog.text
    with pytest.raises(DataError, match="start gives 'j2' as 1, but it mimics 'j1' and is at 0"):
        mechanism_from_urdf(path, start={"j2": 1.0})
    with pytest.raises(DataError, match="line 1: joint 'j2' is in a ring of joints that mimic each other: j2, j3"):
        mechanism_from_urdf(chain(tmp_path, '<mimic joint="j3"/>', '<mimic joint="j2"/>'))


def test_limits_are_stops_where_they_are_asked_for() -> None:
    stops = [each for each in mechanism_from_urdf(ARM, stop_stiffness=1e4).forces if isinstance(each, JointStop)]
    assert [each.joint for each in stops] == [
        "shoulder_lift", "elbow", "wrist_1_joint", "wrist_3_joint", "left", "right",
    ]  # fmt: skip
    assert (stops[0].lower, stops[0].upper) == (-2.0, 2.0)
    assert not any(each.type == "joint-stop" for each in mechanism_from_urdf(ARM).forces)
    assert not any(each.type == "joint-drive" for each in mechanism_from_urdf(ARM, drives=False).forces)


FINGER = '<inertia ixx="0.00002" ixy="0.0" ixz="0.0" iyy="0.00002" iyz="0.0" izz="0.00001"/>'
POINT = FINGER.replace("0.00002", "0").replace("0.00001", "0")
WRIST = re.search(r'<link name="wrist_2">.*?</link>', ARM.read_text(), re.DOTALL)


@pytest.mark.parametrize("seed", range(3))
def test_links_without_mass_transmit_loads_as_pinocchio_has_it(seed: int, tmp_path: Path) -> None:
    """The link between two hinges of the wrist has no mass; friction is left out."""
    assert WRIST is not None
    path = written(
        tmp_path, (WRIST[0], '<link name="wrist_2"/>'), ('<mimic joint="left" multiplier="1.0" offset="0.0"/>', "")
    )
    path.write_text(re.sub("<dynamics.*?/>", "", path.read_text()))
    model = pinocchio.buildModelFromUrdf(str(path))
    mechanism, q, v = moving(mechanism_from_urdf(path), model, seed)
    expected = pinocchio.aba(model, model.createData(), q, v, np.zeros(8))
    for name, found in accelerations(mechanism).items():
        wanted = expected[model.joints[model.getJointId(name)].idx_v]
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9 * np.max(np.abs(expected))), name


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ((('type="continuous"', 'type="ball"'),),
         "line 70: joint 'shoulder_pan', <joint> has type='ball'; it may be revolute"),
        ((('<child link="tool"/>', '<child link="nothing"/>'),),
         "joint 'tool_mount' names the link 'nothing', which is not there"),
        ((('<child link="tool"/>', '<child link="hand"/>'),),
         "line 137: joint 'tool_mount' has the child 'hand', as joint 'hand_mount' has"),
        ((('<mass value="0.05"/>', '<mass value="0"/>'), (FINGER, POINT)),
         "line 129: joint 'right' moves link 'finger_right', which has no mass, nor has anything that it carries"),
        ((('<link name="tool"/>', '<link name="shoulder_link"/>'),
          ('<child link="tool"/>', '<child link="shoulder_link"/>')),
         "the links 'shoulder-link' and 'shoulder_link' would both be called 'shoulder_link' here"),
        ((('mimic joint="left"', 'mimic joint="middle"'),), "joint 'right' mimics 'middle', which does not exist"),
        ((('<mass value="2.3"/>', '<mass value="0"/>'),), "link 'forearm', <inertia> is not zero, but <mass> in line"),
        ((('izz="0.0151"', 'izz="1.0"'),), "link 'upper_arm', <inertia> is of no body: the principal moments are"),
    ],
)  # fmt: skip
def test_what_is_no_mechanism_is_refused(changes: tuple[tuple[str, str], ...], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=sentence) as caught:
        mechanism_from_urdf(written(tmp_path, *changes))
    assert len(str(caught.value).splitlines()) == 1


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"nothing\.urdf"):
        mechanism_from_urdf(tmp_path / "nothing.urdf")
    (tmp_path / "text.urdf").write_text("no XML at all")
    with pytest.raises(InputError, match=r"text\.urdf is no URDF"):
        mechanism_from_urdf(tmp_path / "text.urdf")
    with pytest.raises(DataError, match="start names 'elbows', which is not a joint"):
        mechanism_from_urdf(ARM, start={"elbows": 1.0})


def test_lines_of_the_page_do_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ARM.parents[1])
    (lines,) = re.findall(r"^```python\n(.*?)^```$", Path("docs/guides/urdf.md").read_text(), re.MULTILINE | re.DOTALL)
    space: dict[str, Any] = {}
    exec(lines, space)
    simulation = space["model"].simulation(compiled=False)
    simulation.initialize()
    model = pinocchio.buildModelFromUrdf(str(ARM))
    q = pinocchio.neutral(model)
    for name, place in (("shoulder_lift", -0.8), ("elbow", 1.2)):
        q[model.joints[model.getJointId(name)].idx_q] = place
    data = model.createData()
    pinocchio.framesForwardKinematics(model, data, q)
    found = [simulation.get(f"tip.position.{axis}") for axis in "xyz"]
    np.testing.assert_allclose(found, data.oMf[model.getFrameId("tool")].translation, atol=1e-9)
