"""The code of docs/reference/hydraulics.md makes every component that there is."""

from __future__ import annotations

import re

from documented import PAGE, documented_components

from hydraulics.component import COMPONENTS
from mbsfmu.modelling.part import is_built_in


def test_code_of_the_page_makes_each_component() -> None:
    assert {each.type for each in documented_components()} == {
        word for word, kind in COMPONENTS.known() if is_built_in(kind)
    }


def test_laminar_pressures_of_the_page_are_those_of_components() -> None:
    rows = re.findall(r"^\| (?:orifices|poppets).*? \| (\S+) \| (.*) \|$", PAGE, re.MULTILINE)
    told = {word: float(pressure) for pressure, words in rows for word in re.findall("`(.*?)`", words)}
    fields = {word: kind.model_fields.get("laminar_pressure") for word, kind in COMPONENTS.known() if is_built_in(kind)}
    assert told == {word: field.default for word, field in fields.items() if field is not None}
