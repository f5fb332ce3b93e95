"""What exporting FMUs for model exchange costs: processor time, memory of the compiler, size of the library.

Needs gcc. Each export is a process of its own. Run: python benchmarks/model_exchange/costs.py [--quick] [MACHINE …]
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import zipfile

from machines import machine

import mbsfmu

QUICK = "--quick" in sys.argv
NAMES = ("spatial-2",) if QUICK else ("four-bar", "crane", "spatial-4", "spatial-8", "excavator")
KINDS = ("cs", "me")


def export_one(name: str, formulation: str, kind: str) -> None:
    """Export in this process, and print s, MB and kB."""
    with tempfile.TemporaryDirectory() as folder:
        (unit,) = mbsfmu.export(machine(name), folder, layout="monolithic", kind=kind, formulation=formulation)
        with zipfile.ZipFile(unit) as archive:
            library = sum(each.file_size for each in archive.infolist() if each.filename.startswith("binaries/"))
    own, compilers = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    spent = [each.ru_utime + each.ru_stime for each in (own, compilers)]
    print(*spent, compilers.ru_maxrss / 1024, library / 1000)


def main() -> None:
    """Print the table."""
    names = [each for each in sys.argv[1:] if not each.startswith("-")] or NAMES
    print("| machine | kind | tracing [s] | compiling [s] | compiler's memory [MB] | library [kB] |")
    print("|" + " --- |" * 6)
    for name in names:
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as cache:
                done = subprocess.run(
                    [sys.executable, __file__, "--one", name, "double-step", kind],
                    check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "MBSFMU_CACHE": cache},
                )  # fmt: skip
            traced, compiled, memory, size = map(float, done.stdout.split())
            print(f"| {name} | {kind} | {traced:.1f} | {compiled:.1f} | {memory:.0f} | {size:.0f} |", flush=True)


if __name__ == "__main__":
    if "--one" in sys.argv:
        export_one(*sys.argv[sys.argv.index("--one") + 1 :])
    else:
        main()
