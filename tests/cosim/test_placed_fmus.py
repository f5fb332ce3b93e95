"""FMUs on other hosts: the same to the last bit as here, and a worker that is lost ends in a sentence."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS
from fmpy.ssp.ssd import read_ssd
from foreign_fmus import build_c_unit, has_wine

from mbsfmu import Cosimulation, CosimulationError, InputError, cosimulate
from mbsfmu.cosim.fmus.placed_fmu import PlacedFmu
from mbsfmu.cosim.ssp import read_structure, write_ssp
from mbsfmu.io.trajectory import Trajectory

distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
Foreign = Callable[[str], Path]


class Cluster:
    """Two workers, `north` and `south`, each a process of its own."""

    def __init__(self) -> None:
        spec = {
            name: {"cls": distributed.Nanny, "options": {"nthreads": 1, "name": name}} for name in ("north", "south")
        }
        options = {"dashboard": False, "dashboard_address": ":0", "port": 0, "host": "127.0.0.1"}
        scheduler = {"cls": distributed.Scheduler, "options": options}
        self.cluster = distributed.SpecCluster(workers=spec, scheduler=scheduler, silence_logs=logging.CRITICAL)
        self.scheduler = self.cluster.scheduler_address

    def process(self, worker: str) -> int:
        """Return the process of a worker, which may have begun anew."""
        with distributed.Client(self.scheduler, set_as_default=False) as client:
            known = client.scheduler_info(n_workers=-1)["workers"]
            (address,) = (each for each, facts in known.items() if facts["name"] == worker)
            return client.run(os.getpid, workers=[address])[address]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.cluster.close()


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "jacobi", "extrapolation": "quadratic", "rates": {"one": 2}},
        {"algorithm": "newton", "extrapolation": "linear", "jacobian": "directional"},
    ],
    ids=lambda options: options["algorithm"],
)
def test_runs_are_those_of_one_host(cluster: Cluster, halves_exact: list[Path], options: dict[str, Any]) -> None:
    """The FMUs' files are sent: the workers need see no folder of this host."""
    place = {"one": "north", "two": "south"}
    here = cosimulate(halves_exact, connections=CONNECTIONS, step=5e-3, stop=0.3, **options)
    apart = cosimulate(
        halves_exact, connections=CONNECTIONS, step=5e-3, stop=0.3, place=place, scheduler=cluster.scheduler, **options
    )
    np.testing.assert_array_equal(apart.values_by_column, here.values_by_column)
    assert (apart.iterations, apart.unit_steps) == (here.iterations, here.unit_steps)


@pytest.mark.skipif(not has_wine(), reason="needs Linux, Wine and the extra 'cross'")
def test_an_fmu_for_windows_runs_under_wine_on_a_worker(cluster: Cluster, foreign: Foreign, tmp_path: Path) -> None:
    call: dict[str, Any] = {"step": 0.1, "stop": 1.0}
    here = cosimulate(foreign("rocker"), **call)
    windows = build_c_unit("rocker", tmp_path, windows=True)
    there = cosimulate(windows, place={"all": "south"}, scheduler=cluster.scheduler, **call)
    np.testing.assert_allclose(there.values_by_column, here.values_by_column, rtol=1e-12)
    assert np.ptp(there.values_by_column[:, 1:]) > 0.0


def test_a_worker_that_is_lost_loses_no_row(cluster: Cluster, halves_exact: list[Path], tmp_path: Path) -> None:
    """The rows are those of a run here, and a run from what was saved before goes on with the same bits elsewhere."""
    output = tmp_path / "run.csv"
    call: dict[str, Any] = {"connections": CONNECTIONS, "step": 0.01, "stop": 0.1}
    here = cosimulate(halves_exact, **call)
    call["scheduler"] = cluster.scheduler
    with Cosimulation(halves_exact, place={"one": "north", "two": "south"}, output=output, **call) as run:
        while run.time < 0.025:
            run.step()
        run.save(tmp_path / "saved.zip")
        while run.time < 0.045:
            run.step()
        os.kill(cluster.process("south"), signal.SIGKILL)
        with pytest.raises(CosimulationError, match=r"^two at t = 0\.05 s: its worker 'south' was lost in its step"):
            run.step()
    rows = Trajectory.from_file(output)
    assert rows.time[-1] == pytest.approx(0.05)
    np.testing.assert_array_equal(rows.values_by_column, here.values_by_column[: len(rows.time)])
    gone_on = cosimulate(halves_exact, place={"all": "north"}, resume=tmp_path / "saved.zip", **call)
    np.testing.assert_array_equal(gone_on.values_by_column, here.values_by_column[-len(gone_on.time) :])
    assert len(gone_on.time) > 5


def test_an_fmu_that_is_lost_with_its_worker_is_asked_nothing_more() -> None:
    """Its last calls would wait for the worker once more."""
    lost = PlacedFmu.__new__(PlacedFmu)
    vars(lost).update(_closed=False, _lost=True, _actor=object())  # which answers no call
    lost.close(("Terminate",), ("FreeInstance",))


def test_faults_of_fmus_are_those_of_isolated_ones(cluster: Cluster, foreign: Foreign) -> None:
    """The worker lives on: the FMU has a process of its own there."""
    before = cluster.process("north")
    for fault, sentence in (
        (1, r"misbehaving on north at t = 0\.5 s: its process was ended by SIGSEGV in its step"),
        (4, r"misbehaving on north at t = 0\.5 s did not come back within 1 s in its step"),
    ):
        with pytest.raises(CosimulationError, match=sentence):
            cosimulate(
                foreign("misbehaving"), parameters={"misbehaving.fault": fault}, step=0.1, stop=1.0,
                place={"misbehaving": "north"}, scheduler=cluster.scheduler, time_limit=1.0,
            )  # fmt: skip
    assert cluster.process("north") == before


