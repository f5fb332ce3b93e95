"""Benchmark problems of the field with published numbers, closed forms or ordinary differential equations beside them.

`benchmarks/field_suites.py` runs all of them in every formulation, `tests/integration/test_field_suites.py` some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import pi
from typing import Literal

import numpy as np
from field_case import Expected, FieldCase, integrated
from field_contact_cases import contact_cases
from field_hydraulic_cases import hydraulic_cases

from mbsfmu import (
    Beam,
    ClosureEquation,
    CoupledModel,
    Direction,
    Free,
    Joint,
    JointDrive,
    JointElement,
    Mechanism,
    OrientationSensor,
    PointSensor,
    PrescribedMotion,
    Prismatic,
    Revolute,
    RigidBody,
    SineSignal,
    Spherical,
    SpringDamper,
    StepSignal,
    Universal,
    offsets,
    tilts,
)
from mbsfmu.tracing.workspace import Floats

GROUND = {"O": (0.0, 0.0, 0.0)}


def pendulum() -> CoupledModel:
    """A point mass of 1 kg on a rod of 1 m without mass, released from the horizontal: IFToMM A01."""
    mass = RigidBody(name="mass", mass=1.0, inertia=(1e-10,) * 3, centre=(1.0, 0.0, 0.0), points={"P": (1.0, 0.0, 0.0)})
    mechanism = Mechanism(
        ground=GROUND,
        bodies=(mass,),
        joints=(Revolute(name="O", parent="ground.O", child="mass.origin", angle=pi),),
        sensors=(PointSensor(name="P", point="mass.P", measures=("position",)),),
    )
    return CoupledModel(name="a01", systems={"m": mechanism})


def pendulum_motion(times: Floats) -> Expected:
    angle = integrated(lambda _, y: [y[1], -9.81 * np.cos(y[0])], [pi, 0.0], times)[0]
    return {"P.position.x": np.cos(angle), "P.position.y": np.sin(angle)}


def four_bars(windows: int) -> CoupledModel:
    """N square windows of rods of 1 m and 1 kg in a row, which pass singular positions: IFToMM A02."""
    columns = [Beam(name=f"v{i}", length=1.0, mass=1.0, axial_inertia=0.01) for i in range(windows + 1)]
    beams = [Beam(name=f"h{i}", length=1.0, mass=1.0, axial_inertia=0.01) for i in range(1, windows + 1)]
    joints = [
        Revolute(name=f"A{i}", parent=f"ground.A{i}", child=f"v{i}.start", angle=pi / 2, angular_velocity=-1.0)
        for i in range(windows + 1)
    ]
    for i in range(1, windows + 1):
        ends = {"parent": f"v{i - 1}.end", "child": f"h{i}.start"}
        joints.append(Revolute(name=f"B{i}", **ends, angle=-pi / 2, angular_velocity=1.0))
        joints.append(Revolute(name=f"C{i}", parent=f"h{i}.end", child=f"v{i}.end", cut=True))
    mechanism = Mechanism(
        ground={f"A{i}": (float(i), 0.0, 0.0) for i in range(windows + 1)},
        bodies=(*columns, *beams),
        joints=tuple(joints),
        sensors=(PointSensor(name="B0", point="v0.end", measures=("position",)),),
    )
    return CoupledModel(name=f"a02_{windows}", systems={"m": mechanism})


def four_bars_motion(windows: int, times: Floats) -> Expected:
    """All columns turn alike: one pendulum equation."""
    inertia = (windows + 1) / 3.0 + windows
    pull = 9.81 * ((windows + 1) / 2.0 + windows) / inertia
    angle = integrated(lambda _, y: [y[1], -pull * np.cos(y[0])], [pi / 2, -1.0], times)[0]
    return {"B0.position.x": np.cos(angle), "B0.position.y": np.sin(angle)}


def andrews() -> CoupledModel:
    """Andrews' squeezing mechanism: IFToMM A03; data of the Bari test set."""

    def part(
        name: str, mass: float, inertia: float, centre: tuple[float, float], **points: tuple[float, float]
    ) -> RigidBody:
        placed = {point: (*place, 0.0) for point, place in points.items()}
        return RigidBody(name=name, mass=mass, inertia=(inertia,) * 3, centre=(*centre, 0.0), points=placed)

    bodies = (
        part("k1", 0.04325, 2.194e-6, (0.00092, 0.0), F=(0.007, 0.0)),
        part("k2", 0.00365, 4.41e-7, (-0.0115, 0.0), E=(-0.028, 0.0)),
        part("k3", 0.02373, 5.255e-6, (0.01043, -0.01874), E=(0.0, -0.035), D=(0.02, -0.018)),
        part("k5", 0.0705, 1.169e-5, (0.02308, 0.00916), G=(0.04, 0.0)),
        part("k4", 0.00706, 5.667e-7, (0.0, -(0.02 - 0.01421)), E=(0.0, -0.02)),
        part("k7", 0.05498, 1.912e-5, (-0.00449, -0.01228), H=(0.0, -0.04)),
        part("k6", 0.00706, 5.667e-7, (0.02 - 0.01421, 0.0), E=(0.02, 0.0)),
    )
    angles = {
        "O ground.O k1.origin": -0.0617138900142764496,
        "F k1.F k2.origin": 0.0,
        "B ground.B k3.origin": 0.455279819163070380,
        "A5 ground.A k5.origin": 0.487364979543842550,
        "G k5.G k4.origin": 0.222668390165885884,
        "A7 ground.A k7.origin": 1.23054744454982119,
        "H k7.H k6.origin": -0.222668390165885884,
    }
    open_joints = [(key.split(), angle) for key, angle in angles.items()]
    joints = [Revolute(name=n, parent=p, child=c, angle=angle) for (n, p, c), angle in open_joints]
    joints += [Revolute(name=f"E{i}", parent="k2.E", child=f"k{i}.E", cut=True) for i in (3, 4, 6)]
    ground = {**GROUND, "A": (-0.06934, -0.00227, 0.0), "B": (-0.03635, 0.03273, 0.0), "C": (0.014, 0.072, 0.0)}
    spring = SpringDamper(name="spring", start="ground.C", end="k3.D", stiffness=4530.0, free_length=0.07785)
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground=ground,
        bodies=bodies,
        joints=tuple(joints),
        forces=(spring, JointDrive(name="motor", joint="O")),
    )
    torque = {"m.motor.torque": StepSignal(times=(0.0,), values=(0.033,))}
    return CoupledModel(name="andrews", systems={"m": mechanism}, signals=torque, step=1e-5)


