"""Report of a linear system: modes, frequency and step responses, animated modes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mbsfmu.analysis.linear_system import LinearSystem, Mode
from mbsfmu.analysis.modal_analysis import ModalAnalysis
from mbsfmu.base.errors import InputError
from mbsfmu.base.physical_units import number, percent, quantity
from mbsfmu.modelling import DataError
from mbsfmu.view.pages.page import (
    Cell,
    HtmlElement,
    answer,
    as_sentence,
    beside,
    download,
    heading,
    paragraph,
    section,
    stack,
    table,
    unfolded,
)
from mbsfmu.view.plots.plot import Curve, Plot, by_unit
from mbsfmu.view.report.report_sections import Circumstances

_MOST_INPUTS, _MOST_OUTPUTS = 4, 8
"""Frequency and step responses that are drawn; the files have all."""
_ANIMATED = 4
"""Number of animated modes, oscillating ones first."""
_NAMED, _LEAST = 3, 0.05
"""States that the table names of each mode, and how much they take part at least."""
_FAR = 30.0
"""Poles so many times as far from zero as the oscillating ones make a picture of their own."""
_LIGHT = 0.05
"""Damping ratio below which an oscillation is called lightly damped."""


def linear_page(result: LinearSystem | ModalAnalysis, circumstances: Circumstances) -> tuple[str, HtmlElement]:
    """Return title and content of the report of a linear system."""
    analysis = result if isinstance(result, ModalAnalysis) else ModalAnalysis(result)
    system = analysis.system
    title = f"{system.name}: linear system at t = {system.time:g} s"
    sizes = f"{len(system.states)} states, {len(system.inputs)} inputs, {len(system.outputs)} outputs"
    content = stack(
        heading(title),
        paragraph(sizes, "soft"),
        answer(
            [
                *_stability(system),
                *((as_sentence(note), "warn") for note in system.sentences),
                *_unknown(system),
            ]
        ),
        *circumstances.warning_notes(),
        section("Modes", _modes(analysis)),
        *_motion(analysis),
        *_poles(system),
        *_locus(analysis),
        *_bode(system),
        *_steps(system),
        section("Operating point", _operating_point(system)),
        section(
            "Numbers",
            beside(download("Linear system and modes, JSON", f"{system.name}-linear.json", analysis.to_dict())),
        ),
        circumstances.provenance(),
    )
    return title, content


def _stability(system: LinearSystem) -> list[tuple[str, str]]:
    """Return stability, and the least damped oscillation, in words."""
    if not system.modes:
        return [("The system has no states: outputs follow inputs at once.", "")]
    told: list[tuple[str, str]] = []
    growing = [mode for mode in system.modes if mode.grows]
    still = [mode for mode in system.modes if mode.is_still]
    if growing:
        told.append((f"Unstable: a mode {growing[0].in_words()}{_shares(growing[0])}.", "bad"))
    elif still:
        count = "one eigenvalue is" if len(still) == 1 else f"{len(still)} eigenvalues are"
        if system.drifts:
            told.append(
                (
                    f"Not stable: {count} zero with fewer eigenvectors: a velocity persists, and positions drift"
                    f"{_shares(still[0])}.",
                    "bad",
                )
            )
        else:
            told.append((f"No motion grows; {count} zero: what moves so stays where it is put{_shares(still[0])}.", ""))
    else:
        told.append(("Stable: all motions decay.", "good"))
    oscillating = [mode for mode in system.modes if mode.oscillates and not mode.grows]
    if oscillating:
        least = min(oscillating, key=lambda mode: mode.damping)
        kind = "warn" if least.damping < _LIGHT else ""
        told.append((f"The least damped mode {least.in_words()}{_shares(least)}.", kind))
    return told


def _shares(mode: Mode) -> str:
    most = [name for name, share in list(mode.participation.items())[:2] if share >= _LEAST]
    return f" ({', '.join(most)})" if most else ""


def _unknown(system: LinearSystem) -> list[tuple[str, str]]:
    told = "Not known from a linear system: what happens in motions that are not small"
    return [(f"{told}, at limits and stops, and in sliding friction.", "soft")] if system.states else []


def _modes(analysis: ModalAnalysis) -> HtmlElement:
    rows: list[list[str | Cell]] = []
    for place, mode in enumerate(analysis.modes, start=1):
        value = mode.eigenvalue
        text = number(value.real, 5) + (f" ± {number(value.imag, 5)} i" if value.imag else "")
        most = [
            f"{name} {percent(share, 2)}"
            for name, share in list(mode.participation.items())[:_NAMED]
            if share >= _LEAST
        ]
        kind = "bad" if mode.grows else ""
        frequency = quantity(mode.frequency, "Hz") if mode.oscillates else "–"
        constant = quantity(1.0 / abs(value.real), "s") if value.real and not mode.is_still else "–"
        rows.append(
            [
                str(place),
                Cell(text, kind),
                frequency,
                number(mode.damping) if mode.oscillates else "–",
                constant,
                ", ".join(most),
            ]
        )
    columns = (
        "no.",
        "eigenvalue [1/s]",
        "natural frequency",
        "damping ratio",
        "time constant",
        "states that take part most",
    )
    return table(columns, rows, "Those that decay slowest come first; participation factors.", texts=(0, 5))


def _motion(analysis: ModalAnalysis) -> list[HtmlElement]:
    """Return animated modes, the first one open; nothing for an FMU or without moving bodies."""
    modes = analysis.modes
    chosen = sorted(analysis.moving, key=lambda place: (modes[place].is_still, not modes[place].oscillates, place))
    parts: list[HtmlElement] = []
    for place in chosen[:_ANIMATED]:
        try:
            element, told = analysis.animation(place).element, analysis.caption(place)
        except (InputError, DataError) as error:
            return [section("Modes in motion", paragraph(f"No moving picture: {error}.", "soft"))]
        summary = f"Mode {place + 1}: {modes[place].in_words()}"
        parts.append(unfolded(summary, element, paragraph(told, "soft"), opened=not parts))
    return [section("Modes in motion", *parts)] if parts else []


def _reach(values: NDArray[np.complex128]) -> float:
    """Return the magnitude in 1/s up to which eigenvalues are drawn."""
    return _FAR * float(np.max(np.abs(values[values.imag != 0.0]), initial=0.0)) or np.inf


def _poles(system: LinearSystem) -> list[HtmlElement]:
    """Return the eigenvalues in the complex plane, distant ones in words."""
    values = system.eigenvalues
    if not len(values):
        return []
    reach = _reach(values)
    far = ", ".join(number(each.real, 4) for each in values[np.abs(values) > reach])
    told = [paragraph(f"Not drawn, as it is far away: {far} 1/s.", "soft")] if far else []
    return [section("Poles", system.poles(reach).element(), *told)]


def _locus(analysis: ModalAnalysis) -> list[HtmlElement]:
    locus = analysis.locus
    if locus is None:
        return []
    drawn = locus.plot(_reach(locus.eigenvalues)).element()
    return [section(f"Root locus over {locus.parameter}", locus.damping_plot().element(), drawn)]


def _drawn(system: LinearSystem) -> tuple[LinearSystem, list[HtmlElement]]:
    """Return the system with the drawn inputs and outputs, and a note on the others."""
    inputs, outputs = ([each.name for each in kind] for kind in (system.inputs, system.outputs))
    part = system.chosen(inputs[:_MOST_INPUTS], outputs[:_MOST_OUTPUTS])
    left = len(inputs) * len(outputs) - len(part.inputs) * len(part.outputs)
    told = f"{left} more pairs of inputs and outputs are not drawn; choose some with --inputs and --outputs."
    return part, [paragraph(told, "soft")] if left else []


def _bode(system: LinearSystem) -> list[HtmlElement]:
    """Return the frequency responses of outputs for each input."""
    part, told = _drawn(system)
    if not part.inputs or not part.outputs:
        return []
    names = [each.name for each in part.outputs]
    parts = []
    for place, given in enumerate(part.inputs):
        of = part.chosen([given.name], names)
        parts.append(unfolded(f"by {given.name} [{given.unit}]", _plotted(of), opened=place == 0))
    return [section("Frequency responses", *parts, *told)]


def _plotted(system: LinearSystem) -> HtmlElement:
    try:
        return system.bode().element()
    except InputError as error:
        return paragraph(f"Not drawn: {error}.", "soft")


def _steps(system: LinearSystem) -> list[HtmlElement]:
    """Return the step responses of outputs for each input."""
    part, told = _drawn(system)
    if not part.inputs or not part.outputs:
        return []
    parts = []
    for place, given in enumerate(part.inputs):
        found = part.step_response(given.name)
        curves = [(Curve.of(name, found.time, found[name]), found.unit(name)) for name in found.names]
        plot = Plot(f"{system.name}: step of {given.name}", by_unit(curves)).element()
        parts.append(unfolded(f"after a step of {given.name} by {quantity(1.0, given.unit)}", plot, opened=place == 0))
    return [section("Step responses", paragraph("Deviations from the operating point.", "soft"), *parts, *told)]


def _operating_point(system: LinearSystem) -> HtmlElement:
    kinds: Sequence[tuple[str, str]] = (("input", "inputs"), ("state", "states"), ("output", "outputs"))
    rows = [
        [each.name, kind, quantity(each.value, each.unit, 5)]
        for kind, field in kinds
        for each in getattr(system, field)
    ]
    made = table(("variable", "kind", "value"), rows, "Values at the operating point.", texts=(0, 1))
    return unfolded(f"{len(rows)} values", made)
