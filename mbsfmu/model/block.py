"""The base of blocks: systems of first-order equations, such as controllers, data and equations side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from mbsfmu.model.numbers import Numbers
from mbsfmu.model.reference_types import NonNegative
from mbsfmu.model.system_kinds import SystemKind, register_system_kind
from mbsfmu.modelling import Array, DataError, DynamicPart, Kinds, Name, check_numbers, parameter_fields

BLOCKS: Kinds[Block] = Kinds("block", "mbsfmu.parts")
"""All kinds of blocks by their types."""


class Block(DynamicPart, abstract=True):
    """A system of equations ẋ = f(x, u), y = g(x, u), which is a system of a model beside mechanisms and circuits.

    A class that derives from it is data; a field that is a number of the equations says so, as
    `Annotated[float, Parameter("V/rad", "gain", tunable=True)]`. Its equations are pure NumPy functions that do not
    branch on a value and write nothing in place; `now["gain"]` is a parameter, a state or an input. All its outputs
    are there for other systems.

    Attributes
    ----------
    name
        What messages call it; of a system of a model, the name of the system.

    Raises
    ------
    DataError
        When a class lacks what its quantities need, at its definition.
    """

    family = BLOCKS
    name: Annotated[Name, Field(exclude=True, repr=False)] = "block"

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class that tells nothing, or with parameters that are no numbers."""
        super().check_class()
        sampled = issubclass(cls, SampledBlock)
        if cls.gives("update") and not sampled:
            raise DataError(f"class {cls.__name__}: it has update, which is of blocks that derive from SampledBlock")
        if cls.gives("rates") and sampled:
            raise DataError(f"class {cls.__name__}: it has rates, but is sampled; its states change by update alone")
        if not cls.gives("outputs"):
            raise DataError(f"class {cls.__name__}: a block has outputs, and a function evaluate_outputs")
        check_numbers(cls)

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return pairs of parameters, the second of which must be greater."""
        return ()

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of parameters by name, where they follow from fields and not from the class."""
        return {}

    # -- equations ------------------------------------------------------------------------------------------

    def rates(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return the rates of its states."""
        return {}

    def update(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return the next states of a block that is sampled."""
        return {}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return its outputs."""
        return {}

    def initial_states(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return its states at the start, from its parameters."""
        return {state.name: state.start or 0.0 for state in self.states()}


class SampledBlock(Block, abstract=True):
    """A block x₊ = f(x, u), y = g(x) whose states change at the instants offset + k · sample_time alone, k = 0, 1, ….

    At an instant, `update` is made once, from inputs as they are just before; a start at an instant is one. States and
    outputs stay until the next one. Outputs depend on states and parameters; what is to depend on inputs at an instant
    is a state that an update sets.

    Attributes
    ----------
    sample_time
        In s.
    offset
        The first instant, in s.
    """

    sample_time: Annotated[float, Field(ge=1e-9)]
    offset: NonNegative = 0.0

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class whose sample time could be set."""
        super().check_class()
        for name in ("sample_time", "offset"):
            if name in parameter_fields(cls):
                raise DataError(f"class {cls.__name__}: the field '{name}' is no parameter, for instants are fixed")

    @classmethod
    def pairs(cls) -> tuple[tuple[str, str], ...]:
        """Return functions that a class has together: what there is, and what gives its values."""
        return (("states", "update"), ("outputs", "evaluate_outputs"))


register_system_kind(SystemKind("block", Block, "type", BLOCKS))
