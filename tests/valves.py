"""Circuits with valves, and laws of valves written with branches, apart from those of the library."""

from __future__ import annotations

from math import copysign, sqrt
from typing import Any

from hydraulics import (
    AnnularGap,
    Capillary,
    CheckValve,
    Circuit,
    Component,
    CounterbalanceValve,
    Oil,
    PilotCheckValve,
    PressureSource,
    ProportionalValve,
    ReducingValve,
    ReliefValve,
    ShuttleValve,
    Tank,
    VariableOrifice,
    Volume,
    closed_centre,
    tandem_centre,
    three_way,
)
from hydraulics.component import PortKind

LEAN = Oil(bulk_modulus=1.5e9, density=850.0, air_content=0.0, conserves="volume")
"""Oil whose flows arrive as they leave, and whose modulus is the same everywhere."""
AIRY = Oil(bulk_modulus=1.5e9, density=850.0)
VOLUME, MODULUS = 1e-3, 1.5e9
POPPET_LAMINAR = 1e4


def volumes(*components: Component, oil: Oil = LEAN, volume: float = VOLUME, **pressures: float) -> Circuit:
    """Return a circuit with rigid volumes at nodes, whose pressures are given, and a tank at node T."""
    spaces = (Volume(name=f"volume_{node}", node=node, volume=volume) for node in pressures)
    tank = () if "T" in pressures else (Tank(name="tank", node="T"),)
    return Circuit(oil=oil, components=(*tank, *spaces, *components), initial_pressures=pressures)


def alone(component: Component) -> Circuit:
    """Return a circuit in which each node of a component has a volume."""
    held = component.nodes(PortKind.HELD)
    return volumes(component, **{node: 1e6 for node in component.nodes() if node not in held})


def orifice(coefficient: float, drop: float, laminar: float = POPPET_LAMINAR) -> float:
    """Flow through an orifice: by the root of the drop, or by the drop where it is laminar."""
    if abs(drop) > laminar:
        return coefficient * copysign(sqrt(abs(drop)), drop)
    return coefficient * drop / sqrt(laminar)


def rated(flow: float, drop: float, laminar: float = POPPET_LAMINAR) -> float:
    """The coefficient of an orifice that lets a flow through at a drop."""
    return flow / sqrt(drop) if drop > laminar else flow * sqrt(laminar) / drop


def lift(acting: float, cracking: float, full: float) -> float:
    """Lift against a spring: linear but for cubics in the first and last twentieth."""
    share = (acting - cracking) / (full - cracking)
    if share <= 0.0:
        return 0.0
    if share >= 1.0:
        return 1.0
    if share < 0.05:
        return 2.0 * share**2 / 0.05 - share**3 / 0.05**2
    if share > 0.95:
        return 1.0 - lift(1.0 - share, 0.0, 1.0)
    return share


CHECK: dict[str, Any] = {"rated_flow": 1e-3, "cracking_pressure": 5e4, "full_pressure": 3e5}
ANTI_CAVITATION: dict[str, Any] = {"rated_flow": 2e-3, "cracking_pressure": 2e3, "full_pressure": 2e4}
RELIEF: dict[str, Any] = {"rated_flow": 1.5e-3, "setting": 2e7, "override": 1.5e6}
COUNTERBALANCE: dict[str, Any] = {
    "setting": 2.5e7,
    "override": 5e6,
    "pilot_ratio": 4.0,
    "rated_flow": 1e-3,
    "rated_drop": 2e6,
    "check_flow": 1e-3,
}


REDUCED: dict[str, Any] = {"setting": 5e6, "override": 1e6, "rated_flow": 1e-3, "rated_drop": 1e6}
EDGE: dict[str, Any] = {"rated_flow": 1e-3, "rated_drop": 5e5}


def all_valves(oil: Oil = AIRY) -> Circuit:
    """Every kind of valve in one circuit."""
    return volumes(
        PressureSource(name="pump", node="P", pressure=2.5e7),
        CheckValve(name="check", inlet="A", outlet="B", **CHECK),
        CheckValve(name="late_check", inlet="B", outlet="C", time_constant=5e-3, **CHECK),
        PilotCheckValve(name="hold", inlet="A", outlet="C", pilot="B", pilot_ratio=3.0, **CHECK),
        ShuttleValve(name="shuttle", a="A", b="B", outlet="D", rated_flow=1e-4, rated_drop=1e6),
        ReliefValve(name="relief", inlet="C", outlet="T", **RELIEF),
        ReliefValve(name="late_relief", inlet="A", outlet="T", time_constant=2e-3, **{**RELIEF, "setting": 1.5e7}),
        ReducingValve(name="reducing", inlet="P", outlet="D", drain="T", **REDUCED),
        CounterbalanceValve(
            name="lower", load="C", valve="B", pilot="A", time_constant=1e-2, **{**COUNTERBALANCE, "setting": 1.5e7}
        ),
        ProportionalValve(
            name="section",
            supply="P",
            tank="T",
            a="A",
            b="B",
            load_sense="D",
            edges=closed_centre(0.05, b_share=0.7),
            compensation=1e6,
            load_check=True,
            natural_frequency=200.0,
            damping_ratio=0.7,
            initial_spool=0.3,
            **EDGE,
        ),
        ProportionalValve(
            name="bypass", supply="P", tank="T", a="C", b="D", edges=tandem_centre(bypass_end=0.5), **EDGE
        ),
        ProportionalValve(name="late", supply="P", tank="T", a="D", edges=three_way(-0.02), time_constant=0.02, **EDGE),
        VariableOrifice(name="bleed", inlet="D", outlet="T", area=1e-6, discharge_coefficient=0.7),
        Capillary(name="capillary", inlet="B", outlet="T", diameter=1e-3, length=0.1, viscosity=0.04),
        AnnularGap(name="gap", inlet="A", outlet="C", diameter=0.05, length=0.02, clearance=2e-5, viscosity=0.04),
        oil=oil,
        A=1.6e7,
        B=1.2e7,
        C=2.1e7,
        D=1e6,
    )
