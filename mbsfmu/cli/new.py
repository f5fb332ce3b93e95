"""The command `mbsfmu new`."""

from __future__ import annotations

import click

from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.found_models import complete_words
from mbsfmu.cli.output import say
from mbsfmu.models.examples import EXAMPLES, write_starting_file


@click.command("new", cls=SectionedCommand)
@click.argument("name")
@click.option("-o", "--output", default=".", show_default=True, help="Folder for the file.")
@click.option(
    "--like", shell_complete=complete_words(lambda: EXAMPLES), help=f"Example to copy instead: {', '.join(EXAMPLES)}."
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@common_options
def command(name: str, output: str, like: str | None, force: bool, quiet: bool, debug: bool) -> None:  # noqa: ARG001
    """Write a Python file with a machine that runs, to change into one's own.

    \b
    Example: mbsfmu new tipper
    Example: mbsfmu new my-crane --like crane
    """
    model, files = write_starting_file(name, output, like=like, force=force)
    for file in files:
        say(str(file))
    if quiet:
        return
    say("\nIt runs as it is:")
    for call in (f"simulate {model} --report report.html", f"play {model} -o page.html", f"export {model} -o units"):
        say(f"  mbsfmu {call}")
