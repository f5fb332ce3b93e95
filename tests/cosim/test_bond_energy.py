"""Energy that coupling brings in against what the units then have; what a correction makes up for."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, MASSES, START, STIFFNESSES, LinearSystem, export_linear, halves
from cosim.oscillator_theory import step_map

import mbsfmu
from mbsfmu import CosimulationResult, cosimulate
from mbsfmu.cosim.coupling.power_bonds import find_bonds

STOP = 1.5


def energy(result: CosimulationResult) -> np.ndarray:
    """Energy of both masses and all three springs in J; the coupling's force tells its spring's stretch."""
    kinetic = sum(0.5 * mass * result[f"{unit}.speed"] ** 2 for unit, mass in zip(("one", "two"), MASSES, strict=True))
    springs = 0.5 * STIFFNESSES[0] * result["one.position"] ** 2 + 0.5 * result["two.force"] ** 2 / STIFFNESSES[1]
    whole: np.ndarray = kinetic + springs
    return whole


@pytest.fixture(scope="module")
def undamped(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("undamped")
    return [export_linear(system, folder, "rk4", 1e-3) for system in halves(damping=0.0)]


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_residual_energy_is_what_the_units_gain(undamped: list[Path], algorithm: str) -> None:
    """Nothing is lost inside the units: what they have more at the end is what the bond says was brought in."""
    result = cosimulate(
        undamped, connections=CONNECTIONS, algorithm=algorithm, extrapolation="zero", step=2e-3, stop=STOP
    )
    (residual,) = result.energy_residual.values()
    gained = energy(result)
    assert abs(gained[-1] - gained[0]) > 1e-4 * gained[0]
    assert residual == pytest.approx(gained[-1] - gained[0], rel=0.02)


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_a_comparison_tells_the_energy_of_each_bond(undamped: list[Path], algorithm: str) -> None:
    """The drift of the total energy follows from powers of the exact map from one communication point to the next."""
    steps = (4e-3, 2e-3)
    made = mbsfmu.compare(undamped, connections=CONNECTIONS, steps=steps, algorithms=[algorithm], stop=STOP, workers=1)
    (m1, m2), (k1, k2) = MASSES, STIFFNESSES
    weights = 0.5 * np.array([k1, m1, m2, k2])
    start = np.array([START[0], START[1], START[3], 0.0])
    for run in made.runs:
        end = np.linalg.matrix_power(step_map(algorithm, "zero", run.step, damping=0.0), round(STOP / run.step)) @ start
        drift = weights @ (end**2 - start**2)
        ((bond, energy),) = run.bonds.items()
        assert energy.residual == pytest.approx(drift, rel=0.03)
        assert energy.largest >= abs(energy.residual)
        assert energy.share == pytest.approx(energy.largest / energy.exchanged)
        assert run.to_dict()["bonds"][bond]["residual"] == energy.residual


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A mass of 2 kg that two springs of 20 N/m hold, which are one FMU."""
    zero = np.zeros
    mass = LinearSystem(
        "mass", [zero((1, 1)), np.full((1, 2), 0.5), np.ones((2, 1)), zero((2, 2))], [1.0],
        {"left.force": "N", "right.force": "N"}, {"left.velocity": "m/s", "right.velocity": "m/s"},
    )  # fmt: skip
    spring = LinearSystem(
        "spring", [zero((1, 1)), np.eye(1), np.array([[-20.0]]), zero((1, 1))], [0.0],
        {"end.velocity": "m/s"}, {"end.force": "N"},
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("hung")
    mass_fmu, spring_fmu = (export_linear(each, folder, "rk4", 1e-3) for each in (mass, spring))
    return [f"mass={mass_fmu}", f"left={spring_fmu}", f"right={spring_fmu}"]


HUNG = tuple(
    connection
    for side in ("left", "right")
    for connection in (f"{side}.end.force=mass.{side}.force", f"mass.{side}.velocity={side}.end.velocity")
)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_bonds_of_one_name_are_told_apart(hung: list[str], tmp_path: Path, suffix: str) -> None:
    """Both springs do the same; together they gain what the energy of mass and springs grows by."""
    options = {"connections": HUNG, "algorithm": "jacobi", "extrapolation": "zero", "step": 2e-3, "stop": STOP}
    file = tmp_path / f"run.{suffix}"
    result = cosimulate(hung, output=file, **options)
    assert list(result.energy_residual) == ["left.end", "right.end"]
    assert result.energy_residual["left.end"] == pytest.approx(result.energy_residual["right.end"], rel=1e-12)
    whole = result["mass.left.velocity"] ** 2 + (result["left.end.force"] ** 2 + result["right.end.force"] ** 2) / 40.0
    assert whole[-1] - whole[0] > 1e-3
    assert sum(result.energy_residual.values()) == pytest.approx(whole[-1] - whole[0], rel=0.02)
    read = mbsfmu.Trajectory.from_file(file)
    for bond, residual in result.energy_residual.items():
        assert read[f"energy_residual.{bond}"][-1] == residual
    assert not list(tmp_path.glob("*.part"))


def test_bonds_of_one_output_that_goes_to_two_inputs_are_told_apart(hung: list[str]) -> None:
    """One spring that pushes twice does what two equal ones do."""
    options = {"algorithm": "jacobi", "extrapolation": "zero", "step": 2e-3, "stop": STOP}
    force, velocity = "left.end.force", "mass.left.velocity=left.end.velocity"
    connections = [f"{force}=mass.left.force", f"{force}=mass.right.force", velocity]
    result = cosimulate(hung[:2], connections=connections, **options)
    (expected, _) = cosimulate(hung, connections=HUNG, **options).energy_residual.values()
    assert list(result.energy_residual) == [f"{each},{velocity}" for each in connections[:2]]
    assert list(result.energy_residual.values()) == pytest.approx([expected] * 2, rel=1e-9)
    assert len(set(result.names)) == len(result.names)


def test_a_gear_between_makes_no_bond(undamped: list[Path]) -> None:
    """What one side gives is not what the other one takes; declared it counts nevertheless."""
    options = {"step": 2e-3, "stop": 0.01}
    assert list(cosimulate(undamped, connections=CONNECTIONS, **options).energy_residual)
    for changed in (0, 1):
        connections = list(map(mbsfmu.Connection.of, CONNECTIONS))
        connections[changed] = replace(connections[changed], factor=0.5)
        assert not cosimulate(undamped, connections=connections, **options).energy_residual
        declared = cosimulate(undamped, connections=connections, bonds=["two.force,one.velocity"], **options)
        assert list(declared.energy_residual) == ["force"]


def test_an_effort_with_two_flows_makes_two_bonds() -> None:
    """Which flow belongs to an effort is not certain only where both could also belong to another effort."""
    unit = {"f": "N", "g": "N", "v": "m/s", "w": "m/s", "u": "", "t": ""}
    members = {
        name: SimpleNamespace(
            instance=SimpleNamespace(name=name, variables={each: SimpleNamespace(unit=unit[each]) for each in unit}),
            entries=SimpleNamespace(names=["u", "t"]),
        )
        for name in "ab"
    }
    exchange = SimpleNamespace(
        members=list(members.values()),
        member=members.__getitem__,
        names=[(name, each) for name in "ab" for each in unit],
    )

    def bonds(*texts: str) -> tuple[list[str], list[str]]:
        told = list[str]()
        found = find_bonds(cast("Any", exchange), [mbsfmu.Connection.of(text) for text in texts], (), told.append)
        return [bond.name for bond in found], told

    assert bonds("a.f=b.u", "b.v=a.u") == (["f"], [])
    assert bonds("a.f=b.u", "b.v=a.u", "b.w=a.t") == (["a.f,b.v", "a.f,b.w"], [])
    names, told = bonds("a.f=b.u", "a.g=b.t", "b.v=a.u", "b.w=a.t")
    assert names == []
    assert "which of b.v and b.w makes a power with which of a.f and a.g is not certain" in told[0]


def test_declared_bonds_are_counted_once(hung: list[str]) -> None:
    """Whichever way round, and beside what units of measurement tell."""
    bonds = ["mass.left.velocity,left.end.force", "left.end.force,mass.left.velocity"]
    result = cosimulate(hung, connections=HUNG, step=2e-3, stop=0.01, bonds=bonds)
    assert list(result.energy_residual) == ["left", "end"]


def test_forces_and_velocities_that_do_not_tell_what_they_belong_to_make_no_bond(tmp_path: Path) -> None:
    one, two = (
        LinearSystem(
            name, [np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((2, 0)), np.zeros((2, 2))], [],
            dict.fromkeys(("u1", "u2"), taken), dict.fromkeys(("y1", "y2"), given),
        )
        for name, taken, given in (("one", "m/s", "N"), ("two", "N", "m/s"))
    )  # fmt: skip
    units = [export_linear(system, tmp_path, "rk4", 1e-2) for system in (one, two)]
    cross = [f"{a}.y{k}={b}.u{k}" for a, b in (("one", "two"), ("two", "one")) for k in (1, 2)]
    options = {"connections": cross, "step": 0.1, "stop": 0.1}
    result = cosimulate(units, **options)
    assert not result.energy_residual
    assert any("two.y1 and two.y2 makes a power with which of one.y1 and one.y2" in note for note in result.notes)
    declared = cosimulate(units, bonds=["one.y1,two.y1", "one.y2,two.y2"], **options)
    assert list(declared.energy_residual) == ["y1", "y2"]
    assert not declared.notes


def test_correction_makes_up_for_whole_integrals(tmp_path: Path) -> None:
    """∫ exp(−t) dt from held values is of first order; with what was missed made up for, one step's part is left."""
    source = LinearSystem(
        "source", [np.array([[-1.0]]), np.zeros((1, 0)), np.eye(1), np.zeros((1, 0))], [1.0], {}, {"y": "m/s"}
    )
    integral = LinearSystem(
        "integral", [np.zeros((1, 1)), np.eye(1), np.eye(1), np.zeros((1, 1))], [0.0], {"u": "m/s"}, {"x": "m"}
    )
    units = [export_linear(system, tmp_path, "rk4", 1e-3) for system in (source, integral)]
    errors = {
        correction: [
            cosimulate(
                units, connections=("source.y=integral.u",), algorithm="jacobi", extrapolation="zero", step=step,
                stop=STOP, energy_correction=correction,
            )["x"][-1] - (1.0 - exp(-STOP))
            for step in (0.02, 0.01)
        ]
        for correction in (False, True)
    }  # fmt: skip
    assert errors[False][0] / errors[False][1] == pytest.approx(2.0, abs=0.1)
    assert errors[True][0] / errors[True][1] == pytest.approx(4.0, abs=0.4)
