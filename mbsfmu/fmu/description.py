"""Description of an FMU, independent of the FMI version."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import Origin, content_key
from mbsfmu.base.physical_units import dimension
from mbsfmu.fmu.clocks import ClockVariable
from mbsfmu.fmu.magnitudes import Scale
from mbsfmu.fmu.unit import FmuSimulation
from mbsfmu.modelling.variable_names import STRUCTURED_NAME, Naming, flat_description, flat_names, identifier
from mbsfmu.modelling.variables import Causality, ModelExchangeData, Variable

_GIVEN = (Causality.PARAMETER, Causality.INPUT)
MOST_LISTED = 100_000
"""Dependencies that are listed where an unknown of model exchange may depend on everything, which a missing list says
as well: CasADi reads lists only. Each takes some five characters of the description."""
_NAMESPACE = uuid.UUID("6f2bd5b8-9f5e-4b0e-8f3e-3a7d0a3f4c51")


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of an FMU's binaries.

    Attributes
    ----------
    needs_tool
        Whether something must be installed where it runs.
    takes_any_step
        Whether communication steps may differ.
    takes_slopes
        Whether inputs may be given with derivatives by time.
    gives_rates
        Whether outputs have derivatives by time.
    gives_derivatives
        Whether unknowns have directional derivatives.
    saves_state
        Whether the state can be saved and restored.
    has_events
        Whether signals of its own jump or bend, or discrete states are updated.
    serializes_state
        Whether saved states can be turned into bytes.
    only_once
        Whether a process can have only one instance.
    """

    needs_tool: bool
    takes_any_step: bool = True
    takes_slopes: bool = False
    gives_rates: bool = False
    gives_derivatives: bool = False
    saves_state: bool = True
    has_events: bool = False
    serializes_state: bool = True
    only_once: bool = False


@dataclass(frozen=True)
class Integrated:
    """Continuous states and derivatives for an importer's solver, by the indices of variables.

    Attributes
    ----------
    derivatives
        The derivative of each continuous state by the state, in the order in which solvers have them.
    dependencies
        The inputs and continuous states that each derivative depends on; None where it may be all.
    indicators
        The event indicators, each with the inputs and continuous states that it depends on.
    gives_derivatives
        Whether unknowns have directional derivatives by the states.
    """

    derivatives: dict[int, int]
    dependencies: dict[int, tuple[int, ...] | None]
    indicators: dict[int, tuple[int, ...] | None]
    gives_derivatives: bool


@dataclass(frozen=True)
class Described:
    """A variable in a description; its value reference is its index.

    Attributes
    ----------
    variable
        The variable.
    name, description
        As they are written.
    nominal
        Usual magnitude, where it changes continuously.
    """

    variable: Variable
    name: str
    description: str
    nominal: float | None


@dataclass(frozen=True)
class FmuDescription:
    """Description of an FMU.

    Attributes
    ----------
    name, description, origin, tool
        What it is called and is, where it comes from, and what made it.
    identifier
        Name of the binaries.
    identity
        Made from the content and from what the unit does: what behaves in the same way has the same one, on every
        platform, and nothing else has.
    capabilities
        What it can do.
    stop_time, step_size
        Of the experiment that it suggests, in s.
    tolerance
        Relative.
    variables
        All of them; what follows goes by their indices.
    outputs
        Which inputs each output depends on directly while stepping.
    initial_unknowns
        Which parameters and inputs each output and calculated parameter depends on after initialization; None where it
        may be all of them.
    naming
        Whether names are structured or flat.
    arrays
        Whether components of vectors are arrays, in versions of the FMI that have them.
    apart
        Names of variables that are no elements of arrays, though they are components of a vector: something refers to
        them one by one.
    co_simulation
        Whether it can make its steps itself.
    integrated
        What it has for model exchange; None where it has none.
    clocks
        By which hosts make the updates of sampled blocks.
    foreign_units
        Units of measurement that are not ours, by their names, with the attributes that define them in base units; None
        where nothing defines them.
    """

    name: str
    description: str
    origin: Origin
    tool: str
    identifier: str
    identity: str
    capabilities: Capabilities
    stop_time: float
    step_size: float
    tolerance: float
    variables: tuple[Described, ...]
    outputs: dict[int, tuple[int, ...] | None]
    initial_unknowns: dict[int, tuple[int, ...] | None]
    naming: Naming = "structured"
    arrays: bool = False
    apart: tuple[str, ...] = ()
    co_simulation: bool = True
    integrated: Integrated | None = None
    clocks: tuple[ClockVariable, ...] = ()
    foreign_units: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)

    @property
    def states_of(self) -> dict[int, int]:
        """The state of each derivative."""
        if self.integrated is None:
            return {}
        return {derivative: state for state, derivative in self.integrated.derivatives.items()}


