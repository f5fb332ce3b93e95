"""Variables of a simulation: positions of their values, exposed ones, and dependencies."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.name_patterns import means, nearest
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.modelling import LARGEST, DataError
from mbsfmu.modelling.variables import Causality, Variability, Variable, out_of_range, rated_names, with_unit
from mbsfmu.stepping.state import State
from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.tape.recorded_program import depends
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class ExposedVariables:
    """Selection of outputs; without one, the system's own outputs.

    Attributes
    ----------
    outputs
        Patterns of names as shells have them: `boom.angle`, `cylinder.*`, `mechanism.boom.*`. A variable is meant by
        its name in the system, by that in the whole, and with its system's name before.
    needed
        Names of outputs that are connected: they are outputs whatever is chosen.
    whole
        Whether each pattern must mean something: what one system of a model lacks, another one may have.
    local_variables
        Whether what is no output is shown too.
    qualified
        `system.variable` by the names of variables.
    driving
        Names of outputs by `system.variable` of the connected inputs that have their values.
    """

    outputs: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    whole: bool = True
    local_variables: bool = True
    qualified: Mapping[str, str] = field(default_factory=dict)
    driving: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def by_system(self) -> Mapping[str, str]:
        """Names of variables by `system.variable`, which is the same in every layout and formulation."""
        return {reference: name for name, reference in self.qualified.items()}

    @cached_property
    def readable(self) -> Mapping[str, str]:
        """Names of variables by `system.variable`, those of connected inputs included."""
        return {**self.driving, **self.by_system}

    def chosen(self, candidates: Iterable[str], others: Mapping[str, str]) -> tuple[str, ...]:
        """Return the selected outputs: in the order of the patterns, then the required ones.

        Parameters
        ----------
        candidates
            What may be an output.
        others
            What may not, and what it is, for sentences.

        Raises
        ------
        InputError
            When a pattern means none of them.
        """
        known = list(candidates)
        found: dict[str, None] = {}
        for pattern in self.outputs:
            matches = [name for name in known if self._means(pattern, name)]
            if self.whole and not matches:
                raise self._nothing(pattern, known, others)
            found |= dict.fromkeys(matches)
        return (*found, *(name for name in known if name in self.needed and name not in found))

    def kept(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return outputs without a matching pattern, as `system.variable`: connections read them."""
        left = [name for name in names if not any(self._means(pattern, name) for pattern in self.outputs)]
        return tuple(self.qualified.get(name, name) for name in left) if self.outputs else ()

    def _means(self, pattern: str, name: str) -> bool:
        return means(pattern, self._names(name))

    def _names(self, name: str) -> tuple[str, ...]:
        whole = self.qualified.get(name, name)
        return name, whole, whole.partition(".")[2]

    def _nothing(self, pattern: str, known: Collection[str], others: Mapping[str, str]) -> InputError:
        """Return the error for a pattern without a match."""
        if name := next((name for name in others if self._means(pattern, name)), None):
            return InputError(f"'{pattern}' cannot be an output: {name} is {others[name]}")
        return InputError(f"there is no variable '{pattern}' to be an output; {nearest(pattern, known, self._names)}")


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
        table = cls(continuous, system.parameters, calculated, (replace(STEP, start=step),), timing, estimates)
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


Pattern = NDArray[np.bool_]