ANDREWS = {
    "k1": 15.81077119629904,
    "k2": -15.75637105984298,
    "k3": 0.04082224013073101,
    "k4": -0.5347301163226948,
    "k5": 0.5244099658805304,
    "k6": 0.5347301163226948,
    "k7": 1.048080741042263,
}
"""Angles in rad at 0.03 s; the published 16 digits of the Bari test set."""


def andrews_end(_: Floats) -> Expected:
    return {f"{name}.angle": np.array([angle]) for name, angle in ANDREWS.items()}


BRICARD_POINTS = ((0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1))
BRICARD_AXES = ((0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0))


def bricard() -> CoupledModel:
    """Bricard's loop of five square rods of 1 m and 1 kg on six hinges, from rest: IFToMM A04."""
    bodies, joints = [], []
    across, along = 1.01 / 12.0, 0.02 / 12.0
    for i in range(5):
        rod = np.subtract(BRICARD_POINTS[i + 1], BRICARD_POINTS[i]).astype(float)
        inertia = tuple(along if abs(part) > 0.5 else across for part in rod)
        ends = {"centre": tuple((0.5 * rod).tolist()), "points": {"end": tuple(rod.tolist())}}
        bodies.append(RigidBody(name=f"r{i + 1}", mass=1.0, inertia=inertia, **ends))
        parent = f"r{i}.end" if i else "ground.O"
        joints.append(Revolute(name=f"J{i + 1}", parent=parent, child=f"r{i + 1}.origin", axis=BRICARD_AXES[i]))
    joints.append(Revolute(name="J6", parent="ground.E", child="r5.end", axis=BRICARD_AXES[5], cut=True))
    mechanism = Mechanism(
        ground={**GROUND, "E": (0.0, 0.0, 1.0)},
        bodies=tuple(bodies),
        joints=tuple(joints),
        sensors=(PointSensor(name="P", point="r3.end", measures=("position",)),),
    )
    return CoupledModel(name="bricard", systems={"m": mechanism})


BRICARD_END = (0.5390642884760274, -1.638453308247707, 0.157735378346072)
"""Position of the third rod's end in m at 9 s, by SciPy: DOP853 along the path of the loop, whose tangent is the null
space of the constraints in maximal coordinates, then one equation of motion on it."""


