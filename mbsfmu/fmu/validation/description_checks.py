"""Checks of the description: identity, date, capabilities, default experiment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mbsfmu.fmu.validation.subject import Subject

_UTC = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_DATE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?$")
_EXPERIMENT = ("startTime", "stopTime", "tolerance", "stepSize")
_TRUE = ("true", "1")


def check_description(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on root attributes, default experiment, and capabilities."""
    root = subject.root
    identity = "instantiationToken" if subject.version == "3.0" else "guid"
    if not (root.get(identity) or "").strip():
        yield "identity", f"the attribute {identity} is empty"
    date = root.get("generationDateAndTime")
    if date is not None and subject.version == "2.0" and not _UTC.match(date):
        yield "date", f"generationDateAndTime is {date}; it should be in UTC and end in Z"
    if date is not None and subject.version == "3.0" and not _DATE.match(date):
        yield "date", f"generationDateAndTime is {date}; it must be a date and a time as in 2009-12-08T14:33:22Z"
    experiment = root.find("DefaultExperiment")
    for attribute in _EXPERIMENT:
        if experiment is None or experiment.get(attribute) is None:
            yield "default-experiment", f"DefaultExperiment has no {attribute}"
    yield from _check_capabilities(subject)


def _check_capabilities(subject: Subject) -> Iterator[tuple[str, str]]:
    if not subject.interfaces:
        yield "schema", "it is for neither co-simulation nor model exchange nor scheduled execution"
    for interface in subject.interfaces:
        if interface.get("needsExecutionTool") in _TRUE:
            yield "execution-tool", f"{interface.tag} needs the tool that made it (needsExecutionTool)"
        if interface.get("canBeInstantiatedOnlyOncePerProcess") in _TRUE:
            yield "one-instance", f"{interface.tag} can have one instance in a process only"
    state = "canGetAndSetFMUState" if subject.version == "3.0" else "canGetAndSetFMUstate"
    co_simulation, exchange = (subject.root.find(name) for name in ("CoSimulation", "ModelExchange"))
    if any(each is not None and each.get(state) not in _TRUE for each in (co_simulation, exchange)):
        yield "no-states", f"without {state}, no master can repeat a step"
    if co_simulation is None:
        yield "no-co-simulation", "it has no co-simulation, which most importers need"
    elif co_simulation.get("canHandleVariableCommunicationStepSize") not in _TRUE:
        yield "equal-steps", "without canHandleVariableCommunicationStepSize, a master must make equal steps"
