"""Pictures of parts: each drawn once, by the family and the word that data call it by."""

from __future__ import annotations

from pictures.block import BLOCKS, SIGNALS
from pictures.drawing import symbol
from pictures.hydraulic import COMPONENTS
from pictures.mechanical import BODIES, CONSTRAINTS, FORCES, JOINTS, SENSORS

PICTURES = {
    "component": COMPONENTS,
    "body": BODIES,
    "joint": JOINTS,
    "force": FORCES,
    "constraint": CONSTRAINTS,
    "sensor": SENSORS,
    "block": BLOCKS,
    "signal": SIGNALS,
}
"""The strokes of each part by its family and word."""


def picture(family: str, word: str, label: str) -> str:
    """Return the symbol of a part as SVG.

    Raises
    ------
    KeyError
        When nobody has drawn it.
    """
    strokes = PICTURES[family].get(word)
    if strokes is None:
        raise KeyError(f"the {family} '{word}' has no picture in docs/pictures")
    return symbol(strokes, label)
