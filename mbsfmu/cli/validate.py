"""The command `mbsfmu validate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import click

from mbsfmu.base.errors import SimulationError
from mbsfmu.cli.common_options import common_options
from mbsfmu.cli.option_types import output_file, refuse_same_files
from mbsfmu.cli.output import write_json
from mbsfmu.cli.standard_output import say
from mbsfmu.fmu.validation import Finding, Severity, validate


@click.command("validate")
@click.argument("files", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for the findings by file.")
@common_options
def command(files: tuple[str, ...], strict: bool, json_file: str | None, quiet: bool, debug: bool) -> None:  # noqa: ARG001
    """Check FMU files, ours or not, of FMI 2.0 and 3.0.

    Errors break the standard; warnings are advised against, or keep the file from running somewhere; hints tell what
    importers have to do without. Each finding has the name of its rule and its place in the standard. The exit status
    is 1 where there is an error.

    \b
    Example: mbsfmu validate out/four-bar.fmu
    Example: mbsfmu validate theirs.fmu --strict --json findings.json
    """
    refuse_same_files(json_file, inputs=files)
    findings = {file: validate(file) for file in files}
    write_json(json_file, {file: [asdict(each) for each in found] for file, found in findings.items()})
    for file, found in findings.items():
        say(f"{file}: {_counted(found)}")
        for each in found:
            say(f"  {each}")
    wrong = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    if any(each.severity in wrong for found in findings.values() for each in found):
        raise SimulationError(f"there are {' or '.join(f'{each}s' for each in Severity if each in wrong)}")


def _counted(found: Sequence[Finding]) -> str:
    counts = Counter(each.severity for each in found)
    warn = [f"{counts[each]} {each}{'s' if counts[each] > 1 else ''}" for each in Severity if counts[each]]
    return ", ".join(warn) or "no problem"
