"""Every part has an entry with its equations, its picture, and tables that are those of its class."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree

import pytest
from documented import documented_components
from entries import palette, with_entries
from entry_tables import fields_of, pretty, quantities_of
from part_kinds import Kind, kinds, named_in
from pictures import PICTURES, picture

from mbsfmu.modelling import Data

DOCS = Path(__file__).parents[2] / "docs"
ENTRY_PAGES = ("reference/mechanics", "reference/hydraulics", "reference/blocks")
PAGES = {name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ENTRY_PAGES}
SECTION = re.compile(r"^#+ ([^\n]*)\n(.*?)(?=^#+ |\Z)", re.MULTILINE | re.DOTALL)
ENTRIES = {
    kind: re.sub(r"^```.*?^```$", "", section[2], flags=re.MULTILINE | re.DOTALL)
    for name, page in PAGES.items()
    for section in SECTION.finditer(re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL))
    for kind in named_in(section[1], name)
}
"""What is said of each kind."""
WITHOUT_EQUATION = {"free", "pressure-sensor", "pressure-source", "tank", "volume"}
"""Parts that hold or tell something, and obey no law."""
WITHOUT_UNIT = {
    *("axis", "second_axis", "direction", "normal"),
    *("exponent", "factors_of_joints", "numerator", "denominator"),
    *("points", "rows", "columns", "values", "initial", "amplitude", "offset", "coefficients"),
}
"""Directions, numbers without a dimension, and what is in the units of inputs and outputs."""


def label(kind: Kind) -> str:
    return f"{kind.family} {kind.word}"


@pytest.mark.parametrize("kind", kinds(), ids=label)
def test_part_has_an_entry_with_its_equations(kind: Kind) -> None:
    assert kind in ENTRIES, f"{kind.page}.md has no heading that names `{kind.word}` or `{kind.made.__name__}`"
    assert "=" in ENTRIES[kind] or kind.word in WITHOUT_EQUATION
    headings = [each for each in SECTION.findall(PAGES[kind.page]) if kind in named_in(each[0], kind.page)]
    assert len(headings) == 1


@pytest.mark.parametrize("kind", kinds(), ids=label)
def test_part_has_a_picture_of_its_own(kind: Kind) -> None:
    drawn = picture(kind.family, kind.word, "a <label>")
    root = ElementTree.fromstring(drawn)
    assert root.get("aria-label") == "a <label>"
    assert len(list(root.iter())) > 3
    others = [strokes for family in PICTURES.values() for strokes in family.values()]
    assert others.count(PICTURES[kind.family][kind.word]) == 1
    for each in root.iter("polyline"):
        numbers = [float(number) for pair in each.get("points", "").split() for number in pair.split(",")]
        assert all(0.0 <= x <= 120.0 for x in numbers[::2])
        assert all(0.0 <= y <= 80.0 for y in numbers[1::2])


def test_nothing_is_drawn_that_is_no_part() -> None:
    assert {(family, word) for family, drawn in PICTURES.items() for word in drawn} == {each[:2] for each in kinds()}


def test_a_part_that_nobody_has_written_about_is_noticed() -> None:
    class Cooler(Data):
        """A cooler."""

    assert "cooler" not in with_entries("# Oil\n\n## Cooler: `cooler`\n", "hydraulics").replace("`cooler`", "")
    with pytest.raises(KeyError, match="the component 'cooler' has no picture"):
        picture("component", Kind("component", "cooler", Cooler).word, "Cooler")


@pytest.mark.parametrize("kind", kinds(), ids=label)
def test_allowed_values_are_those_of_the_schema(kind: Kind) -> None:
    """JSON Schema has the bounds by another way: from pydantic's core, not from the fields."""
    properties = kind.made.model_json_schema()["properties"]
    words = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    for name, _, default, allowed, meaning in fields_of(kind):
        field = properties[name.strip("` ~")]
        bounds = bounds_of(field)
        if len(bounds) < 8:
            assert {f"{words[key]} {value:g}" for key, value in bounds.items()} <= set(allowed.split(", ")), name
        assert (default == "required") == (name.strip("` ~") in kind.made.model_json_schema().get("required", [])), name
        assert meaning or kind.family == "signal", name


@pytest.mark.parametrize("kind", kinds(), ids=label)
def test_numbers_have_units(kind: Kind) -> None:
    for name, unit, *_ in fields_of(kind):
        field = name.strip("` ~")
        assert unit or field in WITHOUT_UNIT or not has_numbers(kind.made.model_fields[field].annotation), field


def has_numbers(annotation: Any) -> bool:
    return annotation is float or any(has_numbers(each) for each in get_args(annotation))


def bounds_of(field: Any) -> dict[str, float]:
    """Return the bounds of a number, or of a number that may be left out."""
    found = {key: field[key] for key in ("exclusiveMinimum", "minimum", "exclusiveMaximum", "maximum") if key in field}
    for each in field.get("anyOf", ()):
        found |= bounds_of(each)
    return found


def test_components_take_and_tell_what_the_tables_say() -> None:
    """The page's own components have no input, state or output that is not in the table of their kind."""
    by_word = {kind.word: kind for kind in kinds() if kind.family == "component"}
    for component in documented_components():
        told = {(name.strip("`"), role, unit) for name, role, unit, _ in quantities_of(by_word[component.type])}
        for role, given in (
            ("input", component.inputs()),
            ("state", component.states()),
            ("output", component.outputs()),
        ):
            for each in given:
                assert (each.name, role, pretty(each.unit)) in told, (component.name, each.name)


def test_tables_say_what_is_known_of_some() -> None:
    (relief,) = (kind for kind in kinds() if kind.word == "relief-valve")
    rows = {row[0]: row[1:] for row in fields_of(relief)}
    assert rows["`setting` ~"] == ("Pa", "required", "> 0", "Pressure drop in Pa at which it begins to open.")
    assert rows["`inlet`"][0] == "port"
    told = {(name, role): text for name, role, _, text in quantities_of(relief)}
    assert told["`lift`", "state"].endswith("(with `time_constant`)")
    assert told["`lift`", "output"].endswith("(without `time_constant`)")
    (motor,) = (kind for kind in kinds() if kind.word == "joint-actuator")
    assert ("`torque` or `force`", "input", "N m or N") in {row[:3] for row in quantities_of(motor)}


def test_pages_get_pictures_and_tables_where_the_parts_are() -> None:
    page = with_entries(PAGES["reference/hydraulics"], "reference/hydraulics")
    for kind in kinds():
        if kind.page == "reference/hydraulics":
            entry = page.partition(f"({kind.place})=")[2].partition("(part-")[0]
            assert f'aria-label="Symbol: {kind.made.__name__}"' in entry
            assert entry.index("field of") < entry.index("```python")
    cards = re.findall(r'href="\.\./([\w/]+)\.html#([\w-]+)"', palette(PAGES))
    assert {(kind.page, kind.place) for kind in kinds()} == set(cards)
    assert len(cards) == len(kinds())
