"""Data stay as they were checked, whatever is tried; copies are checked anew; texts of them are short."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

import mbsfmu
from hydraulics import Circuit
from mbsfmu.model import Beam, Mechanism, Point, RigidBody
from mbsfmu.model.body import Body
from mbsfmu.modelling import DataError
from mbsfmu.modelling.data import Data, FrozenMapping, closest_match
from mbsfmu.parts import Revolute


def four_bar() -> mbsfmu.CoupledModel:
    return mbsfmu.models.four_bar()


def mechanism() -> Mechanism:
    found = four_bar().systems["mechanism"]
    assert isinstance(found, Mechanism)
    return found


def test_a_field_cannot_be_set() -> None:
    beam = Beam(name="crank", length=1.0, mass=1.0)
    with pytest.raises(ValueError, match="frozen"):
        beam.mass = -1.0  # type: ignore[misc]
    assert beam.mass == 1.0


@pytest.mark.parametrize(
    ("mapping", "name"),
    [
        (four_bar().systems, "circuit"),
        (four_bar().signals, "circuit.valve.command"),
        (mechanism().ground, "O"),
        (mechanism().bodies[0].points, "C"),
        (Beam(name="crank", length=1.0, mass=1.0).points, "new"),
        (Beam.built_in_points, "end"),
        (four_bar().systems["circuit"].initial_pressures, "V3"),
    ],
)
def test_mappings_cannot_be_changed(mapping: Any, name: str) -> None:
    before = dict(mapping)
    for change in ("clear", "pop", "popitem", "update", "setdefault", "__setitem__", "__delitem__", "__ior__"):
        assert not hasattr(mapping, change)
    with pytest.raises(TypeError):
        mapping[name] = None
    assert dict(mapping) == before


def test_what_was_given_may_be_changed_without_effect() -> None:
    points = {"tip": (1.0, 0.0, 0.0)}
    body = RigidBody(name="body", mass=1.0, inertia=(1.0, 1.0, 1.0), points=points)
    points.clear()
    assert list(body.points) == ["tip"]


@pytest.mark.parametrize("data", [four_bar(), mechanism(), four_bar().systems["circuit"]])
def test_frozen_data_travel(data: mbsfmu.CoupledModel | Mechanism | Circuit) -> None:
    assert type(data).from_dict(data.to_dict()) == data
    for other in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data), copy.copy(data), data.model_copy(deep=True)):
        assert other == data
        assert hash(other) == hash(data)
    assert type(data.to_dict()) is dict


def test_frozen_mappings_are_equal_to_what_holds_the_same() -> None:
    assert FrozenMapping({"a": 1, "b": 2}) == {"b": 2, "a": 1}
    assert FrozenMapping({"a": 1}) != FrozenMapping({"a": 2})
    assert list(FrozenMapping([("b", 1), ("a", 2)])) == ["b", "a"]


def test_a_copy_has_a_topology_of_its_own() -> None:
    original = mechanism()
    assert len(original.topology.cuts) == 1
    hanging = original.model_copy(update={"joints": original.joints[:3]})
    assert hanging.topology.cuts == ()
    assert len(original.topology.cuts) == 1
    assert hanging.point("boom.C", "test") == original.point("boom.C", "test")
    renamed = original.bodies[0].model_copy(update={"points": {}})
    assert "C" not in renamed.all_points


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bodies": ()}, "at least one body"),
        ({"joints": mechanism().joints[1:]}, "not attached to the ground"),
        ({"gravty": (0.0, 0.0, 0.0)}, "no field gravty; did you mean 'gravity'?"),
        ({"gravity": (0.0, float("nan"), 0.0)}, "gravity[1] is nan"),
    ],
)
def test_a_copy_is_checked(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as caught:
        mechanism().model_copy(update=change)
    assert words in str(caught.value)


def test_a_copy_of_a_model_is_checked() -> None:
    with pytest.raises(DataError, match="drives no system"):
        four_bar().model_copy(update={"signals": {"nothing.at.all": four_bar().signals["circuit.valve.command"]}})


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda: mbsfmu.models.pendulum(500), 250),
        (lambda: mbsfmu.models.pendulum(500).systems["mechanism"], 300),
        (mechanism, 300),
        (lambda: four_bar().systems["circuit"], 350),
        (four_bar, 400),
        (lambda: mechanism().bodies[0], 120),
    ],
)
def test_texts_of_data_are_short(make: Callable[[], Any], most: int) -> None:
    data = make()
    assert repr(data).startswith(type(data).__name__ + "(")
    assert len(repr(data)) <= most
    assert len(str(data)) <= most


def test_a_text_of_data_names_what_they_are_made_of() -> None:
    assert repr(Beam(name="crank", length=1.5, mass=2.0, points={"here": Point()})) == (
        "Beam(name='crank', points=(here), mass=2.0, length=1.5)"
    )
    assert "bodies=(boom, link, rocker), joints=(O, C, D, E), forces=(cylinder)" in repr(mechanism())
    assert repr(Revolute(name="O", parent="ground.O", child="boom.start")) == (
        "Revolute(name='O', parent='ground.O', child='boom.start')"
    )


@pytest.mark.parametrize(
    ("word", "words", "sentence"),
    [
        ("lenght", ["mass", "length"], "did you mean 'length'?"),
        ("length", ["boom.mass", "cylinder.length"], "did you mean 'cylinder.length'?"),
        ("length", ["a.length", "b.length"], "did you mean 'a.length' or 'b.length'?"),
        ("boom.mas", ["mechanism.boom.mass", "mechanism.link.mass"], "did you mean 'mechanism.boom.mass'?"),
        ("mechanism.boom.mas", ["mechanism.boom.mass", "mechanism.link.mass"], "did you mean 'mechanism.boom.mass'?"),
        ("mechanizm.boom.mass", ["bodies.boom.mass", "mechanism.boom.mass"], "did you mean 'mechanism.boom.mass'?"),
        ("mechanism.boom.mas", ["boom.mass", "boom.length"], "did you mean 'boom.mass'?"),
        ("boom.weight", ["mechanism.boom.mass", "mechanism.boom.length"], "mechanism.boom.mass, mechanism.boom.length"),
        ("colour", ["mass", "length"], "there are mass, length"),
        ("colour", [f"length_{index}" for index in range(22)], "length_18, length_19, 2 more"),
        ("colour", [], "there are none"),
    ],
)
def test_unknown_words_meet_the_nearest(word: str, words: list[str], sentence: str) -> None:
    assert closest_match(word, words).endswith(sentence)


def test_bodies_are_made_of_their_own_classes() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Body(name="body")  # type: ignore[abstract]


def test_signatures_tell_fields_before_and_after_their_first_use() -> None:
    """Types as one reads them, required fields first, and what is left out is what may be left out."""

    class Bolt(Data):
        grade: Literal["8.8", "10.9"] = "8.8"
        diameter: Annotated[float, Field(gt=0.0)]
        holes: tuple[Annotated[float, Field(gt=0.0)], ...] = ()
        washer: float | None = None

    told = (
        "(*, diameter: float, grade: Literal['8.8', '10.9'] = '8.8', holes: tuple[float, ...] = (), "
        "washer: float | None = None)"
    )
    assert str(inspect.signature(Bolt)).replace("typing.", "") == told
    assert Bolt(diameter=0.01).holes == ()
    assert str(inspect.signature(Bolt)).replace("typing.", "") == told
