"""Recorded functions against NumPy, which computes the same with numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mbsfmu.equations.rotation import cross
from mbsfmu.tracing.kernels import kernel
from mbsfmu.tracing.symbols import TracingError
from mbsfmu.tracing.tape.recorded_program import BoundProgram, depends, program_of
from mbsfmu.tracing.tape.recording import Recorder, _Shared, _TracedKernel

VALUES = {"x": np.array([0.3, -1.2, 0.0, 2.5]), "y": np.array([0.3, 1.2, 0.5, -2.0])}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": lambda x, y: np.where(x == y, x + 1.0, y),
    "unequal": lambda x, y: np.where(x != 0.0, y / (x + (x == 0.0)), 7.0),
    "magnitudes": lambda x, y: abs(x) - (-y) + (+y),
    "sum": lambda x, y: np.stack([np.sum(x * y), np.add.reduce(x)]),
    "cross": lambda x, y: np.cross(x[:3], y[1:]),
    "outer": lambda x, y: np.outer(x, y) @ x,
    "limited": lambda x, y: np.clip(x, -1.0, 1.0) * np.clip(y, -0.5, 0.5),
    "order": lambda x, y: np.where((x < y) + (x >= 2.0) > 0.0, x, y) - np.where(x <= 0.0, 1.0, 0.0) * (y > 0.4),
    "powers": lambda x, y: 2.0 ** (x**2) - 1.0 / (3.0 + y) + (1.0 - x),
    "moved": lambda x, y: np.concatenate([np.stack([x, y]).T.ravel()[::-1], np.tile(y[:1], 2)]),
}


def values_of(function: Callable[[Any, Any], Any]) -> NDArray[np.float64]:
    recorder = Recorder()
    given = {name: recorder.new(len(values)) for name, values in VALUES.items()}
    program = program_of("recorded", recorder, given, [function(given["x"], given["y"])])
    return BoundProgram(program, program.memory())(VALUES)[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_recorded_functions_are_those_of_numpy(name: str) -> None:
    function = FUNCTIONS[name]
    np.testing.assert_allclose(values_of(function), function(VALUES["x"], VALUES["y"]), rtol=1e-14, atol=1e-15)


def test_branches_are_refused() -> None:
    with pytest.raises(TracingError, match="branches on a value"):
        values_of(lambda x, y: x if x[0] > 0.0 else y)


@kernel
def _turned(vectors: list[Any], factor: Any, *, times: int) -> tuple[Any, None, list[Any]]:
    return vectors[0] * factor, None, [vectors[1] for _ in range(times)]


def test_answers_of_kernels_are_built_as_they_are() -> None:
    recorder = Recorder()
    x, y = recorder.new(2), recorder.new(2)
    scaled, nothing, same = _turned([x, y], np.asarray(3.0), times=2)
    assert nothing is None
    assert [each.is_same_as(y) for each in same] == [True, True]
    assert not scaled.is_same_as(x)


def test_what_results_depend_on() -> None:
    recorder = Recorder()
    x = recorder.new(3)
    program = program_of("chain", recorder, {"x": x}, [np.stack([x[0] * x[1], x[2] * 0.0, np.sin(x[2])])])
    assert depends(program, 0, "x").tolist() == [[True, True, False], [False] * 3, [False, False, True]]


def pairs(values: Any) -> Any:
    """Neighbours joined in pairs, level by level, until one is left."""
    left = list(values)
    while len(left) > 1:
        left = [_joined(*left[place : place + 2]) for place in range(0, len(left), 2)]
    return left[0]


@kernel
def _joined(one: Any, other: Any) -> Any:
    return 0.5 * one - 0.3 * other + np.sin(one * other)


def test_blocks_change_no_value_and_keep_what_is_used_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours are joined to the end before others are begun: nearly all joints take what was made just now."""
    size = 512
    values = {"x": np.linspace(-1.0, 1.0, size)}
    found, far = [], []
    for block in (10**6, 32):
        monkeypatch.setattr("mbsfmu.tracing.tape.schedule.BLOCK", block)
        recorder = Recorder()
        x = recorder.new(size)
        program = program_of("recorded", recorder, {"x": x}, [pairs(x)])
        found.append(BoundProgram(program, program.memory())(values)[0])
        loops = program.schedule.loops
        taken = np.concatenate([loop.arguments for loop in loops])
        made = np.concatenate([loop.first + np.arange(len(loop.arguments)) for loop in loops])
        ago = (made[:, np.newaxis] - taken)[taken >= size]
        assert np.all(ago > 0)
        far.append(np.mean(ago > 32))
    np.testing.assert_array_equal(*found)
    assert found[1] == pytest.approx(pairs(values["x"]), rel=1e-13)
    assert far[0] > 0.8  # of the joints of joints, in a level of more than 32
    assert far[1] < 2 * 512 / 32 / 510  # what one block leaves to another


def test_changes_along_directions_are_differences() -> None:
    def function(x: Any) -> Any:
        return np.stack([np.sin(x[0]) * x[1], x[1] ** 3, x[0] * 0.0 + 4.0])

    recorder = Recorder()
    x, along = recorder.new(2), recorder.new(2)
    program = program_of("change", recorder, {"x": x, "d": along}, recorder.changes([function(x)], [(x, along)]))
    at, direction, small = np.array([0.4, 1.7]), np.array([0.8, -0.3]), 1e-6
    found = BoundProgram(program, program.memory())({"x": at, "d": direction})[0]
    expected = (function(at + small * direction) - function(at - small * direction)) / (2.0 * small)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_models_share_kernels_of_these_packages() -> None:
    """What the same code makes of the same arguments is traced once in a process, its changes too."""

    def recorded() -> tuple[Recorder, Any]:
        recorder = Recorder()
        given = recorder.new(6)
        result = cross(given[:3], given[3:])
        (change,) = recorder.changes([result], [(given, np.arange(6.0))])
        return recorder, (given, [result, change])

    (one, _), (other, (given, results)) = recorded(), recorded()
    assert one.kernels
    assert [*map(id, one.kernels)] == [*map(id, other.kernels)]
    values = np.array([1.0, 2.0, 3.0, -2.0, 0.5, 4.0])
    program = program_of("shared", other, {"given": given}, results)
    found, change = BoundProgram(program, program.memory())({"given": values})
    assert found == pytest.approx(np.cross(values[:3], values[3:]))
    expected = np.cross([0.0, 1.0, 2.0], values[3:]) + np.cross(values[:3], [3.0, 4.0, 5.0])
    assert change == pytest.approx(expected)


def test_kernels_of_users_are_traced_for_each_model() -> None:
    """Their code may be another by then, under the same name."""
    factor = 2.0

    @kernel
    def scaled(values: Any) -> Any:
        return factor * values

    def evaluated() -> Any:
        recorder = Recorder()
        given = recorder.new(1)
        program = program_of("scaled", recorder, {"given": given}, [scaled(given)])
        return BoundProgram(program, program.memory())({"given": np.array([3.0])})[0]

    assert evaluated() == pytest.approx([6.0])
    factor = 5.0
    assert evaluated() == pytest.approx([15.0])


def test_what_was_used_for_longest_goes_first() -> None:
    made: list[str] = []

    def ask(key: str) -> None:
        shared.of(key, lambda: (made.append(key), _TracedKernel(None, None, ()))[1])

    shared = _Shared(2)
    for key in ("a", "b", "a", "c", "a", "b"):
        ask(key)
    assert made == ["a", "b", "c", "b"]
