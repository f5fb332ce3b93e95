"""What it costs to place FMUs on other hosts: time of the clock for a step of two coupled lags on two workers.

As root on Linux the workers are in network namespaces of their own, with temporary folders of their own; otherwise
they are processes of this host. The difference between a run and a shorter one; the median of several. All runs must
agree to the last bit.

    python benchmarks/coupling/hosts.py [--quick]
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from cosim.linear_units import LinearSystem, export_linear

from mbsfmu import cosimulate

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STEP, SHORT, LONG, REPEATS = 1e-3, 20, 60 if QUICK else 320, 1 if QUICK else 3
NAMES = ("north", "south")
PORT = 18786


def _apart() -> bool:
    """Return whether workers can have namespaces of their own."""
    return not QUICK and os.name == "posix" and os.geteuid() == 0 and all(map(shutil.which, ("ip", "unshare")))


@contextlib.contextmanager
def cluster() -> Iterator[str]:
    """Give the address of a scheduler with two workers, as `dask scheduler` and `dask worker` make them."""
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    host = "0.0.0.0" if _apart() else "127.0.0.1"
    processes = [subprocess.Popen([*dask, "scheduler", "--host", host, "--port", str(PORT), "--no-dashboard"], **quiet)]
    try:
        for index, name in enumerate(NAMES):
            command = [*dask, "worker", "--name", name, "--nthreads", "1", "--no-dashboard"]
            if not _apart():
                processes.append(subprocess.Popen([*command, f"tcp://127.0.0.1:{PORT}"], **quiet))
                continue
            ours, theirs = f"10.77.{index}.1", f"10.77.{index}.2"
            inside = f"ip netns exec {name}"
            for line in (
                f"ip netns add {name}",
                f"ip link add {name} type veth peer name {name} netns {name}",
                f"ip addr add {ours}/24 dev {name}",
                f"ip link set {name} up",
                f"{inside} ip addr add {theirs}/24 dev {name}",
                f"{inside} ip link set {name} up",
                f"{inside} ip link set lo up",
            ):
                subprocess.run(line.split(), check=True)
            own = f"mount -t tmpfs none /tmp && cd /tmp && exec {' '.join(command)} --host {theirs} tcp://{ours}:{PORT}"
            processes.append(subprocess.Popen([*inside.split(), "unshare", "-m", "sh", "-c", own], **quiet))
        yield f"tcp://127.0.0.1:{PORT}"
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
        if _apart():
            for name in NAMES:
                subprocess.run(["ip", "netns", "del", name], check=False)


def run(unit: Path, steps: int, **where: Any) -> tuple[float, np.ndarray]:
    """Return the time of a run on the clock in s, and its rows."""
    begin = time.perf_counter()
    result = cosimulate(
        [f"a={unit}", f"b={unit}"], connections=["a.x=b.u", "b.x=a.u"], step=STEP, stop=steps * STEP,
        algorithm="jacobi", **where,
    )  # fmt: skip
    return time.perf_counter() - begin, result.values_by_column


def main() -> None:
    """Measure, and print a table."""
    matrices = [np.array([[value]]) for value in (-2.0, 2.0, 1.0, 0.0)]
    with tempfile.TemporaryDirectory() as folder, cluster() as scheduler:
        unit = export_linear(LinearSystem("lag", matrices, [1.0], {"u": "1"}, {"x": "1"}), Path(folder), "rk4", STEP)
        _, here = run(unit, LONG)
        ways: dict[str, dict[str, Any]] = {
            "isolated on this host": {"isolate": "all"},
            "one on each of two workers": {"place": {"a": "north", "b": "south"}, "scheduler": scheduler},
            "both on one worker": {"place": {"all": "north"}, "scheduler": scheduler},
        }
        _until_there(unit, ways["one on each of two workers"])
        print(f"workers are {'namespaces' if _apart() else 'processes'} of this host")
        print("| two FMUs, jacobi | ms a step, clock |\n| --- | --- |")
        for name, where in ways.items():
            times = []
            for _ in range(REPEATS):
                short, _ = run(unit, SHORT, **where)
                long, rows = run(unit, LONG, **where)
                assert np.array_equal(rows, here), "hosts do not agree"
                times.append((long - short) / (LONG - SHORT) * 1e3)
            print(f"| {name} | {np.median(times):.2f} |", flush=True)


def _until_there(unit: Path, where: dict[str, Any]) -> None:
    """Wait until both workers are there."""
    for last in (*[False] * 60, True):
        try:
            run(unit, 1, **where)
        except ValueError:
            if last:
                raise
            time.sleep(0.5)
        else:
            return


if __name__ == "__main__":
    main()
