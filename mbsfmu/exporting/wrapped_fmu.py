"""What a wrapper has to know of its FMU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class WrappedVariable:
    """An input, output or parameter.

    Attributes
    ----------
    name, unit, description
        As in the FMU; the description is one line.
    tunable
        Of a parameter: whether it may be set while the FMU runs.
    start, least, largest
        Start value and bounds, where there are any.
    """

    name: str
    unit: str
    description: str
    tunable: bool
    start: float | None
    least: float | None
    largest: float | None


@dataclass(frozen=True)
class WrappedFmu:
    """An FMU as a wrapper needs it.

    Attributes
    ----------
    file
        Name of its file.
    identifier
        `modelIdentifier`, from which tools name what they import.
    description
        One line.
    flat
        Whether names are flat.
    co_simulation, model_exchange
        What it is for.
    step_size
        Suggested communication step in s.
    inputs, outputs, parameters
        In the order of the description, which is that of ports.
    """

    file: str
    identifier: str
    description: str
    flat: bool
    co_simulation: bool
    model_exchange: bool
    step_size: float
    inputs: tuple[WrappedVariable, ...]
    outputs: tuple[WrappedVariable, ...]
    parameters: tuple[WrappedVariable, ...]

    @classmethod
    def of(cls, path: Path) -> WrappedFmu:
        """Return what an exported FMU says of itself."""
        from fmpy import read_model_description  # noqa: PLC0415 - exports without wrappers do without FMPy

        description = read_model_description(str(path))
        interface, experiment = description.coSimulation or description.modelExchange, description.defaultExperiment
        assert interface is not None, path
        assert interface.modelIdentifier is not None, path
        assert experiment is not None, path
        assert experiment.stepSize is not None, path
        found = {
            causality: tuple(_variable(each) for each in description.modelVariables if each.causality == causality)
            for causality in ("input", "output", "parameter")
        }
        return cls(
            path.name,
            interface.modelIdentifier,
            _one_line(description.description),
            description.variableNamingConvention == "flat",
            description.coSimulation is not None,
            description.modelExchange is not None,
            float(experiment.stepSize),
            found["input"],
            found["output"],
            found["parameter"],
        )


def _variable(each: Any) -> WrappedVariable:
    bounds = (None if bound is None else float(bound) for bound in (each.start, each.min, each.max))
    return WrappedVariable(
        each.name, each.unit or "", _one_line(each.description), each.variability == "tunable", *bounds
    )


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())
