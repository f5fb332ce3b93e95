"""Animation of a run: in a notebook, as a page, or as an element of another one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.model.model_data import ModelData
from mbsfmu.view.pages.page import HtmlElement, data_block, framed, write_page
from mbsfmu.view.scene.gltf import glb
from mbsfmu.view.scene.payload import FRAME_RATE, motion

_SCRIPTS = ("shapes", "forces", "run", "panel", "scene")


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
    shared = ("pages/download.js", "pages/quantities.js", "assets/three/three.min.js")
    scripts = (*shared, *(f"scene/{name}.js" for name in names))
    return HtmlElement(markup, ("scene/scene.css",), scripts)


_HEIGHT = 620  # pixels of a frame in a notebook


class Animation:
    """Animation of a machine: displayed in notebooks, written by `save`.

    Attributes
    ----------
    payload
        Shapes, poses at the frames, and what is told, as plain data.
    title
        What is shown.
    """

    def __init__(self, payload: Mapping[str, Any], title: str) -> None:
        self.payload = payload
        self.title = title

    def __repr__(self) -> str:
        runs = ", ".join(run["label"] for run in self.payload["runs"])
        return f"<Animation: {self.title}, {self.payload['time']['count']} frames of {runs}>"

    @property
    def element(self) -> HtmlElement:
        """The animation as an element of a page."""
        return scene_element(self.payload, label=f"{self.title} in motion")

    @property
    def whole(self) -> HtmlElement:
        """Content of a separate page."""
        scene = scene_element(self.payload, label=f"{self.title} in motion", plays=True)
        markup = Markup('<h1>{}</h1><div class="mbsfmu-scene-alone">{}</div>').format(self.title, scene.markup)
        return HtmlElement.around(markup, [scene])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained page, or with `.glb` a binary glTF file of the first run; atomically.

        glTF files have the bodies as nodes, with their shapes, and one animation. They open in Blender, in viewers of
        operating systems, and by three.js.

        Raises
        ------
        InputError
            When the file is called neither `.html`, `.htm` nor `.glb`.
        """
        name = os.fspath(path)
        if not name.lower().endswith((".html", ".htm", ".glb")):
            raise InputError(f"{name} is refused for an animation: its name must end in .html, .htm or .glb")
        if name.lower().endswith(".glb"):
            with complete_file(path) as partial:
                partial.write_bytes(glb(self.payload))
            return
        write_page(self.title, self.whole, path)

    def _repr_html_(self) -> str:
        """Return the page in a frame, isolated from a notebook's scripts."""
        return framed(self.title, self.whole, _HEIGHT)


def animate(
    run: Trajectory,
    model: ModelData | Machine,
    beside: Trajectory | Mapping[str, Trajectory] | None = None,
    *,
    label: str = "",
    values: Mapping[str, float] | None = None,
    frame_rate: float = FRAME_RATE,
) -> Animation:
    """Return an animation of a run of a model.

    Parameters
    ----------
    run
        A run in process or a coupled one, or what was read of such from a file.
    model
        What it was a run of.
    beside
        Another run of the same model, or several by their labels: ghosts, so that it is seen how far they are off.
    label
        What the first run is called.
    values
        Values of parameters by `system.variable` where the run had others than the model.
    frame_rate
        Frames for each second of a run, between which bodies are moved evenly.

    Raises
    ------
    InputError
        When there is no mechanism, or a run lacks the coordinates of a joint; the sentence names them.
    """
    machine = model if isinstance(model, Machine) else Machine.of(model)
    if values is not None:
        machine = machine.with_values({**machine.values, **values})
    others = {"beside": beside} if isinstance(beside, Trajectory) else beside
    return Animation(motion(machine, run, others, label=label, frame_rate=frame_rate), machine.name)