def bricard_end(_: Floats) -> Expected:
    return {f"P.position.{axis}": np.array([place]) for axis, place in zip("xyz", BRICARD_END, strict=True)}


def slider_crank() -> CoupledModel:
    """The spatial rigid slider-crank of the IFToMM suite: crank and slider, on axes that cross, joined by a rod."""
    rod, crank, place = 0.3, 0.08, (0.0, 0.1, 0.12)
    far = float(np.sqrt(rod**2 - place[1] ** 2 - (place[2] + crank) ** 2))
    end = np.array([0.0, place[1], place[2] + crank])
    start = np.array([far, 0.0, 0.0])
    along = (start - end) / rod
    up = end - (end @ along) * along
    up /= np.linalg.norm(up)
    frame = np.array([along, -np.cross(along, up), up]).T
    inertia = frame @ np.diag([4e-4, 4e-3, 4e-3]) @ frame.T
    half = tuple((0.5 * (end - start)).tolist())
    bodies = (
        RigidBody(
            name="crank",
            mass=0.12,
            inertia=(1e-4, 1e-4, 1e-5),
            centre=(0.0, 0.0, 0.5 * crank),
            points={"B": (0.0, 0.0, crank)},
        ),
        RigidBody(name="slider", mass=2.0, inertia=(1e-4,) * 3),
        RigidBody(
            name="rod",
            mass=0.5,
            inertia=tuple(np.diag(inertia).tolist()),
            products_of_inertia=(inertia[0, 1], inertia[0, 2], inertia[1, 2]),
            centre=half,
            points={"B": tuple((end - start).tolist())},
        ),
    )
    x_axis = (1.0, 0.0, 0.0)
    joints = (
        Revolute(name="A", parent="ground.A", child="crank.origin", axis=x_axis, angular_velocity=6.0),
        Prismatic(name="D", parent="ground.S", child="slider.origin", axis=x_axis, velocity=0.24),
        Universal(
            name="C",
            parent="slider.origin",
            child="rod.origin",
            axis=x_axis,
            second_axis=(0.0, -2.0 / 5**0.5, 1.0 / 5**0.5),
        ),
        Spherical(name="B", parent="crank.B", child="rod.B", cut=True),
    )
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -9.81), ground={"A": place, "S": tuple(start.tolist())}, bodies=bodies, joints=joints
    )
    return CoupledModel(name="slider_crank", systems={"m": mechanism})


SLIDER_END = 0.24071957411359515 - 0.2
"""Displacement of the slider in m at 5 s, by SciPy's DOP853 in maximal coordinates with 1e-12."""


def slider_end(_: Floats) -> Expected:
    return {"slider.displacement": np.array([SLIDER_END])}


GOVERNOR = {"mass": 0.3, "ball": 5.0, "stiffness": 8e5, "damping": 4e4, "free_length": 0.5, "offset": 0.05}
ROD_ACROSS, ROD_ALONG = 0.3 * (1.0 + 1e-4) / 12.0, 0.3 * 2e-4 / 12.0
SLIDER = 3.0 * 0.02 / 12.0


def governor() -> CoupledModel:
    """A flyball governor with stiff springs, which turns freely at 1 Hz: IFToMM A05."""
    mass, ball, offset = GOVERNOR["mass"], GOVERNOR["ball"], GOVERNOR["offset"]
    centre = (0.5 * mass + ball) / (mass + ball)
    across = ROD_ACROSS + mass * (0.5 - centre) ** 2 + ball * (1.0 - centre) ** 2
    rods = [
        RigidBody(
            name=name,
            mass=mass + ball,
            inertia=(across, across, ROD_ALONG),
            centre=(0.0, 0.0, -centre),
            points={"mid": (0.0, 0.0, -0.5)},
        )
        for name in ("rod1", "rod2")
    ]
    top = {"a": (offset, 0.0, 1.0), "b": (-offset, 0.0, 1.0)}
    sides = {"a": (offset, 0.0, 0.0), "b": (-offset, 0.0, 0.0)}
    bodies = (
        RigidBody(name="shaft", mass=mass, inertia=(ROD_ACROSS, ROD_ACROSS, ROD_ALONG), centre=(0, 0, 0.5), points=top),
        RigidBody(name="slider", mass=3.0, inertia=(SLIDER,) * 3, points=sides),
        *rods,
    )
    joints = (
        Revolute(name="spin", parent="ground.O", child="shaft.origin", angular_velocity=2.0 * pi),
        Prismatic(name="s", parent="shaft.origin", child="slider.origin", axis=(0, 0, 1), displacement=0.5),
        Revolute(name="A", parent="shaft.a", child="rod1.origin", axis=(0, -1, 0), angle=pi / 3),
        Revolute(name="B", parent="shaft.b", child="rod2.origin", axis=(0, 1, 0), angle=pi / 3),
    )
    spring = {key: GOVERNOR[key] for key in ("stiffness", "damping", "free_length")}
    forces = tuple(
        SpringDamper(name=f"k{i}", start=f"slider.{side}", end=f"rod{i}.mid", **spring)
        for i, side in ((1, "a"), (2, "b"))
    )
    mechanism = Mechanism(gravity=(0.0, 0.0, -9.81), ground=GROUND, bodies=bodies, joints=joints, forces=forces)
    return CoupledModel(name="governor", systems={"m": mechanism})


