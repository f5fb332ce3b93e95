"""Provenance of a report: call, versions, machine, date, warnings."""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mbsfmu.view.pages.blocks import call, notes, section
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.pages.html_table import key_value_table
from mbsfmu.view.play.play_page import PlayPage

_PACKAGES = ("mbsfmu", "numpy", "scipy", "casadi", "fmpy")
_ADDRESS, _FOLDERS = r"[A-Za-z][A-Za-z0-9+.-]*://\S+", r"(?:[A-Za-z]:)?[^\s=:,]*[/\\]"


@dataclass(frozen=True)
class Circumstances:
    """Provenance and warnings of a report.

    Attributes
    ----------
    command
        The call it came from, as one types it; nothing where it came from Python.
    warnings
        What was warned of on the way.
    ended
        Why the run ended before its time; nothing where it did not.
    live
        The running machine, for the page of a run in process or of a comparison.
    """

    command: str = ""
    warnings: Sequence[str] = ()
    ended: str = ""
    live: PlayPage | None = None

    def live_machine(self) -> list[HtmlElement]:
        """Return the running machine; empty without one."""
        return [self.live.inside] if self.live is not None else []

    def warning_notes(self) -> list[HtmlElement]:
        """Return the warnings; empty without any."""
        return [notes("Warnings", self.warnings)] if self.warnings else []

    def provenance(self) -> HtmlElement:
        """Return the provenance, without names of folders, users or machines."""
        known = {
            "versions": ", ".join(_versions()),
            "machine": machine(),
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        }
        return section("Where this comes from", call(self.command or "mbsfmu.write_report(…)"), key_value_table(known))


def command_line(arguments: Sequence[str]) -> str:
    """Return a call of `mbsfmu` as typed, with file names only and without addresses."""
    return shlex.join(["mbsfmu", *(re.sub(_FOLDERS, "", re.sub(_ADDRESS, "...", each)) for each in arguments)])


def machine() -> str:
    """Return processor, number of processors and system, without the machine's name."""
    count = os.cpu_count() or 1
    processors = "1 processor" if count == 1 else f"{count} processors"
    return ", ".join(filter(None, (_processor(), processors, f"{platform.system()} {platform.machine()}".strip())))


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    if cpus.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", cpus.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        return " ".join(found[1].split()) if found else ""
    return platform.processor()


def _versions() -> list[str]:
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found
