"""Validation of an FMU file: schema, FMPy, and further checks.

Findings have a severity: errors violate the standard, or prevent use in any importer; warnings are against the
standard's advice or prevent use somewhere; hints name missing features.
"""

from __future__ import annotations

import os

from mbsfmu.fmu.validation.checks import find
from mbsfmu.fmu.validation.findings import Finding, Severity

__all__ = ["Finding", "Severity", "validate"]


def validate(path: str | os.PathLike[str]) -> list[Finding]:
    """Return the findings on an FMU, the worst first; empty for a valid one.

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
