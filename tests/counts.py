"""What two runs of the same steps cost, in C and in Python."""

from __future__ import annotations

from mbsfmu.integration.solver import Statistics


def assert_alike(statistics: Statistics, expected: Statistics) -> None:
    """Hold the steps of two runs to be the same.

    Whether an increment is negligible may be decided otherwise where it is round-off: one iteration in a hundred.
    """
    for name in ("steps", "failures", "retries", "rhs_evaluations", "repartitions", "embedded_distance"):
        assert getattr(statistics, name) == getattr(expected, name), name
    totals = [
        (statistics.newton_total, expected.newton_total),
        (statistics.iteration_matrices, expected.iteration_matrices),
    ]
    assert statistics.iterations.keys() == expected.iterations.keys()
    for name, count in statistics.iterations.items():
        assert count.solutions == expected.iterations[name].solutions, name
        totals.append((count.total, expected.iterations[name].total))
    for found, wanted in totals:
        assert abs(found - wanted) <= 2 + 0.01 * wanted
