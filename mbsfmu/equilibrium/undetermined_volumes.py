"""Undetermined volumes: pressures held by loads or trapped oil, above those of all sources."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite

from hydraulics import Circuit
from hydraulics.component import PortKind, Stage
from mbsfmu.model.circuit_kind import circuits_of

MARGIN = 1.05
"""Factor above source pressures, which excludes the overflow of relief valves."""


def above_sources(
    systems: Mapping[str, object],
    numbers: Mapping[str, float],
    values: Mapping[str, float],
    margin: float = MARGIN,
) -> dict[str, float]:
    """Return node pressures above those that the sources of their circuit can supply, with the latter in Pa.

    Circuits with an unlimited source, such as a pump without a relief valve, are skipped.

    Parameters
    ----------
    systems
        Those of the model.
    numbers
        Parameters and inputs by `system.variable`.
    values
        What is read at rest, by `system.variable`.
    margin
        By which factor they are above.
    """
    found: dict[str, float] = {}
    for name, data in circuits_of(systems).items():
        pressures = {f"{name}.{node}.pressure": node for node in data.volume_nodes}
        known = {reading: values[reading] for reading in pressures if reading in values}
        bound = _highest(name, data, numbers, {pressures[reading]: value for reading, value in known.items()})
        if bound > 0.0:  # tanks alone pump nothing
            found |= {reading: bound for reading, value in known.items() if value > margin * bound}
    return found


def _highest(name: str, circuit: Circuit, numbers: Mapping[str, float], pressures: Mapping[str, float]) -> float:
    """Return the highest pressure of a circuit's sources, including those of their nodes."""
    owns = {each: _numbers_of(f"{name}.{each.name}.", numbers) for each in circuit.components}
    relieved = max((low for each, own in owns.items() if isfinite(low := each.relieving_pressure(own))), default=inf)
    sources = [each for each in circuit.components if each.stage is Stage.SOURCE]
    at_nodes = [pressures[node] for each in sources for node in each.nodes(PortKind.THROUGH) if node in pressures]
    return max([*(_given(each.highest_pressure(own), relieved) for each, own in owns.items()), *at_nodes], default=inf)


def relief_of(systems: Mapping[str, object], numbers: Mapping[str, float], circuit: str) -> str:
    """Return the valve that limits the pumps of a circuit, in words; empty without one.

    Parameters
    ----------
    systems, numbers
        As for `above_sources`.
    circuit
        Its name.
    """
    found: dict[str, float] = {}
    for each in circuits_of(systems)[circuit].components:
        own = _numbers_of(f"{circuit}.{each.name}.", numbers)
        if isfinite(low := each.relieving_pressure(own)):
            found[each.name] = low
        elif isfinite(each.highest_pressure(own)) and each.highest_pressure(own) > 0.0:
            return ""  # a source that is limited by itself
    if not found:
        return ""
    name, limit = max(found.items(), key=lambda each: each[1])
    return f": {circuit}.{name} lets go what they give at {_describe_limit(f'{circuit}.{name}', limit, numbers)}"


def open_reliefs(
    systems: Mapping[str, object], numbers: Mapping[str, float], values: Mapping[str, float]
) -> dict[str, str]:
    """Return the open relief valves by node pressure, with their opening pressures, in words.

    Parameters
    ----------
    systems, numbers, values
        As for `above_sources`.
    """
    found: dict[str, str] = {}
    for circuit, data in circuits_of(systems).items():
        for each in data.components:
            name, inlet = f"{circuit}.{each.name}", f"{circuit}.{each.ports().get('inlet')}.pressure"
            limit = each.relieving_pressure(_numbers_of(f"{name}.", numbers))
            if isfinite(limit) and inlet in values and values.get(f"{name}.flow", 0.0) > 0.0:
                found[inlet] = f"{name} lets oil go there at {_describe_limit(name, limit, numbers)}"
    return found


def _describe_limit(valve: str, limit: float, numbers: Mapping[str, float]) -> str:
    """Return the opening pressure of a valve in words: its setting, if it has one."""
    setting = numbers.get(f"{valve}.setting")
    return f"{limit:.4g} Pa" if setting is None else f"its setting of {setting:.4g} Pa and its override"


def _given(highest: float, relieved: float) -> float:
    return highest if isfinite(highest) else relieved


def _numbers_of(prefix: str, numbers: Mapping[str, float]) -> dict[str, float]:
    return {name.removeprefix(prefix): value for name, value in numbers.items() if name.startswith(prefix)}


def describe_pressures_above(above: Mapping[str, float], values: Mapping[str, float]) -> str:
    """Return a sentence on pressures above those of all sources; empty without any.

    Parameters
    ----------
    above
        What `above_sources` returns.
    values
        What is read at rest, in Pa, by `system.variable`.
    """
    if not above:
        return ""
    named = [
        f"{name} is {values[name]:.4g} Pa, and sources of its circuit bring about {bound:.4g} Pa"
        for name, bound in above.items()
    ]
    return (
        f"{'; '.join(named)}: loads, or oil that is shut in, hold more, and other guesses may lead to other pressures"
    )
