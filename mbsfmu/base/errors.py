"""Errors with one-sentence messages."""

from __future__ import annotations

from mbsfmu.base.failures import LoopsOpenError, SimulationError
from mbsfmu.modelling.errors import InputError

__all__ = ["InputError", "LoopsOpenError", "SimulationError"]
