"""What all tests share: where compiled code is kept, how it is compiled, and that they can be interrupted."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tomllib
import zlib
from collections.abc import Iterator
from pathlib import Path

# Before NumPy is loaded: matrices here are small, and threads for each of them wait for each other a hundred times as
# long as one alone takes, more so beside the workers of a parallel run.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from chromium import Chromium
from hypothesis import HealthCheck, settings

from mbsfmu.base.registry import Registry
from mbsfmu.compiling.compiler import OPTIMIZATION
from mbsfmu.compiling.kept import FOLDER
from mbsfmu.io.formats import suffixes, table_format

# How busy the machine is decides no test: examples, and making them, take their time.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled code among what pytest keeps; the workers of a parallel run inherit it and share it.

    Code that is not optimized computes the same to the last bit, as `native/test_optimization.py` shows; it is used for
    moments here, and optimizing it takes longest of all.

    A shell lets what it runs in the background ignore interruptions, and `nohup` hang-ups, which some tests are about.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ.setdefault(OPTIMIZATION, "0")
    zlib.Z_DEFAULT_COMPRESSION = 1  # pyright: ignore[reportAttributeAccessIssue] - of FMUs, which are soon deleted
    if own := shutil.which("cc"):  # zig, which is here for other platforms, takes twice as long for this one
        os.environ.setdefault("CC", own)
    if hasattr(config, "cache") and config.cache is not None and not hasattr(config, "workerinput"):
        os.environ[FOLDER] = str(config.cache.mkdir("compiled"))


SLOW: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("slow.toml").read_text(encoding="utf-8"))
"""Cases that run always, of each slow test in each file."""
GUARDS: dict[str, list[str]] = {
    test: cases
    for tests in tomllib.loads(Path(__file__).with_name("guards.toml").read_text(encoding="utf-8")).values()
    for test, cases in tests.items()
}
"""Cases that run always for what they guard, of each test, whatever time they take."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Mark what was measured to be slow, before `-m` chooses."""
    folder = Path(__file__).parent
    for item in items:
        file, name = item.path.relative_to(folder).as_posix(), item.originalname
        always = SLOW.get(file, {}).get(name)
        if always is not None and item.name.removeprefix(name)[1:-1] not in always + GUARDS.get(f"{file}::{name}", []):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Leave out of garbage collection what lives as long as the run: thousands of tests, and the modules they need.

    Tracing makes many small objects without cycles; rare collections save a twentieth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture(autouse=True)
def formats_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let file formats of users, which have no context, be known in the test that loads them alone."""
    registry: Registry[type[table_format.TableFormat]] = Registry("file format", replaced=True)
    for suffix in suffixes():
        registry.add(suffix, table_format.FORMATS.find(suffix))
    monkeypatch.setattr(table_format, "FORMATS", registry)


@pytest.fixture(autouse=True)
def own_search_path() -> Iterator[None]:
    """Forget where an FMU in Python has its modules: its loader puts that first, and child processes inherit it."""
    before = sys.path[:]
    yield
    sys.path[:] = before


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    """One browser for all tests that look at pages; they are skipped where there is none."""
    found = Chromium.found()
    yield found
    found.close()