def governor_motion(times: Floats) -> Expected:
    """The angle of the rods and the height of the slider, with the angular momentum constant, by Radau IIA."""
    mass, ball, offset = GOVERNOR["mass"], GOVERNOR["ball"], GOVERNOR["offset"]

    def inertia(angle: float) -> tuple[float, float]:
        sine, cosine = np.sin(angle), np.cos(angle)
        arms = (mass, 0.5, offset + 0.5 * sine), (ball, 1.0, offset + sine)
        value = ROD_ALONG + SLIDER + 2.0 * sum(m * arm**2 for m, _, arm in arms)
        value += 2.0 * (ROD_ACROSS * sine**2 + ROD_ALONG * cosine**2)
        slope = 4.0 * sum(m * length * arm for m, length, arm in arms) * cosine
        return value, slope + 4.0 * (ROD_ACROSS - ROD_ALONG) * sine * cosine

    momentum = 2.0 * pi * inertia(pi / 3)[0]
    of_rods = 2.0 * (0.25 * mass + ball + ROD_ACROSS)

    def rates(_: float, y: Floats) -> list[float]:
        angle, height, speed, rise = y
        value, slope = inertia(angle)
        spin = momentum / value
        across, up = 0.5 * np.sin(angle), 1.0 - 0.5 * np.cos(angle) - height
        length = np.hypot(across, up)
        growth = (across * 0.5 * np.cos(angle) * speed + up * (0.5 * np.sin(angle) * speed - rise)) / length
        force = GOVERNOR["stiffness"] * (length - GOVERNOR["free_length"]) + GOVERNOR["damping"] * growth
        torque = 0.5 * spin**2 * slope - 2.0 * 9.81 * (0.5 * mass + ball) * np.sin(angle)
        torque -= force * (across * np.cos(angle) + up * np.sin(angle)) / length
        return [speed, rise, torque / of_rods, (2.0 * force * up / length - 3.0 * 9.81) / 3.0]

    y = integrated(rates, [pi / 3, 0.5, 0.0, 0.0], times, "Radau")
    return {"rod1.angle": y[0], "slider.displacement": y[1]}


