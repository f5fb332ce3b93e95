"""Options as data: allowed values, default, unit and help are declared at each field."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.modelling import Data, DataError, closest_match
from mbsfmu.modelling.variables import Variable


@dataclass(frozen=True)
class Bounds:
    """Allowed numbers of an option.

    Attributes
    ----------
    requirement
        How the sentence on others ends.
    allow
        Tells whether a finite number is taken.
    """

    requirement: str
    allow: Callable[[float], bool]


POSITIVE = Bounds("must be positive", lambda value: value > 0)
NOT_NEGATIVE = Bounds("must not be negative", lambda value: value >= 0)


@dataclass(frozen=True, kw_only=True)
class Option:
    """Declaration of a field as option, as `Annotated[float, Number("Of the step.", unit="s")]`.

    Attributes
    ----------
    help
        Help text for documents and the command line.
    called
        Name in messages; its name by default.
    flag
        On the command line; made from the name by default.
    lacking
        What those are like with which it has no effect: `which has no momenta`.
    """

    help: str = field(kw_only=False)
    called: str = ""
    flag: str = ""
    lacking: str = ""

    def words(self, name: str) -> str:
        """Return the name of an option in messages."""
        return self.called or name.replace("_", " ")

    def taken(self, name: str, value: Any) -> Any:  # noqa: ARG002 - the kinds of options look at it
        """Return a validated value.

        Raises
        ------
        InputError
            When it is not.
        """
        return value

    def without_effect(self, name: str, value: Any, chosen: str, having: Sequence[str]) -> InputError:
        """Return the error on a value without effect.

        Parameters
        ----------
        name, value
            Of the option.
        chosen
            With what it has no effect, as `the solver 'rk4'`.
        having
            With what it has.
        """
        lacking = f", {self.lacking}" if self.lacking else ""
        named = f"{self.words(name)} = {_shown(value)}"
        others = " and ".join(filter(None, (", ".join(having[:-1]), having[-1])))
        return InputError(f"{named} has no effect with {chosen}{lacking}; it has with {others}")


@dataclass(frozen=True, kw_only=True)
class Number(Option):
    """Option with a finite number.

    Attributes
    ----------
    unit
        SI unit; empty for ratios.
    bounds
        Which numbers it takes; all by default.
    whole
        Whether it takes whole numbers only.
    """

    unit: str = ""
    bounds: Bounds | None = None
    whole: bool = False

    def taken(self, name: str, value: Any) -> float:
        """Return the validated number; calls from Python may pass anything."""
        called = self.words(name)
        if isinstance(value, str) and self.unit:
            value = Variable(f"the {called}", unit=self.unit).number(value)
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
            raise InputError(f"the {called} is {value!r}; it must be a number")
        number = float(value)
        if not math.isfinite(number):
            raise InputError(f"the {called} is {number:g}; it must be finite")
        shown = f"{number:g} {self.unit}".rstrip()
        if self.bounds is not None and not self.bounds.allow(number):
            raise InputError(f"the {called} is {shown}; it {self.bounds.requirement}")
        if self.whole and not number.is_integer():
            raise InputError(f"the {called} is {shown}; it must be an integer")
        return int(number) if self.whole else number


@dataclass(frozen=True, kw_only=True)
class StringOption(Option):
    """Option with a text, or a text that starts with a word.

    Attributes
    ----------
    among
        Gives the words that it may be.
    """

    among: Callable[[], Iterable[str]]

    def taken(self, name: str, value: Any) -> str:  # noqa: ARG002 - it is checked with what follows the word
        """Return the text."""
        return str(value)


@dataclass(frozen=True, kw_only=True)
class ChoiceOption(StringOption):
    """Option with one of several words."""

    def taken(self, name: str, value: Any) -> str:
        """Return the word."""
        known = tuple(self.among())
        if value not in known:
            raise InputError(f"there is no {self.words(name)} '{value}'; {closest_match(str(value), known)}")
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Switch(Option):
    """Option that is on or off."""

    def taken(self, name: str, value: Any) -> bool:
        """Return the validated truth value."""
        if not isinstance(value, (bool, np.bool_)):
            raise InputError(f"{self.words(name)} is {value!r}; it must be true or false")
        return bool(value)


@dataclass(frozen=True, kw_only=True)
class ListOption(Option):
    """Option with a non-empty list of distinct values.

    Attributes
    ----------
    each
        What each of them is.
    """

    each: Option

    def taken(self, name: str, value: Any) -> tuple[Any, ...]:
        """Return the values."""
        one = self.each.words(name)
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InputError(f"the {self.words(name)} are {value!r}; they must be a list")
        values = tuple(self.each.taken(name, each) for each in value)
        if not values:
            raise InputError(f"there is no {one}; at least one is needed")
        if len(set(values)) < len(values):
            raise InputError(f"a {one} is given twice: {', '.join(str(each) for each in values)}")
        return values


class Options(Data):
    """Base class of options: frozen, validated one by one and together.

    None means the default behaviour.

    Raises
    ------
    InputError
        When a name is unknown, a value is not taken, or has no effect with the others.
    """

    subject: ClassVar[str]
    """Subject of the options."""

    def __init__(self, /, **given: Any) -> None:
        told = {name: value for name, value in self.parted(given).items() if value is not None}
        self.refuse_unknown(told)
        known = self.known()
        try:
            super().__init__(**{name: known[name].taken(name, value) for name, value in told.items()})
        except DataError as error:
            raise InputError(str(error)) from None
        self.check()

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Append the fields' help to the documentation of the class."""
        told = "".join(f"\n{name}\n    {cls.help(name)}" for name in cls.known())
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\nAttributes\n----------{told}\n"

    @classmethod
    def known(cls) -> dict[str, Option]:
        """Return all options by name."""
        each = {name: field.metadata for name, field in cls.model_fields.items()}
        return {name: next(one for one in metadata if isinstance(one, Option)) for name, metadata in each.items()}

    @classmethod
    def parted(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return options with a combined word split into its two options.

        Raises
        ------
        InputError
            When one is given by such a word, and otherwise by its name.
        """
        return dict(given)

    @classmethod
    def default(cls, name: str) -> Any:
        """Return the default of an option; None if it depends on others."""
        return cls.model_fields[name].default if name in cls.model_fields else None

    @classmethod
    def help(cls, name: str) -> str:
        """Return the help of an option, with a constant default."""
        text, default = cls.known()[name].help, cls.default(name)
        if default is None:
            return f"{text}."
        shown = ("on" if default else "off") if isinstance(default, bool) else _shown(default)
        return f"{text}; {shown} by default."

    @classmethod
    def refuse_unknown(cls, given: Iterable[str], beside: Iterable[str] = ()) -> None:
        """Refuse unknown names; names of other keyword arguments are mentioned in messages only.

        Raises
        ------
        InputError
            When one is unknown.
        """
        known = cls.known()
        for name in given:
            if name not in known:
                raise InputError(
                    f"there is no option '{name}' of {cls.subject}; {closest_match(name, [*beside, *known])}"
                )

    @classmethod
    def of(cls, options: Self | None, given: Mapping[str, Any], beside: Iterable[str] = ()) -> Self:
        """Return options, or the defaults, with some changed by name.

        Parameters
        ----------
        options
            An object; None where there is none.
        given
            Options by name; None for those of the object.
        beside
            What else the caller takes by name, for sentences.

        Raises
        ------
        InputError
            As for the class.
        """
        if not isinstance(options, cls | None):
            raise InputError(f"the options are a {type(options).__name__}; they must be {cls.__name__}")
        cls.refuse_unknown(given, beside)
        changes = {name: value for name, value in cls.parted(given).items() if value is not None}
        if options is not None and not changes:
            return options  # it is frozen, and was validated when it was made
        known = {} if options is None else {name: getattr(options, name) for name in options.model_fields_set}
        return cls(**{**known, **changes})

    def check(self) -> None:
        """Check the options together.

        Raises
        ------
        InputError
            When they do not go together.
        """

    def content(self, *without: str) -> tuple[tuple[str, Any], ...]:
        """Return the specified options by name, except some, to identify results."""
        return tuple(sorted((name, value) for name, value in self if name not in without and value is not None))


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
