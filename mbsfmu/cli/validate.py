"""The command `mbsfmu validate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import click

from mbsfmu.base.errors import SimulationError
from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.output import output_file, refuse_same_files, say, write_json
from mbsfmu.fmu.validation import Finding, Severity, validate

_TOLERANCE = 1e-6
"""For the same FMU on another machine, whose compiler and mathematics differ in the last digits."""


@click.command("validate", cls=SectionedCommand)
@click.argument("files", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--reference", is_flag=True, help="Run the FMUs too, and compare them with the results that they hold.")
@click.option(
    "--reference-tolerance",
    type=float,
    default=_TOLERANCE,
    show_default=True,
    help="Largest difference, as a share of the largest magnitude of the reference.",
)
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for the findings by file.")
@common_options
def command(
    files: tuple[str, ...],
    strict: bool,
    reference: bool,
    reference_tolerance: float,
    json_file: str | None,
    quiet: bool,  # noqa: ARG001
    debug: bool,  # noqa: ARG001
) -> None:
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
    missing = [file for file in files if reference and _misses_reference(file, reference_tolerance)]
    if missing:
        raise SimulationError("there are outputs that miss their reference")


def _misses_reference(file: str, tolerance: float) -> bool:
    """Say how far an FMU is from its reference results; tell whether that is too far."""
    from mbsfmu.exporting.reference_results import check_reference  # noqa: PLC0415 - loads the master

    deviations = check_reference(file)
    worst = max(deviations, key=lambda each: each.share)
    say(
        f"{file}: {len(deviations)} outputs with a reference; {worst.name} is off by {worst.share:.3g} of its magnitude"
    )
    return worst.share > tolerance


def _counted(found: Sequence[Finding]) -> str:
    counts = Counter(each.severity for each in found)
    warn = [f"{counts[each]} {each}{'s' if counts[each] > 1 else ''}" for each in Severity if counts[each]]
    return ", ".join(warn) or "no problem"
