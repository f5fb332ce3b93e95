"""Report files of commands: option, writer, and recorded rows of runs that ended early."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mbsfmu.base.kept_warnings import KeptWarnings
from mbsfmu.cli.option_types import output_file
from mbsfmu.cli.output import report_kept_rows, to_the_end
from mbsfmu.io.ended_runs import RunError, RunInterrupted
from mbsfmu.io.trajectory import Trajectory

if TYPE_CHECKING:
    from mbsfmu.view.play.play_page import PlayPage

Recorded = TypeVar("Recorded", bound=Trajectory)
Command = TypeVar("Command", bound=Callable[..., Any])


def report_option(command: Command) -> Command:
    """Add `--report`."""
    return click.option("--report", callback=output_file(".html", ".htm"), help="HTML file for the report page.")(
        command
    )


class Reporter:
    """Writes the report of a command, if requested; it stores warnings from its creation on.

    Attributes
    ----------
    path
        The HTML file; None without a report.
    live
        The running machine that is put into it.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.live: PlayPage | None = None
        self._warnings = KeptWarnings()
        if path is not None:
            self._warnings.__enter__()

    def write(self, result: Any, ended: str = "") -> None:
        """Write the report of a result, if requested; `ended` gives the reason of an early end."""
        if self.path is None:
            return
        from mbsfmu.view.report import Circumstances, write_report  # noqa: PLC0415 - few commands are reported on
        from mbsfmu.view.report.circumstances import command_line  # noqa: PLC0415

        with to_the_end():
            told = Circumstances(command_line(sys.argv[1:]), self._warnings.sentences, ended, self.live)
            write_report(result, self.path, told)

    def write_until(self, ended: RunError | RunInterrupted) -> list[str]:
        """Write the report of a run that ended early, if requested; return its files."""
        self.write(ended.result, str(ended) if isinstance(ended, RunError) else "it was interrupted")
        return [] if self.path is None else [self.path]


def recorded(run: Callable[[], Recorded], output: str | None, reporter: Reporter) -> Recorded:
    """Make a run, write its rows and its report, also for a run that ended early."""
    try:
        result = run()
    except (RunError, RunInterrupted) as ended:
        if output:
            with to_the_end():
                ended.result.to_file(output)
        files = [*([output] if output else []), *reporter.write_until(ended)]
        report_kept_rows(files, float(ended.result.time[-1]))
        raise
    if output:
        with to_the_end():
            result.to_file(output)
    reporter.write(result)
    return result
