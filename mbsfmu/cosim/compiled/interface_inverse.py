"""Inverse H of a Jacobian, as a matrix that was made once and what is known of it since: by updates, or learned.

Broyden's update as a product, H ← (1 + p wᵀ) H with p = (Δz − H Δr) / (wᵀ H Δr), w being Δz over the squared scales, so
that H Δr = Δz for the last change Δz of the iterates and Δr of the residual (Kelley 1995, "Iterative methods for linear
and nonlinear equations", section 7.3). An update adds two vectors, and takes a number of operations proportional to
that of the unknowns; a matrix that is updated would have to be inverted every time.

Broyden's update takes the least change of the Jacobian J for which J Δz = Δr, and so loses what corrections along other
directions have told before. Where a Jacobian drifts it is learned instead, by recursive least squares: the change is
the least one in the metric of the covariance P of the rows of J, which falls along directions as they are seen, and
rises by a random walk in between,

w = P d, s = noise + dᵀ w, J ← J + (Δr/|Δz| − J d) wᵀ / s, P ← P − w wᵀ / s + drift

with d = Δz/|Δz| (Ljung 1999, "System Identification", section 11.2; P = 1 without noise is Broyden's update,
projections for P are those of Gay and Schnabel 1978). H follows by the formula of Sherman and Morrison.

Written once, in the language of steps (`mbsfmu.stepping.language`); sums are made in order.
"""

from __future__ import annotations

from mbsfmu.cosim.compiled.library import InverseTable
from mbsfmu.stepping.language import Real, Reals, absolute, root, tail


def inner_product(one: Reals, first: int, other: Reals, count: int) -> Real:
    """Return the inner product of two vectors, of which one begins at a place of its array."""
    if count == 0:
        return 0.0
    result: Real = one[first] * other[0]
    for k in range(1, count):
        result += one[first + k] * other[k]
    return result


def apply(inverse: InverseTable, vector: Reals, result: Reals) -> None:
    """Find H times a vector."""
    count: int = inverse.count
    for i in range(count):
        result[i] = 0.0
    for j in range(count):
        factor: Real = vector[j]
        for i in range(count):
            result[i] += inverse.columns[j * count + i] * factor
    for k in range(inverse.updates):
        along: Real = inner_product(inverse.weights, k * count, result, count)
        for i in range(count):
            result[i] += inverse.moves[k * count + i] * along


def update(inverse: InverseTable, change: Reals, residual: Reals, last: Reals, scales: Reals) -> None:
    """Add Broyden's update for the last change, which has led from the last residual to another one.

    Changes whose scaled square is not above `worth`, and those along which H would turn singular, say nothing.
    """
    if inverse.updates == inverse.most:
        return
    count: int = inverse.count
    first: int = inverse.updates * count
    for i in range(count):
        inverse.weights[first + i] = change[i] / (scales[i] * scales[i])
        inverse.room[i] = residual[i] - last[i]
    squared: Real = inner_product(inverse.weights, first, change, count)
    if not squared > inverse.worth:
        return
    expected: Reals = tail(inverse.room, count)
    apply(inverse, inverse.room, expected)
    along: Real = inner_product(inverse.weights, first, expected, count)
    if not absolute(along) > inverse.least * squared:
        return
    for i in range(count):
        inverse.moves[first + i] = (change[i] - expected[i]) / along
    inverse.updates += 1


def learn_covariance(inverse: InverseTable, weight: Reals, variance: Real) -> None:
    """Let the covariance of the Jacobian fall along what was seen, and rise along all directions."""
    count: int = inverse.count
    largest: Real = 0.0
    for i in range(count):
        for j in range(count):
            inverse.covariance[i * count + j] -= weight[i] * weight[j] / variance
    for i in range(count):
        inverse.covariance[i * count + i] += inverse.drift
        if inverse.covariance[i * count + i] > largest:  # noqa: PLR1730 - so it becomes C
            largest = inverse.covariance[i * count + i]
    if largest > 1.0:
        for k in range(count * count):
            inverse.covariance[k] /= largest


def learn(inverse: InverseTable, change: Reals, residual: Reals, last: Reals) -> None:
    """Learn from the last change, which has led from the last residual to another one.

    Nothing is learned where there is no change, or where H would turn singular.
    """
    count: int = inverse.count
    squared: Real = inner_product(change, 0, change, count)
    if not squared > 0.0:
        return
    direction: Reals = inverse.room
    missed: Reals = tail(inverse.room, count)
    weight: Reals = tail(inverse.room, 2 * count)
    move: Reals = tail(inverse.room, 3 * count)
    length: Real = root(squared)
    for i in range(count):
        direction[i] = change[i] / length
        move[i] = (residual[i] - last[i]) / length
    for i in range(count):
        weight[i] = inner_product(inverse.covariance, i * count, direction, count)
    variance: Real = inverse.noise + inner_product(direction, 0, weight, count)
    apply(inverse, move, missed)
    for i in range(count):
        missed[i] = direction[i] - missed[i]
    along: Real = variance - inner_product(weight, 0, missed, count)
    if not absolute(along) > inverse.least * variance:
        return
    for i in range(count):
        move[i] = missed[i] / along
    for j in range(count):
        share: Real = inner_product(inverse.columns, j * count, weight, count)
        for i in range(count):
            inverse.columns[j * count + i] += move[i] * share
    learn_covariance(inverse, weight, variance)