@pytest.mark.parametrize("placed", [True, False])
def test_fmus_in_other_processes_step_at_the_same_time(
    cluster: Cluster, foreign: Foreign, tmp_path: Path, placed: bool
) -> None:
    """Each waits in its step for the other to be in its own, on one worker too; in turn they wait for nothing."""
    units = [f"one={foreign('meeting')}", f"two={foreign('meeting')}"]
    files = {name: str(tmp_path / f"{name}.step") for name in ("one", "two")}
    parameters = {
        "one.own": files["one"],
        "one.other": files["two"],
        "two.own": files["two"],
        "two.other": files["one"],
    }
    where: dict[str, Any] = (
        {"place": {"all": "north"}, "scheduler": cluster.scheduler} if placed else {"isolate": "all"}
    )
    call: dict[str, Any] = {"parameters": parameters, "step": 0.1, "stop": 0.1, **where}
    assert cosimulate(units, algorithm="jacobi", **call)["one.now"][-1] == pytest.approx(0.1)
    for file in files.values():
        Path(file).unlink()
    with pytest.raises(CosimulationError, match=r"^one at t = 0 s: fmi2DoStep gives error: nobody came"):
        cosimulate(units, algorithm="gauss-seidel", **call)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"place": {"dahlquist": "west"}}, r"the cluster has no worker 'west'; .*(north|south)"),
        ({"place": {"dahlqist": "north"}}, r"there is no FMU 'dahlqist' to be placed; did you mean 'dahlquist'\?"),
        ({"place": {"dahlquist": "north"}, "isolate": ["dahlquist"]}, r"dahlquist cannot be isolated .* and placed"),
        ({"place": "north"}, r"the place is 'north'; it must be workers by FMU"),
        ({}, r"scheduler = tcp.* has no effect with FMUs on this machine; it has with place, or"),
    ],
)
def test_wrong_places_are_refused(cluster: Cluster, foreign: Foreign, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        cosimulate(foreign("dahlquist"), step=0.1, stop=1.0, scheduler=cluster.scheduler, **given)


def test_packages_name_workers(
    cluster: Cluster, foreign: Foreign, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They count with a scheduler alone, and what is given goes before them."""
    units = {"first": foreign("dahlquist"), "second": foreign("dahlquist")}
    place = {"first": "west", "second": "north"}
    package = write_ssp(tmp_path / "placed.ssp", "placed", units, [], 1.0, place=place)
    assert {name: each.worker for (name,), each in read_structure(package, tmp_path).system.components()} == place
    read_ssd(str(package))  # FMPy passes over it
    with caplog.at_level("INFO", logger="mbsfmu"):
        here = cosimulate(package, step=0.1)
    assert "first and second run here: workers that a package names count with a scheduler" in caplog.text
    np.testing.assert_allclose(here["second.x"], np.exp(-here.time), rtol=1e-12)
    with pytest.raises(InputError, match="the cluster has no worker 'west'"):
        cosimulate(package, step=0.1, scheduler=cluster.scheduler)
    there = cosimulate(package, step=0.1, scheduler=cluster.scheduler, place={"first": "north"})
    np.testing.assert_array_equal(there.values_by_column, here.values_by_column)
    for given in ({"place": {"all": "north"}}, {"isolate": ["first"]}):  # before the west of the package
        there = cosimulate(package, step=0.1, scheduler=cluster.scheduler, **given)
        np.testing.assert_array_equal(there.values_by_column, here.values_by_column)
    with pytest.raises(InputError, match="there is no component 'third' to be placed"):
        write_ssp(tmp_path / "none.ssp", "placed", units, [], 1.0, place={"third": "north"})


def test_fmus_run_in_the_worker_where_there_are_no_processes(cluster: Cluster, foreign: Foreign) -> None:
    """As on Windows."""

    def switched(name: str) -> None:
        from mbsfmu.cosim.fmus import fmu_actor  # noqa: PLC0415 - of the worker

        fmu_actor.os = SimpleNamespace(name=name)  # pyright: ignore[reportAttributeAccessIssue]

    with distributed.Client(cluster.scheduler, set_as_default=False) as client:
        client.run(switched, "nt")
        result = cosimulate(
            foreign("dahlquist"), step=0.1, stop=1.0, place={"all": "north"}, scheduler=cluster.scheduler
        )
        client.run(switched, os.name)
    np.testing.assert_allclose(result["x"], np.exp(-result.time), rtol=1e-12)


def test_schedulers_that_are_none_are_refused(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mbsfmu.cosim.fmus.placed_fmu._CONNECTING", 0.5)
    place = {"dahlquist": "north"}
    with pytest.raises(InputError, match=r"dahlquist cannot be placed on workers without the address"):
        cosimulate(foreign("dahlquist"), step=0.1, stop=1.0, place=place)
    for address in ("tcp://127.0.0.1:9", "north"):
        with pytest.raises(InputError, match=rf"^there is no Dask scheduler at '{address}': "):
            cosimulate(foreign("dahlquist"), step=0.1, stop=1.0, place=place, scheduler=address)
        assert dask.config.get("scheduler", None) is None, "else others take the cluster for theirs"
