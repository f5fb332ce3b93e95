"""Iterated steps in compiled code: those of Python to the last bit, and the motion of coupled linear systems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.both_ways import Failures, Run
from cosim.linear_units import CONNECTIONS, LinearSystem, export_linear
from foreign_fmus import compiler
from scipy.linalg import expm

from mbsfmu import StepSignal
from mbsfmu.cosim.compiled.interface_inverse import apply, learn, update
from mbsfmu.cosim.compiled.library import InverseTable
from mbsfmu.cosim.coupling.iterated_coupling import InterfaceInverse, InterfaceNewton, LearnedInverse
from mbsfmu.cosim.fmus.fmu_instance import Floats

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

SIZES = ((2, 1, 2), (3, 2, 1), (1, 2, 2))  # states, inputs, outputs
STOP = 0.4
ITERATED = (
    {"algorithm": "newton"},
    {"algorithm": "newton", "jacobian": "directional"},
    {"algorithm": "fixed-point"},
    {"algorithm": "fixed-point", "relaxation": 0.7, "order": ["random_2", "random_0", "random_1"]},
)


class Coupled:
    """Random linear FMUs, each input of which is driven by an output of another one."""

    def __init__(self, folder: Path, seed: int, loop_gain: float) -> None:
        random = np.random.default_rng(seed)
        self.units, blocks, self.connections = [], [], []
        for index, (n, inputs, outputs) in enumerate(SIZES):
            matrices = [random.normal(size=size) for size in ((n, n), (n, inputs), (outputs, n), (outputs, inputs))]
            matrices[0] = 4.0 * matrices[0] - 8.0 * np.eye(n)
            matrices[3] *= loop_gain
            start = random.normal(size=n)
            system = LinearSystem(
                f"random_{index}", matrices, start,
                {f"u{k}": "1" for k in range(inputs)}, {f"y{k}": "1" for k in range(outputs)},
            )  # fmt: skip
            self.units.append(export_linear(system, folder, "rk4", 1e-3, fmi=3 if index == 1 else 2))
            blocks.append((matrices, start))
        gains = np.zeros((sum(size[1] for size in SIZES), sum(size[2] for size in SIZES)))
        row = 0
        for index, (_, inputs, _) in enumerate(SIZES):
            for k in range(inputs):
                other = (index + 1 + int(random.integers(2))) % 3
                output = int(random.integers(SIZES[other][2]))
                gains[row, sum(size[2] for size in SIZES[:other]) + output] = 1.0
                self.connections.append(f"random_{other}.y{output}=random_{index}.u{k}")
                row += 1
        a, b, c, d = (_diagonal([matrices[k] for matrices, _ in blocks]) for k in range(4))
        self._outputs = np.linalg.solve(np.eye(len(c)) - d @ gains, c)
        self._rates = a + b @ gains @ self._outputs
        self._start = np.concatenate([start for _, start in blocks])
        self.names = [f"random_{i}.y{k}" for i, size in enumerate(SIZES) for k in range(size[2])]

    def exact(self, time: float) -> np.ndarray:
        """Return the outputs at a time in s."""
        return self._outputs @ expm(self._rates * time) @ self._start


def _diagonal(blocks: list[np.ndarray]) -> np.ndarray:
    result = np.zeros((sum(len(each) for each in blocks), sum(each.shape[1] for each in blocks)))
    row = column = 0
    for each in blocks:
        result[row : row + len(each), column : column + each.shape[1]] = each
        row, column = row + len(each), column + each.shape[1]
    return result


@pytest.fixture(scope="module", params=[1, 2])
def coupled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Coupled:
    return Coupled(tmp_path_factory.mktemp("random"), request.param, loop_gain=0.15)


@pytest.mark.parametrize("options", ITERATED, ids=str)
@pytest.mark.parametrize("extrapolation", ["zero", "linear", "quadratic", "derivatives"])
def test_random_systems(
    coupled: Coupled, both: Run, made: list[int], options: dict[str, Any], extrapolation: str
) -> None:
    """With algebraic loops, FMUs of FMI 2.0 and 3.0; one makes more steps, and the step is off the grid at the end."""
    result = both(
        coupled.units, connections=coupled.connections, step=0.004, stop=STOP + 0.001, extrapolation=extrapolation,
        rates={"random_2": 3}, **options,
    )  # fmt: skip
    assert sum(made) == result.steps == 101
    assert result.iterations > result.steps
    limit = {"zero": 0.3, "linear": 3e-3}.get(extrapolation, 1e-4)
    reached = np.array([result[name][-1] for name in coupled.names])
    np.testing.assert_allclose(reached, coupled.exact(STOP + 0.001), rtol=0.0, atol=limit)


@pytest.mark.parametrize("algorithm", ["newton", "fixed-point"])
@pytest.mark.parametrize("units", ["halves_exact", "halves_3"])
def test_jumps_and_bonds(
    request: pytest.FixtureRequest, both: Run, made: list[int], units: str, algorithm: str
) -> None:  # fmt: skip
    """Where a signal jumps, inputs hold for a step; the energy at the bond is that of Python."""
    result = both(
        request.getfixturevalue(units), connections=CONNECTIONS[1:], step=0.01, stop=0.5, algorithm=algorithm,
        extrapolation="linear", inputs={"one.force": StepSignal(times=(0.123,), values=(5.0,))},
    )  # fmt: skip
    assert sum(made) == result.steps == 51
    assert result["one.velocity"][-1] > 0.5


def test_memory_is_limited(coupled: Coupled, both: Run, made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A Jacobian of what passes directly is off: steps add updates, until it is made anew by differences."""
    monkeypatch.setattr("mbsfmu.cosim.coupling.iterated_coupling._MOST", 2)
    renewed: list[int] = []
    make = InterfaceNewton.make_jacobian

    def noting(self: InterfaceNewton, *arguments: Any) -> None:
        renewed.append(self.inverse.updates)
        make(self, *arguments)

    monkeypatch.setattr(InterfaceNewton, "make_jacobian", noting)
    both(
        coupled.units, connections=coupled.connections, step=0.004, stop=STOP, extrapolation="linear",
        algorithm="newton", jacobian="directional",
    )  # fmt: skip
    assert sum(made) == 100
    assert renewed == [0, 2] * 2


