"""Base class of blocks: systems of first-order equations, such as controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from mbsfmu.model.force import Numbers
from mbsfmu.model.reference_types import NonNegative
from mbsfmu.model.system_kinds import SystemKind, register_system_kind
from mbsfmu.modelling import Array, DataError, DynamicPart, Kinds, Measured, Name, check_numbers, parameter_fields

BLOCKS: Kinds[Block] = Kinds("block", "mbsfmu.parts")
"""All block classes by type."""


class Block(DynamicPart, abstract=True):
    """System of equations ẋ = f(x, u), y = g(x, u), besides mechanisms and circuits.

    A derived class is data; a parameter field is declared as `Annotated[float, Parameter("V/rad", "gain",
    tunable=True)]`. Its equations are pure NumPy functions without branches on values and without in-place changes;
    `now["gain"]` is a parameter, a state or an input. All outputs are available to other systems.

    Attributes
    ----------
    name
        Name in messages; the name of the system in a model.

    Raises
    ------
    DataError
        When a class lacks what its quantities need, at its definition.
    """

    family = BLOCKS
    name: Annotated[Name, Field(exclude=True, repr=False)] = "block"

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without outputs, or with non-numeric parameters."""
        super().check_class()
        sampled = issubclass(cls, SampledBlock)
        if cls.gives("update") and not sampled:
            raise DataError(f"class {cls.__name__}: it has update, which is of blocks that derive from SampledBlock")
        if cls.gives("rates") and sampled:
            raise DataError(f"class {cls.__name__}: it has rates, but is sampled; its states change by update alone")
        if not cls.gives("outputs"):
            raise DataError(f"class {cls.__name__}: a block has outputs, and a function evaluate_outputs")
        check_numbers(cls)

    @classmethod
    def unit_of(cls, field: str) -> str | None:
        """Return the unit of a field in which texts are taken; none of a gain whose unit follows from other fields."""
        unit = super().unit_of(field)
        return None if unit == "1" and cls.gives("parameter_units") else unit

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return pairs of parameters, of which the second must be greater."""
        return ()

    def parameter_units(self) -> Mapping[str, str]:
        """Return the units of parameters by name, if they depend on fields."""
        return {}

    # -- equations ------------------------------------------------------------------------------------------

    def rates(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return the derivatives of the states."""
        return {}

    def update(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return the states of a sampled block after an update."""
        return {}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return its outputs."""
        return {}

    def initial_states(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return the initial states, from parameters."""
        return {state.name: state.start or 0.0 for state in self.states()}


class SampledBlock(Block, abstract=True):
    """Sampled block x₊ = f(x, u), y = g(x), with sample times offset + k · sample_time, k = 0, 1, ….

    At a sample time `update` is called once, with the inputs just before; a start at a sample time is one. States and
    outputs are constant until the next one. Outputs depend on states and parameters; for a dependence on inputs, use a
    state that the update sets.

    Attributes
    ----------
    sample_time
        In s.
    offset
        The first instant, in s.
    """

    sample_time: Annotated[float, Field(ge=1e-9), Measured("s")]
    offset: Annotated[NonNegative, Measured("s")] = 0.0

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class with a tunable sample time."""
        super().check_class()
        for name in ("sample_time", "offset"):
            if name in parameter_fields(cls):
                raise DataError(f"class {cls.__name__}: the field '{name}' is no parameter, for instants are fixed")

    @classmethod
    def pairs(cls) -> tuple[tuple[str, str], ...]:
        """Return pairs of functions that a class must define together: a declaration, and the values."""
        return (("states", "update"), ("outputs", "evaluate_outputs"))


register_system_kind(SystemKind("block", Block, "type", BLOCKS))
