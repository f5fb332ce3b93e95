"""Interruptions that libraries lose."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def heeding_interruptions() -> Iterator[None]:
    """Let an interruption count at the end of a block at the latest; it decorates functions too.

    While equations are traced, every third interruption or so meets CasADi's conversions of arguments, which clear
    whatever error Python has; pydantic turns others into errors of its own.

    Raises
    ------
    KeyboardInterrupt
        When an interruption came inside, whatever became of it there.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    except Exception:
        if came:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def deferring_interruptions() -> Iterator[None]:
    """Let an interruption inside a block count at its end.

    What raises in a function that compiled code calls back is lost; and so would be what such code has done.

    Raises
    ------
    KeyboardInterrupt
        Or whatever the handlers raise, when one came inside.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}
    if threading.current_thread() is not threading.main_thread():
        handlers = {}
    came: list[tuple[int, FrameType | None]] = []
    for number in handlers:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came:
            handlers[number](number, frame)  # pyright: ignore[reportArgumentType]
