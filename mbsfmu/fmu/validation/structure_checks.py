"""Checks of the model structure: listed unknowns and dependencies."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from mbsfmu.fmu.validation.subject import Subject, WrittenVariable


def check_structure(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on missing or wrong entries of the model structure."""
    listed = listed_unknowns(subject)
    known = variables_by_key(subject)
    for tag, unknowns in listed.items():
        for key, node in unknowns:
            if key not in known:
                yield "structure", f"ModelStructure/{tag} lists {key}, which is no variable"
            for needed in (node.get("dependencies") or "").split():
                if needed not in known:
                    yield (
                        "dependencies",
                        f"ModelStructure/{tag} says that {key} depends on {needed}, which is no variable",
                    )
    outputs = {key for key, each in known.items() if each.get("causality") == "output"}
    wanted = {"Outputs": outputs, "InitialUnknowns": _unknown_at_start(subject, listed)}
    for tag, expected in wanted.items():
        rule = "outputs" if tag == "Outputs" else "initial-unknowns"
        found = {key for key, _ in listed[tag]} & set(known)
        for key in sorted(expected - found, key=int):
            yield rule, f"{known[key].name} is missing in ModelStructure/{tag}"
        for key in sorted(found - expected, key=int):
            what = "no output" if tag == "Outputs" else "none that is calculated at the start"
            yield rule, f"{known[key].name} stands in ModelStructure/{tag}, but is {what}"
    without = [known[key].name for key, node in listed["Outputs"] if key in known and node.get("dependencies") is None]
    if without and any(each.get("causality") == "input" for each in subject.variables):
        others = f" and {len(without) - 1} other outputs" if without[1:] else ""
        yield (
            "no-dependencies",
            f"{without[0]}{others} may depend on all inputs, as far as the description says: masters see algebraic "
            "loops that may be none",
        )


def variables_by_key(subject: Subject) -> dict[str, WrittenVariable]:
    """Return the variables by what the structure calls them: their numbers, from FMI 3.0 on their references."""
    if subject.version == "3.0":
        return {each.get("valueReference") or "": each for each in subject.variables}
    return {str(each.index): each for each in subject.variables}


def listed_unknowns(subject: Subject) -> dict[str, list[tuple[str, etree._Element]]]:
    """Return the unknowns in each part of the structure."""
    parts = {
        "Outputs": "Output", "Derivatives": "ContinuousStateDerivative", "InitialUnknowns": "InitialUnknown",
        "ClockedStates": "ClockedState", "EventIndicators": "EventIndicator",
    }  # fmt: skip
    if subject.version == "3.0":
        return {
            part: [(each.get("valueReference", ""), each) for each in subject.root.iterfind(f"ModelStructure/{tag}")]
            for part, tag in parts.items()
        }
    return {
        part: [(each.get("index", ""), each) for each in subject.root.iterfind(f"ModelStructure/{part}/Unknown")]
        for part in list(parts)[:3]
    }


def _unknown_at_start(subject: Subject, listed: dict[str, list[tuple[str, etree._Element]]]) -> set[str]:
    """Return the unknowns of initialization: outputs, calculated parameters, states and derivatives."""
    known = variables_by_key(subject)
    derivatives = {key for key, _ in listed["Derivatives"] if key in known}
    states = {known[key].get("derivative") or "" for key in derivatives} & set(known)
    clocked = {key for key, each in known.items() if each.get("clocks")}
    outputs = {key for key, each in known.items() if each.get("causality") == "output"} - clocked
    calculated = {key for key in outputs | derivatives | states if _is_calculated(known[key])}
    return calculated | {key for key, each in known.items() if each.get("causality") == "calculatedParameter"}


def _is_calculated(variable: WrittenVariable) -> bool:
    """Return whether a variable is calculated at initialization, or has an approximate start value."""
    default = "exact" if variable.get("variability") == "constant" else "calculated"
    return (variable.get("initial") or default) != "exact"
