"""Numbers with units as texts, in model files and in Python: as on the command line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import mbsfmu
from hydraulics import Circuit, Oil, Tank, VariablePump, Volume
from mbsfmu import (
    Beam,
    CoupledModel,
    DataError,
    FirstOrder,
    JointSpringDamper,
    Mechanism,
    Revolute,
    SineSignal,
    StepSignal,
)

HINGE: dict[str, Any] = {"name": "hinge", "parent": "ground.o", "child": "bar.start"}


def pump(**fields: Any) -> VariablePump:
    return VariablePump(name="pump", inlet="T", outlet="P", time_constant="10 ms", **fields)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (lambda: Revolute(**HINGE, angle="-25 deg").angle, -math.radians(25.0)),
        (lambda: Revolute(**HINGE, angular_velocity="60 1/min").angular_velocity, 2.0 * math.pi),
        (lambda: Revolute(**HINGE, orientation=("90 deg", 0.0, "0")).orientation[0], math.pi / 2.0),
        (lambda: Beam(name="bar", mass="0.5 t", length="500 mm").mass, 500.0),
        (lambda: pump(displacement="10 cm3/rev", speed=1.0).displacement, 1e-5 / (2.0 * math.pi)),
        (lambda: pump(displacement=1e-6, speed="1500 1/min").speed, 50.0 * math.pi),
        (lambda: circuit().initial_pressures["P"], 1e6),
        (lambda: circuit().oil.density, 860.0),
        (lambda: SineSignal(amplitude=1.0, frequency="60 rpm").frequency, 1.0),
        (lambda: Beam(name="bar", mass=1.0, length=1.0).model_copy(update={"mass": "1 g"}).mass, 1e-3),
    ],
)
def test_texts_are_numbers_with_units(number: Callable[[], float], expected: float) -> None:
    assert number() == pytest.approx(expected, rel=1e-12)


def circuit() -> Circuit:
    return Circuit(
        oil=Oil(bulk_modulus="1.4 GPa", density="0.86 kg/l"),  # pyright: ignore[reportArgumentType]
        components=(Tank(name="T", node="T"), Volume(name="room", node="P", volume=1e-3)),
        initial_pressures={"P": "10 bar"},  # pyright: ignore[reportArgumentType]
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Revolute(**HINGE, angle="-25 mm"), "angle: '-25 mm' is refused: 'mm' and 'rad'"),
        (lambda: Revolute(**HINGE, angle="much"), "angle is 'much'; it must be a number in rad, or with a unit"),
        (lambda: Revolute(**HINGE, axis=("1 m", 0, 0)), "axis[0] is '1 m'; it must be a number alone"),
        (lambda: pump(displacement="10 cm3", speed=1.0), "write '10 cm3/rev' (1.59155e-06 m3/rad)"),
        # What these are in depends on the joint, and on the signals of the block.
        (lambda: JointSpringDamper(name="spring", joint="hinge", free_coordinate="5 deg"), "it must be a number alone"),
        (lambda: FirstOrder(gain="50 %", time_constant=1.0), "gain is '50 %'; it must be a number alone"),
    ],
)
def test_texts_of_two_meanings_or_none_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        make()
    assert said in str(caught.value)


def test_files_run_as_in_python(tmp_path: Path) -> None:
    """A pendulum by its file: start, bodies, end of the run, a start value and a signal with units."""
    model = CoupledModel(
        name="swing",
        systems={
            "m": Mechanism(
                ground={"o": (0.0, 0.0, 0.0)},
                bodies=(Beam(name="bar", mass=2.0, length=1.0),),
                joints=(Revolute(**HINGE, angle=-math.radians(25.0)),),
            )
        },
        stop_time=0.5,
    )
    data = model.to_dict()
    mechanism = data["systems"]["m"]
    mechanism["joints"][0]["angle"], mechanism["bodies"][0]["length"] = "-25 deg", "1000 mm"
    data["stop_time"], data["start"] = "500 ms", {"m.bar.mass": "2000 g"}
    Draft202012Validator(mbsfmu.model_schema()).validate({**data, "start": {}})
    (tmp_path / "model.json").write_text(json.dumps(data))
    read = CoupledModel.from_file(tmp_path / "model.json")
    assert read.start == {"m.bar.mass": 2.0}
    assert read.model_copy(update={"start": {}}) == model
    data["start"] = {"m.bar.mass": "2 m"}
    with pytest.raises(DataError, match=r"start.m.bar.mass: '2 m' is refused"):
        CoupledModel.from_dict(data)


def test_signals_have_units() -> None:
    """A held speed in revolutions a minute turns a shaft as the number in rad/s does."""
    fields = {"times": (0.0,), "initial": 1500.0, "values": (1500.0,)}
    systems = {"filter": FirstOrder(time_constant=0.01, input_unit="rad/s", output_unit="rad/s")}
    runs = [
        CoupledModel(
            name="f", systems=systems, signals={"filter.input": StepSignal(**fields, unit=unit)}, stop_time=1.0
        )
        .simulation(compiled=False, step=0.01)
        .run(1.0)["output"][-1]
        for unit in ("1/min", "rpm")
    ]
    assert runs == pytest.approx([50.0 * math.pi] * 2, rel=1e-9)
