"""The base of parts: classes of data that register under the word by which data call them."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from mbsfmu.modelling.data import Data, DataError, Name
from mbsfmu.modelling.data_schema import schema_of_kinds
from mbsfmu.modelling.kinds import Kinds
from mbsfmu.modelling.parameters import parameter_fields
from mbsfmu.modelling.quantity import Quantity


class Part(Data):
    """A part of a machine.

    The root of a family sets `family`. It is `abstract`, as every class is that is a base for others only.

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
        """Register a class; one that is a base for others only is `abstract`."""
        super().__pydantic_init_subclass__(**kwargs)
        if not abstract:
            cls.family.word(cls)
            cls.check_class()
            cls.family.add(cls)

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class that lacks something, where it is defined.

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
        """Return the schema of a class; of the root of a family, that of any kind that data may mean here."""
        if "family" not in vars(cls):
            return super().__get_pydantic_json_schema__(core, handler)
        kinds = (cls.family.find(word) for word in cls.family.words())
        return schema_of_kinds([kind for kind in kinds if kind is not None], handler)

    @classmethod
    def gives(cls, *functions: str) -> bool:
        """Tell whether a class has one of some functions of its own, in place of its family's."""
        return any(getattr(cls, function) is not getattr(cls._root(), function) for function in functions)

    @classmethod
    def _root(cls) -> type[Part]:
        """Return the root of the family."""
        return next(each for each in cls.__mro__ if "family" in vars(each))


class DynamicPart(Part, abstract=True):
    """A part that may have states of first order, inputs and outputs."""

    @model_validator(mode="after")
    def _has_distinct_names(self) -> Self:
        quantities = (*self.states(), *self.inputs(), *self.outputs())
        names = [*parameter_fields(type(self)), *(quantity.name for quantity in quantities)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the name '{name}' is given to more than one of its numbers")
        return self

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class that has quantities without their values, or the other way round."""
        super().check_class()
        for quantities, function in cls.pairs():
            if cls.gives(quantities) != cls.gives(function):
                present, missing = (quantities, function) if cls.gives(quantities) else (function, quantities)
                raise DataError(f"class {cls.__name__}: it has {present}, but no {missing}")

    @classmethod
    def pairs(cls) -> tuple[tuple[str, str], ...]:
        """Return functions that a class has together: what there is, and what gives its values."""
        return (("states", "rates"), ("outputs", "evaluate_outputs"))

    def states(self) -> tuple[Quantity, ...]:
        """Return its states of first order."""
        return ()

    def inputs(self) -> tuple[Quantity, ...]:
        """Return its inputs, with their values where nothing drives them as `start`."""
        return ()

    def outputs(self) -> tuple[Quantity, ...]:
        """Return what it tells; outputs of a unit are those that are `shared`."""
        return ()
