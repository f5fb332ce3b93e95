"""Table of a simulation's variables: positions of their values, and dependencies."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.formulations.native_needs import MOST_THREADS
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.modelling import LARGEST, DataError
from mbsfmu.modelling.variables import Causality, Variability, Variable, out_of_range, with_unit
from mbsfmu.simulation.exposed_variables import ExposedVariables
from mbsfmu.stepping.state import State
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

VIOLATIONS = (
    Variable("constraint.position", unit="1", description="magnitude of the loop equations' violation, m and rad"),
    Variable("constraint.velocity", unit="1", description="magnitude of their rate, m/s and rad/s"),
)

UNCONVERGED = (
    Variable(
        "solver.unconverged",
        variability=Variability.DISCRETE,
        description="by how many times its tolerance the last step's solution was off; 0 where it converged",
    ),
    Variable(
        "solver.unconverged_max",
        variability=Variability.DISCRETE,
        description="the largest of solver.unconverged since initialization",
    ),
)
"""Variables of solvers with limited iterations."""

STEP = Variable(
    "solver.step",
    Causality.PARAMETER,
    Variability.TUNABLE,
    "s",
    start=1e-3,
    minimum=1e-9,
    description="largest internal step of fixed-step solvers; longer communication steps are divided",
)

THREADS = Variable(
    "solver.threads",
    Causality.PARAMETER,
    Variability.FIXED,
    "1",
    start=1.0,
    minimum=1.0,
    maximum=MOST_THREADS,
    description="threads that share the equations of motion, no more than processors; results do not depend on it",
)

ERROR = Variable(
    "solver.error",
    Causality.LOCAL,
    Variability.DISCRETE,
    "1",
    description="largest estimated error of all variables since initialization, as a share of each one's range; above "
    "0.5 it says only that the error is large; 1.8e308 where it is not known",
)
"""Variables of solvers with an error estimate."""

_WORDS = {
    Causality.INPUT: "an input",
    Causality.PARAMETER: "a parameter",
    Causality.CALCULATED_PARAMETER: "a calculated parameter",
    Causality.LOCAL: "shown as it is in every FMU",
}
"""Words for variables that are not outputs."""

NO_EVENT = sys.float_info.max
"""Next event time if there is none; FMI has no infinite numbers."""

NEXT_EVENT = Variable(
    "next_event",
    Causality.LOCAL,
    Variability.DISCRETE,
    "s",
    description="time at which a signal of the unit's own jumps or bends next, or a block is updated; 1.8e308 if never",
)


@dataclass(frozen=True)
class VariableTable:
    """All variables of a system.

    Attributes
    ----------
    continuous
        Variables in the order of `readings`: inputs, z, ż, z̈, x, discrete states, integrals, outputs, reactions,
        violations, how far the solver is from converged.
    parameters, calculated
        Parameters and calculated parameters.
    settings
        The parameters of the solver.
    timing
        The time of the next event, where inputs follow signals or there are discrete states.
    estimates
        How far the run is off, where that is estimated.
    chosen
        Names of the outputs in their order, where they were chosen.
    hidden
        Names of what is not shown.
    """

    continuous: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    calculated: tuple[Variable, ...]
    settings: tuple[Variable, ...]
    timing: tuple[Variable, ...]
    estimates: tuple[Variable, ...]
    chosen: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        functions: SystemFunctions,
        initialization: Initialization,
        step: float,
        inputs: Sequence[Variable],
        has_events: bool,
        threads: int = 1,
    ) -> VariableTable:
        """Return the variables of a system, with start values of inputs in a run."""
        system = functions.system
        continuous = (
            *inputs,
            *system.coordinates,
            *system.velocities,
            *system.accelerations,
            *system.states,
            *system.discrete,
            *system.integrals,
            *system.outputs,
            *system.reactions,
            *(VIOLATIONS if system.constraints else ()),
            *(UNCONVERGED if len(functions.unconverged) else ()),
        )
        calculated = tuple(replace(variable, variability=Variability.FIXED) for variable in initialization.calculated)
        timing = (NEXT_EVENT,) if has_events else ()
        estimates = (ERROR,) if len(functions.error_record) else ()
        shared = (replace(THREADS, start=threads),) if threads > 1 else ()
        table = cls(continuous, system.parameters, calculated, (replace(STEP, start=step), *shared), timing, estimates)
        _refuse_doubles(table.ordered)
        return table

    @cached_property
    def ordered(self) -> tuple[Variable, ...]:
        """Inputs and outputs first, then parameters, then the rest."""
        rank = (Causality.INPUT, Causality.OUTPUT, Causality.PARAMETER, Causality.CALCULATED_PARAMETER)
        everything = [
            *self.continuous,
            *self.parameters,
            *self.settings,
            *self.calculated,
            *self.timing,
            *self.estimates,
        ]
        order = {causality: index for index, causality in enumerate((*rank, Causality.LOCAL))}
        place = {name: index for index, name in enumerate(self.chosen)}
        return tuple(sorted(everything, key=lambda each: (order[each.causality], place.get(each.name, 0))))

    @cached_property
    def visible(self) -> tuple[Variable, ...]:
        """The exposed variables in the same order."""
        return tuple(variable for variable in self.ordered if variable.name not in self.hidden)

    def showing(self, exposed: ExposedVariables) -> Self:
        """Return the same variables with selected outputs.

        The time of the next event is always exposed, because masters use it.

        Raises
        ------
        InputError
            When the choice means nothing.
        """
        computed = [each for each in self.continuous if each.causality is not Causality.INPUT]
        names = [each.name for each in computed]
        chosen: tuple[str, ...] = ()
        if exposed.outputs:
            others = {each.name: _WORDS[each.causality] for each in self.ordered if each.name not in set(names)}
            chosen = exposed.chosen(names, others)
        usual = [each.name for each in computed if each.causality is Causality.OUTPUT]
        outputs = set(chosen if exposed.outputs else (*usual, *exposed.needed))
        given = {name: Causality.OUTPUT if name in outputs else Causality.LOCAL for name in names}
        continuous = tuple(replace(each, causality=given.get(each.name, each.causality)) for each in self.continuous)
        rest = [each for each in (*continuous, *self.parameters, *self.estimates) if each.causality is Causality.LOCAL]
        hidden = frozenset(() if exposed.local_variables else (each.name for each in rest))
        return replace(self, continuous=continuous, chosen=chosen, hidden=hidden)


def _refuse_doubles(variables: Sequence[Variable]) -> None:
    """Check that names are unique.

    Raises
    ------
    DataError
        When two variables have one name; the sentence tells what both are.
    """
    first: dict[str, Variable] = {}
    for variable in variables:
        if variable.name in first:
            raise DataError(
                f"the name '{variable.name}' is given to two variables, '{first[variable.name].description}' and "
                f"'{variable.description}'; rename one of the parts or points that it is made of"
            )
        first[variable.name] = variable


def readings(formulation: Formulation, state: State, inputs: Floats) -> Floats:
    """Return the values of all continuous variables."""
    functions = formulation.functions
    formulation.load(state)
    functions.inputs[:] = inputs
    outputs, violations = functions.outputs()
    parts = [
        inputs,
        state.coordinates,
        state.velocities,
        state.accelerations,
        state.states,
        functions.discrete,
        state.integrals,
        outputs,
        formulation.reactions(),
    ]
    if functions.system.constraints:
        parts.append(violations)
    parts.append(state.unconverged)
    return np.concatenate(parts)


def check_value(variable: Variable, value: float) -> float:
    """Return the value as a float if the variable accepts it.

    Raises
    ------
    InputError
        When it is not finite, too large to compute with, or out of the variable's range.
    """
    number = float(value)
    if not np.isfinite(number):
        raise InputError(f"{variable.name} = {number} is refused: it must be a finite number")
    if refused := out_of_range(variable.name, variable, value):
        raise InputError(refused)
    if abs(number) > LARGEST:
        raise InputError(
            f"{variable.name} = {with_unit(value, variable)} is refused: its magnitude must be at most {LARGEST:g}"
        )
    return number
