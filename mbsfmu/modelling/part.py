"""Base class of parts: data classes registered by their `type`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from pydantic import GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from mbsfmu.modelling.conditions import Condition
from mbsfmu.modelling.data import Data, DataError, Name
from mbsfmu.modelling.data_schema import schema_of_kinds
from mbsfmu.modelling.kinds import Kinds
from mbsfmu.modelling.parameters import parameter_fields
from mbsfmu.modelling.quantity import Quantity


class Part(Data):
    """A part of a machine.

    The root class of a family sets `family`. It is `abstract`, as are all classes that are bases only.

    Attributes
    ----------
    type
        The word by which data call the class; a class sets it as `type: Literal["my-part"] = "my-part"`.
    name
        Name of the part.

    Raises
    ------
    DataError
        When a class lacks what it needs, at its definition.
    """

    family: ClassVar[Kinds[Any]]
    type: Any
    name: Name

    def __init_subclass__(cls, *, abstract: bool = False) -> None:
        super().__init_subclass__()

    @classmethod
    def __pydantic_init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        """Register a class unless it is `abstract`."""
        super().__pydantic_init_subclass__(**kwargs)
        if not abstract:
            cls.family.word(cls)
            cls.check_class()
            cls.family.add(cls)

    @classmethod
    def check_class(cls) -> None:
        """Refuse an incomplete class at its definition.

        Raises
        ------
        DataError
            When a field has the name of a function of the family.
        """
        for field in cls.model_fields:
            if hasattr(cls._root(), field):
                raise DataError(
                    f"class {cls.__name__}: a field cannot be called '{field}', as a function of "
                    f"{cls.family.family}s is"
                )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of a class; for the root of a family, that of all its kinds."""
        if "family" not in vars(cls):
            return super().__get_pydantic_json_schema__(core, handler)
        kinds = (cls.family.find(word) for word in cls.family.words())
        return schema_of_kinds([kind for kind in kinds if kind is not None], handler)

    @classmethod
    def gives(cls, *functions: str) -> bool:
        """Return whether a class overrides one of some functions."""
        return any(getattr(cls, function) is not getattr(cls._root(), function) for function in functions)

    @classmethod
    def _root(cls) -> type[Part]:
        """Return the root class of the family."""
        return next(each for each in cls.__mro__ if "family" in vars(each))


class DynamicPart(Part, abstract=True):
    """A part with optional first-order states, inputs and outputs."""

    @model_validator(mode="after")
    def _has_distinct_names(self) -> Self:
        names = [*parameter_fields(type(self)), *(quantity.name for quantity in self.quantities())]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the name '{name}' is given to more than one of its numbers")
        return self

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class with declared variables without values, or the reverse."""
        super().check_class()
        for quantities, function in cls.pairs():
            if cls.gives(quantities) != cls.gives(function):
                present, missing = (quantities, function) if cls.gives(quantities) else (function, quantities)
                raise DataError(f"class {cls.__name__}: it has {present}, but no {missing}")

    @classmethod
    def pairs(cls) -> tuple[tuple[str, str], ...]:
        """Return pairs of functions that a class must define together: a declaration, and the values."""
        return (("states", "rates"), ("outputs", "evaluate_outputs"))

    def quantities(self) -> tuple[Quantity, ...]:
        """Return its variables."""
        return (*self.states(), *self.inputs(), *self.outputs())

    def states(self) -> tuple[Quantity, ...]:
        """Return its first-order states."""
        return ()

    def inputs(self) -> tuple[Quantity, ...]:
        """Return its inputs, with `start` as the value of unconnected ones."""
        return ()

    def outputs(self) -> tuple[Quantity, ...]:
        """Return its outputs; those that are `shared` are outputs of an FMU."""
        return ()

    def conditions(self) -> Iterable[Condition]:
        """Yield conditions on its variables that users of a run should know of, as that an end stop is reached."""
        return ()
