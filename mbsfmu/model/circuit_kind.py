"""Hydraulic circuits as systems of a model."""

from __future__ import annotations

from hydraulics import Circuit
from hydraulics.plausibility import plausibility_warnings
from mbsfmu.model.system_kinds import SystemKind, register_system_kind

register_system_kind(SystemKind("circuit", Circuit, "components", diagnostics=plausibility_warnings))
