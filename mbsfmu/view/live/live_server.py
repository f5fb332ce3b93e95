"""Coupled FMUs live on this machine: the server on the loopback with one page, and its session."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from markupsafe import Markup

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.identity import plain
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.runs.cosimulation import Cosimulation
from mbsfmu.cosim.runs.coupling_options import CouplingKeywords, CouplingOptions
from mbsfmu.view.live.live_run import LivePicture, LiveRun, LiveVariables
from mbsfmu.view.pages.page import page
from mbsfmu.view.play.play_page import player_element
from mbsfmu.view.play.replay import replay_of_fmus, table_of

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


STOP = 3600.0
"""Seconds after which a live run ends where no stop time is given."""
_OF_LIVE = ("stop", "record", "record_every", "record_interval", "pace")
"""Options that a replay has otherwise."""
_ROWS = 2000
"""Rows that such a run keeps in memory."""


def live(
    source: str | Path | Sequence[str | Path],
    *,
    options: CouplingOptions | None = None,
    connections: Sequence[str | Connection] = (),
    parameters: Mapping[str, Any] | None = None,
    port: int = 0,
    browser: bool = True,
    opened: Callable[[str], None] = print,
    **given: Unpack[CouplingKeywords],
) -> None:
    """Run FMUs at real time behind a page on this machine, until the page is closed or Ctrl-C ends it.

    The page has sliders for inputs that nothing drives, tunable parameters, plots, pause, steps, saved states, and the
    moving machine if FMUs tell what it is, as ours do. It is served on the loopback alone, at an address with a secret
    token.

    Parameters
    ----------
    source, options, connections, parameters, given
        As for `cosimulate`; the stop time is an hour by default.
    port
        Of the loopback; 0 for any that is free.
    browser
        Whether the page is opened in the browser of the system.
    opened
        Called with the address of the page.

    Raises
    ------
    InputError
        As `Cosimulation`; when the package aiohttp is missing (the extra `live`), or the port is taken.
    SimulationError
        When an FMU fails before the first step.
    """
    chosen = CouplingOptions.of(options, given, ("connections", "parameters", "port", "browser", "opened"))
    stop = STOP if chosen.stop is None else chosen.stop
    interval = stop / _ROWS if chosen.record_interval is None else chosen.record_interval
    chosen = CouplingOptions.of(chosen, {"stop": stop, "record_interval": interval})

    def make(fixed: Mapping[str, float], resume: Path | None) -> Cosimulation:
        values = {**(parameters or {}), **fixed}
        return Cosimulation(source, options=chosen, connections=connections, parameters=values, resume=resume)

    messages = Messages()
    run = LiveRun(make, messages.tell, messages.waiting)
    variables, picture = run.start()
    try:
        content = _page(source, variables, picture, chosen, connections, parameters or {})
        serve(run, lambda: content, messages, port=port, opened=lambda address: _opened(address, browser, opened))
    finally:
        run.end()


def _opened(address: str, browser: bool, opened: Callable[[str], None]) -> None:
    opened(address)
    if browser:
        open_browser(address)


def _page(
    source: str | Path | Sequence[str | Path],
    variables: LiveVariables,
    picture: LivePicture,
    options: CouplingOptions,
    connections: Sequence[str | Connection],
    parameters: Mapping[str, Any],
) -> str:
    """Return the page of a run."""
    files = [str(source)] if isinstance(source, str | Path) else [str(each) for each in source]
    name = Path(files[0].rpartition("=")[2]).stem
    places = {each["name"]: each["reference"] for each in variables.signals}
    connected = [each if isinstance(each, str) else str(Connection.of(each)) for each in connections]
    data = {
        "name": name,
        "remote": True,
        "step": options.step or 0.0,
        "file": table_of(name),
        "replay": replay_of_fmus(name, files, connected, options, _OF_LIVE, parameters).data(),
        "inputs": variables.inputs,
        "remarks": [],
        "parameters": variables.parameters,
        "signals": variables.signals,
        "plotted": variables.plotted,
        "pressures": {
            node: {"reference": places[each]} if isinstance(each, str) else each
            for node, each in picture.pressures.items()
        },
    }
    missing = Markup('<p class="soft">No picture: {}.</p>').format(picture.reason)
    return page(
        f"{name}, live",
        player_element(data, f"{name}, live", picture.scene, missing=missing, circuits=picture.circuits),
    )
