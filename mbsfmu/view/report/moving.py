"""The animation in a report."""

from __future__ import annotations

from collections.abc import Callable

from mbsfmu.base.errors import InputError
from mbsfmu.modelling import DataError
from mbsfmu.view.pages.blocks import paragraph, section
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.scene import Animation


def moving(animate: Callable[[], Animation], caption: str = "") -> list[HtmlElement]:
    """Return the machine in motion; where it cannot be shown, a sentence says why, or nothing where nothing moves.

    Parameters
    ----------
    animate
        Gives the motion.
    caption
        What it shows.
    """
    try:
        made = animate()
    except (InputError, DataError) as error:
        return [paragraph(f"No moving picture: {error}.", "soft")]
    return [section("The machine in motion", made.element, *([paragraph(caption, "soft")] if caption else []))]
