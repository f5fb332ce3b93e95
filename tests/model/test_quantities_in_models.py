"""Numbers with units as texts, in model files and in Python: as on the command line."""

from __future__ import annotations

import json
import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from oscillator_in_closed_form import oscillator

import mbsfmu
from hydraulics import Circuit, Oil, Tank, VariablePump, Volume
from mbsfmu import (
    Beam,
    Block,
    CoupledModel,
    DataError,
    FirstOrder,
    JointSpringDamper,
    JointStop,
    Mechanism,
    Prismatic,
    Revolute,
    SineSignal,
    StepSignal,
)
from mbsfmu.cli.linearize import _varied
from mbsfmu.model import body
from mbsfmu.model.mechanism import read_json
from mbsfmu.model.model_data import ModelData
from mbsfmu.modelling.data import Data
from mbsfmu.modelling.measurement_units import number_in

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


def stop(**fields: Any) -> JointStop:
    return JointStop(**{"name": "stop", "joint": "joint", "lower": -1.0, "stiffness": 1e5, **fields})


def held(joint: type[Revolute | Prismatic], *forces: Any) -> Mechanism:
    """A bar on a joint, with forces along it."""
    placed = joint(name="joint", parent="ground.o", child="bar.start")
    ground: Any = {"o": ("100 mm", 0.0, "1 in")}
    return Mechanism(ground=ground, bodies=(Beam(name="bar", mass=2.0, length=1.0),), joints=(placed,), forces=forces)


def test_units_of_what_acts_along_a_joint_are_those_of_the_joint() -> None:
    """Of a slide in m and N, of a hinge in rad and N m; they are the same data as with numbers, in files too."""
    written = stop(lower="-1 in", upper="5 mm", stiffness="200 N/mm", damping="2 s/m")
    assert written == stop(lower=-0.0254, upper=0.005, stiffness=2e5, damping=2.0)
    slide = held(Prismatic, written)
    assert slide.ground["o"] == (0.1, 0.0, 0.0254)
    assert slide == Mechanism(**slide.to_dict())
    spring: Any = {"free_coordinate": "90 deg", "stiffness": "1 N.m/deg", "preload": "3 Nm", "damping": "1 N.m.s/deg"}
    (found,) = held(Revolute, {"type": "joint-spring-damper", "name": "s", "joint": "joint", **spring}).forces
    assert isinstance(found, JointSpringDamper)
    assert found.free_coordinate == pytest.approx(math.pi / 2.0)
    assert (found.stiffness, found.preload, found.damping) == pytest.approx((180.0 / math.pi, 3.0, 180.0 / math.pi))


def test_every_number_of_a_part_takes_texts() -> None:
    """But for ratios, directions, tables, shapes that are drawn, and blocks, whose signals decide on units."""
    alone = {"Oil.polytropic_index", "Bushing.axes", "PlaneContact.normal", "PlaneContact.exponent",
             "LinearCoupling.factors_of_joints", "Edge.points", "VariableOrifice.points"}  # fmt: skip
    directions, found = ("axis", "second_axis", "direction"), set()
    kinds, parts = [Data], ("mbsfmu.parts.", "mbsfmu.model.", "hydraulics.")
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.__module__.startswith(parts) and not (issubclass(kind, Block) or kind.__module__ == body.__name__):
            for name, field in kind.model_fields.items():
                if "float" in str(field.annotation) and kind.unit_of(name) is None and name not in directions:
                    found.add(f"{kind.__name__}.{name}")
    assert found - {"ModelData.start"} == alone


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
        (lambda: stop(upper="5 bar"), "upper: '5 bar' is refused: it must be in m or rad, as the joint is"),
        (lambda: stop(upper="much"), "upper is 'much'; it must be a number in m or rad, or with a unit"),
        (lambda: held(Revolute, stop(upper="5 mm")), "'stop': upper is '5 mm'; of joint 'joint' it must be in rad"),
        (lambda: held(Prismatic, stop(stiffness="1 N.m/deg")), "is '1 N.m/deg'; of joint 'joint' it must be in N/m"),
        (lambda: held(Revolute, stop(upper="5 mm").model_copy(update={"lower": -1.0})), "upper is '5 mm'; of joint"),
        (lambda: held(Revolute, stop().to_dict() | {"damping": "5 s/m"}), "damping is '5 s/m'; of joint 'joint' it"),
        (lambda: FirstOrder(gain="50 %", time_constant=1.0), "gain is '50 %'; it must be a number alone"),
    ],
)
def test_texts_of_two_meanings_or_none_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        make()
    assert said in str(caught.value)


