"""Joints closed in compiled code: the results of Python to the last bit, and motions by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.both_ways import Failures, Run
from cosim.joined_mechanisms import (
    AXIS,
    HANDLE,
    PIN,
    bennett_halves,
    export_half,
    four_bar_thirds,
    inside,
    sliding_pair,
)
from cosim.test_joined_mechanisms import half_foreign, rocker
from foreign_fmus import compiler

from mbsfmu import Connection, Cosimulation, CoupledJoint, JointHandle, StepSignal
from mbsfmu.cosim.compiled.joint_differences import find_differences
from mbsfmu.cosim.fmus.fmi3 import Fmi3Instance
from mbsfmu.cosim.joints.joint_closing import JointClosing

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

GRAVITY, LOWER, UPPER = 9.81, 2.0, 3.0
BAR = f"fixed:lower.{HANDLE}=upper.{HANDLE}"
DAMPING = 40.0
DAMPER = Connection(("upper", "seen.velocity.y"), ("lower", "push.force.y"), factor=-DAMPING, convert_units=False)


@pytest.fixture(scope="module")
def sliding_3(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Masses of 2 and 3 kg on one guide, as FMUs of FMI 3.0."""
    folder = tmp_path_factory.mktemp("sliding-3")
    return [export_half(half, folder, fmi=3) for half in sliding_pair(LOWER, UPPER)]


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("kind", ["spherical", "revolute", "prismatic", "fixed"])
def test_every_kind(chained: list[Path], both: Run, made: list[int], kind: str, algorithm: str) -> None:
    """In space; the last step is a shorter one."""
    axis = f":{','.join(map(str, AXIS))}" if kind in ("revolute", "prismatic") else ""
    result = both(
        chained, joints=[f"{kind}:rod.{HANDLE}=blob.{HANDLE}{axis}"], step=5e-3, stop=0.102, algorithm=algorithm,
        parameters=inside("rod", "blob", step=2.5e-3),
    )  # fmt: skip
    assert sum(made) == result.steps == 21


def test_joints_of_three_fmus(tmp_path: Path, both: Run, made: list[int]) -> None:
    """Each multiplier moves two of them; the middle one is free, and has two handles.

    Gaps are held to the tolerances of their joints, and so is what opens in a step.
    """
    fmus = [export_half(part, tmp_path) for part in four_bar_thirds()]
    joints = ["spherical:crank.load+seen=coupler.load_a+seen_a", "spherical:coupler.load_b+seen_b=rocker.load+seen"]
    result = both(fmus, joints=joints, step=2e-3, stop=0.1, parameters=inside("crank", "coupler", "rocker", step=1e-3))
    assert sum(made) == 50
    for axis in "xy":
        np.testing.assert_allclose(
            result[f"coupler.seen_b.position.{axis}"], result[f"rocker.seen.position.{axis}"], atol=1e-9
        )
    tight = [
        replace(CoupledJoint.parse(joint), tolerance=limit) for joint, limit in zip(joints, (1e-6, 1e-9), strict=True)
    ]
    with Cosimulation(fmus, joints=tight, step=2e-3, stop=0.1) as run:
        np.testing.assert_array_equal(run._algorithm._limits, np.repeat([1e-6, 1e-9, 1e-6, 1e-9], 3))


def test_redundant_components(tmp_path: Path, both: Run, made: list[int]) -> None:
    _, parts, joint = bennett_halves()
    fmus = [export_half(part, tmp_path) for part in parts]
    both(fmus, joints=[joint], step=4e-3, stop=0.2, parameters=inside("left", "right", step=2e-3))
    assert sum(made) == 50


