"""Mechanisms cut at joints: model exchange, co-simulation, and the usual spring and damper between the halves.

Run `python benchmarks/coupling/joints.py [--quick]`; what comes of it is in `docs/studies/coupling.md`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parents[2] / "tests"))
sys.path.append(str(Path(__file__).parents[2] / "examples"))

from cosim.joined_mechanisms import (
    HANDLE,
    TIGHT,
    bennett_halves,
    export_half,
    four_bar_halves,
    four_bar_start,
    four_bar_whole,
    handle,
    model,
)
from excavator import MACHINE
from foreign_fmus import build_c_unit

from mbsfmu import (
    Connection,
    Cosimulation,
    CosimulationError,
    CoupledJoint,
    CoupledModel,
    Free,
    JointHandle,
    JointSpringDamper,
    Mechanism,
    PointSensor,
    Prismatic,
    Revolute,
    RigidBody,
    SpringDamper,
)
from mbsfmu.model.block import Block
from mbsfmu.modelling import Parameter, Quantity
from mbsfmu.models import loop_8

Floats = NDArray[np.float64]

STEPS = (4e-3, 2e-3, 1e-3)
STOP = 0.5
LONG, SHORT_RUNS = 0.1, 20
"""Processor time of a run in s, from which on few are made; else so many."""
STIFFNESSES = (1e5, 1e6, 1e7)
"""In N/m, of springs in the place of a joint."""
DAMPING_RATIO, REDUCED_MASS = 0.5, 0.7
"""Of such a spring; the mass in kg, roughly that of both halves at the pin."""
PIN = f"revolute:left.{HANDLE}=right.{HANDLE}:0,0,1"


@dataclass(frozen=True)
class Cut:
    """A mechanism and its parts.

    Attributes
    ----------
    whole
        The monolithic model, with a sensor `seen` that a part also has.
    parts, joints
        The parts, and what joins them.
    seen
        Which part has the sensor, and what the sensor is called there.
    """

    whole: CoupledModel
    parts: Sequence[CoupledModel]
    joints: Sequence[str]
    seen: str


def seen(point: str) -> PointSensor:
    """Return the sensor that whole and parts are compared by."""
    return PointSensor(name="seen", point=point)


def together(*handles: Mapping[str, Any]) -> dict[str, Any]:
    """Return the forces and sensors of several handles."""
    return {kind: sum((each[kind] for each in handles), ()) for kind in ("forces", "sensors")}


def four_bar() -> Cut:
    """Return the planar four-bar of the tests."""
    whole = with_sensor(four_bar_whole().systems["whole"], "rocker.end")
    return Cut(model("whole", whole), four_bar_halves(turns=True), (PIN,), "right.seen")


def with_sensor(mechanism: Any, point: str) -> Mechanism:
    """Return a mechanism with the sensor that it is compared by."""
    return Mechanism(
        ground=mechanism.ground,
        gravity=mechanism.gravity,
        bodies=mechanism.bodies,
        joints=mechanism.joints,
        forces=mechanism.forces,
        sensors=(seen(point),),
    )


def loop_8_cut_twice() -> Cut:
    """Return the loop of eight links in three parts, of which the middle one is free."""
    whole = loop_8().systems["mechanism"]
    turn = 2.0 * np.pi / 9.0
    bodies = whole.bodies
    at = np.array(whole.ground["A"]) + sum(
        np.array([np.cos(turn - np.pi + k * turn), np.sin(turn - np.pi + k * turn), 0.0]) for k in range(3)
    )
    left = Mechanism(
        ground=whole.ground, bodies=bodies[:3], joints=whole.joints[:3], **handle("link_3.end", turns=False)
    )
    free = Free(
        name="free", parent="ground.A", child="link_4.origin", displacement=tuple(at - np.array(whole.ground["A"])),
        angles=(0.0, 0.0, 4.0 * turn - np.pi),
    )  # fmt: skip
    middle = Mechanism(
        ground=whole.ground,
        bodies=bodies[3:5],
        joints=(free, whole.joints[4]),
        **together(
            handle("link_4.origin", turns=False, suffix="_a"),
            handle("link_5.end", turns=False, suffix="_b"),
        ),
    )
    right = Mechanism(
        ground=whole.ground,
        bodies=bodies[5:],
        joints=(
            Revolute(name="joint_9", parent="ground.B", child="link_8.end", angle=8.0 * turn - np.pi),
            Revolute(name="joint_8", parent="link_8.origin", child="link_7.end", angle=-turn),
            Revolute(name="joint_7", parent="link_7.origin", child="link_6.end", angle=-turn),
        ),
        **handle("link_6.origin", turns=False),
    )
    joints = ("spherical:left.load+seen=middle.load_a+seen_a", "spherical:middle.load_b+seen_b=right.load+seen")
    return Cut(
        model("whole", with_sensor(whole, "link_3.end")),
        (model("left", left), model("middle", middle), model("right", right)),
        joints,
        "left.seen",
    )


def bennett_cut() -> Cut:
    """Return Bennett's linkage, cut at its third hinge: two freedoms and one, five constraints."""
    whole, parts, joint = bennett_halves()
    return Cut(whole, parts, (joint,), "left.seen")


