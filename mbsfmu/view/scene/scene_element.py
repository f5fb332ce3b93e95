"""The moving picture of a machine as an element of a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from mbsfmu.view.pages.element import HtmlElement, data_block

_SCRIPTS = ("shapes", "lines", "arrows", "run", "trace", "panel", "scene")


def scene_element(payload: Mapping[str, Any], *, label: str | None = None, plays: bool = False) -> HtmlElement:
    """Return the picture of a motion, with what plays, scrubs and turns it.

    Parameters
    ----------
    payload
        What `mbsfmu.view.scene.motion` gave.
    label
        What it shows, for those who do not see it; the model's name by default.
    plays
        Whether it plays at once, but for those who asked their system for less motion.
    """
    markup = Markup('<div class="mbsfmu-scene" role="group" aria-label="{}"{}>{}</div>').format(
        label or f"{payload['name']} in motion", Markup(" data-play") if plays else "", data_block(payload)
    )
    scripts = ("assets/three/three.min.js", *(f"scene/{name}.js" for name in _SCRIPTS))
    return HtmlElement(markup, ("scene/scene.css",), scripts)
