"""Ishigami's function as a block of a user, whose Sobol indices have a closed form [Ishigami1990]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np

from mbsfmu import Array, Block, Numbers, Parameter, Quantity

A, B = 7.0, 0.1


class Ishigami(Block):
    """y = sin a + 7 sin² b + 0.1 c⁴ sin a."""

    type: Literal["ishigami"] = "ishigami"
    a: Annotated[float, Parameter("1", "first")] = 0.0
    b: Annotated[float, Parameter("1", "second")] = 0.0
    c: Annotated[float, Parameter("1", "third")] = 0.0

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("y", "1"),)

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        return {"y": np.sin(now["a"]) + A * np.sin(now["b"]) ** 2 + B * now["c"] ** 4 * np.sin(now["a"])}
