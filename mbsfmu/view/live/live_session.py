"""Coupled FMUs live: they run at real time, and a page on this machine drives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from markupsafe import Markup

from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.runs.cosimulation import Cosimulation
from mbsfmu.cosim.runs.coupling_options import CouplingKeywords, CouplingOptions
from mbsfmu.view.live.live_picture import LivePicture
from mbsfmu.view.live.live_run import LiveRun
from mbsfmu.view.live.live_server import Messages, open_browser, serve
from mbsfmu.view.live.live_variables import LiveVariables
from mbsfmu.view.pages.page import page
from mbsfmu.view.play.play_page import player_element
from mbsfmu.view.play.replay import replay_of_fmus, table_of

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