class Slot(Joint):
    """A pin in a slot: slides along an axis and turns about a normal."""

    type: Literal["slot"] = "slot"
    axis: Direction = (1.0, 0.0, 0.0)
    normal: Direction = (0.0, 0.0, 1.0)
    displacement: float = 0.0
    velocity: float = 0.0
    angle: float = 0.0
    angular_velocity: float = 0.0

    @property
    def elements(self) -> tuple[JointElement, ...]:
        slide = JointElement(slides=True, axis=self.axis, name="", start=self.displacement, start_rate=self.velocity)
        hinge = JointElement(
            slides=False, axis=self.normal, name="", start=self.angle, start_rate=self.angular_velocity
        )
        return slide, hinge

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equations: on the axis, parallel to the normal."""
        return {**offsets(self.axis), **tilts(self.normal, self.orientation)}


def car_axis() -> CoupledModel:
    """The car axis of the Bari test set: two point masses on springs, of which one follows a bumpy road."""
    mass = 1e-2**2 * 10.0
    bodies = (
        RigidBody(name="axle", mass=1e-3, inertia=(1e-3,) * 3, points={"far": (1.0, 0.0, 0.0)}),
        RigidBody(
            name="chassis",
            mass=mass,
            inertia=(0.0, mass / 4.0, mass / 4.0),
            centre=(0.5, 0.0, 0.0),
            points={"right": (1.0, 0.0, 0.0)},
        ),
        RigidBody(name="wheel", mass=1e-3, inertia=(1e-3,) * 3),
    )
    joints = (
        Revolute(name="A", parent="ground.O", child="axle.origin", angular_velocity=1.0),
        Slot(
            name="S",
            parent="axle.origin",
            child="chassis.origin",
            axis=(0.0, 1.0, 0.0),
            displacement=0.5,
            angular_velocity=-1.0,
        ),
        Prismatic(name="P", parent="ground.W", child="wheel.origin", axis=(0.0, 1.0, 0.0), velocity=1.0),
        Slot(name="T", parent="wheel.origin", child="axle.far", cut=True),
    )
    springs = (("left", "ground.O", "chassis.origin"), ("right", "axle.far", "chassis.right"))
    mechanism = Mechanism(
        gravity=(0.0, -1.0, 0.0),
        ground={**GROUND, "W": (1.0, 0.0, 0.0)},
        bodies=bodies,
        joints=joints,
        forces=tuple(SpringDamper(name=n, start=a, end=b, stiffness=1.0, free_length=0.5) for n, a, b in springs),
        constraints=(PrescribedMotion(name="bump", joint="P"),),
        sensors=tuple(
            PointSensor(name=n, point=p, measures=("position",))
            for n, p in (("left_end", "chassis.origin"), ("right_end", "chassis.right"))
        ),
    )
    road = {"m.bump.position": SineSignal(amplitude=0.1, frequency=10.0 / (2.0 * pi))}
    return CoupledModel(name="car", systems={"m": mechanism}, signals=road)


CAR = {
    "left_end.position.x": 0.4934557842755629e-1,
    "left_end.position.y": 0.4969894602303324,
    "right_end.position.x": 1.041742524885400,
    "right_end.position.y": 0.3739110272652214,
}
"""Positions in m at 3 s; the published digits of the Bari test set."""


def car_end(_: Floats) -> Expected:
    return {name: np.array([place]) for name, place in CAR.items()}


TOP_MASS, TOP_INERTIA, TOP_SPIN = 15.0, (0.234375, 0.46875, 0.234375), (0.0, 150.0, -4.61538)


def heavy_top() -> CoupledModel:
    """The heavy top of the literature on Lie groups: 150 rad/s, its tip 1 m from the fixed point."""
    up = (0.0, 1.0, 0.0)
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -9.81),
        ground=GROUND,
        bodies=(RigidBody(name="top", mass=TOP_MASS, inertia=TOP_INERTIA, centre=up, points={"tip": up}),),
        joints=(Spherical(name="O", parent="ground.O", child="top.origin", angular_velocity=TOP_SPIN),),
        sensors=(PointSensor(name="tip", point="top.tip", measures=("position",)),),
    )
    return CoupledModel(name="top", systems={"m": mechanism})


def turning(y: Floats, moments: Callable[[Floats], Floats], inertia: Floats) -> list[float]:
    """Return the rates of a rotation matrix, by rows, and of angular velocities in the frame of the body (Euler)."""
    rotation, spin = y[:9].reshape(3, 3), y[9:]
    cross = np.array([[0.0, -spin[2], spin[1]], [spin[2], 0.0, -spin[0]], [-spin[1], spin[0], 0.0]])
    acceleration = (moments(rotation) - cross @ (inertia * spin)) / inertia
    return [*(rotation @ cross).ravel().tolist(), *acceleration.tolist()]


def top_motion(times: Floats) -> Expected:
    inertia = np.array(TOP_INERTIA) + TOP_MASS * np.array([1.0, 0.0, 1.0])

    def moments(rotation: Floats) -> Floats:
        weight = rotation.T @ np.array([0.0, 0.0, -9.81 * TOP_MASS])
        return np.array([weight[2], 0.0, -weight[0]])  # (0, 1, 0) × weight

    start = [*np.eye(3).ravel().tolist(), *TOP_SPIN]
    y = integrated(lambda _, y: turning(y, moments, inertia), start, times)
    return {f"tip.position.{axis}": y[3 * i + 1] for i, axis in enumerate("xyz")}


HANDLE = (1.0, 2.0, 3.0), (0.01, 5.0, 0.02)


def handle() -> CoupledModel:
    """A free body that turns about its intermediate axis, and flips over (Dzhanibekov)."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground=GROUND,
        bodies=(RigidBody(name="handle", mass=1.0, inertia=HANDLE[0]),),
        joints=(Free(name="free", parent="ground.O", child="handle.origin", angular_velocity=HANDLE[1]),),
        sensors=(OrientationSensor(name="gyro", point="handle.origin", axes="body"),),
    )
    return CoupledModel(name="handle", systems={"m": mechanism})


