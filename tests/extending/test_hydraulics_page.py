"""The code of docs/hydraulics.md makes every component that there is."""

from __future__ import annotations

from documented import documented_components

from hydraulics.component import COMPONENTS
from hydraulics.kinds import is_built_in


def test_code_of_the_page_makes_each_component() -> None:
    assert {each.type for each in documented_components()} == {
        word for word, kind in COMPONENTS.known() if is_built_in(kind)
    }
