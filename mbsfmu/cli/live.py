"""The command `mbsfmu live`."""

from __future__ import annotations

from typing import Any

import click

from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.options import SECONDS, assigned, options_of, parts_option
from mbsfmu.cli.output import log_to_stderr, say
from mbsfmu.cosim.runs.coupling_options import CouplingOptions
from mbsfmu.io.part_files import load_parts
from mbsfmu.view.live.live_server import live


@click.command("live", cls=SectionedCommand)
@click.argument("source", nargs=-1, required=True)
@click.option("--connect", multiple=True, help="Connection a.y=b.u, from output to input; repeatable.")
@click.option("--set", "parameters", multiple=True, help="Parameter fmu.parameter=value; repeatable.")
@click.option("--start", "starts", multiple=True, help="Start value fmu.variable=value; repeatable.")
@options_of(CouplingOptions, "algorithm", "extrapolation", "step", "isolate", "threads")
@click.option("--stop", type=SECONDS, help="Stop time in s; an hour by default.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port; 0 for a free one.")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Whether to open the page in a browser.")
@parts_option
@common_options
def command(
    source: tuple[str, ...],
    connect: tuple[str, ...],
    parameters: tuple[str, ...],
    starts: tuple[str, ...],
    port: int,
    browser: bool,
    parts: tuple[str, ...],
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **options: Any,
) -> None:
    """Run coupled FMUs at real time behind a page on this machine that drives them.

    SOURCE is as for cosim. The page has sliders for inputs, tunable parameters, plots, pause and saved states; only
    this machine reaches it, by the address that is printed. It ends when the page is closed, or by Ctrl-C. It needs
    pip install 'mbsfmu[live]'.

    \b
    Example: mbsfmu live out/four-bar.ssp --step 1e-3
    Example: mbsfmu live a.fmu b.fmu --connect a.y=b.u --connect b.y=a.u --step 1e-2
    """
    log_to_stderr(quiet)
    with load_parts(parts).given():
        live(
            source,
            connections=connect,
            parameters=assigned((*parameters, *starts)),
            port=port,
            browser=browser,
            opened=say,
            **options,
        )
