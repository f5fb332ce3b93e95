"""Internal steps of FMUs: how errors inside FMUs are told from those of coupling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from mbsfmu.comparison.coupled_fmus import CoupledFmus
from mbsfmu.cosim import Cosimulation
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.simulation.variable_table import STEP

_TOLERANCE_SHARE = 1e-2
"""Tolerance of solvers that choose their steps in refined runs, in shares of the usual one."""


@dataclass(frozen=True)
class InternalSteps:
    """What can be refined inside coupled FMUs.

    Attributes
    ----------
    steps
        By FMU, the parameter for its largest internal step, in s.
    tolerance
        Relative tolerance of the refined solvers that choose their steps; None where it stays.
    untold
        FMUs whose errors cannot be told from those of coupling.
    """

    steps: Mapping[str, float] = field(default_factory=dict)
    tolerance: float | None = None
    untold: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: Cosimulation) -> Self:
        """Return those of the FMUs of a run at its start.

        FMUs for co-simulation have them that have the parameter `solver.step`, as ours do. Tolerances are only
        tightened where that changes no FMU of other tools, which have nothing to be refined.
        """
        instances = {member.instance.name: member.instance for member in run.coupling.members}
        steps = {
            name: float(run[f"{name}.{STEP.name}"])
            for name, instance in instances.items()
            if not instance.is_exchanged and _is_step(instance.variables.get(STEP.name))
        }
        others = [name for name, instance in instances.items() if name not in steps and not instance.is_exchanged]
        if others:
            exchanged = [name for name, instance in instances.items() if instance.is_exchanged]
            return cls(steps, None, tuple(sorted(others + exchanged)))
        usual = [instance.suggested_tolerance for instance in instances.values()]
        given = run.options.unit_tolerance
        least = given if given is not None else min((each for each in usual if each is not None), default=None)
        return cls(steps, None if least is None else _TOLERANCE_SHARE * least)

    @property
    def are_told(self) -> bool:
        """Whether errors of any FMU are told from those of coupling."""
        return bool(self.steps) or self.tolerance is not None

    def refined(self, fmus: CoupledFmus, finest: float, halvings: int) -> tuple[CoupledFmus, dict[str, float]]:
        """Return the FMUs with refined internal steps, and these by FMU in s.

        Parameters
        ----------
        fmus
            The FMUs.
        finest
            Communication step in s, at which internal steps end.
        halvings
            How often the internal steps are halved.
        """
        steps = {name: min(step, finest) / 2**halvings for name, step in self.steps.items()}
        parameters = {**fmus.parameters, **{f"{name}.{STEP.name}": step for name, step in steps.items()}}
        tightened = {} if self.tolerance is None else {"unit_tolerance": self.tolerance}
        return replace(fmus, parameters=parameters, coupling={**fmus.coupling, **tightened}), steps


def _is_step(variable: Variable | None) -> bool:
    """Return whether a variable is the parameter of an internal step."""
    return variable is not None and variable.causality is Causality.PARAMETER and variable.unit == STEP.unit
