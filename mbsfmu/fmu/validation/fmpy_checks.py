"""Findings of FMPy: schema, names, starts, causalities, units, structure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fmpy.validation import validate_fmu

from mbsfmu.fmu.validation.subject import Subject

_RULES = (
    (r"^(ERROR|FATAL) \(line \d+, column \d+\)", "schema"),
    (r"The variable name .* is not unique", "unique-name"),
    (r"not a legal variable name|contains an illegal .* character", "name"),
    (r'must have variability != "continuous"|combination (of )?causality=', "variability"),
    (r"has no start value|but provides a start value", "start"),
    (r"The display unit", "display-unit"),
    (r"The unit .* is not defined", "unit"),
    (r"declaredType=", "declared-type"),
    (r"Exactly one independent variable", "independent"),
    (r"has the same value reference", "unique-reference"),
    (r"ModelStructure/Outputs", "outputs"),
    (r"ModelStructure/InitialUnknowns", "initial-unknowns"),
    (r"dependenciesKind", "dependencies"),
    (r"derivative", "structure"),
)
"""Rules of FMPy's messages."""
_OURS = re.compile(
    r"contains a backslash|ModelStructure/(Outputs|InitialUnknowns)|fmiBuildDescription|buildDescription.xml"
)
"""FMPy messages replaced by more exact checks."""


def check_with_fmpy(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield FMPy's findings with their rules."""
    try:
        problems = list(validate_fmu(str(subject.path)))
    except Exception as error:  # FMPy raises bare exceptions for descriptions that it cannot read
        problems = [str(error)]
    for problem in problems:
        sentence = re.sub(r"\s+", " ", str(problem)).strip()
        if subject.version in ("2.0", "3.0") and _OURS.search(sentence):
            continue
        rule = next((rule for pattern, rule in _RULES if re.search(pattern, sentence)), None)
        if rule is None:
            rule, sentence = "readable", f"FMPy cannot read it: {sentence}"
        yield rule, sentence
