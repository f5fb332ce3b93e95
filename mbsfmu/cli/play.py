"""The command `mbsfmu play`."""

from __future__ import annotations

from typing import Any

import click

from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.found_models import find_model
from mbsfmu.cli.options import OF_FMUS, assigned, model_argument, options_of, typed, values_option
from mbsfmu.cli.output import at_work, log_to_stderr, output_file, refuse_same_files, say
from mbsfmu.simulation.run_options import RunOptions
from mbsfmu.view.play.play_page import play


@click.command("play", cls=SectionedCommand)
@model_argument
@values_option
@options_of(RunOptions, *OF_FMUS)
@click.option("-o", "--output", required=True, callback=output_file(".html", ".htm"), help="HTML file for the page.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    assignments: tuple[str, ...],
    output: str,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **options: Any,
) -> None:
    """Write a page in which MODEL runs, driven by sliders, keys and gamepads.

    The page is one file that needs nothing else. Making it needs pip install 'mbsfmu[cross]'.

    \b
    Example: mbsfmu play four-bar -o four-bar.html
    """
    log_to_stderr(quiet)
    refuse_same_files(output, inputs=[model, *parts])
    with at_work("making the page", quiet):
        play(find_model(model, parts), values=assigned(assignments), source=typed(model, parts), **options).save(output)
    say(output)
