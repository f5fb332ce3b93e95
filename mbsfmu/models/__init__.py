"""Built-in models: reference cases, made with the public interface."""

from __future__ import annotations

import re
from collections.abc import Callable

from mbsfmu.base.errors import InputError
from mbsfmu.modelling import closest_match
from mbsfmu.models.chains import (
    bennett,
    double_loop_8,
    double_pentagon,
    five_bar,
    ladder,
    loop_4,
    loop_8,
    pendulum,
    slewing_four_bar,
)
from mbsfmu.models.examples import EXAMPLES, example, write_starting_file
from mbsfmu.models.hydraulic import CIRCUITS, four_bar, quick_return
from mbsfmu.system_model.coupled_model import CoupledModel

BUILT_IN: dict[str, Callable[[], CoupledModel]] = {
    "four-bar": four_bar,
    "quick-return": quick_return,
    "five-bar": five_bar,
    "double-pentagon": double_pentagon,
    "loop-4": loop_4,
    "loop-8": loop_8,
    "double-loop-8": double_loop_8,
    "bennett": bennett,
    "slewing-four-bar": slewing_four_bar,
}
"""Models by name; `pendulum-N` and `ladder-N` exist for every N, `four-bar-CIRCUIT` and `quick-return-CIRCUIT` for
every circuit of `mbsfmu.models.hydraulic.CIRCUITS`.
"""


def built_in(name: str) -> CoupledModel:
    """Return a built-in model, or that of an example, by its name.

    Raises
    ------
    InputError
        When there is none of that name.
    """
    if match := re.fullmatch(r"(pendulum|ladder)-(\d+)", name):
        return (pendulum if match[1] == "pendulum" else ladder)(int(match[2]))
    if match := re.fullmatch(r"(four-bar|quick-return)-(.+)", name):
        mechanism = four_bar if match[1] == "four-bar" else quick_return
        return mechanism(match[2])
    if name in EXAMPLES:
        return example(name)
    if name not in BUILT_IN:
        told = closest_match(name, [*BUILT_IN, *EXAMPLES, "pendulum-N", "ladder-N"])
        own = "; a model of your own is file.py:factory or model.json, a robot is robot.urdf"
        hint = "" if told.startswith("did you mean") else own
        raise InputError(f"there is no model '{name}'; {told}{hint}")
    return BUILT_IN[name]()


__all__ = [
    "BUILT_IN",
    "CIRCUITS",
    "EXAMPLES",
    "bennett",
    "built_in",
    "double_loop_8",
    "double_pentagon",
    "example",
    "five_bar",
    "four_bar",
    "ladder",
    "loop_4",
    "loop_8",
    "pendulum",
    "quick_return",
    "slewing_four_bar",
    "write_starting_file",
]
