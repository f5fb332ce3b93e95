"""Coupled linear FMUs by their matrices."""

from __future__ import annotations

import numpy as np
from cosim.coupled_pairs import Pair

from mbsfmu.comparison.recommendation import LinearCoupling, LinearFmu


def linear(pair: Pair, *, interpolates: bool = True) -> LinearCoupling:
    """The coupling of a pair, made of its matrices; deviations from the start are pushed by the rates there."""
    names = [[f"{each.name}.{variable.name}" for each in pair.systems for variable in getattr(each, which)]
             for which in ("inputs", "outputs")]  # fmt: skip
    gains = np.zeros((len(names[0]), len(names[1])))
    for connection in pair.connections:
        source, target = connection.split("=")
        gains[names[0].index(target), names[1].index(source)] = 1.0
    outputs = pair.exact(np.zeros(1))
    fmus, place = [], 0
    for each in pair.systems:
        a, b, c, d = each.matrices
        inputs = gains[place : place + b.shape[1]] @ np.array([outputs[name][0] for name in names[1]])
        place += b.shape[1]
        rates = a @ each.initial_states({}) + b @ inputs
        fmus.append(LinearFmu(each.name, a, b, c, d, rates, interpolates))
    return LinearCoupling(tuple(fmus), gains)
