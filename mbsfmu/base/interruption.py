"""Handling of interruptions that libraries swallow."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any]
_REMINDED_EVERY = 0.1
"""Interval in s at which a lost interruption is repeated."""


@contextmanager
def heeding_interruptions() -> Iterator[None]:
    """Make interruptions effective inside a block though libraries swallow them; also a decorator.

    During tracing, about every second interruption occurs in CasADi's argument conversion, which clears any Python
    error; pydantic converts others. A lost one is repeated until the block ends, except while it is being handled, so
    that cleanup is not interrupted.

    Raises
    ------
    KeyboardInterrupt
        When an interruption came inside, whatever became of it there.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers: dict[signal.Signals, _Handler] = {each: own for each, own in before.items() if callable(own)}
    if not handlers or threading.current_thread() is not threading.main_thread():
        yield
        return
    reminder = _Reminder(handlers)
    for number in handlers:
        signal.signal(number, reminder.heed)
    try:
        yield
    except Exception:
        if reminder.came:
            raise KeyboardInterrupt from None
        raise
    finally:
        reminder.leave()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if reminder.came:
        raise KeyboardInterrupt


class _Reminder:
    """Forwards interruptions to the previous handler, and repeats lost ones.

    Attributes
    ----------
    came
        Whether there was an interruption.
    """

    def __init__(self, handlers: Mapping[signal.Signals, _Handler]) -> None:
        self._handlers = handlers
        self._reminds = False
        self._left = threading.Event()
        self._reminding = threading.Lock()
        self.came = False

    def heed(self, number: int, frame: FrameType | None) -> None:
        """Handle an interruption, or a repetition."""
        if self._reminds:
            self._reminds = False
            if not self._left.is_set() and not _is_dealt_with():
                raise KeyboardInterrupt
            return
        if not self.came:
            self.came = True
            threading.Thread(target=self._remind, args=(signal.Signals(number),), daemon=True).start()
        self._handlers[signal.Signals(number)](number, frame)

    def leave(self) -> None:
        """End the repetitions."""
        with self._reminding:
            self._left.set()

    def _remind(self, number: signal.Signals) -> None:
        """Repeat the interruption at intervals, unless another handler is active."""
        while not self._left.wait(_REMINDED_EVERY):
            with self._reminding:
                if not self._left.is_set() and signal.getsignal(number) == self.heed:
                    self._reminds = True
                    _interrupt_main(number)


def _interrupt_main(number: signal.Signals) -> None:
    """Send a signal to the main thread; on POSIX it ends waiting calls."""
    if sys.platform == "win32":
        _thread.interrupt_main(number)
    else:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, number)


def _is_dealt_with() -> bool:
    """Return whether an interruption is being handled by the callers."""
    error = sys.exception()
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


@contextmanager
def deferring_interruptions() -> Iterator[None]:
    """Defer an interruption inside a block to its end.

    An exception in a callback of compiled code would be lost, as would the results of that code.

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
