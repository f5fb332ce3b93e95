"""Animation of a machine as an element of a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from mbsfmu.view.pages.element import HtmlElement, data_block

_SCRIPTS = ("shapes", "lines", "arrows", "run", "trace", "panel", "triad", "scene")


def scene_element(
    payload: Mapping[str, Any], *, label: str | None = None, plays: bool = False, live: bool = False
) -> HtmlElement:
    """Return the animation with controls to play, scrub and rotate.

    Parameters
    ----------
    payload
        What `mbsfmu.view.scene.motion` gave.
    label
        What it shows, for those who do not see it; the model's name by default.
    plays
        Whether it plays at once, but for those who asked their system for less motion.
    live
        Whether a script gives it poses as they are computed, by `show`; the motion says then how far it goes.
    """
    kind = " data-live" if live else " data-play" if plays else ""
    markup = Markup('<div class="mbsfmu-scene" role="group" aria-label="{}"{}>{}</div>').format(
        label or f"{payload['name']} in motion", Markup(kind), data_block(payload)
    )
    names = (*_SCRIPTS, "live") if live else _SCRIPTS
    shared = ("pages/download.js", "pages/pressure_colours.js", "assets/three/three.min.js")
    scripts = (*shared, *(f"scene/{name}.js" for name in names))
    return HtmlElement(markup, ("scene/scene.css",), scripts)
