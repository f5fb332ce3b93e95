"""Mechanisms from URDF files."""

from mbsfmu.urdf.importing import mechanism_from_urdf

__all__ = ["mechanism_from_urdf"]
