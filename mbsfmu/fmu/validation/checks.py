"""All checks of a file, in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from mbsfmu.fmu.validation.archive_checks import check_archive
from mbsfmu.fmu.validation.description_checks import check_description
from mbsfmu.fmu.validation.document_checks import check_documents
from mbsfmu.fmu.validation.exchange_checks import check_exchange
from mbsfmu.fmu.validation.findings import Finding, finding
from mbsfmu.fmu.validation.fmpy_checks import check_with_fmpy
from mbsfmu.fmu.validation.reference_checks import check_references
from mbsfmu.fmu.validation.structure_checks import check_structure
from mbsfmu.fmu.validation.subject import Subject
from mbsfmu.fmu.validation.variable_checks import check_variables

Found = Iterator[tuple[str, str]]
"""Names of rules, and what is found by them."""

_CHECKS: tuple[Callable[[Subject], Found], ...] = (
    check_archive,
    check_documents,
    check_references,
    check_with_fmpy,
)
_OF_DESCRIPTIONS: tuple[Callable[[Subject], Found], ...] = (
    check_description,
    check_variables,
    check_structure,
    check_exchange,
)


def find(path: str | os.PathLike[str]) -> Iterator[Finding]:
    """Yield all findings on a file; for FMI 1.0 those of FMPy only.

    Raises
    ------
    InputError
        When there is no such file, or it is no FMU.
    """
    subject = Subject(Path(path))
    checks = _CHECKS + (_OF_DESCRIPTIONS if subject.version in ("2.0", "3.0") else ())
    seen: set[tuple[str, str]] = set()
    for check in checks:
        for found in check(subject):
            if found not in seen:
                seen.add(found)
                yield finding(found[0], subject.version, found[1])