class Dependencies:
    """Dependencies from the sparsity of the traced functions.

    Parameters
    ----------
    functions
        Functions of the system.
    initialization
        What finds its start: parameters that it feeds to other parts depend on parameters in turn.
    table
        Its variables.
    """

    def __init__(self, functions: SystemFunctions, initialization: Initialization, table: VariableTable) -> None:
        self._expressions = functions.expressions
        self._initialization = initialization
        self._table = table
        self._system = functions.system

    @cached_property
    def while_stepping(self) -> dict[str, tuple[str, ...]]:
        """Return the inputs on which each continuous variable depends directly, at given states.

        Accelerations depend on every input that enters the equations of motion.
        """
        inputs = self._system.inputs
        given = self._expressions
        forcing = _any(given.depends(given.residual, "inputs"), 0) | _any(given.depends(given.quadratic, "inputs"), 0)
        on_inputs = given.depends(given.outputs, "inputs")
        on_accelerations = _any(given.depends(given.outputs, "accelerations"), 1)
        result: dict[str, tuple[str, ...]] = {variable.name: () for variable in self._table.continuous}
        for variable in self._system.accelerations:
            result[variable.name] = _names(inputs, forcing)
        on_reactions = given.depends(given.reactions, "inputs")
        for variable, direct in zip(self._system.reactions, on_reactions, strict=True):
            result[variable.name] = _names(inputs, direct | forcing)
        for variable, direct, through in zip(self._system.outputs, on_inputs, on_accelerations, strict=True):
            result[variable.name] = _names(inputs, direct | (forcing & through))
        return {name: depends for name, depends in result.items() if name not in _names(inputs)}

    @cached_property
    def at_start(self) -> dict[str, tuple[str, ...]]:
        """Return the parameters and inputs on which each other variable depends after initialization.

        With closed loops, coordinates depend on all variables of the loop equations.
        """
        given, system = self._expressions, self._system
        closing = _any(given.depends(given.all_closure, "parameters"), 0)
        moving = _any(given.depends(given.residual, "parameters"), 0)
        rows: dict[str, Pattern] = {}
        start = given.start
        placed = given.placed(start["coordinates"], start["velocities"])
        for what, value in (("coordinates", placed[0]), ("velocities", placed[1]), ("states", start["states"])):
            own = given.depends(value, "parameters")
            if what != "states" and system.constraints:
                own = np.tile(_any(own, 0) | closing, (len(own), 1))
            rows[what] = own
        located = _any(rows["coordinates"], 0)
        placed = located | _any(rows["velocities"], 0)
        accelerated = moving | placed | _any(rows["states"], 0)
        rows["discrete"], discrete_by_inputs = self._updated(rows, accelerated)
        accelerated = accelerated | _any(through(given.depends(given.residual, "discrete"), rows["discrete"]), 0)
        outputs = given.depends(given.outputs, "parameters")
        outputs = outputs | through(given.depends(given.outputs, "discrete"), rows["discrete"])
        for part, source in (("coordinates", rows["coordinates"]), ("velocities", rows["velocities"])):
            outputs = outputs | through(given.depends(given.outputs, part), source)
        outputs = outputs | through(given.depends(given.outputs, "states"), rows["states"])
        outputs = outputs | np.outer(_any(given.depends(given.outputs, "accelerations"), 1), accelerated)
        outputs = outputs | np.outer(_any(given.depends(given.outputs, "integrals"), 1), moving | placed)
        result: dict[str, tuple[str, ...]] = {}
        for what in ("coordinates", "velocities", "states", "discrete"):
            for variable, row in zip(getattr(system, what), rows[what], strict=True):
                result[variable.name] = self._own(row)
        for variable in (*system.accelerations, *system.integrals, *system.reactions):
            result[variable.name] = self._own(accelerated)
        for variable, row in zip(system.outputs, outputs, strict=True):
            result[variable.name] = self._own(row)
        for variable in VIOLATIONS if system.constraints else ():
            result[variable.name] = self._own(placed | closing)
        present = {variable.name for variable in self._table.continuous}
        result |= {variable.name: () for variable in UNCONVERGED if variable.name in present}
        for variable, row in zip(self._table.calculated, self._calculated, strict=True):
            result[variable.name] = self._own(row)
        inputs = self._inputs_at_start(discrete_by_inputs)
        return {name: tuple(dict.fromkeys((*names, *inputs.get(name, ())))) for name, names in result.items()}

    def _updated(self, rows: Mapping[str, Pattern], accelerated: Pattern) -> tuple[Pattern, Pattern]:
        """Return the parameters and inputs on which discrete states depend after an update at the start."""
        given = self._expressions
        by_parameters = given.depends(given.initial_discrete, "parameters")
        if not len(by_parameters):
            return by_parameters, np.zeros((0, len(self._system.inputs)), dtype=bool)
        by_discrete = given.depends(given.updates, "discrete")
        on_accelerations = _any(given.depends(given.updates, "accelerations"), 1)
        by_parameters = by_parameters | given.depends(given.updates, "parameters")
        for part in ("coordinates", "velocities", "states"):
            by_parameters = by_parameters | through(given.depends(given.updates, part), rows[part])
        integrated = on_accelerations | _any(given.depends(given.updates, "integrals"), 1)
        by_parameters = by_parameters | np.outer(integrated, accelerated)
        forcing = _any(given.depends(given.residual, "inputs"), 0)
        by_inputs = given.depends(given.updates, "inputs") | np.outer(on_accelerations, forcing)
        for _ in self._system.samplings:  # those before may count for those behind
            by_parameters = by_parameters | through(by_discrete, by_parameters)
            by_inputs = by_inputs | through(by_discrete, by_inputs)
        return by_parameters, by_inputs

    def _inputs_at_start(self, discrete_by_inputs: Pattern) -> dict[str, tuple[str, ...]]:
        """Return the inputs on which variables depend after initialization.

        Directly, by an update at the start, and by prescribed motion.
        """
        given, system = self._expressions, self._system
        prescribed = sorted(rated_names(system.inputs))
        everything = [*self.while_stepping, *(each.name for each in self._table.calculated)]
        stepping = {name: (*self.while_stepping.get(name, ()), *prescribed) for name in everything}
        stepping = {name: tuple(dict.fromkeys(inputs)) for name, inputs in stepping.items()}
        if not system.discrete:
            return stepping
        through_motion = _any(through(given.depends(given.residual, "discrete"), discrete_by_inputs), 0)
        by_discrete = dict(zip((variable.name for variable in system.discrete), discrete_by_inputs, strict=True))
        for variable in (*system.accelerations, *system.reactions):
            by_discrete[variable.name] = through_motion
        on_accelerations = _any(given.depends(given.outputs, "accelerations"), 1)
        outputs = through(given.depends(given.outputs, "discrete"), discrete_by_inputs)
        outputs = outputs | np.outer(on_accelerations, through_motion)
        by_discrete |= dict(zip((variable.name for variable in system.outputs), outputs, strict=True))
        names = [variable.name for variable in system.inputs]
        result = dict(stepping)
        for name, row in by_discrete.items():
            result[name] = tuple(each for each, by in zip(names, row, strict=True) if by or each in stepping[name])
        return result

    @cached_property
    def _calculated(self) -> list[Pattern]:
        """Parameters and inputs on which each calculated parameter depends.

        They are those of its own part, and those that parameters fed to it depend on.
        """
        count = len(self._system.parameters)
        result: list[Pattern] = []
        for part in self._initialization.balanced_parts:
            own, by_inputs = _balancing(part.functions.expressions)
            row = np.zeros(count + len(self._system.inputs), dtype=bool)
            row[part.first_parameter : part.first_parameter + len(own)] = own
            for index, used in zip(part.inputs, by_inputs, strict=True):
                if index >= 0:
                    row[count + index] = used
            row = _followed(row, self._initialization.feeds, result)
            result += [row] * len(part.functions.system.balances)
        return result

    def _own(self, row: Pattern) -> tuple[str, ...]:
        """Return the settable parameters of a row, and the sources of connected ones.

        The row is one of parameters, or one of parameters and inputs.
        """
        named = (*self._system.parameters, *self._system.inputs)
        row = _followed(np.pad(row, (0, len(named) - len(row))), self._initialization.feeds, self._calculated)
        settable = (Causality.PARAMETER, Causality.INPUT)
        return tuple(
            variable.name for variable, used in zip(named, row, strict=True) if used and variable.causality in settable
        )


