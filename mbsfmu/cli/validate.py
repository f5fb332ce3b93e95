"""The command `mbsfmu validate`."""

from __future__ import annotations

import click

from mbsfmu.cli.common_options import common_options
from mbsfmu.cli.options import output_file, refuse_same_files
from mbsfmu.cli.output import write_json
from mbsfmu.cli.standard_output import say
from mbsfmu.errors import SimulationError
from mbsfmu.fmu.validation import validate


@click.command("validate")
@click.argument("files", nargs=-1, required=True)
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for the problems by file.")
@common_options
def command(files: tuple[str, ...], json_file: str | None, quiet: bool, debug: bool) -> None:  # noqa: ARG001
    """Check FMU files, ours or not.

    \b
    Example: mbsfmu validate out/four-bar.fmu
    """
    refuse_same_files(json_file, inputs=files)
    problems = {file: validate(file) for file in files}
    write_json(json_file, problems)
    for file, found in problems.items():
        say(f"{file}: {'no problem' if not found else f'{len(found)} problems'}")
        for problem in found:
            say(f"  {problem}")
    if any(problems.values()):
        raise SimulationError("there are problems")