def test_fmus_that_hold_their_inputs(
    pinned: list[Path], foreign: Callable[[str], Path], both: Run, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cosim.test_joined_mechanisms.cosimulate", both)
    half_foreign(pinned, foreign, 4e-3, rocker(), rates={"rocker": 3})
    assert sum(made) == 125


@pytest.mark.parametrize("options", [{"algorithm": "jacobi"}, {"order": ["upper", "lower"]}], ids=str)
@pytest.mark.parametrize("extrapolation", ["zero", "linear", "quadratic", "derivatives"])
def test_a_damper_beside_the_joint(
    sliding: list[Path], both: Run, made: list[int], options: dict[str, Any], extrapolation: str
) -> None:
    """M dv/dt = −M g − c v, and the joint carries m₂ (dv/dt + g). The damper is a connection, whose error decides."""
    result = both(
        sliding, joints=[BAR], connections=[DAMPER], step=4e-3, stop=0.4, extrapolation=extrapolation,
        parameters=inside("lower", "upper", step=1e-3), **options,
    )  # fmt: skip
    assert 95 <= sum(made) <= 100
    mass, time = LOWER + UPPER, result.time
    velocity = -mass * GRAVITY / DAMPING * (1.0 - np.exp(-DAMPING / mass * time))
    limit = 0.06 if extrapolation == "zero" else 1e-3
    np.testing.assert_allclose(result["lower.seen.velocity.y"], velocity, atol=limit)
    late = len(time) - 1
    carried = -UPPER * DAMPING * 0.5 * (velocity[late] + velocity[late - 1]) / mass
    assert result["reaction.load.force.y"][late] == pytest.approx(carried, rel=0.02)


def test_energy_correction(sliding: list[Path], both: Run, made: list[int]) -> None:
    """With it held inputs are about as exact as straight ones."""
    result = both(
        sliding, joints=[BAR], connections=[DAMPER], step=4e-3, stop=0.4, energy_correction=True,
        parameters=inside("lower", "upper", step=1e-3),
    )  # fmt: skip
    assert sum(made) == 100
    velocity = -(LOWER + UPPER) * GRAVITY / DAMPING * (1.0 - np.exp(-DAMPING / (LOWER + UPPER) * result.time))
    np.testing.assert_allclose(result["upper.seen.velocity.y"][20:], velocity[20:], atol=6e-3)


@pytest.mark.parametrize("extrapolation", ["zero", "linear"])
def test_signals_and_others(
    sliding: list[Path], halves_exact: list[Path], both: Run, made: list[int], extrapolation: str
) -> None:
    """A push that jumps, beside FMUs without a joint: v = (F/M − g) t before the jump, and with twice F behind it."""
    result = both(
        [*sliding, *halves_exact], joints=[BAR], step=1e-2, stop=0.3, extrapolation=extrapolation,
        inputs={"lower.push.force.y": StepSignal(times=(0.123,), values=(200.0,), initial=100.0)},
    )  # fmt: skip
    assert 25 < sum(made) <= 31
    mass = LOWER + UPPER
    gained = 100.0 / mass * (result.time + np.maximum(result.time - 0.123, 0.0))
    np.testing.assert_allclose(result["upper.seen.velocity.y"], gained - GRAVITY * result.time, atol=1e-8)
    behind = result.time > 0.123 + 1e-9
    np.testing.assert_allclose(result["reaction.load.force.y"][behind], UPPER * 200.0 / mass, rtol=1e-6)


def test_steps_in_which_a_signal_jumps(
    chained: list[Path], halves_exact: list[Path], both: Run, made: list[int]
) -> None:
    """Steps in which a signal jumps are made by the same code as all others, and both forms come to the same."""
    result = both(
        [*chained, *halves_exact], joints=[f"fixed:rod.{HANDLE}=blob.{HANDLE}"], step=5e-3, stop=0.15,
        extrapolation="linear", parameters=inside("rod", "blob", step=2.5e-3),
        inputs={"one.force": StepSignal(times=(0.05, 0.1), values=(5.0, 2.0))},
    )  # fmt: skip
    assert sum(made) == result.steps == 30


@pytest.mark.parametrize("slow", [0.3, 1e-9])
def test_events_inside_of_trials(
    sliding_3: list[Path], both: Run, made: list[int], monkeypatch: pytest.MonkeyPatch, slow: float
) -> None:
    """FMUs of FMI 3.0 that name an event inside of a step, in trials and in differences; nothing jumps there."""
    monkeypatch.setattr("mbsfmu.cosim.joints.joint_closing._SLOW", slow)
    leave, met = Fmi3Instance._leave_event_mode, list[float]()

    def naming(self: Fmi3Instance) -> None:
        leave(self)
        if self.name == "lower":
            met.append(self.time)
            # The first one is in the first step, in which the Jacobian is made; `time` is that of the FMU's step.
            self.report.next_event = np.floor(self.time / 0.03 + 1.01) * 0.03 + 1e-3 if self.steps else 0.004

    monkeypatch.setattr(Fmi3Instance, "_leave_event_mode", naming)
    result = both(
        sliding_3, joints=[BAR.replace("fixed", "spherical")], step=1e-2, stop=0.2,
        parameters={"lower.push.force.y": 100.0},
    )  # fmt: skip
    assert sum(made) == result.steps == 20
    assert len(met) > 10
    velocity = (100.0 / (LOWER + UPPER) - GRAVITY) * result.time
    np.testing.assert_allclose(result["upper.seen.velocity.y"], velocity, atol=1e-8)


@pytest.mark.parametrize("renews", [False, True])
def test_compiled_jacobians_are_those_of_python(
    pinned: list[Path], both: Run, made: list[int], monkeypatch: pytest.MonkeyPatch, renews: bool
) -> None:
    """Made at the start, or anew where nothing is learned and all is slow; compiled code makes the differences."""
    if renews:
        monkeypatch.setattr("mbsfmu.cosim.joints.joint_closing._SLOW", 1e-9)
        monkeypatch.setattr("mbsfmu.cosim.joints.joint_closing._TURNED", -1.0)
    in_python = list[int]()
    monkeypatch.setattr(
        "mbsfmu.cosim.joints.joint_closing.find_differences",
        lambda table: (in_python.append(1), find_differences(table))[1],
    )
    given: dict[str, Any] = {"joints": [PIN], "step": 4e-3, "stop": 0.4}
    given["parameters"] = inside("left", "right", step=2e-3)
    both(pinned, **given)
    assert sum(made) == 100
    before = len(in_python)
    assert before > 3 if renews else before <= 3
    with Cosimulation(pinned, **given) as run:
        run.run()
        assert isinstance(run._algorithm, JointClosing)
        assert run._algorithm.jacobians == before
        begins = [member.instance.earliest_state(None) for member in run.coupling.members]
        assert begins == pytest.approx([0.396, 0.396])  # FMUs may be brought back to the start of the last step
    assert len(in_python) == before


def test_a_joint_that_cannot_be_closed(pinned: list[Path], failures: Failures, made: list[int]) -> None:
    """The sentence, and the rows before, are those of Python."""
    handles = JointHandle.parse("left.load+seen"), JointHandle.parse("right.load+seen")
    joint = CoupledJoint("spherical", *handles, tolerance=1e-17)
    errors = failures(pinned, joints=[joint], step=4e-3, stop=0.1, parameters=inside("left", "right", step=2e-3))
    assert str(errors[0]) == str(errors[1])
    assert "does not close in the step from t = 0 s" in str(errors[1])
    alone = {**inside("left", "right", step=4e-3)}
    errors = failures(pinned, joints=[PIN], step=4e-3, stop=0.1, parameters=alone, rates={"left": 1, "right": 1})
    assert str(errors[0]) == str(errors[1])
    assert "left and right integrate a wrench by its mean alone" in str(errors[1])


def test_events_of_fmus_beside(sliding: list[Path], foreign: Callable[[str], Path], both: Run, made: list[int]) -> None:
    """A step of an FMU that is completed by Python is one turn."""
    result = both([*sliding, foreign("ticking")], joints=[BAR], step=2e-2, stop=1.0)
    assert sum(made) == 50
    assert result["ticking.count"][-1] == 3


def test_an_fmu_beside_that_ends_the_run(
    sliding: list[Path], foreign: Callable[[str], Path], both: Run, made: list[int]
) -> None:
    result = both([*sliding, foreign("ending")], joints=[BAR], step=1e-2, stop=5.0)
    assert result.time[-1] < 5.0
    assert any("ended the run" in note for note in result.statistics.notes)