def _balancing(given: SystemExpressions) -> tuple[Pattern, Pattern]:
    """Return the parameters and inputs of a part on which its static equilibrium depends."""
    at_rest = {part: ca.SX.zeros(given.symbol_by_part[part].shape) for part in ("velocities", "accelerations")}
    loads = given.at([given.residual], at_rest)[0]
    balancing = {name for _, name in given.system.balances}
    others = np.array([each.name not in balancing for each in given.system.inputs], dtype=bool)
    by_inputs = _any(given.depends(loads, "inputs"), 0) & others
    row = _any(given.depends(loads, "parameters"), 0)
    if given.system.constraints:
        row = row | _any(given.depends(given.all_closure, "parameters"), 0)
    for part in ("coordinates", "states"):
        row = row | _any(given.depends(given.start[part], "parameters"), 0)
    return row, by_inputs


def _followed(row: Pattern, feeds: Sequence[tuple[int, int]], calculated: Sequence[Pattern]) -> Pattern:
    """Return a row with the sources of its connected parameters."""
    for source, parameter in feeds:
        if row[parameter] and source < len(calculated):
            row = row | calculated[source]
    return row


def _names(variables: Sequence[Variable], selected: Pattern | None = None) -> tuple[str, ...]:
    chosen = [True] * len(variables) if selected is None else selected
    return tuple(variable.name for variable, used in zip(variables, chosen, strict=True) if used)


