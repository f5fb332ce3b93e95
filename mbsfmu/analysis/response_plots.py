"""Plots of linear systems: poles, frequency responses, root loci."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mbsfmu.view.plots.plot import Axis, Curve, Kind, Panel, Plot

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

_FREQUENCY = Axis("frequency", "Hz", logarithmic=True)
_DECADES = 8.0
"""Most decades of frequencies that a grid covers: below and beyond, responses are straight lines."""
_BEYOND = 100.0
"""Most that it goes beyond the oscillating modes: much faster decays change little of what is seen."""
_A_DECADE = 60
"""Points of a grid in each decade …"""
_NEAR = (*np.linspace(-6.0, -0.5, 12), *np.linspace(-0.4, -0.05, 8))
"""… and about the frequency of an oscillating mode, in damping ratios to either side: the resonance is as wide."""
_STILL = 1e-9
"""1/s, below which an eigenvalue is zero, and has no frequency."""


def frequency_grid(eigenvalues: Complexes) -> Floats:
    """Return frequencies in Hz at which responses show all modes, ascending, the resonances in full.

    Parameters
    ----------
    eigenvalues
        In 1/s.
    """
    sizes = np.abs(eigenvalues)
    oscillating = eigenvalues[(eigenvalues.imag > 0.0) & (sizes > _STILL)]
    known = np.sort(sizes[sizes > _STILL]) / (2.0 * np.pi)
    low, high = (0.1 * known[0], 10.0 * known[-1]) if len(known) else (0.01, 100.0)
    middle = np.abs(oscillating) / (2.0 * np.pi) if len(oscillating) else known
    if len(oscillating):
        high = min(high, _BEYOND * float(np.max(middle)))
    if np.log10(high / low) > _DECADES:
        centre = float(np.exp(np.mean(np.log(middle))))
        low, high = max(low, centre * 10.0 ** (-_DECADES / 2)), min(high, centre * 10.0 ** (_DECADES / 2))
    grid = np.geomspace(low, high, 2 + int(_A_DECADE * np.log10(high / low)))
    peaks = []
    for value in oscillating:
        size = abs(value)
        width = max(-value.real / size, 1e-4)
        peak = size * np.sqrt(max(1.0 - 2.0 * width**2, 0.1)) / (2.0 * np.pi)
        offsets = np.array([*_NEAR, *(-each for each in _NEAR)]) * width
        peaks.append(peak * (1.0 + offsets[np.abs(offsets) < 1.0]))
    found = np.unique(np.concatenate([grid, *peaks]))
    return found[(found >= low) & (found <= high)]


def bode_plot(title: str, frequencies: Floats, responses: Sequence[tuple[str, str, Complexes]]) -> Plot:
    """Return magnitudes and phases over the frequency.

    Parameters
    ----------
    title
        What it shows.
    frequencies
        In Hz, ascending.
    responses
        For each, its label, its unit, and its complex values.
    """
    panels: dict[str, list[Curve]] = {}
    for label, unit, values in responses:
        panels.setdefault(unit, []).append(Curve.of(label, frequencies, np.abs(values)))
    phases = [Curve.of(label, frequencies, phase_in_degrees(values)) for label, _, values in responses]
    magnitudes = [Panel("magnitude", unit, tuple(curves), True) for unit, curves in panels.items()]
    return Plot(title, (*magnitudes, Panel("phase", "deg", tuple(phases), None)), _FREQUENCY)


def phase_in_degrees(values: Complexes) -> Floats:
    """Return the phase without jumps, between −180° and 180° at the lowest frequency; not-a-number where it is zero."""
    angles = np.full(len(values), np.nan)
    known = np.abs(values) > 0.0
    angles[known] = np.degrees(np.unwrap(np.angle(values[known])))
    return angles


def nyquist_plot(title: str, responses: Sequence[tuple[str, Complexes]], unit: str) -> Plot:
    """Return imaginary over real parts, a point for each frequency, and −1 where the unit is that of a loop gain."""
    curves = []
    for label, values in responses:
        order = np.argsort(values.real, kind="stable")
        curves.append(Curve.of(label, values.real[order], values.imag[order], Kind.POINTS))
    if unit == "1":
        curves.append(Curve.of("−1", [-1.0], [0.0], Kind.POINTS))
    return Plot(title, (Panel("imaginary part", unit, tuple(curves), None),), Axis("real part", unit))


def pole_map(title: str, groups: Sequence[tuple[str, Complexes]]) -> Plot:
    """Return eigenvalues in the complex plane in 1/s, both of each conjugate pair, a colour a group."""
    every = np.concatenate([values for _, values in groups])
    order = np.argsort(every.real, kind="stable")
    begins = np.cumsum([0, *(len(values) for _, values in groups)])
    curves = []
    for (label, _), begin, end in zip(groups, begins[:-1], begins[1:], strict=True):
        # One grid for all: poles of two groups may have one real part.
        shown = np.where((order >= begin) & (order < end), every.imag[order], np.nan)
        curves.append(Curve.of(label, every.real[order], shown, Kind.POINTS))
    return Plot(title, (Panel("imaginary part", "1/s", tuple(curves), None),), Axis("real part", "1/s"))
