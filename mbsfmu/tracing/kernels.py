"""Functions of few numbers that equations are made of, in one piece where equations are recorded.

Marked functions are called as any others with numbers and with symbols. Where their arguments are recorded (they know a
`recorder`), each call becomes one call of a kernel in a loop (`mbsfmu.tracing.tape`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Mark a function as one kernel.

    Its positional arguments are arrays, None, and lists and tuples of such; so is its answer. What follows by name is
    the same for all calls that are alike, and can be hashed.
    """

    @wraps(function)
    def called(*arguments: Any, **alike: Any) -> Any:
        recorder = _recorder(arguments)
        return function(*arguments, **alike) if recorder is None else recorder.call(function, arguments, alike)

    return cast("Function", called)


def kernel_of_members(function: Function) -> Function:
    """Mark a function of many members at once as one kernel for each: first axes of all arrays are the members."""

    @wraps(function)
    def called(*arguments: Any, **alike: Any) -> Any:
        recorder = _recorder(arguments)
        if recorder is None:
            return function(*arguments, **alike)
        answers = [recorder.call(function, _member(arguments, member), alike) for member in range(_members(arguments))]
        return _together(answers, recorder)

    return cast("Function", called)


def sections_wanted(array: Any) -> int:
    """Return in how many sections, for as many threads, what an array is used for is wanted: one but in recordings."""
    return getattr(_recorder(array), "sections", 1)


def in_section(array: Any, section: int, stage: int | None = None) -> AbstractContextManager[None]:
    """Return in which kernels belong to a section, where an array is recorded; see `Recorder.in_section`."""
    recorder = _recorder(array)
    return nullcontext() if recorder is None else recorder.in_section(section, stage)


def _recorder(argument: Any) -> Any:
    """Return what records arguments, None where nothing does."""
    if isinstance(argument, (list, tuple)):
        return next((found for each in argument if (found := _recorder(each)) is not None), None)
    return getattr(argument, "recorder", None)


def _members(argument: Any) -> int:
    if isinstance(argument, (list, tuple)):
        return max((_members(each) for each in argument), default=0)
    return 0 if argument is None else len(argument)


def _member(argument: Any, member: int) -> Any:
    if isinstance(argument, (list, tuple)):
        return [_member(each, member) for each in argument]
    return None if argument is None else argument[member : member + 1]


def _together(answers: list[Any], recorder: Any) -> Any:
    first = answers[0]
    if isinstance(first, (list, tuple)):
        return type(first)(_together(list(each), recorder) for each in zip(*answers, strict=True))
    return None if first is None else recorder.joined(answers)