def excavator() -> Cut:
    """Return the excavator, slewing, with springs for its oil, cut between boom and stick.

    The stick's cylinder is a barrel on the boom and a rod in it; its rod's eye is the second joint between the halves.
    """
    slewing, boom, stick = 0.3, np.radians(10.0), np.radians(-50.0)
    house = {body.name: body for body in MACHINE.bodies}

    def place(angle: float, point: Sequence[float]) -> np.ndarray:
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ np.array(point[:2])

    pin = np.array(house["house"].points["boom"].position[:2])
    foot = pin + place(boom, house["boom"].points["stick_cylinder"].position)
    knuckle = pin + place(boom, house["boom"].points["stick"].position)
    eye = knuckle + place(stick, house["stick"].points["cylinder"].position)
    along_cylinder, length = np.arctan2(*(eye - foot)[::-1]), float(np.hypot(*(eye - foot)))
    barrel = RigidBody(name="barrel", mass=150.0, inertia=(1.0, 30.0, 30.0), centre=(0.6, 0.0, 0.0))
    rod = RigidBody(
        name="rod", mass=80.0, inertia=(0.5, 15.0, 15.0), centre=(-0.6, 0.0, 0.0), points={"eye": (0.0, 0.0, 0.0)}
    )
    cylinder = (
        Revolute(name="foot", parent="boom.stick_cylinder", child="barrel.origin", angle=float(along_cylinder - boom)),
        Prismatic(name="stroke", parent="barrel.origin", child="rod.origin", axis=(1.0, 0.0, 0.0), displacement=length),
    )
    slew, lift, joint, *linkage = MACHINE.joints
    slew = Revolute(name="slew", parent=slew.parent, child=slew.child, axis=slew.axis, angular_velocity=slewing)
    oil = {"stiffness": 1e7, "damping": 3e4}
    left_forces = (
        SpringDamper(name="lift", start="house.boom_cylinder", end="boom.cylinder", free_length=2.45, **oil),
        JointSpringDamper(name="oil", joint="stroke", free_coordinate=length, **oil),
    )
    right_forces = (
        SpringDamper(name="bucket_cylinder", start="stick.bucket_cylinder", end="rocker.end", free_length=1.9, **oil),
    )
    left_bodies = (house["house"], house["boom"], barrel, rod)
    right_bodies = tuple(house[name] for name in ("stick", "bucket", "rocker", "link"))
    whole = Mechanism(
        ground=MACHINE.ground,
        bodies=left_bodies + right_bodies,
        joints=(
            slew,
            lift,
            *cylinder,
            joint,
            *linkage,
            Revolute(name="top", parent="rod.eye", child="stick.cylinder", cut=True),
        ),
        forces=left_forces + right_forces,
        sensors=(seen("boom.stick"),),
    )
    pinned, eyed = handle("boom.stick"), handle("rod.eye", turns=False, suffix="_b")
    both = together(pinned, eyed)
    left = Mechanism(
        ground=MACHINE.ground,
        bodies=left_bodies,
        joints=(slew, lift, *cylinder),
        forces=left_forces + both["forces"],
        sensors=both["sensors"],
    )
    free = Free(
        name="free",
        parent="ground.slew",
        child="stick.origin",
        displacement=(*knuckle, 0.0),
        velocity=(0.0, 0.0, -slewing * float(knuckle[0])),
        angles=(0.0, 0.0, float(stick)),
        angular_velocity=(0.0, slewing, 0.0),
    )
    both = together(handle("stick.origin"), handle("stick.cylinder", turns=False, suffix="_b"))
    right = Mechanism(
        ground=MACHINE.ground,
        bodies=right_bodies,
        joints=(free, *linkage),
        forces=right_forces + both["forces"],
        sensors=both["sensors"],
    )
    return Cut(
        model("whole", whole),
        (model("left", left), model("right", right)),
        (PIN, "spherical:left.load_b+seen_b=right.load_b+seen_b"),
        "left.seen",
    )


