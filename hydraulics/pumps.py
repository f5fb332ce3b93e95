"""Pumps on a shaft."""

from __future__ import annotations

from typing import ClassVar, Literal

from hydraulics.component import Actuator, Port, Stage
from hydraulics.displacement import DrivenMachine


class Pump(DrivenMachine, Actuator):
    """A pump with a fixed displacement; its laws are those of `hydraulics.displacement`.

    Its shaft turns at a speed that is given, or by whatever drives its input: a signal, or a joint of a mechanism, which
    its torque then acts on.

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
