"""A running machine in a cell of a notebook, with values that Python reads and inputs that it sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.modelling import closest_match
from mbsfmu.view.pages.page_files import text_of

_HEIGHT = 1000
"""Pixels of the frame."""


def notebook_widget(
    title: str, page: str, inputs: Sequence[str], signals: Sequence[str], plotted: Sequence[str]
) -> Any:
    """Return a widget of a page in which a machine runs.

    Parameters
    ----------
    title, page
        The machine, and its page.
    inputs, signals, plotted
        Names of the inputs, of all signals, and of those that are plotted at first.

    Returns
    -------
    anywidget.AnyWidget
        With `time` in s, `values` of the plotted signals and `inputs` by their names, told five times a second; `set`
        sets inputs, `plot` chooses signals.

    Raises
    ------
    InputError
        When the package anywidget is missing.
    """
    try:
        import anywidget  # noqa: PLC0415 - an extra
        import traitlets  # noqa: PLC0415
    except ImportError:
        raise InputError(
            "a widget needs the package anywidget, extra 'notebook': pip install 'mbsfmu[notebook]'"
        ) from None

    class PlayWidget(anywidget.AnyWidget):
        """A running machine in a cell."""

        _esm = text_of("play/notebook.js")
        title = traitlets.Unicode("").tag(sync=True)
        page = traitlets.Unicode("").tag(sync=True)
        height = traitlets.Int(_HEIGHT).tag(sync=True)
        time = traitlets.Float(0.0).tag(sync=True)
        values = traitlets.Dict().tag(sync=True)
        inputs = traitlets.Dict().tag(sync=True)
        wanted = traitlets.Dict().tag(sync=True)
        signals = traitlets.List().tag(sync=True)

        def set(self, values: Mapping[str, float]) -> None:
            """Set inputs by their names; refuse unknown ones."""
            for name in values:
                _known(name, inputs, "input")
            self.wanted = {name: float(value) for name, value in values.items()}
            self.wanted = {}  # the same values may be wanted again

        def plot(self, *names: str) -> None:
            """Choose the signals that are plotted, and whose values are told; refuse unknown ones."""
            for name in names:
                _known(name, signals, "signal")
            self.signals = list(names)

    return PlayWidget(title=title, page=page, signals=list(plotted))


def _known(name: str, names: Sequence[str], kind: str) -> None:
    if name not in names:
        raise InputError(f"there is no {kind} '{name}' in the page; {closest_match(name, names)}")
