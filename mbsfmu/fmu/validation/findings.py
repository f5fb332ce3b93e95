"""Findings and rules, with their sections in the standard."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


@dataclass(frozen=True)
class Finding:
    """A finding.

    Attributes
    ----------
    severity
        How bad it is.
    rule
        Name of the rule.
    place
        Where the standard has it.
    sentence
        What is found.
    """

    severity: Severity
    rule: str
    place: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.sentence} ({self.rule}; {self.place})"


@dataclass(frozen=True)
class ValidationRule:
    """A rule: its severity, and its sections in FMI 2.0 and 3.0."""

    severity: Severity
    fmi2: str
    fmi3: str

    def place(self, version: str) -> str:
        """Return the section of a version of the standard."""
        if version.startswith("3."):
            return f"FMI 3.0, section {self.fmi3}"
        return f"FMI 2.0.4, section {self.fmi2}" if version == "2.0" else "FMI 1.0"


_ERROR, _WARNING, _HINT = Severity
RULES = {
    # the file
    "archive-path": ValidationRule(_ERROR, "2.3", "2.5"),
    "archive-compression": ValidationRule(_ERROR, "2.3", "2.5"),
    "archive-link": ValidationRule(_WARNING, "2.3", "2.5"),
    "implementation": ValidationRule(_ERROR, "2.3", "2.5"),
    "library-name": ValidationRule(_ERROR, "2.3", "2.5.1.4"),
    "platform-name": ValidationRule(_WARNING, "2.3", "2.5.1.4.1"),
    "build-description": ValidationRule(_ERROR, "2.3", "2.4.10"),
    "build-identifier": ValidationRule(_WARNING, "2.3", "2.4.10"),
    "terminals": ValidationRule(_ERROR, "2.3", "2.4.9"),
    "terminal-variable": ValidationRule(_ERROR, "2.3", "2.4.9.2.3"),
    "reference-manifest": ValidationRule(_WARNING, "2.3", "2.5"),
    # the description as a whole
    "schema": ValidationRule(_ERROR, "2.2", "2.4"),
    "readable": ValidationRule(_ERROR, "2.2", "2.4"),
    "identity": ValidationRule(_ERROR, "2.2.1", "2.4.1"),
    "date": ValidationRule(_WARNING, "2.2.1", "2.4.1"),
    "default-experiment": ValidationRule(_HINT, "2.2.5", "2.4.6"),
    # units
    "unit": ValidationRule(_ERROR, "2.2.2", "2.4.3"),
    "display-unit": ValidationRule(_ERROR, "2.2.2", "2.4.3"),
    # variables
    "name": ValidationRule(_ERROR, "2.2.9", "2.4.7.5.1"),
    "unique-name": ValidationRule(_ERROR, "2.2.7", "2.4.7.4"),
    "unique-reference": ValidationRule(_ERROR, "2.2.7", "2.4.7.4"),
    "settable-alias": ValidationRule(_ERROR, "2.2.7", "2.4.7.3"),
    "declared-type": ValidationRule(_ERROR, "2.2.7", "2.4.7.5"),
    "variability": ValidationRule(_ERROR, "2.2.7", "2.4.7.4"),
    "start": ValidationRule(_ERROR, "2.2.7", "2.4.7.5"),
    "start-range": ValidationRule(_ERROR, "2.2.7", "2.4.7.5"),
    "start-item": ValidationRule(_WARNING, "2.2.7", "2.4.7.5"),
    "start-count": ValidationRule(_ERROR, "2.2.7", "2.4.7.5"),
    "range": ValidationRule(_ERROR, "2.2.3", "2.4.4"),
    "nominal": ValidationRule(_ERROR, "2.2.3", "2.4.4"),
    "dimension": ValidationRule(_ERROR, "2.2.7", "2.4.7.2"),
    "independent": ValidationRule(_ERROR, "2.2.7", "2.4.7.4"),
    "clock": ValidationRule(_ERROR, "2.2.7", "2.4.7.5"),
    # the structure
    "structure": ValidationRule(_ERROR, "2.2.8", "2.4.8"),
    "outputs": ValidationRule(_ERROR, "2.2.8", "2.4.8"),
    "initial-unknowns": ValidationRule(_ERROR, "2.2.8", "2.4.8"),
    "dependencies": ValidationRule(_ERROR, "2.2.8", "2.4.8"),
    "no-dependencies": ValidationRule(_HINT, "2.2.8", "2.4.8"),
    "derivative": ValidationRule(_ERROR, "2.2.7", "2.4.8"),
    "state": ValidationRule(_ERROR, "2.2.7", "2.4.7.4"),
    "event-indicator": ValidationRule(_ERROR, "2.2.1", "2.4.8"),
    # what importers have to do without
    "execution-tool": ValidationRule(_WARNING, "4.3.1", "2.4.2"),
    "one-instance": ValidationRule(_WARNING, "4.3.1", "2.4.2"),
    "no-states": ValidationRule(_HINT, "4.3.1", "2.4.2"),
    "equal-steps": ValidationRule(_HINT, "4.3.1", "4.4.1"),
    "no-derivatives": ValidationRule(_HINT, "3.3.1", "2.4.2"),
    "no-co-simulation": ValidationRule(_HINT, "4.3.1", "4.4.1"),
}


def finding(rule: str, version: str, sentence: str) -> Finding:
    """Return a finding of a rule for a version of FMI."""
    known = RULES[rule]
    return Finding(known.severity, rule, known.place(version), sentence)