def test_what_is_refused_is_answered_as_it_was_written() -> None:
    """With its number in the unit of the variable behind."""
    with pytest.raises(DataError, match=r"mass is '-5 g', in SI units -0\.005; it must be greater than 0"):
        Beam(name="bar", mass="-5 g", length=1.0)  # type: ignore[arg-type]
    simulation = CoupledModel(name="held", systems={"m": held(Revolute)}).simulation(compiled=False)
    with pytest.raises(mbsfmu.InputError, match=r"bar\.mass = -3 g \(-0\.003 kg\) is refused"):
        simulation.set("bar.mass", "-3 g")
    with pytest.raises(mbsfmu.InputError, match=r"bar\.mass = -0\.003 kg is refused"):
        simulation.set("bar.mass", -3e-3)
    kept = pickle.loads(pickle.dumps(number_in("-370 deg", "rad")))
    assert (kept, kept.text) == (pytest.approx(math.radians(-370.0)), "-370 deg")


def test_what_is_held_and_what_varies_have_units() -> None:
    """A spring of 50 N/m is held by 5 N at 100 mm; its stiffness varies in N/mm."""
    model = oscillator(driven=False)
    found = model.equilibrium({"mechanism.slider.displacement": "100 mm"}, {"mechanism.motor.force": "1 kN"}).found
    assert found == pytest.approx({"mechanism.motor.force": 5.0})
    assert model.root_locus("spring.stiffness", ["0.05 N/mm", 100.0]).values.tolist() == pytest.approx([50.0, 100.0])
    name, values = _varied("spring.stiffness=0.05 N/mm:0.1 N/mm:3")
    assert model.root_locus(name, values).values.tolist() == pytest.approx([50.0, 75.0, 100.0])
    with pytest.raises(mbsfmu.InputError, match=r"displacement: '1 bar' is refused: 'bar' and 'm'"):
        model.equilibrium({"mechanism.slider.displacement": "1 bar"}, ["mechanism.motor.force"])
    with pytest.raises(mbsfmu.InputError, match="the units of 1, 2 N/mm differ"):
        _varied("spring.stiffness=1:2 N/mm:3")


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


def test_start_values_of_states_take_units_and_unknown_ones_have_near_names() -> None:
    """A volume has no parameter that says where its pressure starts; 100 bar are 1e7 Pa."""
    model = mbsfmu.models.built_in("four-bar")
    data = model.to_dict()
    made = CoupledModel.from_dict({**data, "start": {"circuit.V1.compression": "100 bar"}})
    assert dict(made.start) == {"circuit.V1.compression": 1e7}
    assert made.simulation(compiled=False).get("V1.compression") == 1e7
    refusals = {
        "circuit.V1.compresion": "there is no 'V1.compresion' in 'circuit' that starts anywhere; did you mean 'V1.comp",
        "mechanism.boom.angle": "there is no 'boom.angle' in 'mechanism' that starts anywhere",
        "mechanism.cylinder.force": "'mechanism.cylinder.force' is driven by a connection",
        "circut.V1.compression": "is of no system 'circut'; did you mean 'circuit'?",
    }
    for name, sentence in refusals.items():
        with pytest.raises(DataError, match=re.escape(sentence)):
            CoupledModel.from_dict({**data, "start": {name: "100 bar" if "circ" in name else "3"}})
    with pytest.raises(DataError, match="'3 kg' is refused: 'kg' and 'Pa' are units of different quantities"):
        CoupledModel.from_dict({**data, "start": {"circuit.V1.compression": "3 kg"}})


def test_a_number_beyond_the_largest_in_a_file_is_told_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text('{"name": "x", "step": 1e400}', encoding="utf-8")
    with pytest.raises(DataError, match=r"model\.json: '1e400' is refused: its magnitude is beyond"):
        read_json(path)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"length": "1.0 kg"},
            "Beam 'link': length: '1.0 kg' is refused: 'kg' and 'm' are units of different quantities",
        ),
        ({"mass": True}, "Beam 'link': mass has the value true; it must be no truth value"),
        ({"mass": 1e301}, "Beam 'link': mass is 1e[+]301; its magnitude must be at most 1e[+]50"),
        ({"angle": "5 m"}, "Revolute 'O': angle: '5 m' is refused: 'm' and 'rad' are units of different quantities"),
        ({"angle": False}, "Revolute 'O': angle has the value false; it must be no truth value"),
    ],
)
def test_refusals_name_the_part_inside_of_a_model(changed: dict[str, Any], sentence: str) -> None:
    """Of many bodies and joints, not the mechanism that has them."""
    link = {"name": "link", "type": "beam", "length": 1.0, "mass": 1.0}
    joint = {"name": "O", "type": "revolute", "parent": "ground.O", "child": "link.start"}
    (joint if "angle" in changed else link).update(changed)
    data = {"ground": {"O": [0, 0, 0]}, "bodies": [link], "joints": [joint]}
    with pytest.raises(DataError, match=sentence):
        ModelData.from_dict({"name": "one", "systems": {"mechanism": data}})
