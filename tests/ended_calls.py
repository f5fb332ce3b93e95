"""A call of the command line in the process of a test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Ended:
    """A call of the command line in this process, which costs no start of another one."""

    status: int | str | None
    stdout: str
    stderr: str
