"""What docs/hydraulics.md says of components is what they have, and its code makes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import hydraulics
from hydraulics import Component
from hydraulics.component import COMPONENTS, port_kinds
from hydraulics.parameters import parameter_fields

PAGE = (Path(__file__).parents[2] / "docs" / "hydraulics.md").read_text(encoding="utf-8")
PARTS = re.split(r"^(?=#{1,2} )", PAGE, flags=re.MULTILINE)
SECTIONS = {found[1]: part for part in PARTS if (found := re.match(r"## [^`\n]*: `([\w-]+)`", part))}
"""The text on each component, by its type."""
COMMON = "".join(part for part in PARTS if part.startswith("## Poppets"))
"""The text on what several components have."""


@pytest.mark.parametrize("kind", SECTIONS)
def test_page_names_every_field_of_a_component(kind: str) -> None:
    found = COMPONENTS.find(kind)
    assert found is not None
    named = set(re.findall(r"`(\w+)`", SECTIONS[kind] + COMMON))
    fields = {*parameter_fields(found), *port_kinds(found)}
    assert not fields - named


@pytest.mark.parametrize("kind", SECTIONS)
def test_page_says_what_may_change_and_what_must_be_given(kind: str) -> None:
    found = COMPONENTS.find(kind)
    assert found is not None
    for line in SECTIONS[kind].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not re.match(r"\| `", line) or len(cells) < 4:
            continue
        names, _, default, *_ = cells
        for name in re.findall(r"`(\w+)`", names):
            field, parameter = found.model_fields[name], parameter_fields(found).get(name)
            assert ("~" in names) == (parameter is not None and parameter.tunable), name
            assert (default == "required") == field.is_required(), name
            if re.match(r"-?[\d.]", default):
                assert float(default) == field.default, name


def test_code_of_the_page_makes_components() -> None:
    names: dict[str, Any] = {name: getattr(hydraulics, name) for name in hydraulics.__all__}
    known = set(names)
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        exec(code, names)
    made = {each.type for name, each in names.items() if name not in known and isinstance(each, Component)}
    assert made >= set(SECTIONS)
