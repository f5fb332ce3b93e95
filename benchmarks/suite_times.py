"""Processor time of each test, and from it `tests/slow.toml`: what is left out where little time is.

    python benchmarks/suite_times.py                    # runs the suite, and again what is not slow: an hour
    python benchmarks/suite_times.py --not-slow         # runs what is not slow, and lists more of it
    python benchmarks/suite_times.py --times times.tsv  # as measured before

A test whose cases take longer each than `ALONE` is slow as a whole. Of one whose cases take longer together than
`TOGETHER`, as many run always as take that time, chosen by the test's name: the formulations and models that stand
first in each list would otherwise be the only ones that run. A file whose tests are all slow keeps the case that takes
least, but for one above `LEAST`. What was not measured stays as listed. Cases in
`tests/guards.toml` run always.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]
LISTED, GUARDED = (FOLDER / "tests" / name for name in ("slow.toml", "guards.toml"))
TIMES = "SUITE_TIMES"
ALONE = 0.5
"""Processor time in s of a case; above it a test is slow as a whole."""
TOGETHER = 0.5
"""Processor time in s of the cases of a test that run always."""
LEAST = 3.0
"""Processor time in s of the one case that a file of slow tests keeps; none where it takes longer."""
WAITED = 0.5
"""What a second of waiting counts: a browser and programs that outlive a test compute meanwhile, on another core."""

Cases = dict[str, float]
Listed = dict[str, dict[str, list[str]]]


def _used() -> float:
    """Return the processor time in s of this process and of children that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Append a line for each test: processor time in s, time on the clock in s, name."""
    used, begin = _used(), time.perf_counter()
    yield
    with open(os.environ[TIMES], "a", encoding="utf-8") as file:
        file.write(f"{_used() - used:.3f}\t{time.perf_counter() - begin:.3f}\t{item.nodeid}\n")


def measured(times: Path, *arguments: str) -> None:
    """Run tests and write the time of each into a file."""
    # As a module of the folder: the folder itself on the path would take the place of examples of the same name.
    environment = {**os.environ, TIMES: str(times), "PYTHONPATH": str(FOLDER)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", f"benchmarks.{Path(__file__).stem}", *arguments]
    subprocess.run(command, cwd=FOLDER, env=environment, check=True, stdout=sys.stderr)


def read(*times: Path) -> dict[str, dict[str, Cases]]:
    """Return what each case took in s, by file, function and case; "" where there is one only.

    Of several runs, the longest time: what many tests share is made by the first of them, which may be slow and left
    out in the next run.
    """
    found: dict[str, dict[str, Cases]] = defaultdict(lambda: defaultdict(dict))
    for line in "".join(each.read_text(encoding="utf-8") for each in times).splitlines():
        used, clock, name = line.split("\t")
        file, _, rest = name.partition("::")
        function, _, case = rest.partition("[")
        cases, case = found[file][function], case.removesuffix("]")
        cases[case] = max(float(used), WAITED * float(clock), cases.get(case, 0.0))
    return found


def always(name: str, cases: Cases) -> list[str] | None:
    """Return the cases of a slow test that run always; None if it is not slow."""
    total = sum(cases.values())
    mean = total / len(cases)
    if total <= TOGETHER:
        return None
    if mean > ALONE:
        return []
    count = max(int(TOGETHER / mean), 1)
    if count == len(cases):
        return None
    turn = zlib.crc32(name.encode()) % len(cases)
    names = list(cases)
    return [(names + names)[turn + index * len(cases) // count] for index in range(count)]


def slow(file: str, functions: dict[str, Cases], listed: Listed) -> dict[str, list[str]]:
    """Return the slow tests of a file with the cases that run always, of those measured and of others listed before."""
    before = listed.get(file.removeprefix("tests/"), {})
    chosen: dict[str, list[str] | None] = dict(before)
    for name, cases in functions.items():
        kept = always(f"{file}::{name}", cases)
        if kept is not None or not set(cases) <= set(before.get(name, ())):
            chosen[name] = kept
    found = {name: kept for name, kept in sorted(chosen.items()) if kept is not None}
    if functions and functions.keys() <= found.keys() and not any(found.values()):
        least, name, case = min((time, name, case) for name, cases in functions.items() for case, time in cases.items())
        if least < LEAST:
            found[name] = [case]
    return found


def written(found: dict[str, dict[str, Cases]], listed: Listed) -> str:
    """Return the text of `slow.toml`."""
    lines = [
        "# Tests that -m 'not slow' leaves out, by file and function, with the cases that run nevertheless.",
        "# Written by benchmarks/suite_times.py from the time that each took.",
    ]
    for file in sorted({*found, *(f"tests/{name}" for name in listed)}):
        if entries := [
            f"{name} = {json.dumps(kept, ensure_ascii=False)}"
            for name, kept in slow(file, found.get(file, {}), listed).items()
        ]:
            lines += ["", f"[{json.dumps(file.removeprefix('tests/'))}]", *entries]
    return "\n".join(lines) + "\n"


def table(found: dict[str, dict[str, Cases]], listed: Listed) -> str:
    """Return the processor time of each folder in s, of all and of what is not slow."""
    subjects = tomllib.loads(GUARDED.read_text(encoding="utf-8")).values()
    guards = {f"tests/{test}": cases for tests in subjects for test, cases in tests.items()}
    rows: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0, 0.0])
    for file, functions in found.items():
        chosen = slow(file, functions, listed)
        for name, cases in functions.items():
            left = [cases[case] for case in {*chosen.get(name, cases), *guards.get(f"{file}::{name}", ())}]
            for folder in (file.split("/")[1], "all"):
                row = rows[folder]
                for index, value in enumerate((len(cases), sum(cases.values()), len(left), sum(left))):
                    row[index] += value
    head = "| folder | tests | s | not slow | s |\n| --- | --: | --: | --: | --: |\n"
    ordered = sorted(rows.items(), key=lambda entry: -entry[1][1])
    return head + "\n".join(f"| {folder} | {a:.0f} | {b:.1f} | {c:.0f} | {d:.1f} |" for folder, (a, b, c, d) in ordered)


def main() -> None:
    """Run the suite, or read how long it took, and write which tests are slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few tests only, and nothing is written")
    parser.add_argument("--not-slow", action="store_true", help="run what is not slow alone")
    parser.add_argument("--times", type=Path, nargs="+", help="files that earlier runs wrote")
    options = parser.parse_args()
    partial = options.times or options.not_slow or options.quick
    listed: Listed = tomllib.loads(LISTED.read_text(encoding="utf-8")) if partial else {}
    if options.times:
        found = read(*options.times)
    else:
        with tempfile.TemporaryDirectory() as folder:
            times = Path(folder) / "times.tsv"
            if options.quick:
                measured(times, "tests/base/test_files.py")
            elif not options.not_slow:
                measured(times, "-n", "2")
                LISTED.write_text(written(read(times), {}), encoding="utf-8")
            if not options.quick:
                measured(times, "-n", "2", "-m", "not slow")
            found = read(times)
    if not options.quick:
        LISTED.write_text(written(found, listed), encoding="utf-8")
    print(table(found, listed))


if __name__ == "__main__":
    main()
