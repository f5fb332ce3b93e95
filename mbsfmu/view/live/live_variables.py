"""Variables of coupled FMUs as a page shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.fmus.fmu_instance import Instance, Port
from mbsfmu.cosim.runs.cosimulation import Cosimulation
from mbsfmu.modelling.variables import Causality, Variability, Variable

_PLOTTED, _PANELS = 4, 2
"""Outputs of a unit that are plotted at first, and units."""
_OF_RUNS = "solver."
"""Beginning of the names of settings of our FMUs, which no page changes."""


@dataclass(frozen=True)
class LiveVariables:
    """Variables of coupled FMUs, as `unit.variable`, in the form of the page.

    Attributes
    ----------
    inputs
        Inputs that no connection drives, with the range of their sliders.
    parameters
        Tunable parameters, and fixed ones that count from the next reset on.
    signals
        Continuous variables that are computed.
    plotted
        Names of the signals that are plotted at first.
    order
        Places of the signals among the values of the ports.
    """

    inputs: list[dict[str, Any]]
    parameters: list[dict[str, Any]]
    signals: list[dict[str, Any]]
    plotted: list[str]
    order: NDArray[np.intp]

    @classmethod
    def of(cls, run: Cosimulation) -> LiveVariables:
        """Return the variables of a run at its start."""
        taken = {each.target for each in run.coupling.connections}
        inputs = [
            {**described(run, unit, each), **_range(each, float(run[f"{unit.name}.{each.name}"]))}
            for unit, each in _of(run, Causality.INPUT)
            if (unit.name, each.name) not in taken
        ]
        parameters = [
            {**described(run, unit, each), "fixed": each.variability is not Variability.TUNABLE}
            for unit, each in _of(run, Causality.PARAMETER)
            if not each.name.startswith(_OF_RUNS)
        ]
        signals = [
            {**described(run, unit, each), "most": abs(each.nominal or 0.0)}
            for causality in (Causality.OUTPUT, Causality.LOCAL)
            for unit, each in _of(run, causality)
            if each.variability is Variability.CONTINUOUS
        ]
        for group in (inputs, parameters, signals):
            for place, each in enumerate(group):
                each["reference"] = place
        units = [unit.name for unit in _instances(run)]
        read = sorted(range(len(signals)), key=lambda place: units.index(signals[place]["unit_name"]))
        return cls(inputs, parameters, signals, _plotted(run, signals), np.argsort(read))

    def ports(self, run: Cosimulation) -> list[Port]:
        """Return the ports of a run that give the signals, one for each FMU that has some."""
        found = []
        for unit in _instances(run):
            names = [each["variable"] for each in self.signals if each["unit_name"] == unit.name]
            if names:
                found.append(unit.port(names))
        return found


def described(run: Cosimulation, unit: Instance, variable: Variable) -> dict[str, Any]:
    """Return a variable as the page shows it."""
    name = f"{unit.name}.{variable.name}"
    return {
        "name": name,
        "unit_name": unit.name,
        "variable": variable.name,
        "unit": unit.units[variable.name].name or "1",
        "start": float(run[name]) if variable.settable else 0.0,
        "least": variable.minimum,
        "greatest": variable.maximum,
        "description": variable.description,
    }


def _instances(run: Cosimulation) -> list[Instance]:
    return list({member.instance.name: member.instance for member in run.coupling.members}.values())


def _of(run: Cosimulation, causality: Causality) -> Iterator[tuple[Instance, Variable]]:
    """Yield the numbers of a causality with their FMUs; inputs and parameters once, whatever names they have."""
    written = causality in (Causality.INPUT, Causality.PARAMETER)
    for unit in _instances(run):
        for name, each in unit.variables.items():
            if each.causality is causality and not (written and name in unit.aliases) and unit.kinds[name] == "Real":
                yield unit, each


def _range(variable: Variable, start: float) -> dict[str, float]:
    """Return between which values the slider of an input goes: its bounds, or twice its start, or its nominal value."""
    size = 2.0 * abs(start) or variable.nominal or 1.0
    low = -size if variable.minimum is None else variable.minimum
    high = size if variable.maximum is None else variable.maximum
    return {"from": min(low, start), "to": max(high, start)}


def _plotted(run: Cosimulation, signals: list[dict[str, Any]]) -> list[str]:
    """Return the first outputs of the first units of measurement."""
    outputs = {f"{unit.name}.{each.name}" for unit, each in _of(run, Causality.OUTPUT)}
    found: dict[str, list[str]] = {}
    for each in signals:
        if each["name"] in outputs:
            found.setdefault(each["unit"], []).append(each["name"])
    return [name for names in list(found.values())[:_PANELS] for name in names[:_PLOTTED]]
