"""Which required rules of MISRA C:2012 the C sources of FMUs do not keep, how often, and why.

The addon of cppcheck reads the single source of each FMU. Ends with an error where a rule is not kept without a reason
below. Advisory rules are left out. Needs cppcheck with its addon. Run: python benchmarks/misra.py [--quick]
"""

from __future__ import annotations

import collections
import logging
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import mbsfmu
from mbsfmu.cli.found_models import find_model

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
FMUS = (("pendulum-1", 2),) if QUICK else (("pendulum-1", 2), ("pendulum-1", 3), ("four-bar", 2))
"""Models, and versions of the FMI."""
ADVISORY = frozenset(
    (
        *(
            "2.3",
            "2.4",
            "2.5",
            "2.6",
            "2.7",
            "4.2",
            "5.9",
            "8.7",
            "8.9",
            "8.11",
            "8.13",
            "10.5",
            "11.4",
            "11.5",
            "12.1",
        ),
        *("12.3", "12.4", "13.3", "13.4", "15.1", "15.4", "15.5", "17.5", "17.8", "18.4", "18.5", "19.2", "20.1"),
        *("20.5", "20.10", "21.12"),
    )
)
REASONS = {
    "15.6": "bodies of one statement have no braces: the project's style",
    "17.7": "results of `memcpy`, `memset`, `snprintf`, and of calls that cannot fail where they are, are not used",
    "2.2": "sizes of the model that are zero or one leave terms without effect",
    "8.4": "functions of the FMI, which the host's headers declare",
    "10.3": "sizes are `int`, and become `size_t` for `memcpy`",
    "10.4": "as 10.3",
    "10.8": "as 10.3",
    "14.4": "flags are `int` 0 or 1, as in C90 and in `fmi2Boolean`",
    "5.5": "a local variable has the name of a function-like macro",
    "20.7": "macros that apply a macro to a list",
    "17.1": "messages to the logger are formatted by `vsnprintf`",
    "21.6": "as 17.1",
    "21.3": "memory of instances and states",
    "11.8": "not so: the addon takes pointers in a constant structure for constant data",
    "7.4": "not so: the addon takes arrays that a string begins for pointers",
    "20.9": "a condition on a macro that only some models define, zero elsewhere",
    "16.4": "a `switch` over all values of an enumeration has no default, so that compilers tell a missing one",
    "15.7": "an `else if` without a last `else`",
    "14.1": "loops over a share or a time of type `double` that is halved or added up; all have bounds",
    "10.1": "flags of status values are shifted",
    "9.3": "`{0.0}` for an array of zeros",
    "10.6": "a small whole number chosen by two conditions becomes a `double`",
    "11.1": "pointers to functions that are not used are cast to `void`, which says so",
    "20.8": "conditions on sizes of the model: more than zero means that there are some",
    "18.8": "not so: the size is a `sizeof` of a member, which is constant",
}
FOUND = re.compile(r"\[misra-c2012-(\d+\.\d+)\]")


def findings(model: str, fmi: int, folder: Path) -> tuple[collections.Counter[str], int]:
    """Return how often each rule is not kept in the source of an FMU, and the lines of the source."""
    chosen = {"layout": "monolithic", "backend": "native", "sources": "single", "fmi": fmi}
    (path,) = mbsfmu.export(find_model(model, ()), folder, **chosen)
    with zipfile.ZipFile(path) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".c"))
        source = folder / Path(name).name
        source.write_bytes(archive.read(name))
    command = ["cppcheck", "--addon=misra", "--std=c99", "--max-configs=1", "--quiet", source.name]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return collections.Counter(FOUND.findall(done.stderr)), source.read_text().count("\n")


def main() -> None:
    """Print the table, most frequent rules first."""
    logging.disable(logging.WARNING)
    counts, titles = [], []
    for model, fmi in FMUS:
        with tempfile.TemporaryDirectory() as folder:
            found, lines = findings(model, fmi, Path(folder))
        counts.append(found)
        titles.append(f"{model}, FMI {fmi}.0, {lines} lines")
    total = sum(counts, collections.Counter())
    required = [rule for rule, _ in total.most_common() if rule not in ADVISORY]
    print(f"| rule | {' | '.join(titles)} | why |\n|{' --- |' * (2 + len(titles))}")
    for rule in required:
        print(f"| {rule} | {' | '.join(str(found[rule]) for found in counts)} | {REASONS.get(rule, 'no reason')} |")
    unknown = [rule for rule in required if rule not in REASONS]
    if unknown:
        raise SystemExit(f"rules {', '.join(unknown)} are not kept, and no reason is given")


if __name__ == "__main__":
    main()