CUTS: dict[str, Callable[[], Cut]] = {
    "four-bar, at a pin": four_bar,
    "loop-8, twice": loop_8_cut_twice,
    "Bennett's linkage, at a hinge": bennett_cut,
    "excavator, between boom and stick": excavator,
}


class PinSpring(Block):
    """Spring and damper between two points in one direction, `stiffness` in N/m and `damping` in N s/m."""

    type: Literal["pin-spring"] = "pin-spring"
    stiffness: Annotated[float, Parameter("N/m", "stiffness")]
    damping: Annotated[float, Parameter("N.s/m", "damping")]

    def inputs(self) -> tuple[Quantity, ...]:
        """Return positions and velocities of both points."""
        measured = (("position", "m"), ("velocity", "m/s"))
        return tuple(Quantity(f"{what}_{side}", unit, 0.0) for what, unit in measured for side in (1, 2))

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the force on the second point."""
        return (Quantity("force", "N"),)

    def evaluate_outputs(self, now: Any) -> Mapping[str, Any]:
        """Return the force."""
        stretch, rate = (now[f"{what}_1"] - now[f"{what}_2"] for what in ("position", "velocity"))
        return {"force": now["stiffness"] * stretch + now["damping"] * rate}


def sprung(stiffness: float) -> tuple[CoupledModel, list[Connection]]:
    """Return the right half of the four-bar with a spring of its stiffness in N/m at the pin, and the connections."""
    damping = 2.0 * DAMPING_RATIO * np.sqrt(stiffness * REDUCED_MASS)
    half = four_bar_halves()[1].systems["right"]
    inner, outer = [], []
    for axis in "xy":
        inner += [(f"right.seen.{what}.{axis}", f"{axis}.{what}_2") for what in ("position", "velocity")]
        inner.append((f"{axis}.force", f"right.load.force.{axis}"))
        outer += [
            Connection(("left", f"seen.{what}.{axis}"), ("right", f"{axis}.{what}_1"))
            for what in ("position", "velocity")
        ]
        outer.append(Connection(("right", f"{axis}.force"), ("left", f"load.force.{axis}"), factor=-1.0))
    springs = {axis: PinSpring(stiffness=stiffness, damping=float(damping)) for axis in "xy"}
    return CoupledModel(name="sprung", systems={"right": half, **springs}, connections=inner, stop_time=STOP), outer


# -- tables --------------------------------------------------------------------------------------------------------

BODIES = {"crank": "left", "coupler": "left", "rocker": "right"}


def angles(result: Any, names: Mapping[str, str]) -> Floats:
    """Return angles and angular velocities of the four-bar at the end."""
    return np.array(
        [result[f"{names[body]}{body}.{kind}"][-1] for body in BODIES for kind in ("angle", "angular_velocity")]
    )


def row(*cells: object) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def heading(*cells: str) -> None:
    """Print the head of a table."""
    print()
    row(*cells)
    row(*["---"] * len(cells))


def timed(quick: bool, source: Any, step: float, **options: Any) -> tuple[Any, float]:
    """Return a result, and the least processor time in ms that its steps take: of two runs, or more short ones.

    Loading is left out, and so are the first two steps, in which joints find their Jacobian.
    """
    result, least = run_once(source, step, options)
    for _ in range(0 if quick else 1 if least > LONG else SHORT_RUNS):
        least = min(least, run_once(source, step, options)[1])
    return result, 1e3 * least


def run_once(source: Any, step: float, options: Mapping[str, Any]) -> tuple[Any, float]:
    """Return a result, and the processor time in s that its steps take, by all but the first two."""
    with Cosimulation(source, step=step, stop=STOP, **options) as run:
        for _ in range(2):
            run.step()
        begin = time.process_time()
        result = run.run()
        seconds = time.process_time() - begin
    return result, seconds * result.steps / (result.steps - 2)


def apart(result: Any, first: str, second: str) -> float:
    """Return the largest distance of two handles in a direction."""
    return max(float(np.max(np.abs(result[f"{first}.{axis}"] - result[f"{second}.{axis}"]))) for axis in "xyz")


def compare_couplings(folder: Path, steps: Sequence[float], quick: bool) -> None:
    """Print errors and costs of the four-bar, cut at its pin, in all couplings."""
    whole = four_bar().whole
    tight = whole.simulation(**TIGHT).run(STOP)
    exact = angles(tight, dict.fromkeys(BODIES, ""))
    halves = {body: f"{unit}." for body, unit in BODIES.items()}
    fmus = [export_half(half, folder / "four-bar", kind=("cs", "me")) for half in four_bar_halves(turns=True)]
    alone = export_half(whole, folder / "four-bar", solver="trapezoidal", step=1e-3)
    heading("four-bar", "step", "error", "gap [m]", "order", "cost [ms]", "ratio")
    monolithic: dict[float, float] = {}

    def show(label: str, step: float, before: float, source: Any, names: Mapping[str, str], **options: Any) -> float:
        """Print a row; times over that of the monolithic run, which comes first, tell the cost of coupling."""
        told = "" if options.get("model_exchange") else f"{1e3 * step:g} ms"
        try:
            result, cost = timed(quick, source, step, **options)
        except CosimulationError:
            row(label, told, "fails", "", "", "", "")
            return 0.0
        error = float(np.max(np.abs(angles(result, names) - exact)))
        if error > 1.0:
            row(label, told, "diverges", "", "", "", "")
            return 0.0
        right = names["rocker"]
        gap = "" if names["crank"] == right else f"{apart(result, 'left.seen.position', f'{right}seen.position'):.0e}"
        if not gap:
            monolithic.setdefault(step, cost)
        row(label, told, f"{error:.1e}", gap, order(before, error), *costs(cost, monolithic.get(step)))
        return error

    before = 0.0
    for step in steps:
        given = {"whole.solver.step": step}
        label = "monolithic, trapezoidal rule"
        before = show(label, step, before, [alone], dict.fromkeys(BODIES, "whole."), parameters=given)
    for solver, tolerance in (("dop853", 1e-10), ("radau", 1e-8)):
        options = {"model_exchange": "all", "unit_solver": solver, "unit_tolerance": tolerance}
        label = f"model exchange, `{solver}`, tolerance {tolerance:g}"
        show(label, 1e-2, 0.0, fmus, halves, joints=[PIN], **options)
    before = 0.0
    for step in steps:
        given = {f"{name}.solver.step": 0.5 * step for name in ("left", "right")}
        before = show("co-simulation, joint", step, before, fmus, halves, joints=[PIN], parameters=given)
    compare_foreign(folder, fmus[0], steps, tight, quick, monolithic)
    for stiffness in STIFFNESSES[:: 2 if quick else 1]:
        right, connections = sprung(stiffness)
        parts = [fmus[0], f"right={export_half(right, folder / f'sprung-{stiffness:g}', layout='monolithic')}"]
        for algorithm in ("gauss-seidel-linear", "newton-linear"):
            for step in steps if quick else (*steps[::2], 1e-4):
                given = {f"{name}.solver.step": min(step, 2.5e-4) for name in ("left", "right")}
                label = f"spring of {stiffness:.0e} N/m, `{algorithm}`"
                options = {"algorithm": algorithm, "parameters": given, "connections": connections}
                show(label, step, 0.0, parts, halves, **options)


def costs(cost: float, alone: float | None) -> tuple[str, str]:
    """Return a cost in ms, and how many times that of the monolithic run it is, where there is one."""
    ratio = "" if alone is None else f"{cost / alone:.2g}" if cost < 10.0 * alone else f"{cost / alone:.0f}"
    return f"{cost:.2g}" if cost < 10.0 else f"{cost:.0f}", ratio


def order(before: float, error: float) -> str:
    """Return the order of errors at a step and at its half; nothing for the first one."""
    return f"{np.log2(before / error):.2f}" if before else ""


def compare_foreign(
    folder: Path, left: Path, steps: Sequence[float], tight: Any, quick: bool, monolithic: Mapping[float, float]
) -> None:
    """Print the rows of the four-bar whose rocker is of others and holds its inputs."""
    foreign = build_c_unit("rocker", folder)
    angle, rate = four_bar_start()["rocker"]
    start = {"angle": angle, "rate": rate, "mass": 2.5, "length": 0.8, "pivot": 1.0}
    theirs = JointHandle("rocker", force=("fx", "fy", None), position=("x", "y", None), velocity=("vx", "vy", None))
    joint = CoupledJoint("spherical", JointHandle.parse("left.load+seen"), theirs)
    before = 0.0
    for step in steps:
        given = {**{f"rocker.{name}": value for name, value in start.items()}, "left.solver.step": 0.5 * step}
        result, cost = timed(quick, [left, foreign], step, joints=[joint], parameters=given)
        error = max(
            abs(result["rocker.angle"][-1] - tight["rocker.angle"][-1]),
            abs(result["rocker.rate"][-1] - tight["rocker.angular_velocity"][-1]),
        )
        gap = max(
            float(np.max(np.abs(result[f"left.seen.position.{axis}"] - result[f"rocker.{axis}"]))) for axis in "xy"
        )
        row(
            "co-simulation, rocker of others",
            f"{1e3 * step:g} ms",
            f"{error:.1e}",
            f"{gap:.0e}",
            order(before, error),
            *costs(cost, monolithic.get(step)),
        )
        before = error


def compare_mechanisms(folder: Path, steps: Sequence[float], quick: bool) -> None:
    """Print errors of other mechanisms, by model exchange and by co-simulation."""
    heading("mechanism", "coupling", "step", "error [m]", "gap [m]", "order", "cost [ms]", "ratio")
    for name, make in list(CUTS.items())[1 :: 2 if quick else 1]:
        compare_mechanism(name, make(), folder / name.split(",")[0], steps, quick)


def compare_mechanism(name: str, cut: Cut, folder: Path, steps: Sequence[float], quick: bool) -> None:
    """Print the rows of one mechanism."""
    tight = cut.whole.simulation(**TIGHT).run(STOP)
    exact = np.array([tight[f"seen.position.{axis}"][-1] for axis in "xyz"])
    fmus = [export_half(part, folder, kind=("cs", "me")) for part in cut.parts]
    alone = export_half(cut.whole, folder, solver="trapezoidal", step=1e-3)
    ends = [_ends(CoupledJoint.parse(joint)) for joint in cut.joints]
    monolithic: dict[float, float] = {}

    def show(label: str, step: float, before: float, source: Any, sensor: str, **options: Any) -> float:
        result, cost = timed(quick, source, step, **options)
        found = np.array([result[f"{sensor}.position.{axis}"][-1] for axis in "xyz"])
        error = float(np.max(np.abs(found - exact)))
        gap = ""
        if source is fmus:
            gap = f"{max(apart(result, *end) for end in ends):.0e}"
        else:
            monolithic[step] = cost
        told = "" if options.get("model_exchange") else f"{1e3 * step:g} ms"
        row(name, label, told, f"{error:.1e}", gap, order(before, error), *costs(cost, monolithic.get(step)))
        return error

    before = 0.0
    for step in steps:
        given = {"whole.solver.step": step}
        before = show("monolithic", step, before, [alone], "whole.seen", parameters=given)
    exchanged: dict[str, Any] = {"model_exchange": "all", "unit_solver": "dop853", "unit_tolerance": 1e-10}
    show("model exchange", 1e-2, 0.0, fmus, cut.seen, joints=cut.joints, **exchanged)
    before = 0.0
    for step in steps:
        given = {f"{part.name}.solver.step": 0.5 * step for part in cut.parts}
        before = show("co-simulation", step, before, fmus, cut.seen, joints=cut.joints, parameters=given)


def _ends(joint: CoupledJoint) -> list[str]:
    """Return the sensors of position of a joint."""
    return [
        f"{end.unit}.{next(each for each in end.prefixes if each.startswith('seen'))}.position"
        for end in (joint.first, joint.second)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer steps and mechanisms, one run each")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as scratch:
        compare_couplings(Path(scratch), STEPS[:1] if quick else STEPS, quick)
        compare_mechanisms(Path(scratch), STEPS[:1] if quick else STEPS, quick)
