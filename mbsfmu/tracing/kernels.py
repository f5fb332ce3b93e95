"""Kernels: functions of few numbers, recorded as one call in kernel loops.

Marked functions are called with numbers and symbols as usual. If their arguments are recorded (have a `recorder`), each
call becomes one call of a kernel in a loop (`mbsfmu.tracing.tape`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Mark a function as a kernel.

    Positional arguments and results are arrays, None, and nested lists and tuples of these. Keyword arguments are equal
    for all calls of a kernel, and hashable.
    """

    @wraps(function)
    def called(*arguments: Any, **alike: Any) -> Any:
        recorder = _recorder(arguments)
        return function(*arguments, **alike) if recorder is None else recorder.call(function, arguments, alike)

    return cast("Function", called)


def kernel_of_members(function: Function) -> Function:
    """Mark a function over members as one kernel call per member: the first axis of all arrays is the members."""

    @wraps(function)
    def called(*arguments: Any, **alike: Any) -> Any:
        recorder = _recorder(arguments)
        if recorder is None:
            return function(*arguments, **alike)
        answers = [recorder.call(function, _member(arguments, member), alike) for member in range(_members(arguments))]
        return _together(answers, recorder)

    return cast("Function", called)


def _recorder(argument: Any) -> Any:
    """Return the recorder of arguments; None without one."""
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
