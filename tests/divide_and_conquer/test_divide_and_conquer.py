"""The assembly against a dense solution of the same saddle-point system."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import graphs
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from spatial import assembled

import mbsfmu
from mbsfmu.divide_and_conquer.assembly import DivideAndConquer, LevelEquations
from mbsfmu.divide_and_conquer.binary_tree import BinaryTree, Link
from mbsfmu.initialization.initialization import accelerations
from mbsfmu.modelling.data import Array
from mbsfmu.systems.system import LoopsInUse
from mbsfmu.tracing.workspace import Floats


def dense_jacobian(bodies: int, links: list[Link], equations: LevelEquations) -> Floats:
    """The equations' factors of all bodies' motion, shape (rows, 6 bodies)."""
    rows = equations.wrenches.shape[1]
    jacobian = np.zeros((rows, bodies + 1, 6))  # the ground is the last one
    for link in links:
        for row in link.rows:
            for end, body in enumerate(link.ends):
                jacobian[row, body] += equations.wrenches[end, row]
    return jacobian[:, :bodies].reshape(rows, 6 * bodies)


def dense_motion(inverse: Array, free: Array, jacobian: Floats, bias: Array) -> Floats:
    """V of M V + Jᵀ λ = M V₀, J V + γ = 0 by least squares, which redundant equations do not disturb."""
    bodies, rows = len(free), len(bias)
    mass = np.zeros((6 * bodies, 6 * bodies))
    for body in range(bodies):
        mass[6 * body : 6 * body + 6, 6 * body : 6 * body + 6] = np.linalg.inv(inverse[body])
    matrix = np.block([[mass, jacobian.T], [jacobian, np.zeros((rows, rows))]])
    right = np.concatenate([mass @ free.ravel(), -bias])
    return np.linalg.lstsq(matrix, right, rcond=1e-12)[0][: 6 * bodies].reshape(bodies, 6)


def problem(bodies: int, links: list[Link], random: np.random.Generator, *, redundant: bool) -> tuple:
    """Random inertias and wrenches; where redundant, all joints have wrenches out of one set in common.

    The bias is such that some motion satisfies all equations.
    """
    a = random.normal(size=(bodies, 6, 6))
    inverse = a @ np.swapaxes(a, 1, 2) + np.eye(6)
    rows = sum(len(link.rows) for link in links)
    wrenches = random.normal(size=(max(len(link.ends) for link in links), rows, 6))
    common = random.normal(size=(6, 6))
    for link in links:
        for column, row in enumerate(link.rows):
            if redundant and len(link.ends) == 2:
                wrenches[0, row], wrenches[1, row] = -common[column], common[column]
            for end, body in enumerate(link.ends):
                if body < 0:
                    wrenches[end, row] = 0.0
            wrenches[len(link.ends) :, row] = 0.0
    equations = LevelEquations(wrenches)
    jacobian = dense_jacobian(bodies, links, equations)
    bias = -jacobian @ random.normal(size=6 * bodies)
    return inverse, random.normal(size=(bodies, 6)), equations, bias, jacobian


def condition(inverse: Array, jacobian: Floats) -> float:
    """Condition of J M⁻¹ Jᵀ apart from its null space, infinite where that is not clearly told from the rest."""
    bodies = len(inverse)
    responses = inverse @ np.swapaxes(jacobian.reshape(-1, bodies, 6), 0, 1).swapaxes(1, 2)
    values = np.linalg.eigvalsh(jacobian @ responses.reshape(6 * bodies, -1)) if len(jacobian) else np.ones(1)
    shares = values / np.max(values)
    unclear = (shares > 1e-13) & (shares < 1e-8)
    return np.inf if np.any(unclear) else float(1.0 / np.min(shares[shares >= 1e-8]))


def check(
    bodies: int,
    links: list[Link],
    inverse: Array,
    free: Array,
    equations: LevelEquations,
    bias: Array,
    jacobian: Floats,
) -> None:
    """Compare to round-off times the condition; the multipliers, of which redundant ones are not unique, must fit."""
    moved, multipliers = DivideAndConquer(BinaryTree(bodies, links)).factorize(inverse, equations).solve(free, bias)
    expected = dense_motion(inverse, free, jacobian, bias)
    tolerance = {"rtol": 0.0, "atol": 1e-13 * condition(inverse, jacobian) * np.max(np.abs(expected))}
    np.testing.assert_allclose(moved, expected, **tolerance)
    np.testing.assert_allclose(jacobian @ moved.ravel(), -bias, **tolerance)
    pushed = (inverse @ (jacobian.T @ multipliers).reshape(bodies, 6, 1))[:, :, 0]
    np.testing.assert_allclose(free + pushed, moved, **tolerance)


@settings(max_examples=60, derandomize=True)
@given(graphs(), st.integers(0, 2**32), st.booleans())
def test_random_graphs(graph: tuple[int, list[Link]], seed: int, redundant: bool) -> None:
    made = problem(*graph, np.random.default_rng(seed), redundant=redundant)
    assume(np.isfinite(condition(made[0], made[-1])))
    check(*graph, *made)


def test_redundant_triangle_is_in_the_examples() -> None:
    """Three bodies in a ring of equal wrenches: the last joint adds nothing, yet its multipliers are found."""
    links = [Link((-1, 0), ()), Link((0, 1), (0, 1, 2)), Link((0, 2), (3, 4, 5)), Link((1, 2), (6, 7, 8))]
    given_problem = problem(3, links, np.random.default_rng(1), redundant=True)
    assert np.linalg.matrix_rank(given_problem[-1]) == 6
    check(3, links, *given_problem)


def test_scales_of_equations_do_not_matter() -> None:
    """Equations times powers of two: the motion is the same to the last bit, multipliers are those by the factors."""
    links = [Link((-1, 0), ()), Link((0, 1), (0, 1, 2)), Link((0, 2), (3, 4, 5)), Link((1, 2), (6, 7, 8))]
    inverse, free, equations, bias, _ = problem(3, links, np.random.default_rng(2), redundant=False)
    factors = 2.0 ** np.random.default_rng(3).integers(-20, 20, len(bias))
    scaled = LevelEquations(equations.wrenches * factors[:, np.newaxis])
    assembly = DivideAndConquer(BinaryTree(3, links))
    moved, multipliers = assembly.factorize(inverse, equations).solve(free, bias)
    again, others = assembly.factorize(inverse, scaled).solve(free, bias * factors)
    np.testing.assert_array_equal(again, moved)
    np.testing.assert_array_equal(others * factors, multipliers)


def test_contradicting_equations_are_not_satisfied() -> None:
    """Negative control: without a consistent bias no motion satisfies redundant equations, and none is found."""
    links = [Link((-1, 0), ()), Link((0, 1), (0, 1, 2)), Link((0, 2), (3, 4, 5)), Link((1, 2), (6, 7, 8))]
    inverse, free, equations, bias, jacobian = problem(3, links, np.random.default_rng(1), redundant=True)
    bias = bias + np.eye(9)[7]
    moved, _ = DivideAndConquer(BinaryTree(3, links)).factorize(inverse, equations).solve(free, bias)
    assert np.max(np.abs(jacobian @ moved.ravel() + bias)) > 0.1


@pytest.mark.parametrize("name", ["five-bar", "quick-return", "double-loop-8"])
def test_mechanisms_with_all_their_equations(name: str) -> None:
    """Planar loops have redundant equations in space: with all of them the motion is the semirecursive one without."""
    mechanism = mbsfmu.models.built_in(name).systems["mechanism"]
    some, every = (assembled(mechanism, np.random.default_rng(1), redundant=redundant) for redundant in (False, True))
    assert len(some.rows) < len(every.rows)
    expected = accelerations(some)[0]
    moved, multipliers = every.system.forward_dynamics(every.numeric_instant(), LoopsInUse(every.rows), 0.0)
    np.testing.assert_allclose(moved, expected, rtol=0.0, atol=1e-9 * np.max(np.abs(expected)))
    mass, rest, _, _ = every.equilibrium()
    balance = mass @ moved + rest + every.closure()[1].T @ multipliers
    np.testing.assert_allclose(balance, 0.0, atol=1e-9 * np.max(np.abs(rest)))