def describe(
    unit: FmuSimulation,
    capabilities: Capabilities,
    tool: str,
    behaviour: str,
    naming: Naming = "structured",
    arrays: bool = False,
    apart: Collection[str] = (),
    exchange: ModelExchangeData | None = None,
    clocks: tuple[ClockVariable, ...] = (),
) -> FmuDescription:
    """Return the description of an FMU.

    Parameters
    ----------
    unit
        The unit.
    capabilities
        What the binaries can do.
    tool
        Name and version of what makes it.
    behaviour
        A key of the equations and of all that runs them: units with the same variables may compute different values.
    naming
        Whether names are structured or flat.
    arrays
        Whether components of vectors are arrays, in versions of the FMI that have them.
    apart
        Names of variables that stay single where others are elements of arrays.
    exchange
        What it has for model exchange; None where it is for co-simulation alone.
    clocks
        By which hosts make the updates of sampled blocks, in FMI 3.0.

    Raises
    ------
    InputError
        When a variable's name or unit cannot stand in a description.
    """
    variables = (*unit.variables, *(exchange.added if exchange else ()))
    index = {variable.name: place for place, variable in enumerate(variables)}
    outputs = _named(unit.variables, Causality.OUTPUT)
    unknowns = _named(unit.variables, Causality.OUTPUT, Causality.CALCULATED_PARAMETER)
    dependencies, initial = unit.dependencies, unit.initial_dependencies
    integrated = None
    if exchange:
        dependencies = exchange.dependencies
        unknowns = sorted({*unknowns, *exchange.derivatives, *exchange.derivatives.values()}, key=index.__getitem__)
        initial = _listed({**dict.fromkeys(unknowns), **initial}, _named(variables, *_GIVEN))
        dependencies = _listed(dependencies, [*exchange.derivatives, *_named(variables, Causality.INPUT)])
        exchange = replace(exchange, dependencies=dependencies)
        integrated = _integrated(exchange, index)
    content = FmuDescription(
        name=unit.name,
        description=unit.description,
        origin=unit.origin,
        tool=tool,
        identifier=identifier(unit.name),
        identity="",
        capabilities=capabilities,
        stop_time=unit.stop_time,
        step_size=unit.step_size,
        tolerance=unit.tolerance,
        variables=_described(variables, naming),
        outputs=_by_index(outputs, dependencies, index),
        initial_unknowns=_by_index(unknowns, initial, index),
        naming=naming,
        arrays=arrays,
        apart=tuple(sorted(apart)),
        co_simulation=exchange is None or exchange.beside_steps,
        integrated=integrated,
        clocks=clocks,
    )
    return replace(content, identity="{" + str(uuid.uuid5(_NAMESPACE, content_key(content, behaviour))) + "}")


def _listed(
    dependencies: Mapping[str, tuple[str, ...] | None], known: Sequence[str]
) -> dict[str, tuple[str, ...] | None]:
    """Return dependencies with full ones listed, unless that would be very long."""
    short = len(dependencies) * len(known) <= MOST_LISTED
    return {name: tuple(known) if each is None and short else each for name, each in dependencies.items()}


def _integrated(exchange: ModelExchangeData, index: Mapping[str, int]) -> Integrated:
    """Return the continuous states for an importer's solver, by variable index."""
    return Integrated(
        {index[state]: index[derivative] for state, derivative in exchange.derivatives.items()},
        _by_index(exchange.derivatives.values(), exchange.dependencies, index),
        _by_index(exchange.indicators, exchange.dependencies, index),
        exchange.derivatives_known,
    )


def _described(variables: Sequence[Variable], naming: Naming) -> tuple[Described, ...]:
    """Return variables with nominal values; names and units must be valid."""
    scale = Scale.of(variables)
    for variable in variables:
        if not STRUCTURED_NAME.match(variable.name):
            raise InputError(f"'{variable.name}' cannot be the name of a variable of a unit")
        dimension(variable.unit)
    return as_written(variables, [scale.nominal(variable) for variable in variables], naming)


def as_written(
    variables: Sequence[Variable], nominals: Sequence[float | None], naming: Naming
) -> tuple[Described, ...]:
    """Return variables with their names and descriptions as a description has them."""
    names = [variable.name for variable in variables]
    texts = [variable.description for variable in variables]
    if naming == "flat":
        texts = [flat_description(name, text) for name, text in zip(names, texts, strict=True)]
        names = flat_names(names)
    return tuple(map(Described, variables, names, texts, nominals))


def _named(variables: Iterable[Variable], *causalities: Causality) -> list[str]:
    return [variable.name for variable in variables if variable.causality in causalities]


def _by_index(
    names: Iterable[str], dependencies: Mapping[str, tuple[str, ...] | None], index: Mapping[str, int]
) -> dict[int, tuple[int, ...] | None]:
    known = {name: dependencies[name] for name in names}
    return {
        index[name]: None if each is None else tuple(sorted(index[other] for other in each))
        for name, each in known.items()
    }
