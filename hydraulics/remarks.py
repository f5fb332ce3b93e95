"""Remarks on a run of a circuit."""

from __future__ import annotations

from collections.abc import Iterator

from hydraulics.circuit import Circuit
from mbsfmu.modelling.course import Course, Remark

CAVITATING = 1e4
"""Partial pressure of the air in Pa below which oil cavitates here: its bubbles are ten times as large as at
atmospheric pressure, and real oil releases dissolved air.
"""


def circuit_remarks(circuit: Circuit, course: Course) -> Iterator[Remark]:
    """Yield remarks on cavitation, and those of the components."""
    if circuit.oil.air_content > 0.0:
        yield from _cavitation(circuit, course)
    for component in circuit.components:
        yield from component.remarks(course.of(component.name))


def _cavitation(circuit: Circuit, course: Course) -> Iterator[Remark]:
    """Yield a remark on each volume whose oil cavitates; without air such a pressure is below what it can be."""
    least = course.number("oil.vapour_pressure", circuit.oil.vapour_pressure) + CAVITATING
    for node in circuit.volume_nodes:
        pressure = course[f"{node}.pressure"]
        if pressure is not None and (time := course.first(pressure < least)) is not None:
            yield Remark(
                f"the oil at {node} cavitates from t = {time:.6g} s on: its pressure falls to {pressure.min():.4g} Pa, "
                "and real oil releases more air than the model has; check valves from the tank keep a line filled",
                doubtful=True,
            )
