"""Terminals of FMUs: ports that exchange power."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mbsfmu.modelling.variables import Causality, Variable

_EXCHANGED = (Causality.INPUT, Causality.OUTPUT)
_MECHANICAL = {"N": ("m/s", "m"), "N.m": ("rad/s", "rad")}
"""Units of efforts, with those of the rates that make a power with them, and of what these are the rates of."""
_PRESSURE, _FLOW = "Pa", "m3/s"


@dataclass(frozen=True)
class TerminalMember:
    """A variable of a terminal.

    Attributes
    ----------
    variable
        Its name in the unit.
    name
        Its name in the port: ports are connected by these.
    kind
        `inflow` and `outflow` of what adds up to zero where ports meet, positive into the unit and out of it; `signal`
        of what is the same in all of them.
    """

    variable: str
    name: str
    kind: str


@dataclass(frozen=True)
class Terminal:
    """A terminal: its name and its variables."""

    name: str
    members: tuple[TerminalMember, ...]


def terminals(variables: Sequence[Variable]) -> tuple[Terminal, ...]:
    """Return the terminals: inputs and outputs of one component whose product is a power, one in, one out.

    Force and velocity, torque and angular velocity, with the length or angle on the side of the rate; pressure and
    flow. A force or torque that comes in acts on the unit, one that goes out acts on what it is connected with; flows
    are positive into the unit.
    """
    exchanged: dict[str, list[Variable]] = {}
    for variable in variables:
        owner, dot, _ = variable.name.rpartition(".")
        if dot and variable.causality in _EXCHANGED:
            exchanged.setdefault(owner, []).append(variable)
    found = ((owner, tuple(_members(own))) for owner, own in exchanged.items())
    return tuple(Terminal(owner, members) for owner, members in found if members)


def _members(variables: Sequence[Variable]) -> Iterator[TerminalMember]:
    """Return the members of the terminal of one component's variables; none if there is none, or several."""
    pairs = [
        (effort, rate)
        for effort in variables
        for rate in variables
        if effort.causality is not rate.causality and _makes_power(effort.unit, rate.unit)
    ]
    if len(pairs) != 1:
        return
    ((effort, rate),) = pairs
    if effort.unit == _PRESSURE:
        yield _member(effort, "signal")
        yield _member(rate, "inflow")
        return
    yield _member(effort, "inflow" if effort.causality is Causality.INPUT else "outflow")
    yield _member(rate, "signal")
    position = _MECHANICAL[effort.unit][1]
    yield from (_member(v, "signal") for v in variables if (v.unit, v.causality) == (position, rate.causality))


def _makes_power(effort: str, rate: str) -> bool:
    return (effort, rate) == (_PRESSURE, _FLOW) or (effort in _MECHANICAL and _MECHANICAL[effort][0] == rate)


def _member(variable: Variable, kind: str) -> TerminalMember:
    return TerminalMember(variable.name, variable.name.rpartition(".")[2], kind)
