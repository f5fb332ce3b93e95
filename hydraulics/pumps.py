"""Pumps on a shaft."""

from __future__ import annotations

from typing import ClassVar, Literal

from hydraulics.component import Port, Stage
from hydraulics.displacement import DrivenMachine


class Pump(DrivenMachine):
    """A pump with a fixed displacement; its laws are those of `hydraulics.displacement`.

    Attributes
    ----------
    inlet, outlet
        Nodes; it pumps from inlet to outlet when it turns forwards.
    """

    stage: ClassVar[Stage] = Stage.SOURCE
    ends: ClassVar[tuple[str, str]] = ("inlet", "outlet")
    type: Literal["pump"] = "pump"
    inlet: Port
    outlet: Port
