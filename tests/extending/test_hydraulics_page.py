"""What docs/hydraulics.md says of components is what they have, and its code makes them."""

from __future__ import annotations

import re

import pytest
from documented import PAGE, documented_components

from hydraulics.component import COMPONENTS, port_kinds
from hydraulics.parameters import parameter_fields

CHAPTERS = re.split(r"^(?=# )", PAGE, flags=re.MULTILINE)
SECTION = re.compile(r"^## [^`\n]*: `([\w-]+)`\n(.*?)(?=^##? |\Z)", re.MULTILINE | re.DOTALL)
SECTIONS = {found[1]: found[2] for found in SECTION.finditer(PAGE)}
"""The text on each component, by its type."""


@pytest.mark.parametrize("kind", SECTIONS)
def test_page_names_every_field_of_a_component(kind: str) -> None:
    """In its section, or in what its chapter says of several."""
    found = COMPONENTS.find(kind)
    assert found is not None
    (chapter,) = (each for each in CHAPTERS if SECTIONS[kind] in each)
    assert not {*parameter_fields(found), *port_kinds(found)} - set(re.findall(r"`(\w+)`", chapter))


@pytest.mark.parametrize("kind", SECTIONS)
def test_page_says_what_may_change_and_what_must_be_given(kind: str) -> None:
    found = COMPONENTS.find(kind)
    assert found is not None
    for line in SECTIONS[kind].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not re.match(r"\| `", line) or len(cells) < 4:
            continue
        names = [name for name in re.findall(r"`(\w+)`", cells[0]) if name in found.model_fields]
        defaults = cells[2].split(", ") if len(names) > 1 and ", " in cells[2] else [cells[2]] * len(names)
        for name, default in zip(names, defaults, strict=True):
            field, parameter = found.model_fields[name], parameter_fields(found).get(name)
            assert (f"`{name}` ~" in cells[0]) == (parameter is not None and parameter.tunable), name
            assert (default == "required") == field.is_required(), name
            if re.match(r"-?[\d.]", default):
                assert float(default) == field.default, name


def test_code_of_the_page_makes_each_component() -> None:
    assert {each.type for each in documented_components()} >= set(SECTIONS)
