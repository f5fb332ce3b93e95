"""Calls shared over executors: their outcomes in order, their failures, their progress."""

from __future__ import annotations

import logging
import math

import pytest

from mbsfmu.base.executors import InlineExecutor, Shares, local_executor, run_all


@pytest.mark.parametrize("workers", [1, 2])
def test_outcomes_come_in_the_order_of_the_items(workers: int) -> None:
    told: list[float] = []
    with local_executor(workers) as executor:
        assert run_all(executor, math.sqrt, [4.0, 9.0, 16.0, 25.0], Shares(told.append, 4)) == [2.0, 3.0, 4.0, 5.0]
    assert told == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("workers", [1, 2])
def test_failure_is_raised(workers: int) -> None:
    with local_executor(workers) as executor, pytest.raises(ValueError, match=r"math domain|nonnegative"):
        run_all(executor, math.sqrt, [4.0, -1.0], Shares(None, 2))


def test_call_in_this_process_is_done_at_once() -> None:
    future = InlineExecutor().submit(math.hypot, 3.0, 4.0)
    assert future.done()
    assert future.result() == 5.0


def handlers_of_the_package(_: int) -> list[str]:
    return [type(each).__name__ for each in logging.getLogger("mbsfmu").handlers]


def test_workers_print_no_warnings_through_handlers_of_this_process() -> None:
    """A command puts its handler on the package's logger, which forked workers begin with."""
    handler = logging.StreamHandler()
    logging.getLogger("mbsfmu").addHandler(handler)
    try:
        with local_executor(2) as executor:
            assert run_all(executor, handlers_of_the_package, [1, 2], Shares(None, 2)) == [["NullHandler"]] * 2
    finally:
        logging.getLogger("mbsfmu").removeHandler(handler)
