"""Checks of model-exchange data: states, derivatives, event indicators."""

from __future__ import annotations

from collections.abc import Iterator

from mbsfmu.fmu.validation.structure_checks import listed_unknowns, variables_by_key
from mbsfmu.fmu.validation.subject import Subject, WrittenVariable

_MAY_BE_STATES = ("local", "output", None)


def check_exchange(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on derivatives and event indicators of the model structure."""
    known, listed = variables_by_key(subject), listed_unknowns(subject)
    derivatives = [known[key] for key, _ in listed["Derivatives"] if key in known]
    states: dict[str, str] = {}
    for derivative in derivatives:
        key = derivative.get("derivative")
        state = known.get(key or "")
        if state is None:
            of = "it does not say of which variable" if key is None else f"it is that of {key}, which is no variable"
            yield "derivative", f"ModelStructure lists {derivative.name} as a derivative, but {of}"
            continue
        yield from _check_state(state, derivative)
        if state.name in states:
            yield "derivative", f"{derivative.name} and {states[state.name]} are both the derivative of {state.name}"
        states[state.name] = derivative.name
    for key, _ in listed.get("EventIndicators", ()):
        indicator = known.get(key)
        if indicator is not None and not (indicator.type.startswith("Float") and _is_continuous(indicator)):
            yield "event-indicator", f"{indicator.name} is an event indicator; it must be continuous and Float64"
    exchange = subject.root.find("ModelExchange")
    flag = f"providesDirectionalDerivative{'s' if subject.version == '3.0' else ''}"
    if derivatives and exchange is not None and exchange.get(flag) not in ("true", "1"):
        yield "no-derivatives", f"without {flag}, implicit solvers find the Jacobian by differences"


def _check_state(state: WrittenVariable, derivative: WrittenVariable) -> Iterator[tuple[str, str]]:
    """Yield reasons why a variable cannot be the state of a derivative."""
    if state.type not in ("Real", "Float64") or not _is_continuous(state):
        yield "state", f"{state.name} is the state of {derivative.name}; it must be continuous and Real or Float64"
    elif state.get("causality") not in _MAY_BE_STATES:
        yield "state", f"{state.name} is the state of {derivative.name}; its causality is {state.get('causality')}"


def _is_continuous(variable: WrittenVariable) -> bool:
    return variable.get("variability") in ("continuous", None)
