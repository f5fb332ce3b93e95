"""Which inertia tensors are a body's, against tensors of point masses and against eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest

from mbsfmu import Beam, DataError, RigidBody
from mbsfmu.model.body import ALLOWED, REGULAR, missing_in


def elements(tensor: np.ndarray) -> list[float]:
    """The upper triangle as `missing_in` takes it."""
    return tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].tolist()


def of_points(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """The tensor of point masses about the origin, Σ m (r·r I − r rᵀ)."""
    moments = np.einsum("k,ki,kj->ij", masses, points, points)
    return np.trace(moments) * np.eye(3) - moments


def rotated(moments: tuple[float, float, float], seed: int) -> np.ndarray:
    axes = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    return axes @ np.diag(moments) @ axes.T


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("count", [3, 4, 20])
def test_bodies_of_point_masses_are_taken(count: int, scale: float) -> None:
    """Three points are flat: equality in the triangle, but for round-off."""
    generator = np.random.default_rng(count)
    for _ in range(200):
        points = generator.normal(size=(count, 3))
        points -= points.mean(axis=0)
        tensor = scale * of_points(points, np.ones(count))
        assert missing_in(elements(tensor), rod=False) is None


def test_rods_are_taken_where_they_may_be() -> None:
    assert missing_in((0.0,) * 6, rod=True) is None
    assert missing_in((0.0,) * 6, rod=False) == REGULAR
    generator = np.random.default_rng(0)
    for axis in (*np.eye(3), *generator.normal(size=(50, 3))):
        tensor = elements(of_points(np.outer((-1.0, 1.0), axis), np.ones(2)))
        assert missing_in(tensor, rod=True) is None
        assert missing_in(tensor, rod=False) == REGULAR


@pytest.mark.parametrize("share", [1e-6, 1e-2, 1.0, 100.0])
def test_what_misses_the_bound_is_refused_however_it_lies(share: float) -> None:
    """The largest moment above the sum of the others by a share, or the smallest below zero, in any axes."""
    for seed in range(100):
        for moments in ((1.0, 2.0, 3.0 * (1 + share)), (1.0, 1.0, 2.0 * (1 + share)), (-share, 1.0, 1.0)):
            assert missing_in(elements(rotated(moments, seed)), rod=True) == ALLOWED
            assert missing_in(elements(rotated(moments, seed)), rod=False) == ALLOWED


def test_random_tensors_are_judged_as_by_their_eigenvalues() -> None:
    generator = np.random.default_rng(1)
    taken = 0
    for _ in range(2000):
        tensor = np.diag(generator.uniform(0.5, 2.0, 3))
        tensor[np.triu_indices(3, 1)] = generator.normal(scale=0.3, size=3)
        smallest, middle, largest = np.linalg.eigvalsh(tensor, UPLO="U")
        fits = smallest > 0.0 and largest < smallest + middle
        assert (missing_in(elements(tensor), rod=False) is None) == fits
        taken += fits
    assert 200 < taken < 1800


def test_data_go_by_the_same_bound() -> None:
    RigidBody(name="arm", mass=1.0, inertia=(1.0, 1.0, 1.9), products_of_inertia=(0.94, 0.0, 0.0))
    RigidBody(name="rod", mass=1.0, inertia=(0.0, 1.0, 1.0))
    Beam(name="beam", mass=6.0, length=1.0, axial_inertia=1.0)
    for products in ((0.96, 0.0, 0.0), (0.0, 0.0, 0.71)):
        with pytest.raises(DataError, match="at most the sum of the two others"):
            RigidBody(name="arm", mass=1.0, inertia=(1.0, 1.0, 1.9), products_of_inertia=products)
    with pytest.raises(DataError, match=r"'beam': axial_inertia is 1\.1; .* at most mass length²/6, 1 kg m²"):
        Beam(name="beam", mass=6.0, length=1.0, axial_inertia=1.1)
