"""Numbers by name: of arrays that are given alone, as at the start, where states are not known."""

from __future__ import annotations

import numpy as np
import pytest

from mbsfmu.modelling.parameters import NamedValues, Quantity, places


def test_what_is_of_no_given_array_is_absent() -> None:
    found = places(states=[Quantity("a.lift", "m")], parameters=[Quantity("a.area", "m2"), Quantity("b.area", "m2")])
    values = NamedValues(found, parameters=np.array([3.0, 5.0]))
    assert (values["a.area"], values["b.area"]) == (3.0, 5.0)
    assert "b.area" in values
    assert "a.lift" not in values
    assert "c.area" not in values
    assert list(values) == ["a.area", "b.area"]
    with pytest.raises(KeyError):
        values["a.lift"]
