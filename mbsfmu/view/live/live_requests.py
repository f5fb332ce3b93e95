"""What a page may ask a live run for: the one place where its messages are checked."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.view.live.live_variables import LiveVariables

_PLAIN = ("nothing", "pause", "step", "start", "reset")
_LONGEST = 60  # characters of what is quoted


def request_of(text: str) -> dict[str, Any]:
    """Return a message of a page as data.

    Raises
    ------
    InputError
        When it is no JSON object.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the page sends what is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise InputError(f"the page sends {_quoted(message)}; a request is a JSON object")
    return message


def checked_request(message: dict[str, Any], variables: LiveVariables, saved: Collection[int]) -> dict[str, Any]:
    """Return a request that a run can do.

    Parameters
    ----------
    message
        `do` says what; the other fields depend on it.
    variables
        Those of the run.
    saved
        The numbers of states that were saved.

    Raises
    ------
    InputError
        When it is none: a field is missing, or is no number, or none of those that there are.
    """
    what = message.get("do")
    match what:
        case "run":
            speed = message.get("speed")  # none: as fast as it goes
            if speed is not None and not _number(message, "speed") > 0.0:
                raise InputError(f"the speed is {speed}; it must be above zero")
        case "input":
            _place(message, "index", len(variables.inputs), "input")
            _number(message, "value")
        case "parameter":
            _place(message, "reference", len(variables.parameters), "parameter")
            _number(message, "value")
        case "signals":
            _check_signals(message.get("references"), len(variables.signals))
        case "save":
            _whole(message, "id")
        case "restore":
            if _whole(message, "id") not in saved:
                raise InputError(f"there is no saved state {message['id']}; there are {len(saved)}")
        case "record":
            _text(message, "for")  # what the page does with it, which it is told again
        case _ if what not in _PLAIN:
            raise InputError(f"the page asks for {_quoted(what)}, which a run cannot do")
    return message


def _number(message: dict[str, Any], name: str) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"the {name} is {_quoted(value)}; it must be a finite number")
    return float(value)


def _text(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise InputError(f"'{name}' is {_quoted(value)}; it must be a text")
    return value


def _whole(message: dict[str, Any], name: str) -> int:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise InputError(f"the {name} is {_quoted(value)}; it must be a whole number")
    return value


def _place(message: dict[str, Any], name: str, count: int, of: str) -> int:
    place = _whole(message, name)
    if place >= count:
        raise InputError(f"there is no {of} {place}; there are {count}")
    return place


def _check_signals(references: Any, count: int) -> None:
    if not isinstance(references, list):
        raise InputError(f"the page asks for the signals {_quoted(references)}; they are a list of numbers")
    for each in references:
        _place({"reference": each}, "reference", count, "signal")


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