def handle_motion(times: Floats) -> Expected:
    start = [*np.eye(3).ravel().tolist(), *HANDLE[1]]
    y = integrated(lambda _, y: turning(y, lambda _: np.zeros(3), np.array(HANDLE[0])), start, times)
    return {f"gyro.angular_velocity.{axis}": y[9 + i] for i, axis in enumerate("xyz")}


BEND, SHAFT, MIDDLE, DRIVE = pi / 4, 0.01, 0.1, 10.0


def cardan() -> CoupledModel:
    """Two Cardan joints with a heavy shaft between them, which turns unevenly, and parallel shafts that run freely."""
    cosine, sine = float(np.cos(BEND)), float(np.sin(BEND))
    end = (1.0, 0.0, 0.0)
    bodies = tuple(
        RigidBody(name=name, mass=1.0, inertia=(axial, 1.0, 1.0), centre=(0.5, 0.0, 0.0), points={"end": end})
        for name, axial in (("drive", SHAFT), ("middle", MIDDLE), ("output", SHAFT))
    )
    y_axis, z_axis = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    first = {"axis": y_axis, "second_axis": z_axis, "angles": (BEND, 0.0)}
    second = {"axis": z_axis, "second_axis": y_axis, "angles": (0.0, -BEND)}
    joints = (
        Revolute(name="A", parent="ground.O", child="drive.origin", axis=end, angular_velocity=DRIVE),
        Universal(name="U1", parent="drive.end", child="middle.origin", **first),
        Universal(name="U2", parent="middle.end", child="output.origin", **second),
        Revolute(name="E", parent="ground.E", child="output.end", axis=end, cut=True),
    )
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={**GROUND, "E": (2.0 + cosine, 0.0, -sine)},
        bodies=bodies,
        joints=joints,
        sensors=(OrientationSensor(name="out", point="output.end", axes="body"),),
    )
    return CoupledModel(name="cardan", systems={"m": mechanism})


def cardan_motion(times: Floats) -> Expected:
    """The shafts turn alike; the middle one by cos β / (1 − sin² β sin² φ) of that, with constant energy."""

    def inertia(angle: Floats) -> Floats:
        ratio = np.cos(BEND) / (1.0 - np.sin(BEND) ** 2 * np.sin(angle) ** 2)
        return 2.0 * SHAFT + MIDDLE * ratio**2

    energy = inertia(np.zeros(1))[0] * DRIVE**2
    angle = integrated(lambda _, y: np.sqrt(energy / inertia(y)), [0.0], times)[0]
    return {"drive.angular_velocity": np.sqrt(energy / inertia(angle)), "drive.angle": angle}


@cache
def cases() -> tuple[FieldCase, ...]:
    """Return all of them."""
    chains = tuple(
        FieldCase(
            f"A02, N = {windows}",
            "IFToMM, one pendulum equation",
            lambda windows=windows: four_bars(windows),
            lambda times, windows=windows: four_bars_motion(windows, times),
            10.0,
        )
        for windows in (2, 10, 32, 40)
    )
    return (
        FieldCase("A01", "IFToMM, pendulum equation", pendulum, pendulum_motion, 10.0),
        *chains,
        FieldCase("A03", "IFToMM and Bari, 16 digits", andrews, andrews_end, 0.03),
        FieldCase("A04", "IFToMM, path of the loop by SciPy", bricard, bricard_end, 9.0),
        FieldCase("A05", "IFToMM, three equations by SciPy", governor, governor_motion, 10.0),
        FieldCase("slider-crank", "IFToMM, maximal coordinates by SciPy", slider_crank, slider_end, 5.0),
        FieldCase("car axis", "Bari, 16 digits", car_axis, car_end, 3.0),
        FieldCase("heavy top", "Lie groups, Euler's equations by SciPy", heavy_top, top_motion, 1.0),
        FieldCase("Dzhanibekov", "Euler's equations by SciPy", handle, handle_motion, 20.0),
        FieldCase("double Cardan", "closed form of the joints, one equation", cardan, cardan_motion, 10.0),
        *contact_cases(),
        *hydraulic_cases(),
    )