def through(outer: Pattern, inner: Pattern) -> Pattern:
    """Return the composition of two dependency patterns, shape (rows of the outer, columns of the inner)."""
    return (outer.astype(int) @ inner.astype(int)).astype(bool)


def _any(pattern: Pattern, axis: int) -> Pattern:
    return np.asarray(pattern.any(axis=axis))


class RecordedDependencies:
    """The same as `Dependencies`, for systems without balanced start values.

    Parameters
    ----------
    functions
        Functions of the system.
    table
        Its variables.
    """

    def __init__(self, functions: SystemFunctions, table: VariableTable) -> None:
        self._functions = functions
        self._table = table

    @cached_property
    def while_stepping(self) -> dict[str, tuple[str, ...]]:
        """Return the inputs on which each continuous variable depends directly, at given states."""
        functions, system = self._functions, self._functions.system
        program = functions.recorded(
            "direct", lambda given, _: [given.residual, given.all_drift_rates, given.outputs, given.reactions]
        ).program
        residual, drifts, outputs, reactions = (depends(program, index, "inputs") for index in range(4))
        forcing = np.asarray(residual.any(axis=0) | drifts.any(axis=0))
        result: dict[str, tuple[str, ...]] = {variable.name: () for variable in self._table.continuous}
        for variable in system.accelerations:
            result[variable.name] = _recorded_names(system.inputs, forcing)
        for variable, direct in zip(system.reactions, reactions, strict=True):
            result[variable.name] = _recorded_names(system.inputs, direct | forcing)
        through = functions.outputs_by_accelerations
        for variable, direct, accelerated in zip(system.outputs, outputs, through, strict=True):
            result[variable.name] = _recorded_names(system.inputs, direct | (forcing & accelerated))
        given = {variable.name for variable in system.inputs}
        return {name: needed for name, needed in result.items() if name not in given}

    @cached_property
    def at_start(self) -> dict[str, tuple[str, ...] | None]:
        """Return None for each other variable: it may depend on all parameters and inputs after initialization.

        The exact list would be too long for a description.
        """
        given = {variable.name for variable in self._functions.system.inputs}
        return {each.name: None for each in self._table.continuous if each.name not in given}


def _recorded_names(variables: tuple[Variable, ...], selected: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(variable.name for variable, used in zip(variables, selected, strict=True) if used)
