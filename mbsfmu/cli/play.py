"""The command `mbsfmu play`."""

from __future__ import annotations

from typing import Any

import click

from mbsfmu.cli.assigned_values import assigned, values_option
from mbsfmu.cli.common_options import common_options
from mbsfmu.cli.found_models import find_model
from mbsfmu.cli.help_sections import SectionedCommand
from mbsfmu.cli.live_option import typed
from mbsfmu.cli.model_argument import model_argument
from mbsfmu.cli.option_types import OF_FMUS, options_of, output_file, refuse_same_files
from mbsfmu.cli.output import log_to_stderr
from mbsfmu.cli.standard_output import say
from mbsfmu.cli.terminal import at_work
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
