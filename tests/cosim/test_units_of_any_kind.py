"""The master runs whatever does what `Instance` says; no FMI and no file is needed for that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbsfmu.cosim import cosimulate
from mbsfmu.cosim.fmus.fmu_instance import Floats, Instance, Port
from mbsfmu.cosim.runs import load_fmus
from mbsfmu.modelling.measurement_units import UnitOfMeasurement
from mbsfmu.modelling.variables import Causality, Variable

STEP, STEPS = 0.1, 10


class Held(Port):
    """Numbers of an instance of this file."""

    def __init__(self, instance: Plain, names: Sequence[str], values: Floats | None) -> None:
        super().__init__(instance, names, values)
        self._numbers = instance.numbers

    @property
    def all_real(self) -> bool:
        return True

    def read(self) -> Floats:
        self.values[:] = [self._numbers[name] for name in self.names]
        return self.values

    def write(self) -> None:
        self._numbers.update(zip(self.names, self.values.tolist(), strict=True))

    def write_slopes(self) -> None:
        raise AssertionError

    def read_rates(self) -> Floats:
        raise AssertionError


class Plain(Instance):
    """An integrator, ẏ = u and y(0) = 1, or where it is called `turned` a gain, y = −u a step ago."""

    interpolates = gives_rates = gives_directional_derivatives = saves_state = False
    takes_any_step = True
    default_experiment = STEP * STEPS, STEP

    def __init__(self, name: str, _: object) -> None:
        super().__init__(name)
        self.numbers = {"u": 0.0, "y": 1.0}
        causalities = {"u": Causality.INPUT, "y": Causality.OUTPUT}
        self.variables = {each: Variable(each, causality) for each, causality in causalities.items()}
        self.kinds, self.units = (
            dict.fromkeys(self.variables, "Real"),
            {each: UnitOfMeasurement("1") for each in self.variables},
        )
        self.dependencies = self.initial_dependencies = {"y": ()}
        self.calls: list[str] = []

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        self.calls.append("setup")

    def enter_initialization(self) -> None:
        self.calls.append("enter")

    def exit_initialization(self) -> None:
        self.calls.append("exit")

    def step(self, time: float, step: float) -> None:
        self.time, self.steps = time, self.steps + 1
        u = self.numbers["u"]
        self.numbers["y"] = -u if self.name == "turned" else self.numbers["y"] + step * u

    def read_next_event(self) -> float:
        return math.inf

    def close(self) -> None:
        self.calls.append("close")

    def save(self, slot: str, time: float) -> None:
        raise AssertionError

    def restore(self, slot: str) -> None:
        raise AssertionError

    def serialize(self) -> bytes:
        raise AssertionError

    def deserialize(self, state: bytes) -> None:
        raise AssertionError

    def port(self, names: Sequence[str], values: Floats | None = None) -> Held:
        return Held(self, names, values)

    def set_start(self, name: str, value: Any) -> None:
        self.numbers[name] = value

    def read_text(self, name: str) -> str:
        raise AssertionError

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        raise AssertionError


class Nowhere:
    """In place of an unpacked file."""

    carried = None

    def __init__(self, path: Path, exchanged: bool | None, called: str | None) -> None: ...

    def close(self) -> None: ...


def test_units_without_fmi_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Jacobi by hand: both take what the other had before the step."""
    made: list[Plain] = []

    def kept(name: str, archive: object, solver: str, values: object) -> Plain:
        made.append(Plain(name, archive))
        return made[-1]

    monkeypatch.setattr(load_fmus, "Archive", Nowhere)
    monkeypatch.setattr(load_fmus, "make_instance", kept)
    files = [tmp_path / f"{name}.any" for name in ("integrator", "turned")]
    for file in files:
        file.touch()
    result = cosimulate(
        files,
        connections=("integrator.y=turned.u", "turned.y=integrator.u"),
        algorithm="jacobi",
        extrapolation="zero",
        parameters={"turned.y": -1.0},
    )
    expected, turned = [1.0], [-1.0]
    for _ in range(STEPS):
        y, u = expected[-1], turned[-1]
        expected.append(y + STEP * u)
        turned.append(-y)
    np.testing.assert_allclose(result["integrator.y"], expected, rtol=1e-14)
    np.testing.assert_allclose(result["turned.y"], turned, rtol=1e-14)
    assert [each.calls for each in made] == [["setup", "enter", "exit", "close"]] * 2
    assert [each.steps for each in made] == [STEPS, STEPS]