def test_iteration_that_does_not_converge(coupled: Coupled, failures: Failures, made: list[int]) -> None:
    """The sentence, and the rows before, are those of Python."""
    errors = failures(
        coupled.units, connections=coupled.connections, step=0.004, stop=STOP, extrapolation="linear",
        algorithm="newton", maximum_iterations=2, iteration_tolerance=1e-15,
    )  # fmt: skip
    assert str(errors[0]) == str(errors[1])
    assert "does not converge in the step from t = 0" in str(errors[1])


@pytest.mark.parametrize("algorithm", ["newton", "fixed-point"])
def test_what_is_saved_beside_states(
    foreign: Callable[[str], Path], halves_exact: list[Path], both: Run, made: list[int], algorithm: str
) -> None:
    """The next event of an FMU of FMI 3.0, and that steps count which are not undone to a time before them."""
    result = both(
        [foreign("ticking"), foreign("committing"), *halves_exact], connections=CONNECTIONS, step=0.02, stop=1.0,
        extrapolation="linear", algorithm=algorithm,
    )  # fmt: skip
    assert result.rollbacks >= sum(made) == result.steps == 50
    np.testing.assert_allclose(result["ticking.height"], 1.0 - np.abs(result.time - 1.0), atol=1e-12)
    assert result["ticking.count"][-1] == 3
    clock = next(name for name in result.names if name.startswith("committing."))
    np.testing.assert_allclose(result[clock], result.time, atol=1e-12)


