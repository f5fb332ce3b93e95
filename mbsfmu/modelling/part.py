"""Parts: open families of classes, registered by their `type`, and checks of their functions and numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar, get_args, get_origin
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from mbsfmu.modelling.conditions import Condition
from mbsfmu.modelling.data import Array, Data, DataError, Name, closest_match, schema_of_kinds
from mbsfmu.modelling.parameters import Quantity, parameter_fields

BUILT_IN = ("hydraulics", "mbsfmu")
"""Packages of the built-in parts."""
_OWN = "a type of your own needs the file that defines it: --parts FILE, or parts=[FILE] in Python"

AnyPart = TypeVar("AnyPart", bound=Data)


class PartFile(NamedTuple):
    """A file that defines parts, with its content at that time.

    Attributes
    ----------
    path
        Where it was.
    text
        What it said.
    """

    path: str
    text: str

    @property
    def name(self) -> str:
        """Its name without folders."""
        return Path(self.path).name


KindKey = tuple[str, str]
"""Family and `type` of a kind."""


class _Loading(NamedTuple):
    module: str
    file: PartFile
    kinds: dict[KindKey, type[Data]]


_loading: ContextVar[_Loading | None] = ContextVar("the file that is loaded", default=None)
_given: ContextVar[Mapping[KindKey, type[Data]]] = ContextVar("kinds that were given", default={})  # noqa: B039
_files: WeakKeyDictionary[type[Data], PartFile] = WeakKeyDictionary()
_keys: WeakKeyDictionary[type[Data], KindKey] = WeakKeyDictionary()


@contextmanager
def kept_apart(module: str, file: PartFile) -> Iterator[dict[KindKey, type[Data]]]:
    """Collect the kinds that a module defines while its file runs, invisible to other code.

    Raises
    ------
    DataError
        When the file is being run already: it uses its own parts where it defines them.
    """
    known = _loading.get()
    if known is not None and known.file == file:
        raise DataError(
            f'{file.path} runs a model where it is to define parts; put that below `if __name__ == "__main__":`'
        )
    loading = _Loading(module, file, {})
    token = _loading.set(loading)
    try:
        yield loading.kinds
    finally:
        _loading.reset(token)


@contextmanager
def given_kinds(kinds: Mapping[KindKey, type[Data]]) -> Iterator[None]:
    """Give these kinds precedence over imported ones within the context."""
    token = _given.set({**_given.get(), **kinds})
    try:
        yield
    finally:
        _given.reset(token)


def is_built_in(kind: type[Data]) -> bool:
    """Return whether a class is built in."""
    return kind.__module__.partition(".")[0] in BUILT_IN


def file_of(kind: type[Data]) -> PartFile | None:
    """Return the file that defines a class; None without a file, as in a notebook."""
    return _files.get(kind)


def key_of(kind: type[Data]) -> KindKey | None:
    """Return the family and `type` of a class; None if it is no kind of any family."""
    return _keys.get(kind)


def kinds_in(file: PartFile) -> dict[KindKey, type[Data]]:
    """Return the kinds that were imported from the present content of a file."""
    return {
        (family.family, word): kind for family in FAMILIES for word, kind in family.known() if _files.get(kind) == file
    }


def place_of(kind: type[Data]) -> str:
    """Return the file that defines a class, or its module, in words."""
    file = file_of(kind)
    return kind.__module__ if file is None else file.path


FAMILIES: list[Kinds[Any]] = []
"""All families of parts."""


class Kinds(Generic[AnyPart]):
    """The kinds of one family of parts.

    Parameters
    ----------
    family
        What a part is called in messages, as `component`.
    home
        The package that defines the built-in ones, where it is above the family's own: it is loaded when they are
        first asked for.
    """

    def __init__(self, family: str, home: str | None = None) -> None:
        self.family = family
        self._home = home
        self._known: dict[str, type[AnyPart]] = {}
        FAMILIES.append(self)

    def _loaded(self) -> dict[str, type[AnyPart]]:
        """Return the known kinds, after loading the built-in ones."""
        if self._home is not None:
            home, self._home = self._home, None
            import_module(home)
        return self._known

    def known(self) -> list[tuple[str, type[AnyPart]]]:
        """Return the built-in and imported classes by type."""
        return list(self._loaded().items())

    def add(self, kind: type[AnyPart]) -> None:
        """Register a class by its `type`.

        Raises
        ------
        DataError
            When it has no type of its own, or another class has it already.
        """
        word = self.word(kind)
        key = (self.family, word)
        known = self._known if is_built_in(kind) else self._loaded()
        loading = _loading.get()
        if loading is not None and loading.module == kind.__module__:
            _files[kind] = loading.file
            self._refuse_second(kind, word, known.get(word), replaceable=True)
            self._refuse_second(kind, word, loading.kinds.get(key))
            loading.kinds[key] = kind
        else:
            path = Path(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")
            if path.is_file() and not is_built_in(kind):
                _files[kind] = PartFile(str(path.resolve()), path.read_text(encoding="utf-8"))
            self._refuse_second(kind, word, known.get(word))
            known[word] = kind
        _keys[kind] = key

    def word(self, kind: type[AnyPart]) -> str:
        """Return the `type` of a class.

        Raises
        ------
        DataError
            When it has none of its own.
        """
        field = kind.model_fields.get("type")
        words = get_args(field.annotation) if field is not None and get_origin(field.annotation) is Literal else ()
        if field is None or len(words) != 1 or field.default != words[0] or "type" not in kind.__annotations__:
            raise DataError(
                f"class {kind.__name__}: a {self.family} has a type of its own, "
                'as `type: Literal["my-part"] = "my-part"`; a base for others is said to be one by abstract=True'
            )
        return words[0]

    def _refuse_second(
        self, kind: type[AnyPart], word: str, other: type[Data] | None, replaceable: bool = False
    ) -> None:
        """Refuse a `type` in use, except for the same class defined again, as in a notebook cell."""
        if other is None or (replaceable and not is_built_in(other)):
            return
        if not is_built_in(other) and (place_of(other), other.__qualname__) == (place_of(kind), kind.__qualname__):
            return
        raise DataError(
            f"class {kind.__name__} of {place_of(kind)}: the {self.family} type '{word}' is taken by "
            f"{other.__name__} of {place_of(other)}"
        )

    def words(self) -> list[str]:
        """Return the types of all kinds that data may refer to here."""
        given = [word for kinds in self._nearer() for family, word in kinds if family == self.family]
        return list(dict.fromkeys([*self._loaded(), *given]))

    def find(self, word: object) -> type[AnyPart] | None:
        """Return the class of a type; None if unknown."""
        if not isinstance(word, str):
            return None
        for kinds in self._nearer():
            if (self.family, word) in kinds:
                return kinds[self.family, word]  # pyright: ignore[reportReturnType] - of this family
        return self._loaded().get(word)

    @staticmethod
    def _nearer() -> list[Mapping[KindKey, type[Data]]]:
        """Return the kinds of the context, those of a file being loaded first."""
        loading = _loading.get()
        return [*([] if loading is None else [loading.kinds]), _given.get()]

    def made(self, data: Any) -> Any:
        """Return the part described by a dictionary; other values unchanged. Used as a field validator."""
        if not isinstance(data, dict):
            return data
        if "type" not in data:
            raise PydanticCustomError("kind_missing", "the type is missing")
        kind = self.find(data["type"])
        if kind is None:
            message = f"{closest_match(str(data['type']), sorted(self.words()))} ({_OWN})"
            raise PydanticCustomError("kind_unknown", "{told}", {"told": message})
        return kind.from_dict(data)


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


Answer = TypeVar("Answer")


def picked(owner: str, function: str, quantities: Iterable[Quantity], given: Mapping[str, Answer]) -> list[Answer]:
    """Return the results of a function in the order of the quantities; `owner` is type and name of its part.

    Raises
    ------
    DataError
        If names are missing or unknown.
    """
    names = [quantity.name for quantity in quantities]
    if sorted(names) != sorted(given):
        listed, wanted = (", ".join(sorted(each)) or "nothing" for each in (given, names))
        raise DataError(f"{owner}: {function} gives {listed}; it must give {wanted}")
    return [given[name] for name in names]


def in_order(
    owner: str, function: str, quantities: Iterable[Quantity], given: Mapping[str, Array | float]
) -> list[Array | float]:
    """Return the numeric results of a function in the order of the quantities; `owner` is type and name of its part.

    Raises
    ------
    DataError
        If names are missing or unknown, or results are not scalars.
    """
    values = picked(owner, function, quantities, given)
    for name, value in given.items():
        if np.shape(value) != ():
            raise DataError(
                f"{owner}: {function} gives an array of shape {np.shape(value)} as '{name}'; it must be one number"
            )
    return values


def unusual_numbers(part: Part, numbers: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on each parameter of a part that is not usual.

    Parameters
    ----------
    part
        The part, in whose class `Parameter.usual` says what is.
    numbers
        Values by `part.parameter` that are not as in the data.
    """
    for field, parameter in parameter_fields(type(part)).items():
        value = numbers.get(f"{part.name}.{field}", getattr(part, field))
        if parameter.usual is not None and value and not is_usual(value, parameter.usual):
            yield unusual(f"{part.type} '{part.name}': {field}", value, parameter.unit, parameter.usual)


def is_usual(value: float, usual: tuple[float, float]) -> bool:
    """Return whether a number is within what is usual: the least and the most."""
    return usual[0] <= value <= usual[1]


def unusual(what: str, value: float, unit: str, usual: tuple[float, float]) -> str:
    """Return the sentence on a number that is not usual."""
    least, most = usual
    bound = f"less than {least:g}" if value < least else f"more than {most:g}"
    return f"{what} is {value:g} {unit}, {bound} {unit}, which is implausible; numbers are in SI units"
