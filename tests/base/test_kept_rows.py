"""Long runs keep what plots can show, say so before they begin, and never end for want of memory in others' words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mbsfmu
from mbsfmu import CoupledModel, InputError, Mechanism, Revolute, RigidBody, cosimulate
from mbsfmu.base import times
from mbsfmu.base.times import default_interval


def pendulum() -> CoupledModel:
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=[RigidBody(name="rod", mass=2.0, inertia=(0.1, 0.1, 0.1), centre=(0.5, 0.0, 0.0))],
        joints=[Revolute(name="pin", parent="ground.O", child="rod.origin", angle=-1.0)],
    )
    return CoupledModel(name="pendulum", systems={"m": mechanism}, stop_time=2.0)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 500 rows where nobody says how many."""
    monkeypatch.setattr(times, "MOST_ROWS", 500.0)


@pytest.mark.parametrize(
    ("stop", "columns", "interval"),
    [(1000.0, 10, 1e-3), (1001.0, 10, 2e-3), (36000.0, 36, 0.036), (36000.0, 10**7, 2.88)],
)
def test_the_interval_is_a_multiple_of_the_step(
    stop: float, columns: int, interval: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million rows, and a quarter of the memory, here 1 TB: 12500 rows of 10 million columns."""
    monkeypatch.setattr(times, "memory", lambda: 4e12)
    assert default_interval("x", 0.0, stop, 1e-3, columns, "so") == pytest.approx(interval, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"step": 1e-3}, {"formulation": "dca", "compiled": False}])
@pytest.mark.usefixtures("few")
def test_fewer_rows_are_those_of_the_same_run(options: dict, caplog: pytest.LogCaptureFixture) -> None:
    """The steps are the same where they are equal, and keep their tolerance where they are chosen."""
    simulation = pendulum().simulation(**options)
    whole = simulation.run(2.0, output_step=1e-3)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    with caplog.at_level("WARNING", logger="mbsfmu"):
        thinned = simulation.run(2.0)
    (told,) = [each for each in caplog.messages if "rows of" in each]
    assert "2e+03 rows" in told
    assert "a row is kept every 0.004 s, 500 rows" in told
    assert "--output-step" in told
    np.testing.assert_allclose(thinned.time, whole.time[::4])
    np.testing.assert_allclose(thinned["rod.angle"], whole["rod.angle"][::4], rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("few")
def test_ensembles_and_coupled_runs_keep_as_few(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = pendulum()
    ensemble = model.ensemble({"m.rod.mass": [1.0, 2.0, 3.0]}, step=1e-3)
    assert len(ensemble.run(2.0).time) == 501
    assert [len(each.result.time) for each in ensemble.single_runs(2.0) if each is not None] == [501] * 3
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic")
    caplog.clear()
    run = cosimulate([str(path)], step=1e-3, stop=2.0)
    assert [each for each in caplog.messages if "--record-interval" in each and "a row is kept every 0.004 s" in each]
    assert len(run.time) == 501
    assert len(cosimulate([str(path)], step=1e-3, stop=2.0, record_interval=1e-3).time) == 2001
    caplog.clear()
    cosimulate([str(path)], step=1e-3, stop=2.0, output=tmp_path / "run.csv")
    assert [each for each in caplog.messages if "makes 2e+03 rows" in each and "in the file" in each]


def test_rows_that_are_asked_for_and_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "memory", lambda: 1e5)
    with pytest.raises(InputError, match=r"2e\+03 steps, and its result of .* GB, half of the memory here; a longer"):
        pendulum().simulation().run(2.0, output_step=1e-3)


def test_short_memory_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the machine gives less than it has, because others have taken it."""

    def refuse(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 9.66 GiB")

    simulation = pendulum().simulation()
    monkeypatch.setattr("mbsfmu.simulation.run_loop.np.empty", refuse)
    with pytest.raises(InputError, match=r"pendulum: the memory is too small .*9.66 GiB.*; --output-step"):
        simulation.run(0.1)
