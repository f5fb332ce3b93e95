"""The server of a live run: one page on the loopback, behind a token, and a websocket between page and run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import webbrowser
from collections.abc import Callable
from typing import Any

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.plain import plain
from mbsfmu.view.live.live_run import LiveRun

HOST = "127.0.0.1"
"""The loopback alone: no other machine reaches it."""
_GRACE = 3.0
"""Seconds after which a page that was closed, and not merely loaded anew, ends the run."""
_LARGEST = 1 << 16
"""Bytes of a message of a page; no honest one is as long."""
_WAITING = 2
"""Messages that a page has not taken yet from which on it gets no further picture."""


def serve(
    run: LiveRun, page: Callable[[], str], messages: Messages, *, port: int, opened: Callable[[str], None]
) -> None:
    """Serve the page of a run until it is closed or Ctrl-C ends it.

    Parameters
    ----------
    run
        The run, which was started.
    page
        Gives the page.
    messages
        What the run tells.
    port
        Of the loopback; 0 for any that is free.
    opened
        Called with the address once it is served.

    Raises
    ------
    InputError
        When the package aiohttp is missing, or the port is taken.
    SimulationError
        When the thread of the run has ended by itself.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_Server(run, page, messages).serve(port, opened))
    if run.failure is not None:
        raise SimulationError(f"the live run has ended: {run.failure or type(run.failure).__name__}") from run.failure


def open_browser(address: str) -> None:
    """Open the page in the browser of the system, where there is one."""
    with contextlib.suppress(webbrowser.Error):
        webbrowser.open(address)


class Messages:
    """Messages of a run for its page, from another thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: asyncio.Queue[str] | None = None
        self._count = 0

    def attach(self) -> asyncio.Queue[str]:
        """Send what comes from now on to a new queue of the running loop."""
        self._loop, self._queue, self._count = asyncio.get_running_loop(), asyncio.Queue(), 0
        return self._queue

    def detach(self) -> None:
        """Drop what comes from now on."""
        self._queue = None

    def tell(self, message: dict[str, Any]) -> None:
        """Take a message from the thread of the run."""
        loop, waiting = self._loop, self._queue
        if loop is None or waiting is None:
            return
        self._count += 1
        text = json.dumps(plain(message), allow_nan=False)
        with contextlib.suppress(RuntimeError):  # a loop that has ended
            loop.call_soon_threadsafe(waiting.put_nowait, text)

    def taken(self) -> None:
        """Note that the page has got a message."""
        self._count -= 1

    def waiting(self) -> bool:
        """Return whether the page is behind, or there is none."""
        return self._queue is None or self._count >= _WAITING


def _server_log() -> logging.Logger:
    """Return a log for the server that has one line for what goes wrong, and none for what is no HTTP."""

    def is_told(record: logging.LogRecord) -> bool:
        from aiohttp.http import HttpProcessingError  # noqa: PLC0415 - an extra

        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if error is not None:
            record.exc_info, record.msg, record.args = None, f"a request failed: {error}", ()
        return not isinstance(error, HttpProcessingError)

    log = logging.getLogger(__name__)
    if not log.filters:
        log.addFilter(is_told)
    return log


class _Server:
    def __init__(self, run: LiveRun, page: Callable[[], str], messages: Messages) -> None:
        try:
            from aiohttp import web  # noqa: PLC0415 - an extra
        except ImportError:
            raise InputError("a live run needs the package aiohttp, extra 'live': pip install 'mbsfmu[live]'") from None
        self._web = web
        self._run, self._page, self._messages = run, page, messages
        self._token = secrets.token_urlsafe(24)
        self._connected = False
        self._closed = asyncio.Event()

    async def serve(self, port: int, opened: Callable[[str], None]) -> None:
        web = self._web
        application = web.Application()
        application.add_routes([web.get("/", self._get_page), web.get("/run", self._get_run)])
        loop = asyncio.get_running_loop()

        def close() -> None:
            loop.call_soon_threadsafe(self._closed.set)

        self._run.on_failure = close
        if self._run.failure is not None:
            self._closed.set()
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0, logger=_server_log())
        await runner.setup()
        try:
            site = web.TCPSite(runner, HOST, port)
            try:
                await site.start()
            except OSError:
                raise InputError(f"port {port} of {HOST} is taken; take another --port, or none") from None
            (self._port,) = (address[1] for address in runner.addresses)
            opened(f"http://{HOST}:{self._port}/?token={self._token}")
            await self._closed.wait()
        finally:
            await runner.cleanup()

    def _refuse(self, request: Any) -> None:
        """Refuse who has not got the token, or comes by another name or from another page."""
        web, own = self._web, f"{HOST}:{self._port}"
        token = request.query.get("token", "")
        if not secrets.compare_digest(token.encode(), self._token.encode()) or request.host != own:
            raise web.HTTPForbidden(text="this page needs the address that mbsfmu live printed\n")
        if request.headers.get("Origin", f"http://{own}") != f"http://{own}":
            raise web.HTTPForbidden(text="another page may not drive this run\n")

    async def _get_page(self, request: Any) -> Any:
        self._refuse(request)
        headers = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY"}
        return self._web.Response(text=self._page(), content_type="text/html", headers=headers)

    async def _get_run(self, request: Any) -> Any:
        self._refuse(request)
        web = self._web
        socket = web.WebSocketResponse(max_msg_size=_LARGEST, heartbeat=10.0)
        await socket.prepare(request)
        if self._connected:
            await socket.close(code=1008, message=b"another page drives this run; close it first")
            return socket
        self._connected = True
        outgoing = self._messages.attach()
        sender = asyncio.create_task(self._send(socket, outgoing))
        try:
            async for message in socket:
                if message.type is web.WSMsgType.TEXT:
                    self._run.ask(message.data)
        finally:
            sender.cancel()
            self._messages.detach()
            self._run.pause()
            self._connected = False
            asyncio.get_running_loop().call_later(_GRACE, self._end_without_page)
        return socket

    async def _send(self, socket: Any, outgoing: asyncio.Queue[str]) -> None:
        while True:
            await socket.send_str(await outgoing.get())
            self._messages.taken()

    def _end_without_page(self) -> None:
        if not self._connected:
            self._closed.set()