@pytest.mark.parametrize("options", ITERATED, ids=str)
def test_slow_iterations(
    coupled: Coupled, both: Run, made: list[int], monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Jacobians are made anew where two sweeps have brought little, and relaxations stay within their bounds."""
    monkeypatch.setattr("mbsfmu.cosim.coupling.iterated_coupling._SLOW", 1e-9)
    monkeypatch.setattr("mbsfmu.cosim.coupling.iterated_coupling._RELAXATION_RANGE", (0.97, 1.01))
    result = both(
        coupled.units, connections=coupled.connections, step=0.1, stop=0.4, extrapolation="zero", **options,
        iteration_tolerance=1e-12, maximum_iterations=200,
    )  # fmt: skip
    assert sum(made) == 4
    assert result.iterations >= 8


def test_updates_that_would_turn_singular_are_left_out(
    coupled: Coupled, both: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In compiled code as in Python: with a bound just below 1, of the inverse that is true already, few are added."""
    added: list[int] = []
    for least in (1e-3, 0.999):
        monkeypatch.setattr("mbsfmu.cosim.coupling.iterated_coupling._LEAST", least)
        result = both(
            coupled.units, connections=coupled.connections, step=0.004, stop=0.2, extrapolation="linear",
            algorithm="newton", jacobian="directional",
        )  # fmt: skip
        added.append(result.iterations)
    assert added[1] > added[0]


def applied(inverse: InterfaceInverse, vector: Floats) -> Floats:
    result = np.zeros(len(vector))
    apply(inverse.table, vector, result)
    return result


def updated(inverse: InterfaceInverse, change: Floats, difference: Floats, scales: Floats) -> None:
    update(inverse.table, change, difference, np.zeros(len(change)), scales)


def learned_from(inverse: LearnedInverse, change: Floats, difference: Floats) -> None:
    learn(inverse.table, change, difference, np.zeros(len(change)))


def test_updates_that_say_nothing_are_left_out() -> None:
    """Of changes that are too small, across what the residual did, and beyond the memory."""
    inverse = InterfaceInverse(2, 30, InverseTable(worth=1e-6))
    inverse.set(np.eye(2))
    across, ones = np.array([0.0, 1.0]), np.ones(2)
    updated(inverse, np.array([1.0, 0.0]), across, ones)
    updated(inverse, np.array([1e-3, 0.0]), np.array([2e-3, 0.0]), ones)
    assert inverse.updates == 0
    inverse.table.worth = 0.99e-6
    for count in range(1, 32):
        updated(inverse, np.array([1e-3, 0.0]), np.array([2e-3, 0.0]), ones)
        assert inverse.updates == min(count, 30)


def test_updates_make_secants() -> None:
    """H Δr = Δz for the last change, and as before across it."""
    random = np.random.default_rng(3)
    inverse = InterfaceInverse(4, 30, InverseTable())
    jacobian = random.normal(size=(4, 4)) - 3.0 * np.eye(4)
    inverse.set(jacobian)
    scales = np.array([1.0, 2.0, 0.5, 10.0])
    exact = jacobian.copy()
    for _ in range(3):
        change, difference = random.normal(size=4), random.normal(size=4)
        updated(inverse, change, difference, scales)
        weight = change / scales**2
        exact += np.outer(difference - exact @ change, weight) / (weight @ change)
        np.testing.assert_allclose(applied(inverse, difference), change, atol=1e-10)
    vector = random.normal(size=4)
    np.testing.assert_allclose(applied(inverse, vector), np.linalg.solve(exact, vector), rtol=1e-8)


def test_a_learned_inverse_knows_the_last_corrections_along_all_directions() -> None:
    """After as many corrections as unknowns a constant Jacobian is known but for noise; Broyden's update is far off."""
    random = np.random.default_rng(4)
    true = random.normal(size=(4, 4)) - 3.0 * np.eye(4)
    learned, broyden = LearnedInverse(4, InverseTable()), InterfaceInverse(4, 30, InverseTable())
    wrong = true + 0.1 * random.normal(size=(4, 4))
    learned.set(wrong)
    broyden.set(wrong)
    for _ in range(4):
        change = 1e-3 * random.normal(size=4)
        learned_from(learned, change, true @ change)
        updated(broyden, change, true @ change, np.ones(4))
        np.testing.assert_allclose(applied(learned, true @ change), change, rtol=0.02)
    exact = np.linalg.inv(true)
    left = np.linalg.norm(learned.columns.T - exact)
    others = np.linalg.norm(np.stack([applied(broyden, each) for each in np.eye(4)], axis=1) - exact)
    assert left < 0.1 * others < 0.1 * np.linalg.norm(np.linalg.inv(wrong) - exact)


def test_a_learned_inverse_follows_a_jacobian_that_drifts() -> None:
    """Variances never exceed 1, so that nothing grows along directions without corrections."""
    random = np.random.default_rng(5)
    inverse = LearnedInverse(3, InverseTable())
    inverse.set(np.eye(3))
    true = np.eye(3)
    for _ in range(300):
        true[:2, :2] += 0.01 * random.normal(size=(2, 2))
        change = np.array([*random.normal(size=2), 0.0])
        learned_from(inverse, change, true @ change)
    found = np.linalg.inv(inverse.columns.T)
    np.testing.assert_allclose(found[:2, :2], true[:2, :2], atol=0.1)
    np.testing.assert_array_equal(inverse.columns[2], [0.0, 0.0, 1.0])
    assert np.max(np.diag(inverse.covariance)) == 1.0
    assert np.linalg.eigvalsh(inverse.covariance)[0] > 0.0
    inverse.set(true)
    np.testing.assert_array_equal(inverse.covariance, np.eye(3))


def test_a_learned_inverse_learns_nothing_of_nothing() -> None:
    inverse = LearnedInverse(2, InverseTable())
    inverse.set(np.eye(2))
    for change, difference in (([0.0, 0.0], [1.0, 0.0]), ([np.nan, 0.0], [1.0, 0.0]), ([1.0, 0.0], [-1e-4, 0.0])):
        learned_from(inverse, np.array(change), np.array(difference))
        np.testing.assert_array_equal(inverse.columns, np.eye(2))
        np.testing.assert_array_equal(inverse.covariance, np.eye(2))
