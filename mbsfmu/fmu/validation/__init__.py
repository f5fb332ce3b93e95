"""Checks of an FMU file: those of the standard's schema and of FMPy, and those that no checker makes.

What is found has a severity: errors break the standard, or no importer can use the file; warnings are what the standard
advises against or what keeps the file from running somewhere; hints tell what importers have to do without.
"""

from __future__ import annotations

import os

from mbsfmu.fmu.validation.checks import find
from mbsfmu.fmu.validation.findings import Finding, Severity

__all__ = ["Finding", "Severity", "validate"]


def validate(path: str | os.PathLike[str]) -> list[Finding]:
    """Return what is to be said of an FMU, the worst first; nothing when it is good.

    Parameters
    ----------
    path
        An FMU file, ours or not.

    Raises
    ------
    InputError
        When there is no such file, or it is no FMU.
    """
    return sorted(find(path), key=lambda finding: list(Severity).index(finding.severity))
